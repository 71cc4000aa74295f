package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const here = "github.com/rendezvous-events/rendezvous/store"

// stream writes events as go test -json does.
func stream(t *testing.T, events ...event) string {
	t.Helper()
	var b strings.Builder
	for _, e := range events {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	return b.String()
}

func summarise(t *testing.T, allowed allowance, input string) (string, error) {
	t.Helper()
	var out strings.Builder
	s := newSummary(&out, allowed)
	if err := s.read(strings.NewReader(input)); err != nil {
		t.Fatal(err)
	}
	err := s.close()
	return out.String(), err
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v, want one about %q", err, part)
		}
	}
}

func TestAPackageThatPassesIsOneLine(t *testing.T) {
	out, err := summarise(t, nil, stream(t,
		event{Action: "start", Package: here},
		event{Action: "run", Package: here, Test: "TestA"},
		event{Action: "output", Package: here, Test: "TestA", Output: "noise\n"},
		event{Action: "pass", Package: here, Test: "TestA"},
		event{Action: "pass", Package: here, Test: "TestB"},
		event{Action: "output", Package: here, Output: "PASS\n"},
		event{Action: "pass", Package: here, Elapsed: 1.25},
		event{Action: "start", Package: "empty"},
		event{Action: "output", Package: "empty", Output: "?   \tempty\t[no test files]\n"},
		event{Action: "skip", Package: "empty"},
	))
	want := "ok   ./store                                          2 passed   0 failed   0 skipped      1.2s\n" +
		"2 passed, 0 failed, 0 skipped\n"
	if diff := cmp.Diff(want, out); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestAFailureShowsItsOutputAndNotThatOfOthers(t *testing.T) {
	out, err := summarise(t, nil, stream(t,
		event{Action: "output", Package: here, Test: "TestGood", Output: "noise\n"},
		event{Action: "pass", Package: here, Test: "TestGood"},
		event{Action: "output", Package: here, Test: "TestBad", Output: "expected more\n"},
		event{Action: "fail", Package: here, Test: "TestBad"},
		event{Action: "fail", Package: here},
	))
	wantError(t, err, "tests failed")
	if !strings.HasPrefix(out, "expected more\nFAIL ./store") || !strings.HasSuffix(out, "\n1 passed, 1 failed, 0 skipped\n") {
		t.Errorf("it shows\n%s", out)
	}
}

func TestAPackageThatFailsWithoutAFailedTestCountsAsOne(t *testing.T) {
	out, err := summarise(t, nil, stream(t,
		event{Action: "build-output", ImportPath: "x [x.test]", Output: "undefined: y\n"},
		event{Action: "build-fail", ImportPath: "x [x.test]"},
		event{Action: "output", Package: "x", Output: "FAIL\tx [build failed]\n"},
		event{Action: "fail", Package: "x"},
		event{Action: "output", Package: "z", Test: "TestHung", Output: "panic: test timed out\n"},
		event{Action: "fail", Package: "z"},
	))
	wantError(t, err, "tests failed")
	for _, part := range []string{"undefined: y\n", "panic: test timed out\n", "\n0 passed, 2 failed, 0 skipped\n"} {
		if !strings.Contains(out, part) {
			t.Errorf("no %q in\n%s", part, out)
		}
	}
}

func TestASkipIsShownAndFailsUnlessAllowed(t *testing.T) {
	input := stream(t,
		event{Action: "pass", Package: here, Test: "TestA"},
		event{Action: "output", Package: here, Test: "TestB", Output: "no database\n"},
		event{Action: "skip", Package: here, Test: "TestB"},
		event{Action: "pass", Package: here},
	)
	out, err := summarise(t, nil, input)
	wantError(t, err, "1 tests skipped")
	if !strings.HasPrefix(out, "SKIP ./store TestB: not on the list of allowed skips\nno database\n") {
		t.Errorf("it shows\n%s", out)
	}

	out, err = summarise(t, allowance{"./store TestB": "needs two machines"}, input)
	if err != nil {
		t.Error(err)
	}
	if !strings.HasPrefix(out, "skip ./store TestB: allowed: needs two machines\n") || !strings.HasSuffix(out, "\n1 passed, 0 failed, 1 skipped\n") {
		t.Errorf("it shows\n%s", out)
	}
}

func TestARunWithoutTestsFails(t *testing.T) {
	out, err := summarise(t, nil, "go: cannot find main module\n")
	wantError(t, err, "no test ran")
	if want := "go: cannot find main module\n0 passed, 0 failed, 0 skipped\n"; out != want {
		t.Errorf("it shows %q, want %q", out, want)
	}
}

func TestOutputThatIsCutFails(t *testing.T) {
	_, err := summarise(t, nil, stream(t,
		event{Action: "pass", Package: here, Test: "TestA"},
		event{Action: "run", Package: here, Test: "TestB"},
	))
	wantError(t, err, "before 1 packages do", "tests failed")
}

func TestSkipsNeedAReason(t *testing.T) {
	got, err := parseSkips("skips", "# comment\n\n./store TestB/x needs two machines # really\n")
	if want := (allowance{"./store TestB/x": "needs two machines"}); err != nil || !cmp.Equal(got, want) {
		t.Errorf("parseSkips: %v, %v; want %v", got, err, want)
	}
	_, err = parseSkips("skips", "./store TestA reason\n./store TestB # no reason\n")
	wantError(t, err, "skips:2")
}

func TestAMissingListOfSkipsIsAnError(t *testing.T) {
	if _, err := readSkips(t.TempDir() + "/none"); err == nil {
		t.Error("no error")
	}
}
