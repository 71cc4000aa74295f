package main

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/store"
)

// timely puts what has to do with time into the world: run r3 with timers that fired, were replaced, cancelled, over with the run and back by its reopening, and
// a wait that timed out; r4, which its deadline ended.
func timely(t *testing.T, s store.Store, tx store.Tenant, l *ledger) {
	t.Helper()
	ctx := t.Context()
	must[store.Started](t)(tx.StartRun(ctx, store.Start{WorkflowID: "w-r3", RunID: "r3", Type: "soak", Queue: queueIdle}, time.Time{}))
	must[store.Started](t)(tx.StartRun(ctx, store.Start{WorkflowID: "w-r4", RunID: "r4", Type: "soak", Queue: queueIdle, DeadlineAfter: new(10 * time.Millisecond)}, time.Time{}))
	w := rendezvous.Wait{WaitID: rendezvous.WaitID{RunID: "r3", Effect: "late"}, Type: eventType, Keys: []rendezvous.Key{key("late")}, DeadlineAfter: new(10 * time.Millisecond)}
	must[store.Registered](t)(tx.RegisterWait(ctx, store.Registration{Wait: w}, time.Time{}))
	arm := func(timer string, after time.Duration) {
		got := must[store.Armed](t)(tx.ArmTimer(ctx, store.Arm{RunID: "r3", TimerID: timer, After: &after, BatchID: client.NewID()}, time.Time{}))
		l.told(promise{tenant, "r3", got.ArmedSeq, []rendezvous.Kind{rendezvous.TimerStarted}, timer, got.FireAt})
	}
	cancel := func(timer string) {
		got := must[store.CancelledTimer](t)(tx.CancelTimer(ctx, "r3", 0, timer, client.NewID(), "", time.Time{}))
		l.told(promise{tenant: tenant, run: "r3", seq: got.Seq, kinds: []rendezvous.Kind{rendezvous.TimerCancelled}, timer: timer})
	}
	arm("fired", 0)
	arm("replaced", time.Hour)
	arm("replaced", 2*time.Hour)
	cancel("replaced")
	arm("back", time.Hour)
	fireAll(t, s, tx)
	must[store.Cancelled](t)(tx.CancelRun(ctx, "r3", operator, "soak", true, time.Time{}))
	got := must[store.Reopened](t)(tx.ReopenRun(ctx, store.Reopening{RunID: "r3", BatchID: "again", Operator: operator, Reason: "soak"}, time.Time{}))
	l.told(promise{tenant: tenant, run: "r3", seq: got.Seq, kinds: []rendezvous.Kind{rendezvous.RunReopened}})
	cancel("back")
	e := event("late", key("late"))
	must[store.Buffered](t)(tx.Buffer(ctx, e, time.Time{}))
	l.accepted(tenant, e.EventID, requestDoor)
	l.race(tenant, w.WaitID, e.EventID)
}

// fireAll fires until r4 is over, which is due last.
func fireAll(t *testing.T, s store.Store, tx store.Tenant) {
	t.Helper()
	pod := must[store.PoolHandle](t)(s.PoolHandle(store.PoolTimer, "pod/1"))
	all := make([]int, s.Shards())
	for i := range all {
		all[i] = i
	}
	var own []store.ShardEpoch
	for _, l := range must[store.Acquisition](t)(pod.AcquireOwnedShards(t.Context(), all, store.MaxShardTTL)).Won {
		own = append(own, store.ShardEpoch{Shard: l.Shard, Epoch: l.Epoch})
	}
	for status := rendezvous.StatusRunning; status != rendezvous.StatusTimedOut; {
		must[store.FiredPage](t)(pod.FireDueTimers(t.Context(), own, 0))
		status = must[store.Workflow](t)(tx.DescribeWorkflow(t.Context(), store.WorkflowRef{RunID: "r4"})).Status
	}
}

// leftover is a timer's row of a run.
func leftover(run, timer, seq string) string {
	return `INSERT INTO timers SELECT tenant, 'w-` + run + `', '` + timer + `', '` + run + `', 'author', '', 0, now(), ` + seq + `, now(), now(), 0, '', 0, 0, '', 0, NULL, '', ''
		FROM workflows WHERE workflow_id = 'w-` + run + `'`
}

const (
	lateByAnHour = `UPDATE history SET recorded_at = recorded_at + interval '1 hour' WHERE kind = `
	alive        = `DELETE FROM history WHERE kind = 'timer.cancelled' AND timer_id = 'back'`
	wrongInstant = `UPDATE history SET data = jsonb_set(data::jsonb, ARRAY[CASE kind WHEN 'timer.fired' THEN 'fire_at' ELSE 'deadline' END], '"2020-01-01T00:00:00Z"')::text WHERE kind = `
)

