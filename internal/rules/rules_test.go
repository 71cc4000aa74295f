package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tree writes files into a folder of their own.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const contract = `# Events
Text that mentions EV-9 is no rule.

## Testable behaviours
- EV-2 Second.
- EV-1 First, ` + "`so`" + `.
- PU-3 [S2] Later.
- XX-1 Not a kind.
`

func TestRulesAreReadInOrderWithTheirMarks(t *testing.T) {
	got, err := readRules(tree(t, map[string]string{"docs/spec/events.md": contract, "docs/spec/runs.md": "- RN-10 Ten.\n- RN-9 Nine.\n"}))
	if err != nil {
		t.Fatal(err)
	}
	want := []rule{
		{number{"EV", 1}, "First, `so`.", false},
		{number{"EV", 2}, "Second.", false},
		{number{"RN", 9}, "Nine.", false},
		{number{"RN", 10}, "Ten.", false},
		{number{"PU", 3}, "Later.", true},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(rule{}, number{})); diff != "" {
		t.Error(diff)
	}
}

func TestANumberGivenTwiceIsAnError(t *testing.T) {
	_, err := readRules(tree(t, map[string]string{"docs/spec/a.md": "- EV-1 One.\n", "docs/spec/b.md": "- EV-1 Other.\n"}))
	if err == nil || !strings.Contains(err.Error(), "EV-1 stands in both") {
		t.Errorf("readRules: %v", err)
	}
}

func TestNoRulesIsAnError(t *testing.T) {
	if _, err := readRules(t.TempDir()); err == nil {
		t.Error("no error")
	}
}

func TestEveryFormOfCitationIsFound(t *testing.T) {
	cited := citations{}
	err := cited.add("store/x_test.go", []byte(`package store

// RN-1 stands outside.

// TestOne proves EV-1.
func TestOne(t *testing.T) {}

func TestEV2EndsWell(t *testing.T) {
	// EV-3, EV-4 and EV_5
	t.Run("EV-6: twice EV-6", nil)
}

// SW-1..SW-3, HI-4..5 and TM-6–TM-7.
func (s *suite) ranges() {}

// Not a citation: CPU-1, HIGH-2, EV, EV-x, SHA-256.
func none() {}

var cases = []string{"SH-8"}
`))
	if err != nil {
		t.Fatal(err)
	}
	one := func(place string) []string { return []string{place} }
	want := citations{
		{"RN", 1}: one("store/x_test.go:3"),
		{"EV", 1}: one("store.TestOne"),
		{"EV", 2}: one("store.TestEV2EndsWell"),
		{"EV", 3}: one("store.TestEV2EndsWell"),
		{"EV", 4}: one("store.TestEV2EndsWell"),
		{"EV", 5}: one("store.TestEV2EndsWell"),
		{"EV", 6}: one("store.TestEV2EndsWell"),
		{"SW", 1}: one("store.ranges"),
		{"SW", 2}: one("store.ranges"),
		{"SW", 3}: one("store.ranges"),
		{"HI", 4}: one("store.ranges"),
		{"HI", 5}: one("store.ranges"),
		{"TM", 6}: one("store.ranges"),
		{"TM", 7}: one("store.ranges"),
		{"SH", 8}: one("store/x_test.go:19"),
	}
	if diff := cmp.Diff(want, cited, cmp.AllowUnexported(number{})); diff != "" {
		t.Error(diff)
	}
}

func TestARangeThatIsNoneIsAnError(t *testing.T) {
	for _, text := range []string{"EV-3..EV-1", "EV-1..RN-2", "EV-1..EV-2000"} {
		if err := (citations{}).add("x_test.go", []byte("package x\n\n// "+text+"\n")); err == nil || !strings.Contains(err.Error(), "x_test.go:3") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestOnlyTestsAndTheBatteryCite(t *testing.T) {
	source := func(n string) string { return "package p\n\n// EV-" + n + "\nfunc F() {}\n" }
	got, err := readCitations(tree(t, map[string]string{
		"store/x.go":                 source("1"),
		"store/x_test.go":            source("2"),
		"store/storetest/cases.go":   source("3"),
		"store/storetest/in/case.go": source("4"),
		"internal/rules/x_test.go":   source("5"),
		".git/x_test.go":             source("6"),
		"docs/x_test.md":             "EV-7",
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := citations{
		{"EV", 2}: {"store.F"},
		{"EV", 3}: {"store/storetest.F"},
		{"EV", 4}: {"store/storetest/in.F"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(number{})); diff != "" {
		t.Error(diff)
	}
}

func TestTheReportShowsTheTableTheGapsAndTheTotals(t *testing.T) {
	r := report{
		rules: []rule{
			{number{"EV", 1}, "First.", false},
			{number{"EV", 2}, strings.Repeat("é", 200), false},
			{number{"PU", 3}, "Later.", true},
		},
		cited: citations{{"EV", 1}: {"a.TestX", "b.TestY"}},
	}
	var out strings.Builder
	r.table(&out)
	r.without(&out)
	r.totals(&out)
	want := `EV-1    a.TestX
        b.TestY

Without a test:
EV-2    ` + strings.Repeat("é", 119) + `…
PU-3    [S2] Later.

         rules   cited   without    [S2] cited
EV           2       1         1        0 of 0
RN           0       0         0        0 of 0
HI           0       0         0        0 of 0
TM           0       0         0        0 of 0
SW           0       0         0        0 of 0
SH           0       0         0        0 of 0
PU           0       0         0        0 of 1
all          2       1         1        0 of 1
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestACitationOfNoRuleIsAnError(t *testing.T) {
	r := report{rules: []rule{{number{"EV", 1}, "First.", false}}, cited: citations{{"EV", 1}: {"a.T"}, {"EV", 99}: {"b.T"}}}
	if err := r.unknown(); err == nil || !strings.Contains(err.Error(), "EV-99 (b.T)") || strings.Contains(err.Error(), "EV-1 ") {
		t.Errorf("unknown: %v", err)
	}
	delete(r.cited, number{"EV", 99})
	if err := r.unknown(); err != nil {
		t.Errorf("unknown: %v", err)
	}
}

// The contracts themselves: a list that lost its form would silently lose its rules.
func TestTheContractsOfThisRepositoryAreRead(t *testing.T) {
	rules, err := readRules("../..")
	if err != nil {
		t.Fatal(err)
	}
	last := map[string]int{}
	for _, r := range rules {
		last[r.prefix]++
		if r.n != last[r.prefix] {
			t.Errorf("after %s-%d comes %s", r.prefix, last[r.prefix]-1, r.number)
			last[r.prefix] = r.n
		}
	}
	for _, prefix := range prefixes {
		if last[prefix] < 30 {
			t.Errorf("%d rules %s", last[prefix], prefix)
		}
	}
}
