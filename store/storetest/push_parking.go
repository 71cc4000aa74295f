package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// pushParking is push.md sections 2 and 8: Park, Unpark, UnparkMany, Skip.
var pushParking = []Case{
	{Name: "PU-22 PU-68 Park by the holder charges, ends the lease and keeps the cursor", Run: pushHolderParks},
	{Name: "PU-22 an operator parks in any state, attempts unchanged; again replaces reason and error", Run: pushOperatorParks},
	{Name: "PU-22 an idle row parks, and an append does not wake it", Run: pushIdleParks},
	{Name: "PU-23 Unpark makes a parked row live at the instant, and is false of any other", Run: pushUnparks},
	{Name: "PU-23 Unpark repeated with its op is true", Run: pushUnparksAgain},
	{Name: "PU-23 one failure after Unpark does not park again", Run: pushFailsAfterUnpark},
	{Name: "PU-23 UnparkMany takes the longest parked, within filter and limit, evenly over the spread", Run: pushUnparksMany},
	{Name: "PU-23 UnparkMany of several tenants stays with its own", Run: pushUnparksOwn},
	{Name: "PU-24 Skip goes past exactly the record at a parked row's cursor", Run: pushSkips},
	{Name: "PU-24 Skip elsewhere, or of a live row, is a conflict with what holds", Run: pushSkipsElsewhere},
	{Name: "PU-24 a skip stays in the log for good, and delivery resumes behind it", Run: pushSkipLogged},
	{Name: "PU-68 records written while parked are there after Unpark", Run: pushWrittenWhileParked},
}

func pushHolderParks(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		r := f.Start()
		r.AppendFree(r.Noted("n"))
		r.Follows("a")
		r.Advances("a", 0, 2)
		w := h.Pusher(t)
		c := w.Take(r)
		for range 2 {
			done(t, "park", f.ParkPush(ctx, store.ParkPush{PushKey: r.PushKey("a"), Token: c.Token, Reason: rendezvous.ParkGone, Error: "410"}))
			p := r.WantCursor("a", 2, 0)
			eq(t, "the row", []any{p.State, p.Attempts, p.Reason, p.Error, p.ParkedAt.IsZero(), p.LeaseUntil.IsZero()},
				[]any{rendezvous.PushParked, 1, rendezvous.ParkGone, "410", false, true})
		}
		eq(t, "lease", w.Renew(c.Token).State, store.PushLeaseFenced)
		h.Advance(time.Hour)
		eq(t, "claimed", len(h.Pusher(t).ClaimOf(r)), 0)
	}
}

func pushOperatorParks(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Follows("a")
	r.Retries("a", 0, h.In(t, time.Hour))
	before := r.Push("a")
	r.Stop("a", rendezvous.ParkByOperator)
	p := r.Push("a")
	eq(t, "parked", []any{p.State, p.Attempts, p.FailingSince, p.Cursor, p.Reason}, []any{rendezvous.PushParked, 1, before.FailingSince, before.Cursor, rendezvous.ParkByOperator})
	h.Advance(time.Second)
	done(t, "park again", f.ParkPush(ctx, store.ParkPush{PushKey: r.PushKey("a"), Reason: rendezvous.ParkDestinationRemoved, Error: "other"}))
	want := *p
	want.Reason, want.Error = rendezvous.ParkDestinationRemoved, "other"
	eq(t, "parked again", *r.Push("a"), want)
}

func pushIdleParks(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Rests("a")
	r.Stop("a", rendezvous.ParkByOperator)
	out := must(f.Append(ctx, store.Append{RunID: r.ID, ExpectedSeq: 1, BatchID: ID("batch"), Records: recs(r.Noted("n"))}, now))(t, "append")
	eq(t, "notice", r.pushed(out.Notices), nil)
	r.WantDue("while parked", "a", endOfTime, false)
	eq(t, "unparked", must(f.UnparkPush(ctx, r.PushKey("a"), now, ""))(t, "unpark"), true)
	r.WantDue("after unparking", "a", now, true)
	r.WantCursor("a", 2, 0)
}

