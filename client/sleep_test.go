package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/wire"
)

// standing is a plane whose store's clock moves only when a test says so.
func standing(t *testing.T) (*plane, *client.Client, *clock.Manual) {
	t.Helper()
	m := clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	p := newPlane(t, settings{clock: m})
	return p, p.dial(false), m
}

// TM-23, RN-38: a sleeping run holds no lease; replays do not arm again, and when the timer has fired the run goes on.
func TestASleepPassesOnce(t *testing.T) {
	p, c, m := standing(t)
	var calls atomic.Int32
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		calls.Add(1)
		_, other := run.Await(ctx, "news", "step", client.OnKey("order", "1"))
		if err := run.Sleep(ctx, "nap", 10*time.Minute); err != nil {
			return errors.Join(err, other)
		}
		return run.Complete(ctx, client.JSON("rested"))
	})
	run := start(t, c, 0)
	until(t, driven, run.RunID, "suspended")
	armed := ok(c.ListTimers(t.Context(), wire.ListTimers{RunID: run.RunID}))(t).Timers
	eq(t, "timers", len(armed), 1)
	eq(t, "its instant", armed[0].FireAt.Time, m.Now().Add(10*time.Minute))
	put(t, c, "step", "1", 1)
	until(t, driven, run.RunID, "suspended")
	m.Advance(10*time.Minute - time.Microsecond)
	eq(t, "fired before its time", p.fire(), 0)
	m.Advance(time.Microsecond)
	eq(t, "fired", p.fire(), 1)
	until(t, driven, run.RunID, "concluded")
	eq(t, "armings", count(t, c, run, rendezvous.TimerStarted), 1)
	eq(t, "fires", count(t, c, run, rendezvous.TimerFired), 1)
	eq(t, "calls", calls.Load(), 3)
}

// TM-29: what is due when a driver gives its lease up is recorded then, and the handler is called again; no worker is needed.
func TestASleepOfNoTimeIsOverWithTheSuspension(t *testing.T) {
	p, c, _ := standing(t)
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		for i := range 3 {
			if err := run.Sleep(ctx, fmt.Sprintf("nap-%d", i), -time.Second); err != nil {
				return err
			}
		}
		if err := run.SleepUntil(ctx, "long ago", time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)); err != nil {
			return err
		}
		return run.Complete(ctx, client.Payload{})
	})
	run := start(t, c, 0)
	d := until(t, driven, run.RunID, "concluded")
	eq(t, "calls", d.Calls, 5)
	eq(t, "fires", count(t, c, run, rendezvous.TimerFired), 4)
}

// TM-45, TM-37: a wait that was not answered in time says so, on every replay; an event that comes later is for others.
func TestAWaitTimesOut(t *testing.T) {
	p, c, m := standing(t)
	deadline := m.Now().Add(time.Hour)
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		_, paid := run.Await(ctx, "payment", "paid", client.OnKey("order", "1"), client.Within(time.Minute))
		_, sent := run.Await(ctx, "parcel", "sent", client.OnKey("order", "1"), client.Until(deadline))
		switch {
		case errors.Is(paid, client.ErrWaiting), errors.Is(sent, client.ErrWaiting):
			return errors.Join(paid, sent)
		case !errors.Is(paid, client.ErrTimedOut), sent != nil:
			t.Errorf("payment: %v, parcel: %v", paid, sent)
		}
		_, err := run.Await(ctx, "poll", "paid", client.OnKey("order", "2"), client.Within(0))
		if !errors.Is(err, client.ErrTimedOut) {
			t.Errorf("a poll that nothing answers: %v", err)
		}
		return err // fails the run
	})
	run := start(t, c, 0)
	until(t, driven, run.RunID, "suspended")
	m.Advance(2 * time.Minute)
	eq(t, "fired", p.fire(), 1)
	until(t, driven, run.RunID, "suspended")
	late := put(t, c, "paid", "1", 1)
	put(t, c, "sent", "1", 1)
	until(t, driven, run.RunID, "concluded")
	eq(t, "state of the late event", ok(c.GetEvent(t.Context(), late.EventID, false))(t).State, rendezvous.EventLive)
	end := last(t, c, run)
	var d rendezvous.RunFailedData
	must(t, rendezvous.DecodeData(end, &d))
	eq(t, "code", d.Code, client.ErrTimedOut.Code)
}

