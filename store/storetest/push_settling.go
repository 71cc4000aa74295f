package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// pushSettling is push.md section 3: Settle; and what it keeps of attempts (section 10).
var pushSettling = []Case{
	{Name: "PU-37 a settlement does what its single verb does, and ends the lease", Run: pushSettles},
	{Name: "PU-37 keep moves the cursor and leaves the lease", Run: pushSettleKeeps},
	{Name: "PU-37 a release is not charged; why says when the row is due", Run: pushReleases},
	{Name: "PU-16 release rest idles the row while the head is the one that was read, else it is due", Run: pushRestsAtHead},
	{Name: "PU-16 release rest before the end does not idle", Run: pushRestsEarly},
	{Name: "PU-37 a fenced, an invalid and an unknown item fail alone, in order", Run: pushSettlesAlone},
	{Name: "PU-37 items of one registration are made in their order", Run: pushSettlesInOrder},
	{Name: "PU-37 several tenants in one batch", Run: pushSettlesTenants},
	{Name: "PU-37 501 items are too large, as are 1,001 attempts", Run: pushSettlesTooMany},
	{Name: "PU-37 a settlement repeated by its name gets the first outcome", Run: pushSettlesAgain},
	{Name: "PU-37 a batch of several settlements of one registration, repeated after a lost reply, counts and logs once", Run: pushSettlesSeriesAgain},
	{Name: "PU-40 complete by settlement ends the registration; a reopened run is a conflict, and the row lives", Run: pushSettleCompletes},
	{Name: "PU-60 rejections are counted for one message, another one begins anew", Run: pushRejects},
	{Name: "PU-66 an acceptance zeroes attempts, failing_since and rejections, also before a failure of the same settlement", Run: pushForgets},
	{Name: "PU-65 a settlement parks when its worker says so, charged, with its reason", Run: pushSettleParks},
	{Name: "limits of settlements are refused by name, each alone", Run: pushSettleLimits},
}

func pushSettles(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		for _, c := range []struct {
			do    store.PushSettle
			judge func(r *Flow, p *store.Push)
		}{
			{store.PushRelease, func(r *Flow, p *store.Push) {
				eq(t, "released", []any{p.State, p.Attempts, p.FailingSince.IsZero()}, []any{rendezvous.PushLive, 0, true})
				r.WantDue("after a release", "a", now, true)
			}},
			{store.PushRetry, func(r *Flow, p *store.Push) {
				eq(t, "retried", []any{p.State, p.Attempts, p.Error, p.FailingSince.IsZero()}, []any{rendezvous.PushLive, 1, "503", false})
				eq(t, "due", p.NextAttemptAt.After(h.Now(t)), true)
			}},
			{store.PushPark, func(_ *Flow, p *store.Push) {
				eq(t, "parked", []any{p.State, p.Attempts, p.Error, p.Reason}, []any{rendezvous.PushParked, 1, "503", rendezvous.ParkExhausted})
			}},
		} {
			r := f.Start()
			r.AppendFree(r.Noted("n"))
			r.Follows("a")
			w := h.Pusher(t)
			got := w.Take(r)
			s := settling(got, c.do)
			if s.Advance = ptr(at(2, 0)); c.do == store.PushRetry {
				s.At = h.In(t, time.Minute)
			}
			out := w.Settle(s)
			eq(t, "outcome", []any{out.State, out.Cursor, out.Idle, out.Done}, []any{store.PushLeaseHeld, at(2, 0), false, false})
			p := r.WantCursor("a", 2, 0)
			eq(t, "lease", p.LeaseUntil.IsZero(), true)
			c.judge(r, p)
			eq(t, "renewed", w.Renew(got.Token).State, store.PushLeaseFenced)
			code(t, "another settlement", w.SettleAll(settling(got, store.PushRetry))[0].Err, rendezvous.CodeFenced)
			r.Unchanged("after a fenced settlement", p)
		}
	}
}

