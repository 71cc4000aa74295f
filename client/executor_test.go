package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/messaging"
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
	e := client.NewEvent("urn:test", eventType, client.JSON(data), key(value))
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
func TestFencedHandlerIsStoppedAndWritesNothing(t *testing.T) {
	m := clock.NewManual(time.Now())
	p := newPlane(t, settings{clock: m})
	c := p.dial(false) // its own clock is the machine's: it believes in its lease
	inside, deposed := make(chan struct{}, 1), make(chan struct{})
	var outcome error
	var calls atomic.Int32
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		if calls.Add(1) > 1 {
			return nil
		}
		inside <- struct{}{}
		<-deposed
		outcome = run.Complete(ctx, client.Payload{})
		<-ctx.Done()
		if err := run.Note(ctx, "never", client.Payload{}); !errors.Is(err, rendezvous.ErrFenced) {
			t.Errorf("a write after the lease was lost: %v", err)
		}
		return nil
	})
	run := start(t, c, 0)
	receive(t, "the handler", inside)
	m.Advance(time.Minute)
	var other wire.Lease
	for other.Epoch == 0 { // the passes may take it back first
		got, err := c.AcquireLease(t.Context(), wire.AcquireLease{RunID: run.RunID, Owner: "other/1"})
		if err != nil && !errors.Is(err, rendezvous.ErrLeaseHeld) {
			t.Fatal(err)
		}
		other = got
	}
	close(deposed)
	d := until(t, driven, run.RunID, "lost")
	if !errors.Is(outcome, rendezvous.ErrFenced) || !errors.Is(d.Err, rendezvous.ErrFenced) {
		t.Fatalf("the handler's write: %v; the drive: %v", outcome, d.Err)
	}
	eq(t, "head", last(t, c, run).Seq, 1)
	eq(t, "release by the other", ok(c.ReleaseLease(t.Context(), run.RunID, other.Epoch))(t).Outcome, "released")
	until(t, driven, run.RunID, "concluded")
}

// RN-29: a handler that works longer than its ttl keeps the lease, because it is renewed at a third of it.
func TestLeaseIsRenewedWhileTheHandlerWorks(t *testing.T) {
	m := clock.NewManual(time.Now())
	p := newPlane(t, settings{clock: m})
	c := p.dial(false, func(o *client.Options) { o.Clock, o.Timeout = m, time.Hour }) // no try times out because this test moves the clock
	renewed := make(chan struct{}, 100)
	p.faults.set(func(verb string, _ int) fault {
		if verb == "runs.renew" {
			renewed <- struct{}{}
		}
		return none
	})
	inside, goOn := make(chan struct{}), make(chan struct{})
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		close(inside)
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return run.Complete(ctx, client.Payload{})
	})
	run := start(t, c, 0)
	receive(t, "the handler", inside)
	for range 12 { // four times the ttl
		m.Advance(10 * time.Second)
		receive(t, "a renewal", renewed)
		awaitLease(t, c, run, 29*time.Second)
	}
	close(goOn)
	until(t, driven, run.RunID, "concluded")
	eq(t, "handlers called", count(t, c, run, rendezvous.RunCompleted), 1)
}

// awaitLease waits until a run's lease has that much left: the renewal that was sent is done.
func awaitLease(t *testing.T, c *client.Client, run wire.Started, least time.Duration) {
	t.Helper()
	for {
		w := ok(c.GetRun(t.Context(), wire.WorkflowRef{RunID: run.RunID}))(t)
		if w.LeaseOwner == "" {
			t.Fatal("the lease is gone")
		}
		if w.LeaseRemainingMS >= least.Milliseconds() {
			return
		}
	}
}

// A handler's panic ends neither the process nor the run: the lease is released, and another call goes on from the history.
func TestPanicIsContainedAndTheRunGoesOn(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	var calls atomic.Int32
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		must(t, run.Note(ctx, "begun", client.Payload{}))
		if calls.Add(1) == 1 {
			panic("out of coffee")
		}
		return nil
	})
	run := start(t, c, 0)
	d := until(t, driven, run.RunID, "released")
	if d.Err == nil {
		t.Fatal("the drive reports no error")
	}
	until(t, driven, run.RunID, "concluded")
	eq(t, "notes", count(t, c, run, rendezvous.Note), 1)
	eq(t, "status", status(t, c, run), rendezvous.StatusCompleted)
}

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
func TestCancelNowStopsTheHandler(t *testing.T) {
	m := clock.NewManual(time.Now())
	p := newPlane(t, settings{clock: m})
	c := p.dial(false, func(o *client.Options) { o.Clock, o.Timeout = m, time.Hour })
	inside := make(chan struct{})
	_, driven := p.execute(c, func(ctx context.Context, _ *client.Run) error {
		close(inside)
		<-ctx.Done()
		return context.Cause(ctx)
	})
	run := start(t, c, 0)
	receive(t, "the handler", inside)
	eq(t, "cancel", ok(c.CancelRun(t.Context(), wire.ActOnRun{RunID: run.RunID, Now: true}))(t).Outcome, "cancelled")
	m.Advance(10 * time.Second) // the renewal learns it
	d := until(t, driven, run.RunID, "lost")
	if !errors.Is(d.Err, rendezvous.ErrSealed) && !errors.Is(d.Err, rendezvous.ErrFenced) {
		t.Fatalf("the drive: %v", d.Err)
	}
}

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