func pushUnparks(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	unpark := func(id string, at time.Time) bool {
		t.Helper()
		return must(f.UnparkPush(ctx, r.PushKey(id), at, ""))(t, "unpark "+id)
	}
	r.Follows("a")
	live := r.Rests("live")
	must(f.AdvancePush(ctx, r.PushKey("a"), 0, at(1, 1)))(t, "advance")
	r.Retries("a", 0, h.Now(t))
	r.Stop("a", rendezvous.ParkExhausted)
	eq(t, "a live one", unpark("live", now), false)
	r.Unchanged("after an unpark", live)
	eq(t, "an absent one", unpark("absent", now), false)
	before, T := r.Push("a"), h.In(t, time.Minute).Add(time.Nanosecond)
	eq(t, "a parked one", unpark("a", T), true)
	want := *before
	want.State, want.NextAttemptAt, want.Attempts, want.FailingSince = rendezvous.PushLive, rendezvous.DueInstant(T), 0, time.Time{}
	want.Reason, want.ParkedAt = "", time.Time{}
	eq(t, "the row", *r.Push("a"), want)
	r.WantDue("early", "a", rendezvous.DueInstant(T).Add(-time.Microsecond), false)
	r.WantDue("at T", "a", rendezvous.DueInstant(T), true)
	eq(t, "again, without an op", unpark("a", now), false)
	r.Stop("a", rendezvous.ParkExhausted)
	eq(t, "at zero", unpark("a", now), true)
	r.WantDue("now", "a", now, true)
}

func pushUnparksAgain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Parks("a")
	T := h.In(t, time.Minute)
	for range 3 {
		eq(t, "unparked", must(f.UnparkPush(ctx, r.PushKey("a"), T, "op-1"))(t, "unpark"), true)
		eq(t, "due", r.Push("a").NextAttemptAt, T)
	}
	eq(t, "another op", must(f.UnparkPush(ctx, r.PushKey("a"), now, "op-2"))(t, "unpark"), false)
	eq(t, "due", r.Push("a").NextAttemptAt, T)
	r.Retries("a", 0, T)
	before := r.Push("a")
	eq(t, "the op again after a failure", must(f.UnparkPush(ctx, r.PushKey("a"), now, "op-1"))(t, "unpark"), true)
	r.Unchanged("after a repeat", before)
	r.Stop("a", rendezvous.ParkByOperator)
	before = r.Push("a")
	eq(t, "the op again after a parking", must(f.UnparkPush(ctx, r.PushKey("a"), now, "op-1"))(t, "unpark"), true)
	r.Unchanged("after a repeat behind a parking", before)
	eq(t, "absent, with an op", must(f.UnparkPush(ctx, r.PushKey("absent"), now, "op-1"))(t, "unpark"), false)
}

func pushFailsAfterUnpark(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	p := r.Hook("a")
	p.NextSeq, p.MaxAttempts, p.OnRejectLimit = 1, 2, 1
	r.Puts(p)
	for range 2 {
		r.Retries("a", 0, h.Now(t))
	}
	r.Stop("a", rendezvous.ParkExhausted)
	must(f.UnparkPush(ctx, r.PushKey("a"), now, ""))(t, "unpark")
	c := h.Pusher(t).Take(r)
	s := settling(c, store.PushRetry)
	s.Attempts, s.At = []rendezvous.PushAttempt{h.attempt(t, rendezvous.ClassFailed, 1)}, h.In(t, time.Minute)
	h.Pusher(t).Settle(s)
	got := r.Push("a")
	eq(t, "the row", []any{got.State, got.Attempts}, []any{rendezvous.PushLive, 1})
}

