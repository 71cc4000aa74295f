package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// What the cases of timers and deadlines say most.

// endOfTime is the last instant that a store keeps.
var endOfTime = time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)

// TimerPod is a pod of the timer-workers: a handle that owns every shard.
type TimerPod struct {
	store.PoolHandle
	T     testing.TB
	Owned []store.ShardEpoch
}

// TimerPod makes a pod of an incarnation of its own, which owns what nobody else does.
func (h *Harness) TimerPod(t testing.TB) *TimerPod {
	t.Helper()
	p := &TimerPod{PoolHandle: must(h.Store.PoolHandle(store.PoolTimer, ID("pod")+"/1"))(t, "take a handle of the timer pool"), T: t}
	p.Own(t)
	return p
}

// Own acquires what is free and holds on to what is held, as long as a lease may last.
func (p *TimerPod) Own(t testing.TB) {
	t.Helper()
	shards := make([]int, rendezvous.DefaultShards)
	for i := range shards {
		shards[i] = i
	}
	got := must(p.AcquireOwnedShards(ctx, shards, store.MaxShardTTL))(t, "acquire shards")
	p.Owned = nil
	for _, s := range got.Won {
		p.Owned = append(p.Owned, store.ShardEpoch{Shard: s.Shard, Epoch: s.Epoch})
	}
}

// Page fires one page of what is due, limit 0 being the default.
func (p *TimerPod) Page(t testing.TB, limit int) store.FiredPage {
	t.Helper()
	p.Own(t)
	return must(p.FireDueTimers(ctx, p.Owned, limit))(t, "fire due timers")
}

// Fire fires pages until nothing more is due.
func (p *TimerPod) Fire(t testing.TB) []store.Fire {
	t.Helper()
	var all []store.Fire
	for pages := 0; ; pages++ {
		page := p.Page(t, 0)
		all = append(all, page.Fires...)
		if !page.Full {
			return all
		}
		if pages == 1000 {
			t.Fatal("pages of due timers never end")
		}
	}
}

// Hold claims due timers for a minute.
func (p *TimerPod) Hold(t testing.TB, limit int) []store.HeldTimer {
	t.Helper()
	return must(p.ClaimDueTimers(ctx, p.Owned, time.Minute, limit))(t, "claim due timers")
}

// one is the only one of a page's outcomes, of that kind.
func one(t testing.TB, what string, fires []store.Fire, want store.FireOutcome) store.Fire {
	t.Helper()
	if len(fires) != 1 {
		t.Fatalf("%s: %d outcomes, want 1: %+v", what, len(fires), fires)
	}
	if fires[0].Outcome != want {
		t.Fatalf("%s: outcome %s (%v), want %s", what, fires[0].Outcome, fires[0].Err, want)
	}
	return fires[0]
}

// outcomes are the outcomes of fires by timer id.
func outcomes(fires []store.Fire) map[string]store.FireOutcome {
	m := map[string]store.FireOutcome{}
	for _, f := range fires {
		m[f.TimerID] = f.Outcome
	}
	return m
}

// idsOf are the timer ids of fires, in their order.
func idsOf(fires []store.Fire) []string {
	ids := make([]string, len(fires))
	for i, f := range fires {
		ids[i] = f.TimerID
	}
	return ids
}

// In is that long from the store's now.
func (h *Harness) In(t testing.TB, d time.Duration) time.Time {
	t.Helper()
	return h.Now(t).Add(d)
}

// Arm arms a timer of the run without a lease.
func (r *Flow) Arm(id string, at time.Time) store.Arming {
	r.F.T.Helper()
	a := store.Arm{RunID: r.ID, TimerID: id, FireAt: at, BatchID: ID("batch")}
	return must(r.F.ArmTimer(ctx, a, now))(r.F.T, "arm "+id).Arming
}

// ArmIn arms a timer of the run that long from now, without a lease.
func (r *Flow) ArmIn(id string, after time.Duration) store.Arming {
	r.F.T.Helper()
	a := store.Arm{RunID: r.ID, TimerID: id, After: &after, BatchID: ID("batch")}
	return must(r.F.ArmTimer(ctx, a, now))(r.F.T, "arm "+id).Arming
}

