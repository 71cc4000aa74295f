package worker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/internal/worker"
)

// settings stand for a worker's.
type settings struct {
	Store   string `help:"Where." default:"memory:"`
	Replica int    `name:"nats-replicas" help:"How many." default:"3"`
	Mode    string `help:"How." enum:"fast,slow" default:"fast"`
}

// TestMain runs the program of this test where it is told to: a worker that prints its settings, or fails as RUN_FAILS says.
func TestMain(m *testing.M) {
	if os.Getenv("RUN_AS_WORKER") == "" {
		os.Exit(m.Run())
	}
	var s settings
	worker.Main(&s, "tester", "Test.", func(_ context.Context, version string) error {
		if code := os.Getenv("RUN_FAILS"); code != "" {
			return rendezvous.Errorf(rendezvous.Code(code), "as told")
		}
		fmt.Println(s.Store, s.Replica, s.Mode, version)
		return nil
	})
}

// run answers what the program prints and its exit code.
func run(t *testing.T, env []string, args ...string) (out string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append([]string{"RUN_AS_WORKER=1"}, env...)
	raw, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(raw), cmd.ProcessState.ExitCode()
}

func TestFlagsWinOverTheEnvironmentAndThatOverDefaults(t *testing.T) {
	for _, c := range []struct {
		env, args []string
		want      string
	}{
		{nil, nil, "memory: 3 fast "},
		{[]string{"RENDEZVOUS_STORE=postgres://a", "RENDEZVOUS_NATS_REPLICAS=1"}, nil, "postgres://a 1 fast "},
		{[]string{"RENDEZVOUS_STORE=postgres://a"}, []string{"--store", "postgres://b", "--mode=slow"}, "postgres://b 3 slow "},
	} {
		if out, code := run(t, c.env, c.args...); !strings.HasPrefix(out, c.want) || code != worker.ExitDone {
			t.Errorf("%v %v: exit code %d, %q, want %q", c.env, c.args, code, out, c.want)
		}
	}
}

func TestWrongUsageNamesTheSettingAndIsExitCode2(t *testing.T) {
	for _, c := range []struct {
		env, args []string
		want      string
	}{
		{nil, []string{"--colour", "red"}, "--colour"},
		{nil, []string{"stray"}, "stray"},
		{nil, []string{"--nats-replicas", "many"}, "--nats-replicas"},
		{nil, []string{"--mode", "odd"}, "--mode"},
		{[]string{"RENDEZVOUS_NATS_REPLICAS=many"}, nil, "--nats-replicas"},
	} {
		if out, code := run(t, c.env, c.args...); !strings.Contains(out, c.want) || code != worker.ExitUsage {
			t.Errorf("%v %v: exit code %d, %q does not name %s", c.env, c.args, code, out, c.want)
		}
	}
	if out, code := run(t, nil, "--help"); code != worker.ExitDone || !strings.Contains(out, "RENDEZVOUS_STORE") {
		t.Errorf("help: exit code %d, %q", code, out)
	}
}

func TestExitCodesTellWhatAnErrorWas(t *testing.T) {
	codes := map[rendezvous.Code]int{
		rendezvous.CodeInvalid: 2, rendezvous.CodeTooLarge: 2, rendezvous.CodeNotFound: 3, rendezvous.CodeConflict: 4, rendezvous.CodeDuplicate: 4,
		rendezvous.CodeSealed: 4, rendezvous.CodeLeaseHeld: 4, rendezvous.CodeFenced: 4, rendezvous.CodeUnavailable: 5, rendezvous.CodeCommitUnknown: 5,
		rendezvous.CodeCorrupt: 1, rendezvous.CodeUnauthorized: 1, rendezvous.CodeRateLimited: 1,
	}
	for code, want := range codes {
		if got := worker.ExitCode(fmt.Errorf("wrapped: %w", rendezvous.Errorf(code, "x"))); got != want {
			t.Errorf("%s: %d, want %d", code, got, want)
		}
	}
	if worker.ExitCode(nil) != 0 || worker.ExitCode(errors.New("foreign")) != 1 {
		t.Error("nil or a foreign error")
	}
	if out, code := run(t, []string{"RUN_FAILS=unavailable"}); code != 5 || !strings.Contains(out, "tester: unavailable: as told") {
		t.Errorf("exit code %d, %q", code, out)
	}
}
