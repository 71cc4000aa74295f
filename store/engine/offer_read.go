package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// read finds the items' rows: those they name, then those these lead to. Each read is of all items at once.
func (o *offering) read(ctx context.Context, items []store.OfferItem) error {
	for i, item := range items {
		o.looks[i] = look{item: item, err: checkOffer(item)}
	}
	if err := o.readEvents(ctx); err != nil {
		return err
	}
	if err := o.readWaits(ctx); err != nil {
		return err
	}
	if err := o.readClaims(ctx); err != nil {
		return err
	}
	if err := o.readConsumed(ctx); err != nil {
		return err
	}
	o.sort()
	return nil
}

// checkOffer judges an item's shape.
func checkOffer(item store.OfferItem) error {
	if err := rendezvous.CheckTenant(item.Tenant); err != nil {
		return err
	}
	switch {
	case item.Event != nil && item.Wait == nil:
		return checkEventID(*item.Event)
	case item.Wait != nil && item.Event == nil:
		return checkWaitID(*item.Wait)
	}
	return rendezvous.InvalidField("items", "an item is an event or a wait, exactly one of the two")
}

func (o *offering) readEvents(ctx context.Context) error {
	keys := make([]backend.EventKey, 0, len(o.looks))
	for i := range o.looks {
		if l := &o.looks[i]; l.err == nil && l.item.Event != nil {
			keys = append(keys, eventKeyOf(l.item))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	rows, err := o.tx.EventsByKey(ctx, keys, false)
	if err != nil {
		return err
	}
	for i := range o.looks {
		if l := &o.looks[i]; l.err == nil && l.item.Event != nil {
			if row := rows[eventKeyOf(l.item)]; row != nil {
				l.e = o.match.plan.x.event(row)
				l.e.item = true
			}
		}
	}
	return nil
}

func (o *offering) readWaits(ctx context.Context) error {
	keys := make([]backend.WaitKey, 0, len(o.looks))
	for i := range o.looks {
		if l := &o.looks[i]; l.err == nil && l.item.Wait != nil {
			keys = append(keys, waitKeyOf(l.item))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	rows, err := o.tx.Waits(ctx, keys)
	if err != nil {
		return err
	}
	var gone []backend.WaitKey
	for i := range o.looks {
		if l := &o.looks[i]; l.err == nil && l.item.Wait != nil {
			if row := rows[waitKeyOf(l.item)]; row != nil {
				l.w = o.match.plan.x.wait(row)
				l.err = row.Corrupt
			} else {
				gone = append(gone, waitKeyOf(l.item))
			}
		}
	}
	return o.readGone(ctx, gone)
}

// readGone reads what the history says of waits that have no row.
func (o *offering) readGone(ctx context.Context, keys []backend.WaitKey) error {
	if len(keys) == 0 {
		return nil
	}
	runs := make([]backend.RunKey, len(keys))
	for i, k := range keys {
		runs[i] = backend.RunKey{Tenant: k.Tenant, ID: k.RunID}
	}
	var err error
	if o.effects, err = o.tx.Effects(ctx, keys); err != nil {
		return err
	}
	o.runs, err = o.tx.Runs(ctx, runs)
	for i, k := range keys {
		if o.runs[runs[i]] == nil { // pruned: records may be left
			delete(o.effects, k)
		}
	}
	return err
}

// readClaims reads the other side of claims that stand: the waits of claimed events, the events of parked waits.
func (o *offering) readClaims(ctx context.Context) error {
	var waits []backend.WaitKey
	var numbers []int64
	for i := range o.looks {
		switch l := &o.looks[i]; {
		case l.e != nil && l.e.State == rendezvous.EventClaimed:
			waits = append(waits, claimKey(l.e.Event))
		case l.err == nil && l.w != nil && l.w.Held != nil:
			numbers = append(numbers, l.w.Held.Number)
		}
	}
	var rows map[backend.WaitKey]*backend.Wait
	var events map[int64]*backend.Event
	var err error
	if len(waits) > 0 {
		if rows, err = o.tx.Waits(ctx, waits); err != nil {
			return err
		}
	}
	if len(numbers) > 0 {
		if events, err = o.tx.EventsByNumber(ctx, numbers, false); err != nil {
			return err
		}
	}
	return o.joinClaims(rows, events)
}

// joinClaims ties both sides of each claim. Sides read apart may have moved on in between, so that they do not fit: then the verb is made anew, a few
// times; what never fits is broken and fails alone.
func (o *offering) joinClaims(rows map[backend.WaitKey]*backend.Wait, events map[int64]*backend.Event) error {
	x := o.match.plan.x
	for i := range o.looks {
		l := &o.looks[i]
		switch {
		case l.e != nil && l.e.State == rendezvous.EventClaimed:
			if row := rows[claimKey(l.e.Event)]; row != nil {
				l.w = x.wait(row)
			}
		case l.err == nil && l.w != nil && l.w.Held != nil:
			if row := events[l.w.Held.Number]; row != nil {
				l.e = x.event(row)
			}
		default:
			continue
		}
		if l.e == nil || l.w == nil || l.w.Corrupt == nil && !holds(l.w.Wait, l.e.Event) {
			if o.try < brokenAfter {
				return backend.ErrStale
			}
			l.err = brokenClaim(l)
			continue
		}
		if c := (pair{l.e, l.w}); !slices.Contains(o.claims, c) {
			o.claims = append(o.claims, c)
		}
	}
	return nil
}

// brokenAfter is how many tries have to find a claim without its other side until it counts as broken.
const brokenAfter = 3

func brokenClaim(l *look) error {
	err := rendezvous.Errorf(rendezvous.CodeCorrupt, "a claim stands on one side only, as after a restore of parts; withdraw the wait, or erase the event and send it under a new id")
	if l.e != nil {
		err = err.With("source", l.e.Source).With("id", l.e.ID)
	}
	if l.w != nil {
		err = err.With("run", l.w.RunID).With("effect", l.w.Effect)
	}
	return err
}

// readConsumed reads whether the runs of events that were answered earlier are still to be woken (EV-59).
func (o *offering) readConsumed(ctx context.Context) error {
	var keys []backend.WorkflowKey
	for i := range o.looks {
		if e := o.looks[i].e; e != nil && e.State == rendezvous.EventConsumed {
			keys = append(keys, backend.WorkflowKey{Tenant: e.Tenant, ID: e.Workflow})
		}
	}
	if len(keys) == 0 {
		return nil
	}
	var err error
	if o.marks, err = o.tx.Woken(ctx, keys); err != nil {
		return err
	}
	if o.workflows, err = o.tx.Workflows(ctx, keys); err != nil || len(o.marks) == 0 {
		return err
	}
	return o.readGiven(ctx)
}

// readGiven reads when the answers were recorded whose runs are marked: a mark set later than that is about something else.
func (o *offering) readGiven(ctx context.Context) error {
	var keys []backend.WaitKey
	for i := range o.looks {
		e := o.looks[i].e
		if e == nil || e.State != rendezvous.EventConsumed {
			continue
		}
		if m := o.marks[backend.WorkflowKey{Tenant: e.Tenant, ID: e.Workflow}]; m != nil && m.RunID == e.Run {
			keys = append(keys, backend.WaitKey{Tenant: e.Tenant, RunID: e.Run, Effect: e.Effect})
		}
	}
	if len(keys) == 0 {
		return nil
	}
	var err error
	o.given, err = o.tx.Effects(ctx, distinct(keys))
	return err
}

// recheck looks again at the items that found no partner. Rows are read one after the other, so the other side of a pair that somebody makes meanwhile
// may be missed, and an event that has its answer would be said to have none (R6, EV-58). What ended meanwhile is told as it ended; what moved on in
// another way is looked at anew.
func (o *offering) recheck(ctx context.Context) error {
	var numbers []int64
	var keys []backend.WaitKey
	for _, i := range o.order {
		switch l := &o.looks[i]; {
		case l.fate != fateAlone:
		case l.item.Event != nil:
			numbers = append(numbers, l.e.Number)
		case !l.w.passed:
			keys = append(keys, l.w.Key())
		}
	}
	if err := o.recheckEvents(ctx, numbers); err != nil {
		return err
	}
	return o.recheckWaits(ctx, keys)
}

func (o *offering) recheckEvents(ctx context.Context, numbers []int64) error {
	if len(numbers) == 0 {
		return nil
	}
	rows, err := o.tx.EventsByNumber(ctx, numbers, false)
	if err != nil {
		return err
	}
	moved := false
	for _, i := range o.order {
		l := &o.looks[i]
		if l.fate != fateAlone || l.item.Event == nil {
			continue
		}
		row := rows[l.e.Number]
		switch {
		case row != nil && row.Version == l.e.Version:
		case row != nil && (row.State == rendezvous.EventConsumed || row.State == rendezvous.EventDead):
			l.e, moved = &eventNode{Event: row}, true
		default:
			return backend.ErrStale
		}
	}
	if moved {
		return o.readConsumed(ctx)
	}
	return nil
}

func (o *offering) recheckWaits(ctx context.Context, keys []backend.WaitKey) error {
	if len(keys) == 0 {
		return nil
	}
	rows, err := o.tx.Waits(ctx, keys)
	if err != nil {
		return err
	}
	gone := false
	for _, i := range o.order {
		l := &o.looks[i]
		if l.fate != fateAlone || l.item.Wait == nil || l.w.passed {
			continue
		}
		row := rows[l.w.Key()]
		switch {
		case row == nil:
			l.w, gone = nil, true
		case row.Version != l.w.Version:
			return backend.ErrStale
		}
	}
	if !gone {
		return nil
	}
	keys = keys[:0]
	for i := range o.looks {
		if l := &o.looks[i]; l.err == nil && l.item.Wait != nil && l.w == nil {
			keys = append(keys, waitKeyOf(l.item))
		}
	}
	return o.readGone(ctx, keys)
}

// sort puts the items to be offered in their order. Items that cannot be are not in it.
func (o *offering) sort() {
	var waits []int
	for i := range o.looks {
		l := &o.looks[i]
		switch {
		case l.err != nil:
		case l.item.Event != nil:
			if l.e != nil && l.e.Corrupt == nil && l.e.State == rendezvous.EventLive && !expired(l.e.Event, o.at) {
				o.order = append(o.order, i)
			}
		case l.w != nil && l.w.Open():
			waits = append(waits, i)
		}
	}
	slices.SortStableFunc(o.order, func(a, b int) int { return cmp.Compare(o.looks[a].e.Number, o.looks[b].e.Number) })
	slices.SortStableFunc(waits, func(a, b int) int { return cmp.Compare(o.looks[a].w.Number, o.looks[b].w.Number) })
	o.order = append(o.order, waits...)
}

func eventKeyOf(item store.OfferItem) backend.EventKey {
	return backend.EventKey{Tenant: item.Tenant, Source: item.Event.Source, ID: item.Event.ID}
}

func waitKeyOf(item store.OfferItem) backend.WaitKey {
	return backend.WaitKey{Tenant: item.Tenant, RunID: item.Wait.RunID, Effect: item.Wait.Effect}
}

func claimKey(e *backend.Event) backend.WaitKey {
	return backend.WaitKey{Tenant: e.Tenant, RunID: e.ClaimRun, Effect: e.ClaimEffect}
}