// ArmIn arms a timer under the driver's epoch.
func (d *Driver) ArmIn(id string, after time.Duration) store.Arming {
	d.F.T.Helper()
	a := store.Arm{RunID: d.ID, Epoch: d.Epoch, TimerID: id, After: &after, BatchID: ID("batch")}
	out := must(d.F.ArmTimer(ctx, a, now))(d.F.T, "arm "+id)
	d.Seen = max(d.Seen, out.ArmedSeq)
	return out.Arming
}

// CancelArmed cancels a timer without a lease.
func (r *Flow) CancelArmed(id string) store.CancelledTimer {
	r.F.T.Helper()
	return must(r.F.CancelTimer(ctx, r.ID, 0, id, ID("batch"), "", now))(r.F.T, "cancel "+id)
}

// Timers are the workflow's live armings, soonest first.
func (r *Flow) Timers() []store.Timer {
	r.F.T.Helper()
	return r.timersOf(store.WorkflowRef{WorkflowID: r.WorkflowID}, "")
}

func (r *Flow) timersOf(ref store.WorkflowRef, class rendezvous.TimerClass) []store.Timer {
	r.F.T.Helper()
	var all []store.Timer
	for cursor := ""; ; {
		page := must(r.F.ListTimers(ctx, ref, class, 0, cursor))(r.F.T, "list timers")
		all = append(all, page.Timers...)
		if cursor = page.NextCursor; cursor == "" {
			return all
		}
	}
}

// Timer is the workflow's live arming of that id, nil when there is none.
func (r *Flow) Timer(id string) *store.Timer {
	r.F.T.Helper()
	for _, t := range r.Timers() {
		if t.TimerID == id {
			return &t
		}
	}
	return nil
}

// WantTimers fails the test unless the workflow's rows are exactly those of the ids, soonest first, and its count says so.
func (r *Flow) WantTimers(ids ...string) {
	r.F.T.Helper()
	var got []string
	for _, t := range r.Timers() {
		got = append(got, t.TimerID)
	}
	eq(r.F.T, "live timers of "+r.WorkflowID, got, ids)
	eq(r.F.T, "count of live timers of "+r.WorkflowID, r.Describe().LiveTimers, len(ids))
}

// WantArmed fails the test unless that timer is armed exactly so, and due then.
func (r *Flow) WantArmed(id string, a store.Arming) store.Timer {
	r.F.T.Helper()
	row := r.Timer(id)
	if row == nil {
		r.F.T.Fatalf("timer %s of %s has no row, want one armed by %d", id, r.ID, a.ArmedSeq)
	}
	eq(r.F.T, "arming of "+id, row.Arming, a)
	eq(r.F.T, "due instant of "+id, row.DueAt, a.FireAt)
	eq(r.F.T, "run of "+id, row.RunID, r.ID)
	return *row
}

// allTimers are all rows of timers in the store, by (fire_at, tenant, workflow id, timer id).
func (h *Harness) allTimers(t testing.TB) []store.Timer {
	t.Helper()
	return h.expired(t, h.Store, endOfTime, store.Scope{}, 0)
}

// expired walks ExpiredTimers in pages of limit.
func (h *Harness) expired(t testing.TB, e store.Enumerations, asOf time.Time, s store.Scope, limit int) []store.Timer {
	t.Helper()
	var all []store.Timer
	for after := (*store.TimerPosition)(nil); ; {
		page := must(e.ExpiredTimers(ctx, asOf, s, after, limit))(t, "list expired timers")
		if limit > 0 && len(page) > limit {
			t.Fatalf("a page of %d rows, want at most %d", len(page), limit)
		}
		all = append(all, page...)
		if len(page) == 0 {
			return all
		}
		last := page[len(page)-1]
		after = &store.TimerPosition{FireAt: last.FireAt, Tenant: last.Tenant, WorkflowID: last.WorkflowID, TimerID: last.TimerID}
	}
}

// noRows fails the test if any timer's row is left in the store.
func (h *Harness) noRows(t testing.TB) {
	t.Helper()
	eq(t, "rows of timers left", h.allTimers(t), nil)
}

// TimedAt makes timer.started with an instant.
func (r *Flow) TimedAt(id string, at time.Time) rendezvous.Record {
	return r.record(rendezvous.TimerStarted, "", rendezvous.TimerStartedData{TimerID: id, FireAt: rendezvous.FormatInstant(at)})
}

// TimedIn makes timer.started with a duration.
func (r *Flow) TimedIn(id string, after time.Duration) rendezvous.Record {
	micros := after.Microseconds()
	return r.record(rendezvous.TimerStarted, "", rendezvous.TimerStartedData{TimerID: id, After: &micros})
}

