package difftest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// TestADifferenceIsFoundAndMadeSmall: a store whose clock does not move tells itself from one whose clock does, in as few steps as that takes.
func TestADifferenceIsFoundAndMadeSmall(t *testing.T) {
	stopped := memoryKind()
	stopped.Name, stopped.Shift = "stopped", func(time.Duration) error { return nil }
	kinds := []Kind{memoryKind(), stopped}
	steps := []Step{
		StartRun{Tenant: "a", Workflow: "w1", Run: "r1", Type: "order"},
		StartRun{Tenant: "a", Workflow: "w_", Run: "r2", Type: "order"},
		RegisterWait{Tenant: "a", Wait: Wait{Run: "r1", Effect: "q1", Type: "paid", Keys: []string{"o=1"}}},
		Advance{By: time.Second},
		Depths{},
	}
	got := Shrink(kinds, steps, 100)
	if want := "\t\tAdvance{By: 1 * time.Second},\n"; !strings.Contains(got, "t, open(t),\n"+want+"\t)") || !strings.Contains(got, "-memory +stopped") {
		t.Fatalf("made smaller: %s\nwant only %s", got, want)
	}
}

// TestAStepIsPrintedAsItIsWritten: what a failure prints can be pasted.
func TestAStepIsPrintedAsItIsWritten(t *testing.T) {
	for want, step := range map[string]Step{
		`Append{Tenant: "a", Epoch: 2, Records: []Record{{Kind: "note", Attempt: 1, Data: ` + "`{\"name\":\"n\"}`" + `}}, At: 3 * time.Second}`: Append{
			Tenant: "a", Epoch: 2, Records: []Record{{Kind: "note", Attempt: 1, Data: `{"name":"n"}`}}, At: 3 * time.Second,
		},
		`RegisterWait{Wait: Wait{Run: Long, Keys: []string{"o=1"}}}`: RegisterWait{Wait: Wait{Run: Long, Keys: []string{"o=1"}}},
		`Advance{By: -1 * time.Microsecond}`:                         Advance{By: -time.Microsecond},
	} {
		if got := Go(step); got != want {
			t.Errorf("printed %s, want %s", got, want)
		}
	}
}

// TestTheLawRefusesWhatNoStoreMayAnswer: histories that no order makes legal are refused, so those of the stores say something.
func TestTheLawRefusesWhatNoStoreMayAnswer(t *testing.T) {
	event := rendezvous.Event{EventID: rendezvous.EventID{Source: "shop", ID: "1"}}
	claimed := answer{value: store.Claim{Event: &event}}
	waiting := []porcupine.Operation{
		{Input: Buffer{Event: Event{ID: "1"}}, Output: answer{value: store.Buffered{Outcome: store.BufferNew, Number: 1}}, Call: 1, Return: 2},
		{Input: Subscribe{Wait: Wait{Effect: "0"}}, Output: answer{value: store.Subscribed{Number: 1}}, Call: 1, Return: 2},
		{Input: Subscribe{Wait: Wait{Effect: "1"}}, Output: answer{value: store.Subscribed{Number: 2}}, Call: 1, Return: 2},
	}
	twice := append(waiting,
		porcupine.Operation{Input: ClaimFor{Effect: "0"}, Output: claimed, Call: 3, Return: 6},
		porcupine.Operation{Input: ClaimFor{Effect: "1"}, Output: claimed, Call: 4, Return: 5})
	for name, history := range map[string][]porcupine.Operation{"as told": twice, "apart": apart(twice)} {
		if Check(meeting{}, meetingLaw, history) == "" {
			t.Errorf("one event was claimed for two waits, and the law has nothing against it (%s)", name)
		}
	}
	lease := answer{value: store.Lease{Epoch: 1, Head: 1}}
	drivers := []porcupine.Operation{
		{Input: AcquireLease{Owner: "pod/1", Acquire: "k"}, Output: lease, Call: 1, Return: 4},
		{Input: AcquireLease{Owner: "pod/2", Acquire: "k"}, Output: lease, Call: 2, Return: 3},
	}
	if Check(runState{head: 1}, runLaw, drivers) == "" {
		t.Error("one run was leased twice, and the law has nothing against it")
	}
	drivers[1].Output = answer{err: errors.Join(rendezvous.Errorf(rendezvous.CodeLeaseHeld, "held"))}
	if wrong := Check(runState{head: 1}, runLaw, drivers); wrong != "" {
		t.Errorf("a lease that is held: %s", wrong)
	}
}
