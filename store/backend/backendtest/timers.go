package backendtest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

var timerCases = []backendCase{
	{"timer rows come back as they went in, full and bare, and are written over", timerRows},
	{"timers that go go before others come, and unknown ones may go", goneTimers},
	{"stale changes write no timer, lease or member", staleTimers},
	{"timers of workflows by instant, seq and id, up to an instant", timersOf},
	{"expired timers inclusive, in order, page by page through ties, narrowed", expiredTimers},
	{"a workflow's timers soonest first, by class, page by page through ties", listTimers},
	{"timers are counted by class", countTimers},
	{"the last record of a timer, and the armings that stand, by run", timerRecords},
	{"effects that failed for good, by run", finalFailures},
}

// timer is an armed timer of a flow, due in d from now, not stored yet.
func (x *bench) timer(w *backend.Workflow, id string, d time.Duration) *backend.Timer {
	x.Helper()
	at := x.now().Add(d)
	return &backend.Timer{
		Tenant: w.Tenant, WorkflowID: w.ID, TimerID: id, RunID: w.RunID, Class: rendezvous.TimerAuthor, Shard: w.Shard, FireAt: at, ArmedSeq: 2, DueAt: at, ReadyAt: at,
	}
}

// timerAt is timer, without asking for the time.
func (x *bench) timerAt(w *backend.Workflow, id string, at time.Time) *backend.Timer {
	return &backend.Timer{
		Tenant: w.Tenant, WorkflowID: w.ID, TimerID: id, RunID: w.RunID, Class: rendezvous.TimerAuthor, Shard: w.Shard, FireAt: at, ArmedSeq: 2, DueAt: at, ReadyAt: at,
	}
}

// armed is a timer stored.
func (x *bench) armed(w *backend.Workflow, id string, d time.Duration) *backend.Timer {
	x.Helper()
	row := x.timer(w, id, d)
	x.apply(&backend.Changes{Timers: []*backend.Timer{row}}, w.Key())
	return row
}

// held puts a hold on a timer.
func held(t *backend.Timer, token, epoch int64, until time.Time) *backend.Timer {
	t.Token, t.Holder, t.HoldEpoch, t.HeldUntil = token, "pod/1", epoch, until
	if t.ReadyAt = t.DueAt; until.After(t.DueAt) {
		t.ReadyAt = until
	}
	return t
}

func (x *bench) timerRow(k backend.TimerKey) *backend.Timer {
	x.Helper()
	var row *backend.Timer
	x.view(func(r backend.Reader) { row = got(r.Timers(ctx, []backend.TimerKey{k}))(x)[k] })
	return row
}

func timersNamed(rows []*backend.Timer) []string {
	var names []string
	for _, t := range rows {
		names = append(names, t.Tenant+"/"+t.WorkflowID+"/"+t.TimerID)
	}
	return names
}

func timerRows(x *bench) {
	w, at := x.flow(acme, "1"), x.now()
	bare := x.timer(w, "slow/größe", time.Minute)
	full := x.timer(w, "full", time.Minute+time.Microsecond)
	full.Class, full.Effect, full.Attempts, full.LastError, full.Parks = rendezvous.TimerWait, "payment", 3, "unavailable", 2
	full.DueAt, full.Trace = full.FireAt.Add(time.Second), rendezvous.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b"}
	held(full, 7, 1<<33, at.Add(time.Hour))
	run := x.timer(w, "run", 0)
	run.Class, run.ArmedSeq = rendezvous.TimerRun, 1
	far := x.timer(w, "far", 0)
	far.FireAt = time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
	far.DueAt, far.ReadyAt, far.ArmedSeq = far.FireAt, far.FireAt, 0
	other := x.timer(x.flow(globex, "1"), "full", time.Hour)
	all := []*backend.Timer{bare, full, run, far, other}
	x.apply(&backend.Changes{Timers: all}, w.Key(), flowKey(globex, "w1"))
	want := map[backend.TimerKey]*backend.Timer{}
	keys := []backend.TimerKey{{Tenant: acme, WorkflowID: "w1", TimerID: "none"}, {Tenant: globex, WorkflowID: "w1", TimerID: "run"}}
	for _, t := range all {
		want[t.Key()] = t
		keys = append(keys, t.Key(), t.Key())
	}
	x.view(func(r backend.Reader) { eq(x, "timers", got(r.Timers(ctx, keys))(x), want) })

	again := x.timer(w, "full", 2*time.Hour)
	again.ArmedSeq, again.RunID = 9, "another run"
	x.apply(&backend.Changes{Timers: []*backend.Timer{again}}, w.Key())
	eq(x, "armed again", x.timerRow(again.Key()), again)
	eq(x, "timer of the same name elsewhere", x.timerRow(other.Key()), other)
}

