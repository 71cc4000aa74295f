package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/storetest"
	"github.com/rendezvous-events/rendezvous/sweep"
)

// failing is a store in which no parked wait of a run named bad can be answered.
type failing struct{ Store }

func (f failing) DeliverParked(ctx context.Context, waits []store.WaitRef, at time.Time) (store.Offered, error) {
	var good []store.WaitRef
	for _, w := range waits {
		if !strings.HasPrefix(w.RunID, "bad") {
			good = append(good, w)
		}
	}
	got := store.Offered{}
	if len(good) > 0 {
		var err error
		if got, err = f.Store.DeliverParked(ctx, good, at); err != nil {
			return got, err
		}
	}
	items := make([]store.Offer, len(waits))
	for i, w := range waits {
		items[i] = store.Offer{Outcome: store.OfferFailed, Err: rendezvous.Errorf(rendezvous.CodeCorrupt, "does not decode")}
		if !strings.HasPrefix(w.RunID, "bad") {
			items[i], got.Items = got.Items[0], got.Items[1:]
		}
	}
	got.Items = items
	return got, nil
}

// EV-62, SW-15: a wait that fails every time is tried with growing pauses and quarantined after 16, which the reports tell; retried by an operator it is due again.
func TestAWaitThatFailsEveryTimeIsQuarantined(t *testing.T) {
	p := newPlane(t)
	p.park("bad-1")
	w := p.sweep(failing{p.all()}, sweep.Config{})
	failed, tries := 0, 0
	r := w.until(5*time.Minute, "quarantine", func(r sweep.Report) bool {
		failed, tries = failed+pass(t, r, sweep.Parked).Failed, tries+1
		return pass(t, r, sweep.Parked).Quarantined == 1
	})
	page, err := p.tenant.QuarantinedWaits(t.Context(), 0, "")
	must(t, err)
	if len(page.Waits) != 1 || page.Waits[0].Attempts != 16 || page.Waits[0].LastError != "corrupt" {
		t.Errorf("quarantined after %d failures in %d ticks: %+v", failed, tries, page.Waits)
	}
	if !attends(r, "quarantined", "") {
		r = w.tick(time.Minute) // the tick that quarantines it looks at the depths behind the passes, if they are due in it
	}
	if !attends(r, "quarantined", "") {
		t.Errorf("attention %+v", r.Attention)
	}
	for range 10 { // it is left alone
		if r := w.tick(time.Hour); pass(t, r, sweep.Parked).Handed > 0 {
			t.Fatalf("reported %+v", r)
		}
	}
	again, err := p.tenant.RetryWait(t.Context(), rendezvous.WaitID{RunID: "bad-1", Effect: "e"}, nil)
	must(t, err)
	if r := w.tick(time.Second); !again || pass(t, r, sweep.Parked).Failed != 1 {
		t.Errorf("retried: %t, reported %+v", again, r)
	}
}

// SW-15, S2: however many pairs that can never be recorded stand in front, a good pair behind them is answered within two ticks. The bad ones then wait their
// growing turns, out of its way, until each is quarantined, which list and explanation say, and why.
func TestPairsThatFailHideNoneBehindThem(t *testing.T) {
	for n, tries := range map[int]int{128: rendezvous.QuarantineAfter, 10_000: 2} { // of the many, the first and the last ones
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			p := newPlane(t)
			storetest.Owe(t, p.faults, "acme", n, storetest.OwedParked)
			bad := storetest.WaitsOf("acme", 0, n)
			for _, e := range storetest.EventsOf("acme", 0, n) {
				must(t, p.damage.Event("acme", e.Event.EventID))
			}
			p.clock.Advance(time.Second) // due behind the others
			p.park("good")
			p.clock.Advance(5 * time.Second)
			w := p.sweep(nil, sweep.Config{})
			reports := []sweep.Report{w.tick(0), w.tick(time.Second)}
			if s := p.state("good"); s != rendezvous.EventConsumed {
				t.Errorf("after two ticks the good pair's event is %s: %+v", s, reports)
			}
			if parked := pass(t, reports[0], sweep.Parked); parked.Failed < min(n, 20*500-1) || parked.Err != nil {
				t.Errorf("the first tick: %+v", parked)
			}
			p.failed(bad, rendezvous.QuarantineAfter-tries)
			quarantined, ticks := 0, 0
			w.until(5*time.Minute, "every bad one quarantined", func(r sweep.Report) bool {
				quarantined, ticks = quarantined+pass(t, r, sweep.Parked).Quarantined, ticks+1
				return quarantined >= n
			})
			if quarantined > n {
				t.Errorf("%d are reported as quarantined", quarantined)
			}
			if ticks < tries-2 {
				t.Errorf("quarantined in %d ticks", ticks)
			}
			p.allQuarantined(bad)
			if r := w.tick(time.Hour); pass(t, r, sweep.Parked).Handed > 0 { // and left alone
				t.Errorf("reported %+v", r)
			}
		})
	}
}

