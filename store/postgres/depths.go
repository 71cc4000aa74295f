package postgres

import (
	"context"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Depths implements [backend.Reader].
func (r *reader) Depths(ctx context.Context, most int) (backend.Depths, error) {
	var d backend.Depths
	err := r.query(ctx, depthsSQL, func(c *columns) error {
		d.LiveEvents, d.OldestLiveEvent = int(c.Bigint()), c.InstantOrNone()
		d.OpenWaits = int(c.Bigint())
		d.ParkedWaits, d.OldestParked = int(c.Bigint()), c.InstantOrNone()
		d.QuarantinedWaits = int(c.Bigint())
		d.Woken, d.OldestWoken = int(c.Bigint()), c.InstantOrNone()
		d.Timers = int(c.Bigint())
		d.DueTimers, d.OldestDueTimer = int(c.Bigint()), c.InstantOrNone()
		return nil
	}, int64(most), r.now, integers(r.owned(backend.Owned{}), func(n int) int { return n }))
	if err != nil {
		return d, err
	}
	d.Dead = map[rendezvous.DeadReason]int{}
	err = r.query(ctx, deadDepthsSQL, func(c *columns) error {
		d.Dead[rendezvous.DeadReason(c.Text())] = int(c.Bigint())
		return nil
	}, texts(rendezvous.DeadReasons[:], func(r rendezvous.DeadReason) string { return string(r) }), int64(most))
	if err != nil {
		return d, err
	}
	return d, r.pushDepth(ctx, most, &d)
}

// NewEventNumbers implements [backend.Tx].
func (t *transaction) NewEventNumbers(ctx context.Context, n int) ([]int64, error) {
	return t.draw(ctx, eventNumbersSQL, n)
}

// NewWaitNumbers implements [backend.Tx].
func (t *transaction) NewWaitNumbers(ctx context.Context, n int) ([]int64, error) {
	return t.draw(ctx, waitNumbersSQL, n)
}

// NewTakes implements [backend.Tx].
func (t *transaction) NewTakes(ctx context.Context, n int) ([]int64, error) {
	return t.draw(ctx, takeTokensSQL, n)
}

func (t *transaction) draw(ctx context.Context, sql string, n int) ([]int64, error) {
	drawn := make([]int64, 0, n)
	if n <= 0 {
		return drawn, nil
	}
	err := t.query(ctx, sql, func(c *columns) error {
		drawn = append(drawn, c.Bigint())
		return nil
	}, int64(n))
	return drawn, err
}