func goneTimers(x *bench) {
	w := x.flow(acme, "1")
	a, b := x.armed(w, "a", time.Minute), x.armed(w, "b", time.Minute)
	none := backend.TimerKey{Tenant: acme, WorkflowID: "w1", TimerID: "none"}
	orphan := backend.TimerKey{Tenant: acme, WorkflowID: "gone", TimerID: "a"}
	anew := x.timer(w, "a", time.Hour)
	x.apply(&backend.Changes{GoneTimers: []backend.TimerKey{a.Key(), b.Key(), none, orphan}, Timers: []*backend.Timer{anew}}, w.Key(), flowKey(acme, "gone"))
	eq(x, "gone and armed anew", x.timerRow(a.Key()), anew)
	eq(x, "gone", x.timerRow(b.Key()), nil)
	x.view(func(r backend.Reader) {
		eq(x, "timers of the workflow", len(got(r.TimersOf(ctx, []backend.WorkflowKey{w.Key()}, time.Time{}))(x)), 1)
	})
}

func staleTimers(x *bench) {
	w := x.flow(acme, "1")
	kept := x.armed(w, "kept", time.Minute)
	moved := x.stored(acme, "moved")
	old := x.read(moved)
	moved.OfferFailures = 1
	x.apply(&backend.Changes{Events: []*backend.Event{moved}})
	x.stale("a stale event among timers", &backend.Changes{
		Events: []*backend.Event{old}, Timers: []*backend.Timer{x.timer(w, "new", time.Minute)}, GoneTimers: []backend.TimerKey{kept.Key()},
		NewShardLeases: []*backend.ShardLease{x.shardLease(3, "pod/1", 1)}, Members: []*backend.Member{x.member("pod/1")},
	}, w.Key())
	x.view(func(r backend.Reader) {
		eq(x, "timers", timersNamed(got(r.TimersOf(ctx, []backend.WorkflowKey{w.Key()}, time.Time{}))(x)), []string{"acme/w1/kept"})
		eq(x, "leases", len(got(r.ShardLeases(ctx, "timer"))(x)), 0)
		eq(x, "members", len(got(r.Members(ctx, "timer"))(x)), 0)
	})
}

func timersOf(x *bench) {
	w, other := x.flow(acme, "1"), x.flow(acme, "2")
	late, early := x.timer(w, "a", 2*time.Second), x.timer(w, "z", time.Second)
	second, twin := x.timer(w, "b", time.Second), x.timer(w, "y", time.Second)
	second.ArmedSeq, twin.ArmedSeq = 9, 9
	x.apply(&backend.Changes{Timers: []*backend.Timer{late, early, second, twin}}, w.Key())
	x.armed(other, "m", 3*time.Second)
	x.armed(x.flow(globex, "1"), "m", 0)
	x.armed(x.flow(acme, "3"), "m", 0)
	of := func(until time.Time, keys ...backend.WorkflowKey) []string {
		x.Helper()
		var rows []*backend.Timer
		x.view(func(r backend.Reader) { rows = got(r.TimersOf(ctx, keys, until))(x) })
		return timersNamed(rows)
	}
	keys := []backend.WorkflowKey{other.Key(), w.Key(), flowKey(globex, "w1"), w.Key(), flowKey(acme, "none")}
	all := []string{"acme/w1/z", "acme/w1/b", "acme/w1/y", "acme/w1/a", "acme/w2/m", "globex/w1/m"}
	eq(x, "all", of(time.Time{}, keys...), all)
	eq(x, "until an instant, inclusive", of(early.FireAt, keys...), slices.Concat(all[:3], all[5:]))
	eq(x, "of no workflows", of(time.Time{}), nil)
}

