package delivery

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
)

// Page sizes of the passes (sweep.md section 2).
const (
	leasesPage = 200
	parkedPage = 500
	unmetPage  = 500
	wokenPage  = 500
)

// holds of taken rows: how long a lost worker keeps them from the others.
const (
	parkedHold = 30 * time.Second
	unmetHold  = 30 * time.Second
)

// leases ends leases that ran out (RN-37).
func (p *Passes) leases(ctx context.Context) (page, error) {
	rows, next, err := p.store.AbandonedRuns(ctx, leasesPage, p.leased)
	if err != nil {
		p.leased = ""
		return page{}, err
	}
	p.leased = next
	items := make([]store.ReclaimItem, 0, len(rows))
	for _, r := range rows {
		if r.Corrupt != nil {
			p.deps.Log.ErrorContext(ctx, "run does not decode", "tenant", r.Tenant, "workflow_id", r.WorkflowID, "error", r.Corrupt)
			continue
		}
		items = append(items, store.ReclaimItem{Tenant: r.Tenant, WorkflowID: r.WorkflowID, Epoch: r.Epoch, ExpiresAt: r.ExpiresAt})
	}
	if len(items) == 0 {
		return page{saturated: next != ""}, nil
	}
	got, err := p.store.ReclaimRun(ctx, items)
	if err != nil {
		return page{}, err
	}
	var n store.Notices
	done := 0
	for i, r := range got {
		n.Append(r.Notices)
		if r.Outcome == store.ReclaimReclaimed {
			done++
		}
		if r.Reclaims >= rendezvous.StuckReclaims {
			p.deps.Log.ErrorContext(ctx, "run is stuck: it loses every driver", "tenant", items[i].Tenant, "workflow_id", items[i].WorkflowID, "reclaims", r.Reclaims)
		}
		if r.Err != nil {
			p.deps.Log.WarnContext(ctx, "reclaim failed", "tenant", items[i].Tenant, "workflow_id", items[i].WorkflowID, "error", r.Err)
		}
	}
	p.deps.Sender.Try(ctx, n)
	return page{handed: done, saturated: next != ""}, nil
}

// parked tries parked waits whose runs are free (events.md section 7).
func (p *Passes) parked(ctx context.Context) (page, error) {
	taken, err := p.store.TakeParked(ctx, parkedPage, parkedHold)
	if err != nil || len(taken.Rows) == 0 {
		return page{}, err
	}
	refs := make([]store.WaitRef, len(taken.Rows))
	for i, w := range taken.Rows {
		refs[i] = store.WaitRef{Tenant: w.Tenant, WaitID: w.WaitID}
	}
	got, err := p.store.DeliverParked(ctx, refs, time.Time{})
	if err != nil {
		return page{}, errors.Join(err, p.giveBack(ctx, taken.Rows))
	}
	p.deps.Sender.Try(ctx, got.Notices) // it is committed, whatever comes of what is left
	var back []store.ParkItem
	for i, o := range got.Items {
		item := store.ParkItem{Tenant: taken.Rows[i].Tenant, WaitID: taken.Rows[i].WaitID, Take: taken.Rows[i].Take}
		switch {
		case o.Outcome == store.OfferParked && !o.Quarantined:
			item.Cause, item.RetryIn = store.ParkLeased, min(o.Remaining+jitter(500*time.Millisecond), 30*time.Second)
			back = append(back, item)
		case o.Outcome == store.OfferFailed:
			item.Cause, item.RetryIn = store.ParkFailed, failedPause(taken.Rows[i].Attempts)
			item.Error = string(rendezvous.AsError(o.Err).Code)
			back = append(back, item)
		}
	}
	if len(back) > 0 {
		if _, err := p.store.ParkWait(ctx, back, time.Time{}); err != nil {
			return page{}, err
		}
	}
	return page{handed: len(refs), saturated: taken.Saturated}, nil
}

// giveBack settles the takes of a page that failed as a whole: left to run out, they would count as failed attempts of waits that nothing is wrong with.
func (p *Passes) giveBack(ctx context.Context, rows []store.TakenWait) error {
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), p.deps.Clock, p.cfg.Page)
	defer cancel()
	items := make([]store.ParkItem, len(rows))
	for i, w := range rows {
		items[i] = store.ParkItem{Tenant: w.Tenant, WaitID: w.WaitID, Take: w.Take, Cause: store.ParkLeased, RetryIn: jitter(p.cfg.Tick)}
	}
	_, err := p.store.ParkWait(ctx, items, time.Time{})
	return err
}

// failedPause is full jitter over 1 s doubling to 5 min.
func failedPause(attempts int) time.Duration {
	return rand.N(min(time.Second<<min(attempts, 10), 5*time.Minute))
}

// unmetPairs offers live events left apart from a wait they meet: a MATCH notice was lost (EV-41 and sweep.md section 2).
func (p *Passes) unmetPairs(ctx context.Context) (page, error) {
	taken, next, err := p.store.TakeUnmet(ctx, p.cfg.Grace, unmetPage, unmetHold, p.unmet)
	if err != nil {
		return page{}, err
	}
	p.unmet = next
	if len(taken.Rows) == 0 {
		return page{saturated: taken.Saturated}, nil
	}
	items := make([]store.OfferItem, len(taken.Rows))
	for i, r := range taken.Rows {
		id := r.Event.EventID
		items[i] = store.OfferItem{Tenant: r.Tenant, Event: &id}
	}
	got, err := p.store.OfferBatch(ctx, items, time.Time{})
	if err != nil {
		return page{}, err
	}
	p.deps.Sender.Try(ctx, got.Notices)
	return page{handed: len(items), saturated: taken.Saturated}, nil
}

// woken repeats RESUME notices of runs nobody has taken up (runs.md section 6).
func (p *Passes) woken(ctx context.Context) (page, error) {
	taken, err := p.store.TakeWoken(ctx, wokenPage)
	if err != nil || len(taken.Rows) == 0 {
		return page{}, err
	}
	p.deps.Sender.Try(ctx, store.Notices{Resume: taken.Rows})
	return page{handed: len(taken.Rows), saturated: taken.Saturated}, nil
}
