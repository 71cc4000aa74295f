package lint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// findings writes a module of the given files and answers what the checker finds in it, as "file:line" and the text.
func findings(t *testing.T, files map[string]string) []string {
	t.Helper()
	root := t.TempDir()
	write(t, root, "go.mod", "module example.org/m\n\ngo 1.26\n")
	for name, text := range files {
		write(t, root, name, text)
	}
	tree, err := Load(root)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, f := range Check(tree) {
		found = append(found, f.String())
	}
	return found
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	file := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// importing is a file that imports the given folders of the module, or other packages.
func importing(targets ...string) string {
	var b strings.Builder
	b.WriteString("package p\n")
	for _, target := range targets {
		switch {
		case target == ".":
			target = "example.org/m"
		case strings.HasPrefix(target, "./"):
			target = "example.org/m" + target[1:]
		}
		b.WriteString("import _ \"" + target + "\"\n")
	}
	return b.String()
}

func TestEveryWayToTheWallClockIsFound(t *testing.T) {
	for _, use := range []string{
		"time.Now()", "time.Since(t)", "time.Until(t)", "time.Tick(1)", "time.After(1)", "time.NewTimer(1)", "time.NewTicker(1)",
		"time.AfterFunc(1, nil)", "time.Sleep", // a mention without a call as well
		"context.WithTimeout(nil, 1)", "context.WithTimeoutCause(nil, 1, nil)",
		"context.WithDeadline(nil, t)", "context.WithDeadlineCause(nil, t, nil)",
	} {
		got := findings(t, map[string]string{"store/x.go": "package store\n\nimport (\"context\"; \"time\")\n\nvar _, t = " + use + ", time.Time{}\nvar _ context.Context\n"})
		name, _, _ := strings.Cut(use, "(")
		if want := "store/x.go:5: " + name + ": take a clock.Clock"; !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %v, want %s", use, got, want)
		}
	}
}

