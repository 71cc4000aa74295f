package storetest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// pushRepeats is push.md section 2, the column "repeated after a lost reply": each verb, broken at every step.
var pushRepeats = []Case{
	{Name: "PU-26 every verb repeated after a lost reply answers as the first time and counts once", Run: pushVerbsAgain},
	{Name: "PU-26 every verb that fails at a step is done or not done", Run: pushVerbsOrNot},
	{Name: "PU-26 a missing row is not_found of Advance, Retry, Park and Skip; Delete and Complete succeed", Run: pushVerbsOfNothing},
	{Name: "PU-37 a batch of settlements whose answer was lost is answered item by item as first", Run: pushSettlementsAgain},
}

// pushStep is a verb called on a registration "a" that stands on record 2 of 3, with one failure behind it, or on another as fresh makes it.
type pushStep struct {
	name, verb string
	parked     bool
	ended      bool
	leased     bool
	fresh      func(r *Flow, token int64) func() (any, error)
}

var pushSteps = []pushStep{
	{name: "Put of a new one", verb: "put_push", fresh: func(r *Flow, _ int64) func() (any, error) {
		p := r.Hook("new")
		return func() (any, error) { out, err := r.F.PutPush(ctx, p, now); return []any{out.Push, out.Created}, err }
	}},
	{name: "Put of a held one", verb: "put_push", leased: true, fresh: func(r *Flow, _ int64) func() (any, error) {
		p := r.Hook("a")
		return func() (any, error) { out, err := r.F.PutPush(ctx, p, now); return out.Push, err }
	}},
	{name: "Put of some fields", verb: "put_push", fresh: func(r *Flow, _ int64) func() (any, error) {
		p := r.Hook("a")
		p.Fields = []string{"url"}
		return func() (any, error) { out, err := r.F.PutPush(ctx, p, now); return out.Push, err }
	}},
	{name: "Advance of the holder", verb: "advance_push", leased: true, fresh: func(r *Flow, token int64) func() (any, error) {
		return func() (any, error) { return must2(r.F.AdvancePush(ctx, r.PushKey("a"), token, at(3, 0))) }
	}},
	{name: "Advance of a tool", verb: "advance_push", fresh: func(r *Flow, _ int64) func() (any, error) {
		return func() (any, error) { return must2(r.F.AdvancePush(ctx, r.PushKey("a"), 0, at(3, 0))) }
	}},
	{name: "Retry of the holder", verb: "retry_push", leased: true, fresh: func(r *Flow, token int64) func() (any, error) {
		T := r.F.H.In(r.F.T, time.Minute)
		return func() (any, error) { return nil, r.F.RetryPush(ctx, r.PushKey("a"), token, T, "x") }
	}},
	{name: "Park of the holder", verb: "park_push", leased: true, fresh: func(r *Flow, token int64) func() (any, error) {
		return func() (any, error) {
			return nil, r.F.ParkPush(ctx, store.ParkPush{PushKey: r.PushKey("a"), Token: token, Reason: rendezvous.ParkGone, Error: "410"})
		}
	}},
	{name: "Park of an operator", verb: "park_push", leased: true, fresh: func(r *Flow, _ int64) func() (any, error) {
		return func() (any, error) {
			return nil, r.F.ParkPush(ctx, store.ParkPush{PushKey: r.PushKey("a"), Reason: rendezvous.ParkByOperator})
		}
	}},
	{name: "Unpark", verb: "unpark_push", parked: true, fresh: func(r *Flow, _ int64) func() (any, error) {
		T := r.F.H.In(r.F.T, time.Minute)
		return func() (any, error) { return must2(r.F.UnparkPush(ctx, r.PushKey("a"), T, "op")) }
	}},
	{name: "Skip", verb: "skip_push", parked: true, fresh: func(r *Flow, _ int64) func() (any, error) {
		return func() (any, error) { return must2(r.skip("a", 2)) }
	}},
	{name: "Complete", verb: "complete_push", leased: true, ended: true, fresh: func(r *Flow, token int64) func() (any, error) {
		return func() (any, error) { return nil, r.F.CompletePush(ctx, r.PushKey("a"), token, 5) }
	}},
	{name: "Delete", verb: "delete_push", leased: true, fresh: func(r *Flow, _ int64) func() (any, error) {
		return func() (any, error) { return must2(r.F.DeletePush(ctx, r.PushKey("a"))) }
	}},
	{name: "Log", verb: "log_push", fresh: func(r *Flow, _ int64) func() (any, error) {
		entry := rendezvous.PushAttempt{ID: "entry", Class: rendezvous.ClassAccepted, Test: true}
		return func() (any, error) { return must2(r.F.LogPush(ctx, r.PushKey("a"), entry)) }
	}},
	{name: "Rotate", verb: "rotate_push", leased: true, fresh: func(r *Flow, _ int64) func() (any, error) {
		return func() (any, error) {
			out, err := r.F.RotatePush(ctx, store.PushRotation{PushKey: r.PushKey("a"), Op: "op"})
			return []any{out.Key, out.Version}, err
		}
	}},
}

