package engine

import (
	"cmp"
	"context"
	"slices"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Shares of the rows that are looked at for near misses, store.MaxNearSearch in all.
const (
	nearIndexed = 700                               // open rows by key, and of the type
	nearBeside  = store.MaxNearSearch - nearIndexed // parked waits
	nearKept    = 100                               // live events for the wait's run
	nearDead    = nearBeside - nearKept             // dead letters by key, and the newest of the type
)

// nearWalk is how many of the newest rows are passed through for those of the type.
const nearWalk = 5_000

// found gathers rows, each once. A list that is as long as it may be is taken for cut, and its last row for what it was cut off at.
type found[R any] struct {
	rows   map[int64]R
	number func(R) int64
	cut    bool
}

func newFound[R any](number func(R) int64) *found[R] {
	return &found[R]{rows: map[int64]R{}, number: number}
}

func (f *found[R]) add(rows []R, most int) {
	if len(rows) >= most && most > 0 {
		rows, f.cut = rows[:most-1], true
	}
	for _, r := range rows {
		f.rows[f.number(r)] = r
	}
}

// addNear adds what stands under each key, and what is of the type.
func addNear[R any](f *found[*R], n backend.Near, near backend.Nearby[R]) {
	for _, rows := range near.Under {
		f.add(rows, n.PerKey())
	}
	f.add(near.Newest, n.Newest())
	f.cut = f.cut || near.Cut
}

// nearWaits are the open and parked waits that e nearly meets: those that share a key or the type with it, or are its addressee's.
func (x *explaining) nearWaits(ctx context.Context, e *backend.Event) ([]store.NearMiss, bool, error) {
	f := newFound(func(w *backend.Wait) int64 { return w.Number })
	if e.Target != "" {
		rows, err := x.r.WaitsOf(ctx, []backend.RunKey{{Tenant: x.tenant, ID: e.Target}})
		if err != nil {
			return nil, false, err
		}
		f.add(rows, rendezvous.MaxWaitsPerRun+1)
		return x.waitMisses(ctx, e, f)
	}
	n := backend.Near{Tenant: x.tenant, Type: e.Type, Keys: e.Keys, Most: nearIndexed, Walk: nearWalk}
	near, err := x.r.NearWaits(ctx, n)
	if err != nil {
		return nil, false, err
	}
	addNear(f, n, near)
	parked, _, err := x.r.ListParked(ctx, x.tenant, backend.WaitFilter{}, backend.ParkedPosition{}, backend.Span{Limit: nearBeside, Look: nearBeside})
	if err != nil {
		return nil, false, err
	}
	f.add(parked, nearBeside)
	return x.waitMisses(ctx, e, f)
}

func (x *explaining) waitMisses(ctx context.Context, e *backend.Event, f *found[*backend.Wait]) ([]store.NearMiss, bool, error) {
	var misses []store.NearMiss
	for _, w := range f.rows {
		if w.Corrupt != nil || e.Target == "" && w.Type != e.Type && !keysMeet(e, w) {
			continue
		}
		side := &remains{Wait: w}
		why := pairReasons(e, side, x.now)
		if len(why) == 0 { // a row that an offer passes over, for what its history or its run says
			var err error
			if side, err = x.side(ctx, *waitID(w), w); err != nil {
				return nil, false, err
			}
			why = pairReasons(e, side, x.now)
		}
		misses = append(misses, store.NearMiss{
			Wait: waitID(w), Number: w.Number, Type: w.Type, Keys: w.Keys, From: w.From, Reasons: why, Hints: hints(e, w),
		})
	}
	return best(misses), f.cut, nil
}

// nearEvents are the live and dead events that w nearly meets: those that share a key or the type with it, or are for its run.
func (x *explaining) nearEvents(ctx context.Context, w *remains) ([]store.NearMiss, bool, error) {
	f := newFound(func(e *backend.Event) int64 { return e.Number })
	n := backend.Near{Tenant: x.tenant, Type: w.Type, Keys: w.Keys, Most: nearIndexed, Walk: nearWalk}
	near, err := x.r.NearEvents(ctx, n)
	if err != nil {
		return nil, false, err
	}
	addNear(f, n, near)
	kept, err := x.r.LiveEvents(ctx, []backend.Lookup{{Tenant: x.tenant, Type: w.Type, Key: backend.TargetKey(w.RunID), Limit: nearKept}})
	if err != nil {
		return nil, false, err
	}
	f.add(kept[0], nearKept)
	if err := x.deadEvents(ctx, w, f); err != nil {
		return nil, false, err
	}
	return x.eventMisses(w, f), f.cut, nil
}

// deadEvents adds the newest dead letters that share a key or the type with w.
func (x *explaining) deadEvents(ctx context.Context, w *remains, f *found[*backend.Event]) error {
	look := func(filter backend.DeadFilter, most int) error {
		rows, next, err := x.r.DeadLetters(ctx, x.tenant, backend.DeadWalk{Filter: filter}, most)
		f.cut = f.cut || next != 0
		for _, e := range rows {
			f.rows[e.Number] = e
		}
		return err
	}
	for i := range w.Keys {
		if err := look(backend.DeadFilter{Key: &w.Keys[i]}, max(nearDead/2/len(w.Keys), 1)); err != nil {
			return err
		}
	}
	return look(backend.DeadFilter{Type: w.Type}, nearDead/2)
}

func (x *explaining) eventMisses(w *remains, f *found[*backend.Event]) []store.NearMiss {
	var misses []store.NearMiss
	for _, e := range f.rows {
		if e.Corrupt == nil && (e.Type == w.Type || e.Target == w.RunID || keysMeet(e, w.Wait)) {
			misses = append(misses, store.NearMiss{
				Event: eventID(e), Number: e.Number, Type: e.Type, Keys: e.Keys, Target: e.Target, Reasons: pairReasons(e, w, x.now), Hints: hints(e, w.Wait),
			})
		}
	}
	return best(misses)
}

// best chooses what is told: fewest reasons first, and of equals those with a hint, which say most. They are told by reasons and number.
func best(misses []store.NearMiss) []store.NearMiss {
	byReasons := func(a, b store.NearMiss) int { return cmp.Compare(len(a.Reasons), len(b.Reasons)) }
	hinted := func(m store.NearMiss) int { return min(len(m.Hints), 1) }
	slices.SortFunc(misses, func(a, b store.NearMiss) int {
		return cmp.Or(byReasons(a, b), cmp.Compare(hinted(b), hinted(a)), cmp.Compare(a.Number, b.Number))
	})
	misses = misses[:min(len(misses), store.MaxNearMisses)]
	slices.SortFunc(misses, func(a, b store.NearMiss) int { return cmp.Or(byReasons(a, b), cmp.Compare(a.Number, b.Number)) })
	return misses
}