func TestTheWallClockIsFoundUnderAnotherName(t *testing.T) {
	got := findings(t, map[string]string{"push/x.go": "package push\n\nimport wall \"time\"\n\nvar _ = wall.Now()\n"})
	if want := []string{"push/x.go:5: time.Now: take a clock.Clock"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	got = findings(t, map[string]string{"push/x.go": "package push\n\nimport . \"time\"\n\nvar _ = Now()\n"})
	if want := []string{"push/x.go:3: import of time by a dot hides what it uses"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestWhatOnlyLooksLikeTheWallClockIsLeftAlone(t *testing.T) {
	if got := findings(t, map[string]string{
		"store/a.go":              "package store\n\nimport \"time\"\n\ntype c struct{}\n\nfunc (c) Now() time.Time { return time.Unix(0, 0) }\n\nfunc f(time c) { time.Now() }\n",
		"clock/clock.go":          "package clock\n\nimport \"time\"\n\nvar _ = time.Now()\n",
		"cmd/x/main.go":           "package main\n\nimport \"time\"\n\nvar _ = time.Now()\n",
		"bench/main.go":           "package main\n\nimport \"time\"\n\nvar _ = time.Now()\n",
		"examples/a/main.go":      "package main\n\nimport \"time\"\n\nvar _ = time.Now()\n",
		"internal/soak/main.go":   "package main\n\nimport \"time\"\n\nvar _ = time.Now()\n",
		"store/a_test.go":         "package store\n\nimport \"time\"\n\nvar _ = time.Now()\n",
		"store/testdata/b.go":     "package nothing\n\nimport \"time\"\n\nvar _ = time.Now()\n",
		"store/.hidden/c.go":      "not even Go",
		"other/go.mod":            "module example.org/other\n",
		"other/main.go":           "package main\n\nimport \"time\"\n\nvar _ = time.Now()\n",
		"delivery/clockless/d.go": "package clockless\n\nimport \"time\"\n\nconst D = time.Second\n",
	}); len(got) > 0 {
		t.Errorf("found %v", got)
	}
}

func TestOtherFoldersOfInternalAreNotExempt(t *testing.T) {
	got := findings(t, map[string]string{"internal/serve/x.go": "package serve\n\nimport \"time\"\n\nvar _ = time.Now()\n"})
	if len(got) != 1 {
		t.Errorf("found %v", got)
	}
}

func TestASleepInATestIsFound(t *testing.T) {
	got := findings(t, map[string]string{"cmd/x/x_test.go": "package main\n\nimport \"time\"\n\nfunc f() { time.Sleep(1) }\n"})
	if want := []string{"cmd/x/x_test.go:5: time.Sleep: a test waits for a signal, or moves a clock.Manual"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestArrowsThatGoUpOrAcrossAreFound(t *testing.T) {
	workers := []string{"ingest", "delivery", "push", "timer", "sweep"}
	concrete := []string{"store/memory", "store/postgres", "store/sqlite"}
	forbidden := map[string][]string{
		"clock":           {".", "./store"},
		"cloudevents":     {"./messaging", "./store"},
		"group":           {"./store", "./notify"},
		"wire":            {"./store", "./messaging"},
		"notify":          {"./api", "./ingest", "./store/memory"},
		"store":           {"./messaging", "./store/memory", "./api"},
		"store/postgres":  {"./messaging", "./store/memory", "./ingest", "./api", "./store/storetest"},
		"store/engine":    {"./store/memory"},
		"store/storetest": {"./store/memory"},
		"messaging":       {"./store", "./store/memory", "./delivery", "./api", "./client"},
		"api":             {"./store/postgres", "./store/open", "./ingest", "./client", "./push", "./push/transport"},
		"push/target":     {"./store", "./push", "./push/transport"},
		"client":          {"./store", "./store/open", "./api", "./delivery"},
		"telemetry":       {"./messaging", "./store"},
		"cmd/ingest":      {"./internal/pgtest", "./store/storetest", "./bench"},
		"internal/serve":  {"./store/memory", "./ingest"},
	}
	for _, w := range workers {
		if w != "push" {
			forbidden[w] = append(forbidden[w], "./push/target")
		}
		forbidden[w] = append(forbidden[w], "./api", "./cmd/ingest", "./store/open", "./store/engine", "./internal/pgtest")
		for _, other := range slices.Concat(workers, concrete) {
			if other != w {
				forbidden[w] = append(forbidden[w], "./"+other)
			}
		}
	}
	for dir, targets := range forbidden {
		for _, target := range targets {
			got := findings(t, map[string]string{dir + "/x.go": importing(target)})
			if len(got) != 1 || !strings.Contains(got[0], dir+" may not import "+strings.TrimPrefix(target, "./")) {
				t.Errorf("%s imports %s: found %v", dir, target, got)
			}
		}
	}
}

func TestArrowsThatGoDownAreLeftAlone(t *testing.T) {
	if got := findings(t, map[string]string{
		"x.go":                    importing("context", "encoding/json", "net/url"),
		"store/x.go":              importing(".", "./clock"),
		"store/engine/x.go":       importing(".", "./clock", "./store", "./store/backend"),
		"store/memory/x.go":       importing(".", "./clock", "./store", "./store/engine", "./store/memory/inner"),
		"store/open/x.go":         importing(".", "./store", "./store/memory", "./store/postgres", "./store/sqlite"),
		"store/storetest/x.go":    importing(".", "./store", "./clock"),
		"messaging/x.go":          importing(".", "./clock", "./cloudevents"),
		"ingest/x.go":             importing(".", "./store", "./messaging", "./telemetry", "./ingest/inner", "./internal/serve"),
		"api/x.go":                importing(".", "./store", "./messaging", "./push/target"),
		"push/x.go":               importing(".", "./store", "./push/target", "./push/transport"),
		"client/x.go":             importing(".", "./messaging"),
		"cmd/rendezvous/x.go":     importing("./api", "./ingest", "./delivery", "./store/open", "./store/memory", "./cmd/inner"),
		"bench/x.go":              importing("./store/postgres", "./internal/pgtest"),
		"examples/a/x.go":         importing("./client"),
		"internal/soak/x.go":      importing("./internal/pgtest", "./client", "./store/postgres"),
		"ingest/x_test.go":        importing("./store/memory", "./delivery", "./internal/pgtest"),
		"store/memory/x_test.go":  importing("./store/storetest"),
		"internal/serve/x.go":     importing("./store", "./messaging"),
		"store/memory/inner/x.go": importing("."),
	}); len(got) > 0 {
		t.Errorf("found %v", got)
	}
}

func TestTheDomainUsesOnlyTheStandardLibraryAndDoesNoIO(t *testing.T) {
	for _, target := range []string{"./clock", "./store", "github.com/google/uuid", "github.com/go-json-experiment/jsonx", "os", "net/http", "database/sql"} {
		got := findings(t, map[string]string{"x.go": importing(target)})
		if len(got) != 1 || !strings.Contains(got[0], "the domain package imports") {
			t.Errorf("%s: found %v", target, got)
		}
	}
}

func TestTheDomainMayJudgeKeysWithWhatKeepsToItsOwnRules(t *testing.T) {
	if got := findings(t, map[string]string{"x.go": importing("./standardwebhooks"), "standardwebhooks/x.go": importing("crypto/hmac")}); len(got) > 0 {
		t.Errorf("found %v", got)
	}
	for _, target := range []string{".", "./clock", "github.com/google/uuid", "github.com/go-json-experiment/json", "net/http"} {
		got := findings(t, map[string]string{"standardwebhooks/x.go": importing(target)})
		if len(got) != 1 || !strings.Contains(got[0], "standardwebhooks imports") {
			t.Errorf("%s: found %v", target, got)
		}
	}
}

func TestAFolderOutsideTheLayersIsFound(t *testing.T) {
	got := findings(t, map[string]string{"scratch/x.go": importing(), "scratch/y.go": importing()})
	if len(got) != 1 || !strings.Contains(got[0], "scratch has no place among the layers") {
		t.Errorf("found %v", got)
	}
}

func TestALongFileIsFound(t *testing.T) {
	lines := func(n int) string { return "package store\n" + strings.Repeat("\n", n-1) }
	got := findings(t, map[string]string{
		"store/at.go":        lines(600),
		"store/over.go":      lines(601),
		"store/long_test.go": lines(2000),
		"store/made.go":      "// Code generated by a tool. DO NOT EDIT.\n\n" + lines(2000),
	})
	if want := []string{"store/over.go:1: 601 lines, more than 600: make it two files"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestEmptyNamesAreFound(t *testing.T) {
	for _, name := range []string{"util", "common", "helper", "manager", "impl", "pushutil", "helpers_test"} {
		got := findings(t, map[string]string{"store/x_test.go": "package " + name + "\n"})
		if len(got) != 1 || !strings.Contains(got[0], "name it after what it does") {
			t.Errorf("package %s: found %v", name, got)
		}
	}
	if got := findings(t, map[string]string{"store/x.go": "package implicit\n"}); len(got) > 0 {
		t.Errorf("found %v", got)
	}
}

func TestAFileThatDoesNotParseIsAnError(t *testing.T) {
	root := t.TempDir()
	write(t, root, "go.mod", "module example.org/m\n")
	write(t, root, "x.go", "package\n")
	if _, err := Load(root); err == nil || !strings.Contains(err.Error(), "x.go") {
		t.Errorf("Load: %v", err)
	}
}
