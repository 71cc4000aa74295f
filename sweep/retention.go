package sweep

import (
	"context"
)

const retentionPage = 200

// retention ends what was kept for its time (sweep.md section 6).
func (w *Worker) retention(ctx context.Context) (page, error) {
	return w.oldLetters(ctx)
}

// oldLetters purges dead letters whose time is over.
func (w *Worker) oldLetters(ctx context.Context) (page, error) {
	if w.cfg.RetainDead < 0 {
		return page{}, nil
	}
	now, err := w.store.Now(ctx)
	if err != nil {
		return page{}, err
	}
	got, err := w.store.PurgeOldLetters(ctx, before(now, w.cfg.RetainDead), retentionPage, w.old)
	if err != nil {
		w.old = ""
		return page{}, err
	}
	w.old = got.NextCursor
	for _, l := range got.Spared { // reported and left alone; the cursor leads past it
		w.deps.Log.ErrorContext(ctx, "old dead letter does not decode", "tenant", l.Tenant, "source", l.Source, "id", l.ID, "error", l.Corrupt)
	}
	return page{
		Counts:    Counts{Handed: len(got.Purged) + len(got.Spared), Done: len(got.Purged), Failed: len(got.Spared)},
		saturated: got.NextCursor != "",
	}, nil
}
