package timer

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
)

// reconciling walks the live workflows of the owned shards: after shards were adopted, and every minute; once a day it believes no count. It is no part of
// firing: nothing it does is needed for what is armed to fire.
func (w *Worker) reconciling(ctx context.Context) {
	deep := w.deps.Clock.Now().Add(-rand.N(w.cfg.Deep)) // a pod need not live for a day to walk deep
	for {
		t := w.deps.Clock.NewTimer(w.cfg.Reconcile)
		select {
		case <-t.C():
		case <-w.adopted:
			// The first due pages go first.
			if clock.Sleep(ctx, w.deps.Clock, w.cfg.Alone) != nil {
				t.Stop()
				return
			}
		case <-ctx.Done():
			t.Stop()
			return
		}
		t.Stop()
		now := w.deps.Clock.Now()
		due := now.Sub(deep) >= w.cfg.Deep
		if w.reconcile(ctx, due) && due {
			deep = now
		}
	}
}

// reconcile makes one walk, as long pausing after each page as it took, and reports whether it came to its end.
func (w *Worker) reconcile(ctx context.Context, deep bool) bool {
	var after *store.WorkflowPosition
	for ctx.Err() == nil {
		shards := w.epochs()
		if len(shards) == 0 {
			return false
		}
		start := w.deps.Clock.Now()
		call, cancel := clock.WithTimeout(ctx, w.deps.Clock, w.cfg.Call)
		got, err := w.store.ReconcileTimers(call, shards, deep, after, 0)
		cancel()
		w.lost(shards, got.Lost)
		if err != nil {
			w.deps.Log.WarnContext(ctx, "timers were not reconciled; the next walk begins anew", "error", err)
			return false
		}
		w.metrics.repaired(ctx, got.Repairs)
		if r := got.Repairs; r != (store.TimerRepairs{}) {
			w.deps.Log.WarnContext(ctx, "timers repaired", "missing", r.Missing, "orphan", r.Orphan, "count", r.Count, "unreadable", r.Unreadable)
		}
		w.deps.Sender.Try(ctx, got.Notices)
		if after = got.Next; after == nil {
			w.metrics.walks.Add(ctx, 1)
			return true
		}
		if clock.Sleep(ctx, w.deps.Clock, max(w.deps.Clock.Now().Sub(start), time.Millisecond)) != nil {
			return false
		}
	}
	return false
}
