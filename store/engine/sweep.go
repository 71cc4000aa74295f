package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
)

// Pages of SweepUnclaimed.
const (
	defaultSweep = 500
	maxSweep     = 5000
)

// unmetHold is for how long an event that was named is not looked at again (S2): the time its offer has.
const unmetHold = 30 * time.Second

// SweepUnclaimed implements [store.Sweeper] plane-wide.
func (e *Engine) SweepUnclaimed(ctx context.Context, olderThan, at time.Time, reason string, limit int) (store.Swept, error) {
	return e.sweep(ctx, "", olderThan, at, reason, limit)
}

// SweepUnclaimed implements [store.Sweeper] for the tenant.
func (t *tenant) SweepUnclaimed(ctx context.Context, olderThan, at time.Time, reason string, limit int) (store.Swept, error) {
	return t.sweep(ctx, t.name, olderThan, at, reason, limit)
}

func (e *Engine) sweep(ctx context.Context, tenant string, olderThan, at time.Time, reason string, limit int) (store.Swept, error) {
	limit, err := rendezvous.PageLimit(limit, defaultSweep, maxSweep)
	if err != nil {
		return store.Swept{}, err
	}
	since, err := checkCutoff("older_than", olderThan)
	if err != nil {
		return store.Swept{}, err
	}
	if err := rendezvous.CheckReason("reason", reason); err != nil {
		return store.Swept{}, err
	}
	var swept store.Swept
	notices, err := e.update(ctx, "sweep_unclaimed", at, func(ctx context.Context, u *unit) (err error) {
		swept, err = u.sweep(ctx, backend.Overdue{Tenant: tenant, Since: since, At: u.at}, reason, limit)
		return err
	})
	if err != nil {
		return store.Swept{}, err
	}
	swept.Notices = notices
	return swept, nil
}

// checkCutoff judges a window's end. A window longer than time itself ends before all instants, which is none (S9, SW-2).
func checkCutoff(field string, before time.Time) (time.Time, error) {
	if before.UTC().Year() < 1 {
		return time.Time{}, nil
	}
	return rendezvous.Instant(before), rendezvous.CheckInstant(field, before)
}

// sweep retires a page of what is due. What may meet an open wait is judged here: what does is named and offered instead (SW-6).
func (u *unit) sweep(ctx context.Context, o backend.Overdue, reason string, limit int) (store.Swept, error) {
	found, err := u.tx.OverdueEvents(ctx, o, limit)
	if err != nil {
		return store.Swept{}, err
	}
	alone, unmet, err := u.apart(ctx, found.Near)
	if err != nil {
		return store.Swept{}, err
	}
	order := func(a, b *backend.Event) int {
		return cmp.Or(cmp.Compare(o.Late(b), o.Late(a)), cmp.Compare(a.Number, b.Number))
	}
	due := append(alone, found.Due...)
	slices.SortFunc(due, order)
	swept := store.Swept{More: found.More && len(due)+len(unmet) > 0} // where all is in other hands a next page would find the same
	own := map[string][]*backend.Event{}
	for _, e := range due {
		own[e.Tenant] = append(own[e.Tenant], e)
	}
	due, left := fair.Choose(own, limit, order)
	swept.More = swept.More || len(left) > 0
	for _, e := range due {
		swept.Retired = append(swept.Retired, u.retire(e, reason))
	}
	for _, e := range unmet {
		if u.lostTake(e); e.State == rendezvous.EventDead {
			swept.Retired = append(swept.Retired, retired(e))
			continue
		}
		e.TakeUntil = u.now.Add(unmetHold) // without a take: nobody is to blame if the notice is lost
		u.saveEvent(e)
		swept.Unmet = append(swept.Unmet, eventRef(e))
	}
	u.notices.Events = append(u.notices.Events, swept.Unmet...)
	return swept, nil
}

// retire makes a live event a dead letter for its age.
func (u *unit) retire(e *backend.Event, detail string) store.RetiredEvent {
	reason := rendezvous.DeadUnclaimed
	if !e.ExpiresAt.IsZero() {
		reason = rendezvous.DeadExpired
	}
	u.kill(e, reason, detail)
	return retired(e)
}

// retired names an event that has died.
func retired(e *backend.Event) store.RetiredEvent {
	return store.RetiredEvent{Tenant: e.Tenant, EventID: rendezvous.EventID{Source: e.Source, ID: e.ID}, Type: e.Type, Reason: e.DeadReason}
}

// apart tells events that meet an open wait from those that do not.
func (u *unit) apart(ctx context.Context, near []*backend.Event) (alone, unmet []*backend.Event, err error) {
	if len(near) == 0 {
		return nil, nil, nil
	}
	x := newIndex(u.tx, u.at)
	for {
		nodes, waits, err := u.lowestWaits(ctx, x, near)
		if err != nil {
			return nil, nil, err
		}
		more, err := x.passOver(ctx, u.tx, waits)
		if err != nil {
			return nil, nil, err
		}
		if more {
			continue
		}
		for i, n := range nodes {
			if waits[i] == nil {
				alone = append(alone, n.Event)
			} else {
				unmet = append(unmet, n.Event)
			}
		}
		return alone, unmet, nil
	}
}
