package client_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/wire"
)

// start starts a run and answers its ids.
func start(t *testing.T, c *client.Client, input any) wire.Started {
	t.Helper()
	return ok(c.StartRun(t.Context(), wire.StartRun{Type: "order", Input: client.JSON(input).Wire()}))(t)
}

// put puts an event that is to be accepted.
func put(t *testing.T, c *client.Client, eventType, value string, data any) rendezvous.Event {
	t.Helper()
	e := ok(client.NewEvent("urn:test", eventType, client.JSON(data), key(value)))(t)
	if r := ok(c.PutEvents(t.Context(), e))(t)[0]; r.Outcome != wire.Accepted {
		t.Fatalf("event of type %s: %+v", eventType, r)
	}
	return e
}

func status(t *testing.T, c *client.Client, run wire.Started) rendezvous.Status {
	t.Helper()
	return ok(c.GetRun(t.Context(), wire.WorkflowRef{WorkflowID: run.WorkflowID}))(t).Status
}

// last is a workflow's last record.
func last(t *testing.T, c *client.Client, run wire.Started) rendezvous.Record {
	t.Helper()
	records := ok(c.History(t.Context(), run.WorkflowID, 1))(t)
	return records[len(records)-1]
}

func count(t *testing.T, c *client.Client, run wire.Started, kind rendezvous.Kind) (n int) {
	t.Helper()
	for _, r := range ok(c.History(t.Context(), run.WorkflowID, 1))(t) {
		if r.Kind == kind {
			n++
		}
	}
	return n
}

// pay waits for a payment of the order in its input, and completes with its amount.
func pay(ctx context.Context, run *client.Run) error {
	var order string
	if err := run.Input().JSON(&order); err != nil {
		return err
	}
	paid, err := run.Await(ctx, "payment", "payment.received", client.OnKey("order", order))
	if err != nil {
		return err
	}
	return run.Complete(ctx, paid.Payload)
}

// I4 as a user meets it: the wait first, then the event first, over both transports.
func TestEventAndRunMeetEitherWayRound(t *testing.T) {
	both(t, func(t *testing.T, overNATS bool) {
		p := newPlane(t, settings{})
		c := p.dial(overNATS)
		_, driven := p.execute(c, pay)

		waits := start(t, c, "1")
		until(t, driven, waits.RunID, "suspended")
		put(t, c, "payment.received", "1", 12)
		until(t, driven, waits.RunID, "concluded")

		put(t, c, "payment.received", "2", 13)
		late := start(t, c, "2")
		until(t, driven, late.RunID, "concluded")

		for run, amount := range map[wire.Started]string{waits: "12", late: "13"} {
			end := last(t, c, run)
			eq(t, "end", end.Kind, rendezvous.RunCompleted)
			eq(t, "result", string(end.Payload), amount)
			eq(t, "registrations", count(t, c, run, rendezvous.WaitRegistered), 1)
		}
	})
}

// Runs of one queue have their handlers by type; one that this executor has none for is given to another driver.
func TestHandlersAreChosenByType(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	done := func(result int) client.Handler {
		return func(ctx context.Context, run *client.Run) error { return run.Complete(ctx, client.JSON(result)) }
	}
	_, driven := p.execute(c, client.ByType(map[string]client.Handler{"order": done(1), "return": done(2)}))
	for kind, result := range map[string]string{"order": "1", "return": "2"} {
		run := ok(c.StartRun(t.Context(), wire.StartRun{Type: kind}))(t)
		until(t, driven, run.RunID, "concluded")
		eq(t, "result of "+kind, string(last(t, c, run).Payload), result)
	}
	other := ok(c.StartRun(t.Context(), wire.StartRun{Type: "refund"}))(t)
	if d := until(t, driven, other.RunID, "released"); d.Err == nil || !strings.Contains(d.Err.Error(), "refund") {
		t.Errorf("released because of %v, want the type that has no handler", d.Err)
	}
}

