package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// timersRows is timers.md sections 1 and 3: rows, their lists and the verbs that repair them.
var timersRows = []Case{
	{Name: "TM-1 expired timers include the instant itself and nothing behind it", Run: expiredInclusive},
	{Name: "TM-4 expired timers come in their order, in pages, within scope and tenant, held and parked ones marked", Run: expiredPages},
	{Name: "TM-5 retiring an arming removes its row, and is retired again", Run: retiredOnce},
	{Name: "TM-6 retiring another arming is superseded and leaves the row", Run: retiredStale},
	{Name: "TM-7 a stale retire of an equal instant is superseded, and the new arming fires", Run: retiredEqual},
	{Name: "TM-8 armed_seq 0 is an identity of its own; ticks are refused by name", Run: armedByNothing},
	{Name: "TM-9 scheduling writes only the row of an arming that the history holds", Run: scheduled},
	{Name: "TM-9 a late schedule brings no consumed arming back", Run: scheduledLate},
	{Name: "TM-9 scheduling and retiring at once leave the row or not, never another", Run: scheduledAtOnce},
	{Name: "TM-10 no road out of an arming leaves its row", Run: noRowLeft},
	{Name: "TM-35 lists and counts are exact per tenant; equal ids in two tenants are strangers", Run: timersCounted},
	{Name: "TM-35 a list of timers pages soonest first, of one class, of one run", Run: timersListed},
	{Name: "SW-35 depths count timers and those that are due, and say since when", Run: timerDepths},
	{Name: "HI-46 pages of timers resolve their limits", Run: timerPageLimits},
	{Name: "HI-38 lists and counts of timers read no history, lock nothing and write nothing", Run: timersReadOnly},
}

func expiredInclusive(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	at := h.In(t, time.Hour)
	r.Arm("at", at)
	r.Arm("behind", at.Add(time.Microsecond))
	r.Arm("before", at.Add(-time.Microsecond))
	ids := func(asOf time.Time) (ids []string) {
		for _, x := range h.expired(t, h.Store, asOf, store.Scope{}, 0) {
			ids = append(ids, x.TimerID)
		}
		return ids
	}
	eq(t, "a microsecond before", ids(at.Add(-time.Microsecond)), []string{"before"})
	eq(t, "as of the instant", ids(at), []string{"before", "at"})
	eq(t, "with nanoseconds, which round down", ids(at.Add(999)), []string{"before", "at"})
	eq(t, "a microsecond behind", ids(at.Add(time.Microsecond)), []string{"before", "at", "behind"})
	eq(t, "long before", len(ids(time.Time{}.Add(time.Microsecond))), 0)
	for what, asOf := range map[string]time.Time{"year 10000": endOfTime.Add(time.Microsecond), "year 0": time.Time{}.Add(-time.Second)} {
		_, err := h.Store.ExpiredTimers(ctx, asOf, store.Scope{}, nil, 0)
		code(t, what, err, rendezvous.CodeInvalid)
	}
}

// compareRows is the order of ExpiredTimers.
func compareRows(a, b store.Timer) int {
	return cmp.Or(a.FireAt.Compare(b.FireAt), strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.WorkflowID, b.WorkflowID), strings.Compare(a.TimerID, b.TimerID))
}

