package storetest

import (
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// pairScenario makes an event and a wait "w" of which one reason holds.
type pairScenario struct {
	reason rendezvous.PairReason
	make   func(f *Fix, key rendezvous.Key) (*Flow, rendezvous.Event, store.Reason) // what the reason names, its instant and record aside
}

// waitsFor is a run that waits for "paid" on the key.
func (f *Fix) waitsFor(key rendezvous.Key) *Flow {
	f.T.Helper()
	r := f.Start()
	r.Waits("w", "paid", key)
	return r
}

var pairScenarios = []pairScenario{
	{rendezvous.PairOtherType, func(f *Fix, key rendezvous.Key) (*Flow, rendezvous.Event, store.Reason) {
		return f.waitsFor(key), f.PutNew("refunded", key), store.Reason{}
	}},
	{rendezvous.PairOtherSource, func(f *Fix, key rendezvous.Key) (*Flow, rendezvous.Event, store.Reason) {
		r := f.Start()
		w := r.Wait("w", "paid", key)
		w.From = "bank"
		r.Register(w)
		return r, f.PutNew("paid", key), store.Reason{}
	}},
	{rendezvous.PairNoSharedKey, func(f *Fix, key rendezvous.Key) (*Flow, rendezvous.Event, store.Reason) {
		return f.waitsFor(key), f.PutNew("paid", K("order", ID("other"))), store.Reason{}
	}},
	{rendezvous.PairOtherAddressee, func(f *Fix, key rendezvous.Key) (*Flow, rendezvous.Event, store.Reason) {
		e := EventOf("paid", key)
		f.Start().Kept(e)
		return f.waitsFor(key), e, store.Reason{}
	}},
	{rendezvous.PairEventExpired, func(f *Fix, key rendezvous.Key) (*Flow, rendezvous.Event, store.Reason) {
		e := EventOf("paid", key)
		e.ExpiresAt = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
		f.Put(e)
		return f.waitsFor(key), e, store.Reason{}
	}},
	{rendezvous.PairEventClaimed, func(f *Fix, key rendezvous.Key) (*Flow, rendezvous.Event, store.Reason) {
		older, r := f.waitsFor(key), f.waitsFor(key)
		e := f.PutNew("paid", key)
		f.Match(e.EventID)
		return r, e, store.Reason{Wait: older.ref("w")}
	}},
	{rendezvous.PairEventConsumed, func(f *Fix, key rendezvous.Key) (*Flow, rendezvous.Event, store.Reason) {
		older, r := f.waitsFor(key), f.waitsFor(key)
		e := EventOf("paid", key)
		f.Send(e)
		return r, e, store.Reason{Wait: older.ref("w"), Seq: 3}
	}},
	{rendezvous.PairEventDead, func(f *Fix, key rendezvous.Key) (*Flow, rendezvous.Event, store.Reason) {
		r := f.Start()
		r.Waits("before", "paid", key)
		e := EventOf("paid", key)
		r.Targeted("before", e)
		r.Withdraw("before")
		r.Waits("w", "paid", key)
		return r, e, store.Reason{Dead: rendezvous.DeadWaitWithdrawn}
	}},
	{rendezvous.PairEventErased, func(f *Fix, key rendezvous.Key) (*Flow, rendezvous.Event, store.Reason) {
		e := f.PutNew("paid", key)
		f.Erase(e.EventID)
		return f.waitsFor(key), e, store.Reason{Dead: rendezvous.DeadErased}
	}},
	{rendezvous.PairArrivedLate, func(f *Fix, key rendezvous.Key) (*Flow, rendezvous.Event, store.Reason) {
		r := f.Start()
		r.lapses("w", "paid", key)
		return r, f.PutNew("paid", key), store.Reason{}
	}},
	{rendezvous.PairWaitParked, func(f *Fix, key rendezvous.Key) (*Flow, rendezvous.Event, store.Reason) {
		r := f.waitsFor(key)
		held := f.PutNew("paid", key)
		f.Match(held.EventID)
		return r, f.PutNew("paid", key), store.Reason{Event: &held.EventID}
	}},
	{rendezvous.PairWaitClosed, func(f *Fix, key rendezvous.Key) (*Flow, rendezvous.Event, store.Reason) {
		r := f.waitsFor(key)
		answer := EventOf("paid", key)
		f.Send(answer)
		return r, f.PutNew("paid", key), store.Reason{Closed: rendezvous.ClosedAnswered, Event: &answer.EventID, Seq: 3}
	}},
	{rendezvous.PairWaitClosed, func(f *Fix, key rendezvous.Key) (*Flow, rendezvous.Event, store.Reason) {
		r := f.waitsFor(key)
		r.Conclude(rendezvous.StatusFailed)
		r.reopened()
		return r, f.PutNew("paid", key), store.Reason{Closed: rendezvous.ClosedEnded, Outcome: rendezvous.RunFailed, Seq: 3}
	}},
	{rendezvous.PairRunSealed, func(f *Fix, key rendezvous.Key) (*Flow, rendezvous.Event, store.Reason) {
		r := f.waitsFor(key)
		r.Conclude(rendezvous.StatusCompleted)
		return r, f.PutNew("paid", key), store.Reason{Outcome: rendezvous.RunCompleted}
	}},
	{rendezvous.PairOlderEventFirst, func(f *Fix, key rendezvous.Key) (*Flow, rendezvous.Event, store.Reason) {
		r := f.waitsFor(key)
		older := f.PutNew("paid", key)
		return r, f.PutNew("paid", key), store.Reason{Event: &older.EventID}
	}},
	{rendezvous.PairOlderWaitFirst, func(f *Fix, key rendezvous.Key) (*Flow, rendezvous.Event, store.Reason) {
		older, r := f.waitsFor(key), f.waitsFor(key)
		return r, f.PutNew("paid", key), store.Reason{Wait: older.ref("w")}
	}},
	{rendezvous.PairOfferDue, func(f *Fix, key rendezvous.Key) (*Flow, rendezvous.Event, store.Reason) {
		return f.waitsFor(key), f.PutNew("paid", key), store.Reason{}
	}},
}

func pairReasons(t *testing.T, h *Harness) {
	seen := map[rendezvous.PairReason]bool{}
	for _, s := range pairScenarios {
		for _, f := range h.Two(t) {
			r, e, want := s.make(f, K("order", ID("key")))
			got := r.WhyPair(e, "w")
			eq(t, "reasons", codes(got.Reasons), string(s.reason))
			seen[got.Reasons[0].Code] = true
			want.Code, want.Since = s.reason, got.Reasons[0].Since
			eq(t, "the reason", got.Reasons[0], want)
			eq(t, "verdict of the pair", got.Verdict, f.WhyEvent(e.EventID).Verdict)
			eq(t, "near misses of a pair", got.NearMisses, nil)
		}
	}
	covers(t, seen, rendezvous.PairOtherType, rendezvous.PairOtherSource, rendezvous.PairNoSharedKey, rendezvous.PairOtherAddressee, rendezvous.PairEventExpired,
		rendezvous.PairEventClaimed, rendezvous.PairEventConsumed, rendezvous.PairEventDead, rendezvous.PairEventErased, rendezvous.PairArrivedLate, rendezvous.PairWaitParked,
		rendezvous.PairWaitClosed, rendezvous.PairRunSealed, rendezvous.PairOlderEventFirst, rendezvous.PairOlderWaitFirst, rendezvous.PairOfferDue)

	f := h.Fix(t) // all that hold are told
	r := f.Start()
	w := r.dueIn(time.Minute, "w", "paid", K("order", "x"))
	w.From = "bank"
	r.Register(w)
	h.Advance(2 * time.Minute)
	r.Withdraw("w")
	r.Conclude(rendezvous.StatusCompleted)
	e := EventOf("refunded", K("order", "y"))
	other := f.Start()
	other.Kept(e)
	other.Conclude(rendezvous.StatusCompleted)
	f.Erase(e.EventID)
	eq(t, "all reasons", codes(r.WhyPair(e, "w").Reasons),
		"other_type other_source no_shared_key other_addressee event_dead event_erased arrived_late wait_closed run_sealed")
}

func halfPairs(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.waitsFor(K("order", "1"))
	e := f.PutNew("paid", K("order", "1"))
	eq(t, "verdict without the event", r.WhyPair(EventOf("paid"), "w").Verdict, rendezvous.VerdictUnknown)
	eq(t, "verdict without the wait", r.WhyPair(e, "x").Verdict, rendezvous.VerdictUnregistered)
	eq(t, "verdict without both", r.WhyPair(EventOf("paid"), "x").Verdict, rendezvous.VerdictUnknown)
	eq(t, "reasons without the wait", r.WhyPair(e, "x").Reasons, nil)
}

func explainingWaitsReadsOnly(t *testing.T, h *Harness) {
	fs := h.Two(t)
	for i, f := range fs {
		twin := fs[1-i]
		for _, s := range waitScenarios {
			key := K("order", ID("key"))
			r, _ := s.make(f, key)
			first := still(h.ReadsOnly(t, func() store.Explanation { return r.WhyWait("w") }))
			s.make(twin, key)
			twin.PutNew("paid", key)
			eq(t, "explained again", still(r.WhyWait("w")), first)
		}
		for _, s := range pairScenarios {
			key := K("order", ID("key"))
			r, e, _ := s.make(f, key)
			first := still(h.ReadsOnly(t, func() store.Explanation { return r.WhyPair(e, "w") }))
			s.make(twin, key)
			eq(t, "explained again", still(r.WhyPair(e, "w")), first)
		}
	}
}