// must2 is a value of any type with its error.
func must2[T any](v T, err error) (any, error) { return v, err }

// begin makes what a step works on.
func (s pushStep) begin(t *testing.T, h *Harness, f *Fix) (*Flow, func() (any, error)) {
	t.Helper()
	r := f.Start()
	r.AppendFree(r.Noted("n"), r.Noted("m"))
	r.Follows("a")
	r.Advances("a", 0, 2)
	r.Retries("a", 0, h.Now(t))
	if s.ended {
		r.Conclude(rendezvous.StatusCompleted)
	}
	h.Advance(time.Microsecond)
	token := int64(0)
	if s.leased {
		token = h.Pusher(t).Take(r).Token
	}
	if s.parked {
		r.Stop("a", rendezvous.ParkByOperator)
	}
	return r, s.fresh(r, token)
}

// rows are the run's registrations with their logs.
func (r *Flow) pushRows() []any {
	r.F.T.Helper()
	var all []any
	for _, p := range must(r.F.ListPush(ctx, r.ID))(r.F.T, "list") {
		all = append(all, p, r.Log(p.ID))
	}
	return all
}

func pushVerbsAgain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, s := range pushSteps {
		r, call := s.begin(t, h, f)
		lost := h.Faults.Arm(fault.Failure{Verb: s.verb, Point: fault.AfterCommit})
		_, err := call()
		code(t, s.name+" whose answer was lost", err, rendezvous.CodeCommitUnknown)
		eq(t, s.name+": answers lost", lost.Struck(), 1)
		rows := r.pushRows()
		first, err := call()
		done(t, s.name+" again", err)
		eq(t, "the rows after "+s.name+" again", r.pushRows(), rows)
		again, err := call()
		done(t, s.name+" once more", err)
		eq(t, s.name+" once more", again, first)
		eq(t, "the rows after "+s.name+" once more", r.pushRows(), rows)

		// The same on a twin, undisturbed, comes to the same.
		_, twin := s.begin(t, h, f)
		want, err := twin()
		done(t, s.name, err)
		if s.verb == "advance_push" || s.verb == "unpark_push" || s.verb == "skip_push" || s.verb == "log_push" {
			eq(t, s.name+" after a lost answer, and undisturbed", first, want)
		}
	}
}

func pushVerbsOrNot(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, s := range pushSteps {
		h.Break(t, s.verb, func() (func() error, func(error, bool)) {
			r, call := s.begin(t, h, f)
			before := r.pushRows()
			return func() error { _, err := call(); return err }, func(err error, committed bool) {
				after := r.pushRows()
				if changed := !cmp.Equal(before, after); changed != committed {
					t.Fatalf("%s failed (%v), committed %v: rows changed %v", s.name, err, committed, changed)
				}
				_, err = call()
				done(t, s.name+" again", err)
				if again := r.pushRows(); committed {
					eq(t, "the rows after "+s.name+" again", again, after)
				} else if cmp.Equal(again, before) {
					t.Fatalf("%s after its failure did nothing", s.name)
				}
			}
		})
	}
}

