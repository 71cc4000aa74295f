package sweep

import (
	"context"
	"errors"
)

const retentionPage = 200

// retention ends what was kept for its time (sweep.md section 6). Of letters, records and workflows one that fails does not keep the others.
func (w *Worker) retention(ctx context.Context) (page, error) {
	var p page
	err := errors.Join(w.oldLetters(ctx, &p), w.prune(ctx, &p))
	return p, err
}

// oldLetters purges dead letters whose time is over.
func (w *Worker) oldLetters(ctx context.Context, p *page) error {
	if w.cfg.RetainDead < 0 {
		return nil
	}
	now, err := w.store.Now(ctx)
	if err != nil {
		return err
	}
	got, err := w.store.PurgeOldLetters(ctx, before(now, w.cfg.RetainDead), retentionPage, w.old)
	if err != nil {
		w.old = ""
		return err
	}
	w.old = got.NextCursor
	for _, l := range got.Spared { // reported and left alone; the cursor leads past it
		w.deps.Log.ErrorContext(ctx, "old dead letter does not decode", "tenant", l.Tenant, "source", l.Source, "id", l.ID, "error", l.Corrupt)
	}
	p.add(Counts{Handed: len(got.Purged) + len(got.Spared), Done: len(got.Purged), Failed: len(got.Spared)})
	p.saturated = p.saturated || got.NextCursor != ""
	return nil
}

// prune removes closed workflows whose time is over, and first the records of those that were: what a crash left is finished even where all are kept now.
func (w *Worker) prune(ctx context.Context, p *page) error {
	records, err := w.store.PruneRecords(ctx, 0)
	if err != nil {
		return err
	}
	p.saturated = p.saturated || records.More
	if records.More || w.cfg.RetainWorkflows <= 0 { // what is pruned does not pile up
		return nil
	}
	now, err := w.store.Now(ctx)
	if err != nil {
		return err
	}
	got, err := w.store.PruneWorkflows(ctx, before(now, w.cfg.RetainWorkflows), retentionPage, w.closed)
	if err != nil {
		w.closed = ""
		return err
	}
	w.closed = got.NextCursor
	for _, f := range got.Spared { // reported and left alone; the cursor leads past it
		w.deps.Log.ErrorContext(ctx, "closed workflow is spared", "tenant", f.Tenant, "workflow_id", f.WorkflowID, "error", f.Why)
	}
	p.add(Counts{Handed: len(got.Pruned) + len(got.Spared), Done: len(got.Pruned), Failed: len(got.Spared)})
	p.saturated = p.saturated || got.NextCursor != ""
	if len(got.Pruned) == 0 {
		return nil
	}
	records, err = w.store.PruneRecords(ctx, 0)
	p.saturated = p.saturated || records.More
	return err
}