// A replay answers what is recorded: the function of a Do is called once, and the second wait finds the first one's answer.
func TestReplayAnswersWhatIsRecorded(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	var charged, calls atomic.Int32
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		calls.Add(1)
		must(t, run.Note(ctx, "begun", client.Payload{}))
		out, err := run.Do(ctx, "charge", "charge the card", func(context.Context) (client.Payload, error) {
			charged.Add(1)
			return client.JSON(run.IdempotencyKey("charge")), nil
		})
		must(t, err)
		a, errA := run.Await(ctx, "a", "step", client.OnKey("order", "a"))
		b, errB := run.Await(ctx, "b", "step", client.OnKey("order", "b"))
		if err := errors.Join(errA, errB); err != nil {
			return err
		}
		if a.Event.Source != "urn:test" || a.Type != "step" || a.Key == nil || *a.Key != key("a") || a.Seq >= b.Seq {
			t.Errorf("answer %+v before %+v", a, b)
		}
		must(t, run.Note(ctx, "begun", client.JSON("again")))
		return run.Complete(ctx, out)
	})
	run := start(t, c, 0)
	until(t, driven, run.RunID, "suspended")
	put(t, c, "step", "a", 1)
	until(t, driven, run.RunID, "suspended")
	put(t, c, "step", "b", 2)
	until(t, driven, run.RunID, "concluded")
	eq(t, "charges", charged.Load(), 1)
	if calls.Load() < 3 {
		t.Fatalf("%d calls of the handler", calls.Load())
	}
	eq(t, "notes", count(t, c, run, rendezvous.Note), 2)
	eq(t, "result", string(last(t, c, run).Payload), `"`+run.RunID+`/charge"`)
}

func TestFailuresOfEffectsAreJournaled(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	var tries atomic.Int32
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		_, err := run.Do(ctx, "charge", "charge the card", func(context.Context) (client.Payload, error) {
			if tries.Add(1) == 1 {
				return client.Payload{}, &client.Failure{Code: "busy", Reason: "the bank is busy", Retryable: true}
			}
			return client.Payload{}, client.Failed("declined", "no funds")
		})
		return err
	})
	run := start(t, c, 0)
	until(t, driven, run.RunID, "concluded")
	eq(t, "tries", tries.Load(), 2)
	w := ok(c.GetRun(t.Context(), wire.WorkflowRef{WorkflowID: run.WorkflowID}))(t)
	eq(t, "status", w.Status, rendezvous.StatusFailed)
	eq(t, "code", w.FailureCode, "declined")
	eq(t, "failed effect", w.FailedEffect, "charge")
	eq(t, "failures recorded", count(t, c, run, rendezvous.EffectFailed), 2)
}

// RN-22 for the handler: a driver deposed in mid-work learns it at its next write, its context ends, and it writes nothing more.
// RN-29: a handler that works longer than its ttl keeps the lease, because it is renewed at a third of it.
// awaitLease waits until a run's lease has that much left: the renewal that was sent is done.
// A handler's panic ends neither the process nor the run: the lease is released, and another call goes on from the history.
func TestCancelReachesTheWaitingHandler(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	var refunds atomic.Int32
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		_, err := run.Await(ctx, "payment", "payment.received", client.OnKey("order", "1"))
		if errors.Is(err, client.ErrCancelled) {
			if run.CancelRequested().Reason != "not wanted" {
				t.Errorf("request %+v", run.CancelRequested())
			}
			if _, bad := run.Do(ctx, "refund", "give the money back", func(context.Context) (client.Payload, error) {
				refunds.Add(1)
				return client.Payload{}, nil
			}); bad != nil {
				return bad
			}
		}
		return err
	})
	run := start(t, c, 0)
	until(t, driven, run.RunID, "suspended")
	by := &rendezvous.Operator{Actor: "ann", Basis: rendezvous.BasisAsserted}
	eq(t, "cancel", ok(c.CancelRun(t.Context(), wire.ActOnRun{RunID: run.RunID, Reason: "not wanted", Operator: by}))(t).Outcome, "requested")
	until(t, driven, run.RunID, "concluded")
	end := last(t, c, run)
	eq(t, "end", end.Kind, rendezvous.RunCancelled)
	eq(t, "who", end.Operator.Actor, "ann")
	eq(t, "refunds", refunds.Load(), 1)
	eq(t, "waits left", len(ok(c.ListWaits(t.Context(), wire.ListWaits{RunID: run.RunID}))(t).Waits), 0)
}