func expiredTimers(x *bench) {
	start := x.now()
	flows := []*backend.Workflow{x.flow(acme, "1"), x.flow(acme, "2"), x.flow(globex, "1")}
	var all []*backend.Timer
	for _, id := range []string{"c", "a", "b"} {
		for i, w := range flows {
			t := x.timer(w, id, time.Second)
			t.Shard = i
			if id == "b" {
				held(t, int64(i+1), 1, start.Add(time.Hour))
			}
			all = append(all, t)
		}
	}
	first, late := x.timer(flows[2], "z", 0), x.timer(flows[0], "late", time.Second+time.Microsecond)
	parked := x.timer(flows[0], "parked", 0)
	parked.DueAt, parked.ReadyAt = start.Add(time.Hour), start.Add(time.Hour)
	first.Shard, late.Shard, parked.Shard = 2, 0, 0
	x.apply(&backend.Changes{Timers: append(all, first, late, parked)}, flows[0].Key(), flows[1].Key(), flows[2].Key())

	expired := func(o backend.Owned, after backend.TimerPosition, limit int) []*backend.Timer {
		x.Helper()
		var rows []*backend.Timer
		x.view(func(r backend.Reader) { rows = got(r.ExpiredTimers(ctx, start.Add(time.Second), o, after, limit))(x) })
		return rows
	}
	want := []string{
		"acme/w1/parked", "globex/w1/z", "acme/w1/a", "acme/w1/b", "acme/w1/c", "acme/w2/a", "acme/w2/b", "acme/w2/c", "globex/w1/a", "globex/w1/b", "globex/w1/c",
	}
	none := backend.TimerPosition{}
	eq(x, "expired, one a microsecond later left out", timersNamed(expired(backend.Owned{}, none, 100)), want)
	eq(x, "three", timersNamed(expired(backend.Owned{}, none, 3)), want[:3])
	eq(x, "of a tenant", timersNamed(expired(backend.Owned{Tenant: globex}, none, 100)), slices.Concat(want[1:2], want[8:]))
	eq(x, "of shards", timersNamed(expired(backend.Owned{Shards: []int{1, 2, 1, 60}}, none, 100)), slices.Concat(want[1:2], want[5:]))
	eq(x, "of shards and a tenant", timersNamed(expired(backend.Owned{Shards: []int{2, 0}, Tenant: acme}, none, 100)), slices.Concat(want[:1], want[2:5]))
	eq(x, "of no shards", timersNamed(expired(backend.Owned{Shards: []int{}}, none, 100)), nil)
	for _, limit := range []int{1, 2, 5} {
		var walked []string
		for at := none; len(walked) < 50; {
			rows := expired(backend.Owned{}, at, limit)
			if len(rows) == 0 {
				break
			}
			walked = append(walked, timersNamed(rows)...)
			at = backend.TimerPosition{Set: true, FireAt: rows[len(rows)-1].FireAt, Key: rows[len(rows)-1].Key()}
		}
		eq(x, fmt.Sprintf("pages of %d", limit), walked, want)
	}
	x.view(func(r backend.Reader) {
		eq(x, "before all", len(got(r.ExpiredTimers(ctx, start.Add(-time.Microsecond), backend.Owned{}, none, 100))(x)), 0)
		eq(x, "at the end of time", len(got(r.ExpiredTimers(ctx, start.AddDate(5000, 0, 0), backend.Owned{}, none, 100))(x)), 12)
	})
}