func expiredPages(t *testing.T, h *Harness) {
	tenants := []*Fix{h.FixOf(t, "acme"), h.FixOf(t, "globex"), h.FixOf(t, "Acme")}
	var flows []*Flow
	for i := range 24 {
		f := tenants[i%len(tenants)]
		flows = append(flows, f.StartAs(store.Start{WorkflowID: fmt.Sprintf("w%d/%s", i/3, []string{"a", "ä", "A"}[i%3]), RunID: ID("run"), Type: "order"}))
	}
	start := h.Now(t)
	leased := tenants[0].Start()
	leased.Arm("leased", start)
	leased.DriveFor(time.Hour)
	p := h.TimerPod(t)
	one(t, "the leased one", p.FireOnly(t, leased), store.FireParked)
	for _, i := range rand.Perm(len(flows)) {
		r := flows[i]
		var batch []rendezvous.Record
		for j := range 5 {
			batch = append(batch, r.TimedAt(fmt.Sprintf("t%d", (j*7+i)%5), start.Add(time.Duration(rand.N(4))*time.Second)))
		}
		r.AppendFree(batch...)
		r.WaitsUntil(start.Add(time.Duration(rand.N(4))*time.Second+time.Microsecond), "w", "paid", K("order", r.ID)) // not past: that would be a poll
	}
	h.Advance(time.Second)
	held := p.Hold(t, 7)
	eq(t, "held", len(held), 7)
	holds := map[string]store.HeldTimer{}
	for _, x := range held {
		holds[x.Tenant+x.WorkflowID+"/"+x.TimerID] = x
	}

	whole := h.expired(t, h.Store, endOfTime, store.Scope{}, 0)
	eq(t, "rows", len(whole), 24*6+1)
	if !slices.IsSortedFunc(whole, compareRows) {
		t.Fatalf("rows out of their order: %+v", whole)
	}
	shown := 0
	for _, x := range whole {
		if x.RunID == leased.ID {
			eq(t, "parks of the leased one", x.Parks, 1)
			eq(t, "its due instant moved", x.DueAt, start.Add(25*time.Millisecond))
			eq(t, "its instant did not", x.FireAt, start)
		}
		if h, is := holds[x.Tenant+x.WorkflowID+"/"+x.TimerID]; is {
			shown++
			eq(t, "hold shown", fmt.Sprint(x.Holder, x.HeldUntil), fmt.Sprint(h.Holder, h.HeldUntil))
		} else {
			eq(t, "no hold shown", fmt.Sprintf("%q %v", x.Holder, x.HeldUntil.IsZero()), `"" true`)
		}
	}
	eq(t, "held rows shown", shown, 7)
	for _, limit := range []int{1, 2, 7, 144, 145, 146, 10_000} {
		eq(t, fmt.Sprintf("walk in pages of %d", limit), h.expired(t, h.Store, endOfTime, store.Scope{}, limit), whole)
	}
	keep := func(keep func(x store.Timer) bool) []store.Timer {
		return slices.DeleteFunc(slices.Clone(whole), func(x store.Timer) bool { return !keep(x) })
	}
	for _, f := range tenants {
		want := keep(func(x store.Timer) bool { return x.Tenant == f.Name() })
		eq(t, "of "+f.Name(), h.expired(t, h.Store, endOfTime, store.Scope{Tenant: f.Name()}, 4), want)
	}
	shard := whole[3].Shard
	eq(t, "of a shard", h.expired(t, h.Store, endOfTime, store.Scope{Shards: []int{shard, shard}}, 2), keep(func(x store.Timer) bool { return x.Shard == shard }))
	eq(t, "of a shard and tenant", h.expired(t, h.Store, endOfTime, store.Scope{Shards: []int{shard}, Tenant: "acme"}, 2),
		keep(func(x store.Timer) bool { return x.Shard == shard && x.Tenant == "acme" }))
	eq(t, "of no shard", len(h.expired(t, h.Store, endOfTime, store.Scope{Shards: []int{}}, 0)), 0)
	eq(t, "of another tenant", len(h.expired(t, h.Store, endOfTime, store.Scope{Tenant: "nobody"}, 0)), 0)
	half := start.Add(2 * time.Second)
	eq(t, "as of the middle", h.expired(t, h.Store, half, store.Scope{}, 3), keep(func(x store.Timer) bool { return !x.FireAt.After(half) }))

	done(t, "own one shard", p.SetOwnedShards([]int{shard}))
	eq(t, "within the handle's scope", h.expired(t, p, endOfTime, store.Scope{}, 5), keep(func(x store.Timer) bool { return x.Shard == shard }))
	_, err := p.ExpiredTimers(ctx, endOfTime, store.Scope{Shards: []int{(shard + 1) % rendezvous.DefaultShards}}, nil, 0)
	code(t, "a shard outside the scope", err, rendezvous.CodeFenced)
	done(t, "own nothing", p.SetOwnedShards([]int{}))
	eq(t, "within an empty scope", len(h.expired(t, p, endOfTime, store.Scope{}, 0)), 0)
	for _, s := range []store.Scope{{Shards: []int{-1}}, {Shards: []int{rendezvous.DefaultShards}}, {Tenant: "no tenant"}} {
		_, err := h.Store.ExpiredTimers(ctx, endOfTime, s, nil, 0)
		code(t, fmt.Sprintf("scope %+v", s), err, rendezvous.CodeInvalid)
	}
}