// RN-56: a cancel now takes the run away from its handler.
// RN-52: a pause lets the handler begin nothing new; the run rests until it is resumed, and then completes.
func TestPausedRunRestsUntilItIsResumed(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	inside, goOn := make(chan struct{}, 10), make(chan struct{}, 10)
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		inside <- struct{}{}
		<-goOn
		_, err := run.Do(ctx, "charge", "charge the card", func(context.Context) (client.Payload, error) { return client.JSON(1), nil })
		return err
	})
	run := start(t, c, 0)
	receive(t, "the handler", inside)
	eq(t, "pause", ok(c.PauseRun(t.Context(), wire.ActOnRun{RunID: run.RunID}))(t).Outcome, "requested")
	goOn <- struct{}{}
	until(t, driven, run.RunID, "paused")
	eq(t, "status", status(t, c, run), rendezvous.StatusPaused)
	eq(t, "effects", count(t, c, run, rendezvous.EffectStarted), 0)
	eq(t, "resume", ok(c.ResumeRun(t.Context(), wire.ActOnRun{RunID: run.RunID}))(t).Outcome, "resumed")
	goOn <- struct{}{}
	until(t, driven, run.RunID, "concluded")
	eq(t, "effects", count(t, c, run, rendezvous.EffectDone), 1)
}

// RN-46 for the handler: the next run is driven under the same lease, with its own history.
func TestContinueAsNewGoesOnWithTheNextRun(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		var n int
		must(t, run.Input().JSON(&n))
		if got := len(run.History()); got != 1 && n != 2 {
			t.Errorf("run %d begins with %d records", n, got)
		}
		if n == 2 {
			if _, err := run.Await(ctx, "end", "stop", client.OnKey("order", "1")); err != nil {
				return err
			}
			return run.Complete(ctx, client.JSON(n))
		}
		return run.ContinueAsNew(ctx, client.JSON(n+1))
	})
	run := start(t, c, 0)
	d := receive(t, "a drive", driven.c)
	eq(t, "outcome", d.Outcome, "suspended")
	eq(t, "calls", d.Calls, 3)
	put(t, c, "stop", "1", 0)
	until(t, driven, d.RunID, "concluded")
	chain := ok(c.RunChain(t.Context(), wire.WorkflowRef{WorkflowID: run.WorkflowID}))(t).Runs
	eq(t, "runs", len(chain), 3)
	eq(t, "status", status(t, c, run), rendezvous.StatusCompleted)
}

// An answer that arrives while the handler works is not lost with the suspension: it is called again with it (RN-32).
func TestNewsWhileTheHandlerWorksCallsItAgain(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	var calls atomic.Int32
	waits, answered := make(chan struct{}), make(chan struct{})
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		n := calls.Add(1)
		a, err := run.Await(ctx, "payment", "payment.received", client.OnKey("order", "1"))
		if n == 1 {
			close(waits)
			<-answered
			return err
		}
		if err != nil {
			return err
		}
		if fresh := run.New(); fresh[len(fresh)-1].Kind != rendezvous.WaitAnswered || len(fresh) >= len(run.History()) {
			t.Errorf("new are %d of %d records", len(fresh), len(run.History()))
		}
		return run.Complete(ctx, a.Payload)
	})
	run := start(t, c, 0)
	receive(t, "the wait", waits)
	e := put(t, c, "payment.received", "1", 1)
	for ok(c.GetEvent(t.Context(), e.EventID, false))(t).State == rendezvous.EventLive { // until the plane has claimed it
	}
	close(answered)
	d := until(t, driven, run.RunID, "concluded")
	eq(t, "calls under one lease", d.Calls, 2)
}