// A handler names the same instants on every replay.
func TestReplayRefusesAnotherInstant(t *testing.T) {
	p, c, m := standing(t)
	at := m.Now().Add(time.Hour)
	var calls atomic.Int32
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		moved := at.Add(time.Duration(calls.Add(1)-1) * time.Second)
		_, news := run.Await(ctx, "news", "step", client.OnKey("order", "1"))
		slept := run.SleepUntil(ctx, "nap", moved)
		_, paid := run.Await(ctx, "pay", "paid", client.OnKey("order", "1"), client.Until(moved))
		if news == nil {
			if !errors.Is(slept, rendezvous.ErrConflict) || !errors.Is(paid, rendezvous.ErrConflict) {
				t.Errorf("another instant: sleep %v, wait %v", slept, paid)
			}
			return run.Complete(ctx, client.Payload{})
		}
		for _, err := range []error{run.Sleep(ctx, "$nap", 1), run.Sleep(ctx, "", 1), run.SleepUntil(ctx, "x", time.Time{}), run.SleepUntil(ctx, "x", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))} {
			if !errors.Is(err, rendezvous.ErrInvalid) {
				t.Errorf("a bad sleep: %v", err)
			}
		}
		return errors.Join(news, slept, paid)
	})
	run := start(t, c, 0)
	until(t, driven, run.RunID, "suspended")
	put(t, c, "step", "1", 1)
	until(t, driven, run.RunID, "concluded")
}

// A cancel ends a sleep, and a timer that somebody else cancelled says so.
func TestCancelEndsASleep(t *testing.T) {
	p, c, m := standing(t)
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		_, other := run.Await(ctx, "news", "step", client.OnKey("order", run.WorkflowID()))
		err := run.Sleep(ctx, "nap", time.Hour)
		switch {
		case errors.Is(err, client.ErrCancelled):
			if again := run.Sleep(ctx, "nap", time.Hour); !errors.Is(again, client.ErrCancelled) {
				t.Errorf("again: %v", again)
			}
			return err
		case errors.Is(err, client.ErrTimerCancelled):
			return run.Complete(ctx, client.Payload{})
		}
		return errors.Join(err, other)
	})
	run := start(t, c, 0)
	until(t, driven, run.RunID, "suspended")
	ok(c.CancelRun(t.Context(), wire.ActOnRun{RunID: run.RunID}))(t)
	until(t, driven, run.RunID, "concluded")
	eq(t, "status", status(t, c, run), rendezvous.StatusCancelled)
	eq(t, "cancelled timers", count(t, c, run, rendezvous.TimerCancelled), 1)

	other := start(t, c, 0)
	until(t, driven, other.RunID, "suspended")
	ok(c.CancelTimer(t.Context(), wire.CancelTimer{RunID: other.RunID, TimerID: "nap"}))(t)
	put(t, c, "step", other.WorkflowID, 1)
	until(t, driven, other.RunID, "concluded")
	eq(t, "status", status(t, c, other), rendezvous.StatusCompleted)

	m.Advance(2 * time.Hour)
	eq(t, "fired", p.fire(), 0)
}

// RN-50, TM-21, HI-19: a reopened run goes on where it stood: waits are registered again, a sleep is over at its old instant, a failed effect is tried again.
func TestAReopenedRunGoesOn(t *testing.T) {
	p, c, m := standing(t)
	var shipped atomic.Int32
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		_, paid := run.Await(ctx, "payment", "paid", client.OnKey("order", run.WorkflowID()))
		if err := errors.Join(paid, run.Sleep(ctx, "nap", time.Hour)); err != nil {
			return err
		}
		out, err := run.Do(ctx, "ship", "ship the parcel", func(context.Context) (client.Payload, error) {
			if shipped.Add(1) == 1 {
				return client.Payload{}, client.Failed("no_stock", "nothing is left")
			}
			return client.JSON("parcel"), nil
		})
		if err != nil {
			return err
		}
		return run.Complete(ctx, out)
	})
	run := start(t, c, 0)
	until(t, driven, run.RunID, "suspended")
	head := last(t, c, run).Seq
	ok(c.Conclude(t.Context(), wire.Conclude{RunID: run.RunID, ExpectedSeq: head, Outcome: rendezvous.StatusFailed, Code: "by_hand"}))(t)
	m.Advance(30 * time.Minute)
	eq(t, "timers that are back", ok(c.ReopenRun(t.Context(), wire.ReopenRun{RunID: run.RunID, Reason: "it was a mistake"}))(t).Timers, 1)
	until(t, driven, run.RunID, "suspended")
	eq(t, "registrations", count(t, c, run, rendezvous.WaitRegistered), 2)
	put(t, c, "paid", run.WorkflowID, 1)
	until(t, driven, run.RunID, "suspended")
	m.Advance(30 * time.Minute)
	eq(t, "fired", p.fire(), 1)
	until(t, driven, run.RunID, "concluded")
	eq(t, "status", status(t, c, run), rendezvous.StatusFailed)
	ok(c.ReopenRun(t.Context(), wire.ReopenRun{RunID: run.RunID, Reason: "there is stock"}))(t)
	until(t, driven, run.RunID, "concluded")
	eq(t, "status", status(t, c, run), rendezvous.StatusCompleted)
	eq(t, "shipments tried", shipped.Load(), 2)
}