// FireOnly fires what is due in the shard of a run, and answers what became of that run's.
func (p *TimerPod) FireOnly(t testing.TB, r *Flow) []store.Fire {
	t.Helper()
	page := must(p.FireDueTimers(ctx, p.epochs(r), 0))(t, "fire the due timers of a shard")
	return slices.DeleteFunc(page.Fires, func(f store.Fire) bool { return f.WorkflowID != r.WorkflowID || f.Tenant != r.F.Name() })
}

// epochs are what the pod owns of the run's shard.
func (p *TimerPod) epochs(r *Flow) []store.ShardEpoch {
	shard := rendezvous.Shard(r.F.Name(), r.WorkflowID, rendezvous.DefaultShards)
	return slices.DeleteFunc(slices.Clone(p.Owned), func(s store.ShardEpoch) bool { return s.Shard != shard })
}

// Retire retires an arming.
func (r *Flow) Retire(id string, a store.Arming) store.ScheduleOutcome {
	r.F.T.Helper()
	return must(r.F.RetireTimer(ctx, r.WorkflowID, id, a))(r.F.T, "retire "+id)
}

// Schedule schedules an arming.
func (r *Flow) Schedule(id string, a store.Arming) store.ScheduleOutcome {
	r.F.T.Helper()
	return must(r.F.ScheduleTimer(ctx, r.WorkflowID, id, a))(r.F.T, "schedule "+id)
}

func retiredOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.StartAs(store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order", Deadline: h.In(t, time.Hour)})
	a := r.Arm("t", h.In(t, time.Minute))
	r.WaitsUntil(h.In(t, time.Minute), "w", "paid", K("order", "1"))
	rows := r.Timers()
	eq(t, "rows", len(rows), 3)
	before := r.outlook()
	for i, x := range rows {
		for range 3 {
			eq(t, "retire "+x.TimerID, r.Retire(x.TimerID, x.Arming), store.ScheduleRetired)
			eq(t, "rows left", len(r.Timers()), len(rows)-i-1)
		}
	}
	eq(t, "the workflow besides", r.outlook(), before) // live_timers counts what the history says
	eq(t, "live timers", r.Describe().LiveTimers, 3)
	eq(t, "one that never was", r.Retire("never", a), store.ScheduleRetired)
	other := &Flow{F: f, WorkflowID: ID("workflow"), ID: ID("run")}
	eq(t, "one of an unknown workflow", other.Retire("t", a), store.ScheduleRetired)
	h.Advance(2 * time.Hour)
	eq(t, "fired", len(h.TimerPod(t).Fire(t)), 0)
	for what, call := range map[string]func() error{
		"no workflow": func() error { _, err := f.RetireTimer(ctx, "", "t", a); return err },
		"no id":       func() error { _, err := f.RetireTimer(ctx, r.WorkflowID, "", a); return err },
		"no instant": func() error {
			_, err := f.RetireTimer(ctx, r.WorkflowID, "t", store.Arming{ArmedSeq: 2})
			return err
		},
		"year 10000": func() error {
			_, err := f.RetireTimer(ctx, r.WorkflowID, "t", store.Arming{FireAt: endOfTime.Add(1), ArmedSeq: 2})
			return err
		},
		"a negative seq": func() error {
			_, err := f.RetireTimer(ctx, r.WorkflowID, "t", store.Arming{FireAt: a.FireAt, ArmedSeq: -1})
			return err
		},
	} {
		code(t, "retire with "+what, call(), rendezvous.CodeInvalid)
	}
}

