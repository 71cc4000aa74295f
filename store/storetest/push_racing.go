package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// pushRacing is what callers, workers and appends do to one registration at once.
var pushRacing = []Case{
	{Name: "PU-105 a rest and an append at once leave no idle row with work", Run: restAndAppend},
	{Name: "PU-105 a Put and an append at once leave no idle row with work", Run: putAndAppend},
	{Name: "PU-105 an Advance of a tool and an append at once leave no idle row with work", Run: advanceAndAppend},
	{Name: "PU-105 settlements, Puts, Deletes and batches over the same runs in any order: nobody is refused, nothing sleeps", Run: allAtOnce},
	{Name: "PU-32 a Put and claims at once: one holder, and whoever holds has the new values or is revoked", Run: putAndClaim},
	{Name: "PU-34 a Delete and claims at once: what is claimed is quiet by quiet_at", Run: deleteAndClaim},
	{Name: "PU-30 a takeover and the former holder's settlement at once: one of them counts", Run: takeoverAndSettle},
	{Name: "PU-37 one settlement sent twice at once counts once", Run: settleTwice},
	{Name: "PU-26 one Retry, one Log, one Skip, one Unpark sent twice at once count once", Run: verbsTwice},
	{Name: "PU-45 Complete and a reopening at once: the row is gone before, or lives on", Run: completeAndReopen},
	{Name: "PU-12 a completing destination and a reopening at once: the run is watched from RunReopened on", Run: destinationAndReopen},
	{Name: "PU-66 an acceptance and the age ceiling at once", Run: acceptAndAge},
	{Name: "SW-29 a Put and retention at once: no registration without its run", Run: putAndPrune},
}

// awake fails the test if a registration of the run sleeps over a record that it takes, or over the run's end.
func (r *Flow) awake(what string) {
	r.F.T.Helper()
	history := r.History()
	for _, p := range must(r.F.ListPush(ctx, r.ID))(r.F.T, "list") {
		if p.State != rendezvous.PushIdle {
			continue
		}
		for _, rec := range history {
			if rec.RunID != r.ID || rec.Seq < p.NextSeq {
				continue
			}
			if rec.Kind.Terminal() || slices.Contains(p.Events, rendezvous.AllEvents) || slices.Contains(p.Events, string(rec.Kind)) {
				r.F.T.Fatalf("%s: %s is idle at %v and takes record %d (%s)", what, p.ID, p.Cursor, rec.Seq, rec.Kind)
			}
		}
	}
}

// appendAny appends a note wherever the head is by then.
func (r *Flow) appendAny() error {
	for {
		page, err := r.F.ReadHistoryFrom(ctx, r.WorkflowID, rendezvous.MaxSeq, 1)
		if err != nil {
			return err
		}
		_, err = r.F.Append(ctx, store.Append{RunID: r.ID, ExpectedSeq: page.Head, BatchID: ID("batch"), Records: recs(r.Noted("n"))}, now)
		if rendezvous.CodeOf(err) != rendezvous.CodeConflict {
			return err
		}
	}
}

func restAndAppend(t *testing.T, h *Harness) {
	r := h.Fix(t).Start()
	w := h.Pusher(t)
	r.Follows("a")
	won := map[bool]int{}
	for range h.Rounds(t) {
		c := w.Take(r)
		head := r.Head()
		var out []store.PushSettled
		var errs [2]error
		Race(t,
			func() { out, errs[0] = h.Store.SettlePushes(ctx, []store.PushSettlement{resting(c, head)}) },
			func() { errs[1] = r.appendAny() },
		)
		done(t, "settle", errs[0])
		done(t, "append", errs[1])
		done(t, "rest", out[0].Err)
		won[out[0].Idle]++
		r.awake("after a rest and an append")
		h.Advance(time.Microsecond)
		r.WantDue("after a rest and an append", "a", now, true)
	}
	t.Logf("idle first: %v", won)
}

