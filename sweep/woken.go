package sweep

import (
	"context"
	"slices"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
)

const (
	wokenPage = 500
	// wokenLot is how many repeats are sent at once. As long a pause follows, 100 ms at most and while half of the page's budget is left, so that the news of an
	// arrival does not queue up behind repeats. Those are counted already: one that the budget cuts off comes an interval later.
	wokenLot = 50
)

// woken repeats RESUME notices of runs nobody has taken up (runs.md section 6).
func (w *Worker) woken(ctx context.Context) (page, error) {
	taken, err := w.shards.TakeWoken(ctx, wokenPage)
	if err != nil || len(taken.Rows) == 0 {
		return page{saturated: taken.Saturated}, err
	}
	p := page{Counts: Counts{Handed: len(taken.Rows)}, saturated: taken.Saturated}
	first := w.deps.Clock.Now()
	for lot := range slices.Chunk(taken.Rows, wokenLot) {
		if ctx.Err() != nil {
			break // the others are due again in their time
		}
		began := w.deps.Clock.Now()
		w.deps.Sender.Try(ctx, store.Notices{Resume: lot})
		p.Done += len(lot)
		if now := w.deps.Clock.Now(); now.Sub(first) < w.cfg.Page/2 {
			_ = clock.Sleep(ctx, w.deps.Clock, min(now.Sub(began), mostPause))
		}
	}
	return p, nil
}
