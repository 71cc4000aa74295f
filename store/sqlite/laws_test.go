package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	zombie "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/engine"
)

// laws are what may never be found in a database, whenever it was cut off: each counts the rows that break one.
var laws = map[string]string{
	"I2, I3: an answered event whose record does not say so": `SELECT count(*) FROM events e WHERE e.state = 'consumed' AND NOT EXISTS (
		SELECT 1 FROM history h WHERE h.tenant = e.tenant AND h.workflow_id = e.workflow_id AND h.seq = e.seq AND h.run_id = e.run_id AND h.effect = e.effect
			AND h.closes AND h.payload IS NOT NULL)`,
	"I3: an effect closed twice": `SELECT count(*) FROM (
		SELECT 1 FROM history WHERE closes GROUP BY tenant, run_id, effect, attempt HAVING count(*) > 1)`,
	"I5: a history with a gap": `SELECT count(*) FROM workflows w WHERE w.head_seq <> (
		SELECT count(*) FROM history h WHERE h.tenant = w.tenant AND h.workflow_id = w.workflow_id)
		OR w.head_seq <> (SELECT max(h.seq) FROM history h WHERE h.tenant = w.tenant AND h.workflow_id = w.workflow_id)`,
	"a live event without its key rows": `SELECT count(*) FROM events e WHERE e.state = 'live'
		AND (SELECT count(*) FROM event_keys i WHERE i.number = e.number) <> json_array_length(e.keys)`,
	"key rows of an event that is not live": `SELECT count(*) FROM event_keys i LEFT JOIN events e ON e.number = i.number WHERE e.state IS NOT 'live'`,
	"key rows that say another age or expiry": `SELECT count(*) FROM event_keys i JOIN events e ON e.number = i.number
		WHERE i.live_since <> e.live_since OR i.expires_at IS NOT e.expires_at`,
	"a letter without its key rows, or key rows without their letter": `SELECT abs((SELECT count(*) FROM dead_keys) -
		(SELECT coalesce(sum(json_array_length(keys)), 0) FROM events WHERE state = 'dead' AND NOT purged)) +
		(SELECT count(*) FROM dead_keys i LEFT JOIN events e ON e.number = i.number WHERE e.state IS NOT 'dead' OR e.purged)`,
	"an open wait without its key rows": `SELECT count(*) FROM waits w WHERE w.held_number IS NULL
		AND (SELECT count(*) FROM wait_keys i WHERE i.number = w.number) <> json_array_length(w.keys)`,
	"key rows of a wait that is not open": `SELECT count(*) FROM wait_keys i LEFT JOIN waits w ON w.number = i.number
		WHERE w.number IS NULL OR w.held_number IS NOT NULL`,
	"I4: a wait without its opening record, or with a closing one": `SELECT count(*) FROM waits w WHERE
		NOT EXISTS (SELECT 1 FROM history h WHERE h.tenant = w.tenant AND h.run_id = w.run_id AND h.effect = w.effect AND h.attempt = w.attempt AND NOT h.closes)
		OR EXISTS (SELECT 1 FROM history h WHERE h.tenant = w.tenant AND h.run_id = w.run_id AND h.effect = w.effect AND h.attempt = w.attempt AND h.closes)`,
	"a record that waits without its wait": `SELECT count(*) FROM history h WHERE h.kind = 'wait.registered'
		AND NOT EXISTS (SELECT 1 FROM history c WHERE c.tenant = h.tenant AND c.run_id = h.run_id AND c.effect = h.effect AND c.attempt = h.attempt AND c.closes)
		AND NOT EXISTS (SELECT 1 FROM waits w WHERE w.tenant = h.tenant AND w.run_id = h.run_id AND w.effect = h.effect)`,
	"I7: a claim that no wait holds": `SELECT count(*) FROM events e WHERE e.state = 'claimed'
		AND NOT EXISTS (SELECT 1 FROM waits w WHERE w.tenant = e.tenant AND w.run_id = e.claim_run AND w.effect = e.claim_effect AND w.held_number = e.number)`,
	"I7: a held event that says otherwise": `SELECT count(*) FROM waits w WHERE w.held_number IS NOT NULL
		AND NOT EXISTS (SELECT 1 FROM events e WHERE e.number = w.held_number AND e.state = 'claimed' AND e.claim_run = w.run_id AND e.claim_effect = w.effect)`,
	"TM-13: a timer that no record armed": `SELECT count(*) FROM timers t WHERE NOT EXISTS (
		SELECT 1 FROM history h WHERE h.tenant = t.tenant AND h.workflow_id = t.workflow_id AND h.seq = t.armed_seq AND h.run_id = t.run_id)`,
	"TM-13: a workflow that counts other timers than there are": `SELECT count(*) FROM workflows w WHERE w.live_timers <> (
		SELECT count(*) FROM timers t WHERE t.tenant = w.tenant AND t.workflow_id = w.workflow_id)`,
	"TM-13: an arming that stands without its timer": `SELECT count(*) FROM history h WHERE h.kind = 'timer.started'
		AND NOT EXISTS (SELECT 1 FROM timers t WHERE t.tenant = h.tenant AND t.workflow_id = h.workflow_id AND t.armed_seq = h.seq)`,
	"PU-104: a registration that rests though its run is over": `SELECT count(*) FROM push_registrations p JOIN workflows w
		ON w.tenant = p.tenant AND w.workflow_id = p.workflow_id WHERE p.state = 'idle' AND (p.run_id <> w.run_id OR w.closed_at IS NOT NULL)`,
	"a workflow that counts other registrations than there are": `SELECT count(*) FROM workflows w WHERE w.registrations <> (
		SELECT count(*) FROM push_registrations p WHERE p.tenant = w.tenant AND p.workflow_id = w.workflow_id AND p.state <> 'gone')`,
	"I9: a number above what was reserved": `SELECT count(*) FROM events WHERE number > (SELECT value FROM counters WHERE name = 'event')`,
}