func putAndAppend(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for i := range h.Rounds(t) {
		r := f.Start()
		if i%2 == 0 {
			r.Rests("a")
		}
		var errs [3]error
		p, other := r.Hook("a"), r.Hook("b")
		Race(t,
			func() { _, errs[0] = f.PutPush(ctx, p, now) }, func() { errs[1] = r.appendAny() }, func() { _, errs[2] = f.PutPush(ctx, other, now) },
		)
		for _, err := range errs {
			done(t, "put or append", err)
		}
		r.awake("after a Put and an append")
		eq(t, "rows", len(must(f.ListPush(ctx, r.ID))(t, "list")), 2)
	}
}

func advanceAndAppend(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Follows("a")
	for range h.Rounds(t) {
		head := r.Head()
		var errs [2]error
		Race(t,
			func() { _, errs[0] = f.AdvancePush(ctx, r.PushKey("a"), 0, at(head+1, 0)) }, func() { errs[1] = r.appendAny() },
		)
		done(t, "advance", errs[0])
		done(t, "append", errs[1])
		r.awake("after an Advance and an append")
		r.WantDue("after an Advance and an append", "a", now, true)
	}
}

// bundle is a set of runs that one batch reaches.
type bundle struct {
	runs []*Flow
	w    *Pusher
}

func allAtOnce(t *testing.T, h *Harness) {
	two := h.Two(t)
	for range max(h.Rounds(t)/4, 2) {
		b := bundle{w: h.Pusher(t)}
		var held []store.ClaimedPush
		var offers []store.OfferItem
		for _, f := range two {
			for range 4 {
				r := f.Start()
				r.Waits("w", "paid", K("order", r.ID))
				r.Follows("a")
				r.Rests("b")
				held = append(held, b.w.Take(r))
				offers = append(offers, f.Items(f.PutNew("paid", K("order", r.ID)))...)
				b.runs = append(b.runs, r)
			}
		}
		settle := func(order []int) func() error {
			return func() error {
				var items []store.PushSettlement
				for _, i := range order {
					items = append(items, resting(held[i], 2))
				}
				out, err := h.Store.SettlePushes(ctx, items)
				for _, o := range out {
					if c := rendezvous.CodeOf(o.Err); o.Err != nil && c != rendezvous.CodeFenced && c != rendezvous.CodeNotFound {
						return o.Err
					}
				}
				return err
			}
		}
		each := func(fn func(r *Flow) error) func() error {
			order := rand.Perm(len(b.runs))
			return func() error {
				for _, i := range order {
					if err := fn(b.runs[i]); err != nil {
						return err
					}
				}
				return nil
			}
		}
		calls := []func() error{
			settle([]int{0, 1, 2, 3, 4, 5, 6, 7}), settle([]int{7, 6, 5, 4, 3, 2, 1, 0}),
			func() error { _, err := h.Store.OfferBatch(ctx, offers, now); return err },
			each((*Flow).appendAny),
			each(func(r *Flow) error { _, err := r.F.PutPush(ctx, r.Hook("b"), now); return err }),
			each(func(r *Flow) error { _, err := r.F.PutPush(ctx, r.Hook("c"), now); return err }),
			each(func(r *Flow) error { _, err := r.F.DeletePush(ctx, r.PushKey("c")); return err }),
			func() error { _, err := h.Store.ClaimPushes(ctx, b.w.ask(5)); return err },
		}
		errs := make([]error, len(calls))
		var fns []func()
		for i, call := range calls {
			fns = append(fns, func() { errs[i] = call() })
		}
		Race(t, fns...)
		for i, err := range errs {
			done(t, fmt.Sprint("caller ", i), err)
		}
		h.Advance(pushLeaseEnd)
		for _, r := range b.runs {
			r.awake("after all at once")
			r.WantDue("after all at once", "a", now, true) // a note came behind what was read
			r.WantDue("after all at once", "b", now, true)
			for _, p := range must(r.F.ListPush(ctx, r.ID))(t, "list") {
				must(r.F.DeletePush(ctx, p.Key()))(t, "delete")
			}
		}
	}
}

