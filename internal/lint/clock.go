package lint

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
)

// wallClock is what reads or waits for the machine's clock, by import path. Package clock offers each of them on an injected clock (invariant I16).
var wallClock = map[string][]string{
	"time":    {"Now", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Since", "Until"},
	"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},
}

// ownTime are the folders that may: the clock itself, programs, which live in real time, and what only tests and builds run.
var ownTime = append([]string{"clock", "cmd", "bench", "examples"}, testSupport...)

// testSupport are the packages under internal/ that no program of the product contains.
var testSupport = []string{"internal/lint", "internal/pgtest", "internal/rules", "internal/soak", "internal/testsum"}

// sleepers are the tests that may sleep, each with the reason. A test that sleeps is slow on a fast machine and fails on a slow one; it wants a signal from the
// code under test. The list is meant to stay short.
var sleepers = map[string]string{
	"messaging/harness_test.go": "asks a real broker again and again for what it gives no signal of",
}

func checkClock(f File) []Finding {
	if f.Test() {
		if _, ok := sleepers[f.Name]; ok {
			return nil
		}
		return findUses(f, map[string][]string{"time": {"Sleep"}}, "a test waits for a signal, or moves a clock.Manual")
	}
	if within(f.Dir(), ownTime...) {
		return nil
	}
	return findUses(f, wallClock, "take a clock.Clock")
}

// findUses finds mentions of forbidden names, called or not, under whatever name the file imports their package.
func findUses(f File, forbidden map[string][]string, advice string) []Finding {
	var found []Finding
	names := map[string]string{} // what the file calls the package, to its import path
	for _, imported := range f.Syntax.Imports {
		target := importPath(imported)
		if forbidden[target] == nil {
			continue
		}
		name := path.Base(target)
		if imported.Name != nil {
			name = imported.Name.Name
		}
		if name == "." {
			found = append(found, f.finding(imported.Pos(), "import of %s by a dot hides what it uses", target))
		}
		names[name] = target
	}
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		// A name that the file declares itself is not the package.
		of, ok := selector.X.(*ast.Ident)
		if !ok || of.Obj != nil {
			return true
		}
		if target := names[of.Name]; slices.Contains(forbidden[target], selector.Sel.Name) {
			found = append(found, f.finding(selector.Pos(), "%s.%s: %s", target, selector.Sel.Name, advice))
		}
		return true
	})
	return found
}

func importPath(imported *ast.ImportSpec) string {
	target, err := strconv.Unquote(imported.Path.Value)
	if err != nil {
		return imported.Path.Value // the parser takes no such thing
	}
	return target
}
