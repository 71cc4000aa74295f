package lint

import (
	"slices"
	"strings"
)

// layer is a folder of packages and what they may import of this module, beside each other.
type layer struct {
	folder string
	deep   bool // the folders below belong to it too
	may    []string
	// every lets the layer import anything but test support.
	every bool
	// support lets it import that as well, and keeps everybody else from importing the layer.
	support bool
}

// Sets of targets. A target ending in /... means the folders below as well.
var (
	domain = []string{".", "clock", "standardwebhooks"}
	worker = []string{".", "clock", "cloudevents", "group", "messaging", "notify", "shard", "standardwebhooks", "store", "telemetry", "wire", "internal/..."}
	stored = []string{".", "clock", "standardwebhooks", "store", "store/backend/...", "store/engine/..."}
)

// layers is design section 4: arrows go down only, from cmd over workers and api to store and messaging, and to the domain. A concrete store is chosen in one
// place, store/open. The first layer that holds a package's folder is its layer.
var layers = []layer{
	{folder: ".", may: []string{signing}},
	{folder: "standardwebhooks", deep: true},
	{folder: "clock", deep: true},
	{folder: "cloudevents", deep: true, may: domain},
	{folder: "group", deep: true, may: domain},
	{folder: "wire", deep: true, may: append([]string{"cloudevents"}, domain...)},
	{folder: "telemetry", deep: true, may: domain},
	{folder: "store", may: domain},
	{folder: "store/storetest", deep: true, may: append([]string{"store/fault", "store/traced"}, stored...), support: true},
	{folder: "store/open", deep: true, may: append([]string{"store/memory", "store/move", "store/postgres", "store/sqlite"}, stored...)},
	{folder: "store/memory", deep: true, may: stored},
	{folder: "store/postgres", deep: true, may: stored},
	{folder: "store/sqlite", deep: true, may: append([]string{"internal/folderlock"}, stored...)},
	{folder: "store", deep: true, may: stored},
	{folder: "messaging", deep: true, may: append([]string{"cloudevents", "telemetry", "internal/folderlock"}, domain...)},
	{folder: "notify", deep: true, may: append([]string{"group", "store", "messaging", "telemetry"}, domain...)},
	{folder: "shard", deep: true, may: append([]string{"store", "telemetry"}, domain...)},
	{folder: "ingest", deep: true, may: worker},
	{folder: "delivery", deep: true, may: worker},
	{folder: "push/target", deep: true, may: domain},
	{folder: "push/outcome", deep: true, may: domain},
	{folder: "push/project", deep: true, may: append([]string{"cloudevents"}, domain...)},
	{folder: "push/transport", deep: true, may: append([]string{"push/target"}, domain...)},
	{folder: "push/request", deep: true, may: append([]string{"push/project", "push/transport"}, domain...)},
	{folder: "push/oauth", deep: true, may: append([]string{"push/transport"}, domain...)},
	{folder: "push", deep: true, may: append([]string{"push/..."}, worker...)},
	{folder: "timer", deep: true, may: worker},
	{folder: "sweep", deep: true, may: worker},
	{folder: "api", deep: true, may: append([]string{"push/target"}, worker...)}, // what a send would refuse of a URL is refused when it is offered
	{folder: "client", deep: true, may: append([]string{"cloudevents", "messaging", "telemetry", "wire"}, domain...)},
	{folder: "cmd", deep: true, every: true},
	{folder: "bench", deep: true, every: true, support: true},
	{folder: "examples", deep: true, every: true, support: true},
	{folder: "internal/difftest", deep: true, every: true, support: true},
	{folder: "rendezvoustest", deep: true, every: true, support: true},
	{folder: "internal/folderlock", deep: true},
	{folder: "internal/lint", deep: true, support: true},
	{folder: "internal/node", deep: true, every: true},
	{folder: "internal/worker", deep: true, may: domain},
	{folder: "internal/nodetest", deep: true, every: true, support: true},
	{folder: "internal/pgtest", deep: true, every: true, support: true},
	{folder: "internal/rules", deep: true, support: true},
	{folder: "internal/sink", deep: true, may: domain, support: true},
	{folder: "internal/soak", deep: true, every: true, support: true},
	{folder: "internal/testsum", deep: true, support: true},
	{folder: "internal", deep: true, may: worker},
}