var timelyDamages = []damages{
	{"arming_without_outcome", []string{alive}},
	{"arming_without_outcome", []string{`DELETE FROM history WHERE kind = 'run.timed_out'`}},
	{"arming_without_outcome", []string{`DELETE FROM history WHERE seq > 3 AND workflow_id = 'w-r3' AND kind NOT LIKE 'wait.%'`, `DELETE FROM history WHERE kind = 'wait.timed_out'`}},
	{"timer_outcome_wrong", []string{`INSERT INTO history SELECT (jsonb_populate_record(h, '{"seq":99}')).* FROM history h WHERE kind = 'timer.fired'`}},
	{"timer_outcome_wrong", []string{`INSERT INTO history SELECT (jsonb_populate_record(h, '{"seq":99,"kind":"timer.cancelled"}')).* FROM history h WHERE kind = 'timer.fired'`}},
	{"timer_outcome_wrong", []string{`UPDATE history SET data = jsonb_set(data::jsonb, '{armed_seq}', '1')::text WHERE kind = 'timer.fired'`}},
	{"timer_outcome_wrong", []string{`UPDATE history SET timer_id = 'fired' WHERE kind = 'timer.cancelled' AND timer_id = 'replaced'`}},
	{"timer_outcome_wrong", []string{`UPDATE history SET seq = 99 WHERE kind = 'timer.fired'`}}, // behind the run's end
	{"timer_outcome_wrong", []string{wrongInstant + `'timer.fired'`}},
	{"timer_outcome_wrong", []string{wrongInstant + `'wait.timed_out'`}},
	{"timer_outcome_wrong", []string{wrongInstant + `'run.timed_out'`}},
	{"timer_early", []string{`UPDATE history SET recorded_at = recorded_at - interval '1 hour' WHERE kind = 'timer.fired'`}},
	{"timer_early", []string{`UPDATE history SET recorded_at = recorded_at - interval '1 hour' WHERE kind = 'wait.timed_out'`}},
	{"timer_early", []string{`UPDATE history SET recorded_at = recorded_at - interval '1 hour' WHERE kind = 'run.timed_out'`}},
	{"timer_row_wrong", []string{alive}},
	{"timer_row_wrong", []string{leftover("r3", "fired", "2")}},
	{"timer_row_wrong", []string{leftover("r4", "of a run that is over", "2")}},
	{"timer_row_wrong", []string{alive, leftover("r3", "back", "99")}},
	{"count_off", []string{`UPDATE workflows SET live_timers = 1 WHERE workflow_id = 'w-r3'`}},
	{"deadline_misjudged", []string{`UPDATE history SET data = jsonb_set(data::jsonb, '{deadline}', '"2020-01-01T00:00:00Z"')::text WHERE kind = 'wait.registered' AND effect = 'a'`}},
	{"deadline_misjudged", []string{`UPDATE soak.accepted SET at = at - interval '1 hour' WHERE id = 'late'`}},
	{"reopening_wrong", []string{`DELETE FROM history WHERE kind = 'timer.started' AND batch_id = 'again'`}},
	{"reopening_wrong", []string{`UPDATE history SET timer_id = 'fired' WHERE kind = 'timer.started' AND batch_id = 'again'`}},
	{"reopening_wrong", []string{`UPDATE history SET data = jsonb_set(data::jsonb, '{fire_at}', '"2020-01-01T00:00:00Z"')::text WHERE kind = 'timer.started' AND batch_id = 'again'`}},
	{"record_lost", []string{`DELETE FROM history WHERE kind = 'run.reopened'`}},
	{"record_lost", []string{`UPDATE history SET kind = 'timer.fired' WHERE kind = 'timer.cancelled'`}},
	{"record_lost", []string{`UPDATE soak.recorded SET fire_at = fire_at + interval '1 hour' WHERE timer_id = 'back'`}},
	{"record_lost", []string{`UPDATE soak.recorded SET timer_id = 'other' WHERE timer_id = 'back'`}},
	{"fail_over_slow", []string{lateByAnHour + `'timer.fired'`}},
	{"fail_over_slow", []string{lateByAnHour + `'wait.timed_out'`}},
	{"fail_over_slow", []string{lateByAnHour + `'run.timed_out'`}},
}

// What was done to the timer-workers excuses what it delayed, and no more.
func TestADisturbanceExcusesFiveSecondsBehindIt(t *testing.T) {
	v := judge(t)
	for _, c := range []struct {
		name         string
		began, ended string // after the timer was due; it fired 8 s after
		found        bool
	}{
		{"none in time", "-1 s", "-1 s", true},
		{"one that leaves more than 5 s behind it", "1 s", "2 s", true},
		{"one that leaves more than 5 s before it", "5.5 s", "8 s", true},
		{"one that leaves neither", "4 s", "4 s", false},
		{"one that lasts", "0 s", "7 s", false},
		{"one that began before it was due", "-1 s", "4 s", false},
		{"one that is not over", "1 s", "1 h", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			tx := must[pgx.Tx](t)(v.conn.Begin(t.Context()))
			defer func() { _ = tx.Rollback(context.Background()) }()
			must[pgconn.CommandTag](t)(tx.Exec(t.Context(), `UPDATE history h SET recorded_at = a.due + interval '8 s' FROM soak.armings a WHERE a.how = 'timer.fired' AND h.tenant = a.tenant
				AND h.workflow_id = a.workflow_id AND h.seq = a.ended`))
			must[pgconn.CommandTag](t)(tx.Exec(t.Context(), `INSERT INTO soak.disturbances SELECT 'killed', due + $1::text::interval, due + $2::text::interval FROM soak.armings WHERE how = 'timer.fired'`,
				c.began, c.ended))
			if f := must[finding](t)(v.check(t.Context(), "fail_over_slow")); (len(f.keys) > 0) != c.found {
				t.Errorf("found %v", f.keys)
			}
		})
	}
}
