package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// pushLog is push.md section 10: what the store keeps of attempts.
var pushLog = []Case{
	{Name: "PU-84 attempts are numbered without gap for life, failures logged, acceptances where asked", Run: pushNumbers},
	{Name: "PU-84 the log keeps all of an attempt, newest first, in pages", Run: pushLogWhole},
	{Name: "PU-84 the log outlives completion", Run: pushLogOutlives},
	{Name: "PU-72 LogPush adds its entry once and touches nothing else", Run: pushLogsTest},
	{Name: "PU-84 logs are trimmed by count and age", Run: pushLogTrimmed},
}

func pushNumbers(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"), r.Noted("m"))
	r.Follows("a")
	w := h.Pusher(t)
	accepted, failed := rendezvous.ClassAccepted, rendezvous.ClassFailed
	settle := func(all bool, classes ...rendezvous.PushClass) *store.Push {
		t.Helper()
		h.Advance(time.Second)
		s := settling(w.Take(r), store.PushRelease)
		s.LogAccepted = all
		for _, c := range classes {
			a := h.attempt(t, c, 1)
			a.No = 77 // not looked at
			s.Attempts = append(s.Attempts, a)
		}
		w.Settle(s)
		return r.Push("a")
	}
	numbers := func() (all []int64) {
		t.Helper()
		for _, a := range r.Log("a") {
			all = append(all, a.No)
		}
		return all
	}
	p := settle(false, accepted, failed, accepted)
	eq(t, "the last outcome", []any{p.AttemptNo, p.Last.Class, p.Last.No, p.Last.Status}, []any{int64(3), accepted, int64(3), 204})
	eq(t, "logged", numbers(), []int64{2})
	p = settle(true, accepted, accepted, failed)
	eq(t, "the last outcome", []any{p.AttemptNo, p.Last.Class, p.Last.No}, []any{int64(6), failed, int64(6)})
	eq(t, "logged", numbers(), []int64{6, 5, 4, 2})
	p = settle(false)
	eq(t, "without attempts", []any{p.AttemptNo, p.Last.No}, []any{int64(6), int64(6)})
	r.Puts(r.Hook("a"))
	eq(t, "after a Put", r.Push("a").AttemptNo, int64(6))
	settle(false, failed)
	eq(t, "logged", numbers(), []int64{7, 6, 5, 4, 2})
	must(f.DeletePush(ctx, r.PushKey("a")))(t, "delete")
	r.Follows("a")
	eq(t, "a new incarnation", []any{r.Push("a").AttemptNo, len(r.Log("a"))}, []any{int64(0), 0})
	settle(false, failed)
	eq(t, "its own log", numbers(), []int64{1})
}

func pushLogWhole(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Follows("a")
	w := h.Pusher(t)
	s := settling(w.Take(r), store.PushRetry)
	entry := rendezvous.PushAttempt{
		Seq: 1, Index: 2, At: rendezvous.Instant(h.Now(t)), Class: rendezvous.ClassThrottled, Unknown: true, Status: 429, Code: "slow_down", Error: "too many",
		Phases:  rendezvous.PushPhases{DNS: 1000, Connect: 2000, TLS: 3000, FirstByte: 4000, Total: 5000, Queued: 6000},
		Address: "192.0.2.1:443", Response: strings.Repeat("é\\x00", 300), NextAttemptAt: h.In(t, time.Minute), AdviceCapped: true, Worker: w.Name,
	}
	entry.NextAttemptAt = rendezvous.DueInstant(entry.NextAttemptAt)
	s.Attempts = []rendezvous.PushAttempt{entry}
	w.Settle(s)
	log := r.Log("a")
	eq(t, "entries", len(log), 1)
	want := entry
	want.No = 1
	eq(t, "the entry", log[0], want)
	last := r.Push("a").Last
	last.Response, want.Response = "", ""
	eq(t, "the row's, without the answer's body", *last, want)
	for range 7 {
		h.Advance(time.Second)
		s := settling(w.Take(r), store.PushRetry)
		s.Attempts = []rendezvous.PushAttempt{h.attempt(t, rendezvous.ClassFailed, 1)}
		w.Settle(s)
	}
	page := must(f.PushAttempts(ctx, r.PushKey("a"), 3, 5))(t, "read the log")
	var got []int64
	for _, a := range page.Attempts {
		got = append(got, a.No)
	}
	eq(t, "a page", got, []int64{4, 3, 2})
	eq(t, "the rest", len(must(f.PushAttempts(ctx, r.PushKey("a"), 3, page.Before))(t, "read the log").Attempts), 1)
	eq(t, "all", len(r.Log("a")), 8)
	eq(t, "of an absent one", must(f.PushAttempts(ctx, r.PushKey("absent"), 0, 0))(t, "read the log"), store.PushAttemptPage{})
	_, err := f.PushAttempts(ctx, r.PushKey("a"), 0, -1)
	code(t, "no place", err, rendezvous.CodeInvalid, "field", "before")
}

