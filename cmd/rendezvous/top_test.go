package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/rendezvous-events/rendezvous/internal/attention"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/wire"
)

// looks starts a top that ends with the test, and answers its next look.
func (u *tool) looks(args ...string) (next func() topLook) {
	u.t.Helper()
	cmd := nodetest.Command(u.t, u.env, append([]string{"top", "-o", "jsonl", "--interval", "100ms"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		u.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	u.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := json.NewDecoder(out)
	return func() (l topLook) {
		u.t.Helper()
		if err := lines.Decode(&l); err != nil {
			u.t.Fatalf("no look any more: %v", err)
		}
		return l
	}
}

func TestTopSaysWhatIsThereAndWhatToDo(t *testing.T) {
	u := buried(t, "p-1", "p-2")
	out := u.ok("", "top", "-o", "json", "--count", "1")
	var l topLook
	if err := json.Unmarshal([]byte(out), &l); err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	if l.Verdict != wire.CheckDegraded || l.Depths == nil || l.Depths.DeadLetters != 2 || l.Counts["accepted"] != 2 || len(l.Passes) == 0 || l.Rates != nil {
		t.Errorf("%s", out)
	}
	if len(l.Reasons) != 1 || l.Reasons[0] != attention.DeadLetters.String() {
		t.Errorf("reasons %q", l.Reasons)
	}
	for _, hidden := range []string{"urn:bank", "order", `"n"`} {
		if strings.Contains(out, hidden) {
			t.Errorf("it shows %s: %s", hidden, out)
		}
	}
	u.ok(`^\S+ \S+  degraded  live_events=0 .*dead_letters=2.*  \| there are dead letters.*\n\S+ \S+  degraded.*accepted/s=0.0.*\n$`, "top", "--count", "2", "--interval", "100ms")
	u.fails(2, `interval`, "top", "--interval", "1ms")
	u.fails(2, `metrics`, "top", "--metrics", "ftp://x")
	u.fails(5, `unavailable`, "top", "--count", "1", "--server", "http://127.0.0.1:1")
	u.ok(`"unread":\["127.0.0.1:1: `, "top", "--count", "1", "-o", "jsonl", "--metrics", "127.0.0.1:1")
}

// A rate is the difference of two looks; an answer counts however it came, here at the registration of its wait and by the delivery-worker.
func TestTopSaysHowFast(t *testing.T) {
	u := newTool(t)
	next := u.looks()
	if first := next(); first.Rates != nil || first.Counts["accepted"] != 0 || first.Counts["answered"] != 0 {
		t.Fatalf("the first look has rates, or counts of nothing: %+v", first)
	}
	u.ok("", "run", "start", "order", "--workflow-id", "w", "--run-id", "r")
	u.ok("accepted", "event", "put", "--type", "t", "--key", "order=1")
	u.ok("answered", "wait", "register", "r", "first", "--type", "t", "--key", "order=1")
	u.ok("waiting", "wait", "register", "r", "second", "--type", "t", "--key", "order=2")
	u.ok("accepted", "event", "put", "--type", "t", "--key", "order=2")
	fast := map[string]bool{}
	for l := next(); ; l = next() {
		for name, rate := range l.Rates {
			fast[name] = fast[name] || rate > 0
		}
		if l.Counts["answered"] == 2 && fast["answered"] {
			if l.Counts["accepted"] != 2 || l.Counts["registered"] != 2 || !fast["accepted"] || !fast["registered"] || fast["resumed"] {
				t.Errorf("%+v, above 0 were %v", l, fast)
			}
			return
		}
	}
}

// A plane that went away is said to be away, without old numbers, and is found again when it is back.
func TestTopGoesOnWhenThePlaneIsAway(t *testing.T) {
	n := nodetest.Start(t)
	u := &tool{t: t, env: []string{"RENDEZVOUS_SERVER=http://" + n.HTTP, "RENDEZVOUS_METRICS=http://" + n.Admin}}
	next := u.looks()
	if l := next(); l.Verdict != wire.CheckOK || l.Depths == nil {
		t.Fatalf("%+v", l)
	}
	nodetest.Stop(t, n)
	l := next()
	for l.Error == "" {
		l = next()
	}
	if l = next(); !strings.Contains(l.Error, "unavailable") || l.Depths != nil || l.Verdict != "" || l.Counts != nil || len(l.Unread) != 1 {
		t.Errorf("while it is away: %+v", l)
	}
	nodetest.Start(t, func(c *node.Config) { c.Ingest.HTTP, c.Admin = n.HTTP, n.Admin })
	for l.Verdict != wire.CheckOK || l.Rates["accepted"] < 0 {
		l = next()
	}
}

var escapes = regexp.MustCompile(`\x1b\[[?0-9]*[A-Za-z]`)

// On a terminal it draws over itself, within the terminal, until q.
func TestTopOnATerminal(t *testing.T) {
	u := newTool(t)
	for _, key := range []string{"q", "\x03"} {
		cmd := nodetest.Command(t, u.env, "top", "--interval", "100ms")
		tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 40})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for chunk := make([]byte, 4096); strings.Count(out.String(), "\x1b[H") < 3; {
			n, err := tty.Read(chunk)
			if err != nil {
				t.Fatalf("it ended: %v %q", err, out.String())
			}
			out.Write(chunk[:n])
		}
		if _, err := io.WriteString(tty, key); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(tty) // a terminal that is left ends with an error
		if err := cmd.Wait(); err != nil {
			t.Errorf("%q: %v", key, err)
		}
		_ = tty.Close()
		if !strings.HasSuffix(string(rest), "\x1b[?1049l") {
			t.Errorf("%q leaves the terminal as %q", key, rest)
		}
		second := strings.Split(out.String(), "\x1b[H")[2]
		if !strings.Contains(second, "woken runs") {
			t.Errorf("a look is %q", second)
		}
		for _, line := range strings.Split(escapes.ReplaceAllString(second, ""), "\r\n") {
			if len(line) > 40 {
				t.Errorf("%q is wider than the terminal", line)
			}
		}
	}
}

// Where there is little room, numbers are cut and advice is not; nothing in it moves the cursor.
func TestANarrowTerminalKeepsTheAdvice(t *testing.T) {
	l := topLook{Version: "1", Store: "sqlite", Verdict: wire.CheckDegraded, Depths: &wire.Depths{}, Reasons: []string{"evil \x1b[2J\r\nword"}}
	for _, reason := range attention.Reasons {
		l.Reasons = append(l.Reasons, reason.String())
	}
	lines := l.lines("127.0.0.1:7480", 34)
	for _, line := range lines {
		if len([]rune(line)) > 34 || strings.ContainsAny(line, "\x1b\r\n") {
			t.Errorf("%q", line)
		}
	}
	text := strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
	for _, reason := range attention.Reasons {
		if !strings.Contains(text, reason.String()) {
			t.Errorf("%q is not in %s", reason, text)
		}
	}
}

// Processes are added up, each compared with itself: one that began anew does not count backwards. What another process's sweeper asks for is told.
func TestTopAddsProcessesUp(t *testing.T) {
	const types = "# TYPE rendezvous_ingest_events_total counter\n# TYPE rendezvous_sweep_pages_total counter\n# TYPE rendezvous_sweep_saturated_total counter\n" +
		"# TYPE rendezvous_sweep_oldest_due_seconds gauge\n# TYPE rendezvous_attention gauge\n"
	pages := []string{
		"rendezvous_ingest_events_total{outcome=\"new\"} 10\nrendezvous_sweep_pages_total{pass=\"unmet\"} 1\nrendezvous_sweep_oldest_due_seconds{pass=\"unmet\"} 3\n",
		"rendezvous_ingest_events_total{outcome=\"new\"} 100\nrendezvous_sweep_pages_total{pass=\"unmet\"} 1\nrendezvous_sweep_oldest_due_seconds{pass=\"unmet\"} 2\n",
	}
	var addresses []string
	for i := range pages {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(w, types+pages[i])
		}))
		t.Cleanup(s.Close)
		addresses = append(addresses, strings.Replace(s.URL, "://", "://me:hush@", 1))
	}
	m, err := newMeters(append(addresses, "http://me:hush@127.0.0.1:1"), "")
	if err != nil {
		t.Fatal(err)
	}
	var first, second topLook
	m.read(t.Context(), &first)
	pages[0] = "rendezvous_ingest_events_total{outcome=\"new\"} 4\nrendezvous_sweep_pages_total{pass=\"unmet\"} 3\nrendezvous_sweep_saturated_total{pass=\"unmet\"} 1\n"
	pages[1] += "rendezvous_attention{reason=\"saturated\"} 1\nrendezvous_attention{reason=\"stuck\"} 0\n"
	m.read(t.Context(), &second)
	second.Reasons = []string{"pass unmet: " + attention.Failed.String()}
	m.attend(&second)
	if first.Counts["accepted"] != 110 || second.Counts["accepted"] != 104 || first.Rates != nil || second.Rates["accepted"] <= 0 {
		t.Errorf("%+v, then %+v", first, second)
	}
	if p := first.Passes; len(p) != 1 || p[0].OldestDue != 3 {
		t.Errorf("%+v", p)
	}
	if p := second.Passes; len(p) != 1 || p[0].Rates["saturated"]*2 != p[0].Rates["pages"] || p[0].Rates["pages"] <= 0 {
		t.Errorf("%+v", p)
	}
	if len(second.Reasons) != 2 || second.Reasons[1] != "a sweeper: "+attention.Saturated.String() {
		t.Errorf("%q", second.Reasons)
	}
	if len(second.Unread) != 1 || strings.Contains(second.Unread[0], "hush") {
		t.Errorf("%q", second.Unread)
	}
}
