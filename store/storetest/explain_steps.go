package storetest

import (
	"slices"
	"strings"
	"testing"

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