// An end decided on a history that grew meanwhile is decided anew.
func TestConclusionOnAStaleHistoryIsDecidedAnew(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	var calls atomic.Int32
	waits, answered := make(chan struct{}), make(chan struct{})
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		first, err := run.Await(ctx, "first", "step", client.OnKey("order", "1"))
		if err == nil {
			return run.Complete(ctx, first.Payload)
		}
		if calls.Add(1) == 1 {
			close(waits)
			<-answered
			// What Collect records is not read here, as if a second look had recorded it.
			_, bad := c.Collect(ctx, run.ID(), 1)
			must(t, bad)
		}
		return run.Complete(ctx, client.JSON("too early"))
	})
	run := start(t, c, 0)
	receive(t, "the wait", waits)
	e := put(t, c, "step", "1", "in time")
	for ok(c.GetEvent(t.Context(), e.EventID, false))(t).State == rendezvous.EventLive { // until the plane has claimed it
	}
	close(answered)
	until(t, driven, run.RunID, "concluded")
	eq(t, "result", string(last(t, c, run).Payload), `"in time"`)
}

// RN-36: what a stop cuts off goes on elsewhere at once, without waiting for the lease to run out.
// Two executors of one queue: each run is driven by one at a time and completes once.
// Notices late, twice and for runs of others are no-ops.
// The executor's own calls lose their replies, every second one: nothing happens twice.
// A run that fails in a row waits longer each time, and holds no slot meanwhile: it does not spin, and others go on.
// A handler that ignores the end of its context is left to itself: the run goes on elsewhere, and the handler writes nothing any more.
// A wait withdrawn by somebody says so on every replay, and the run goes on from there.
func TestWithdrawnWaitIsAnswered(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		_, err := run.Await(ctx, "payment", "payment.received", client.OnKey("order", "1"))
		if errors.Is(err, client.ErrWithdrawn) {
			if a, err := run.Withdraw(ctx, "payment", "again"); a != nil || err != nil {
				t.Errorf("withdrawing what is withdrawn: %+v, %v", a, err)
			}
			return run.Complete(ctx, client.JSON("without"))
		}
		return err
	})
	run := start(t, c, 0)
	until(t, driven, run.RunID, "suspended")
	eq(t, "withdrawal", ok(c.WithdrawWait(t.Context(), wire.WithdrawWait{RunID: run.RunID, Effect: "payment"}))(t).Outcome, "withdrawn")
	until(t, driven, run.RunID, "concluded")
	eq(t, "result", string(last(t, c, run).Payload), `"without"`)
}

// The first of two answers decides; the other wait is withdrawn, and its event is left for others.
func TestHandlerTakesTheFirstOfTwo(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		yes, errYes := run.Await(ctx, "yes", "approved", client.OnKey("order", "1"))
		_, errNo := run.Await(ctx, "no", "refused", client.OnKey("order", "1"), client.From("urn:test"))
		switch {
		case errYes == nil:
			if _, err := run.Withdraw(ctx, "no", "approved already"); err != nil {
				return err
			}
			return run.Complete(ctx, yes.Payload)
		case errNo == nil:
			return run.Fail(ctx, "refused", "somebody refused")
		}
		return errYes
	})
	run := start(t, c, 0)
	until(t, driven, run.RunID, "suspended")
	put(t, c, "approved", "1", true)
	until(t, driven, run.RunID, "concluded")
	eq(t, "status", status(t, c, run), rendezvous.StatusCompleted)
	other := put(t, c, "refused", "1", false)
	eq(t, "state of the other event", ok(c.GetEvent(t.Context(), other.EventID, false))(t).State, rendezvous.EventLive)
}

// A handler whose code changed under a running run is told, instead of being given another step's outcome.
func TestReplayRefusesAnotherCourse(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	results := make(chan error, 4)
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		nothing := func(context.Context) (client.Payload, error) { return client.Payload{}, nil }
		if _, err := run.Do(ctx, "step", "one thing", nothing); err != nil {
			return err
		}
		_, _ = run.Await(ctx, "wait", "some", client.OnKey("order", "1"))
		_, err := run.Do(ctx, "step", "another thing", nothing)
		results <- err
		_, err = run.Await(ctx, "wait", "other", client.OnKey("order", "1"))
		results <- err
		_, err = run.Await(ctx, "step", "some")
		results <- err
		_, err = run.Do(ctx, "wait", "one thing", nothing)
		results <- err
		return nil
	})
	run := start(t, c, 0)
	until(t, driven, run.RunID, "concluded")
	for _, want := range []error{rendezvous.ErrConflict, rendezvous.ErrConflict, rendezvous.ErrInvalid, rendezvous.ErrInvalid} {
		if err := <-results; !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}