// FiredAs makes timer.fired of an arming.
func (r *Flow) FiredAs(id string, armed int64) rendezvous.Record {
	return r.record(rendezvous.TimerFired, "", rendezvous.TimerFiredData{TimerID: id, ArmedSeq: armed})
}

// CancelledAs makes timer.cancelled of an arming.
func (r *Flow) CancelledAs(id string, armed int64) rendezvous.Record {
	return r.record(rendezvous.TimerCancelled, "", rendezvous.TimerCancelledData{TimerID: id, ArmedSeq: armed})
}

// TimedOut makes wait.timed_out.
func (r *Flow) TimedOut(effect string) rendezvous.Record {
	return r.record(rendezvous.WaitTimedOut, effect, nil)
}

// fired are the records that tell of a timer's firing.
func (r *Flow) fired(id string) []rendezvous.TimerFiredData {
	r.F.T.Helper()
	var all []rendezvous.TimerFiredData
	for _, rec := range r.History() {
		if rec.Kind != rendezvous.TimerFired {
			continue
		}
		var d rendezvous.TimerFiredData
		done(r.F.T, "decode a timer.fired", rendezvous.DecodeData(rec, &d))
		if d.TimerID == id {
			all = append(all, d)
		}
	}
	return all
}

// WantFired fails the test unless exactly those armings of the timer fired, in their order.
func (r *Flow) WantFired(id string, armings ...store.Arming) {
	r.F.T.Helper()
	var want []rendezvous.TimerFiredData
	for _, a := range armings {
		want = append(want, rendezvous.TimerFiredData{TimerID: id, FireAt: rendezvous.FormatInstant(a.FireAt), ArmedSeq: a.ArmedSeq})
	}
	eq(r.F.T, "firings of "+id, r.fired(id), want)
}

// Until makes a wait of the run with a deadline.
func (r *Flow) Until(at time.Time, effect, kind string, keys ...rendezvous.Key) rendezvous.Wait {
	w := r.Wait(effect, kind, keys...)
	w.Deadline = at
	return w
}

// WaitsUntil registers a wait with a deadline, without a lease, that nothing answers yet.
func (r *Flow) WaitsUntil(at time.Time, effect, kind string, keys ...rendezvous.Key) rendezvous.Wait {
	r.F.T.Helper()
	w := r.Until(at, effect, kind, keys...)
	eq(r.F.T, "outcome of registering "+effect, r.Register(w).Outcome, store.RegisterWaiting)
	return w
}

// closings are the records that closed a wait of the run.
func (r *Flow) closings(effect string) []rendezvous.Record {
	r.F.T.Helper()
	return slices.DeleteFunc(r.History(), func(rec rendezvous.Record) bool {
		return rec.RunID != r.ID || rec.Effect != effect || rec.Kind.Phase() != rendezvous.PhaseClose
	})
}

// WantTimedOut fails the test unless a time-out at exactly that deadline closed the wait, whose row and timer are gone.
func (r *Flow) WantTimedOut(effect string, deadline time.Time) rendezvous.Record {
	r.F.T.Helper()
	all := r.closings(effect)
	if len(all) != 1 || all[0].Kind != rendezvous.WaitTimedOut {
		r.F.T.Fatalf("closings of %s: %v, want one time-out", effect, all)
	}
	eq(r.F.T, "data of the time-out", string(all[0].Data), string(rendezvous.EncodeData(rendezvous.DeadlineData{Deadline: rendezvous.FormatInstant(deadline)})))
	eq(r.F.T, "row of the timed out wait", r.Row(effect), nil)
	eq(r.F.T, "timer of the timed out wait", r.Timer(rendezvous.WaitTimerID(r.ID, effect)), nil)
	return all[0]
}

// reconcile walks all workflows of the pod and answers what was mended.
func (h *Harness) reconcile(t testing.TB, p *TimerPod, deep bool) store.TimerRepairs {
	t.Helper()
	var did store.TimerRepairs
	for after := (*store.WorkflowPosition)(nil); ; {
		got := must(p.ReconcileTimers(ctx, p.Owned, deep, after, 0))(t, "reconcile timers")
		did.Missing += got.Repairs.Missing
		did.Orphan += got.Repairs.Orphan
		did.Count += got.Repairs.Count
		did.Unreadable += got.Repairs.Unreadable
		if after = got.Next; after == nil {
			return did
		}
	}
}