// failed makes parked waits have failed so often at least, as if more ticks had passed.
func (p *plane) failed(waits []store.RegisterItem, times int) {
	p.t.Helper()
	must(p.t, p.faults.Update(p.t.Context(), "test", func(ctx context.Context, tx backend.Tx) error {
		var keys []backend.WaitKey
		for _, w := range waits {
			keys = append(keys, backend.WaitKey{Tenant: "acme", RunID: w.Wait.RunID, Effect: w.Wait.Effect})
		}
		rows, err := tx.Waits(ctx, keys)
		var c backend.Changes
		for _, w := range rows {
			if w.Attempts < times {
				w.Attempts = times
				c.Waits = append(c.Waits, w)
			}
		}
		return errors.Join(err, tx.Apply(ctx, &c))
	}))
}

// allQuarantined fails the test unless the list of quarantined waits has exactly those, as corrupt, and the explanation of one says the same.
func (p *plane) allQuarantined(waits []store.RegisterItem) {
	p.t.Helper()
	listed := 0
	for cursor := ""; ; {
		page, err := p.tenant.QuarantinedWaits(p.t.Context(), 0, cursor)
		must(p.t, err)
		for _, row := range page.Waits {
			if row.Attempts != rendezvous.QuarantineAfter || !strings.HasPrefix(row.LastError, string(rendezvous.CodeCorrupt)) {
				p.t.Fatalf("listed %+v", row)
			}
		}
		listed += len(page.Waits)
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if listed != len(waits) {
		p.t.Errorf("%d of %d are listed", listed, len(waits))
	}
	x, err := p.tenant.ExplainWait(p.t.Context(), waits[0].Wait.WaitID)
	must(p.t, err)
	if hold := x.Facts.Hold; x.Verdict != rendezvous.VerdictHeld || hold == nil || hold.State != rendezvous.HoldQuarantined || !strings.HasPrefix(hold.LastError, string(rendezvous.CodeCorrupt)) {
		p.t.Errorf("explained as %s: %+v", x.Verdict, hold)
	}
}

// tries counts how often a run's wait is tried.
type tries struct {
	Store
	run string
	at  func(time.Time)
	now func() time.Time
}

func (s tries) DeliverParked(ctx context.Context, waits []store.WaitRef, at time.Time) (store.Offered, error) {
	for _, w := range waits {
		if w.RunID == s.run {
			s.at(s.now())
		}
	}
	return s.Store.DeliverParked(ctx, waits, at)
}

// SW-16: while an executor holds a run for an hour its parked wait is tried at most once in 30 s; within a tick of the lease's end, given up or run out, it is answered.
func TestAParkedWaitOfALeasedRunIsLeftInPeace(t *testing.T) {
	for name, releases := range map[string]bool{"released": true, "run out": false} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t)
			p.start("run-1")
			epoch := p.lease("run-1", time.Hour)
			p.await("run-1", epoch)
			p.buffer("run-1")
			p.claim("run-1")
			var tried []time.Time
			w := p.sweep(tries{p.all(), "run-1", func(at time.Time) { tried = append(tried, at) }, p.clock.Now}, sweep.Config{})
			for range 719 {
				w.tick(5 * time.Second)
			}
			for i := 1; i < len(tried); i++ {
				if d := tried[i].Sub(tried[i-1]); d < 30*time.Second {
					t.Fatalf("tried again after %s", d)
				}
			}
			if s := p.state("run-1"); s != rendezvous.EventClaimed {
				t.Fatalf("under the lease the event is %s", s)
			}
			if releases {
				_, err := p.tenant.ReleaseLease(t.Context(), "run-1", epoch)
				must(t, err)
			}
			w.tick(5 * time.Second)
			if s, n := p.state("run-1"), p.answers("run-1"); s != rendezvous.EventConsumed || n != 1 {
				t.Errorf("a tick after the lease's end the event is %s, %d answers", s, n)
			}
		})
	}
}

// away is a store whose offers fail as a whole.
type away struct{ Store }

func (away) OfferBatch(context.Context, []store.OfferItem, time.Time) (store.Offered, error) {
	return store.Offered{}, rendezvous.Errorf(rendezvous.CodeUnavailable, "the database is away")
}

// EV-60: offers that fail as a whole, however often, are no failure of the events that were to be offered (events.md section 7: never unavailable).
func TestOffersThatFailAsAWholeCountAgainstNoEvent(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	p.await("run-1", 0)
	p.buffer("run-1")
	w := p.sweep(away{p.all()}, sweep.Config{Window: 1000 * time.Hour})
	for range 40 {
		if r := w.tick(11 * time.Minute); pass(t, r, sweep.Unmet).Err == nil {
			t.Fatal("the pass took nothing")
		}
	}
	e, err := p.tenant.LookupEvent(t.Context(), rendezvous.EventID{Source: "s", ID: "run-1"}, false)
	must(t, err)
	if e.State != rendezvous.EventLive || e.OfferFailures != 0 {
		t.Errorf("the event is %s after %d failed offers", e.State, e.OfferFailures)
	}
	w = p.sweep(nil, sweep.Config{})
	w.until(time.Minute, "delivery", func(sweep.Report) bool { return p.state("run-1") == rendezvous.EventConsumed })
}
