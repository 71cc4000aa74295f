package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// standing is how a wait stands in the history: the latest attempt's opening, and what closed that. Either is nil when there is none.
type standing struct {
	opened, closed *rendezvous.Record
}

// standingOf reads the records of one effect key, ascending by seq. A key that names no wait stands like one that was never registered (G7).
func standingOf(records []rendezvous.Record) standing {
	var s standing
	for i := range records {
		r := &records[i]
		switch {
		case !r.Kind.IsWait():
		case r.Kind.Phase() == rendezvous.PhaseOpen:
			s = standing{opened: r}
		case s.opened != nil && max(r.Attempt, 1) == max(s.opened.Attempt, 1):
			s.closed = r
		}
	}
	return s
}

// closing is how the wait ended in the history, "" while it is open there.
func (s standing) closing() rendezvous.Closing {
	if s.closed == nil {
		return ""
	}
	switch s.closed.Kind {
	case rendezvous.WaitAnswered:
		return rendezvous.ClosedAnswered
	case rendezvous.WaitTimedOut:
		return rendezvous.ClosedTimedOut
	}
	return rendezvous.ClosedWithdrawn
}

// answeredBy reports whether the record that closed the wait is the answer with exactly that event.
func (s standing) answeredBy(e *backend.Event) (bool, error) {
	if s.closing() != rendezvous.ClosedAnswered {
		return false, nil
	}
	var d rendezvous.WaitAnsweredData
	if err := rendezvous.DecodeData(*s.closed, &d); err != nil {
		return false, err
	}
	return d.EventSource == e.Source && d.EventID == e.ID, nil
}

// holds reports whether w's claim on e stands on both sides.
func holds(w *backend.Wait, e *backend.Event) bool {
	return w.Held != nil && e != nil && w.Held.Number == e.Number && e.State == rendezvous.EventClaimed && e.ClaimRun == w.RunID && e.ClaimEffect == w.Effect
}

// current reports whether run is its workflow's current one and unsealed.
func current(f *flow, run *backend.Run) bool { return f.RunID == run.ID && !f.Status.Terminal() }

// waitsOf is all waits of those runs by (tenant, run, number), as this unit is about to leave them: what it has changed, made or dropped already counts.
func (u *unit) waitsOf(ctx context.Context, runs []backend.RunKey) ([]*backend.Wait, error) {
	rows, err := u.tx.WaitsOf(ctx, runs)
	if err != nil {
		return nil, err
	}
	if len(u.ch.GoneWaits)+len(u.ch.Waits)+len(u.ch.NewWaits) == 0 {
		return rows, nil
	}
	gone, changed := map[int64]bool{}, map[int64]*backend.Wait{}
	for _, w := range u.ch.GoneWaits {
		gone[w.Number] = true
	}
	for _, w := range u.ch.Waits {
		changed[w.Number] = w
	}
	rows = slices.DeleteFunc(rows, func(w *backend.Wait) bool { return gone[w.Number] })
	for i, w := range rows {
		if c := changed[w.Number]; c != nil {
			rows[i] = c
		}
	}
	for _, w := range u.ch.NewWaits {
		if slices.Contains(runs, backend.RunKey{Tenant: w.Tenant, ID: w.RunID}) {
			rows = append(rows, w)
		}
	}
	slices.SortStableFunc(rows, func(a, b *backend.Wait) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.RunID, b.RunID), cmp.Compare(a.Number, b.Number))
	})
	return rows, nil
}

// heldBy is the events those waits hold, by number, as this unit is about to leave them; without payload.
func (u *unit) heldBy(ctx context.Context, waits []*backend.Wait) (map[int64]*backend.Event, error) {
	numbers := make([]int64, 0, len(waits))
	for _, w := range waits {
		if w.Held != nil {
			numbers = append(numbers, w.Held.Number)
		}
	}
	if len(numbers) == 0 {
		return nil, nil
	}
	rows, err := u.tx.EventsByNumber(ctx, numbers, false)
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Concat(u.ch.Events, u.ch.NewEvents) {
		if slices.Contains(numbers, e.Number) {
			rows[e.Number] = e
		}
	}
	return rows, nil
}

// standings is how the waits that hold an event stand in the history: of them alone it matters, because an answer there says where the event went.
func (u *unit) standings(ctx context.Context, waits []*backend.Wait, more ...backend.WaitKey) (map[backend.WaitKey]standing, error) {
	keys := more
	for _, w := range waits {
		if w.Held != nil && !slices.Contains(more, w.Key()) {
			keys = append(keys, w.Key())
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	effects, err := u.tx.Effects(ctx, keys)
	if err != nil {
		return nil, err
	}
	out := make(map[backend.WaitKey]standing, len(effects))
	for k, records := range effects {
		out[k] = standingOf(records)
	}
	return out, nil
}
