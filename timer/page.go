package timer

import (
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
)

// busyPause is how long a shard rests whose due timers all are of runs that are being written.
const busyPause = 10 * time.Millisecond

// fire works one page of those shards.
func (w *Worker) fire(ctx context.Context, shards []store.ShardEpoch) {
	numbers := store.ShardNumbers(shards)
	start := w.deps.Clock.Now()
	call, cancel := clock.WithTimeout(ctx, w.deps.Clock, w.cfg.Call)
	page, err := w.store.FireDueTimers(call, shards, w.size())
	cancel()
	took := w.deps.Clock.Now().Sub(start)
	w.resize(took, err)
	w.metrics.page(ctx, page, took, err)
	w.lost(shards, page.Lost)
	switch {
	case err == nil:
		w.observe(ctx, page)
		w.follow(ctx, page)
		w.landedOn(numbers, page)
	case rendezvous.CodeOf(err) == rendezvous.CodeCommitUnknown: // it may have been committed: its notices are only wake-ups
		w.follow(ctx, page)
		fallthrough
	default:
		w.failed(ctx, numbers, err)
		w.rest(numbers, probe(w.cfg.Alone))
	}
}

// landedOn aims anew behind a page. Shards of which more is due take turns from now on.
func (w *Worker) landedOn(shards []int, page store.FiredPage) {
	w.mu.Lock()
	for _, s := range shards {
		if a := w.shards[s]; a != nil {
			a.flood = page.Full
			a.look = a.look || page.NextDue == nil // it could not be read
		}
	}
	w.mu.Unlock()
	if page.NextDue != nil {
		w.answered(shards, page.NextDue, page.Now)
	}
	if len(page.Fires) == 0 && page.Busy > 0 {
		w.rest(shards, busyPause)
	}
}

// failed logs a page that failed as a whole.
func (w *Worker) failed(ctx context.Context, shards []int, err error) {
	code := rendezvous.AsError(err).Code
	if code == rendezvous.CodeFenced { // the page names them
		return
	}
	w.deps.Log.WarnContext(ctx, "a page of timers failed; it comes again", "shards", len(shards), "code", code, "error", err)
}

// lost forgets shards that did not pass the fence, as far as they are known by the epoch that was asked: one adopted anew since is another.
func (w *Worker) lost(asked []store.ShardEpoch, lost []int) {
	if len(lost) == 0 {
		return
	}
	w.mu.Lock()
	for _, s := range asked {
		if a := w.shards[s.Shard]; a != nil && a.epoch == s.Epoch && slices.Contains(lost, s.Shard) {
			w.forget(s.Shard)
		}
	}
	w.mu.Unlock()
	if w.deps.Fenced != nil {
		w.deps.Fenced(len(lost))
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

// follow has a page's notices sent and the waits of contested deadlines offered, beside the next pages: whatever becomes of notices holds up no timer.
func (w *Worker) follow(ctx context.Context, page store.FiredPage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if over := len(w.pending.Resume) + len(page.Notices.Resume) - mostPending; over > 0 {
		w.deps.Log.WarnContext(ctx, "notices of timers that fired do not get out; the sweeper's passes restore them", "left_out", len(page.Notices.Resume))
		page.Notices = store.Notices{}
	}
	w.pending.Append(page.Notices)
	for _, f := range page.Fires {
		if f.Outcome == store.FireContested {
			w.offers = append(w.offers, store.OfferItem{Tenant: f.Tenant, Wait: &rendezvous.WaitID{RunID: f.RunID, Effect: f.Effect}})
		}
	}
	if w.sending < senders && (!w.pending.Empty() || len(w.offers) > 0) {
		w.sending++
		w.done.Go(func() { w.send(ctx) })
	}
}

// send sends and offers what waits for it, until nothing does.
func (w *Worker) send(ctx context.Context) {
	for {
		w.mu.Lock()
		notices, offers := w.pending, w.offers[:min(len(w.offers), rendezvous.MaxBatchItems)]
		w.pending, w.offers = store.Notices{}, w.offers[len(offers):]
		if notices.Empty() && len(offers) == 0 {
			w.sending--
			w.mu.Unlock()
			return
		}
		w.mu.Unlock()
		w.deps.Sender.Try(ctx, notices)
		w.offer(ctx, offers)
	}
}

func (w *Worker) offer(ctx context.Context, waits []store.OfferItem) {
	if len(waits) == 0 {
		return
	}
	call, cancel := clock.WithTimeout(ctx, w.deps.Clock, w.cfg.Call)
	defer cancel()
	got, err := w.deps.Matcher.OfferBatch(call, waits, time.Time{})
	if err != nil {
		w.deps.Log.WarnContext(ctx, "waits of contested deadlines were not offered; their timers come again", "waits", len(waits), "error", err)
		return
	}
	w.deps.Sender.Try(ctx, got.Notices)
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
