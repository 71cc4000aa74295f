package rendezvoustest_test

import (
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/rendezvoustest"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/wire"
)

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// A lost answer is on command: the client sends again, and there is still one event, which answers one wait.
func TestAnAnswerIsLost(t *testing.T) {
	for _, store := range []string{"memory:", "sqlite:" + t.TempDir()} {
		p := rendezvoustest.Start(t, rendezvoustest.Store(store))
		c := p.Client(t, "acme")
		order := rendezvous.Key{Namespace: "order", Value: "7"}
		run := must(c.StartRun(t.Context(), wire.StartRun{Type: "order"}))(t)
		must(c.RegisterWait(t.Context(), wire.RegisterWait{RunID: run.RunID, Effect: "payment", Type: "paid", Keys: []rendezvous.Key{order}}))(t)

		lost := p.Faults.Arm(fault.Failure{Verb: "buffer_batch", Point: fault.AfterCommit})
		e := must(client.NewEvent("shop", "paid", client.JSON(map[string]int{"amount": 12}), order))(t)
		put := must(c.PutEvents(t.Context(), e))(t)
		if lost.Struck() != 1 || put[0].Outcome != wire.Duplicate {
			t.Errorf("%s: the failure struck %d times and the event is %s; want once, and a duplicate of what was stored", store, lost.Struck(), put[0].Outcome)
		}
		answer := must(c.RegisterWait(t.Context(), wire.RegisterWait{RunID: run.RunID, Effect: "payment", Type: "paid", Keys: []rendezvous.Key{order}}))
		for answer(t).Answered == nil { // the offer is under way
			answer = must(c.RegisterWait(t.Context(), wire.RegisterWait{RunID: run.RunID, Effect: "payment", Type: "paid", Keys: []rendezvous.Key{order}}))
		}
	}
}

// Time passes on command: an event that has expired meets nobody.
func TestTimePasses(t *testing.T) {
	p := rendezvoustest.Start(t)
	c := p.Client(t, "acme")
	order := rendezvous.Key{Namespace: "order", Value: "7"}
	e := must(client.NewEvent("shop", "paid", client.JSON(1), order))(t)
	e.ExpiresAt = p.Clock.Now().Add(time.Hour)
	must(c.PutEvents(t.Context(), e))(t)
	p.Clock.Advance(2 * time.Hour)
	run := must(c.StartRun(t.Context(), wire.StartRun{Type: "order"}))(t)
	got := must(c.RegisterWait(t.Context(), wire.RegisterWait{RunID: run.RunID, Effect: "payment", Type: "paid", Keys: []rendezvous.Key{order}}))(t)
	if got.Answered != nil {
		t.Errorf("an event that had expired answered: %+v", got)
	}
}