// performing are standard packages that reach the world outside. The domain has none of it, so that it can be tested and reasoned about alone.
var performing = []string{"os", "net", "net/http", "database/sql", "syscall", "io/fs", "log", "os/exec", "os/signal"}

// nextJSON is what the standard library's encoding/json/v2 is made of. The domain decodes records with it because encoding/json folds the names of members
// and halves of surrogate pairs, so that a history would not say what was done; it does no I/O and imports the standard library only.
const nextJSON = "github.com/go-json-experiment/json"

// signing is the one package of this module that the domain may import: registrations carry keys, and what a send would refuse of one is refused when it is
// offered. It is held to what the domain is held to.
const signing = "standardwebhooks"

// checkArrows judges what the packages of a tree import. Tests are free: they put together what production keeps apart.
func checkArrows(tree Tree) []Finding {
	var found []Finding
	strangers := map[string]bool{}
	for _, f := range tree.Files {
		switch own := layerOf(f.Dir()); {
		case f.Test():
		case own != nil:
			found = append(found, checkImports(tree.Module, f, own)...)
		case !strangers[f.Dir()]:
			strangers[f.Dir()] = true
			found = append(found, f.finding(f.Syntax.Package, "package folder %s has no place among the layers: give it one in internal/lint/arrows.go", f.Dir()))
		}
	}
	return found
}

func checkImports(module string, f File, own *layer) []Finding {
	var found []Finding
	for _, imported := range f.Syntax.Imports {
		target := importPath(imported)
		if f.Dir() == "." && !allowedInDomain(module, target) {
			found = append(found, f.finding(imported.Pos(), "the domain package imports %s: it uses the standard library only (and its next JSON), and does no I/O", target))
			continue
		}
		if f.Dir() == signing && !allowedInSigning(module, target) {
			found = append(found, f.finding(imported.Pos(), "%s imports %s: it uses the standard library only, and does no I/O", signing, target))
			continue
		}
		dir, ok := folderOf(module, target)
		if ok && !own.reaches(dir) {
			found = append(found, f.finding(imported.Pos(), "%s may not import %s: arrows go down only (internal/lint/arrows.go)", f.Dir(), dir))
		}
	}
	return found
}

func allowedInDomain(module, target string) bool {
	if target == nextJSON || strings.HasPrefix(target, nextJSON+"/") || target == module+"/"+signing {
		return true
	}
	return allowedInSigning(module, target)
}

func allowedInSigning(module, target string) bool {
	_, ours := folderOf(module, target)
	first, _, _ := strings.Cut(target, "/")
	return !ours && !strings.Contains(first, ".") && !slices.Contains(performing, target)
}

func layerOf(dir string) *layer {
	for i, l := range layers {
		if dir == l.folder || l.deep && within(dir, l.folder) {
			return &layers[i]
		}
	}
	return nil
}

// folderOf answers where in this module an import path leads, and whether it does.
func folderOf(module, target string) (string, bool) {
	if target == module {
		return ".", true
	}
	return strings.CutPrefix(target, module+"/")
}

func (l *layer) reaches(dir string) bool {
	target := layerOf(dir)
	switch {
	case target == nil:
		return true // reported where that folder's own files are
	case target == l && l.deep:
		return true
	case target.support:
		return l.support
	case l.every:
		return true
	}
	return slices.ContainsFunc(l.may, func(allowed string) bool {
		folder, deep := strings.CutSuffix(allowed, "/...")
		return dir == folder || deep && within(dir, folder)
	})
}
