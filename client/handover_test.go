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

func TestNoticesThatSayNothingAreDropped(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	var driving atomic.Int32
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		if driving.Add(1) > 1 {
			t.Error("the run is driven twice at once")
		}
		defer driving.Add(-1)
		return pay(ctx, run)
	})
	run := start(t, c, "1")
	until(t, driven, run.RunID, "suspended")
	held := ok(c.StartRun(t.Context(), wire.StartRun{Type: "order", Queue: "by-hand"}))(t)
	ok(c.AcquireLease(t.Context(), wire.AcquireLease{RunID: held.RunID, Owner: "other/1"}))(t)
	for i := range 5 {
		must(t, p.conn.Publish(t.Context(), []messaging.Notice{
			messaging.ResumeNotice{Tenant: "default", Queue: "default", WorkflowID: run.WorkflowID, RunID: run.RunID, Seq: 1, Cause: rendezvous.CauseAnswered, Attempt: uint64(100 + i)},
			messaging.ResumeNotice{Tenant: "default", Queue: "default", WorkflowID: held.WorkflowID, RunID: held.RunID, Seq: 1, Cause: rendezvous.CauseAnswered, Attempt: uint64(100 + i)},
			messaging.ResumeNotice{Tenant: "default", Queue: "default", WorkflowID: "no", RunID: "no", Seq: 1, Cause: rendezvous.CauseAnswered, Attempt: uint64(100 + i)},
		}))
	}
	put(t, c, "payment.received", "1", 1)
	until(t, driven, run.RunID, "concluded")
	eq(t, "records", last(t, c, run).Seq, 4)
	eq(t, "records of the held run", last(t, c, held).Seq, 1)
}

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
	put2 := ok(client.NewEvent("urn:test", "payment.received", client.JSON(1), key("1")))(t)
	ok(c.PutEvents(t.Context(), put2))(t)
	until(t, driven, run.RunID, "concluded")
	p.faults.set(nil)
	eq(t, "charges", charged.Load(), 1)
	eq(t, "records", last(t, c, run).Seq, 6) // started, effect begun and done, wait, answer, completed
}

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

// noticing is a clock that tells which timers are asked of it.
type noticing struct {
	*clock.Manual
	timers chan time.Duration
}

// await waits until a timer of that length is asked for.