func TestStopLetsHandlersFinish(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	inside, goOn := make(chan struct{}), make(chan struct{})
	e, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		close(inside)
		<-goOn
		return run.Complete(ctx, client.Payload{})
	})
	run := start(t, c, 0)
	receive(t, "the handler", inside)
	stopped := make(chan error, 2)
	for range 2 { // every caller waits
		go func() { stopped <- e.Stop(context.Background()) }()
	}
	select {
	case <-stopped:
		t.Fatal("it stopped under a working handler")
	default:
	}
	close(goOn)
	must(t, receive(t, "the stop", stopped))
	must(t, receive(t, "the stop", stopped))
	eq(t, "outcome", receive(t, "a drive", driven.c).Outcome, "concluded")
	eq(t, "status", status(t, c, run), rendezvous.StatusCompleted)
}

// RN-36: what a stop cuts off goes on elsewhere at once, without waiting for the lease to run out.
func TestStopOutOfPatienceGivesTheRunAway(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	inside := make(chan struct{})
	e, driven := p.execute(c, func(ctx context.Context, _ *client.Run) error {
		close(inside)
		<-ctx.Done()
		return context.Cause(ctx)
	})
	run := start(t, c, 0)
	receive(t, "the handler", inside)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := e.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("a stop that cut a handler off: %v", err)
	}
	eq(t, "outcome", receive(t, "a drive", driven.c).Outcome, "released")
	_, second := p.execute(c, func(context.Context, *client.Run) error { return nil })
	until(t, second, run.RunID, "concluded")
}

// Two executors of one queue: each run is driven by one at a time and completes once.
func TestExecutorsShareAQueue(t *testing.T) {
	both(t, func(t *testing.T, overNATS bool) {
		const runs = 150
		p := newPlane(t, settings{})
		c := p.dial(overNATS)
		var mu sync.Mutex
		driving, done := map[string]bool{}, map[string]int{}
		finished := make(chan string, 10*runs)
		h := func(ctx context.Context, run *client.Run) error {
			mu.Lock()
			if driving[run.ID()] {
				t.Errorf("run %s is driven twice at once", run.ID())
			}
			driving[run.ID()] = true
			mu.Unlock()
			defer func() {
				mu.Lock()
				driving[run.ID()] = false
				mu.Unlock()
			}()
			err := pay(ctx, run)
			if err == nil {
				mu.Lock()
				done[run.ID()]++
				mu.Unlock()
				finished <- run.ID()
			}
			return err
		}
		few := func(o *client.ExecutorOptions) { o.Concurrency = 8 }
		p.execute(c, h, few)
		p.execute(p.dial(overNATS), h, few)
		var all []wire.Started
		for i := range runs {
			all = append(all, start(t, c, fmt.Sprint(i)))
		}
		for i := range runs {
			put(t, c, "payment.received", fmt.Sprint(i), i)
		}
		for range runs {
			receive(t, "the end of a run", finished)
		}
		for i, run := range all {
			end := last(t, c, run)
			eq(t, "end", end.Kind, rendezvous.RunCompleted)
			eq(t, "result", string(end.Payload), fmt.Sprint(i))
			eq(t, "ends of a run", done[run.RunID], 1)
		}
	})
}

// Notices late, twice and for runs of others are no-ops.
func TestNoticesThatSayNothingAreDropped(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	_, driven := p.execute(c, pay)
	run := start(t, c, "1")
	until(t, driven, run.RunID, "suspended")
	held := ok(c.StartRun(t.Context(), wire.StartRun{Type: "order", Queue: "by-hand"}))(t)
	ok(c.AcquireLease(t.Context(), wire.AcquireLease{RunID: held.RunID, Owner: "other/1"}))(t)
	for i := range 5 {
		must(t, p.conn.Publish(t.Context(), []messaging.Notice{
			messaging.ResumeNotice{Tenant: "default", Queue: "default", WorkflowID: run.WorkflowID, RunID: run.RunID, Seq: 1, Cause: "answered", Attempt: uint64(100 + i)},
			messaging.ResumeNotice{Tenant: "default", Queue: "default", WorkflowID: held.WorkflowID, RunID: held.RunID, Seq: 1, Cause: "answered", Attempt: uint64(100 + i)},
			messaging.ResumeNotice{Tenant: "default", Queue: "default", WorkflowID: "no", RunID: "no", Seq: 1, Cause: "answered", Attempt: uint64(100 + i)},
		}))
	}
	put(t, c, "payment.received", "1", 1)
	until(t, driven, run.RunID, "concluded")
	eq(t, "records", last(t, c, run).Seq, 4)
	eq(t, "records of the held run", last(t, c, held).Seq, 1)
}

