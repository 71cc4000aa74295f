package sweep_test

import (
	"context"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/sweep"
)

const day = 24 * time.Hour

// dead is how many dead letters acme has.
func (p *plane) dead() int {
	p.t.Helper()
	c, err := p.tenant.CountDeadLetters(p.t.Context(), store.DeadFilter{}, 0, false)
	must(p.t, err)
	return c.Count
}

// SW-29: a dead letter is purged once it was dead for its time, not before; what does not decode is told and hides none behind it.
func TestDeadLettersArePurgedAfterTheirTime(t *testing.T) {
	p := newPlane(t)
	w := p.sweep(nil, sweep.Config{Window: time.Hour, RetainDead: day})
	bad := runs("bad", 200) // a whole page
	for _, run := range append(bad, "old", "raised") {
		p.buffer(run)
	}
	w.tick(time.Hour) // they die
	for _, run := range bad {
		must(t, p.damage.Event("acme", eventID(run)))
	}
	operator := rendezvous.Operator{Actor: "kim", Basis: rendezvous.BasisAsserted}
	_, err := p.tenant.RequeueDeadLetters(t.Context(), store.Selection{Events: []rendezvous.EventID{eventID("raised")}}, store.Requeue{}, operator, "op", time.Time{})
	must(t, err)
	p.buffer("young")
	w.tick(time.Hour)
	if got := pass(t, w.tick(day-time.Hour-time.Microsecond), sweep.Retention); got.Handed != 0 || p.dead() != 203 {
		t.Errorf("too early: %+v, %d letters", got, p.dead())
	}
	if got := pass(t, w.tick(time.Microsecond), sweep.Retention); got.Handed != 201 || got.Done != 1 || got.Failed != 200 || got.Saturated || got.Err != nil {
		t.Errorf("reported %+v", got)
	}
	if e, err := p.tenant.LookupEvent(t.Context(), eventID("old"), true); err != nil || !e.Purged || e.HasPayload || e.OpBy.Actor != store.Retention {
		t.Errorf("%+v %v", e, err)
	}
	if n := p.dead(); n != 202 {
		t.Errorf("%d letters are left", n)
	}
	w.tick(time.Hour)
	if n := p.dead(); n != 200 {
		t.Errorf("%d letters are left, of which 200 do not decode", n)
	}
}

// SW-29: a time for ever purges none, and asks the store for none.
func TestDeadLettersAreKeptForEverWhereAsked(t *testing.T) {
	p := newPlane(t)
	p.buffer("old")
	w := p.sweep(nil, sweep.Config{RetainDead: sweep.Forever})
	w.tick(time.Hour)
	if got := pass(t, w.tick(100*365*day), sweep.Retention); got.Handed != 0 || got.Err != nil || p.dead() != 1 {
		t.Errorf("reported %+v, %d letters", got, p.dead())
	}
}

// S7: what retention could not end in a tick it goes on with in the next, not ten minutes later; and the letters of many tenants share its pages (SW-29, S3).
func TestRetentionThatHasMoreToDoGoesOnInTheNextTick(t *testing.T) {
	p := newPlane(t)
	for _, run := range runs("event", 450) {
		p.buffer(run)
	}
	p.clock.Advance(time.Second)
	other, err := p.store.Tenant("globex")
	must(t, err)
	_, err = other.Buffer(t.Context(), rendezvous.Event{EventID: eventID("one"), Type: "t", Payload: []byte("1")}, time.Time{})
	must(t, err)
	p.sweep(nil, sweep.Config{Window: time.Second}).tick(time.Hour) // they die
	p.clock.Advance(2 * day)
	reports := make(chan sweep.Report, 100)
	w := p.sweep(nil, sweep.Config{Pages: 1, RetainDead: day, Reported: func(r sweep.Report) { reports <- r }})
	must(t, w.Start())
	var worked []int
	for range 3 {
		r := <-reports
		if got, due := r.Pass(sweep.Retention); due {
			worked = append(worked, got.Handed)
		}
		if e, err := other.LookupEvent(context.Background(), eventID("one"), false); err != nil || !e.Purged {
			t.Errorf("the other tenant's letter after %v: %+v %v", worked, e, err)
		}
		p.clock.Waiting(1)
		p.clock.Advance(8 * time.Second) // more than the longest a tick comes after the one before
	}
	if len(worked) != 3 || worked[0] != 200 || worked[1] != 200 || worked[2] != 51 {
		t.Errorf("worked %v in three ticks", worked)
	}
}
