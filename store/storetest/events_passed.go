package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// restored is a run, concluded, whose open wait a backup brought back.
func restored(t *testing.T, f *Fix, effect, kind string, keys ...rendezvous.Key) *Flow {
	t.Helper()
	r := f.Start()
	w := r.Waits(effect, kind, keys...)
	restore := must(f.H.Damage.Keep(f.Name(), w.WaitID))(t, "keep the wait's row")
	r.Conclude(rendezvous.StatusCompleted)
	done(t, "restore the wait's row", restore())
	return r
}

func sealedWaitPassed(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, by := range claimers {
		key := K("order", ID("order"))
		old := restored(t, f, "w", "paid", key)
		young := f.Start()
		young.Waits("w", "paid", key)
		e := f.PutNew("paid", key)
		eq(t, "wait given by "+by.name, by.do(f, e), &rendezvous.WaitID{RunID: young.ID, Effect: "w"})
		eq(t, "claim for the sealed run's wait", old.Claim("w").Event, nil)
		old.WantKinds(rendezvous.WaitRegistered, rendezvous.RunCompleted)
	}
	key := K("order", ID("order"))
	old := restored(t, f, "w", "paid", key)
	young := f.Start()
	young.Subscribes("w", "paid", key)
	e := f.PutNew("paid", key)
	claim := old.Claim("w")
	eq(t, "event claimed for the sealed run's wait", claim.Event, nil)
	eq(t, "how the sealed run's wait was closed", claim.Closed, rendezvous.ClosedEnded)
	eq(t, "offer of the sealed run's wait", f.OfferWait(old.WaitID("w")).Outcome, store.OfferClosed)
	f.WantLive(e)
	young.WantClaim("w", e, false)

	key = K("order", ID("order"))
	old = restored(t, f, "w", "paid", key)
	e = f.PutNew("paid", key)
	_, err := f.DeliverTo(ctx, old.ID, EventOf("paid", key), false, now)
	code(t, "deliver to the sealed run", err, rendezvous.CodeSealed)
	eq(t, "offer of an event that only the sealed run's wait fits", f.OfferEvent(e.EventID).Outcome, store.OfferNoWaiter)
	eq(t, "match of an event that only the sealed run's wait fits", f.Match(e.EventID).Outcome, store.MatchNoWaiter)
	young = f.Start()
	eq(t, "outcome of registering", young.Register(young.Wait("w", "paid", key)).Outcome, store.RegisterAnswered)
	young.WantAnswered("w", e)
	old.WantKinds(rendezvous.WaitRegistered, rendezvous.RunCompleted)
}

func parkedWaitPassed(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		first, second := f.Start(), f.Start()
		d := first.Drive()
		d.Waits("w", "paid", K("order", "1"), K("customer", "2"))
		held := EventOf("paid", K("order", "1"))
		eq(t, "offers parked", len(f.Send(held).Made(store.OfferParked)), 1)
		row := first.WantParked("w", held)
		lone := EventOf("paid", K("order", "1"))
		eq(t, "offers without a waiter", len(f.Send(lone).Made(store.OfferNoWaiter)), 1)
		eq(t, "match of a second event", f.Match(lone.EventID).Outcome, store.MatchNoWaiter)
		f.WantLive(lone)
		second.Subscribes("w", "paid", K("customer", "2"))
		next := EventOf("paid", K("order", "1"), K("customer", "2"))
		f.Send(next)
		second.WantAnswered("w", next)
		eq(t, "row of the parked wait", first.Row("w"), &row)
		eq(t, "waits listed as parked", f.Listed(store.WaitFilter{State: rendezvous.WaitParked}), []store.WaitRow{row})
		eq(t, "waits listed as open", f.Listed(store.WaitFilter{State: rendezvous.WaitOpen}), nil)
		d.Suspend()
		first.WantAnswered("w", held)
		f.WantLive(lone)
	}
}