func pushLogOutlives(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Conclude(rendezvous.StatusCompleted)
	r.Follows("a")
	w := h.Pusher(t)
	s := settling(w.Take(r), store.PushComplete)
	s.Advance, s.LogAccepted = ptr(at(3, 0)), true
	s.Attempts = []rendezvous.PushAttempt{h.attempt(t, rendezvous.ClassFailed, 1), h.attempt(t, rendezvous.ClassAccepted, 1), h.attempt(t, rendezvous.ClassAccepted, 2)}
	eq(t, "done", w.Settle(s).Done, true)
	r.NoPush("a")
	eq(t, "entries", len(r.Log("a")), 3)
	h.Advance(store.DefaultPushLogAge + time.Minute)
	eq(t, "trimmed by age", h.trim(t, 0, 0), 3)
	eq(t, "entries", len(r.Log("a")), 0)
}

func pushLogsTest(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Follows("a")
	r.Retries("a", 0, h.In(t, time.Minute))
	before := r.Push("a")
	entry := h.attempt(t, rendezvous.ClassAccepted, 1)
	entry.ID, entry.Test = "test-1", true
	for range 2 {
		eq(t, "number", must(f.LogPush(ctx, r.PushKey("a"), entry))(t, "log"), int64(1))
	}
	want := *before
	want.AttemptNo = 1
	got := r.Push("a")
	got.Last, want.Last = nil, nil
	eq(t, "the row", *got, want)
	other := entry
	other.ID = "test-2"
	eq(t, "number of another", must(f.LogPush(ctx, r.PushKey("a"), other))(t, "log"), int64(2))
	log := r.Log("a")
	eq(t, "the log", []any{len(log), log[1].ID, log[1].Test, log[1].No}, []any{2, "test-1", true, int64(1)})
	_, err := f.LogPush(ctx, r.PushKey("a"), rendezvous.PushAttempt{Class: rendezvous.ClassAccepted})
	code(t, "without an id", err, rendezvous.CodeInvalid, "field", "entry.id")
	_, err = f.LogPush(ctx, r.PushKey("a"), rendezvous.PushAttempt{ID: "x", Class: "fine"})
	code(t, "of no class", err, rendezvous.CodeInvalid, "field", "class")
	c := h.Pusher(t)
	h.Advance(time.Minute)
	held := c.Take(r)
	other.ID = "test-3"
	must(f.LogPush(ctx, r.PushKey("a"), other))(t, "log under a lease")
	eq(t, "the lease", c.Renew(held.Token).State, store.PushLeaseHeld)
}

func pushLogTrimmed(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		r := f.Start()
		r.Follows("a")
		r.Follows("b")
		w := h.Pusher(t)
		write := func(id string, n int) {
			t.Helper()
			h.Advance(time.Second)
			for _, c := range w.ClaimOf(r) {
				s := settling(c, store.PushRelease)
				for range n {
					if c.ID == id {
						s.Attempts = append(s.Attempts, h.attempt(t, rendezvous.ClassFailed, 1))
					}
				}
				w.Settle(s)
			}
		}
		write("a", 7)
		write("b", 2)
		eq(t, "nothing to trim", h.trim(t, 0, 0), 0)
		eq(t, "beyond five", h.trim(t, 5, 0), 2)
		log := r.Log("a")
		eq(t, "the newest stay", []any{len(log), log[0].No, log[4].No, len(r.Log("b"))}, []any{5, int64(7), int64(3), 2})
		h.Advance(time.Hour)
		write("a", 1)
		eq(t, "older than a minute", h.trim(t, 5, time.Minute), 7)
		eq(t, "what is left", []int{len(r.Log("a")), len(r.Log("b"))}, []int{1, 0})
		eq(t, "numbers go on", r.Push("a").AttemptNo, int64(8))
		h.Advance(time.Hour)
		eq(t, "all of what is left", h.trim(t, 0, time.Minute), 1)
		must(f.DeletePush(ctx, r.PushKey("a")))(t, "delete")
		must(f.DeletePush(ctx, r.PushKey("b")))(t, "delete")
	}
	_, _, err := h.Store.TrimPushLogs(ctx, 0, 0, 5001)
	code(t, "a limit too large", err, rendezvous.CodeTooLarge, "field", "limit")
	_, _, err = h.Store.TrimPushLogs(ctx, -1, 0, 0)
	code(t, "a negative count", err, rendezvous.CodeInvalid, "field", "keep")
	_, _, err = h.Store.TrimPushLogs(ctx, 0, -1, 0)
	code(t, "a negative age", err, rendezvous.CodeInvalid, "field", "age")
}
