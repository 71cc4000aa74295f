package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Now implements [store.Queue].
func (e *Engine) Now(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := e.view(ctx, "now", func(_ context.Context, r backend.Reader) error {
		now = r.Now()
		return nil
	})
	return now, err
}

// Depths implements [store.Queue].
func (e *Engine) Depths(ctx context.Context) (store.Depths, error) {
	var d backend.Depths
	err := e.view(ctx, "depths", func(ctx context.Context, r backend.Reader) error {
		var err error
		d, err = r.Depths(ctx, store.DepthCap+1) // one more tells a count at the cap from one beyond
		return err
	})
	if err != nil {
		return store.Depths{}, err
	}
	out := store.Depths{
		LiveEvents: d.LiveEvents, OpenWaits: d.OpenWaits, ParkedWaits: d.ParkedWaits, QuarantinedWaits: d.QuarantinedWaits, Woken: d.Woken, Timers: d.Timers, DueTimers: d.DueTimers,
		OldestDueTimer: d.OldestDueTimer, Dead: d.Dead,
		DuePushes: d.DuePushes, FailingPushes: d.FailingPushes, ParkedPushes: d.ParkedPushes, OldestDuePush: d.OldestDuePush,
		OldestLiveEvent: d.OldestLiveEvent, OldestParked: d.OldestParked, OldestWoken: d.OldestWoken,
	}
	for reason, n := range out.Dead {
		out.DeadLetters += n
		if n > store.DepthCap {
			out.Dead[reason], out.Capped = store.DepthCap, true
		}
	}
	for _, n := range []*int{&out.DeadLetters, &out.LiveEvents, &out.OpenWaits, &out.ParkedWaits, &out.QuarantinedWaits, &out.Woken, &out.Timers, &out.DueTimers, &out.DuePushes, &out.FailingPushes, &out.ParkedPushes} {
		if *n > store.DepthCap {
			*n, out.Capped = store.DepthCap, true
		}
	}
	return out, nil
}