func listTimers(x *bench) {
	w := x.flow(acme, "1")
	c, a, b, early := x.timer(w, "c", time.Second), x.timer(w, "a", time.Second), x.timer(w, "b", time.Second), x.timer(w, "z", 0)
	b.Class, b.Effect, early.Class = rendezvous.TimerWait, "e", rendezvous.TimerRun
	x.apply(&backend.Changes{Timers: []*backend.Timer{c, a, b, early}}, w.Key())
	x.armed(x.flow(acme, "2"), "m", 0)
	list := func(class rendezvous.TimerClass, after backend.TimerPosition, limit int) []string {
		x.Helper()
		var rows []*backend.Timer
		x.view(func(r backend.Reader) { rows = got(r.ListTimers(ctx, w.Key(), class, after, limit))(x) })
		return timersNamed(rows)
	}
	none := backend.TimerPosition{}
	eq(x, "all", list("", none, 100), []string{"acme/w1/z", "acme/w1/a", "acme/w1/b", "acme/w1/c"})
	eq(x, "two", list("", none, 2), []string{"acme/w1/z", "acme/w1/a"})
	eq(x, "of a class", list(rendezvous.TimerAuthor, none, 100), []string{"acme/w1/a", "acme/w1/c"})
	at := backend.TimerPosition{Set: true, FireAt: a.FireAt, Key: a.Key()}
	eq(x, "behind a row", list("", at, 1), []string{"acme/w1/b"})
	eq(x, "of a class, behind a row", list(rendezvous.TimerAuthor, at, 9), []string{"acme/w1/c"})
	eq(x, "behind a row that went", list("", backend.TimerPosition{Set: true, FireAt: a.FireAt, Key: backend.TimerKey{Tenant: acme, WorkflowID: "w1", TimerID: "bb"}}, 9),
		[]string{"acme/w1/c"})
}

func countTimers(x *bench) {
	w, start := x.flow(acme, "1"), x.now()
	x.view(func(r backend.Reader) { eq(x, "counts of nothing", got(r.CountTimers(ctx, acme))(x), nil) })
	due, parked, failing := x.timer(w, "due", 0), x.timer(w, "parked", 0), x.timer(w, "failing", 0)
	parked.Parks, parked.DueAt, parked.ReadyAt = 1, start.Add(5*time.Second), start.Add(5*time.Second)
	failing.Attempts, failing.Parks, failing.LastError = 2, 1, "unavailable"
	claimed := held(x.timer(w, "claimed", -time.Second), 1, 1, start.Add(time.Minute))
	claimed.Class, claimed.Effect, claimed.Shard = rendezvous.TimerWait, "e", (w.Shard+1)%64
	x.apply(&backend.Changes{Timers: []*backend.Timer{due, parked, failing, claimed, x.timer(w, "later", time.Microsecond)}}, w.Key())
	x.armed(x.flow(globex, "1"), "due", 0)
	x.view(func(r backend.Reader) {
		eq(x, "counts", got(r.CountTimers(ctx, acme))(x), map[rendezvous.TimerClass]backend.TimerCount{
			rendezvous.TimerAuthor: {Pending: 2, Due: 2, Parked: 2, Failing: 1, OldestDue: start},
			rendezvous.TimerWait:   {Due: 1, OldestDue: start.Add(-time.Second)},
		})
	})
}