func pushSettleKeeps(t *testing.T, h *Harness) {
	r := h.Fix(t).Start()
	r.AppendFree(r.Noted("n"), r.Noted("m"))
	r.Follows("a")
	w := h.Pusher(t)
	c := w.Take(r)
	for _, seq := range []int64{2, 3, 3, 2} {
		s := settling(c, store.PushKeep)
		s.Advance = ptr(at(seq, 0))
		out := w.Settle(s)
		eq(t, "state", out.State, store.PushLeaseHeld)
		p := r.Push("a")
		eq(t, "cursor", []rendezvous.Cursor{out.Cursor, p.Cursor}, []rendezvous.Cursor{p.Cursor, at(max(seq, p.NextSeq), 0)})
		eq(t, "lease", p.LeaseUntil, c.ExpiresAt)
	}
	r.WantCursor("a", 3, 0)
	h.Advance(pushLeaseEnd)
	s := settling(c, store.PushKeep)
	s.Advance = ptr(at(4, 0))
	w.Settle(s) // it ran out, and nobody claimed since
	eq(t, "cursor", r.Push("a").Cursor, at(4, 0))
}

func pushReleases(t *testing.T, h *Harness) {
	f := h.Fix(t)
	T := h.In(t, 90*time.Second)
	for _, c := range []struct {
		why store.PushWhy
		at  time.Time
		now bool
	}{
		{store.ReleasePage, time.Time{}, true},
		{store.ReleasePage, T, true},
		{store.ReleaseDrain, T, true},
		{store.ReleaseRate, T, false},
		{store.ReleaseGate, T, false},
		{store.ReleaseProxy, T, false},
		{store.ReleaseOwn, T, false},
		{store.ReleaseOwn, time.Time{}, true},
	} {
		r := f.Start()
		r.Follows("a")
		r.Retries("a", 0, h.Now(t))
		h.Advance(time.Second)
		w := h.Pusher(t)
		got := w.Take(r)
		before := r.Push("a")
		s := settling(got, store.PushRelease)
		s.Why, s.At = c.why, c.at
		began := h.Now(t)
		w.Settle(s)
		p := r.Push("a")
		want := *before
		want.LeaseUntil, want.NextAttemptAt = time.Time{}, p.NextAttemptAt
		eq(t, "the row, not charged", *p, want)
		if c.now {
			if p.NextAttemptAt.Before(began) || p.NextAttemptAt.After(rendezvous.DueInstant(h.Now(t))) {
				t.Fatalf("release %s is due at %s, want now (%s)", c.why, p.NextAttemptAt, began)
			}
		} else {
			eq(t, "release "+string(c.why)+" is due", p.NextAttemptAt, T)
		}
		must(f.DeletePush(ctx, r.PushKey("a")))(t, "delete")
	}
}

func pushRestsAtHead(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Follows("a")
	w := h.Pusher(t)
	out := w.Settle(resting(w.Take(r), 1))
	eq(t, "idle", []any{out.Idle, out.Cursor}, []any{true, at(2, 0)})
	p := r.Push("a")
	eq(t, "the row", []any{p.State, p.LeaseUntil.IsZero()}, []any{rendezvous.PushIdle, true})
	appended := r.AppendFree(r.Noted("n"))
	r.wantPush("of a record that is taken", appended.Notices)
	c := w.Take(r)
	r.AppendFree(r.Noted("m")) // behind the page that was read
	out = w.Settle(resting(c, 2))
	eq(t, "not idle", []any{out.Idle, out.Cursor}, []any{false, at(3, 0)})
	eq(t, "the row", r.Push("a").State, rendezvous.PushLive)
	r.WantDue("with a record that was not read", "a", now, true)
	h.Advance(time.Microsecond)
	eq(t, "idle at last", w.Settle(resting(w.Take(r), 3)).Idle, true)
	eq(t, "due", f.Due(endOfTime), nil)
}

func pushRestsEarly(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"))
	r.Follows("a")
	w := h.Pusher(t)
	s := resting(w.Take(r), 2)
	s.Advance = ptr(at(2, 0)) // one record is left
	out := w.Settle(s)
	eq(t, "idle", out.Idle, false)
	r.WantDue("with a record left", "a", now, true)
	h.Advance(time.Microsecond)
	s = resting(w.Take(r), 1) // the head was read before the last record, which somebody else has sent
	s.Advance = ptr(at(3, 0))
	eq(t, "idle by a head that was", w.Settle(s).Idle, false)
	r.WantDue("to be looked at again", "a", now, true)
}

