package sweep

import (
	"context"

	"github.com/rendezvous-events/rendezvous/store"
)

// Subscribe hears nothing: the passes look by themselves, what is lost and what is not.
func (w *Worker) Subscribe(context.Context, int) error { return nil }

// Adopt lets the passes over runs, waits and timers look at shards that are this worker's from now on, at once.
func (w *Worker) Adopt(shards []store.ShardEpoch) {
	w.mu.Lock()
	if len(w.owned) == 0 { // until now they had nothing to look at
		now := w.deps.Clock.Now().UnixMilli()
		for _, s := range w.passes {
			if s.owned {
				s.last.Store(now)
			}
		}
	}
	for _, s := range shards {
		w.owned[s.Shard] = struct{}{}
	}
	w.mu.Unlock()
	w.anew.Store(true)
	signal(w.adopted)
}

// Quit forgets shards, which left the handle's scope before: no page that begins from now on sees them. over is closed when those under way have ended.
func (w *Worker) Quit(shards []int) (over <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range shards {
		delete(w.owned, s)
	}
	ended := make(chan struct{})
	if len(w.flights) == 0 {
		close(ended)
		return ended
	}
	flying := make([]chan struct{}, 0, len(w.flights))
	for f := range w.flights {
		flying = append(flying, f)
	}
	go func() { // ends with its flights, which Stop waits for
		defer close(ended)
		for _, f := range flying {
			<-f
		}
	}()
	return ended
}

// standBy says that no shard is this worker's.
func (w *Worker) standBy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.owned) == 0
}

// within is a pass over the shards that are owned. It does nothing where none is, or where the pod believes in none of them any more: it is cut off, and others
// adopt them (SH-25).
func (w *Worker) within(work func(ctx context.Context) (page, error)) func(ctx context.Context) (page, error) {
	return func(ctx context.Context) (page, error) {
		landed, ok := w.depart()
		if !ok {
			return page{none: true}, nil
		}
		defer landed()
		return work(ctx)
	}
}

// depart begins a page over the owned shards. It is noted before the page reads the handle's scope, so that whoever quits a shard waits for each page that saw it.
func (w *Worker) depart() (landed func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.owned {
		ok = ok || w.shards.IsCurrentOwner(s)
	}
	if !ok {
		return nil, false
	}
	f := make(chan struct{})
	w.flights[f] = struct{}{}
	return func() {
		w.mu.Lock()
		delete(w.flights, f)
		w.mu.Unlock()
		close(f)
	}, true
}