// What a driver ended because of a cancel begins anew when that cancel is undone.
func TestACancelledRunThatIsReopenedGoesOn(t *testing.T) {
	p, c, m := standing(t)
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		paid, err := run.Await(ctx, "payment", "paid", client.OnKey("order", run.WorkflowID()))
		if err := errors.Join(err, run.Sleep(ctx, "nap", time.Hour)); err != nil {
			return err
		}
		return run.Complete(ctx, paid.Payload)
	})
	run := start(t, c, 0)
	until(t, driven, run.RunID, "suspended")
	for range 2 {
		ok(c.CancelRun(t.Context(), wire.ActOnRun{RunID: run.RunID}))(t)
		until(t, driven, run.RunID, "concluded")
		eq(t, "status", status(t, c, run), rendezvous.StatusCancelled)
		ok(c.ReopenRun(t.Context(), wire.ReopenRun{RunID: run.RunID}))(t)
		until(t, driven, run.RunID, "suspended")
	}
	put(t, c, "paid", run.WorkflowID, 12)
	until(t, driven, run.RunID, "suspended")
	m.Advance(time.Hour)
	eq(t, "fired", p.fire(), 1)
	until(t, driven, run.RunID, "concluded")
	eq(t, "result", string(last(t, c, run).Payload), "12")
}

// TM-42, TM-44: the deadline of a run ends it, also under its driver, who writes nothing more; the next run's is its own.
func TestARunEndsAtItsDeadline(t *testing.T) {
	p, c, m := standing(t)
	inside, goOn := make(chan struct{}, 1), make(chan struct{})
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		var next bool
		must(t, run.Input().JSON(&next))
		if !next {
			return run.ContinueAsNew(ctx, client.JSON(true), client.NextWithin(30*time.Minute))
		}
		if run.History()[0].Seq == 3 { // the first workflow's second run
			inside <- struct{}{}
			<-goOn
			if err := run.Note(ctx, "never", client.Payload{}); !errors.Is(err, rendezvous.ErrSealed) {
				t.Errorf("a write behind the deadline: %v", err)
			}
		}
		return client.ErrWaiting
	}, func(o *client.ExecutorOptions) { o.Lease = time.Hour })
	run := ok(c.StartRun(t.Context(), wire.StartRun{Type: "order", Input: client.JSON(false).Wire(), DeadlineAfterMS: new(int64(60_000))}))(t)
	receive(t, "the handler", inside)
	m.Advance(2 * time.Minute)
	eq(t, "fired of the run before", p.fire(), 0)
	m.Advance(30 * time.Minute)
	eq(t, "fired", p.fire(), 1)
	close(goOn)
	receiveOutcome(t, driven, "lost")
	eq(t, "status", status(t, c, run), rendezvous.StatusTimedOut)
	if _, err := c.ReopenRun(t.Context(), wire.ReopenRun{RunID: ok(c.GetRun(t.Context(), wire.WorkflowRef{WorkflowID: run.WorkflowID}))(t).RunID}); !errors.Is(err, rendezvous.ErrConflict) {
		t.Errorf("reopening what timed out: %v", err)
	}
}

// receiveOutcome waits for a drive of that outcome, whatever its run.
func receiveOutcome(t *testing.T, d *drives, outcome string) {
	t.Helper()
	for receive(t, "a drive that is "+outcome, d.c).Outcome != outcome {
		continue
	}
}

// I17: an arming whose reply was lost is made once.
func TestASleepWhoseReplyIsLostIsArmedOnce(t *testing.T) {
	p, c, m := standing(t)
	p.faults.set(func(verb string, n int) fault {
		if verb == "timers.arm" && n == 1 {
			return loseReply
		}
		return none
	})
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error { return run.Sleep(ctx, "nap", time.Minute) })
	run := start(t, c, 0)
	until(t, driven, run.RunID, "suspended")
	eq(t, "calls of the plane", p.faults.count("timers.arm"), 2)
	eq(t, "armings", count(t, c, run, rendezvous.TimerStarted), 1)
	m.Advance(time.Minute)
	eq(t, "fired", p.fire(), 1)
	until(t, driven, run.RunID, "concluded")
}