// holders are those of tokens that hold a lease.
func (h *Harness) holders(t testing.TB, tokens ...int64) []int64 {
	t.Helper()
	var held []int64
	for _, l := range must(h.Store.RenewPushes(ctx, tokens, pushLease))(t, "renew") {
		if l.State == store.PushLeaseHeld {
			held = append(held, l.Token)
		}
	}
	return held
}

func putAndClaim(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for range h.Rounds(t) {
		r := f.Start()
		r.Follows("a")
		p := r.Hook("a")
		var got [2]store.ClaimedPushes
		var errs [3]error
		claim := func(i int) func() {
			c := h.Pusher(t).ask(0)
			c.Only = []store.PushRun{{Tenant: f.Name(), RunID: r.ID}}
			return func() { got[i], errs[i] = h.Store.ClaimPushes(ctx, c) }
		}
		Race(t, claim(0), claim(1), func() { _, errs[2] = f.PutPush(ctx, p, now) })
		for _, err := range errs {
			done(t, "claim or put", err)
		}
		all := slices.Concat(got[0].Pushes, got[1].Pushes)
		if len(all) > 1 {
			t.Fatalf("claimed %d times: %v", len(all), tokens(all))
		}
		for _, c := range all {
			eq(t, "a claim of what was put holds; one of what was before is revoked", len(h.holders(t, c.Token)) == 1, c.URL == p.URL)
		}
		h.Advance(pushLeaseEnd)
		eq(t, "the next has the new values", h.Pusher(t).Take(r).URL, p.URL)
	}
}

func deleteAndClaim(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for range h.Rounds(t) {
		r := f.Start()
		r.Follows("a")
		var got store.ClaimedPushes
		var deleted store.PushDeleted
		var errs [2]error
		c := h.Pusher(t).ask(0)
		c.Only = []store.PushRun{{Tenant: f.Name(), RunID: r.ID}}
		Race(t, func() { got, errs[0] = h.Store.ClaimPushes(ctx, c) }, func() { deleted, errs[1] = f.DeletePush(ctx, r.PushKey("a")) })
		done(t, "claim", errs[0])
		done(t, "delete", errs[1])
		r.NoPush("a")
		if len(got.Pushes) == 0 {
			eq(t, "quiet at once", deleted.QuietAt.IsZero(), true)
		} else {
			eq(t, "quiet at", deleted.QuietAt, got.Pushes[0].ExpiresAt)
			eq(t, "holders", h.holders(t, got.Pushes[0].Token), nil)
		}
		r.Follows("a")
		eq(t, "claimed before it is quiet", len(h.Pusher(t).ClaimOf(r)), 1-len(got.Pushes))
		h.Advance(pushLeaseEnd)
		must(f.DeletePush(ctx, r.PushKey("a")))(t, "delete")
	}
}

func takeoverAndSettle(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Follows("a")
	settled := 0
	for range h.Rounds(t) {
		before := r.Push("a").Attempts
		old := h.Pusher(t).Take(r)
		h.Advance(pushLeaseEnd)
		c := h.Pusher(t).ask(0)
		c.LostLimit = 1000
		var got store.ClaimedPushes
		var out []store.PushSettled
		var errs [2]error
		s := settling(old, store.PushRetry)
		s.At = h.In(t, time.Hour)
		Race(t, func() { got, errs[0] = h.Store.ClaimPushes(ctx, c) }, func() { out, errs[1] = h.Store.SettlePushes(ctx, []store.PushSettlement{s}) })
		done(t, "claim", errs[0])
		done(t, "settle", errs[1])
		p := r.Push("a")
		switch len(got.Pushes) {
		case 1:
			code(t, "the former holder", out[0].Err, rendezvous.CodeFenced)
			eq(t, "attempts", p.Attempts, before)
			eq(t, "holders", h.holders(t, old.Token, got.Pushes[0].Token), []int64{got.Pushes[0].Token})
			h.Pusher(t).Settle(settling(got.Pushes[0], store.PushRelease))
			h.Advance(time.Microsecond)
		default:
			done(t, "the holder, that nobody deposed", out[0].Err)
			eq(t, "attempts and lost", []int{p.Attempts, p.Lost}, []int{before + 1, 0})
			h.Advance(time.Hour)
			settled++
		}
	}
	t.Logf("settled first: %d", settled)
}