func pushUnparksMany(t *testing.T, h *Harness) {
	f := h.Fix(t)
	var all, gone []*Flow
	gate := ""
	for i := range 9 {
		h.Advance(time.Second)
		r := f.Start()
		row := r.Follows("a")
		reason := rendezvous.ParkGone
		if i%3 == 0 {
			reason, gate = rendezvous.ParkFault, row.Gate
		} else {
			gone = append(gone, r)
		}
		all = append(all, r)
		r.Stop("a", reason)
	}
	T, spread := h.In(t, time.Hour), 10*time.Minute
	got := must(f.UnparkPushes(ctx, store.UnparkPushes{PushParkedFilter: store.PushParkedFilter{Reason: rendezvous.ParkGone}, At: T, Spread: spread, Limit: 4}))(t, "unpark many")
	eq(t, "unparked", got, store.PushesUnparked{Count: 4, More: true})
	last := time.Time{}
	for i, r := range gone {
		p := r.Push("a")
		if i >= 4 {
			eq(t, "beyond the limit", p.State, rendezvous.PushParked)
			continue
		}
		eq(t, "the longest parked", []any{p.State, p.Attempts}, []any{rendezvous.PushLive, 0})
		if p.NextAttemptAt.Before(T) || p.NextAttemptAt.After(T.Add(spread)) || !p.NextAttemptAt.After(last) {
			t.Fatalf("number %d is due at %s, after %s, want within [%s, %s]", i, p.NextAttemptAt, last, T, T.Add(spread))
		}
		if step := p.NextAttemptAt.Sub(last); i > 0 && (step < spread/5 || step > spread/3) {
			t.Fatalf("number %d is due %s after the one before: not even", i, step)
		}
		last = p.NextAttemptAt
	}
	for i, r := range all {
		if i%3 == 0 {
			eq(t, "of another reason", r.Push("a").State, rendezvous.PushParked)
		}
	}
	rest := store.UnparkPushes{PushParkedFilter: store.PushParkedFilter{Reason: rendezvous.ParkGone}}
	eq(t, "the rest", must(f.UnparkPushes(ctx, rest))(t, "unpark many"), store.PushesUnparked{Count: 2})
	eq(t, "again", must(f.UnparkPushes(ctx, rest))(t, "unpark many"), store.PushesUnparked{})
	eq(t, "due now, without a spread", len(f.Due(now)), 2)
	one := store.UnparkPushes{PushParkedFilter: store.PushParkedFilter{Gate: gate}}
	eq(t, "of a gate", must(f.UnparkPushes(ctx, one))(t, "unpark many"), store.PushesUnparked{Count: 1})
	eq(t, "left", len(f.parkedPushes(store.PushParkedFilter{}, 0)), 2)
}

func pushUnparksOwn(t *testing.T, h *Harness) {
	two := h.Two(t)
	var runs []*Flow
	for _, f := range two {
		r := f.Start()
		r.Parks("a")
		runs = append(runs, r)
	}
	eq(t, "unparked", must(two[0].UnparkPushes(ctx, store.UnparkPushes{}))(t, "unpark many"), store.PushesUnparked{Count: 1})
	eq(t, "states", []rendezvous.PushState{runs[0].Push("a").State, runs[1].Push("a").State}, []rendezvous.PushState{rendezvous.PushLive, rendezvous.PushParked})
}

func (r *Flow) skip(id string, seq int64) (rendezvous.Cursor, error) {
	return r.F.SkipPush(ctx, store.PushSkip{PushKey: r.PushKey(id), Seq: seq, Actor: "kim", Reason: "poison"})
}

func pushSkips(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"))
	r.Follows("a")
	must(f.AdvancePush(ctx, r.PushKey("a"), 0, at(1, 2)))(t, "advance")
	r.Retries("a", 0, h.Now(t))
	r.Stop("a", rendezvous.ParkRejected)
	before := r.Push("a")
	for range 2 {
		eq(t, "cursor", must(r.skip("a", 1))(t, "skip"), at(2, 0))
		p := r.WantCursor("a", 2, 0)
		eq(t, "the row", []any{p.State, p.Attempts, p.Reason, p.ParkedAt}, []any{rendezvous.PushParked, 0, rendezvous.ParkRejected, before.ParkedAt})
	}
	eq(t, "the next", must(r.skip("a", 2))(t, "skip"), at(3, 0))
	if got, err := r.skip("a", 3); err == nil && got.Compare(at(4, 0)) >= 0 {
		t.Fatalf("skipped what is not written yet, to %v", got)
	}
}

