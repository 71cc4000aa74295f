package main

import (
	"bufio"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

// Timers, deadlines, and what is done with a run that ended too soon.
func TestTimersDeadlinesAndReopening(t *testing.T) {
	u := newTool(t)
	u.ok(`^started`, "run", "start", "order", "--workflow-id", "w", "--run-id", "r", "--deadline-after", "48h")
	u.ok(`^started`, "run", "start", "order", "--workflow-id", "v", "--deadline", "2999-01-01T00:00:00Z")
	u.ok(`(?s)r +\(deadline of the run\) +run +20\d\d-`, "timer", "list", "w")
	u.ok(`^armed at record 2: it fires at 2998-01-01 00:00:00.000`, "timer", "arm", "r", "nap", "--at", "2998-01-01T00:00:00Z")
	u.ok(`^armed at record 3`, "timer", "arm", "r", "tea", "--after", "240h")
	u.ok(`(?s)live timers +3`, "run", "show", "w")
	u.ok(`(?s)r +tea +author .*r +nap +author +2998-01-01 00:00:00.000 +2 `, "timer", "list", "r", "--run", "--class", "author")
	if rows := strings.Count(u.ok("", "timer", "list", "w", "-o", "jsonl", "--limit", "2"), "\n"); rows != 2 {
		t.Errorf("%d lines of 2 timers", rows)
	}
	u.ok(`^cancelled at record 4`, "timer", "cancel", "r", "tea", "--reason", "no need")
	u.ok(`^not armed`, "timer", "cancel", "r", "soup")
	u.ok(`^waiting since record 5`, "wait", "register", "r", "pay", "--type", "paid", "--key", "order=1", "--deadline", "2998-01-01T00:00:00Z")
	u.ok(`(?s)DEADLINE.*pay +open +paid +order=1 +.* +2998-01-01 00:00:00.000`, "wait", "list")
	u.ok(`(?s)verdict +no_event.*deadline +2998-01-01`, "wait", "explain", "r", "pay")
	u.ok(`^timed out at record 7`, "wait", "register", "r", "poll", "--type", "sent", "--key", "order=1", "--deadline-after", "0s")
	u.ok(`(?s)verdict +timed_out: no event that came before its deadline`, "wait", "explain", "r", "poll")
	u.ok(`^accepted`, "event", "put", "--type", "sent", "--source", "post", "--id", "1", "--key", "order=1")
	u.ok(`(?s)because +arrived_late \(the deadline was 20.*what to do +the event is for others now`, "event", "explain", "post", "1", "--run", "r", "--effect", "poll")
	u.fails(4, `conflict`, "run", "reopen", "r")
	u.ok(`^failed at record 8; 1 waits and 3 timers ended`, "run", "conclude", "r", "--outcome", "failed", "--code", "late", "--yes")
	u.ok(`^reopened at record 9; 2 timers are back`, "run", "reopen", "r", "--reason", "a mistake")
	u.ok(`(?s)verdict +ended: its run concluded with the wait open \(run.failed\), and was reopened`, "wait", "explain", "r", "pay")
	u.ok(`^waiting since record 11`, "wait", "register", "r", "pay", "--type", "paid", "--key", "order=1", "--attempt", "2")
	u.ok(`(?s)RUN +STATUS.*r +running +1 `, "run", "chain", "w")
	u.ok(`"run_id": "r"`, "run", "chain", "r", "--run", "-o", "json")
	u.fails(3, `not_found`, "run", "chain", "nobody")
	u.ok(`(?s)\bw +r +order +running`, "run", "list", "--active")
	if paused := u.ok(`^WORKFLOW`, "run", "list", "--paused"); strings.Contains(paused, "order") {
		t.Errorf("paused: %s", paused)
	}
	u.ok(`(?s)timers +3\n *due timers +0`, "system", "info")
	u.ok(`(?s)POOL +SHARD +OWNER +EPOCH.*timer +0 +`, "shard", "list")
	u.ok(`"pool": "sweep"`, "shard", "list", "--pool", "sweep", "-o", "json")
	for _, args := range [][]string{
		{"timer", "arm", "r", "nap"},
		{"timer", "arm", "r", "nap", "--at", "soon"},
		{"timer", "arm", "r", "nap", "--after", "soon"},
		{"timer", "arm", "r", "nap", "--after", "-5s"},
		{"timer", "arm", "r", "nap", "--after", "1s", "--at", "2030-01-01T00:00:00Z"},
		{"timer", "arm", "r", "$nap", "--after", "1s"},
		{"timer", "list"},
		{"timer", "list", "w", "--class", "tick"},
		{"run", "start", "order", "--deadline", "2020-01-01T00:00:00Z"},
		{"run", "start", "order", "--deadline-after", "1h", "--deadline", "2030-01-01T00:00:00Z"},
		{"wait", "register", "r", "e", "--type", "t", "--deadline", "10000-01-01T00:00:00Z"},
		{"shard", "list", "--pool", "swim"},
	} {
		u.fails(2, `.`, args...)
	}
}

// run history --follow shows what comes, and ends with the workflow, or when it is interrupted.
func TestAHistoryIsFollowed(t *testing.T) {
	u := newTool(t)
	u.ok("", "run", "start", "order", "--workflow-id", "w", "--run-id", "r")
	follow := func(args ...string) (*bufio.Scanner, func() error, func()) {
		cmd := nodetest.Command(t, u.env, append([]string{"run", "history", "w", "--follow"}, args...)...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return bufio.NewScanner(out), cmd.Wait, func() { _ = cmd.Process.Signal(os.Interrupt) }
	}
	next := func(s *bufio.Scanner, want string) {
		t.Helper()
		if !s.Scan() || !regexp.MustCompile(want).MatchString(s.Text()) {
			t.Fatalf("the next line is %q (%v), not %s", s.Text(), s.Err(), want)
		}
	}
	people, endPeople, _ := follow()
	next(people, `^SEQ +AT +KIND`)
	next(people, `^1 +20\d\d-.* run.started`)
	programs, endPrograms, interrupt := follow("-o", "jsonl", "--from", "2")
	u.ok("", "wait", "register", "r", "pay", "--type", "paid")
	next(people, `^2 .* wait.registered +pay `)
	next(programs, `^\{"seq":2,.*"kind":"wait.registered"`)
	interrupt()
	if err := endPrograms(); err != nil {
		t.Errorf("interrupted: %v", err)
	}
	u.ok("", "run", "conclude", "r", "--yes")
	next(people, `^3 .* run.completed`)
	if people.Scan() {
		t.Errorf("behind the end: %s", people.Text())
	}
	if err := endPeople(); err != nil {
		t.Errorf("at the end of the workflow: %v", err)
	}
	behind, endBehind, _ := follow("--from", "4")
	next(behind, `^SEQ +AT +KIND`)
	if behind.Scan() {
		t.Errorf("from behind the end: %s", behind.Text())
	}
	if err := endBehind(); err != nil {
		t.Errorf("from behind the end of a workflow that is over: %v", err)
	}
	u.fails(3, `not_found`, "run", "history", "nobody", "--follow")
}
