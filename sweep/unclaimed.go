package sweep

import (
	"context"
	"time"
)

const unclaimedPage = 500

// unclaimed retires events that nobody wanted in their window or before their own expiry. What meets an open wait right now is not old, its notice was lost: it
// is offered instead (SW-6).
func (w *Worker) unclaimed(ctx context.Context) (page, error) {
	now, err := w.store.Now(ctx)
	if err != nil {
		return page{}, err
	}
	swept, err := w.store.SweepUnclaimed(ctx, before(now, w.cfg.Window), now, "", unclaimedPage)
	if err != nil {
		return page{}, err
	}
	w.deps.Sender.Try(ctx, swept.Notices)
	p := page{
		Counts:    Counts{Handed: len(swept.Retired) + len(swept.Unmet), Done: len(swept.Retired), Deferred: len(swept.Unmet)},
		saturated: swept.More, types: map[string]int{},
	}
	reasons := map[string]int{}
	for _, r := range swept.Retired {
		p.types[r.Type]++
		reasons[string(r.Reason)]++
	}
	w.metrics.retire(ctx, reasons)
	return p, nil
}

// before is now − window, which is never negative (S9): else it would retire what is yet to come.
func before(now time.Time, window time.Duration) time.Time {
	return now.Add(-max(window, 0))
}