func pushSettlesAlone(t *testing.T, h *Harness) {
	f := h.Fix(t)
	var got []store.ClaimedPush
	var runs []*Flow
	w := h.Pusher(t)
	for range 6 {
		r := f.Start()
		r.AppendFree(r.Noted("n"))
		r.Follows("a")
		got, runs = append(got, w.Take(r)), append(runs, r)
	}
	items := make([]store.PushSettlement, len(got))
	for i, c := range got {
		items[i] = settling(c, store.PushRelease)
		items[i].Advance = ptr(at(2, 0))
	}
	items[0].Token += 1000
	items[1].Advance = ptr(at(99, 0))
	items[2].Name = ""
	items[3].PushKey.ID = "absent"
	must(f.DeletePush(ctx, items[4].PushKey))(t, "delete")
	out := w.SettleAll(items...)
	for i, want := range []rendezvous.Code{rendezvous.CodeFenced, rendezvous.CodeInvalid, rendezvous.CodeInvalid, rendezvous.CodeNotFound, rendezvous.CodeNotFound, ""} {
		eq(t, fmt.Sprint("outcome of item ", i), rendezvous.CodeOf(out[i].Err), want)
	}
	eq(t, "what a fenced item accepted counts", runs[0].Push("a").Cursor, at(2, 0))
	runs[1].WantCursor("a", 1, 0)
	runs[2].WantCursor("a", 1, 0)
	runs[3].WantCursor("a", 1, 0)
	runs[5].WantCursor("a", 2, 0)
	for _, i := range []int{0, 1, 2, 3} {
		eq(t, fmt.Sprint("lease of item ", i), w.Renew(got[i].Token).State, store.PushLeaseHeld)
	}
}

func pushSettlesInOrder(t *testing.T, h *Harness) {
	r := h.Fix(t).Start()
	r.AppendFree(r.Noted("n"), r.Noted("m"))
	r.Follows("a")
	w := h.Pusher(t)
	c := w.Take(r)
	var items []store.PushSettlement
	for _, seq := range []int64{2, 3} {
		s := settling(c, store.PushKeep)
		s.Advance, s.LogAccepted = ptr(at(seq, 0)), true
		s.Attempts = []rendezvous.PushAttempt{h.attempt(t, rendezvous.ClassAccepted, seq-1)}
		items = append(items, s)
	}
	last := settling(c, store.PushRetry)
	last.Attempts, last.At = []rendezvous.PushAttempt{h.attempt(t, rendezvous.ClassFailed, 3)}, h.In(t, time.Minute)
	late := settling(c, store.PushRetry)
	out := w.SettleAll(items[0], items[1], last, late)
	eq(t, "cursors", []rendezvous.Cursor{out[0].Cursor, out[1].Cursor, out[2].Cursor}, []rendezvous.Cursor{at(2, 0), at(3, 0), at(3, 0)})
	for _, o := range out[:3] {
		done(t, "settle", o.Err)
	}
	code(t, "one after the end of the lease", out[3].Err, rendezvous.CodeFenced)
	p := r.Push("a")
	eq(t, "the row", []any{p.Attempts, p.AttemptNo, p.NextAttemptAt}, []any{1, int64(3), last.At})
	var classes []rendezvous.PushClass
	for _, a := range r.Log("a") {
		classes = append(classes, a.Class)
	}
	eq(t, "log", classes, []rendezvous.PushClass{rendezvous.ClassFailed, rendezvous.ClassAccepted, rendezvous.ClassAccepted})
}

func pushSettlesTenants(t *testing.T, h *Harness) {
	two := h.Two(t)
	s := store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order"}
	w := h.Pusher(t)
	var items []store.PushSettlement
	var runs []*Flow
	for i, f := range two {
		r := f.StartAs(s)
		r.Follows("a")
		item := settling(w.Take(r), store.PushRetry)
		item.Name, item.At = "same", h.In(t, time.Duration(i+1)*time.Minute) // a settlement's name is its registration's
		items, runs = append(items, item), append(runs, r)
	}
	swapped := slices.Clone(items)
	swapped[0].Token, swapped[1].Token = swapped[1].Token, swapped[0].Token
	swapped[0].Name, swapped[1].Name = "x", "y"
	for _, out := range w.SettleAll(swapped...) { // a token may also be from before the registration
		if c := rendezvous.CodeOf(out.Err); c != rendezvous.CodeFenced && c != rendezvous.CodeNotFound {
			t.Fatalf("under the other's token: %v", out.Err)
		}
	}
	for i, out := range w.SettleAll(items...) {
		done(t, "settle", out.Err)
		p := runs[i].Push("a")
		eq(t, "the row", []any{p.Attempts, p.NextAttemptAt}, []any{1, items[i].At})
	}
}

