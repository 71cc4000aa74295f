package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// explainEvents are the cases of why an event did not match (SW-30..SW-32).
var explainEvents = []Case{
	{Name: "SW-30 each verdict on an event has its scenario", Run: eventVerdicts},
	{Name: "SW-30 what a standing claim waits for", Run: eventHolds},
	{Name: "SW-30 near misses are the nearest, ten at most", Run: nearestWaits},
	{Name: "SW-30 a search that is cut says so", Run: cutSearch},
	{Name: "SW-31 what differs by case, a blank or the namespace is named", Run: hintedWaits},
	{Name: "SW-32 explaining an event changes nothing and stays in its tenant", Run: explainingReadsOnly},
	{Name: "SW-30 EV-37 a wait of a sealed run, brought back, is passed over", Run: explainRestored},
}

// eventScenario makes an event whose verdict is its own.
type eventScenario struct {
	verdict rendezvous.Verdict
	make    func(f *Fix, key rendezvous.Key) (rendezvous.EventID, store.Facts) // the facts beside those of the event itself and its instants
}

var eventScenarios = []eventScenario{
	{rendezvous.VerdictUnknown, func(*Fix, rendezvous.Key) (rendezvous.EventID, store.Facts) {
		return rendezvous.EventID{Source: "shop", ID: ID("never")}, store.Facts{}
	}},
	{rendezvous.VerdictDelivered, func(f *Fix, key rendezvous.Key) (rendezvous.EventID, store.Facts) {
		r := f.Start()
		r.Waits("w", "paid", key)
		e := EventOf("paid", key)
		f.Send(e)
		return e.EventID, store.Facts{WorkflowID: r.WorkflowID, Wait: r.ref("w"), Seq: 3}
	}},
	{rendezvous.VerdictHeld, func(f *Fix, key rendezvous.Key) (rendezvous.EventID, store.Facts) {
		r := f.Start()
		d := r.Drive()
		d.Waits("w", "paid", key)
		e := f.PutNew("paid", key)
		f.OfferEvent(e.EventID)
		return e.EventID, store.Facts{WorkflowID: r.WorkflowID, Wait: r.ref("w"), Hold: &store.Hold{State: rendezvous.HoldLeased, Owner: d.Owner}}
	}},
	{rendezvous.VerdictDead, func(f *Fix, key rendezvous.Key) (rendezvous.EventID, store.Facts) {
		r := f.Start()
		e := EventOf("paid", key)
		r.Kept(e)
		r.Conclude(rendezvous.StatusCompleted)
		return e.EventID, store.Facts{Death: &store.Death{Reason: rendezvous.DeadAddresseeConcluded}}
	}},
	{rendezvous.VerdictExpired, func(f *Fix, key rendezvous.Key) (rendezvous.EventID, store.Facts) {
		r := f.Start()
		r.Waits("w", "paid", key) // it would meet it
		e := EventOf("paid", key)
		e.ExpiresAt = time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
		f.Put(e)
		return e.EventID, store.Facts{Since: e.ExpiresAt}
	}},
	{rendezvous.VerdictKept, func(f *Fix, key rendezvous.Key) (rendezvous.EventID, store.Facts) {
		r := f.Start()
		r.Waits("other", "refunded", key)
		e := EventOf("paid", key)
		r.Kept(e)
		return e.EventID, store.Facts{Run: &store.RunFacts{RunID: r.ID, State: rendezvous.RunStateOpen, WorkflowID: r.WorkflowID}}
	}},
	{rendezvous.VerdictNoKeys, func(f *Fix, _ rendezvous.Key) (rendezvous.EventID, store.Facts) {
		f.Start().Waits("w", "paid")
		return f.PutNew("paid").EventID, store.Facts{}
	}},
	{rendezvous.VerdictBehind, func(f *Fix, key rendezvous.Key) (rendezvous.EventID, store.Facts) {
		r := f.Start()
		older := f.PutNew("paid", key)
		e := f.PutNew("paid", key)
		r.Subscribes("w", "paid", key)
		return e.EventID, store.Facts{WorkflowID: r.WorkflowID, Wait: r.ref("w"), Event: &older.EventID}
	}},
	{rendezvous.VerdictOfferDue, func(f *Fix, key rendezvous.Key) (rendezvous.EventID, store.Facts) {
		r := f.Start()
		r.Waits("w", "paid", key)
		return f.PutNew("paid", key).EventID, store.Facts{WorkflowID: r.WorkflowID, Wait: r.ref("w")}
	}},
	{rendezvous.VerdictNoWait, func(f *Fix, key rendezvous.Key) (rendezvous.EventID, store.Facts) {
		f.Start().Waits("w", "refunded", key)
		return f.PutNew("paid", key).EventID, store.Facts{}
	}},
}

