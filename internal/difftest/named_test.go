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

// Sequences that once told the stores apart, or a store from itself.

// TestRepeatedNoticesComeInTheOrderOfTheItems: the notices that a repeated offer repeats came in the order of a Go map.
func TestRepeatedNoticesComeInTheOrderOfTheItems(t *testing.T) {
	kinds := open(t)
	steps := []Step{
		StartRun{Tenant: "a", Workflow: "w1", Run: "r1", Type: "order"},
		StartRun{Tenant: "a", Workflow: "w_", Run: "r2", Type: "order"},
		StartRun{Tenant: "B", Workflow: "w1", Run: "r1", Type: "order"},
		RegisterWait{Tenant: "a", Wait: Wait{Run: "r1", Effect: "q1", Type: "paid", Keys: []string{"o=1"}}},
		RegisterWait{Tenant: "a", Wait: Wait{Run: "r2", Effect: "q1", Type: "paid", Keys: []string{"o=2"}}},
		RegisterWait{Tenant: "B", Wait: Wait{Run: "r1", Effect: "q1", Type: "paid", Keys: []string{"o=1"}}},
		BufferBatch{Items: []Put{
			{Tenant: "a", Event: Event{Source: "shop", ID: "1", Type: "paid", Keys: []string{"o=1"}}},
			{Tenant: "a", Event: Event{Source: "shop", ID: "2", Type: "paid", Keys: []string{"o=2"}}},
			{Tenant: "B", Event: Event{Source: "shop", ID: "1", Type: "paid", Keys: []string{"o=1"}}},
		}},
	}
	offer := OfferBatch{Items: []Offer{{Tenant: "a", Source: "shop", ID: "1"}, {Tenant: "a", Source: "shop", ID: "2"}, {Tenant: "B", Source: "shop", ID: "1"}}}
	deliver := DeliverParked{Items: []Held{{Tenant: "a", Run: "r1", Effect: "q1"}, {Tenant: "a", Run: "r2", Effect: "q1"}, {Tenant: "B", Run: "r1", Effect: "q1"}}}
	Replay(t, kinds, slices.Concat(steps, slices.Repeat([]Step{offer, deliver}, 10))...)
}

// TestAnyCapOfACountIsTaken: the highest one, and one more, was a negative limit to PostgreSQL, which called it corrupt.
func TestAnyCapOfACountIsTaken(t *testing.T) {
	Replay(
		t, open(t),
		StartRun{Tenant: "a", Workflow: "w1", Run: "r1", Type: "order"},
		QueryWorkflows{Tenant: "a", Most: math.MaxInt},
	)
}

// TestAClaimWhoseWaitIsTakenMeanwhile: a wait that was taken between two reads of a claim for it left nobody as the event's lowest wait, and the claim
// panicked.
func TestAClaimWhoseWaitIsTakenMeanwhile(t *testing.T) {
	w := NewWorld(t, []Kind{postgresKind(t)})
	s := w.sides[0]
	w.Do(StartRun{Tenant: "a", Workflow: "w1", Run: "r1", Type: "order"})
	const lock = 4 // behind the reads of the wait, of its events and of their waits; who holds it has the wait
	for call := 1; call <= lock; call++ {
		name := fmt.Sprint(call)
		w.Do(Subscribe{Tenant: "a", Wait: Wait{Run: "r1", Effect: name, Type: "paid", Keys: []string{"o=" + name}}})
		w.Do(Buffer{Tenant: "a", Event: Event{Source: "shop", ID: name, Type: "paid", Keys: []string{"o=" + name}}})
		meanwhile := s.faults.Arm(fault.Failure{Verb: "claim_for", Point: fault.AtCall, Call: call, Do: func(ctx context.Context) error {
			_, err := w.look("a").MatchWaiter(ctx, rendezvous.EventID{Source: "shop", ID: name}, time.Time{})
			return err
		}})
		got, err := ClaimFor{Tenant: "a", Run: "r1", Effect: name}.ask(s)
		if claim, ok := got.(store.Claim); err != nil || !ok || claim.Event == nil || claim.Event.ID != name {
			t.Fatalf("claim for a wait that was taken before call %d: %+v, %v", call, got, err)
		}
		if meanwhile.Struck() == 0 {
			t.Fatalf("a claim makes fewer calls than %d", call)
		}
	}
}

// TestAClaimWhoseWaitIsRegisteredMeanwhile: a wait that was registered between two reads of a claim for it had nothing to take, though its event was there (R6).
func TestAClaimWhoseWaitIsRegisteredMeanwhile(t *testing.T) {
	w := NewWorld(t, []Kind{postgresKind(t)})
	s := w.sides[0]
	w.Do(StartRun{Tenant: "a", Workflow: "w1", Run: "r1", Type: "order"})
	w.Do(Buffer{Tenant: "a", Event: Event{Source: "shop", ID: "1", Type: "paid", Keys: []string{"o=1"}}})
	meanwhile := s.faults.Arm(fault.Failure{Verb: "claim_for", Point: fault.AtCall, Call: 2, Do: func(ctx context.Context) error {
		wait := Wait{Run: "r1", Effect: "q1", Type: "paid", Keys: []string{"o=1"}}
		_, err := w.look("a").Subscribe(ctx, wait.registration(s), time.Time{})
		return err
	}})
	got, err := ClaimFor{Tenant: "a", Run: "r1", Effect: "q1"}.ask(s)
	if claim, ok := got.(store.Claim); err != nil || !ok || claim.Event == nil || meanwhile.Struck() != 1 {
		t.Fatalf("claim for a wait that was registered meanwhile (%d times): %+v, %v", meanwhile.Struck(), got, err)
	}
}

// TestAStoreThatIsOpenedAgainGoesOn: what was handed out before stays good, and numbers go on.
func TestAStoreThatIsOpenedAgainGoesOn(t *testing.T) {
	wait := func(run, effect string) Wait {
		return Wait{Run: run, Effect: effect, Type: "paid", Keys: []string{"o=1"}}
	}
	event := func(id string) Event { return Event{Source: "shop", ID: id, Type: "paid", Keys: []string{"o=1"}} }
	Replay(
		t, open(t),
		StartRun{Tenant: "a", Workflow: "w1", Type: "order"},
		RegisterWait{Tenant: "a", Wait: wait("$1", "q1")},
		AcquireLease{Tenant: "a", Run: "$1", Owner: "pod/1", TTL: time.Minute, Acquire: "k1"},
		Buffer{Tenant: "a", Event: event("1")},
		OfferBatch{Items: []Offer{{Tenant: "a", Source: "shop", ID: "1"}}},
		Reopen{},
		Buffer{Tenant: "a", Event: event("2")},
		Buffer{Tenant: "a", Event: event("1")},
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
	)
}
