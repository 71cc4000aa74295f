package sweep

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/internal/attention"
	"github.com/rendezvous-events/rendezvous/store"
)

const leasesPage = 200

// leases ends leases that ran out, longest over first and fair by tenant (RN-37, S3).
func (w *Worker) leases(ctx context.Context) (page, error) {
	if w.anew.Swap(false) {
		w.leased = "" // of shards that came the oldest may stand before it
	}
	rows, next, err := w.shards.DueLeases(ctx, leasesPage, w.leased)
	if err != nil {
		w.leased = ""
		return page{}, err
	}
	w.leased = next
	p := page{Counts: Counts{Handed: len(rows)}, saturated: next != ""}
	items := make([]store.ReclaimItem, 0, len(rows))
	for _, r := range rows {
		if r.Corrupt != nil { // reported and left alone; the cursor leads past it
			p.Failed++
			w.deps.Log.ErrorContext(ctx, "run does not decode", "tenant", r.Tenant, "workflow_id", r.WorkflowID, "error", r.Corrupt)
			continue
		}
		items = append(items, store.ReclaimItem{Tenant: r.Tenant, WorkflowID: r.WorkflowID, Epoch: r.Epoch, ExpiresAt: r.ExpiresAt})
	}
	if len(items) == 0 {
		return p, nil
	}
	p.oldest = w.age(ctx, items[0].ExpiresAt)
	got, err := w.shards.ReclaimRun(ctx, items)
	if err != nil {
		return page{}, err
	}
	var n store.Notices
	for i, r := range got {
		n.Append(r.Notices)
		w.reclaimed(ctx, items[i], r, &p.Counts)
	}
	w.deps.Sender.Try(ctx, n)
	return p, nil
}

// reclaimed counts one answer. A lease that changed since it was seen is somebody else's now, and counts for nothing.
func (w *Worker) reclaimed(ctx context.Context, item store.ReclaimItem, r store.Reclaimed, c *Counts) {
	switch {
	case r.Err != nil:
		c.Failed++
		w.deps.Log.WarnContext(ctx, "reclaim failed", "tenant", item.Tenant, "workflow_id", item.WorkflowID, "error", r.Err)
	case r.Outcome == store.ReclaimReclaimed:
		c.Done++
	}
	if r.Reclaims >= rendezvous.StuckReclaims {
		w.alarms.raise(attention.Stuck, w.deps.Clock.Now())
		w.deps.Log.ErrorContext(ctx, "run is stuck: it loses every driver", "tenant", item.Tenant, "workflow_id", item.WorkflowID, "reclaims", r.Reclaims)
	}
}

// age is how long ago an instant of the store was, by the store's now (S9); 0 where that cannot be said.
func (w *Worker) age(ctx context.Context, t time.Time) time.Duration {
	now, err := w.store.Now(ctx)
	if err != nil || t.IsZero() {
		return 0
	}
	return max(now.Sub(t), 0)
}