func eventVerdicts(t *testing.T, h *Harness) {
	seen := map[rendezvous.Verdict]bool{}
	for _, s := range eventScenarios {
		for _, f := range h.Two(t) {
			id, want := s.make(f, K("order", ID("key")))
			got := f.WhyEvent(id)
			eq(t, "verdict", got.Verdict, s.verdict)
			seen[got.Verdict] = true
			if s.verdict != rendezvous.VerdictUnknown {
				stored := f.Stored(id)
				eq(t, "the event itself", []any{got.Facts.Number, got.Facts.Type, got.Facts.Keys, got.Facts.Target, got.Facts.ReceivedAt},
					[]any{stored.Number, stored.Type, stored.Keys, stored.Target, stored.ReceivedAt})
				want.Number, want.Type, want.Keys, want.Target, want.ReceivedAt = stored.Number, stored.Type, stored.Keys, stored.Target, stored.ReceivedAt
				eq(t, "since or at of "+string(s.verdict), got.Facts.Since.IsZero() && got.Facts.At.IsZero(), false)
			}
			if want.Since.IsZero() {
				want.Since = got.Facts.Since
			}
			want.At, want.Waited = got.Facts.At, got.Facts.Waited
			if hold := got.Facts.Hold; hold != nil {
				eq(t, "what is left of the lease", hold.Remaining > 0, true)
				hold.Remaining, hold.NextAttemptAt = 0, time.Time{}
			}
			eq(t, "facts of "+string(s.verdict), got.Facts, want)
		}
	}
	covers(t, seen, rendezvous.VerdictUnknown, rendezvous.VerdictDelivered, rendezvous.VerdictHeld, rendezvous.VerdictDead, rendezvous.VerdictExpired,
		rendezvous.VerdictKept, rendezvous.VerdictNoKeys, rendezvous.VerdictBehind, rendezvous.VerdictOfferDue, rendezvous.VerdictNoWait)
}

func eventHolds(t *testing.T, h *Harness) {
	f := h.Fix(t)
	key := K("order", "1")
	r := f.Start()
	r.Waits("w", "paid", key)
	e := f.PutNew("paid", key)
	f.Match(e.EventID) // claims, and does not record
	hold := func(want rendezvous.HoldState) store.Hold {
		t.Helper()
		got := f.WhyEvent(e.EventID)
		eq(t, "verdict", got.Verdict, rendezvous.VerdictHeld)
		eq(t, "what it waits for", got.Facts.Hold.State, want)
		other := r.WhyWait("w")
		eq(t, "the wait's verdict", other.Verdict, rendezvous.VerdictHeld)
		eq(t, "the event it holds", other.Facts.Event, &e.EventID)
		eq(t, "the same of the wait", other.Facts.Hold.State, want)
		return *got.Facts.Hold
	}
	item := store.ParkItem{Tenant: f.Name(), WaitID: r.WaitID("w"), Cause: store.ParkFailed, Error: "no room", RetryIn: time.Minute}
	r.Park(item)
	later := hold(rendezvous.HoldBackoff)
	eq(t, "attempts and error", []any{later.Attempts, later.LastError}, []any{1, "no room"})
	eq(t, "next attempt", later.NextAttemptAt, r.Row("w").NextAttemptAt)
	h.Advance(2 * time.Minute)
	hold(rendezvous.HoldDue)
	d := r.Drive()
	leased := hold(rendezvous.HoldLeased)
	eq(t, "owner", leased.Owner, d.Owner)
	eq(t, "what is left of the lease", leased.Remaining > 0 && leased.Remaining <= rendezvous.DefaultLease, true)
	for range rendezvous.QuarantineAfter - 1 {
		r.Park(item)
	}
	stuck := hold(rendezvous.HoldQuarantined)
	eq(t, "attempts", stuck.Attempts, rendezvous.QuarantineAfter)
	eq(t, "since when it is quarantined", stuck.QuarantinedAt.IsZero(), false)
}

func nearestWaits(t *testing.T, h *Harness) {
	f := h.Fix(t)
	key := K("order", "1")
	held := f.Start()
	held.Waits("parked", "paid", key, K("order", "3"))
	holds := f.PutNew("paid", K("order", "3"))
	f.Match(holds.EventID)
	e := f.PutNew("paid", key)
	r := f.Start()
	from := r.Wait("from", "paid", key)
	from.From = "bank"
	two := r.Wait("two", "refunded", key) // type and source
	two.From = "bank"
	r.Waits("strange", "refunded", K("order", "2")) // nothing in common
	r.Register(two)
	r.Waits("type", "refunded", key)
	r.Register(from)
	r.Waits("key", "paid", K("order", "2"))
	r.Waits("none", "paid")

	got := f.WhyEvent(e.EventID)
	eq(t, "verdict", got.Verdict, rendezvous.VerdictNoWait)
	var told []string
	for _, m := range got.NearMisses {
		told = append(told, m.Wait.Effect+": "+codes(m.Reasons))
	}
	eq(t, "near misses", told, []string{
		"parked: wait_parked", "type: other_type", "from: other_source", "key: no_shared_key", "none: no_shared_key", "two: other_type other_source",
	})
	eq(t, "a near miss", got.NearMisses[2].From+" "+got.NearMisses[2].Type, "bank paid")
	eq(t, "what is parked", got.NearMisses[0].Reasons[0].Event, &holds.EventID)
	for i := range 20 {
		r.Waits(fmt.Sprint("more-", i), "refunded", key)
	}
	got = f.WhyEvent(e.EventID)
	eq(t, "near misses at most", len(got.NearMisses), store.MaxNearMisses)
	eq(t, "cut", got.Partial, false)
	for i, m := range got.NearMisses[1:] {
		if len(m.Reasons) != 1 || m.Number <= got.NearMisses[i].Number {
			t.Errorf("near miss %d is %d with %s", i+1, m.Number, codes(m.Reasons))
		}
	}
}

