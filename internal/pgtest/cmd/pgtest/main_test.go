package main

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheExitCodeIsTheCommands(t *testing.T) {
	for script, want := range map[string]int{
		"exit 0": 0,
		"exit 7": 7,
		`case "$RDV_TEST_POSTGRES" in postgres://rdv:*@127.0.0.1:*/postgres?*) exit 3 ;; esac`: 3,
		"kill -KILL $$": 128 + 9,
	} {
		if got, err := run([]string{"sh", "-c", script}); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", script, got, err, want)
		}
	}
}

func TestSignalsArePassedOn(t *testing.T) {
	// The command signals its parent, which is this process, and ends only when the signal comes back.
	script := `trap "exit 9" TERM; kill -TERM $PPID; while :; do sleep 0.05; done`
	if got, err := run([]string{"sh", "-c", script}); err != nil || got != 9 {
		t.Errorf("run: %d, %v; want 9", got, err)
	}
}

func TestACommandThatIsMissingIsAnError(t *testing.T) {
	if got, err := run([]string{"no-such-command-anywhere"}); err == nil || got != 127 {
		t.Errorf("run: %d, %v", got, err)
	}
}