func settleTwice(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for range h.Rounds(t) {
		r := f.Start()
		r.AppendFree(r.Noted("n"))
		r.Follows("a")
		s := settling(h.Pusher(t).Take(r), store.PushRetry)
		s.Advance, s.At = ptr(at(2, 0)), h.In(t, time.Hour)
		s.Attempts = []rendezvous.PushAttempt{h.attempt(t, rendezvous.ClassFailed, 2)}
		var out [3][]store.PushSettled
		var errs [3]error
		settle := func(i int) func() {
			return func() { out[i], errs[i] = h.Store.SettlePushes(ctx, []store.PushSettlement{s}) }
		}
		Race(t, settle(0), settle(1), settle(2))
		for i := range out {
			done(t, "settle", errs[i])
			eq(t, "outcome", out[i], []store.PushSettled{{Cursor: at(2, 0), State: store.PushLeaseHeld}})
		}
		p := r.Push("a")
		eq(t, "the row", []any{p.Attempts, p.AttemptNo, len(r.Log("a"))}, []any{1, int64(1), 1})
	}
}

func verbsTwice(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for range h.Rounds(t) {
		r := f.Start()
		r.AppendFree(r.Noted("n"))
		r.Follows("a")
		c := h.Pusher(t).Take(r)
		var errs [3]error
		T := h.In(t, time.Minute)
		twice := func(what string, call func() error) {
			t.Helper()
			Race(t, func() { errs[0] = call() }, func() { errs[1] = call() }, func() { errs[2] = call() })
			for _, err := range errs {
				done(t, what, err)
			}
		}
		twice("retry", func() error { return f.RetryPush(ctx, r.PushKey("a"), c.Token, T, "x") })
		eq(t, "attempts", r.Push("a").Attempts, 1)
		entry := rendezvous.PushAttempt{ID: ID("entry"), Class: rendezvous.ClassAccepted, Test: true}
		twice("log", func() error {
			n, err := f.LogPush(ctx, r.PushKey("a"), entry)
			if err == nil && n != 1 {
				return fmt.Errorf("number %d", n)
			}
			return err
		})
		eq(t, "entries", len(r.Log("a")), 1)
		r.Stop("a", rendezvous.ParkByOperator)
		twice("skip", func() error { _, err := r.skip("a", 1); return err })
		r.WantCursor("a", 2, 0)
		eq(t, "entries", len(r.Log("a")), 2)
		twice("unpark", func() error {
			is, err := f.UnparkPush(ctx, r.PushKey("a"), T, "op")
			if err == nil && !is {
				return fmt.Errorf("not unparked")
			}
			return err
		})
		eq(t, "due", r.Push("a").NextAttemptAt, T)
	}
}

