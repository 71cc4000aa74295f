package engine

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// writing is a batch on its way into the changes: each record with what it does besides.
type writing struct {
	*unit
	f     *flow
	run   *backend.Run // nil until the batch began it
	b     *batch
	o     *outcome
	waits map[string]*backend.Wait // rows of the waits that the batch answers or withdraws
	held  map[int64]*backend.Event // the events they hold
	// timers are the live armings that the batch is about, by id, as its records leave them; authors is how many author timers the run has, -1 while not counted.
	timers  map[string]*backend.Timer
	authors int
	regs    []*registration
}

// prepare reads the rows that the batch's closings of waits are about, and judges them before anything is written.
func (w *writing) prepare(ctx context.Context) error {
	if next := w.b.next(); next != "" {
		key := backend.RunKey{Tenant: w.f.Tenant, ID: next}
		runs, err := w.tx.Runs(ctx, []backend.RunKey{key})
		if err != nil {
			return err
		}
		if taken := runs[key]; taken != nil {
			return runTaken(taken)
		}
		if err := w.checkRemnants(ctx, w.f.Tenant, "", next); err != nil {
			return err
		}
	}
	var keys []backend.WaitKey
	for _, r := range w.b.records {
		if r.Kind == rendezvous.WaitAnswered || r.Kind == rendezvous.WaitWithdrawn || r.Kind == rendezvous.WaitTimedOut {
			keys = append(keys, backend.WaitKey{Tenant: w.f.Tenant, RunID: r.RunID, Effect: r.Effect})
		}
	}
	if err := w.readTimers(ctx); err != nil {
		return err
	}
	if len(keys) == 0 {
		return nil
	}
	if err := w.readWaits(ctx, keys); err != nil {
		return err
	}
	if err := w.checkAnswers(ctx); err != nil {
		return err
	}
	return w.lastLook(ctx)
}

// readWaits reads the rows of those waits and what they hold.
func (w *writing) readWaits(ctx context.Context, keys []backend.WaitKey) error {
	rows, err := w.tx.Waits(ctx, keys)
	if err != nil {
		return err
	}
	w.waits = map[string]*backend.Wait{}
	for key, row := range rows {
		if row.Corrupt != nil {
			return row.Corrupt
		}
		w.waits[key.Effect] = row
	}
	w.held, err = w.heldBy(ctx, slices.Collect(maps.Values(w.waits)))
	return err
}

// checkAnswers judges the batch's answers. Payloads are read only where the writer gave one of the same size: what it may read is bounded by what it sent.
func (w *writing) checkAnswers(ctx context.Context) error {
	given := map[int64]int{}
	var numbers []int64
	for i, r := range w.b.records {
		if r.Kind != rendezvous.WaitAnswered {
			continue
		}
		if err := w.checkAnswered(r); err != nil {
			return placed(err, i)
		}
		if r.Payload != nil {
			number := w.waits[r.Effect].Held.Number
			given[number] = i
			numbers = append(numbers, number)
		}
	}
	if len(numbers) == 0 {
		return nil
	}
	events, err := w.tx.EventsByNumber(ctx, numbers, true)
	if err != nil {
		return err
	}
	for number, i := range given {
		r := w.b.records[i]
		if e := events[number]; e == nil || !bytes.Equal(r.Payload, e.Payload) {
			return placed(answerDiffers(r, "payload"), i)
		}
	}
	return nil
}

// checkAnswered judges a WaitAnswered by the rows: the wait holds exactly this event (RN-9), and what the record says of it besides agrees (R5).
func (w *writing) checkAnswered(r rendezvous.Record) error {
	var d rendezvous.WaitAnsweredData
	if err := rendezvous.DecodeData(r, &d); err != nil {
		return err
	}
	row := w.waits[r.Effect]
	if row == nil || row.Held == nil {
		return effectConflict(r, "nothing", "wait %q holds no event; only a held one is its answer", r.Effect)
	}
	if row.Held.Source != d.EventSource || row.Held.ID != d.EventID {
		return effectConflict(r, row.Held.ID, "wait %q holds event %q of %q, not the one named", r.Effect, row.Held.ID, row.Held.Source)
	}
	e := w.held[row.Held.Number]
	if e == nil || e.Corrupt != nil || !holds(row, e) {
		return brokenPair(row, "the claim it holds does not stand on the event's side")
	}
	differs := ""
	switch {
	case d.EventType != "" && d.EventType != e.Type:
		differs = "event_type"
	case d.ReceivedAt != "" && d.ReceivedAt != rendezvous.FormatInstant(e.ReceivedAt):
		differs = "received_at"
	case r.Source != "" && r.Source != e.Source:
		differs = "source"
	case r.Payload != nil && (len(r.Payload) != e.PayloadSize || !e.HasPayload):
		differs = "payload"
	default:
		return nil
	}
	return answerDiffers(r, differs)
}

// answerDiffers says that a writer's copy of the event is not the stored one.
func answerDiffers(r rendezvous.Record, field string) error {
	return effectConflict(r, field, "the %s given for the answer of %q is not the event's; leave it out, the store fills it in", field, r.Effect).
		With("field", field)
}

// records writes the batch's records in order.
func (w *writing) records(ctx context.Context) error {
	for i, r := range w.b.records {
		if r.Kind == rendezvous.RunContinued {
			return w.continueAs(ctx, r, w.b.records[i+1]) // they are the last two
		}
		if err := w.one(ctx, i, r); err != nil {
			return err
		}
	}
	return nil
}

