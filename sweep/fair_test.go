package sweep_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/storetest"
	"github.com/rendezvous-events/rendezvous/sweep"
)

// SW-25, S3: beside tenants with 50,000 rows due in the pass parked and 10,000 in each other one, all due longer, another one's single row is handled in the first page.
func TestATenantWithManyDueRowsHidesNoOther(t *testing.T) {
	const most, many = 50_000, 10_000
	owed := map[storetest.Owed]string{storetest.OwedParked: "parked", storetest.OwedApart: "apart", storetest.OwedNotice: "called", storetest.OwedLease: "left"}
	p := newPlane(t)
	storetest.BufferAll(t, p.store, storetest.EventsOf("unwanted", 0, many))
	p.clock.Advance(time.Second)
	storetest.BufferAll(t, p.store, storetest.EventsOf("unwanted-one", 0, 1))
	p.clock.Advance(time.Hour)
	for how, name := range owed {
		n := many
		if how == storetest.OwedParked {
			n = most
		}
		storetest.Owe(t, p.faults, name, n, how)
	}
	p.clock.Advance(time.Second)
	for how, name := range owed {
		storetest.Owe(t, p.faults, name+"-one", 1, how)
	}

	w := p.sweep(p.seen(store.ShardNumbers(p.shards())...), sweep.Config{Pages: 1})
	r := w.tick(5 * time.Second)
	for name, size := range map[string]int{sweep.Leases: 200, sweep.Parked: 500, sweep.Unmet: 500, sweep.Woken: 500, sweep.Unclaimed: 500} {
		if got := pass(t, r, name); got.Pages != 1 || got.Handed != size || got.Err != nil || !got.Saturated {
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
	told := p.sender.take().Resume
	for _, tenant := range []string{"called-one", "left-one"} {
		if !slices.ContainsFunc(told, func(r store.ResumeRef) bool { return r.Tenant == tenant }) {
			t.Errorf("of %d notices none is for the one run of %s", len(told), tenant)
		}
	}
}