func timerRecords(x *bench) {
	w, at := x.flow(acme, "1"), x.now()
	rec := func(seq int64, kind rendezvous.Kind, data any) *backend.Record { return record(w, seq, kind, data, at) }
	start := func(seq int64, id string) *backend.Record {
		return rec(seq, rendezvous.TimerStarted, rendezvous.TimerStartedData{TimerID: id, FireAt: rendezvous.FormatInstant(at)})
	}
	all := []*backend.Record{
		start(2, "fired"), start(3, "cancelled"), start(4, "again"), start(5, "armed"),
		rec(6, rendezvous.TimerFired, rendezvous.TimerFiredData{TimerID: "fired", ArmedSeq: 2}),
		rec(7, rendezvous.TimerCancelled, rendezvous.TimerCancelledData{TimerID: "cancelled", ArmedSeq: 3}),
		start(8, "again"), rec(9, rendezvous.Note, rendezvous.NameData{Name: "armed"}), start(10, `odd "é" \ id`),
		rec(11, rendezvous.TimerFired, rendezvous.TimerFiredData{TimerID: "again", ArmedSeq: 8}), start(12, "again"),
	}
	later := rec(14, "timer.paused", rendezvous.TimerFiredData{TimerID: "armed"}) // of another build
	foreign := start(13, "armed")
	foreign.RunID = "another run"
	x.apply(&backend.Changes{Records: append(all, foreign, later)}, w.Key())
	key := func(tenant, run, id string) backend.RunTimerKey {
		return backend.RunTimerKey{Tenant: tenant, RunID: run, TimerID: id}
	}
	want := map[backend.RunTimerKey]rendezvous.Record{
		key(acme, "r1", "fired"): all[4].Record, key(acme, "r1", "cancelled"): all[5].Record, key(acme, "r1", "again"): all[10].Record,
		key(acme, "r1", "armed"): all[3].Record, key(acme, "r1", `odd "é" \ id`): all[8].Record, key(acme, "another run", "armed"): foreign.Record,
	}
	keys := []backend.RunTimerKey{key(acme, "r1", "none"), key(globex, "r1", "fired"), key(acme, "r2", "fired")}
	for k := range want {
		keys = append(keys, k, k)
	}
	x.view(func(r backend.Reader) {
		eq(x, "last records", got(r.LastTimerRecords(ctx, keys))(x), want)
		armed := []rendezvous.Record{all[3].Record, all[8].Record, all[10].Record}
		eq(x, "armings that stand", got(r.OutstandingTimers(ctx, runKey(acme, "r1"), 10))(x), armed)
		eq(x, "two of them", got(r.OutstandingTimers(ctx, runKey(acme, "r1"), 2))(x), armed[:2])
		eq(x, "armings of another tenant", len(got(r.OutstandingTimers(ctx, runKey(globex, "r1"), 10))(x)), 0)
	})
}

func finalFailures(x *bench) {
	w, at := x.flow(acme, "1"), x.now()
	named := rendezvous.NameData{Name: "charge"}
	final, retryable := rendezvous.EffectFailedData{Code: "final"}, rendezvous.EffectFailedData{Code: "again", Retryable: true}
	seq := int64(1)
	put := func(kind rendezvous.Kind, name string, attempt int, data any) *backend.Record {
		seq++
		return effect(w, seq, kind, name, attempt, data, at)
	}
	x.apply(&backend.Changes{Records: []*backend.Record{
		put(rendezvous.EffectStarted, "zeta", 1, named), put(rendezvous.EffectFailed, "zeta", 1, final),
		put(rendezvous.EffectStarted, "retryable", 1, named), put(rendezvous.EffectFailed, "retryable", 1, retryable),
		put(rendezvous.EffectStarted, "reopened", 1, named), put(rendezvous.EffectFailed, "reopened", 1, final), put(rendezvous.EffectStarted, "reopened", 2, named),
		put(rendezvous.EffectStarted, "done", 1, named), put(rendezvous.EffectFailed, "done", 1, final),
		put(rendezvous.EffectStarted, "done", 2, named), put(rendezvous.EffectDone, "done", 2, struct{}{}),
		put(rendezvous.EffectStarted, "alpha", 1, named), put(rendezvous.EffectFailed, "alpha", 1, retryable),
		put(rendezvous.EffectStarted, "alpha", 2, named), put(rendezvous.EffectFailed, "alpha", 2, final),
		put(rendezvous.EffectStarted, "softened", 1, named), put(rendezvous.EffectFailed, "softened", 1, final),
		put(rendezvous.EffectStarted, "softened", 2, named), put(rendezvous.EffectFailed, "softened", 2, retryable),
		put(rendezvous.EffectStarted, "open", 1, named), put(rendezvous.EffectStarted, "open", 2, named), put(rendezvous.EffectFailed, "open", 1, final),
		put(rendezvous.WaitRegistered, "wait", 1, rendezvous.WaitRegisteredData{Type: "paid"}),
	}}, w.Key())
	x.view(func(r backend.Reader) {
		eq(x, "final failures", got(r.FinalFailures(ctx, runKey(acme, "r1")))(x), []string{"alpha", "zeta"})
		eq(x, "of another run", got(r.FinalFailures(ctx, runKey(acme, "r2")))(x), nil)
		eq(x, "of another tenant", got(r.FinalFailures(ctx, runKey(globex, "r1")))(x), nil)
	})
}

