package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
)

// driven reports whether a live lease is on the workflow.
func driven(w *backend.Workflow, now time.Time) bool {
	return w.LeaseOwner != "" && w.LeaseExpires.After(now)
}

// within reports whether a shard is among those asked for: nil is all.
func within(shards []int, shard int) bool { return shards == nil || slices.Contains(shards, shard) }

// workable reports whether a parked wait can be worked now: its run is there, unsealed and free, and nobody has taken the wait.
func (r *reader) workable(w *backend.Wait) bool {
	if w.TakeUntil.After(r.now) && !w.TakeSettled {
		return false
	}
	f := r.workflows[backend.WorkflowKey{Tenant: w.Tenant, ID: w.WorkflowID}]
	return f != nil && f.RunID == w.RunID && !f.Status.Terminal() && !driven(f, r.now)
}

// DueParked implements [backend.Tx].
func (t *transaction) DueParked(ctx context.Context, shards []int, limit int) ([]*backend.Wait, bool, error) {
	if err := alive(ctx); err != nil {
		return nil, false, err
	}
	due := map[string][]instant{}
	for name, o := range t.tenants {
		for x := range o.due.all() {
			if x.at.After(t.now) || len(due[name]) > limit {
				break
			}
			if w := t.waitsByNum[x.number]; within(shards, w.Shard) && t.workable(w) {
				due[name] = append(due[name], x)
			}
		}
	}
	places, left := fair.Choose(due, limit, compareInstants)
	rows := make([]*backend.Wait, len(places))
	for i, x := range places {
		rows[i] = copyWait(t.waitsByNum[x.number])
	}
	return rows, len(left) > 0, nil
}

// DueWoken implements [backend.Tx].
func (t *transaction) DueWoken(ctx context.Context, shards []int, limit int) ([]*backend.Woken, bool, error) {
	if err := alive(ctx); err != nil {
		return nil, false, err
	}
	due := map[string][]mark{}
	for name, o := range t.tenants {
		for m := range o.woken.all() {
			if m.at.After(t.now) || len(due[name]) > limit {
				break
			}
			if w := t.workflows[m.key]; within(shards, w.Shard) && !driven(w, t.now) {
				due[name] = append(due[name], m)
			}
		}
	}
	places, left := fair.Choose(due, limit, compareMarks)
	rows := make([]*backend.Woken, len(places))
	for i, m := range places {
		rows[i] = copyWoken(t.woken[m.key])
	}
	return rows, len(left) > 0, nil
}

// UnmetEvents implements [backend.Tx]. It walks only meetings that have both sides: in health there are next to none, whatever is stored.
func (t *transaction) UnmetEvents(ctx context.Context, before time.Time, after int64, limit int) ([]*backend.Event, int64, error) {
	if err := alive(ctx); err != nil {
		return nil, 0, err
	}
	due := map[string][]int64{}
	for name, o := range t.tenants {
		unmet := map[int64]struct{}{}
		for m := range o.unmet {
			t.unmetAt(t.meets[m], before, after, limit, unmet)
		}
		if len(unmet) > 0 {
			due[name] = slices.Sorted(maps.Keys(unmet))
		}
	}
	places, left := fair.Numbers(due, limit)
	var next int64
	if left != 0 {
		next = left - 1
	}
	rows := make([]*backend.Event, len(places))
	for i, number := range places {
		rows[i] = copyEvent(t.eventsByNum[number], false)
	}
	return rows, next, nil
}

// unmetAt adds the events left apart at one meeting, lowest first, one more than a page holds at most.
func (t *transaction) unmetAt(s *sides, before time.Time, after int64, limit int, unmet map[int64]struct{}) {
	if !t.settled(s.waits, before) {
		return
	}
	n := 0
	for number := range s.events.above(after) {
		if n > limit {
			return
		}
		e := t.eventsByNum[number]
		if e.LiveSince.After(before) || !t.offerable(e) {
			continue
		}
		unmet[number] = struct{}{}
		n++
	}
}

