package rendezvoustest_test

import (
	"context"
	"errors"
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

// Days of a run pass on command: it sleeps, is told that nobody paid, and is over.
func TestARunSleepsAndIsTimedOut(t *testing.T) {
	for _, store := range []string{"memory:", "sqlite:" + t.TempDir()} {
		p := rendezvoustest.Start(t, rendezvoustest.Store(store))
		c := p.Client(t, "acme")
		driven := make(chan client.Driven, 100)
		e := must(c.NewExecutor(client.ExecutorOptions{
			Driven: func(d client.Driven) { driven <- d },
			Handler: func(ctx context.Context, run *client.Run) error {
				if err := run.Sleep(ctx, "a day", 24*time.Hour); err != nil {
					return err
				}
				_, err := run.Await(ctx, "payment", "paid", client.Within(48*time.Hour))
				if errors.Is(err, client.ErrTimedOut) {
					return run.Complete(ctx, client.JSON("nobody paid"))
				}
				return err
			},
		}))(t)
		if err := e.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = e.Stop(context.Background()) }()
		run := must(c.StartRun(t.Context(), wire.StartRun{Type: "order", DeadlineAfterMS: new((30 * 24 * time.Hour).Milliseconds())}))(t)
		for _, passes := range []time.Duration{24 * time.Hour, 48 * time.Hour} {
			for (<-driven).Outcome != "suspended" {
				continue
			}
			p.Clock.Advance(passes)
		}
		for (<-driven).Outcome != "concluded" {
			continue
		}
		if w := must(c.GetRun(t.Context(), wire.WorkflowRef{RunID: run.RunID}))(t); w.Status != rendezvous.StatusCompleted || w.LiveTimers != 0 {
			t.Errorf("%s: the run is %s with %d timers", store, w.Status, w.LiveTimers)
		}
		idle := must(c.StartRun(t.Context(), wire.StartRun{Type: "order", Queue: "nobodys", DeadlineAfterMS: new(int64(1))}))(t)
		p.Clock.Advance(time.Second)
		page := must(c.HistoryPage(t.Context(), wire.ReadHistory{WorkflowID: idle.WorkflowID, FromSeq: 2, WaitMS: 30_000}))(t)
		if len(page.Records) != 1 || page.Records[0].Kind != rendezvous.RunTimedOut {
			t.Errorf("%s: behind its deadline a run has %+v", store, page.Records)
		}
	}
}
