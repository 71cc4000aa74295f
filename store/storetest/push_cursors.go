package storetest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// pushCursors is push.md section 2: Advance, Retry, Complete, under a lease and without one.
var pushCursors = []Case{
	{Name: "PU-16 Advance moves the cursor and forgets failures; due at once if records remain, else idle", Run: pushAdvances},
	{Name: "PU-16 Advance by the holder keeps its lease", Run: pushHolderAdvances},
	{Name: "PU-17 a smaller cursor changes nothing, a part of a record counts", Run: pushNeverBack},
	{Name: "PU-17 advances at once, in any order, end at the greatest", Run: pushAdvancesAtOnce},
	{Name: "PU-17 above the head is invalid, and moves nothing", Run: pushBeyondHead},
	{Name: "PU-15 Retry by the holder charges once, and its lease is over", Run: pushHolderRetries},
	{Name: "PU-25 without a lease Retry makes a parked row live, Advance does not", Run: pushToolsOnParked},
	{Name: "PU-25 under a live lease Retry of a tool is lease_held, Advance moves only the cursor", Run: pushToolsUnderLease},
	{Name: "PU-25 a lease that ran out is no tool's hindrance", Run: pushToolsAfterLease},
	{Name: "PU-45 Complete past the terminal ends the registration; before it, or reopened, it is a conflict", Run: pushCompletes},
	{Name: "PU-45 Complete of a run of a chain goes by its own terminal", Run: pushCompletesInChain},
	{Name: "attempts saturate", Run: pushAttemptsSaturate},
	{Name: "limits of texts and tokens are refused by name", Run: pushTextLimits},
}

func pushAdvances(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		r := f.Start()
		r.AppendFree(r.Noted("n"))
		r.Follows("a")
		r.Retries("a", 0, h.In(t, time.Hour))
		r.WantDue("after a failure", "a", now, false)
		got := r.Advances("a", 0, 2)
		eq(t, "the answer", got, store.PushAdvanced{Cursor: at(2, 0), Owned: true})
		p := r.WantCursor("a", 2, 0)
		eq(t, "failures", []any{p.Attempts, p.Error, p.FailingSince.IsZero()}, []any{0, "", true})
		r.WantDue("with records left", "a", now, true)
		r.Retries("a", 0, h.In(t, time.Hour))
		r.Advances("a", 0, 3)
		p = r.WantCursor("a", 3, 0)
		eq(t, "at the end", []any{p.State, p.Attempts, p.Error}, []any{rendezvous.PushIdle, 0, ""})
		r.WantDue("at the end", "a", endOfTime, false)
		r.AppendFree(r.Noted("m"))
		r.WantDue("with a record more", "a", now, true)
	}
}

func pushHolderAdvances(t *testing.T, h *Harness) {
	r := h.Fix(t).Start()
	r.AppendFree(r.Noted("n"))
	r.Follows("a")
	r.Retries("a", 0, h.Now(t))
	h.Advance(time.Second)
	w := h.Pusher(t)
	c := w.Take(r)
	for _, seq := range []int64{2, 3} {
		eq(t, "the answer", r.Advances("a", c.Token, seq), store.PushAdvanced{Cursor: at(seq, 0), Owned: true})
		p := r.Push("a")
		eq(t, "the row", []any{p.Attempts, p.Error, p.FailingSince.IsZero(), p.LeaseUntil}, []any{0, "", true, c.ExpiresAt})
		eq(t, "claimed meanwhile", len(h.Pusher(t).ClaimOf(r)), 0)
	}
	eq(t, "lease", w.Renew(c.Token).State, store.PushLeaseHeld)
}

func pushNeverBack(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"), r.Noted("m"))
	r.Follows("a")
	for _, step := range []struct{ give, stands rendezvous.Cursor }{
		{at(1, 1), at(1, 1)},
		{at(1, 0), at(1, 1)},
		{at(1, 3), at(1, 3)},
		{at(1, 2), at(1, 3)},
		{at(2, 0), at(2, 0)},
		{at(1, 99), at(2, 0)},
		{at(4, 0), at(4, 0)},
		{at(3, 7), at(4, 0)},
		{at(1, 0), at(4, 0)},
	} {
		got := must(f.AdvancePush(ctx, r.PushKey("a"), 0, step.give))(t, "advance")
		eq(t, "the answer", got.Cursor, step.stands)
		r.WantCursor("a", step.stands.NextSeq, step.stands.NextIndex)
	}
	eq(t, "state", r.Push("a").State, rendezvous.PushIdle)
}

func pushAdvancesAtOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.arms("t", 19, endOfTime)...) // head 20
	for range h.Rounds(t) {
		id := ID("hook")
		r.Follows(id)
		w := h.Pusher(t)
		c := w.Take(r)
		most := rendezvous.Cursor{}
		var errs [6]error
		var fns []func()
		for i := range errs {
			cursor, token := at(1+rand.Int64N(20), rand.IntN(3)), []int64{0, c.Token, max(c.Token-1, 1)}[i%3]
			if cursor.Compare(most) > 0 {
				most = cursor
			}
			fns = append(fns, func() { _, errs[i] = f.AdvancePush(ctx, r.PushKey(id), token, cursor) })
		}
		Race(t, fns...)
		for _, err := range errs {
			if rendezvous.CodeOf(err) != rendezvous.CodeNotFound { // a token of before the registration
				done(t, "advance", err)
			}
		}
		for i := range errs { // what was not found moved nothing
			if errs[i] != nil {
				most = rendezvous.Cursor{}
			}
		}
		if most.NextSeq > 0 {
			r.WantCursor(id, most.NextSeq, most.NextIndex)
		}
		must(f.DeletePush(ctx, r.PushKey(id)))(t, "delete")
	}
}

func pushBeyondHead(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	row := r.Follows("a")
	for _, c := range []rendezvous.Cursor{at(3, 0), at(1000, 0), at(2, 1), at(0, 0), at(-1, 0), at(1, -1)} {
		_, err := f.AdvancePush(ctx, r.PushKey("a"), 0, c)
		code(t, fmt.Sprint("advance to ", c), err, rendezvous.CodeInvalid)
		r.Unchanged("after a refused advance", row)
	}
	c := h.Pusher(t).Take(r)
	held := r.Push("a")
	_, err := f.AdvancePush(ctx, r.PushKey("a"), c.Token, at(3, 0))
	code(t, "advance of the holder", err, rendezvous.CodeInvalid)
	r.Unchanged("after a refused advance", held)
}

func pushHolderRetries(t *testing.T, h *Harness) {
	r := h.Fix(t).Start()
	r.Follows("a")
	w := h.Pusher(t)
	c := w.Take(r)
	T := h.In(t, time.Minute)
	for range 3 {
		r.Retries("a", c.Token, T)
		p := r.WantCursor("a", 1, 0)
		eq(t, "the row", []any{p.Attempts, p.NextAttemptAt, p.Error, p.FailingSince.IsZero(), p.LeaseUntil.IsZero(), p.State},
			[]any{1, T, "503", false, true, rendezvous.PushLive})
	}
	eq(t, "lease", w.Renew(c.Token).State, store.PushLeaseFenced)
	r.WantDue("at T", "a", T, true)
	h.Advance(time.Minute)
	next := h.Pusher(t).Take(r)
	if next.Token <= c.Token {
		t.Fatalf("token %d after %d", next.Token, c.Token)
	}
	r.Retries("a", next.Token, h.In(t, time.Minute))
	eq(t, "attempts", r.Push("a").Attempts, 2)
}

func pushToolsOnParked(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"))
	parked := r.Parks("a")
	eq(t, "advanced", r.Advances("a", 0, 2), store.PushAdvanced{Cursor: at(2, 0), Owned: true})
	p := r.WantCursor("a", 2, 0)
	eq(t, "still parked", []any{p.State, p.Reason, p.ParkedAt}, []any{rendezvous.PushParked, rendezvous.ParkByOperator, parked.ParkedAt})
	T := h.In(t, time.Minute)
	r.Retries("a", 0, T)
	p = r.WantCursor("a", 2, 0)
	eq(t, "live", []any{p.State, p.Reason, p.ParkedAt.IsZero(), p.NextAttemptAt, p.Attempts}, []any{rendezvous.PushLive, rendezvous.ParkReason(""), true, T, 1})
	r.WantDue("at T", "a", T, true)
	eq(t, "parked rows", len(f.parkedPushes(store.PushParkedFilter{}, 0)), 0)
}

func pushToolsUnderLease(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"))
	r.Follows("a")
	r.Retries("a", 0, h.Now(t))
	h.Advance(time.Second)
	w := h.Pusher(t)
	c := w.Take(r)
	before := r.Push("a")
	err := f.RetryPush(ctx, r.PushKey("a"), 0, h.Now(t), "x")
	code(t, "retry", err, rendezvous.CodeLeaseHeld)
	r.Unchanged("after lease_held", before)
	eq(t, "advanced", r.Advances("a", 0, 2), store.PushAdvanced{Cursor: at(2, 0), Owned: false})
	want := *before
	want.Cursor = at(2, 0)
	eq(t, "the row", *r.Push("a"), want)
	eq(t, "lease", w.Renew(c.Token).State, store.PushLeaseHeld)
}

func pushToolsAfterLease(t *testing.T, h *Harness) {
	r := h.Fix(t).Start()
	r.AppendFree(r.Noted("n"))
	r.Follows("a")
	w := h.Pusher(t)
	w.Take(r)
	h.Advance(pushLeaseEnd)
	eq(t, "advanced", r.Advances("a", 0, 2).Owned, true)
	r.Retries("a", 0, h.In(t, time.Minute))
	eq(t, "attempts", r.Push("a").Attempts, 1)
}

