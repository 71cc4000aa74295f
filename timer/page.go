package timer

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
)

// fire works one page of those shards.
func (w *Worker) fire(ctx context.Context, shards []store.ShardEpoch) {
	numbers := make([]int, len(shards))
	for i, s := range shards {
		numbers[i] = s.Shard
	}
	start := w.deps.Clock.Now()
	call, cancel := clock.WithTimeout(ctx, w.deps.Clock, w.cfg.Call)
	page, err := w.store.FireDueTimers(call, shards, w.size())
	cancel()
	took := w.deps.Clock.Now().Sub(start)
	w.resize(took, err)
	w.metrics.page(ctx, page, took, err)
	w.lost(page.Lost)
	if err != nil {
		w.failed(ctx, numbers, err)
	}
	if err == nil || rendezvous.CodeOf(err) == rendezvous.CodeCommitUnknown { // it may have been committed: its notices are only wake-ups
		w.observe(ctx, page)
		w.follow(ctx, page)
	}
	if err != nil || page.NextDue == nil {
		w.later(numbers)
		return
	}
	w.answered(numbers, page.NextDue, page.Now)
}

// failed logs a page that failed as a whole.
func (w *Worker) failed(ctx context.Context, shards []int, err error) {
	code := rendezvous.AsError(err).Code
	if code == rendezvous.CodeFenced { // the page names them
		return
	}
	w.deps.Log.WarnContext(ctx, "a page of timers failed; it comes again", "shards", len(shards), "code", code, "error", err)
}

// lost forgets shards that did not pass the fence.
func (w *Worker) lost(shards []int) {
	if len(shards) == 0 {
		return
	}
	w.Quit(shards)
	if w.deps.Fenced != nil {
		w.deps.Fenced(len(shards))
	}
}

// observe counts and logs what a page came to.
func (w *Worker) observe(ctx context.Context, page store.FiredPage) {
	for _, f := range page.Fires {
		w.metrics.fire(ctx, f, page.Now)
		switch {
		case f.Outcome == store.FireFailed:
			w.deps.Log.WarnContext(ctx, "timer failed", "tenant", f.Tenant, "workflow_id", f.WorkflowID, "timer_id", f.TimerID, "attempts", f.Attempts+1,
				"stuck", f.Stuck, "error", f.Err)
		case f.Outcome == store.FireDropped:
			w.deps.Log.WarnContext(ctx, "timer without a live arming dropped", "tenant", f.Tenant, "workflow_id", f.WorkflowID, "timer_id", f.TimerID)
		case f.Seq > 0:
			w.deps.Log.DebugContext(ctx, "timer fired", "tenant", f.Tenant, "workflow_id", f.WorkflowID, "run_id", f.RunID, "timer_id", f.TimerID,
				"class", f.Class, "outcome", f.Outcome, "seq", f.Seq)
		}
	}
}

// follow sends a page's notices and offers the waits of contested deadlines, beside the next pages.
func (w *Worker) follow(ctx context.Context, page store.FiredPage) {
	var contested []store.OfferItem
	for _, f := range page.Fires {
		if f.Outcome == store.FireContested && len(contested) < rendezvous.MaxBatchItems {
			contested = append(contested, store.OfferItem{Tenant: f.Tenant, Wait: &rendezvous.WaitID{RunID: f.RunID, Effect: f.Effect}})
		}
	}
	if page.Notices.Empty() && len(contested) == 0 {
		return
	}
	select {
	case w.sending <- struct{}{}:
	case <-ctx.Done():
		return
	}
	w.done.Go(func() {
		defer func() { <-w.sending }()
		w.deps.Sender.Try(ctx, page.Notices)
		if len(contested) == 0 {
			return
		}
		call, cancel := clock.WithTimeout(ctx, w.deps.Clock, w.cfg.Call)
		defer cancel()
		got, err := w.deps.Matcher.OfferBatch(call, contested, time.Time{})
		if err != nil {
			w.deps.Log.WarnContext(ctx, "waits of contested deadlines were not offered; their timers come again", "waits", len(contested), "error", err)
			return
		}
		w.deps.Sender.Try(ctx, got.Notices)
	})
}

// size is how many timers the next page takes.
func (w *Worker) size() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.page
}

// resize halves pages that take long or fail, and lets quick ones grow back.
func (w *Worker) resize(took time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if took > w.cfg.Slow || err != nil && rendezvous.CodeOf(err) != rendezvous.CodeFenced {
		w.page = max(min(minPage, w.cfg.Page), w.page/2)
		return
	}
	w.page = min(w.cfg.Page, w.page+w.page/4+1)
}