// The executor's own calls lose their replies, every second one: nothing happens twice.
func TestExecutorSurvivesLostReplies(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	var charged atomic.Int32
	p.faults.set(func(_ string, n int) fault { return fault(n % 2) }) // none, lost, none, …
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		if _, err := run.Do(ctx, "charge", "charge the card", func(context.Context) (client.Payload, error) {
			charged.Add(1)
			return client.Payload{}, nil
		}); err != nil {
			return err
		}
		return pay(ctx, run)
	})
	run := start(t, c, "1")
	until(t, driven, run.RunID, "suspended")
	put2 := client.NewEvent("urn:test", "payment.received", client.JSON(1), key("1"))
	ok(c.PutEvents(t.Context(), put2))(t)
	until(t, driven, run.RunID, "concluded")
	p.faults.set(nil)
	eq(t, "charges", charged.Load(), 1)
	eq(t, "records", last(t, c, run).Seq, 6) // started, effect begun and done, wait, answer, completed
}

// A run that fails in a row waits longer each time, and holds no slot meanwhile: it does not spin, and others go on.
func TestRunThatFailsAgainAndAgainDoesNotSpin(t *testing.T) {
	m := noticing{clock.NewManual(time.Now()), make(chan time.Duration, 1000)}
	p := newPlane(t, settings{})
	c := p.dial(false, func(o *client.Options) {
		o.Clock, o.Timeout, o.Jitter = m, time.Hour, func() float64 { return 1 }
	})
	calls := make(chan string, 100)
	_, driven := p.execute(c, func(_ context.Context, run *client.Run) error {
		calls <- run.ID()
		if string(run.Input().Data) == "1" {
			return errors.New("the database of the shop is away")
		}
		return nil
	}, func(o *client.ExecutorOptions) { o.Concurrency = 1 })
	bad := start(t, c, 1)
	for range 2 { // the first failure is given away at once
		eq(t, "called", receive(t, "a call", calls), bad.RunID)
	}
	good := start(t, c, 2)
	eq(t, "called", receive(t, "a call", calls), good.RunID)
	until(t, driven, good.RunID, "concluded")
	until(t, driven, bad.RunID, "released")
	if len(driven.kept) > 0 {
		t.Fatalf("the failing run was given away before its time: %+v", driven.kept)
	}
	m.await(t, time.Second)
	m.Advance(time.Second)
	eq(t, "called", receive(t, "a call", calls), bad.RunID)
	m.await(t, 2*time.Second)
}

// A handler that ignores the end of its context is left to itself: the run goes on elsewhere, and the handler writes nothing any more.
func TestHandlerThatIgnoresItsContextIsLeftBehind(t *testing.T) {
	m := noticing{clock.NewManual(time.Now()), make(chan time.Duration, 1000)}
	p := newPlane(t, settings{})
	c := p.dial(false, func(o *client.Options) { o.Clock, o.Timeout = m, time.Hour })
	inside, goOn, wrote := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	e, driven := p.execute(c, func(_ context.Context, run *client.Run) error {
		close(inside)
		<-goOn
		wrote <- run.Complete(context.Background(), client.JSON("too late"))
		return nil
	})
	run := start(t, c, 0)
	receive(t, "the handler", inside)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- e.Stop(ctx) }()
	const grace = 5 * time.Second
	m.await(t, grace)
	m.Advance(grace)
	err := receive(t, "the stop", stopped)
	if err == nil || !strings.Contains(err.Error(), "1 handlers") {
		t.Fatalf("the stop: %v", err)
	}
	eq(t, "outcome", receive(t, "a drive", driven.c).Outcome, "released")
	close(goOn)
	if err := receive(t, "the late write", wrote); err == nil {
		t.Fatal("a handler without a lease could write")
	}
	eq(t, "head", last(t, c, run).Seq, 1)
}

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

// noticing is a clock that tells which timers are asked of it.
type noticing struct {
	*clock.Manual
	timers chan time.Duration
}

// await waits until a timer of that length is asked for.
func (n noticing) await(t *testing.T, d time.Duration) {
	t.Helper()
	for got := time.Duration(-1); got != d; got = receive(t, "a timer of "+d.String(), n.timers) {
	}
}

func (n noticing) NewTimer(d time.Duration) clock.Timer {
	t := n.Manual.NewTimer(d)
	n.timers <- d
	return t
}
