package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rendezvous-events/rendezvous/internal/pgtest"
)

// figures are what the push scenarios print of each goal of push.md section 16.
var figures = map[string][]string{
	"throughput": {`accepted POSTs, \d+ registrations, receivers: 64 +\d+ in +[\d.]+s +[1-9]\d*/s`},
	"isolation":  {`beside a receiver that hangs and one that answers 500 \(\d+ registrations\): p99 \S+s, ratio [\d.]+`, `beside a dead host \(\d+ registrations\): p99 \S+s, ratio [\d.]+`},
	"latency":    {`start of the request at \d+/s, by notices: p50 \S+s  p99 \S+s`, `start of the request at \d+/s, by the poll alone.*: p50 \S+s  p99 \S+s`},
	"repeats":    {`transactions per POST [\d.]+; repeats 0\n`, `drained in the middle of \d+ messages: repeats 0\n`},
	"memory":     {`resident memory of a push-worker, \d+ slow receivers, [1-9]\d* in flight: at most [1-9]\d* MiB`, `attempts in \S+: goroutines [1-9]\d*, descriptors [1-9]\d*`},
	"store":      {`statements per POST \d`, `claim where nothing is due: p50 \S+s p99 \S+s, beside them p50 \S+s`},
}

// PU-103: each figure of push.md section 16 has a scenario that prints it. What needs a worker killed, and its leases to run out, is for a whole run.
func TestEachGoalOfPushIsPrinted(t *testing.T) {
	spec, err := os.ReadFile("../docs/spec/push.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(spec), "## 16.")
	section, _, _ = strings.Cut(section, "\n## ")
	goals := regexp.MustCompile(`(?m)^\| (\w+) \|`).FindAllStringSubmatch(section, -1)[1:] // below the heading
	if len(goals) != len(figures) {
		t.Errorf("section 16 has %d goals, figures are known of %d", len(goals), len(figures))
	}
	printed := printedBy(t, func() { pushAll(t) })
	for _, goal := range goals {
		if figures[goal[1]] == nil {
			t.Errorf("nothing prints a figure of %q", goal[1])
		}
		for _, figure := range figures[goal[1]] {
			if !regexp.MustCompile(figure).MatchString(printed) {
				t.Errorf("%s: nothing like %s was printed", goal[1], figure)
			}
		}
	}
	if t.Failed() {
		t.Log(printed)
	}
}

// pushAll runs the scenarios of push, as small as they get.
func pushAll(t *testing.T) {
	o := options{
		dir: t.TempDir(), hooks: 10, pushed: 200, seconds: 1, idle: 1000, short: true,
		database: func(context.Context, string) (string, error) { return pgtest.Database(t), nil },
	}
	o.store = pgtest.Database(t)
	b, err := start(t.Context(), o, filepath.Join(o.dir, "nats"))
	if err != nil {
		t.Error(err)
		return
	}
	defer b.stop()
	for _, s := range scenarios {
		if !strings.HasPrefix(s.name, "push") || !s.fits(o) {
			continue
		}
		if err := s.run(t.Context(), b); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// printedBy is what fn writes to the standard output.
func printedBy(t *testing.T, fn func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = w
	all := make(chan string)
	go func() {
		text, _ := io.ReadAll(r)
		all <- string(text)
	}()
	fn()
	os.Stdout = stdout
	_ = w.Close()
	defer r.Close()
	return <-all
}
