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

// Idle reports whether the worker has nothing to do at this instant of its clock, as far as a look from outside can say.
func (w *Worker) Idle() bool {
	for _, s := range w.all() {
		if s.busy.Load() {
			return false
		}
	}
	return len(w.kick)+len(w.adopted) == 0
}
