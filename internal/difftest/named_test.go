package difftest

import (
	"math"
	"slices"
	"testing"
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
