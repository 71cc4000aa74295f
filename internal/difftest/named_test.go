package difftest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// named are sequences that once told the stores apart, or a store from itself, and a few that nobody wants told apart.
var named = map[string][]Step{
	// The notices that a repeated offer repeats came in the order of a Go map.
	"repeated notices come in the order of the items": slices.Concat([]Step{
		StartRun{Tenant: "a", Workflow: "w1", Run: "r1", Type: "order"},
		StartRun{Tenant: "a", Workflow: "w_", Run: "r2", Type: "order"},
		StartRun{Tenant: "B", Workflow: "w1", Run: "r1", Type: "order"},
		RegisterWait{Tenant: "a", Wait: waiting("r1", "q1", "o=1")},
		RegisterWait{Tenant: "a", Wait: waiting("r2", "q1", "o=2")},
		RegisterWait{Tenant: "B", Wait: waiting("r1", "q1", "o=1")},
		BufferBatch{Items: []Put{{"a", sent("1", "o=1")}, {"a", sent("2", "o=2")}, {"B", sent("1", "o=1")}}},
	}, slices.Repeat([]Step{
		OfferBatch{Items: []Offer{{Tenant: "a", Source: "shop", ID: "1"}, {Tenant: "a", Source: "shop", ID: "2"}, {Tenant: "B", Source: "shop", ID: "1"}}},
		DeliverParked{Items: []Held{{"a", "r1", "q1"}, {"a", "r2", "q1"}, {"B", "r1", "q1"}}},
	}, 10)),
	// The highest cap, and one more, was a negative limit to PostgreSQL, which called it corrupt.
	"any cap of a count is taken": {
		StartRun{Tenant: "a", Workflow: "w1", Run: "r1", Type: "order"},
		QueryWorkflows{Tenant: "a", Most: math.MaxInt},
	},
	// Memory's walks over what is new came again and again to a take that had run out, which filled the page.
	"a take that ran out hides nothing new": {
		StartRun{Tenant: "a", Run: "r3", Type: "order"},
		Subscribe{Tenant: "a", Wait: waiting("r3", "q2", "o=2")},
		BufferBatch{Items: []Put{{"a", sent("6", "o=2")}}},
		TakeUnmet{},
		BufferBatch{Items: []Put{{"a", sent("4", "o=2")}}},
		Advance{By: time.Hour},
		TakeNews{Limit: 1},
	},
	// Memory began the chain of runs anew behind the highest seq there is.
	"no run begins behind the last seq": {
		StartRun{Tenant: "a", Workflow: "w1", Run: "r1", Type: "order"},
		ReadRunChain{Tenant: "a", Workflow: "w1", After: math.MaxInt64},
	},
	// Which effect failed a run is asked by an index of each store's own.
	"the last failure that nothing made good failed the run": {
		StartRun{Tenant: "a", Workflow: "w1", Run: "r1", Type: "order"},
		Append{Tenant: "a", Run: "r1", Expected: 1, Batch: "b1", Records: slices.Concat(failed("e1"), failed("e2"), failed("e3"))},
		Append{Tenant: "a", Run: "r1", Expected: 7, Batch: "b2", Records: []Record{
			{Kind: "effect.started", Effect: "e4", Data: `{"name":"n"}`},
			{Kind: "effect.failed", Effect: "e4", Data: `{"code":"c","reason":"r","retryable":true}`},
		}},
		Conclude{Tenant: "a", Run: "r1", Expected: 9, Outcome: "failed", Code: "x", Reason: "y"},
	},
	// What was handed out before stays good, and numbers go on.
	"a store that is opened again goes on": {
		StartRun{Tenant: "a", Workflow: "w1", Type: "order"},
		RegisterWait{Tenant: "a", Wait: waiting("$1", "q1", "o=1")},
		AcquireLease{Tenant: "a", Run: "$1", Owner: "pod/1", TTL: time.Minute, Acquire: "k1"},
		Buffer{Tenant: "a", Event: sent("1", "o=1")},
		OfferBatch{Items: []Offer{{Tenant: "a", Source: "shop", ID: "1"}}},
		Reopen{},
		Buffer{Tenant: "a", Event: sent("2", "o=1")},
		Buffer{Tenant: "a", Event: sent("1", "o=1")},
		RenewLease{Tenant: "a", Run: "$1", Owner: "pod/1", Epoch: 1, TTL: time.Hour},
		RegisterWait{Tenant: "a", Wait: Wait{Run: "$1", Effect: "q2", Type: "paid", Keys: []string{"o=1"}, Epoch: 1}},
		Reopen{},
		Waiting{Tenant: "a", Limit: 1},
		Collect{Tenant: "a", Run: "$1", Epoch: 1},
		ReleaseLease{Tenant: "a", Run: "$1", Epoch: 1},
		TakeParked{Hold: time.Second},
		Advance{By: 2 * time.Second},
		Reopen{},
		TakeParked{Hold: time.Second},
		ParkWait{Items: []Park{{Tenant: "a", Run: "$1", Effect: "q2", Cause: "failed", Take: 1}}},
	},
}

