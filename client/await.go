package client

import (
	"context"
	"fmt"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/wire"
)

// cancelReason marks the waits that a driver withdrew because of a cancel: to a replay they say ErrCancelled again.
const cancelReason = "the run is being cancelled"

// AwaitOption narrows what a wait takes.
type AwaitOption func(*rendezvous.Wait)

// OnKey lets events with that key answer; given several times, any of the keys will do. A wait without keys is answered only by events sent to its run.
func OnKey(namespace, value string) AwaitOption {
	return func(w *rendezvous.Wait) { w.Keys = append(w.Keys, rendezvous.Key{Namespace: namespace, Value: value}) }
}

// From lets only events of that source answer.
func From(source string) AwaitOption {
	return func(w *rendezvous.Wait) { w.From = source }
}

// Within gives a wait that long, from its registration on: an event answers that is received before. After it Await answers ErrTimedOut.
func Within(d time.Duration) AwaitOption {
	d = max(d, 0)
	return func(w *rendezvous.Wait) { w.DeadlineAfter = &d }
}

// Until is [Within] with an instant, which is the same on every replay: it comes from the input, an answer or an outcome, not from a clock. The zero time is
// no deadline.
func Until(at time.Time) AwaitOption {
	return func(w *rendezvous.Wait) { w.Deadline = at }
}

// Answer is the event that answered a wait.
type Answer struct {
	Payload
	Event    rendezvous.EventID
	Type     string
	Key      *rendezvous.Key // the key that met; nil for an event sent to the run
	Received string          // when the plane took the event in, RFC 3339
	Seq      int64           // of its record: the lower one of two answers came first
}