func retiredStale(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	old := r.Arm("t", h.In(t, time.Minute))
	a := r.Arm("t", h.In(t, time.Hour))
	p := h.TimerPod(t)
	for what, stale := range map[string]store.Arming{
		"the arming before": old, "a stale instant": {FireAt: old.FireAt, ArmedSeq: a.ArmedSeq}, "a stale seq": {FireAt: a.FireAt, ArmedSeq: old.ArmedSeq},
		"a microsecond off": {FireAt: a.FireAt.Add(time.Microsecond), ArmedSeq: a.ArmedSeq}, "a later seq": {FireAt: a.FireAt, ArmedSeq: a.ArmedSeq + 1},
		"seq 0": {FireAt: a.FireAt},
	} {
		eq(t, what, r.Retire("t", stale), store.ScheduleSuperseded)
		r.WantArmed("t", a)
	}
	r.WantTimers("t")
	eq(t, "an instant with nanoseconds, rounded as at arming", r.Retire("t", store.Arming{FireAt: a.FireAt.Add(-999), ArmedSeq: a.ArmedSeq}), store.ScheduleRetired)
	// Holds and parks do not matter: it is the arming that is named.
	b := r.Arm("t", h.Now(t))
	eq(t, "held", len(p.Hold(t, 0)), 1)
	eq(t, "a held one", r.Retire("t", b), store.ScheduleRetired)
	c := r.Arm("t", h.Now(t))
	d := r.Drive()
	one(t, "parked", p.FireOnly(t, r), store.FireParked)
	eq(t, "a parked one, by its instant", r.Retire("t", c), store.ScheduleRetired)
	eq(t, "suspend", d.Suspend().Outcome, store.SuspendSuspended)
	h.noRows(t)
}

func retiredEqual(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	first := r.Arm("t", h.In(t, time.Minute))
	second := r.Arm("t", first.FireAt)
	eq(t, "the stale retire", r.Retire("t", first), store.ScheduleSuperseded)
	h.Advance(time.Minute)
	one(t, "page", h.TimerPod(t).Page(t, 0).Fires, store.FireFired)
	r.WantFired("t", second)
	eq(t, "either, again", r.Retire("t", first), store.ScheduleRetired)
}

func armedByNothing(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	a := r.Arm("t", h.In(t, time.Minute))
	for _, id := range []string{"t", "u", "$tick/x"} {
		_, err := f.ScheduleTimer(ctx, r.WorkflowID, id, store.Arming{FireAt: a.FireAt})
		code(t, "a tick", err, rendezvous.CodeInvalid)
		if text := err.Error(); !strings.Contains(text, "armed_seq 0") {
			t.Errorf("what is not built is refused by its name: %s", text)
		}
	}
	eq(t, "retire of seq 0 against a recorded arming", r.Retire("t", store.Arming{FireAt: a.FireAt}), store.ScheduleSuperseded)
	eq(t, "retire of seq 0 where nothing is", r.Retire("u", store.Arming{FireAt: a.FireAt}), store.ScheduleRetired)
	r.WantArmed("t", a)
}