func cutSearch(t *testing.T, h *Harness) {
	f := h.Fix(t)
	e := f.PutNew("paid", K("order", "1"))
	for range 2 {
		r := f.Start()
		waits := make([]store.RegisterItem, 400)
		for i := range waits {
			waits[i] = store.RegisterItem{Tenant: f.Name(), Registration: store.Registration{Wait: r.Wait(fmt.Sprint("w", i), "refunded", K("order", "1"))}}
		}
		must(h.Store.RegisterBatch(ctx, waits, now))(t, "register")
	}
	got := f.WhyEvent(e.EventID)
	eq(t, "cut", got.Partial, true)
	eq(t, "near misses", len(got.NearMisses), store.MaxNearMisses)
}

func hintedWaits(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	for i := range 12 {
		r.Waits(fmt.Sprint("other-", i), "paid", K("order", fmt.Sprint("far-", i))) // as near, and older
	}
	w := r.Wait("case", "paid", K("Order", "AB-1"))
	r.Register(w)
	r.Waits("blank", "paid", K("order", " ab-2"))
	r.Waits("namespace", "paid", K("customer", "ab-3"))
	r.Waits("type", "Paid", K("order", "ab-4"))
	from := r.Wait("source", "paid", K("order", "ab-5"))
	from.From = "SHOP"
	r.Register(from)
	for effect, c := range map[string]struct {
		e    rendezvous.Event
		want string
	}{
		"case":      {f.PutNew("paid", K("order", "ab-1")), "similar_key order=ab-1|Order=AB-1"},
		"blank":     {f.PutNew("paid", K("order", "ab-2")), "similar_key order=ab-2|order= ab-2"},
		"namespace": {f.PutNew("paid", K("order", "ab-3")), "similar_key order=ab-3|customer=ab-3"},
		"type":      {f.PutNew("paid", K("order", "ab-4")), "similar_type paid|Paid"},
		"source":    {f.PutNew("paid", K("order", "ab-5")), "similar_source shop|SHOP"},
	} {
		var told string
		for _, m := range f.WhyEvent(c.e.EventID).NearMisses {
			if m.Wait.Effect == effect {
				told = hintsOf(m.Hints)
			}
		}
		eq(t, "hint for "+effect, told, c.want)
		eq(t, "hint of the pair "+effect, hintsOf(r.WhyPair(c.e, effect).Hints), c.want)
	}
}

func explainingReadsOnly(t *testing.T, h *Harness) {
	for i, s := range eventScenarios {
		f, twin := h.FixOf(t, fmt.Sprint("mine-", i)), h.FixOf(t, fmt.Sprint("theirs-", i))
		key := K("order", "1")
		id, _ := s.make(f, key)
		first := still(h.ReadsOnly(t, func() store.Explanation { return f.WhyEvent(id) }))
		s.make(twin, key) // the same keys, in another tenant
		twin.Start().Subscribes("theirs", "paid", key)
		twin.PutNew("paid", key)
		eq(t, "explained again", still(f.WhyEvent(id)), first)
		eq(t, "verdict in the other tenant", twin.WhyEvent(id).Verdict, rendezvous.VerdictUnknown)
	}
	f := h.Fix(t)
	_, err := f.ExplainEvent(ctx, rendezvous.EventID{Source: "shop"})
	code(t, "explain an event without id", err, rendezvous.CodeInvalid, "field", "id")
}

func explainRestored(t *testing.T, h *Harness) {
	f := h.Fix(t)
	key := K("order", "1")
	old := restored(t, f, "w", "paid", key)
	e := f.PutNew("paid", key)
	got := f.WhyEvent(e.EventID)
	eq(t, "verdict", got.Verdict, rendezvous.VerdictNoWait)
	eq(t, "near misses", len(got.NearMisses), 1)
	eq(t, "why", codes(got.NearMisses[0].Reasons), "run_sealed")
	eq(t, "verdict on the wait", old.WhyWait("w").Verdict, rendezvous.VerdictEnded)
	young := f.Start()
	young.Subscribes("w", "paid", key)
	got = f.WhyEvent(e.EventID)
	eq(t, "verdict", got.Verdict, rendezvous.VerdictOfferDue)
	eq(t, "wait", got.Facts.Wait, young.ref("w"))
	eq(t, "verdict on the younger wait", young.WhyWait("w").Verdict, rendezvous.VerdictOfferDue)
}