func pushSettlesTooMany(t *testing.T, h *Harness) {
	r := h.Fix(t).Start()
	r.Follows("a")
	w := h.Pusher(t)
	c := w.Take(r)
	items := make([]store.PushSettlement, rendezvous.MaxBatchItems+1)
	for i := range items {
		items[i] = settling(c, store.PushKeep)
	}
	_, err := h.Store.SettlePushes(ctx, items)
	code(t, "501 items", err, rendezvous.CodeTooLarge, "limit", rendezvous.MaxBatchItems, "value", len(items))
	for _, out := range w.SettleAll(items[:rendezvous.MaxBatchItems]...) {
		done(t, "keep", out.Err)
	}
	many := settling(c, store.PushKeep)
	for range 1001 {
		many.Attempts = append(many.Attempts, h.attempt(t, rendezvous.ClassAccepted, 1))
	}
	if got := rendezvous.CodeOf(w.SettleAll(many)[0].Err); got != rendezvous.CodeTooLarge && got != rendezvous.CodeInvalid {
		t.Fatalf("1,001 attempts: %q", got)
	}
	many.Attempts = many.Attempts[:1000]
	w.Settle(many)
	eq(t, "attempts of its life", r.Push("a").AttemptNo, int64(1000))
	eq(t, "none", len(w.SettleAll()), 0)
}

func pushSettlesAgain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, do := range []store.PushSettle{store.PushKeep, store.PushRelease, store.PushRetry, store.PushPark} {
		r := f.Start()
		r.AppendFree(r.Noted("n"))
		r.Follows("a")
		w := h.Pusher(t)
		s := settling(w.Take(r), do)
		s.Advance, s.At = ptr(at(2, 0)), h.In(t, time.Minute)
		s.Attempts = []rendezvous.PushAttempt{h.attempt(t, rendezvous.ClassAccepted, 1), h.attempt(t, rendezvous.ClassFailed, 2)}
		first := w.Settle(s)
		before := r.Push("a")
		for range 2 {
			eq(t, "the outcome again", w.Settle(s), first)
			r.Unchanged("after a repeated "+string(do), before)
		}
		eq(t, "log", len(r.Log("a")), 1)
		r.Unchanged("after repeats", before)
		if do != store.PushKeep {
			must(f.DeletePush(ctx, r.PushKey("a")))(t, "delete")
		}
	}
}

func pushSettlesSeriesAgain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, last := range []store.PushSettle{store.PushKeep, store.PushRelease, store.PushRetry, store.PushComplete} {
		r := f.Start()
		r.AppendFree(r.Noted("n"))
		if r.Follows("a"); last == store.PushComplete {
			r.Conclude(rendezvous.StatusCompleted)
		}
		w := h.Pusher(t)
		c := w.Take(r)
		var items []store.PushSettlement
		for i, do := range []store.PushSettle{store.PushKeep, store.PushKeep, last} {
			s := settling(c, do)
			s.Advance, s.At, s.LogAccepted = ptr(at(min(int64(i)+2, r.Head()+1), 0)), h.In(t, time.Minute), true
			if do == store.PushComplete {
				s.Advance = ptr(at(r.Head()+1, 0))
			}
			s.Attempts = []rendezvous.PushAttempt{h.attempt(t, rendezvous.ClassAccepted, int64(i)+1)}
			items = append(items, s)
		}
		lost := h.Faults.Arm(fault.Failure{Verb: "settle_pushes", Point: fault.AfterCommit})
		_, err := h.Store.SettlePushes(ctx, items)
		code(t, "settle", err, rendezvous.CodeCommitUnknown)
		eq(t, "answers lost", lost.Struck(), 1)
		rows, log := r.pushRows(), r.Log("a")
		eq(t, "logged", len(log), 3)
		for range 2 {
			for i, out := range w.SettleAll(items...) {
				if last == store.PushComplete { // the row is gone: what it did before is not known any more
					eq(t, "done", out.Done, items[i].Do == store.PushComplete)
					continue
				}
				done(t, fmt.Sprint("item ", i, " of a series ended by ", last), out.Err)
				eq(t, "its outcome", []any{out.State, out.Cursor}, []any{store.PushLeaseHeld, *items[i].Advance})
			}
			eq(t, "rows after a series that ends with "+string(last), r.pushRows(), rows)
			eq(t, "log", r.Log("a"), log)
		}
		must(f.DeletePush(ctx, r.PushKey("a")))(t, "delete")
	}
}