func matchingParks(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		r, other := f.Start(), f.Start()
		r.Waits("w", "paid", K("order", "1"))
		other.Waits("w", "paid", K("order", "1"))
		e := EventOf("paid", K("order", "1"), K("customer", "7"))
		e.Payload, e.ContentType = []byte("\x00\xffbytes"), "application/octet-stream"
		f.Put(e)
		f.Matched(e, r, "w")
		row := r.WantParked("w", e)
		eq(t, "attempts", row.Attempts, 0)
		if row.ParkedAt.IsZero() || row.NextAttemptAt.Sub(row.ParkedAt) != 2*time.Second {
			t.Fatalf("parked at %s, next attempt at %s: want 2 s between", row.ParkedAt, row.NextAttemptAt)
		}
		eq(t, "parked waits", f.Parkeds(), []store.WaitRow{row})
		r.WantClaim("w", e, true)
		younger := f.PutNew("paid", K("order", "1"))
		r.WantClaim("w", e, true) // its own, never another
		other.WantClaim("w", younger, false)
		r.WantClaim("w", e, true)
		r.Redelivered("w")
		r.WantAnswered("w", e)
		claim := r.Claim("w")
		eq(t, "event claimed after the answer", claim.Event, nil)
		eq(t, "how the wait was closed", claim.Closed, rendezvous.ClosedAnswered)
		eq(t, "record that closed it", claim.Seq, r.Answer("w").Seq)
		_, err := f.ClaimFor(ctx, r.WaitID("never"), now)
		code(t, "claim for a wait that never was registered", err, rendezvous.CodeNotFound)
	}
}

// takers give an event to a run's wait at an instant, in each way there is: they begin with the wait registered, or register it. They report whether
// the wait has the event.
var takers = []struct {
	name       string
	registered bool
	do         func(r *Flow, w rendezvous.Wait, e rendezvous.Event, at time.Time) (bool, error)
}{
	{"ClaimFor", true, func(r *Flow, w rendezvous.Wait, _ rendezvous.Event, at time.Time) (bool, error) {
		c, err := r.F.ClaimFor(ctx, w.WaitID, at)
		return c.Event != nil, err
	}},
	{"MatchWaiter", true, func(r *Flow, _ rendezvous.Wait, e rendezvous.Event, at time.Time) (bool, error) {
		m, err := r.F.MatchWaiter(ctx, e.EventID, at)
		if err == nil && m.Outcome != store.MatchMatched && m.Outcome != store.MatchExpired {
			err = fmt.Errorf("outcome %s", m.Outcome)
		}
		return m.Outcome == store.MatchMatched, err
	}},
	{"OfferBatch of the event", true, func(r *Flow, _ rendezvous.Wait, e rendezvous.Event, at time.Time) (bool, error) {
		out, err := r.F.H.Store.OfferBatch(ctx, r.F.Items(e), at)
		if err != nil {
			return false, err
		}
		if o := out.Items[0].Outcome; o != store.OfferDelivered && o != store.OfferExpired {
			err = fmt.Errorf("outcome %s", o)
		}
		return out.Items[0].Outcome == store.OfferDelivered, err
	}},
	{"OfferBatch of the wait", true, func(r *Flow, w rendezvous.Wait, _ rendezvous.Event, at time.Time) (bool, error) {
		out, err := r.F.H.Store.OfferBatch(ctx, []store.OfferItem{{Tenant: r.F.Name(), Wait: &w.WaitID}}, at)
		return err == nil && out.Items[0].Outcome == store.OfferDelivered, err
	}},
	{"DeliverTo", true, func(r *Flow, _ rendezvous.Wait, e rendezvous.Event, at time.Time) (bool, error) {
		d, err := r.F.DeliverTo(ctx, r.ID, e, false, at)
		if err == nil && d.Outcome == store.DeliveryNotWaiting && d.Why != "event_expired" {
			err = fmt.Errorf("not waiting: %s", d.Why)
		}
		return d.Outcome == store.DeliveryMatched, err
	}},
	{"RegisterWait again", true, func(r *Flow, w rendezvous.Wait, _ rendezvous.Event, at time.Time) (bool, error) {
		out, err := r.F.RegisterWait(ctx, store.Registration{Wait: w}, at)
		return out.Outcome == store.RegisterAnswered, err
	}},
	{"RegisterWait", false, func(r *Flow, w rendezvous.Wait, _ rendezvous.Event, at time.Time) (bool, error) {
		out, err := r.F.RegisterWait(ctx, store.Registration{Wait: w}, at)
		return out.Outcome == store.RegisterAnswered, err
	}},
	{"RegisterBatch", false, func(r *Flow, w rendezvous.Wait, _ rendezvous.Event, at time.Time) (bool, error) {
		items := []store.RegisterItem{{Tenant: r.F.Name(), Registration: store.Registration{Wait: w}}}
		out, err := r.F.H.Store.RegisterBatch(ctx, items, at)
		if err != nil {
			return false, err
		}
		return out[0].Outcome == store.RegisterAnswered, out[0].Err
	}},
	{"Append", false, func(r *Flow, w rendezvous.Wait, _ rendezvous.Event, at time.Time) (bool, error) {
		a := store.Append{RunID: r.ID, ExpectedSeq: r.Head(), BatchID: ID("batch"), Records: []rendezvous.Record{r.Waited(w)}}
		out, err := r.F.Append(ctx, a, at)
		return len(out.Answers) == 1, err
	}},
}

