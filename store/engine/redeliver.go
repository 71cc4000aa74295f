package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// DeliverParked implements [store.Redeliverer].
func (e *Engine) DeliverParked(ctx context.Context, waits []store.WaitRef, at time.Time) (store.Offered, error) {
	if err := checkItems(len(waits), at); err != nil {
		return store.Offered{}, err
	}
	var notices store.Notices
	items, err := inParts(waits, func(part []store.WaitRef) (out []store.Offer, err error) {
		sent, err := e.update(ctx, "deliver_parked", at, func(ctx context.Context, u *unit) (err error) {
			out, err = u.deliverParked(ctx, part)
			return err
		})
		notices.Append(sent)
		return out, err
	}, failedOffer)
	if err != nil {
		return store.Offered{}, err
	}
	for i, w := range waits {
		items[i].Tenant, items[i].Wait = w.Tenant, w.WaitID
	}
	markPush(items, notices)
	return store.Offered{Items: items, Notices: notices}, nil
}

// redelivery is one try of DeliverParked.
type redelivery struct {
	u     *unit
	runs  map[backend.RunKey]*backend.Run
	waits map[backend.WaitKey]*backend.Wait
	pairs pairing
	// Of waits without a row, or whose run is sealed: how they stand in the history.
	stand map[backend.WaitKey]standing
	marks map[backend.WorkflowKey]*backend.Woken
	done  map[backend.WaitKey]store.Offer // what this unit did, for repeats in the batch
	owed  []*flow                         // whose mark's notice is repeated, unless this unit makes a newer one
}

func (u *unit) deliverParked(ctx context.Context, refs []store.WaitRef) ([]store.Offer, error) {
	out := make([]store.Offer, len(refs))
	var keys []backend.WaitKey
	var runs []backend.RunKey
	for i, r := range refs {
		if err := checkWaitRef(r.Tenant, r.WaitID); err != nil {
			out[i] = failedOffer(err)
			continue
		}
		keys = append(keys, backend.WaitKey{Tenant: r.Tenant, RunID: r.RunID, Effect: r.Effect})
		runs = append(runs, backend.RunKey{Tenant: r.Tenant, ID: r.RunID})
	}
	if len(keys) == 0 {
		return out, nil
	}
	d := redelivery{u: u, done: map[backend.WaitKey]store.Offer{}}
	if err := d.read(ctx, distinct(keys), distinct(runs)); err != nil {
		return nil, err
	}
	for i, r := range refs {
		if out[i].Err == nil {
			out[i] = d.deliver(backend.WaitKey{Tenant: r.Tenant, RunID: r.RunID, Effect: r.Effect})
		}
	}
	d.notice()
	return out, nil
}

func (d *redelivery) read(ctx context.Context, keys []backend.WaitKey, runs []backend.RunKey) error {
	var err error
	if d.runs, err = d.u.lockRuns(ctx, runs); err != nil {
		return err
	}
	if d.waits, err = d.u.tx.Waits(ctx, keys); err != nil {
		return err
	}
	var parked []*backend.Wait
	var past []backend.WaitKey
	for _, k := range keys {
		w, run := d.waits[k], d.runs[backend.RunKey{Tenant: k.Tenant, ID: k.RunID}]
		f := d.u.flowOf(run)
		if w != nil && w.Held != nil {
			parked = append(parked, w)
		}
		if f != nil && f.Corrupt == nil && (w == nil || !current(f, run)) {
			past = append(past, k)
		}
	}
	if d.pairs, err = d.u.pairs(ctx, parked); err != nil || len(past) == 0 {
		return err
	}
	if d.stand, err = d.u.standings(ctx, nil, past...); err != nil {
		return err
	}
	return d.readMarks(ctx, past)
}

// readMarks reads which runs are woken, of those whose answer is in the history already: lost RESUME notices are repeated and others are not (EV-59).
func (d *redelivery) readMarks(ctx context.Context, past []backend.WaitKey) error {
	var flows []backend.WorkflowKey
	for _, k := range past {
		if d.stand[k].closing() == rendezvous.ClosedAnswered {
			flows = append(flows, d.u.flowOf(d.runs[backend.RunKey{Tenant: k.Tenant, ID: k.RunID}]).Key())
		}
	}
	if len(flows) == 0 {
		return nil
	}
	var err error
	d.marks, err = d.u.tx.Woken(ctx, distinct(flows))
	return err
}

// deliver records the event that one parked wait holds, if its run is free.
func (d *redelivery) deliver(key backend.WaitKey) store.Offer {
	if before, again := d.done[key]; again {
		return repeated(before)
	}
	run := d.runs[backend.RunKey{Tenant: key.Tenant, ID: key.RunID}]
	f, w := d.u.flowOf(run), d.waits[key]
	switch {
	case f == nil:
		return store.Offer{Outcome: store.OfferClosed}
	case f.Corrupt != nil:
		return failedOffer(f.Corrupt)
	case w == nil:
		return d.past(f, run, d.stand[key])
	}
	out := d.parked(f, run, w)
	out.WorkflowID, out.WaitTrace = f.ID, w.Trace
	d.done[key] = out
	return out
}

