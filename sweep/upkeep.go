package sweep

import (
	"context"
	"errors"
	"time"

	"github.com/rendezvous-events/rendezvous/store"
)

const (
	upkeepPage = 500
	// pushLate is how long a registration may be due before the push-workers are told again: two of their polls.
	pushLate = 10 * time.Second
)

// pushUpkeep keeps push registrations in order (push.md section 8): it parks those that have failed for too long, trims attempt logs, and tells of those that nobody
// sends for. One that fails does not keep the others.
func (w *Worker) pushUpkeep(ctx context.Context) (page, error) {
	var p page
	err := errors.Join(w.parkAged(ctx, &p), w.trimLogs(ctx, &p), w.latePushes(ctx, &p))
	return p, err
}

// parkAged parks registrations past the age ceiling. Who does it need not be whoever failed last: that worker may be gone.
func (w *Worker) parkAged(ctx context.Context, p *page) error {
	parked, more, err := w.store.ParkAgedPushes(ctx, w.cfg.PushMaxAge, upkeepPage)
	for _, i := range parked {
		w.deps.Log.WarnContext(ctx, "registration parked: it has failed for too long", "tenant", i.Tenant, "run_id", i.RunID, "id", i.ID)
	}
	p.add(Counts{Handed: len(parked), Done: len(parked)})
	p.saturated = p.saturated || more
	return err
}

// trimLogs removes entries of attempt logs beyond their number and their age.
func (w *Worker) trimLogs(ctx context.Context, p *page) error {
	_, more, err := w.store.TrimPushLogs(ctx, 0, 0, 0)
	p.saturated = p.saturated || more
	return err
}

// latePushes tells the push-workers of runs with registrations that have been due for longer than their polls take. It sends nothing to a receiver: what they do not
// do, an operator is to see. A page behind which there is more leaves it to the next: the same runs would be told of twice.
func (w *Worker) latePushes(ctx context.Context, p *page) error {
	if p.saturated {
		return nil
	}
	now, err := w.store.Now(ctx)
	if err != nil {
		return err
	}
	runs, _, err := w.store.DuePushRuns(ctx, before(now, pushLate+time.Microsecond), upkeepPage)
	if err != nil || len(runs) == 0 {
		return err
	}
	var n store.Notices
	rows := 0
	for _, r := range runs {
		n.Push = append(n.Push, store.PushRef{Tenant: r.Tenant, WorkflowRef: store.WorkflowRef{WorkflowID: r.WorkflowID, RunID: r.RunID}, Head: r.Head})
		p.oldest = max(p.oldest, now.Sub(r.Since))
		rows += r.Rows
	}
	p.add(Counts{Handed: rows, Deferred: rows})
	w.deps.Sender.Try(ctx, n)
	return nil
}