// failed are the records of an effect that failed for good.
func failed(effect string) []Record {
	return []Record{
		{Kind: "effect.started", Effect: effect, Data: `{"name":"n"}`},
		{Kind: "effect.failed", Effect: effect, Data: `{"code":"c","reason":"r","retryable":false}`},
	}
}

func waiting(run, effect, key string) Wait {
	return Wait{Run: run, Effect: effect, Type: "paid", Keys: []string{key}}
}

func sent(id, key string) Event {
	return Event{Source: "shop", ID: id, Type: "paid", Keys: []string{key}}
}

func TestNamedSequences(t *testing.T) {
	kinds := open(t)
	for name, steps := range named {
		t.Run(name, func(t *testing.T) { Replay(t, kinds, steps...) })
	}
}

// meanwhile makes a claim and lets something happen instead of nothing before one of its reads, on the store where that can be.
func meanwhile(t *testing.T, w *World, call int, effect string, happens func(tenant store.Tenant) error) store.Claim {
	t.Helper()
	s := w.sides[0]
	f := s.faults.Arm(fault.Failure{Verb: "claim_for", Point: fault.AtCall, Call: call, Do: func(context.Context) error { return happens(w.look("a")) }})
	got, err := ClaimFor{Tenant: "a", Run: "r1", Effect: effect}.ask(s)
	claim, ok := got.(store.Claim)
	if err != nil || !ok || f.Struck() != 1 {
		t.Fatalf("claim for %s, and %d times something meanwhile: %+v, %v", effect, f.Struck(), got, err)
	}
	return claim
}

// TestAClaimWhoseWaitIsTakenMeanwhile: a wait that was taken between two reads of a claim for it left nobody as the event's lowest wait, and the claim
// panicked.
func TestAClaimWhoseWaitIsTakenMeanwhile(t *testing.T) {
	w := NewWorld(t, []Kind{postgresKind(t)})
	w.Do(StartRun{Tenant: "a", Workflow: "w1", Run: "r1", Type: "order"})
	const lock = 4 // behind the reads of the wait, of its events and of their waits; who holds it has the wait
	for call := 1; call <= lock; call++ {
		name := fmt.Sprint(call)
		w.Do(Subscribe{Tenant: "a", Wait: waiting("r1", name, "o="+name)})
		w.Do(Buffer{Tenant: "a", Event: sent(name, "o="+name)})
		claim := meanwhile(t, w, call, name, func(tenant store.Tenant) error {
			_, err := tenant.MatchWaiter(ctx, rendezvous.EventID{Source: "shop", ID: name}, time.Time{})
			return err
		})
		if claim.Event == nil || claim.Event.ID != name || !claim.Again {
			t.Fatalf("claim for a wait that was taken before call %d: %+v", call, claim)
		}
	}
}

// TestAClaimWhoseWaitIsRegisteredMeanwhile: a wait that was registered between two reads of a claim for it had nothing to take, though its event was there (R6).
func TestAClaimWhoseWaitIsRegisteredMeanwhile(t *testing.T) {
	w := NewWorld(t, []Kind{postgresKind(t)})
	w.Do(StartRun{Tenant: "a", Workflow: "w1", Run: "r1", Type: "order"})
	w.Do(Buffer{Tenant: "a", Event: sent("1", "o=1")})
	claim := meanwhile(t, w, 2, "q1", func(tenant store.Tenant) error {
		_, err := tenant.Subscribe(ctx, waiting("r1", "q1", "o=1").registration(w.sides[0]), time.Time{})
		return err
	})
	if claim.Event == nil {
		t.Fatalf("claim for a wait that was registered meanwhile: %+v", claim)
	}
}
