package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// pushWaking is push.md section 2: idleness, and the appends that end it.
var pushWaking = []Case{
	{Name: "PU-27 PU-104 every road to a record wakes the idle rows that take it, in its own commit", Run: pushRoads},
	{Name: "PU-104 records that nobody takes wake nobody; the terminal wakes all, whatever its kind", Run: pushTerminalWakes},
	{Name: "PU-104 a row that takes only run.completed stays idle through many answers", Run: pushIdleThroughAnswers},
	{Name: "PU-27 an append wakes only idle rows, and only its run's", Run: pushWakesIdleOnly},
	{Name: "PU-27 records of the next run wake no row of the last", Run: pushWakesNoFormerRun},
	{Name: "PU-27 a notice lost with its commit's answer leaves the row due", Run: pushWakesWithoutNotice},
	{Name: "PU-27 an append that fails wakes nobody", Run: pushWakesOrNot},
	{Name: "PU-104 a workflow without registrations asks nothing about them, one with them one statement a batch", Run: pushWakesCheaply},
	{Name: "PU-27 a batch of many workflows wakes the rows of each", Run: pushWakesMany},
}

// pushRoad is a road to a record. begin prepares a run and answers the step that records.
type pushRoad struct {
	name  string
	kind  rendezvous.Kind
	begin func(r *Flow) (step func() store.Notices)
}