// UnmetNews implements [backend.Tx]. It goes over the same meetings: its walks end at the last that they find.
func (t *transaction) UnmetNews(ctx context.Context, before time.Time, from backend.News, limit int) (backend.NewsPage, error) {
	if err := alive(ctx); err != nil {
		return backend.NewsPage{}, err
	}
	var walks [backend.NewsWalks]fair.Look
	for i, place := range from {
		walks[i].End = place
	}
	for _, o := range t.tenants {
		for m := range o.unmet {
			t.newsAt(t.meets[m], before, from, &walks)
		}
	}
	for i := range walks { // a row leads to one event, by whichever key
		slices.SortFunc(walks[i].Finds, func(a, b fair.Find) int { return cmp.Or(a.Compare(b.Place), cmp.Compare(a.Event, b.Event)) })
		walks[i].Finds = slices.CompactFunc(walks[i].Finds, func(a, b fair.Find) bool { return a.Compare(b.Place) == 0 })
		if n := len(walks[i].Finds); n > 0 {
			walks[i].End = walks[i].Finds[n-1].Place
		}
	}
	numbers, page := fair.News(&walks, limit)
	for _, number := range numbers {
		page.Rows = append(page.Rows, copyEvent(t.eventsByNum[number], false))
	}
	return page, nil
}

// newsAt adds what the walks find at one meeting.
func (t *transaction) newsAt(s *sides, before time.Time, from backend.News, walks *[backend.NewsWalks]fair.Look) {
	find := func(walk int, p backend.Place, e *backend.Event) {
		if p.Compare(from[walk]) > 0 {
			walks[walk].Finds = append(walks[walk].Finds, fair.Find{Place: p, Tenant: e.Tenant, Event: e.Number})
		}
	}
	var apart []*backend.Event
	for number := range s.events.all() {
		if e := t.eventsByNum[number]; !e.LiveSince.After(before) && t.offerable(e) {
			apart = append(apart, e)
		}
	}
	met := false
	for number := range s.waits.all() {
		w := t.waitsByNum[number]
		first := slices.IndexFunc(apart, func(e *backend.Event) bool { return w.From == "" || w.From == e.Source })
		if w.OpenSince.After(before) {
			continue
		}
		if met = true; first < 0 {
			continue
		}
		find(backend.NewWaits, backend.Place{Number: number}, apart[first])
		if !w.OpenSince.Equal(w.RegisteredAt) {
			find(backend.OpenAgain, backend.Place{At: w.OpenSince, Number: number}, apart[first])
		}
	}
	for _, e := range apart {
		if !met {
			return
		}
		find(backend.NewEvents, backend.Place{Number: e.Number}, e)
		if !e.LiveSince.Equal(e.ReceivedAt) {
			find(backend.LiveAgain, backend.Place{At: e.LiveSince, Number: e.Number}, e)
		}
	}
}

// offerable reports whether the event is in time and in nobody's hands.
func (t *transaction) offerable(e *backend.Event) bool {
	return !e.TakeUntil.After(t.now) && (e.ExpiresAt.IsZero() || e.ExpiresAt.After(t.now))
}

// settled reports whether one of the waits could have been met since before.
func (t *transaction) settled(waits *sorted[int64], before time.Time) bool {
	for number := range waits.all() {
		if !t.waitsByNum[number].OpenSince.After(before) {
			return true
		}
	}
	return false
}

// LockWorkflows implements [backend.Tx]. The turn is the lock; what is locked is kept to judge Apply by.
func (t *transaction) LockWorkflows(ctx context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Workflow, error) {
	if t.locked != nil {
		return nil, misuse("locks workflows twice")
	}
	t.locked = make(map[backend.WorkflowKey]struct{}, len(keys))
	for _, k := range keys {
		t.locked[k] = struct{}{}
	}
	return t.Workflows(ctx, keys)
}

// NewEventNumbers implements [backend.Tx].
func (t *transaction) NewEventNumbers(ctx context.Context, n int) ([]int64, error) {
	return draw(ctx, &t.eventNumber, n)
}

// NewWaitNumbers implements [backend.Tx].
func (t *transaction) NewWaitNumbers(ctx context.Context, n int) ([]int64, error) {
	return draw(ctx, &t.waitNumber, n)
}

// NewTakes implements [backend.Tx].
func (t *transaction) NewTakes(ctx context.Context, n int) ([]int64, error) {
	return draw(ctx, &t.take, n)
}

// draw is n numbers above all that were drawn before. They stay drawn when the transaction is undone.
func draw(ctx context.Context, last *int64, n int) ([]int64, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	drawn := make([]int64, n)
	for i := range drawn {
		*last++
		drawn[i] = *last
	}
	return drawn, nil
}

// LastNumbers implements [backend.Tx].
func (t *transaction) LastNumbers(ctx context.Context) (backend.Numbers, error) { return t.Given(ctx) }

func misuse(what string) error {
	return rendezvous.Errorf(rendezvous.CodeInvalid, "store/memory: the transaction %s; this is an error of the program", what)
}