// one writes one record and what it does besides (runs.md section 2).
func (w *writing) one(ctx context.Context, i int, r rendezvous.Record) error {
	switch {
	case r.Kind == rendezvous.RunStarted:
		run, err := w.begin(w.f, r, nil)
		w.run = run
		return err
	case r.Kind.Terminal():
		if r.Kind == rendezvous.RunTimedOut {
			if err := w.checkRunDeadline(&r); err != nil {
				return placed(err, i)
			}
		}
		ended, err := w.conclude(ctx, w.f, w.run, r)
		w.o.Seq, w.o.Retired = ended.seq, &ended.retired
		return err
	case r.Kind == rendezvous.RunPaused:
		w.settlePause(w.f, w.record(w.f, r))
	case r.Kind == rendezvous.RunResumed:
		w.settleResume(w.f, w.record(w.f, r))
	case r.Kind == rendezvous.WaitRegistered:
		due, err := w.resolveWait(&r)
		if err != nil {
			return placed(err, i)
		}
		row := w.record(w.f, r)
		if !w.b.ends() && !w.withdrawnLater(i, r) {
			return w.note(r, due, row.Seq)
		}
	case r.Kind == rendezvous.WaitTimedOut:
		wait := w.waits[r.Effect]
		w.label(w.timeOut(w.f, wait, w.due(wait)), r)
	case r.Kind == rendezvous.TimerStarted, r.Kind == rendezvous.TimerFired, r.Kind == rendezvous.TimerCancelled:
		return placed(w.timer(ctx, r), i)
	case r.Kind == rendezvous.WaitAnswered:
		wait := w.waits[r.Effect]
		w.label(w.answer(w.f, wait, w.held[wait.Held.Number]), r)
	case r.Kind == rendezvous.WaitWithdrawn && w.waits[r.Effect] != nil:
		row, _, err := w.withdrawHeld(w.f, w.waits[r.Effect], w.held, "")
		if err != nil {
			return err
		}
		row.Data = r.Data
		w.label(row, r)
	default:
		w.record(w.f, r)
	}
	return nil
}

// label gives a record that the store makes for its writer what only the writer knows.
func (w *writing) label(row *backend.Record, r rendezvous.Record) {
	row.Batch, row.Operator = w.b.id, r.Operator
}

// withdrawnLater reports whether the batch gives up the wait it registers: it then never needs a row.
func (w *writing) withdrawnLater(i int, registered rendezvous.Record) bool {
	for _, r := range w.b.records[i+1:] {
		if r.Kind == rendezvous.WaitWithdrawn && r.Effect == registered.Effect && r.Attempt == registered.Attempt {
			return true
		}
	}
	return false
}

// note keeps a registration for behind the batch's records: its answer follows them (events.md section 5).
func (w *writing) note(r rendezvous.Record, due time.Time, seq int64) error {
	var d rendezvous.WaitRegisteredData
	if err := rendezvous.DecodeData(r, &d); err != nil {
		return err
	}
	wait, err := rendezvous.Wait{
		WaitID: rendezvous.WaitID{RunID: r.RunID, Effect: r.Effect}, Attempt: r.Attempt, Type: d.Type, Keys: d.Keys, From: d.From, Deadline: due,
	}.Check()
	w.regs = append(w.regs, &registration{f: w.f, wait: wait, epoch: w.b.epoch, claim: true, seq: seq, due: wait.Deadline})
	return err
}

// register makes the rows of the batch's waits, or takes the events that are there for them. One that fails undoes the batch.
func (w *writing) register(ctx context.Context) error {
	if len(w.regs) == 0 {
		return nil
	}
	if err := w.unit.register(ctx, w.regs, rendezvous.MaxCollectBytes); err != nil {
		return err
	}
	for _, r := range w.regs {
		if r.err != nil {
			return r.err
		}
		if a := r.out.Answer; a != nil {
			w.o.Answers = append(w.o.Answers, keptAnswer{Effect: r.wait.Effect, Seq: a.Seq})
			w.o.records = append(w.o.records, store.Answer{Effect: r.wait.Effect, Seq: a.Seq, Record: *a})
		}
		if r.look {
			w.o.regs = append(w.o.regs, r)
		}
	}
	return nil
}

// mail is what the batch's writer is told besides; waits is how many were open before it. Parked waits that the batch closes count no more.
func (w *writing) mail(ctx context.Context, waits int) (store.Mail, error) {
	if w.f.Status.Terminal() {
		return store.Mail{}, nil
	}
	if w.b.next() != "" {
		return store.Mail{Requests: requests(w.f.Workflow)}, nil
	}
	mail := store.Mail{Requests: requests(w.f.Workflow)}
	var err error
	if waits > 0 {
		mail, err = w.unit.mail(ctx, w.f)
	}
	for _, r := range w.regs {
		if r.late {
			mail.Mail++ // the store does not count it yet
		}
	}
	for _, row := range w.waits {
		if !row.ParkedAt.IsZero() && row.QuarantinedAt.IsZero() {
			mail.Mail--
		}
	}
	return mail, err
}

// placed says which record of a batch an error is about.
func placed(err error, i int) error {
	var e *rendezvous.Error
	if errors.As(err, &e) {
		return e.With("record", i)
	}
	return err
}