func pushSkipsElsewhere(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"), r.Noted("m"))
	r.Follows("a")
	r.Advances("a", 0, 2)
	live := r.Push("a")
	_, err := r.skip("a", 2)
	code(t, "skip of a live row", err, rendezvous.CodeConflict)
	tells(t, "its state", err, string(rendezvous.PushLive))
	r.Unchanged("after a conflict", live)
	r.Stop("a", rendezvous.ParkByOperator)
	parked := r.Push("a")
	for _, seq := range []int64{1, 3, 4} {
		_, err := r.skip("a", seq)
		code(t, "skip of another record", err, rendezvous.CodeConflict)
		tells(t, "its cursor", err, int64(2))
		r.Unchanged("after a conflict", parked)
	}
	_, err = r.skip("a", 0)
	code(t, "skip of nothing", err, rendezvous.CodeInvalid, "field", "seq")
	eq(t, "log", len(r.Log("a")), 0)
}

func pushSkipLogged(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"))
	r.Parks("a")
	must(r.skip("a", 1))(t, "skip")
	must(r.skip("a", 1))(t, "skip again")
	log := r.Log("a")
	eq(t, "entries", len(log), 1)
	eq(t, "the skip", []any{log[0].Class, log[0].Seq, log[0].Actor, log[0].Reason}, []any{rendezvous.ClassSkipped, int64(1), "kim", "poison"})
	must(f.UnparkPush(ctx, r.PushKey("a"), now, ""))(t, "unpark")
	w := h.Pusher(t)
	c := w.Take(r)
	eq(t, "delivery resumes at", c.Cursor, at(2, 0))
	s := settling(c, store.PushRetry)
	s.Attempts = []rendezvous.PushAttempt{h.attempt(t, rendezvous.ClassFailed, 2)}
	w.Settle(s)
	h.Advance(30 * 24 * time.Hour)
	h.trim(t, 1, time.Hour)
	log = r.Log("a")
	eq(t, "what is left after trimming", []any{len(log), log[len(log)-1].Class}, []any{1, rendezvous.ClassSkipped})
}

// trim trims logs until nothing more is to be done, and answers how many entries went.
func (h *Harness) trim(t *testing.T, keep int, age time.Duration) int {
	t.Helper()
	all := 0
	for pages := 0; ; pages++ {
		removed, more, err := h.Store.TrimPushLogs(ctx, keep, age, 3)
		done(t, "trim logs", err)
		if removed > 3 {
			t.Fatalf("a page of %d entries", removed)
		}
		if all += removed; !more {
			return all
		}
		if pages == 1000 {
			t.Fatal("trimming never ends")
		}
	}
}

func pushWrittenWhileParked(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Parks("a")
	r.AppendFree(r.Noted("n"), r.Noted("m"))
	r.Conclude(rendezvous.StatusCompleted) // 4
	r.WantCursor("a", 1, 0)
	must(f.UnparkPush(ctx, r.PushKey("a"), now, ""))(t, "unpark")
	w := h.Pusher(t)
	c := w.Take(r)
	eq(t, "from", c.Cursor, at(1, 0))
	var sent []int64
	for _, rec := range r.History()[c.NextSeq-1:] {
		sent = append(sent, rec.Seq)
		r.Advances("a", c.Token, rec.Seq+1)
	}
	if !slices.Equal(sent, []int64{1, 2, 3, 4}) {
		t.Fatalf("sent %v", sent)
	}
	s := settling(c, store.PushComplete)
	s.Advance = ptr(at(5, 0))
	eq(t, "done", w.Settle(s).Done, true)
	r.NoPush("a")
}