func pushSettleCompletes(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Follows("a")
	r.Follows("b")
	w := h.Pusher(t)
	got := w.ClaimOf(r)
	early := settling(got[0], store.PushComplete)
	early.Advance = ptr(at(2, 0))
	code(t, "complete of a running run", w.SettleAll(early)[0].Err, rendezvous.CodeConflict)
	r.WantCursor("a", 2, 0)
	r.Conclude(rendezvous.StatusFailed) // 2
	h.Advance(pushLeaseEnd)
	got = w.ClaimOf(r)
	eq(t, "claimed", len(got), 2)
	last := settling(got[0], store.PushComplete)
	last.Advance = ptr(at(3, 0))
	first := w.Settle(last)
	eq(t, "outcome", first.Done, true)
	r.NoPush(got[0].ID)
	eq(t, "again", w.Settle(last).Done, true)
	r.Reopen() // 3
	last = settling(got[1], store.PushComplete)
	last.Advance = ptr(at(3, 0))
	out := w.SettleAll(last)[0]
	code(t, "complete of a reopened run", out.Err, rendezvous.CodeConflict)
	p := r.WantCursor(got[1].ID, 3, 0)
	h.Advance(pushLeaseEnd)
	r.WantDue("after a conflict", p.ID, now, true)
	r.Conclude(rendezvous.StatusCompleted) // 4
	last = settling(w.Take(r), store.PushComplete)
	last.Advance = ptr(at(5, 0))
	eq(t, "done", w.Settle(last).Done, true)
	eq(t, "rows", len(must(f.ListPush(ctx, r.ID))(t, "list")), 0)
	eq(t, "registrations counted", r.Describe().Registrations, 0)
}

func pushRejects(t *testing.T, h *Harness) {
	r := h.Fix(t).Start()
	r.AppendFree(r.Noted("n"))
	r.Follows("a")
	w := h.Pusher(t)
	fail := func(class rendezvous.PushClass, seq int64, index, want int) {
		t.Helper()
		h.Advance(time.Second)
		s := settling(w.Take(r), store.PushRetry)
		s.Attempts = []rendezvous.PushAttempt{h.attempt(t, class, seq)}
		s.Attempts[0].Index = index
		w.Settle(s)
		eq(t, "rejections", r.Push("a").Rejects, want)
	}
	rejected, failed := rendezvous.ClassRejected, rendezvous.ClassFailed
	fail(rejected, 1, 0, 1)
	fail(rejected, 1, 0, 2)
	fail(failed, 1, 0, 0) // in a row
	fail(rejected, 1, 0, 1)
	eq(t, "attempts", r.Push("a").Attempts, 4)
	h.Advance(time.Second)
	c := w.Take(r)
	eq(t, "claimed with its count", c.Rejects, 1)
	s := settling(c, store.PushRetry)
	s.Advance = ptr(at(1, 1)) // the next message of the same record
	s.Attempts = []rendezvous.PushAttempt{h.attempt(t, rendezvous.ClassAccepted, 1), h.attempt(t, rejected, 1)}
	s.Attempts[1].Index = 1
	w.Settle(s)
	p := r.Push("a")
	eq(t, "after another message", []any{p.Rejects, p.Attempts}, []any{1, 1})
	fail(rejected, 1, 1, 2)
	r.Advances("a", 0, 2)
	eq(t, "after an advance", r.Push("a").Rejects, 0)
	fail(rejected, 2, 0, 1)
	h.Advance(time.Second)
	w.Settle(settling(w.Take(r), store.PushRelease))
	p = r.Push("a")
	eq(t, "what is not charged changes nothing", []any{p.Rejects, p.Attempts}, []any{1, 1})
	fail(rejected, 2, 0, 2)
	r.AppendFree(r.Noted("m"))
	h.Advance(time.Second)
	w.Take(r)
	eq(t, "another's acceptance", r.Advances("a", 0, 3).Owned, false)
	eq(t, "after another's acceptance", r.Push("a").Rejects, 0)
}

