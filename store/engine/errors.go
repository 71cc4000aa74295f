package engine

import (
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

func runNotFound(run string) error {
	return rendezvous.Errorf(rendezvous.CodeNotFound, "run %q is not known in this tenant; start it first", run).With("run", run)
}

// sealed says that a run is concluded: its outcome and the workflow's current run (runs.md section 1, RN-12).
func sealed(w *backend.Workflow, r *backend.Run) error {
	e := rendezvous.Errorf(rendezvous.CodeSealed, "run %q ended as %s; nothing more is recorded for it", r.ID, r.Status).
		With("run", r.ID).With("outcome", string(r.Status)).With("current_run", w.RunID)
	if r.NextRun != "" {
		e = e.With("next_run", r.NextRun)
	}
	return e
}

// keptFull says that no more events are kept for a run.
func keptFull(run string) error {
	return rendezvous.Errorf(rendezvous.CodeRateLimited, "run %q has %d kept events already; send again when it has taken some", run, rendezvous.MaxKeptPerRun).
		With("run", run).With("limit", rendezvous.MaxKeptPerRun)
}

func leaseHeld(w *backend.Workflow, now time.Time) error {
	left := w.LeaseExpires.Sub(now)
	return rendezvous.Errorf(rendezvous.CodeLeaseHeld, "run %q is driven by %q for another %s; wait for its end, or send its epoch", w.RunID, w.LeaseOwner,
		left.Round(time.Millisecond)).With("owner", w.LeaseOwner).With("remaining_ms", left.Milliseconds()).With("run", w.RunID)
}

func fenced(epoch int64) error {
	return rendezvous.Errorf(rendezvous.CodeFenced, "the epoch is no longer good (it is %d now); stop work on this run", epoch).With("epoch", epoch)
}

// headConflict is check 6: the writer did not read the head that stands.
func headConflict(expected, head int64) error {
	return rendezvous.Errorf(rendezvous.CodeConflict, "expected seq %d, but the head is %d; read on from there and decide again", expected, head).
		With("what", "head").With("expected", expected).With("head", head)
}

// conflict says what stands against the request and its current value.
func conflict(what string, current any, format string, args ...any) *rendezvous.Error {
	return rendezvous.Errorf(rendezvous.CodeConflict, format, args...).With("what", what).With("current", current)
}