var pushRoadsAll = []pushRoad{
	{"append", rendezvous.Note, func(r *Flow) func() store.Notices {
		return func() store.Notices { return r.AppendFree(r.Noted("n")).Notices }
	}},
	{"append under a lease", rendezvous.EffectStarted, func(r *Flow) func() store.Notices {
		d := r.Drive()
		return func() store.Notices { return d.Append(r.Begun("e")).Notices }
	}},
	{"register a wait", rendezvous.WaitRegistered, func(r *Flow) func() store.Notices {
		return func() store.Notices { return r.Register(r.Wait("w", "paid", K("order", r.ID))).Notices }
	}},
	{"subscribe", rendezvous.WaitRegistered, func(r *Flow) func() store.Notices {
		return func() store.Notices {
			return must(r.F.Subscribe(ctx, store.Registration{Wait: r.Wait("w", "paid", K("order", r.ID))}, now))(r.F.T, "subscribe").Notices
		}
	}},
	{"register a batch", rendezvous.WaitRegistered, func(r *Flow) func() store.Notices {
		return func() store.Notices {
			item := store.RegisterItem{Tenant: r.F.Name(), Registration: store.Registration{Wait: r.Wait("w", "paid", K("order", r.ID))}}
			return must(r.F.H.Store.RegisterBatch(ctx, []store.RegisterItem{item}, now))(r.F.T, "register")[0].Notices
		}
	}},
	{"register and meet", rendezvous.WaitAnswered, func(r *Flow) func() store.Notices {
		r.F.PutNew("paid", K("order", r.ID))
		return func() store.Notices { return r.Register(r.Wait("w", "paid", K("order", r.ID))).Notices }
	}},
	{"withdraw", rendezvous.WaitWithdrawn, func(r *Flow) func() store.Notices {
		r.Waits("w", "paid", K("order", r.ID))
		return func() store.Notices {
			return must(r.F.Unsubscribe(ctx, r.WaitID("w"), 0, "", now))(r.F.T, "withdraw").Notices
		}
	}},
	{"withdraw all", rendezvous.WaitWithdrawn, func(r *Flow) func() store.Notices {
		r.Waits("w", "paid", K("order", r.ID))
		return func() store.Notices {
			_, n, err := r.F.UnsubscribeRun(ctx, r.ID, 0, nil, now)
			done(r.F.T, "withdraw all", err)
			return n
		}
	}},
	{"offer", rendezvous.WaitAnswered, func(r *Flow) func() store.Notices {
		r.Waits("w", "paid", K("order", r.ID))
		e := r.F.PutNew("paid", K("order", r.ID))
		return func() store.Notices { return r.F.OfferAll(e).Notices }
	}},
	{"collect", rendezvous.WaitAnswered, func(r *Flow) func() store.Notices {
		d := r.Drive()
		d.Parked("w")
		return func() store.Notices { return d.Collect().Notices }
	}},
	{"suspend", rendezvous.WaitAnswered, func(r *Flow) func() store.Notices {
		d := r.Drive()
		d.Parked("w")
		return func() store.Notices { return must(r.F.ReleaseLease(ctx, r.ID, d.Epoch))(r.F.T, "release").Notices }
	}},
	{"deliver what is parked", rendezvous.WaitAnswered, func(r *Flow) func() store.Notices {
		r.DriveFor(rendezvous.MinLease).Parked("w")
		r.F.H.Advance(rendezvous.MinLease + time.Second)
		return func() store.Notices {
			out := must(r.F.H.Store.DeliverParked(ctx, []store.WaitRef{{Tenant: r.F.Name(), WaitID: r.WaitID("w")}}, now))(r.F.T, "deliver what is parked")
			return out.Notices
		}
	}},
	{"reclaim", rendezvous.WaitAnswered, func(r *Flow) func() store.Notices {
		r.DriveFor(rendezvous.MinLease).Parked("w")
		r.F.H.Advance(rendezvous.MinLease)
		return func() store.Notices {
			var n store.Notices
			for _, x := range r.F.H.SweepLeases(r.F.T) {
				n.Append(x.Notices)
			}
			return n
		}
	}},
	{"deliver aimed", rendezvous.WaitAnswered, func(r *Flow) func() store.Notices {
		r.Waits("w", "paid", K("order", r.ID))
		e := EventOf("paid")
		return func() store.Notices {
			r.Targeted("w", e)
			out := must(r.F.H.Store.DeliverParked(ctx, []store.WaitRef{{Tenant: r.F.Name(), WaitID: r.WaitID("w")}}, now))(r.F.T, "deliver what is parked")
			return out.Notices
		}
	}},
	{"arm", rendezvous.TimerStarted, func(r *Flow) func() store.Notices {
		return func() store.Notices {
			a := store.Arm{RunID: r.ID, TimerID: "t", FireAt: endOfTime, BatchID: ID("batch")}
			return must(r.F.ArmTimer(ctx, a, now))(r.F.T, "arm").Notices
		}
	}},
	{"cancel a timer", rendezvous.TimerCancelled, func(r *Flow) func() store.Notices {
		r.Arm("t", endOfTime)
		return func() store.Notices { r.CancelArmed("t"); return r.untold() }
	}},
	{"fire a timer", rendezvous.TimerFired, func(r *Flow) func() store.Notices {
		r.ArmIn("t", time.Second)
		return func() store.Notices { r.F.H.Advance(2 * time.Second); return r.F.H.firePage(r) }
	}},
	{"fire a wait's deadline", rendezvous.WaitTimedOut, func(r *Flow) func() store.Notices {
		r.WaitsUntil(r.F.H.In(r.F.T, time.Second), "w", "paid", K("order", r.ID))
		return func() store.Notices { r.F.H.Advance(2 * time.Second); return r.F.H.firePage(r) }
	}},
	{"pause", rendezvous.RunPaused, func(r *Flow) func() store.Notices {
		return func() store.Notices { return r.Pause().Notices }
	}},
	{"resume", rendezvous.RunResumed, func(r *Flow) func() store.Notices {
		r.Pause()
		return func() store.Notices { return r.Resume().Notices }
	}},
	{"conclude", rendezvous.RunCompleted, func(r *Flow) func() store.Notices {
		return func() store.Notices { return r.Conclude(rendezvous.StatusCompleted).Notices }
	}},
	{"append a terminal", rendezvous.RunFailed, func(r *Flow) func() store.Notices {
		return func() store.Notices { return r.AppendFree(r.FailedAs("x")).Notices }
	}},
	{"cancel", rendezvous.RunCancelled, func(r *Flow) func() store.Notices {
		return func() store.Notices { return r.Revoke().Notices }
	}},
	{"continue as new", rendezvous.RunContinued, func(r *Flow) func() store.Notices {
		return func() store.Notices {
			c := store.Continuation{RunID: r.ID, ExpectedSeq: r.Head(), BatchID: ID("batch"), NextRun: ID("run")}
			return must(r.F.ContinueAsNew(ctx, c, now))(r.F.T, "continue").Notices
		}
	}},
	{"continue by an append", rendezvous.RunContinued, func(r *Flow) func() store.Notices {
		return func() store.Notices {
			next := ID("run")
			return r.AppendFree(r.ContinuedTo(next), r.StartedAfter(next)).Notices
		}
	}},
}

// untold is the notice of a verb whose answer has none to give: its rows are found by the poll.
func (r *Flow) untold() store.Notices {
	return store.Notices{Push: []store.PushRef{{Tenant: r.F.Name(), WorkflowRef: store.WorkflowRef{WorkflowID: r.WorkflowID, RunID: r.ID}, Head: r.Head()}}}
}