func pushForgets(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"), r.Noted("m"))
	r.Follows("a")
	w := h.Pusher(t)
	fail := func(advance *rendezvous.Cursor, attempts int) *store.Push {
		t.Helper()
		h.Advance(time.Second)
		s := settling(w.Take(r), store.PushRetry)
		s.Advance = advance
		w.Settle(s)
		p := r.Push("a")
		eq(t, "attempts", p.Attempts, attempts)
		return p
	}
	first := fail(nil, 1)
	eq(t, "failing since", fail(nil, 2).FailingSince, first.FailingSince)
	anew := fail(ptr(at(2, 0)), 1)
	if !anew.FailingSince.After(first.FailingSince) {
		t.Fatalf("failing since %s, which is before an acceptance", anew.FailingSince)
	}
	eq(t, "failing since", fail(nil, 2).FailingSince, anew.FailingSince)
	h.Advance(time.Second)
	s := settling(w.Take(r), store.PushRelease)
	s.Advance = ptr(at(3, 0))
	w.Settle(s)
	p := r.Push("a")
	eq(t, "after an acceptance", []any{p.Attempts, p.FailingSince.IsZero(), p.Error}, []any{0, true, ""})
}

func pushSettleParks(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, reason := range rendezvous.ParkReasons {
		r := f.Start()
		p := r.Hook("a")
		p.NextSeq, p.MaxAttempts = 1, 3
		r.Puts(p)
		w := h.Pusher(t)
		for range 2 {
			h.Advance(time.Second)
			w.Settle(settling(w.Take(r), store.PushRetry))
			eq(t, "state", r.Push("a").State, rendezvous.PushLive)
		}
		h.Advance(time.Second)
		s := settling(w.Take(r), store.PushPark)
		s.Reason, s.Error = reason, "500"
		s.Attempts = []rendezvous.PushAttempt{h.attempt(t, rendezvous.ClassFailed, 1)}
		w.Settle(s)
		got := r.WantCursor("a", 1, 0)
		eq(t, "the row", []any{got.State, got.Reason, got.Error, got.Attempts, got.ParkedAt.IsZero(), got.FailingSince.IsZero(), got.Last.Class},
			[]any{rendezvous.PushParked, reason, "500", 3, false, false, rendezvous.ClassFailed})
	}
}

func pushSettleLimits(t *testing.T, h *Harness) {
	r := h.Fix(t).Start()
	r.Follows("a")
	w := h.Pusher(t)
	c := w.Take(r)
	held := r.Push("a")
	for field, set := range map[string]func(*store.PushSettlement){
		"name":   func(s *store.PushSettlement) { s.Name = strings.Repeat("i", 129) },
		"do":     func(s *store.PushSettlement) { s.Do = "wait" },
		"why":    func(s *store.PushSettlement) { s.Do, s.Why = store.PushRelease, "tired" },
		"reason": func(s *store.PushSettlement) { s.Do, s.Reason = store.PushPark, "tired" },
		"error":  func(s *store.PushSettlement) { s.Error = strings.Repeat("x", rendezvous.MaxPushError+1) },
		"class":  func(s *store.PushSettlement) { s.Attempts = []rendezvous.PushAttempt{{Class: "fine"}} },
		"tenant": func(s *store.PushSettlement) { s.Tenant = "no tenant" },
	} {
		s := settling(c, store.PushRetry)
		set(&s)
		other := settling(c, store.PushKeep)
		out := w.SettleAll(s, other)
		if c := rendezvous.CodeOf(out[0].Err); c != rendezvous.CodeInvalid && c != rendezvous.CodeTooLarge || detail(out[0].Err, "field") != field {
			t.Fatalf("a wrong %s: %v", field, out[0].Err)
		}
		done(t, "the item beside", out[1].Err)
		r.Unchanged("after a refused settlement", held)
	}
}