func pushCompletes(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"))
	key := r.PushKey("a")
	row := r.Follows("a")
	code(t, "complete of a running run", f.CompletePush(ctx, key, 0, 3), rendezvous.CodeConflict)
	p := r.Push("a")
	eq(t, "the row lives", []any{p.State, p.Version}, []any{rendezvous.PushLive, row.Version})
	r.Conclude(rendezvous.StatusFailed) // 3
	c := h.Pusher(t).Take(r)
	for _, early := range []int64{1, 2, 3} {
		code(t, "complete before the terminal", f.CompletePush(ctx, key, c.Token, early), rendezvous.CodeConflict)
		r.Push("a")
	}
	for range 3 {
		done(t, "complete", f.CompletePush(ctx, key, c.Token, 4))
		r.NoPush("a")
	}
	r.Follows("b")
	r.Reopen() // 4
	code(t, "complete of a reopened run", f.CompletePush(ctx, r.PushKey("b"), 0, 4), rendezvous.CodeConflict)
	h.Advance(pushLeaseEnd)
	r.WantDue("after a conflict", "b", now, true)
	r.Conclude(rendezvous.StatusCompleted) // 5
	code(t, "complete at the first terminal", f.CompletePush(ctx, r.PushKey("b"), 0, 4), rendezvous.CodeConflict)
	done(t, "complete", f.CompletePush(ctx, r.PushKey("b"), 0, 6))
	r.NoPush("b")
	done(t, "complete of what never was", f.CompletePush(ctx, r.PushKey("never"), 0, 6))
}

func pushCompletesInChain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	first := f.Start()
	first.Follows("a")
	next := first.Continue() // 2, 3
	next.Follows("a")
	done(t, "complete of the run that was continued", f.CompletePush(ctx, first.PushKey("a"), 0, 3))
	first.NoPush("a")
	code(t, "complete of the running one", f.CompletePush(ctx, next.PushKey("a"), 0, 4), rendezvous.CodeConflict)
	next.Push("a")
}

func pushAttemptsSaturate(t *testing.T, h *Harness) {
	r := h.Fix(t).Start()
	r.Follows("a")
	for i := range 30 {
		r.Retries("a", 0, h.In(t, time.Duration(i)*time.Second))
	}
	eq(t, "attempts", r.Push("a").Attempts, 30)
}

func pushTextLimits(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	row := r.Follows("a")
	key := r.PushKey("a")
	long, op := strings.Repeat("x", rendezvous.MaxPushError+1), strings.Repeat("o", rendezvous.MaxBatchID+1)
	for name, c := range map[string]struct {
		field string
		call  func() error
	}{
		"error of a retry": {"error", func() error { return f.RetryPush(ctx, key, 0, h.Now(t), long) }},
		"error of a park": {"error", func() error {
			return f.ParkPush(ctx, store.ParkPush{PushKey: key, Reason: rendezvous.ParkByOperator, Error: long})
		}},
		"reason of a park": {"reason", func() error { return f.ParkPush(ctx, store.ParkPush{PushKey: key, Reason: "tired"}) }},
		"no reason":        {"reason", func() error { return f.ParkPush(ctx, store.ParkPush{PushKey: key}) }},
		"op of an unpark":  {"op", func() error { _, err := f.UnparkPush(ctx, key, now, op); return err }},
		"actor of a skip":  {"actor", func() error { _, err := f.SkipPush(ctx, store.PushSkip{PushKey: key, Seq: 1}); return err }},
		"op of a rotation": {"op", func() error { _, err := f.RotatePush(ctx, store.PushRotation{PushKey: key}); return err }},
		"grace": {"grace", func() error {
			_, err := f.RotatePush(ctx, store.PushRotation{PushKey: key, Op: "o", Grace: ptr(store.MaxPushGrace + 1)})
			return err
		}},
		"algorithm": {"algorithm", func() error {
			_, err := f.RotatePush(ctx, store.PushRotation{PushKey: key, Op: "o", Algorithm: "v9"})
			return err
		}},
		"token": {"token", func() error { return f.RetryPush(ctx, key, -1, h.Now(t), "x") }},
		"spread": {"spread", func() error {
			_, err := f.UnparkPushes(ctx, store.UnparkPushes{Spread: -time.Second})
			return err
		}},
	} {
		err := c.call()
		if got := rendezvous.CodeOf(err); got != rendezvous.CodeInvalid && got != rendezvous.CodeTooLarge {
			t.Errorf("%s: %v, want invalid of %s", name, err, c.field)
		} else if f := detail(err, "field"); f != c.field {
			t.Errorf("%s: field %v, want %s", name, f, c.field)
		}
		r.Unchanged("after a refused "+name, row)
	}
	r.Retries("a", 0, h.Now(t))
	done(t, "the longest error", f.RetryPush(ctx, key, 0, h.Now(t), long[1:]))
	eq(t, "error", r.Push("a").Error, long[1:])
}
