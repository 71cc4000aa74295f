package difftest

import (
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// The passes of a worker: what a list shows or a take hands out goes into the next call, so each is one step.

// SweepLeases reclaims every abandoned run.
type SweepLeases struct{}

func (SweepLeases) ask(s *side) (any, error) {
	rows, _, err := s.store.AbandonedRuns(ctx, 0, "")
	if err != nil || len(rows) == 0 {
		return rows, err
	}
	var items []store.ReclaimItem
	for _, r := range rows {
		items = append(items, store.ReclaimItem{Tenant: r.Tenant, WorkflowID: r.WorkflowID, Epoch: r.Epoch, ExpiresAt: r.ExpiresAt})
	}
	got, err := s.store.ReclaimRun(ctx, items)
	return []any{rows, got}, err
}

// SweepParked takes parked waits, delivers them, and parks again what stays parked.
type SweepParked struct{ Limit int }

func (p SweepParked) ask(s *side) (any, error) {
	taken, err := s.store.TakeParked(ctx, p.Limit, time.Minute)
	if err != nil || len(taken.Rows) == 0 {
		return taken, err
	}
	var refs []store.WaitRef
	for _, row := range taken.Rows {
		refs = append(refs, store.WaitRef{Tenant: row.Tenant, WaitID: row.WaitID})
	}
	out, err := s.store.DeliverParked(ctx, refs, time.Time{})
	if err != nil {
		return []any{taken, out}, err
	}
	var again []store.ParkItem
	for i, o := range out.Items {
		if o.Outcome == store.OfferParked {
			again = append(again, store.ParkItem{Tenant: refs[i].Tenant, WaitID: refs[i].WaitID, Cause: store.ParkLeased, RetryIn: time.Second, Take: taken.Rows[i].Take})
		}
	}
	if len(again) == 0 {
		return []any{taken, out}, nil
	}
	parked, err := s.store.ParkWait(ctx, again, time.Time{})
	return []any{taken, out, parked}, err
}

// SweepUnmet offers what was left apart.
type SweepUnmet struct{ Limit int }

func (u SweepUnmet) ask(s *side) (any, error) {
	page, _, err := s.store.TakeUnmet(ctx, time.Second, u.Limit, time.Minute, "")
	if err != nil || len(page.Rows) == 0 {
		return page.Rows, err
	}
	var items []store.OfferItem
	for _, row := range page.Rows {
		items = append(items, store.OfferItem{Tenant: row.Tenant, Event: &row.Event.EventID})
	}
	out, err := s.store.OfferBatch(ctx, items, time.Time{})
	var back error
	if err != nil { // as the sweeper does
		back = s.store.GiveBackUnmet(ctx, page.Rows, time.Second)
	}
	return []any{page.Rows, out, rendezvous.CodeOf(back)}, err
}
