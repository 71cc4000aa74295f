package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

var listens = regexp.MustCompile(`API (http://\S+) +health and metrics (http://\S+) +NATS (\S+) +store (\S+)`)

// `up` serves every role, says where, keeps its streams in its folder, and drains on SIGTERM with exit code 0.
func TestUpServesUntilItIsTold(t *testing.T) {
	dir := t.TempDir()
	cmd := nodetest.Command(t, []string{"RENDEZVOUS_LOG_JSON=true"},
		"up", "--data", filepath.Join(dir, "data"), "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	must(t, err)
	var logged strings.Builder
	cmd.Stderr = &logged
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	var at []string
	for at == nil && lines.Scan() {
		at = listens.FindStringSubmatch(lines.Text())
	}
	if at == nil {
		t.Fatalf("does not say where it listens: %s", logged.String())
	}
	if at[4] != "sqlite" || !strings.HasPrefix(at[3], "nats://") {
		t.Errorf("says %v", at)
	}
	var rest strings.Builder
	reading := make(chan struct{})
	go func() { defer close(reading); _, _ = io.Copy(&rest, out) }()
	resp, err := http.Get(at[2] + "/readyz")
	must(t, err)
	must(t, resp.Body.Close())
	if resp.StatusCode != http.StatusOK {
		t.Errorf("not ready: %d", resp.StatusCode)
	}
	u := &tool{t: t, env: []string{"RENDEZVOUS_SERVER=" + at[1]}}
	u.ok(`^ok`, "system", "check")
	u.ok(`(?s)API +ok.*NATS +ok`, "doctor", "--nats", at[3])
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	<-reading
	if err := cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, logged.String())
	}
	if !strings.Contains(logged.String(), `"msg":"stopping"`) {
		t.Errorf("logged %s", logged.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "data", "nats")); err != nil {
		t.Error(err)
	}
}

// The demonstration ends by itself, and well.
func TestTheDemoEndsWell(t *testing.T) {
	u := &tool{t: t, dir: t.TempDir(), env: []string{"RENDEZVOUS_STORE=postgres://nobody@127.0.0.1:1/production"}}
	u.ok(`(?s)Events first.*order-1008  wait.timed_out, \S+ after.*order-1008  timer.fired, \S+ after.*order-1009  run.timed_out.*A dead letter.*requeued urn:demo:bank.*shop +rendezvous.run.completed +attempt 1, signature verified: 200.*parked: accounting, exhausted after 2 attempts, at record 1.*accounting rendezvous.run.completed +attempt 1, signature verified: 200.*All met`, "demo")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
