package timer

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
)

// aim is what a pod knows of a shard: when to ask, by its own clock, which only measures how long the store's now is away (TM-54).
type aim struct {
	epoch    int64 // 0: listened to, not adopted yet
	due      time.Time
	armed    bool      // something is armed: due says when
	looked   time.Time // the last look, answered or not
	lookBy   time.Time // ask anew then
	look     bool      // ask anew: a hint came, or it was never asked
	inFlight bool
	flood    bool   // its last page left more due
	turn     uint64 // which page was its last
	stop     func()
}

// probe spreads the looks at shards, 0.75 to 1 of the period.
func probe(d time.Duration) time.Duration { return d - rand.N(d/4+1) }

// loop sleeps until something is to be done and does it, until ctx ends; calls outlive it until they are done.
func (w *Worker) loop(ctx, calls context.Context) {
	slots := make(chan struct{}, pagesInFlight)
	for ctx.Err() == nil {
		if look := w.toLook(); len(look) > 0 {
			w.lookAt(ctx, look)
		}
		wait := w.begin(ctx, calls, slots)
		t := w.deps.Clock.NewTimer(wait)
		select {
		case <-t.C():
		case <-w.wake:
		case <-ctx.Done():
		}
		t.Stop()
	}
	for range pagesInFlight { // those in flight are waited for
		slots <- struct{}{}
	}
}

// toLook are the shards whose next instant is to be asked for: those that a hint is about, or all when the probe of one is due, so that a probe is one call.
func (w *Worker) toLook() []int {
	alone := !w.hints.Connected()
	now := w.deps.Clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	idle := func(a *aim) bool { return a.epoch != 0 && !a.inFlight }
	all := false
	for _, a := range w.shards {
		all = all || idle(a) && (!a.lookBy.After(now) || alone && !a.looked.Add(w.cfg.Alone).After(now))
	}
	var look []int
	for s, a := range w.shards {
		if idle(a) && (all || a.look) {
			look = append(look, s)
		}
	}
	slices.Sort(look)
	return look
}

// lookAt asks when something is due next in those shards. Where the store does not answer they are asked again within a second.
func (w *Worker) lookAt(ctx context.Context, shards []int) {
	w.mu.Lock()
	for _, s := range shards {
		if a := w.shards[s]; a != nil {
			a.look = false // a hint from now on asks again
		}
	}
	w.mu.Unlock()
	call, cancel := clock.WithTimeout(ctx, w.deps.Clock, w.cfg.Call)
	defer cancel()
	next, err := w.store.NextDue(call, shards)
	if err != nil {
		if ctx.Err() == nil {
			w.deps.Log.WarnContext(ctx, "the next timers were not found; asked again", "shards", len(shards), "error", err)
		}
		w.rest(shards, 0)
		return
	}
	w.answered(shards, next.NextDue, next.Now)
}

// answered aims at the instants of an answer: what is to wait is the difference to the store's now of the same answer.
func (w *Worker) answered(shards []int, next map[int]time.Time, storeNow time.Time) {
	now := w.deps.Clock.Now()
	w.probed.Store(now.UnixMilli())
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range shards {
		a := w.shards[s]
		if a == nil {
			continue
		}
		at, armed := next[s]
		a.looked, a.lookBy, a.armed, a.due = now, now.Add(probe(w.cfg.Probe)), armed, now.Add(at.Sub(storeNow))
	}
}

// rest asks those shards again in a moment, their store call having failed or come to nothing, and begins no page of theirs before pause is over. What is known of
// their next instants stays.
func (w *Worker) rest(shards []int, pause time.Duration) {
	now := w.deps.Clock.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range shards {
		a := w.shards[s]
		if a == nil {
			continue
		}
		a.looked, a.lookBy = now, now.Add(probe(w.cfg.Alone))
		if until := now.Add(pause); a.armed && a.due.Before(until) {
			a.due = until
		}
	}
}

// begin starts pages for the shards in which something is due, as far as slots are free, and answers how long there is nothing more to do.
func (w *Worker) begin(ctx, calls context.Context, slots chan struct{}) time.Duration {
	now := w.deps.Clock.Now()
	due, flooded, wait := w.due(now)
	for len(due) > 0 && ctx.Err() == nil {
		select {
		case slots <- struct{}{}:
		default:
			return wait // a page that ends wakes the loop
		}
		n := len(due)
		if free := pagesInFlight - len(slots) + 1; free > 1 { // the other page has the other half
			n = (n + 1) / 2
		}
		if flooded {
			n = 1
		}
		part := due[:n]
		due = due[n:]
		f := w.fly(part)
		go func() {
			defer func() {
				w.landed(f)
				<-slots
				signal(w.wake)
			}()
			w.fire(calls, part)
		}()
	}
	return wait
}

// due are the shards with something due, whose turn was the longest ago first, and how long until there are more. flooded says that one of them has more due than a
// page: then they take turns, one page each.
func (w *Worker) due(now time.Time) (due []store.ShardEpoch, flooded bool, wait time.Duration) {
	wait = w.cfg.Alone // whether hints arrive is looked at as often
	w.mu.Lock()
	defer w.mu.Unlock()
	for s, a := range w.shards {
		switch {
		case a.epoch == 0 || a.inFlight:
		case a.look:
			wait = 0
		case a.armed && !a.due.After(now) && !w.store.IsCurrentOwner(s): // its lease is to be renewed, or lost: no page begins
		case a.armed && !a.due.After(now):
			due = append(due, store.ShardEpoch{Shard: s, Epoch: a.epoch})
			flooded = flooded || a.flood
		case a.armed:
			wait = min(wait, a.due.Sub(now))
		}
		if a.epoch != 0 && !a.inFlight {
			wait = min(wait, a.lookBy.Sub(now))
		}
	}
	slices.SortFunc(due, func(x, y store.ShardEpoch) int {
		a, b := w.shards[x.Shard], w.shards[y.Shard]
		return cmp.Or(cmp.Compare(a.turn, b.turn), a.due.Compare(b.due))
	})
	return due, flooded, max(wait, 0)
}

// flight is a page under way.
type flight struct {
	shards []store.ShardEpoch
	aims   []*aim
	done   chan struct{}
}

func (w *Worker) fly(shards []store.ShardEpoch) *flight {
	f := &flight{shards: shards, done: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turns++
	for _, s := range shards {
		if a := w.shards[s.Shard]; a != nil {
			a.inFlight, a.turn = true, w.turns
			f.aims = append(f.aims, a)
		}
	}
	w.flights = append(w.flights, f)
	return f
}

func (w *Worker) landed(f *flight) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range f.aims {
		a.inFlight = false
	}
	w.flights = slices.DeleteFunc(w.flights, func(o *flight) bool { return o == f })
	close(f.done)
}