func pushVerbsOfNothing(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	for _, r := range []*Flow{r, {F: f, ID: "unknown"}} {
		for _, m := range r.pushMissing("absent") {
			code(t, m.name+" of nothing", m.call(), rendezvous.CodeNotFound)
		}
		for range 2 {
			must(f.DeletePush(ctx, r.PushKey("absent")))(t, "delete")
			done(t, "complete", f.CompletePush(ctx, r.PushKey("absent"), 0, 2))
		}
	}
	r.Follows("a")
	r.Conclude(rendezvous.StatusCompleted)
	w := h.Pusher(t)
	c := w.Take(r)
	done(t, "complete", f.CompletePush(ctx, r.PushKey("a"), c.Token, 3))
	for _, m := range r.pushMissing("a") {
		code(t, m.name+" of a completed one", m.call(), rendezvous.CodeNotFound)
	}
	eq(t, "renewed", w.Renew(c.Token).State, store.PushLeaseFenced)
}

func pushSettlementsAgain(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		w := h.Pusher(t)
		var items []store.PushSettlement
		var runs []*Flow
		for i, do := range []store.PushSettle{store.PushKeep, store.PushRelease, store.PushRetry, store.PushPark, store.PushComplete, store.PushRetry, store.PushRetry} {
			r := f.Start()
			r.AppendFree(r.Noted("n"))
			r.Follows("a")
			if do == store.PushComplete {
				r.Conclude(rendezvous.StatusCompleted)
			}
			s := settling(w.Take(r), do)
			s.Advance, s.At = ptr(at(r.Head()+1, 0)), h.In(t, time.Minute)
			s.Attempts = []rendezvous.PushAttempt{h.attempt(t, rendezvous.ClassFailed, 1)}
			switch i {
			case 5:
				s.Token += 1000 // fenced
			case 6:
				r.Puts(r.Hook("a")) // revoked
			}
			items, runs = append(items, s), append(runs, r)
		}
		rest := settling(w.takeNew(f), store.PushRelease)
		rest.Why, rest.Head, rest.Advance = store.ReleaseRest, 1, ptr(at(2, 0))
		items = append(items, rest)
		lost := h.Faults.Arm(fault.Failure{Verb: "settle_pushes", Point: fault.AfterCommit})
		_, err := h.Store.SettlePushes(ctx, items)
		code(t, "settle", err, rendezvous.CodeCommitUnknown)
		eq(t, "answers lost", lost.Struck(), 1)
		var rows []any
		for _, r := range runs {
			rows = append(rows, r.pushRows())
		}
		first := w.SettleAll(items...)
		for i, want := range []rendezvous.Code{"", "", "", "", "", rendezvous.CodeFenced, rendezvous.CodeFenced, ""} {
			eq(t, "outcome", rendezvous.CodeOf(first[i].Err), want)
		}
		eq(t, "done and idle", []bool{first[4].Done, first[7].Idle}, []bool{true, true})
		again := w.SettleAll(items...)
		for i := range again {
			first[i].Err, again[i].Err = nil, nil
		}
		eq(t, "the outcomes again", again, first)
		for i, r := range runs {
			eq(t, "rows", any(r.pushRows()), rows[i])
		}
		eq(t, "counted once", []int{runs[2].Push("a").Attempts, len(runs[2].Log("a"))}, []int{1, 1})
	}
}

// takeNew claims a registration of a run of its own.
func (w *Pusher) takeNew(f *Fix) store.ClaimedPush {
	w.T.Helper()
	r := f.Start()
	r.Follows("a")
	return w.Take(r)
}