// lawful opens the database of dir, which recovers it, and judges it.
func lawful(t *testing.T, dir string) (conn *zombie.Conn) {
	t.Helper()
	conn, err := zombie.OpenConn(filepath.Join(dir, "rendezvous.db"), zombie.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, conn, "PRAGMA integrity_check"); got != "ok" {
		t.Fatalf("the file is damaged: %s", got)
	}
	for law, sql := range laws {
		if n := ask(t, conn, sql); n != "0" {
			t.Errorf("%s: %s rows", law, n)
		}
	}
	return conn
}

func ask(t *testing.T, conn *zombie.Conn, sql string) (text string) {
	t.Helper()
	err := sqlitex.ExecuteTransient(conn, sql, &sqlitex.ExecOptions{ResultFunc: func(stmt *zombie.Stmt) error {
		text = stmt.ColumnText(0)
		return nil
	}})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return text
}

// load drives a store as workers do: runs that wait, events that come before and after, offers, some under a lease, some concluded. told is called with
// what was acknowledged, by several goroutines at once.
type load struct {
	store store.Store
	told  func(what string)
	life  string // names what is made, apart from what another process made
	next  atomic.Int64
}

func newLoad(b backend.Backend, life string, told func(what string)) (*load, error) {
	s, err := engine.New(b, engine.Options{})
	return &load{store: s, told: told, life: life}, err
}

// step plays one meeting.
func (l *load) step(ctx context.Context) error {
	n := l.next.Add(1)
	name := fmt.Sprintf("%s-%d", l.life, n)
	t, err := l.store.Tenant([]string{"acme", "umbrella"}[n%2])
	if err != nil {
		return err
	}
	started, err := t.StartRun(ctx, store.Start{Type: "order", WorkflowID: "w-" + name, RunID: "r-" + name}, time.Time{})
	if err != nil {
		return err
	}
	key := rendezvous.Key{Namespace: "order", Value: name}
	event := rendezvous.Event{
		EventID: rendezvous.EventID{Source: "shop", ID: name}, Type: "paid", Keys: []rendezvous.Key{key, {Namespace: "all", Value: "one"}},
		ContentType: "text/plain", Payload: make([]byte, 100+n%3*2000),
	}
	wait := store.Registration{Wait: rendezvous.Wait{
		WaitID: rendezvous.WaitID{RunID: started.RunID, Effect: "payment"}, Attempt: 1, Type: "paid", Keys: []rendezvous.Key{key},
	}}
	var lease store.Lease
	if n%4 == 0 {
		if lease, err = t.AcquireLease(ctx, started.RunID, "pod", 30*time.Second, "acquire"); err != nil {
			return err
		}
		wait.Epoch = lease.Epoch
	}
	put := func() error {
		if _, err := t.Buffer(ctx, event, time.Time{}); err != nil {
			return err
		}
		l.told("event " + name)
		return nil
	}
	if n%5 == 0 {
		after := time.Hour
		if _, err := t.ArmTimer(ctx, store.Arm{RunID: started.RunID, Epoch: lease.Epoch, TimerID: "t", After: &after, BatchID: "arm"}, time.Time{}); err != nil {
			return err
		}
	}
	if n%3 == 0 {
		if err := put(); err != nil {
			return err
		}
	}
	registered, err := t.RegisterWait(ctx, wait, time.Time{})
	if err != nil {
		return err
	}
	l.told("wait " + name)
	if n%3 != 0 {
		if err := put(); err != nil {
			return err
		}
		out, err := l.store.OfferBatch(ctx, []store.OfferItem{{Tenant: t.Name(), Event: &event.EventID}}, time.Time{})
		if err != nil {
			return err
		}
		if out.Items[0].Outcome == store.OfferDelivered {
			l.told("answer " + name)
		}
	} else if registered.Outcome == store.RegisterAnswered {
		l.told("answer " + name)
	}
	if n%4 == 0 {
		_, err = t.Collect(ctx, started.RunID, lease.Epoch)
	}
	return err
}