func completeAndReopen(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	won := 0
	for range h.Rounds(t) {
		must(f.DeletePush(ctx, r.PushKey("a")))(t, "delete")
		h.Advance(pushLeaseEnd)
		r.Conclude(rendezvous.StatusFailed)
		end := r.Head()
		r.Puts(r.Hook("a"))
		s := settling(h.Pusher(t).Take(r), store.PushComplete)
		s.Advance = ptr(at(end+1, 0))
		reopening := r.reopening()
		var out []store.PushSettled
		var errs [2]error
		Race(t,
			func() { out, errs[0] = h.Store.SettlePushes(ctx, []store.PushSettlement{s}) }, func() { _, errs[1] = f.ReopenRun(ctx, reopening, now) },
		)
		done(t, "settle", errs[0])
		done(t, "reopen", errs[1])
		if out[0].Err == nil {
			won++
			eq(t, "done", out[0].Done, true)
			r.NoPush("a")
			continue
		}
		code(t, "complete", out[0].Err, rendezvous.CodeConflict)
		r.Push("a")
		r.awake("after a reopening")
	}
	t.Logf("completed first: %d", won)
}

func destinationAndReopen(t *testing.T, h *Harness) {
	h.Destinations(t, rendezvous.Destination{Name: "audit"})
	f := h.Fix(t)
	w := h.operator(t)
	for range h.Rounds(t) {
		r := f.Start()
		r.Conclude(rendezvous.StatusFailed) // 2
		s := settling(w.Take(r), store.PushComplete)
		s.Advance = ptr(at(3, 0))
		reopening := r.reopening()
		var out []store.PushSettled
		var errs [2]error
		Race(t,
			func() { out, errs[0] = h.Store.SettlePushes(ctx, []store.PushSettlement{s}) }, func() { _, errs[1] = f.ReopenRun(ctx, reopening, now) },
		)
		done(t, "settle", errs[0])
		done(t, "reopen", errs[1])
		p := r.Push("operator:audit")
		if out[0].Err == nil {
			eq(t, "watched anew", []any{p.Cursor, p.AttemptNo}, []any{at(3, 0), int64(0)})
		} else {
			code(t, "complete", out[0].Err, rendezvous.CodeConflict)
			if p.NextSeq > 3 {
				t.Fatalf("it goes on at %v, past RunReopened", p.Cursor)
			}
		}
		r.Conclude(rendezvous.StatusCompleted)
		h.Advance(pushLeaseEnd)
		w.Take(r)
		must(f.DeletePush(ctx, p.Key()))(t, "delete")
	}
}

func acceptAndAge(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for range h.Rounds(t) {
		r := f.Start()
		r.Follows("a")
		r.Retries("a", 0, h.In(t, time.Hour))
		h.Advance(time.Second)
		var parked []store.PushItem
		var errs [2]error
		Race(t,
			func() { _, errs[0] = f.AdvancePush(ctx, r.PushKey("a"), 0, at(2, 0)) },
			func() { parked, _, errs[1] = h.Store.ParkAgedPushes(ctx, time.Millisecond, 0) },
		)
		done(t, "advance", errs[0])
		done(t, "park what is too old", errs[1])
		p := r.WantCursor("a", 2, 0)
		eq(t, "parked", p.State == rendezvous.PushParked, len(parked) == 1)
		must(f.DeletePush(ctx, r.PushKey("a")))(t, "delete")
	}
}

func putAndPrune(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for range h.Rounds(t) {
		r := f.Start()
		r.Conclude(rendezvous.StatusCompleted)
		before := h.Now(t)
		p := r.Hook("a")
		var page store.Pruned
		var errs [2]error
		Race(t, func() { _, errs[0] = f.PutPush(ctx, p, now) }, func() { page, errs[1] = h.Store.PruneWorkflows(ctx, before, 0, "") })
		done(t, "prune", errs[1])
		if errs[0] != nil {
			code(t, "put", errs[0], rendezvous.CodeNotFound)
			r.NoPush("a")
			eq(t, "pruned", len(page.Pruned), 1)
		} else {
			eq(t, "pruned", len(page.Pruned), 0)
			r.Push("a")
			must(f.DeletePush(ctx, r.PushKey("a")))(t, "delete")
			h.Prune(t, h.Now(t), 0)
		}
		h.PruneAll(t, 0)
		eq(t, "due", f.Due(endOfTime), nil)
	}
}