func scheduled(t *testing.T, h *Harness) {
	f, g := h.FixOf(t, "acme"), h.FixOf(t, "globex")
	r := f.StartAs(store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order", Deadline: h.In(t, time.Hour)})
	trace := rendezvous.Trace{Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	a := must(f.ArmTimer(ctx, store.Arm{RunID: r.ID, TimerID: "t", FireAt: h.In(t, time.Minute), BatchID: ID("batch"), Trace: trace}, now))(t, "arm").Arming
	r.WaitsUntil(h.In(t, 2*time.Minute), "w", "paid", K("order", "1"))
	r.AppendFree(r.Noted("n"))
	rows, before := r.Timers(), r.outlook()
	for _, x := range rows {
		eq(t, "present "+x.TimerID, r.Schedule(x.TimerID, x.Arming), store.ScheduleUnchanged)
		eq(t, "retire "+x.TimerID, r.Retire(x.TimerID, x.Arming), store.ScheduleRetired)
		eq(t, "missing "+x.TimerID, r.Schedule(x.TimerID, x.Arming), store.ScheduleArmed)
		eq(t, "present again "+x.TimerID, r.Schedule(x.TimerID, x.Arming), store.ScheduleUnchanged)
	}
	got := r.Timers()
	for i := range got {
		rows[i].Trace = got[i].Trace // the history does not have it
	}
	eq(t, "rows as they were", got, rows)
	eq(t, "with nanoseconds, rounded as at arming", r.Schedule("t", store.Arming{FireAt: a.FireAt.Add(-1), ArmedSeq: a.ArmedSeq}), store.ScheduleUnchanged)
	for what, x := range map[string]struct {
		id string
		a  store.Arming
	}{
		"another id":                            {"u", a},
		"another instant":                       {"t", store.Arming{FireAt: a.FireAt.Add(time.Microsecond), ArmedSeq: a.ArmedSeq}},
		"a record that arms no timer":           {"t", store.Arming{FireAt: a.FireAt, ArmedSeq: r.Head()}},
		"the start's deadline under another id": {"t", rows[2].Arming},
		"a record that is not there yet":        {"t", store.Arming{FireAt: a.FireAt, ArmedSeq: r.Head() + 1}},
		"the last seq there is":                 {"t", store.Arming{FireAt: a.FireAt, ArmedSeq: rendezvous.MaxSeq}},
		"a negative seq":                        {"t", store.Arming{FireAt: a.FireAt, ArmedSeq: -5}},
		"no instant":                            {"t", store.Arming{ArmedSeq: a.ArmedSeq}},
		"no id":                                 {"", a},
		"a tick's id":                           {"$tick/x", a},
	} {
		_, err := f.ScheduleTimer(ctx, r.WorkflowID, x.id, x.a)
		code(t, "schedule by "+what, err, rendezvous.CodeInvalid)
	}
	_, err := f.ScheduleTimer(ctx, ID("workflow"), "t", a)
	code(t, "an unknown workflow", err, rendezvous.CodeNotFound)
	_, err = g.ScheduleTimer(ctx, r.WorkflowID, "t", a)
	code(t, "another tenant's workflow", err, rendezvous.CodeNotFound)
	eq(t, "the workflow besides", r.outlook(), before)
	h.Advance(time.Minute)
	p := h.TimerPod(t)
	p.Fire(t)
	r.WantFired("t", a) // a row that was written again fires as any other
	r.Conclude(rendezvous.StatusCompleted)
	_, err = f.ScheduleTimer(ctx, r.WorkflowID, "t", a)
	code(t, "a sealed run", err, rendezvous.CodeSealed, "outcome", string(rendezvous.StatusCompleted))
	h.noRows(t)
}

func scheduledLate(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r := f.Start()
	superseded := func(what, id string, a store.Arming) {
		t.Helper()
		rows := h.allTimers(t)
		eq(t, "schedule "+what, r.Schedule(id, a), store.ScheduleSuperseded)
		eq(t, "rows after scheduling "+what, h.allTimers(t), rows)
	}
	first := r.Arm("t", h.In(t, time.Minute))
	second := r.Arm("t", h.In(t, 2*time.Minute))
	superseded("a replaced arming", "t", first)
	eq(t, "retire", r.Retire("t", second), store.ScheduleRetired)
	superseded("a replaced arming whose successor has no row", "t", first)
	eq(t, "schedule", r.Schedule("t", second), store.ScheduleArmed)
	r.CancelArmed("t")
	superseded("a cancelled arming", "t", second)
	third := r.Arm("t", h.Now(t))
	p.Fire(t)
	superseded("a fired arming", "t", third)
	fourth := r.Arm("t", endOfTime)
	for what, end := range map[string]func(effect string, key rendezvous.Key){
		"answered": func(_ string, key rendezvous.Key) { f.Send(EventOf("paid", key)) },
		"withdrawn": func(effect string, _ rendezvous.Key) {
			must(f.Unsubscribe(ctx, r.WaitID(effect), 0, "", now))(t, "withdraw")
		},
		"timed out": func(string, rendezvous.Key) { h.Advance(time.Hour); p.Fire(t) },
	} {
		key := K("order", ID("key"))
		effect := ID("wait")
		w := r.WaitsUntil(h.In(t, time.Hour), effect, "paid", key)
		id := rendezvous.WaitTimerID(r.ID, effect)
		a := r.Timer(id).Arming
		eq(t, "deadline", a.FireAt, w.Deadline)
		end(effect, key)
		superseded("the deadline of a wait that was "+what, id, a)
	}
	old := r
	r = r.Continue()
	superseded("an arming of the run before", "t", fourth)
	deadline := rendezvous.RunTimerID(old.ID)
	_, err := f.ScheduleTimer(ctx, r.WorkflowID, deadline, store.Arming{FireAt: endOfTime, ArmedSeq: 1})
	code(t, "a deadline that a run never had", err, rendezvous.CodeInvalid)
	h.noRows(t)
}

func scheduledAtOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	for range h.Rounds(t) {
		a := r.Arm("t", endOfTime)
		b := store.Arming{}
		var retired, scheduled store.ScheduleOutcome
		var errs [3]error
		Race(t,
			func() { retired, errs[0] = f.RetireTimer(ctx, r.WorkflowID, "t", a) },
			func() { scheduled, errs[1] = f.ScheduleTimer(ctx, r.WorkflowID, "t", a) },
			func() {
				var out store.Armed
				out, errs[2] = f.ArmTimer(ctx, store.Arm{RunID: r.ID, TimerID: "t", FireAt: endOfTime, BatchID: ID("batch")}, now)
				b = out.Arming
			},
		)
		for _, err := range errs {
			done(t, "retire, schedule and arm at once", err)
		}
		r.WantArmed("t", b)
		if retired != store.ScheduleRetired && retired != store.ScheduleSuperseded || scheduled == store.ScheduleRetired {
			t.Fatalf("retire: %s, schedule: %s", retired, scheduled)
		}
	}
	h.reconcile(t, h.TimerPod(t), false) // an arming over a row that was taken away by hand is counted twice
	r.WantTimers("t")
}

func noRowLeft(t *testing.T, h *Harness) {
	p := h.TimerPod(t)
	for _, f := range h.Two(t) {
		for what, end := range map[string]func(r *Flow, key rendezvous.Key){
			"fire":   func(*Flow, rendezvous.Key) { h.Advance(time.Hour); p.Fire(t) },
			"answer": func(r *Flow, key rendezvous.Key) { f.Send(EventOf("paid", key)); r.CancelArmed("t") },
			"an answer a driver collects": func(r *Flow, key rendezvous.Key) {
				d := r.Drive()
				f.Send(EventOf("paid", key))
				d.Collect()
				d.Append(r.CancelledAs("t", 2))
				d.Release()
			},
			"an answer a driver appends": func(r *Flow, key rendezvous.Key) {
				d := r.Drive()
				e := EventOf("paid", key)
				f.Send(e)
				d.Append(r.Answered("w", e), r.CancelledAs("t", 2))
				d.Release()
			},
			"withdrawal": func(r *Flow, _ rendezvous.Key) {
				must(f.Unsubscribe(ctx, r.WaitID("w"), 0, "", now))(t, "withdraw")
				r.CancelArmed("t")
			},
			"a withdrawal of all": func(r *Flow, _ rendezvous.Key) {
				_, _, err := f.UnsubscribeRun(ctx, r.ID, 0, nil, now)
				done(t, "withdraw all", err)
				r.CancelArmed("t")
			},
			"an appended withdrawal": func(r *Flow, _ rendezvous.Key) { r.AppendFree(r.Withdrawn("w"), r.CancelledAs("t", 2)) },
			"conclusion":             func(r *Flow, _ rendezvous.Key) { r.Conclude(rendezvous.StatusFailed) },
			"an appended terminal":   func(r *Flow, _ rendezvous.Key) { r.AppendFree(r.Completed()) },
			"cancellation":           func(r *Flow, _ rendezvous.Key) { r.Revoke() },
			"continuation":           func(r *Flow, _ rendezvous.Key) { r.Continue() },
			"suspension": func(r *Flow, _ rendezvous.Key) {
				d := r.Drive()
				h.Advance(10 * time.Second)
				h.Advance(time.Hour)
				d.Suspend()
			},
		} {
			r, key := f.Start(), K("order", ID("key"))
			r.Arm("t", h.In(t, time.Minute))
			r.WaitsUntil(h.In(t, time.Minute), "w", "paid", key)
			eq(t, "rows before "+what, len(r.Timers()), 2)
			end(r, key)
			eq(t, "rows after "+what, len(h.allTimers(t)), 0)
			eq(t, "live timers after "+what, r.Describe().LiveTimers, 0)
		}
	}
	eq(t, "timers in the depths", must(h.Store.Depths(ctx))(t, "depths").Timers, 0)
}
