package nodetest

import (
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
)

// asProgram in the environment makes the program of a test be the program it tests.
const asProgram = "RENDEZVOUS_TEST_AS_PROGRAM"

// atExit keeps a program under the race detector from waiting a second for reports when it exits, which would be most of the time of a short command.
const atExit = "GORACE=atexit_sleep_ms=20"

// Main runs main where [Command] started the program, and the tests otherwise: a TestMain for programs, so that tests see their output and exit codes. m is
// the *testing.M, or what pgtest makes of it.
func Main(m pgtest.Runner, main func()) {
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	main()
}

// Command is a call of the program under test with nothing but env in its environment, in a folder of its own.
func Command(t testing.TB, env []string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := clock.WithTimeout(t.Context(), clock.System, Patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env, cmd.Dir = append([]string{asProgram + "=1", atExit, "PATH=" + os.Getenv("PATH")}, env...), t.TempDir()
	return cmd
}

// Refuses checks that a worker exits with code 2 for each environment and names the setting.
func Refuses(t *testing.T, environments map[string]string) {
	t.Helper()
	for name, env := range environments {
		cmd := Command(t, strings.Fields(env))
		out, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), name) {
			t.Errorf("%s: %v, exit code %d, %s", name, err, cmd.ProcessState.ExitCode(), out)
		}
	}
}

// Serves checks that a worker of that name becomes ready beside a NATS server, and goes down in order with exit code 0 on SIGTERM.
func Serves(t *testing.T, name string, env ...string) {
	t.Helper()
	Serving(t, name, func(string) {}, env...)
}

// Serving is [Serves] with a look at the worker's admin address while it serves.
func Serving(t *testing.T, name string, look func(admin string), env ...string) {
	t.Helper()
	url, _ := Broker(t)
	pod := Spawn(t, name, append([]string{"RENDEZVOUS_STORE=memory:", "RENDEZVOUS_NATS=" + url}, env...)...)
	if status, body := Page(t, pod.Admin, "/readyz"); status != http.StatusOK {
		t.Errorf("readyz: %d %s", status, body)
	}
	look(pod.Admin)
	pod.Stop()
}

// Pod is a worker that runs as a process of its own.
type Pod struct {
	Admin string // its admin address

	t   testing.TB
	cmd *exec.Cmd
}

// Spawn starts the program under test as a worker of that name, beside a NATS server of one replica, and returns when it is ready. When the test ends it is
// killed, if it still runs.
func Spawn(t testing.TB, name string, env ...string) *Pod {
	t.Helper()
	p := &Pod{t: t, cmd: Command(t, append([]string{"RENDEZVOUS_NATS_REPLICAS=1", "RENDEZVOUS_ADMIN=127.0.0.1:0"}, env...))}
	logged := newLog(t)
	p.cmd.Stderr = logged
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.end)
	line := regexp.MustCompile(`msg=ready process=` + name + ` .*admin=(\S+)`)
	ready := line.FindStringSubmatch(logged.String())
	for end := clock.System.Now().Add(Patience); ready == nil; ready = line.FindStringSubmatch(logged.String()) {
		if clock.System.Now().After(end) {
			t.Fatal("it does not become ready")
		}
		_ = clock.Sleep(t.Context(), clock.System, Look) // the context ends with the test
	}
	p.Admin = ready[1]
	return p
}

// Signal sends the process a signal.
func (p *Pod) Signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatalf("send %s: %v", sig, err)
	}
}

// Stop asks it to go down, which it does in order, with exit code 0.
func (p *Pod) Stop() {
	p.t.Helper()
	p.Signal(syscall.SIGTERM)
	if err := p.Wait(); err != nil {
		p.t.Errorf("after SIGTERM: %v", err)
	}
}

// Kill ends it without a word.
func (p *Pod) Kill() {
	p.t.Helper()
	p.Signal(syscall.SIGKILL)
	_ = p.Wait() // it was killed, which is what it says
}

// Wait waits for the end of the process and answers how it ended.
func (p *Pod) Wait() error { return p.cmd.Wait() }

func (p *Pod) end() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill() // it may have ended
		_ = p.cmd.Wait()
	}
}