// firePage fires what is due by a pod of its own, which gives its shards back.
func (h *Harness) firePage(r *Flow) store.Notices {
	r.F.T.Helper()
	p := h.TimerPod(r.F.T)
	var n store.Notices
	for {
		page := p.Page(r.F.T, 0)
		if n.Append(page.Notices); !page.Full {
			break
		}
	}
	done(r.F.T, "give the shards back", p.ReleaseOwnedShards(ctx, p.Owned))
	return n
}

// idler makes an idle registration of the run that takes those kinds.
func (r *Flow) idler(id string, kinds ...rendezvous.Kind) *store.Push {
	r.F.T.Helper()
	p := r.Hook(id)
	p.Events = nil
	for _, k := range kinds {
		p.Events = append(p.Events, string(k))
	}
	got := r.Puts(p).Push
	eq(r.F.T, "state of "+id, got.State, rendezvous.PushIdle)
	return &got
}

func pushRoads(t *testing.T, h *Harness) {
	for i, f := range h.Two(t) {
		for _, road := range pushRoadsAll {
			if i > 0 && road.kind != rendezvous.WaitAnswered {
				continue
			}
			r, bystander := f.Start(), f.Start()
			step := road.begin(r)
			r.Rests("all")
			r.idler("taken", rendezvous.AttributesUpdated, road.kind)
			other := r.idler("other", rendezvous.AttributesUpdated)
			away := bystander.Rests("all")
			n := step()
			for _, id := range []string{"all", "taken"} {
				p := r.Push(id)
				eq(t, road.name+" wakes "+id, p.State, rendezvous.PushLive)
				if p.NextAttemptAt.After(h.Now(t)) {
					t.Fatalf("%s: %s is due at %s", road.name, id, p.NextAttemptAt)
				}
				r.WantDue("after "+road.name, id, now, true)
			}
			if road.kind.Terminal() {
				r.WantDue("after "+road.name, "other", now, true)
			} else {
				r.Unchanged("after "+road.name, other)
			}
			bystander.Unchanged("after "+road.name, away)
			r.wantPush("of "+road.name, n)
			if got := h.Pusher(t).ClaimOf(r); len(got) < 2 {
				t.Fatalf("%s: claimed %v", road.name, claimed(got))
			}
		}
	}
}

func pushTerminalWakes(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, end := range []rendezvous.Status{rendezvous.StatusCompleted, rendezvous.StatusFailed, rendezvous.StatusCancelled} {
		r := f.Start()
		idle := r.idler("a", rendezvous.AttributesUpdated)
		for range 3 {
			out := r.AppendFree(r.Noted("n"), r.Begun(ID("e")))
			eq(t, "notice of what nobody takes", r.pushed(out.Notices), nil)
		}
		r.Unchanged("after records nobody takes", idle)
		concluded := r.Conclude(end)
		r.wantPush("of the terminal", concluded.Notices)
		c := h.Pusher(t).Take(r)
		eq(t, "from", c.Cursor, idle.Cursor)
	}
	r := f.StartUntil(h.In(t, time.Minute))
	r.idler("a", rendezvous.AttributesUpdated)
	h.Advance(2 * time.Minute)
	r.wantPush("of the run's deadline", h.firePage(r))
	h.Pusher(t).Take(r)
}

func pushIdleThroughAnswers(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	idle := r.idler("a", rendezvous.RunCompleted)
	const answers, page = 1000, 100
	for range answers / page {
		var batch []rendezvous.Record
		var events []rendezvous.Event
		var items []store.BufferItem
		for range page {
			e := EventOf("paid", K("order", ID("key")))
			batch = append(batch, r.Waited(r.Wait(ID("w"), "paid", e.Keys...)))
			events, items = append(events, e), append(items, store.BufferItem{Tenant: f.Name(), Event: e})
		}
		must(h.Store.BufferBatch(ctx, items, now))(t, "buffer a batch")
		n := r.AppendFree(batch...).Notices
		n.Append(f.OfferAll(events...).Notices)
		eq(t, "notice", r.pushed(n), nil)
	}
	eq(t, "head", r.Head(), int64(1+2*answers))
	r.Unchanged("after a thousand answers", idle)
	eq(t, "claimed", len(h.Pusher(t).Claim(0).Pushes), 0)
	r.wantPush("of the terminal", r.Conclude(rendezvous.StatusCompleted).Notices)
	w := h.Pusher(t)
	s := settling(w.Take(r), store.PushComplete)
	s.Advance = ptr(at(r.Head()+1, 0))
	eq(t, "done", w.Settle(s).Done, true)
}

