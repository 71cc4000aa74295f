package client

import (
	"context"
	"errors"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/wire"
)

// appendTries bounds how often a write is repeated at a head that moved meanwhile.
const appendTries = 8

// Append writes records of the run. It is not a step of a replay: a handler that is called again appends again, unless it finds in History that it need
// not. Do, Note and Await remember by themselves.
func (r *Run) Append(ctx context.Context, records ...rendezvous.Record) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	return r.append(ctx, records...)
}

// append writes at the head. Answers that came in between are read and do not stand in its way: what is written here does not depend on them.
func (r *Run) append(ctx context.Context, records ...rendezvous.Record) error {
	list := make([]wire.Record, len(records))
	for i, rec := range records {
		rec.Seq = 0
		list[i] = wire.RecordOf(rec)
	}
	for try := 1; ; try++ {
		if err := r.usable(); err != nil {
			return err
		}
		got, err := r.client.Append(ctx, wire.Append{RunID: r.id, Epoch: r.lease.epoch, ExpectedSeq: r.seen(), Records: list})
		if err == nil {
			return r.landed(ctx, records, got)
		}
		if !isHeadConflict(err) || try == appendTries {
			return r.refused(err)
		}
		if err := r.sync(ctx); err != nil {
			return err
		}
	}
}

// landed books an append: its own records, the answers behind them, the requests.
func (r *Run) landed(ctx context.Context, records []rendezvous.Record, got wire.Appended) error {
	r.ask(got.Requests)
	own := make([]rendezvous.Record, 0, len(records)+len(got.Answers))
	for i, rec := range records {
		rec.Seq, rec.RunID = got.FirstSeq+int64(i), r.id
		if rec.V == 0 {
			rec.V = rendezvous.KindVersion
		}
		own = append(own, rec)
	}
	for _, a := range got.Answers {
		rec, err := a.Record.Domain()
		if err != nil {
			return err
		}
		own = append(own, rec)
	}
	return r.takeOr(ctx, got.HeadSeq, own)
}

// Note journals something worth knowing, once: the n-th note of a name in a handler's course is the n-th in the history.
func (r *Run) Note(ctx context.Context, name string, p Payload) error {
	if err := p.check(); err != nil {
		return err
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	r.noted[name]++
	known := r.journal.notes[name] >= r.noted[name]
	r.mu.Unlock()
	if known {
		return nil
	}
	return r.append(ctx, rendezvous.Record{
		Kind: rendezvous.Note, Data: rendezvous.EncodeData(rendezvous.NameData{Name: name}), Payload: p.Data, ContentType: p.ContentType,
	})
}

// Do runs fn once as far as the history can tell: its outcome is journaled under effect, and a replay answers that without calling fn. A crash between
// fn and the journal calls it again, with the same [Run.IdempotencyKey]: fn hands that on, or can bear to be repeated.
//
// A *Failure of fn is journaled too, and answered by every replay; a Retryable one leaves the next replay to try again. Any other error of fn is answered
// and not journaled. name says what is done, for people; it stays the same.
func (r *Run) Do(ctx context.Context, effect, name string, fn func(ctx context.Context) (Payload, error)) (Payload, error) {
	attempt, out, err := r.begin(ctx, effect, name)
	if attempt == 0 || err != nil {
		return out, err
	}
	if err := r.lease.freshen(ctx); err != nil {
		return Payload{}, err
	}
	out, err = fn(ctx)
	if err == nil {
		err = out.check()
	}
	var f *Failure
	if err != nil && !errors.As(err, &f) {
		return Payload{}, err
	}
	closing := rendezvous.Record{Kind: rendezvous.EffectDone, Effect: effect, Attempt: attempt, Payload: out.Data, ContentType: out.ContentType}
	if f != nil {
		closing = rendezvous.Record{
			Kind: rendezvous.EffectFailed, Effect: effect, Attempt: attempt,
			Data: rendezvous.EncodeData(rendezvous.EffectFailedData{Code: f.Code, Reason: f.Reason, Retryable: f.Retryable}),
		}
		out = Payload{}
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	if bad := r.append(ctx, closing); bad != nil {
		return Payload{}, bad
	}
	return out, err
}

// begin answers the recorded outcome with attempt 0, or journals that an attempt begins.
func (r *Run) begin(ctx context.Context, effect, name string) (attempt int, out Payload, err error) {
	r.writing.Lock()
	defer r.writing.Unlock()
	if err := r.usable(); err != nil {
		return 0, out, err
	}
	r.mu.Lock()
	e := r.journal.effects[effect]
	r.mu.Unlock()
	attempt = 1
	if e != nil {
		open := false
		if attempt, open, out, err = e.outcome(effect, name); err != nil || attempt == 0 || open {
			return attempt, out, err
		}
	}
	if r.PauseRequested() != nil {
		return 0, out, ErrPausing
	}
	return attempt, out, r.append(ctx, rendezvous.Record{
		Kind: rendezvous.EffectStarted, Effect: effect, Attempt: attempt, Data: rendezvous.EncodeData(rendezvous.NameData{Name: name}),
	})
}

// outcome is what the history says of an effect: the outcome (attempt 0), an attempt that is open, or the number of the next one.
func (e *effect) outcome(key, name string) (attempt int, open bool, out Payload, err error) {
	if e.isWait() {
		return 0, false, out, usedOtherwise(key)
	}
	if was := nameOf(e.opened); was != name {
		return 0, false, out, rendezvous.Errorf(rendezvous.CodeConflict, "effect %q of this run was begun as %q, not as %q; choose another effect", key, was, name).
			With("what", "name").With("effect", key)
	}
	if e.closed == nil {
		return e.attempt(), true, out, nil
	}
	if e.closed.Kind == rendezvous.EffectDone {
		return 0, false, payloadOf(*e.closed), nil
	}
	var d rendezvous.EffectFailedData
	if err := rendezvous.DecodeData(*e.closed, &d); err != nil {
		return 0, false, out, err
	}
	if d.Retryable || e.anew {
		return e.attempt() + 1, false, out, nil
	}
	return 0, false, out, &Failure{Code: d.Code, Reason: d.Reason}
}