// CorruptTimer asks what a backend makes of a timer whose row does not decode, which damage does to it: it keeps its place and can be put off (R9).
func CorruptTimer(t *testing.T, b backend.Backend, damage func(tenant, workflowID, timerID string) error) {
	x := &bench{T: t, b: b}
	w, start := x.flow(acme, "1"), x.now()
	x.armed(w, "a", 0)
	bad := x.armed(w, "b", 0)
	x.armed(w, "c", 0)
	if err := damage(acme, "w1", "b"); err != nil {
		t.Fatal(err)
	}
	row := x.timerRow(bad.Key())
	if row == nil || rendezvous.CodeOf(row.Corrupt) != rendezvous.CodeCorrupt {
		t.Fatalf("the damaged row is %+v", row)
	}
	x.view(func(r backend.Reader) {
		for what, rows := range map[string][]*backend.Timer{
			"expired": got(r.ExpiredTimers(ctx, start, backend.Owned{}, backend.TimerPosition{}, 10))(x),
			"listed":  got(r.ListTimers(ctx, w.Key(), "", backend.TimerPosition{}, 10))(x),
			"of":      got(r.TimersOf(ctx, []backend.WorkflowKey{w.Key()}, start))(x),
		} {
			names := timersNamed(rows)
			if slices.Sort(names); what != "of" {
				eq(x, what, timersNamed(rows), names)
			}
			eq(x, what, names, []string{"acme/w1/a", "acme/w1/b", "acme/w1/c"})
		}
	})
	x.update(func(tx backend.Tx) {
		rows, _, err := tx.DueTimers(ctx, []int{w.Shard}, 10)
		if err != nil {
			t.Fatal(err)
		}
		eq(x, "due", timersNamed(rows), []string{"acme/w1/a", "acme/w1/b", "acme/w1/c"})
		row := rows[1]
		eq(x, "what is good", []any{row.Key(), row.Shard, row.RunID, row.FireAt, row.DueAt}, []any{bad.Key(), bad.Shard, bad.RunID, bad.FireAt, bad.DueAt})
		row.Attempts, row.LastError = row.Attempts+1, "corrupt"
		row.DueAt, row.ReadyAt = start.Add(time.Minute), start.Add(time.Minute)
		got(tx.LockWorkflows(ctx, []backend.WorkflowKey{w.Key()}))(x)
		if err := tx.Apply(ctx, &backend.Changes{Timers: []*backend.Timer{row}}); err != nil {
			t.Fatal(err)
		}
	})
	names, _ := x.dueNow([]int{w.Shard}, 10)
	eq(x, "due once it was put off", names, []string{"acme/w1/a", "acme/w1/c"})
	row = x.timerRow(bad.Key())
	if row.Attempts != 1 || !row.DueAt.Equal(start.Add(time.Minute)) || row.Corrupt == nil || !row.FireAt.Equal(bad.FireAt) {
		t.Fatalf("put off it is %+v", row)
	}
	x.view(func(r backend.Reader) {
		eq(x, "counts", got(r.CountTimers(ctx, acme))(x), map[rendezvous.TimerClass]backend.TimerCount{
			rendezvous.TimerAuthor: {Pending: 1, Due: 2, Failing: 1, OldestDue: start},
		})
	})
	err := b.View(ctx, "test", func(ctx context.Context, r backend.Reader) error {
		_, err := r.(backend.Source).Scan(ctx, backend.Timers, backend.Position{}, 10, 1<<20)
		return err
	})
	isCode(x, "scan", err, rendezvous.CodeCorrupt)
	x.apply(&backend.Changes{GoneTimers: []backend.TimerKey{bad.Key()}}, w.Key())
	eq(x, "the row that went", x.timerRow(bad.Key()), nil)
}