func pushWakesIdleOnly(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Follows("waits")
	r.Retries("waits", 0, h.In(t, time.Hour))
	r.Parks("parked")
	r.Follows("held")
	w := h.Pusher(t)
	held := w.Take(r)
	r.Rests("idle")
	rows := map[string]*store.Push{}
	for _, id := range []string{"waits", "parked", "held"} {
		rows[id] = r.Push(id)
	}
	out := r.AppendFree(r.Noted("n"))
	for _, p := range rows {
		r.Unchanged("after an append", p)
	}
	r.WantDue("after an append", "idle", now, true)
	r.wantPush("of the idle one", out.Notices)
	must(f.DeletePush(ctx, r.PushKey("idle")))(t, "delete")
	out = r.AppendFree(r.Noted("m"))
	eq(t, "notice where no row wakes", r.pushed(out.Notices), nil)
	eq(t, "the holder", w.Renew(held.Token).State, store.PushLeaseHeld)
}

func pushWakesNoFormerRun(t *testing.T, h *Harness) {
	f := h.Fix(t)
	first := f.Start()
	first.Rests("a")
	next := first.Continue()
	w := h.Pusher(t)
	c := w.Take(first)
	eq(t, "from", c.Cursor, at(2, 0))
	first.Stop("a", rendezvous.ParkByOperator)
	parked := first.Push("a")
	idle := next.Rests("a")
	out := next.AppendFree(next.Noted("n"))
	first.Unchanged("after a record of the next run", parked)
	eq(t, "notice for the former run", first.pushed(out.Notices), nil)
	next.wantPush("of the next run", out.Notices)
	next.WantDue("after its record", idle.ID, now, true)
}

func pushWakesWithoutNotice(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Rests("a")
	h.Faults.Arm(fault.Failure{Verb: "conclude", Point: fault.AfterCommit})
	h.Faults.Arm(fault.Failure{Verb: "conclude", Point: fault.AtCall, Call: 1, Skip: 1}) // the look-up of what became of it
	_, err := f.Conclude(ctx, r.Conclusion(rendezvous.StatusCompleted), now)
	code(t, "conclude", err, rendezvous.CodeCommitUnknown)
	h.Pusher(t).Take(r) // by the poll alone
}

func pushWakesOrNot(t *testing.T, h *Harness) {
	f := h.Fix(t)
	h.Break(t, "append", func() (func() error, func(error, bool)) {
		r := f.Start()
		idle := r.Rests("a")
		attempt := func() error {
			_, err := f.Append(ctx, store.Append{RunID: r.ID, ExpectedSeq: 1, BatchID: ID("batch"), Records: recs(r.Noted("n"))}, now)
			return err
		}
		return attempt, func(_ error, committed bool) {
			if committed {
				r.WantDue("after a commit whose answer was lost", "a", now, true)
			} else {
				r.Unchanged("after a failure", idle)
			}
			eq(t, "head", r.Head() == 2, committed)
		}
	})
}

func pushWakesCheaply(t *testing.T, h *Harness) {
	f := h.Fix(t)
	bare, few, many := f.Start(), f.Start(), f.Start()
	few.idler("a", rendezvous.AttributesUpdated)
	for i := range rendezvous.MaxRegistrationsPerRun {
		many.Rests(fmt.Sprint("hook-", i))
	}
	steps := func(r *Flow) int {
		t.Helper()
		return h.Steps(t, "append", func() {
			a := store.Append{RunID: r.ID, ExpectedSeq: r.Head(), BatchID: ID("batch")}
			for range 20 {
				a.Records = append(a.Records, r.Noted("n"))
			}
			must(f.Append(ctx, a, now))(t, "append")
		})
	}
	none, one, ten := steps(bare), steps(few), steps(many)
	if one > none+1 || ten > none+1 {
		t.Errorf("an append takes %d steps without registrations, %d with one, %d with ten: want one more at most", none, one, ten)
	}
}

func pushWakesMany(t *testing.T, h *Harness) {
	var runs []*Flow
	var items []store.OfferItem
	for _, f := range h.Two(t) {
		for i := range 10 {
			r := f.Start()
			r.Waits("w", "paid", K("order", r.ID))
			if i%2 == 0 {
				r.Rests("a")
				r.idler("other", rendezvous.RunCompleted)
			}
			items = append(items, f.Items(f.PutNew("paid", K("order", r.ID)))...)
			runs = append(runs, r)
		}
	}
	out := must(h.Store.OfferBatch(ctx, items, now))(t, "offer")
	for i, r := range runs {
		if i%2 == 1 {
			eq(t, "notice of a run without registrations", r.pushed(out.Notices), nil)
			continue
		}
		r.wantPush("of the batch", out.Notices)
		r.WantDue("after the batch", "a", now, true)
		eq(t, "the other", r.Push("other").State, rendezvous.PushIdle)
	}
	eq(t, "notices", len(out.Notices.Push), 10)
}
