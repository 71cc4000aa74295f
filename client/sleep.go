package client

import (
	"context"
	"fmt"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/wire"
)

// Sleep lets d pass, durably. It arms a timer of the run and answers ErrWaiting, which the handler returns; when the timer has fired it answers nil, to whoever
// drives the run by then, and to every replay. timer is its name in the run: each sleep needs one of its own, e.g. in a loop fmt.Sprintf("nap-%d", i). The
// time counts from the arming, so a replay does not sleep again. A d below 0 is 0.
//
// Other answers: ErrCancelled when a cancel is requested (the timer is cancelled), ErrPausing, and ErrTimerCancelled when somebody else cancelled the timer.
func (r *Run) Sleep(ctx context.Context, timer string, d time.Duration) error {
	return r.sleep(ctx, wire.ArmTimer{TimerID: timer, AfterMS: new(wire.AfterMS(max(d, 0)))}, time.Time{})
}

// SleepUntil is [Run.Sleep] until an instant, which is the same on every replay: it comes from the input, an answer or an outcome, not from a clock. Conflict
// when the timer was armed for another instant.
func (r *Run) SleepUntil(ctx context.Context, timer string, at time.Time) error {
	if at.IsZero() {
		return rendezvous.InvalidField("at", "is no instant")
	}
	if err := rendezvous.CheckInstant("at", rendezvous.DueInstant(at)); err != nil {
		return err
	}
	return r.sleep(ctx, wire.ArmTimer{TimerID: timer, FireAt: wire.DueAt(at)}, rendezvous.DueInstant(at))
}

// sleep goes by the history; at is the instant that is asked for, zero for a duration.
func (r *Run) sleep(ctx context.Context, arm wire.ArmTimer, at time.Time) error {
	if err := rendezvous.CheckTimerID("timer", arm.TimerID); err != nil {
		return err
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	if err := r.usable(); err != nil {
		return err
	}
	armed, slept, err := r.slept(arm.TimerID, at)
	switch {
	case slept || err != nil:
		return err
	case r.CancelRequested() != nil:
		if !armed {
			return ErrCancelled
		}
		return r.cancelSleep(ctx, arm.TimerID)
	case armed:
		return ErrWaiting
	case r.PauseRequested() != nil:
		return ErrPausing
	}
	return r.arm(ctx, arm)
}

// slept is how the history says the timer stands: armed, or over, and how that ended the sleep.
func (r *Run) slept(timer string, at time.Time) (armed, over bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.journal.timers[timer]
	if t == nil {
		return false, false, nil
	}
	var d rendezvous.TimerStartedData
	if err := rendezvous.DecodeData(t.armed, &d); err != nil {
		return false, false, err
	}
	if asked := rendezvous.FormatInstant(at); !at.IsZero() && d.FireAt != asked {
		return false, false, rendezvous.Errorf(rendezvous.CodeConflict,
			"timer %q of this run was armed for %s, not for %s; a handler names the same instant on every replay, so choose another timer", timer, d.FireAt, asked).
			With("what", "fire_at").With("timer", timer)
	}
	switch {
	case t.over == nil:
		return true, false, nil
	case t.over.Kind == rendezvous.TimerFired:
		return false, true, nil
	case !r.journal.byCancel(*t.over):
		return false, true, &Failure{Code: ErrTimerCancelled.Code, Reason: fmt.Sprintf("timer %q was cancelled", timer)}
	case t.over.Seq < r.journal.reopened:
		return false, false, nil // that cancel is over
	}
	return false, true, ErrCancelled
}

// arm asks the plane, and books the record.
func (r *Run) arm(ctx context.Context, arm wire.ArmTimer) error {
	arm.RunID, arm.Epoch = r.id, r.lease.epoch
	got, err := r.client.ArmTimer(ctx, arm)
	if err != nil {
		return r.refused(err)
	}
	d := rendezvous.TimerStartedData{TimerID: arm.TimerID, FireAt: rendezvous.FormatInstant(got.FireAt.Time)}
	if err := r.takeOr(ctx, got.ArmedSeq, []rendezvous.Record{{
		Seq: got.ArmedSeq, RunID: r.id, Kind: rendezvous.TimerStarted, V: rendezvous.KindVersion, Data: rendezvous.EncodeData(d),
	}}); err != nil {
		return err
	}
	return ErrWaiting
}

// cancelSleep ends a sleep because of a cancel, unless the timer was quicker.
func (r *Run) cancelSleep(ctx context.Context, timer string) error {
	if _, err := r.client.CancelTimer(ctx, wire.CancelTimer{RunID: r.id, Epoch: r.lease.epoch, TimerID: timer, Reason: cancelReason}); err != nil {
		return r.refused(err)
	}
	if err := r.sync(ctx); err != nil {
		return err
	}
	_, over, err := r.slept(timer, time.Time{})
	if !over && err == nil {
		return ErrStale
	}
	return err
}
