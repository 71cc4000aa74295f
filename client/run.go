package client

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/wire"
)

// Run is a run under the lease of its executor, as a handler sees it. Its methods may be called from several goroutines of the handler; none may be
// called after the handler has returned. Every method that writes answers *rendezvous.Error of the closed set; once the lease is lost (ErrFenced,
// ErrSealed) it writes nothing any more.
type Run struct {
	client  *Client
	lease   *lease
	id      string
	writing sync.Mutex // one write at a time: each names the head it read

	mu                   sync.Mutex
	journal              journal
	fresh                int // records[fresh:] are new to this call of the handler
	passed               int // how many there were when it was called
	noted                map[string]int
	cancel               *wire.Request
	told                 bool // of the cancel: it was known when this pass began, or the handler met it
	pause                *wire.Request
	started              rendezvous.RunStartedData
	input                Payload
	concluding, finished bool
	next                 string // the run it continues as, "" for none
	nextSeq              int64
}

// ID of the run.
func (r *Run) ID() string { return r.id }

// WorkflowID is the workflow the run belongs to; it stays the same through continue-as-new.
func (r *Run) WorkflowID() string { return r.lease.workflow }

// Type of the run, as it was started.
func (r *Run) Type() string { return r.data().Type }

// Queue the run was started on.
func (r *Run) Queue() string { return r.data().Queue }

// Parent is the workflow id that the starter named, or "".
func (r *Run) Parent() string { return r.data().Parent }

func (r *Run) data() rendezvous.RunStartedData {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.started
}

// Input the run was started with.
func (r *Run) Input() Payload {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.input
}

// IdempotencyKey names an effect of this run to the outside world: the same through every repetition.
func (r *Run) IdempotencyKey(effect string) string { return r.id + "/" + effect }

// History is every record of the run known so far, in order. Records written under this lease have no RecordedAt.
func (r *Run) History() []rendezvous.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.journal.records)
}

// New is the part of History that was not there when the handler was last called under this lease; all of it in the first call.
func (r *Run) New() []rendezvous.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.journal.records[r.fresh:])
}

// CancelRequested is who asked for the run's cancel and why; nil when nobody did. Await tells a handler anyway, by ErrCancelled.
func (r *Run) CancelRequested() *wire.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = r.told || r.cancel != nil
	return r.cancel
}

// PauseRequested is who asked for a pause of the run; nil when nobody did.
func (r *Run) PauseRequested() *wire.Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pause
}

// beginPass is called before each call of the handler.
func (r *Run) beginPass() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fresh, r.passed = r.passed, len(r.journal.records)
	r.noted = map[string]int{}
	r.told = r.cancel != nil
}

// untold reports whether a cancel became known behind the handler's back.
func (r *Run) untold() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cancel != nil && !r.told
}

func (r *Run) seen() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.journal.seen
}

// take adds records in order; false when some in between are missing.
func (r *Run) take(records []rendezvous.Record) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	whole := r.journal.add(records...)
	if r.started.Type == "" && len(r.journal.records) > 0 {
		first := r.journal.records[0]
		_ = rendezvous.DecodeData(first, &r.started) // what does not decode leaves the type empty, which no handler takes
		r.input = payloadOf(first)
	}
	return whole
}

// ask takes the pending requests in, as every answer to an epoch carries them.
func (r *Run) ask(requests []wire.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pause, r.cancel = nil, nil
	for _, q := range requests {
		switch q.Kind {
		case rendezvous.RequestPause:
			r.pause = &q
		case rendezvous.RequestCancel:
			r.cancel = &q
		}
	}
}

// sync reads on from what is known.
func (r *Run) sync(ctx context.Context) error {
	records, err := r.client.History(ctx, r.lease.workflow, r.seen()+1)
	if err != nil {
		return err
	}
	if !r.take(records) {
		return rendezvous.Errorf(rendezvous.CodeCorrupt, "the history of workflow %q has a gap behind seq %d", r.lease.workflow, r.seen())
	}
	return nil
}

// takeOr adds records that are expected to be next, and reads on where they are not.
func (r *Run) takeOr(ctx context.Context, head int64, records []rendezvous.Record) error {
	if r.take(records) && r.seen() >= head {
		return nil
	}
	return r.sync(ctx)
}

// usable is nil as long as the handler may write.
func (r *Run) usable() error {
	if err := r.lease.lost(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished {
		return rendezvous.Errorf(rendezvous.CodeSealed, "the handler has ended run %q already", r.id)
	}
	return nil
}

// refused reads what a refusal means for the driver: the lease is lost, or a pause came in between.
func (r *Run) refused(err error) error {
	e := rendezvous.AsError(err)
	switch e.Code {
	case rendezvous.CodeFenced, rendezvous.CodeSealed, rendezvous.CodeLeaseHeld:
		r.lease.lose(e)
	case rendezvous.CodeConflict:
		if what := e.Details["what"]; what == "pausing" || what == "paused" {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.pause == nil {
				r.pause = &wire.Request{Kind: rendezvous.RequestPause}
			}
			return ErrPausing
		}
	}
	return err
}

// isHeadConflict reports whether a write named another head than the one that stands.
func isHeadConflict(err error) bool {
	return errors.Is(err, rendezvous.ErrConflict) && rendezvous.AsError(err).Details["what"] == "head"
}