// repeated is the answer to a wait named again in a batch: it sees what the first did.
func repeated(before store.Offer) store.Offer {
	switch before.Outcome {
	case store.OfferDelivered:
		before.Outcome, before.Resume, before.Woken = store.OfferAlreadyDelivered, false, true
	case store.OfferReleased:
		before.Outcome, before.Closed = store.OfferClosed, rendezvous.ClosedEnded
	}
	return before
}

// past answers for a wait that has no row (any more).
func (d *redelivery) past(f *flow, run *backend.Run, s standing) store.Offer {
	out := store.Offer{WorkflowID: f.ID}
	switch closing := s.closing(); {
	case closing == rendezvous.ClosedAnswered:
		var a rendezvous.WaitAnsweredData
		if err := rendezvous.DecodeData(*s.closed, &a); err != nil {
			return store.Offer{Outcome: store.OfferFailed, WorkflowID: f.ID, Err: err}
		}
		out.Outcome, out.Seq, out.Queue = store.OfferAlreadyDelivered, s.closed.Seq, f.Queue
		out.Event = rendezvous.EventID{Source: a.EventSource, ID: a.EventID}
		if mark := d.marks[f.Key()]; stillWoken(run, mark, s.closed) {
			out.Woken = true
			d.owed = append(d.owed, f)
		}
	case closing != "":
		out.Outcome, out.Closed, out.Seq = store.OfferClosed, closing, s.closed.Seq
	case s.opened == nil:
		out.Outcome = store.OfferClosed
	case !current(f, run):
		out.Outcome, out.Closed = store.OfferClosed, rendezvous.ClosedEnded
	default:
		out.Outcome = store.OfferNothingHeld
	}
	return out
}

// stillWoken reports whether nobody took the run's lease since that record. A mark set later than the record is about something else.
func stillWoken(run *backend.Run, mark *backend.Woken, r *rendezvous.Record) bool {
	return mark != nil && mark.RunID == run.ID && !mark.Since.After(r.RecordedAt)
}

// notice repeats the notices of runs that are woken still, to those that may have one: one per run, and none beside that of a new mark.
func (d *redelivery) notice() {
	for _, f := range distinct(d.owed) {
		if !f.free || f.woken != nil || f.Status == rendezvous.StatusPaused {
			continue
		}
		d.u.notices.Resume = append(d.u.notices.Resume, repeatOf(d.marks[f.Key()]))
	}
}

// parked works a wait that has a row.
func (d *redelivery) parked(f *flow, run *backend.Run, w *backend.Wait) store.Offer {
	out := store.Offer{}
	if w.Held != nil {
		out.Event = rendezvous.EventID{Source: w.Held.Source, ID: w.Held.ID}
		if e := d.pairs.held[w.Held.Number]; e != nil {
			out.EventTrace = e.Trace
		}
	}
	switch {
	case !current(f, run):
		return d.release(w, out)
	case w.Held == nil && w.Corrupt == nil:
		out.Outcome = store.OfferNothingHeld
		return out
	case !w.QuarantinedAt.IsZero():
		out.Outcome, out.Quarantined = store.OfferQuarantined, true
		return out
	case !f.free:
		out.Outcome, out.Remaining = store.OfferParked, f.LeaseExpires.Sub(d.u.now)
		return out
	}
	e, err := d.pairs.judge(w)
	switch {
	case err == nil:
		row := d.u.answer(f, w, e)
		out.Outcome, out.Seq, out.Queue, out.Resume = store.OfferDelivered, row.Seq, f.Queue, f.Status != rendezvous.StatusPaused
	case d.u.leftOver(w, d.pairs):
		out = d.past(f, run, d.pairs.stand[w.Key()])
	default:
		d.u.failAttempt(w, err)
		out.Outcome, out.Err, out.Quarantined = store.OfferFailed, err, !w.QuarantinedAt.IsZero()
	}
	return out
}

// release lets go of what a wait of a sealed run holds; such a row, possible only after a restore, is never just destroyed.
func (d *redelivery) release(w *backend.Wait, out store.Offer) store.Offer {
	if w.Corrupt != nil {
		out.Outcome, out.Err = store.OfferFailed, w.Corrupt
		return out
	}
	loose, err := d.u.settle(w, d.pairs.held, d.stand[w.Key()], rendezvous.DeadAddresseeConcluded)
	switch {
	case err != nil:
		out.Outcome, out.Err = store.OfferFailed, err
	case loose == nil:
		out.Outcome, out.Closed = store.OfferClosed, rendezvous.ClosedEnded
	default:
		out.Outcome, out.Reason = store.OfferReleased, loose.DeadReason
	}
	return out
}
