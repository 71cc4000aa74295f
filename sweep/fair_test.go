package sweep_test

import (
	"context"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/storetest"
	"github.com/rendezvous-events/rendezvous/sweep"
)

// SW-25, S3: beside tenants with 50,000 rows due in a pass, each of them due longer, another one's single row is handled in the first page. The pass leases is not
// among these: it goes by the end of the lease alone (SW-24).
func TestATenantWithManyDueRowsHidesNoOther(t *testing.T) {
	const many = 50_000
	p := newPlane(t)
	storetest.BufferAll(t, p.store, storetest.EventsOf("unwanted", 0, many))
	p.clock.Advance(time.Second)
	storetest.BufferAll(t, p.store, storetest.EventsOf("unwanted-one", 0, 1))
	p.clock.Advance(time.Hour)
	storetest.Owe(t, p.faults, "parked", many, storetest.OwedParked)
	storetest.Owe(t, p.faults, "apart", many, storetest.OwedApart)
	p.clock.Advance(time.Second)
	storetest.Owe(t, p.faults, "parked-one", 1, storetest.OwedParked)
	storetest.Owe(t, p.faults, "apart-one", 1, storetest.OwedApart)

	p.start("alone") // of acme
	p.sender.take()

	w := p.sweep(nil, sweep.Config{Pages: 1})
	r := w.tick(time.Minute)
	for _, name := range []string{sweep.Parked, sweep.Unmet, sweep.Woken, sweep.Unclaimed} {
		if got := pass(t, r, name); got.Pages != 1 || got.Handed != 500 || got.Err != nil || !got.Saturated {
			t.Errorf("reported %+v", got)
		}
	}
	for tenant, want := range map[string]rendezvous.EventState{
		"parked-one": rendezvous.EventConsumed, "apart-one": rendezvous.EventConsumed, "unwanted-one": rendezvous.EventDead,
	} {
		s, err := p.store.Tenant(tenant)
		must(t, err)
		e, err := s.LookupEvent(context.Background(), storetest.EventsOf(tenant, 0, 1)[0].Event.EventID, false)
		must(t, err)
		if e.State != want {
			t.Errorf("the event of %s is %s", tenant, e.State)
		}
	}
	if !p.resumed("alone", rendezvous.CauseStarted) {
		t.Error("the one run with a notice owed was not told of")
	}
}
