package sweep

import (
	"context"

	"github.com/rendezvous-events/rendezvous/store"
)

const wokenPage = 500

// woken repeats RESUME notices of runs nobody has taken up (runs.md section 6).
func (w *Worker) woken(ctx context.Context) (page, error) {
	taken, err := w.store.TakeWoken(ctx, wokenPage)
	if err != nil || len(taken.Rows) == 0 {
		return page{saturated: taken.Saturated}, err
	}
	w.deps.Sender.Try(ctx, store.Notices{Resume: taken.Rows})
	return page{Counts: Counts{Handed: len(taken.Rows), Done: len(taken.Rows)}, saturated: taken.Saturated}, nil
}