func expiredMeetsNobody(t *testing.T, h *Harness) {
	f := h.Fix(t)
	expires := h.Now(t).Add(time.Hour)
	for _, by := range takers {
		for _, live := range []bool{true, false} {
			r := f.Start()
			w := r.Wait("w", "paid", K("order", r.ID))
			if by.registered {
				r.Subscribes("w", "paid", w.Keys...)
			}
			e := EventOf("paid", w.Keys...)
			e.ExpiresAt = expires
			f.Put(e)
			at := expires
			if live {
				at = expires.Add(-time.Microsecond)
			}
			got, err := by.do(r, w, e, at)
			done(t, by.name, err)
			eq(t, fmt.Sprintf("%s gives the event, expired: %v", by.name, !live), got, live)
			if !live {
				f.WantLive(e) // no sweep ran
				r.WantOpen("w")
				continue
			}
			if r.Answer("w") == nil {
				r.Redelivered("w")
			}
			r.WantAnswered("w", e)
		}
	}
	r := f.Start() // expired on arrival: stored, and meets nobody from the start
	r.Waits("w", "paid", K("order", "1"))
	e := EventOf("paid", K("order", "1"))
	e.ExpiresAt = h.Now(t).Add(-time.Second)
	eq(t, "offers of an event expired on arrival", len(f.Send(e).Made(store.OfferExpired)), 1)
	behind := EventOf("paid", K("order", "1")) // and is not in its way
	f.Send(behind)
	r.WantAnswered("w", behind)
	f.WantLive(e)
}

// expiredAtTheStart: the zero time.Time means no expiry, and it is an instant that a producer can write.
func expiredAtTheStart(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for i, text := range []string{"0001-01-01T00:00:00Z", "0001-01-01T00:00:00.0000000001Z", "0001-01-01T02:00:00.000+02:00"} {
		r, key := f.Start(), K("order", fmt.Sprint(i))
		r.Waits("w", "paid", key)
		e := EventOf("paid", key)
		e.ExpiresAt = must(rendezvous.ParseInstant("expirytime", text))(t, text)
		eq(t, "offers of an event that expired at "+text, len(f.Send(e).Made(store.OfferExpired)), 1)
		r.WantOpen("w")
		f.WantLive(e)
		eq(t, "the expiry that is kept", f.Stored(e.EventID).ExpiresAt, time.Time{}.Add(time.Microsecond))
	}
}

func expiredWhileParked(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r, leased := f.Start(), f.Start()
	d := leased.Drive()
	r.Waits("w", "paid", K("order", "1"))
	d.Waits("w", "paid", K("order", "2"))
	events := []rendezvous.Event{EventOf("paid", K("order", "1")), EventOf("paid", K("order", "2"))}
	for i := range events {
		events[i].ExpiresAt = h.Now(t).Add(5 * time.Second)
		f.Put(events[i])
	}
	f.Matched(events[0], r, "w")
	eq(t, "outcome for the leased run", f.OfferEvent(events[1].EventID).Outcome, store.OfferParked)
	h.Advance(10 * time.Second)
	r.WantClaim("w", events[0], true)
	r.Redelivered("w")
	r.WantAnswered("w", events[0])
	eq(t, "outcome of the offer meanwhile", f.OfferEvent(events[1].EventID).Outcome, store.OfferParked)
	d.Suspend()
	leased.WantAnswered("w", events[1])
}
