package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

// buried is a tool whose plane has dead letters of those ids, on key order=id.
func buried(t *testing.T, ids ...string) *tool {
	t.Helper()
	now := clock.NewManual(clock.System.Now().Truncate(time.Second))
	u := newTool(t, func(c *node.Config) {
		c.StoreClock, c.Sweep.Tick, c.Sweep.Woken = now, 20*time.Millisecond, 20*time.Millisecond
	})
	for _, id := range ids {
		u.ok("accepted", "event", "put", "--type", "paid", "--source", "urn:bank", "--id", id, "--key", "order="+id, "--data", `{"n":1}`)
	}
	now.Advance(2 * time.Hour)
	want := fmt.Sprintf("all +%d", len(ids))
	for end := clock.System.Now().Add(nodetest.Patience); ; {
		if r := u.run("deadletter", "count"); strings.Contains(strings.Join(strings.Fields(r.out), " "), strings.ReplaceAll(want, " +", " ")) {
			return u
		}
		if clock.System.Now().After(end) {
			t.Fatal("the events do not die")
		}
	}
}

// What an operator does who finds a letter with a wrong key: look, wait on the right one, requeue.
func TestALetterIsListedRequeuedAndMet(t *testing.T) {
	u := buried(t, "p-1", "p-2")
	u.ok(`(?s)^DEAD SINCE.*unclaimed +paid +urn:bank +p-2 +order=p-2.*p-1`, "deadletter", "list")
	u.ok(`^DEAD SINCE[^\n]*\n[^\n]*p-1[^\n]*\{"n":1\}[^\n]*\n$`, "deadletter", "list", "--key", "order=p-1", "--data")
	u.ok(`^\{"source":"urn:bank","id":"p-2".*"reason":"unclaimed".*\}\n\{.*\}\n$`, "deadletter", "list", "-o", "jsonl")
	u.ok(`"count": 2`, "deadletter", "count", "--reason", "unclaimed", "-o", "json")
	u.ok(`^REASON +LETTERS\nexpired +0\nall +0\n$|^REASON +LETTERS\nall +0\n$`, "deadletter", "count", "--reason", "expired")
	u.fails(1, `degraded`, "system", "check")
	u.ok(`dead letters +2`, "system", "info")

	u.ok("", "run", "start", "order", "--workflow-id", "w", "--run-id", "r")
	u.ok("waiting", "wait", "register", "r", "late", "--type", "paid", "--key", "ORDER=p-2")
	u.ok(`(?s)verdict +dead: a dead letter: unclaimed.*nearest.*wait late of run r +paid +ORDER=p-2.*similar_key`, "event", "explain", "urn:bank", "p-2")
	u.ok(`(?s)PAIR +EVENT urn:bank p-2 +WAIT late of run r\n.*keys +order=p-2 +ORDER=p-2.*because +no_shared_key.*under a new id`, "wait", "explain", "r", "late", "--source", "urn:bank", "--id", "p-2")
	u.ok("withdrawn", "wait", "withdraw", "r", "late")
	u.ok("waiting", "wait", "register", "r", "pay", "--type", "paid", "--key", "order=p-1")
	u.ok(`^1 requeued, 0 not`, "deadletter", "requeue", "urn:bank", "p-1", "--op", "once")
	u.ok(`^1 requeued, 0 not`, "deadletter", "requeue", "urn:bank", "p-1", "--op", "once")
	for end := clock.System.Now().Add(nodetest.Patience); !strings.Contains(u.run("run", "history", "w").out, "wait.answered"); {
		if clock.System.Now().After(end) {
			t.Fatal("the requeued event does not meet its wait")
		}
	}
	u.fails(4, `not_dead`, "deadletter", "requeue", "urn:bank", "p-1")
	u.fails(3, `not_found`, "deadletter", "requeue", "urn:bank", "unheard")
	u.fails(2, `source and id of one letter`, "deadletter", "requeue")
	u.fails(2, `give one of them`, "deadletter", "requeue", "urn:bank", "p-2", "--all")
	u.fails(2, `source and id`, "deadletter", "purge", "urn:bank", "--yes")
	u.fails(2, `reason`, "deadletter", "list", "--reason", "bored")
}

// A purge is for ever: it is asked for, by one letter or by a filter, and an environment variable does not answer.
func TestAPurgeIsConfirmed(t *testing.T) {
	u := buried(t, "p-1", "p-2", "p-3")
	u.env = append(u.env, "RENDEZVOUS_YES=true")
	u.stdin = "yes\n"
	u.fails(2, `(?s)p-1 go for ever.*cannot be undone.*nothing was done`, "deadletter", "purge", "urn:bank", "p-1")
	u.fails(2, `(?s)of 3 dead letters.*nothing was done`, "deadletter", "purge", "--all")
	u.stdin = "purge\n"
	u.ok(`^1 purged, 0 not`, "deadletter", "purge", "urn:bank", "p-1")
	u.stdin = ""
	u.ok(`^2 purged, 0 not`, "deadletter", "purge", "--type", "paid", "--yes")
	u.ok(`all +0`, "deadletter", "count")
	u.ok(`"results": \[\]`, "deadletter", "requeue", "--all", "-o", "json")
	u.ok(`^not quarantined`, "wait", "retry", "r", "pay")
}