// Await answers the recorded answer of a wait. If there is none it registers the wait, unless it is registered, and answers ErrWaiting, which the
// handler returns; a handler may register several waits before it does. effect is the wait's name in its run: each wait needs one of its own.
//
// Other answers: ErrCancelled when a cancel is requested (the wait is withdrawn), ErrPausing, ErrTimedOut, ErrWithdrawn, and conflict when the effect was
// registered with another type, keys, source or instant. A wait with a deadline, of [Within] or [Until], that is over asks for what is there already: it is
// answered, or ErrTimedOut at once.
func (r *Run) Await(ctx context.Context, effect, eventType string, opts ...AwaitOption) (*Answer, error) {
	w := rendezvous.Wait{WaitID: rendezvous.WaitID{RunID: r.id, Effect: effect}, Type: eventType}
	for _, o := range opts {
		o(&w)
	}
	w, err := w.Check()
	if err != nil {
		return nil, err
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	if err := r.usable(); err != nil {
		return nil, err
	}
	return r.await(ctx, w)
}

func (r *Run) await(ctx context.Context, w rendezvous.Wait) (*Answer, error) {
	opened, closed, err := r.standing(&w)
	switch {
	case err != nil:
		return nil, err
	case closed != nil:
		return answered(*closed)
	case r.CancelRequested() != nil:
		if !opened {
			return nil, ErrCancelled
		}
		return r.withdrawn(ctx, w.Effect, cancelReason)
	case opened:
		return nil, ErrWaiting
	case r.PauseRequested() != nil:
		return nil, ErrPausing
	}
	return r.register(ctx, w)
}

// standing is how the history says the wait stands. It gives w its effect key, and its attempt if there is to be another.
func (r *Run) standing(w *rendezvous.Wait) (opened bool, closed *rendezvous.Record, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.Effect = r.journal.wait(w.Effect)
	e := r.journal.effects[w.Effect]
	if e == nil {
		return false, nil, nil
	}
	if !e.isWait() {
		return false, nil, usedOtherwise(w.Effect)
	}
	if w.Attempt = e.attempt(); e.anew {
		w.Attempt++
		return false, nil, nil
	}
	was, err := registeredAs(e.opened)
	if err != nil {
		return false, nil, err
	}
	if what := w.SameAs(was); what != "" {
		return false, nil, rendezvous.Errorf(rendezvous.CodeConflict, "wait %q of this run was registered with other values (%s); a handler names the same on every replay, so choose another effect",
			w.Effect, what).With("what", what).With("effect", w.Effect)
	}
	return true, e.closed, nil
}

// registeredAs is what the record says of a wait. The instant of a deadline that was given as a duration is not known before the history is read.
func registeredAs(r rendezvous.Record) (rendezvous.Wait, error) {
	var d rendezvous.WaitRegisteredData
	if err := rendezvous.DecodeData(r, &d); err != nil {
		return rendezvous.Wait{}, err
	}
	w := rendezvous.Wait{Type: d.Type, Keys: d.Keys, From: d.From}
	if d.Deadline == "" {
		return w, nil
	}
	var err error
	w.Deadline, err = rendezvous.ParseInstant("deadline", d.Deadline)
	return w, err
}

func usedOtherwise(effect string) error {
	return rendezvous.InvalidField("effect", "%q names a wait in one place and an effect in another; give each a name of its own", effect)
}

// register asks the plane, and books what it recorded: the registration unless it was there, and the answer if there is one.
func (r *Run) register(ctx context.Context, w rendezvous.Wait) (*Answer, error) {
	req := wire.RegisterWait{
		RunID: r.id, Epoch: r.lease.epoch, Effect: w.Effect, Attempt: w.Attempt, Type: w.Type, Keys: w.Keys, From: w.From, Deadline: wire.DueAt(w.Deadline),
	}
	data := rendezvous.WaitRegisteredData{Type: w.Type, Keys: w.Keys, From: w.From}
	if !w.Deadline.IsZero() {
		data.Deadline = rendezvous.FormatInstant(w.Deadline)
	}
	if w.DeadlineAfter != nil {
		req.DeadlineAfterMS = new(wire.AfterMS(*w.DeadlineAfter))
	}
	got, err := r.client.RegisterWait(ctx, req)
	if err != nil {
		return nil, r.refused(err)
	}
	records := []rendezvous.Record{{
		Seq: r.seen() + 1, RunID: r.id, Kind: rendezvous.WaitRegistered, V: rendezvous.KindVersion, Effect: w.Effect, Attempt: w.Attempt,
		Data: rendezvous.EncodeData(data),
	}}
	if got.Answered != nil && got.Answered.Omitted {
		got.Answered = nil // its payload is read with the history, or that says how
	}
	if got.Answered != nil {
		answer, err := got.Answered.Domain()
		if err != nil {
			return nil, err
		}
		records = append(records, answer)
	}
	// Only when the seqs say that nothing else came in between are these the next records.
	if !got.Waiting && got.Answered == nil || got.Seq != records[len(records)-1].Seq || got.Seq != r.seen()+int64(len(records)) {
		if err := r.sync(ctx); err != nil {
			return nil, err
		}
	} else if err := r.takeOr(ctx, got.Seq, records); err != nil {
		return nil, err
	}
	_, closed, err := r.standing(&w)
	if err != nil {
		return nil, err
	}
	if closed == nil {
		return nil, ErrWaiting
	}
	return answered(*closed)
}

// Withdraw takes a wait back that is no longer of use, e.g. the other one of two. An answer that was quicker is answered, as by Await; otherwise the
// answer is nil, and an event held for the wait goes to others.
func (r *Run) Withdraw(ctx context.Context, effect, reason string) (*Answer, error) {
	r.writing.Lock()
	defer r.writing.Unlock()
	if err := r.usable(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	effect = r.journal.wait(effect)
	e := r.journal.effects[effect]
	r.mu.Unlock()
	switch {
	case e == nil:
		return nil, nil
	case e.isWait() && e.anew:
		return nil, nil
	case !e.isWait():
		return nil, usedOtherwise(effect)
	case e.closed != nil && e.closed.Kind == rendezvous.WaitAnswered:
		return answered(*e.closed)
	case e.closed != nil:
		return nil, nil
	}
	a, err := r.withdrawn(ctx, effect, reason)
	if err != nil && e.closed != nil && e.closed.Kind == rendezvous.WaitWithdrawn {
		return nil, nil // that is what was asked for
	}
	return a, err
}

// withdrawn withdraws an open wait and answers as its record does.
func (r *Run) withdrawn(ctx context.Context, effect, reason string) (*Answer, error) {
	if _, err := r.client.WithdrawWait(ctx, wire.WithdrawWait{RunID: r.id, Effect: effect, Epoch: r.lease.epoch, Reason: reason}); err != nil {
		return nil, r.refused(err)
	}
	if err := r.sync(ctx); err != nil {
		return nil, err
	}
	r.mu.Lock()
	e := r.journal.effects[effect]
	r.mu.Unlock()
	if e.closed == nil {
		return nil, ErrStale
	}
	return answered(*e.closed)
}

// answered reads the record that closed a wait.
func answered(record rendezvous.Record) (*Answer, error) {
	switch record.Kind {
	case rendezvous.WaitTimedOut:
		return nil, &Failure{Code: ErrTimedOut.Code, Reason: fmt.Sprintf("no event answered wait %q before its deadline", record.Effect)}
	case rendezvous.WaitWithdrawn:
		var d rendezvous.ReasonData
		if err := rendezvous.DecodeData(record, &d); err != nil {
			return nil, err
		}
		if d.Reason == cancelReason {
			return nil, ErrCancelled
		}
		return nil, &Failure{Code: ErrWithdrawn.Code, Reason: fmt.Sprintf("wait %q was withdrawn", record.Effect)}
	}
	var d rendezvous.WaitAnsweredData
	if err := rendezvous.DecodeData(record, &d); err != nil {
		return nil, err
	}
	return &Answer{
		Payload: payloadOf(record), Event: rendezvous.EventID{Source: d.EventSource, ID: d.EventID}, Type: d.EventType, Key: d.Key, Received: d.ReceivedAt,
		Seq: record.Seq,
	}, nil
}
