package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// WhyEvent explains an event.
func (f *Fix) WhyEvent(id rendezvous.EventID) store.Explanation {
	f.T.Helper()
	return must(f.ExplainEvent(ctx, id))(f.T, "explain "+id.ID)
}

// WhyWait explains a wait of the run.
func (r *Flow) WhyWait(effect string) store.Explanation {
	r.F.T.Helper()
	return must(r.F.ExplainWait(ctx, r.WaitID(effect)))(r.F.T, "explain the wait "+effect)
}

// WhyPair explains an event beside a wait of the run.
func (r *Flow) WhyPair(e rendezvous.Event, effect string) store.Explanation {
	r.F.T.Helper()
	return must(r.F.ExplainPair(ctx, e.EventID, r.WaitID(effect)))(r.F.T, "explain "+e.ID+" beside "+effect)
}

// ReadsOnly explains, and fails the test unless that took one snapshot, no lock and no history, and left every row as it was (SW-32).
func (h *Harness) ReadsOnly(t *testing.T, explain func() store.Explanation) store.Explanation {
	t.Helper()
	before := h.Rows(t)
	h.Counting.Reset()
	told := explain()
	n := h.Counting.Counts()
	eq(t, "write transactions, locks, snapshots and records", []int64{n.Updates, n.Locks, n.Views, n.Records}, []int64{0, 0, 1, 0})
	eq(t, "rows after explaining", h.Rows(t), before)
	return told
}

// still is an explanation without what passes by itself.
func still(e store.Explanation) store.Explanation {
	if e.Facts.Hold != nil {
		e.Facts.Hold.Remaining = 0
	}
	return e
}

// codes are the words of reasons.
func codes(reasons []store.Reason) string {
	words := make([]string, len(reasons))
	for i, r := range reasons {
		words[i] = string(r.Code)
	}
	return strings.Join(words, " ")
}

// hintsOf are hints as text.
func hintsOf(hints []store.Hint) string {
	words := make([]string, len(hints))
	for i, h := range hints {
		words[i] = string(h.Kind) + " " + h.Event + "|" + h.Wait
	}
	return strings.Join(words, ", ")
}

// ref is a wait of the run as explanations name it.
func (r *Flow) ref(effect string) *rendezvous.WaitID {
	id := r.WaitID(effect)
	return &id
}

// dueIn makes a wait of the run whose deadline is that long after its registration.
func (r *Flow) dueIn(after time.Duration, effect, kind string, keys ...rendezvous.Key) rendezvous.Wait {
	w := r.Wait(effect, kind, keys...)
	w.DeadlineAfter = &after
	return w
}

// lapses registers a wait that has a minute, and lets two pass; no worker ticks.
func (r *Flow) lapses(effect, kind string, keys ...rendezvous.Key) {
	r.F.T.Helper()
	eq(r.F.T, "outcome of registering "+effect, r.Register(r.dueIn(time.Minute, effect, kind, keys...)).Outcome, store.RegisterWaiting)
	r.F.H.Advance(2 * time.Minute)
}

// deadline is what the wait's registration declares, zero for none.
func (r *Flow) deadline(effect string) time.Time {
	r.F.T.Helper()
	var d rendezvous.WaitRegisteredData
	for _, rec := range r.History() {
		if rec.Kind == rendezvous.WaitRegistered && rec.Effect == effect {
			done(r.F.T, "decode the registration of "+effect, rendezvous.DecodeData(rec, &d))
		}
	}
	if d.Deadline == "" {
		return time.Time{}
	}
	return must(rendezvous.ParseInstant("deadline", d.Deadline))(r.F.T, "read the deadline of "+effect)
}

// reopened lifts the seal of a run that failed.
func (r *Flow) reopened() {
	r.F.T.Helper()
	must(r.F.ReopenRun(ctx, store.Reopening{RunID: r.ID, BatchID: ID("batch"), Operator: &rendezvous.Operator{Actor: "ann", Basis: rendezvous.BasisAsserted}}, now))(r.F.T, "reopen "+r.ID)
}

// covers fails the test unless every word of a closed set was produced.
func covers[T ~string](t *testing.T, seen map[T]bool, set ...T) {
	t.Helper()
	for _, word := range set {
		if !seen[word] {
			t.Errorf("no scenario produces %q", word)
		}
	}
	for word := range seen {
		if !slices.Contains(set, word) {
			t.Errorf("%q is no word of the set", word)
		}
	}
}
