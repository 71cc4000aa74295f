package push

import (
	"context"

	"github.com/rendezvous-events/rendezvous/messaging"
)

// Pass claims once for each namespace and begins the turns.
func (w *Worker) Pass() { w.pass(w.life) }

// Wait returns when no turn is under way.
func (w *Worker) Wait() { w.turns.Wait() }

// Drive is a pass whose turns have ended, and what it came to.
func (w *Worker) Drive() Report {
	w.counts.news()
	w.Pass()
	w.Wait()
	return w.counts.news()
}

// Noticed is the handler of notices.
func (w *Worker) Noticed(ctx context.Context, batch []messaging.PushNotice) []messaging.Outcome {
	return w.noticed(ctx, batch)
}

// Taken is how many turns are under way, and the bytes they hold.
func (w *Worker) Taken() (turns int, bytes int64) {
	return w.cfg.InFlight - w.places.free(), w.memory.used.Load()
}

// Draining reports whether a stop has begun.
func (w *Worker) Draining() bool { return w.draining() }

// Ending reports whether every turn waits for a settlement: its last word, or one that it may not go on without.
func (w *Worker) Ending() bool { return w.landing.Load() == int64(w.cfg.InFlight-w.places.free()) }

// Renew asks for longer leases of all running turns, as each third of one does.
func (w *Worker) Renew() { w.leases.extend(w.life, w.leases.tokens()) }

// Sleep returns when the next pass is to be made.
func (w *Worker) Sleep() { w.sleep(w.life) }
