package sweep

import (
	"context"
	"slices"

	"github.com/rendezvous-events/rendezvous/messaging"
)

// Unschedule takes a pass out, as a broken build would.
func (w *Worker) Unschedule(name string) {
	w.passes = slices.DeleteFunc(w.passes, func(s *pass) bool { return s.name == name })
}

// Tick makes one tick in which every pass is due. The worker is not started.
func (w *Worker) Tick(ctx context.Context) Report {
	now := w.deps.Clock.Now()
	for _, s := range w.all() {
		s.due = now
		if s.last.Load() == 0 {
			s.last.Store(now.UnixMilli())
		}
	}
	w.tick(ctx)
	return w.Last()
}

// GivenUp hands the worker the broker's words about messages that were given up.
func (w *Worker) GivenUp(ctx context.Context, batch ...messaging.Advisory) []messaging.Outcome {
	return w.given.take(ctx, batch)
}
