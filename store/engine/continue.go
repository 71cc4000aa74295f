package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// ContinueAsNew implements [store.Runs].
func (t *tenant) ContinueAsNew(ctx context.Context, c store.Continuation, at time.Time) (store.Continued, error) {
	b, err := newContinuation(t.name, c)
	if err != nil {
		return store.Continued{}, err
	}
	o, notices, err := t.append(ctx, "continue_as_new", at, b)
	if err != nil {
		return store.Continued{}, err
	}
	answer := store.Continued{RunID: o.NextRun, Seq: o.Seq, Again: o.again, Notices: notices}
	if o.Retired != nil {
		answer.Retired = *o.Retired
	}
	return answer, nil
}

// newContinuation judges a continuation by its shape. Its records are made under the lock: type and queue carry over from the row.
func newContinuation(tenant string, c store.Continuation) (*batch, error) {
	b := &batch{tenant: tenant, run: c.RunID, id: c.BatchID, epoch: c.Epoch, expected: c.ExpectedSeq}
	if err := b.check(); err != nil {
		return nil, err
	}
	shape := store.Start{
		RunID: c.NextRun, Type: cmp.Or(c.Type, "any"), Queue: c.Queue, Input: c.Input, CodeVersion: c.CodeVersion, Deadline: c.Deadline, DeadlineAfter: c.DeadlineAfter,
	}
	if err := checkStart(shape); err != nil {
		return nil, err
	}
	sum := newDigest("continue_as_new")
	sum.text(c.RunID, c.NextRun, c.Type, c.Queue, c.ContentType, c.CodeVersion)
	sum.number(c.ExpectedSeq)
	sum.deadline(c.Deadline, c.DeadlineAfter)
	sum.bytes(c.Input)
	b.digest = sum.sum()
	if c.NextRun == "" {
		next, err := mintID()
		if err != nil {
			return nil, err
		}
		c.NextRun = next
	}
	b.build = func(_ context.Context, _ *unit, f *flow) ([]rendezvous.Record, error) {
		return continuation(c, f.Type, f.Queue)
	}
	_, err := continuation(c, "any", rendezvous.DefaultQueue)
	return b, err
}

// continuation makes the two linked records (G2), with type and queue carried over where none is given.
func continuation(c store.Continuation, kind, queue string) ([]rendezvous.Record, error) {
	next := rendezvous.RunStartedData{Type: cmp.Or(c.Type, kind), Queue: cmp.Or(c.Queue, queue), PreviousRun: c.RunID, CodeVersion: c.CodeVersion}
	next.Deadline, next.DeadlineAfter = deadlineData(c.Deadline, c.DeadlineAfter)
	records := []rendezvous.Record{
		{RunID: c.RunID, Kind: rendezvous.RunContinued, Operator: c.Operator, Data: rendezvous.EncodeData(rendezvous.RunContinuedData{NextRun: c.NextRun})},
		{
			RunID: c.NextRun, Kind: rendezvous.RunStarted, Operator: c.Operator, Data: rendezvous.EncodeData(next),
			Payload: c.Input, ContentType: c.ContentType,
		},
	}
	for i, r := range records {
		checked, err := r.CheckAppended()
		if err != nil {
			return nil, err
		}
		checked.Batch = c.BatchID
		records[i] = checked
	}
	return records, checkPlaces(c.RunID, records)
}

// continueAs ends the run and begins its next in one: the same seal and the same retirement as a conclusion, but the lease stays with its holder and a
// pending cancel goes over (RN-46).
func (w *writing) continueAs(ctx context.Context, end, start rendezvous.Record) error {
	timers, err := w.retireTimers(ctx, w.f)
	if err != nil {
		return err
	}
	row := w.record(w.f, end)
	retired, err := w.retireRun(ctx, w.run)
	if err != nil {
		return err
	}
	retired.Timers = timers
	if err := w.seal(w.f, w.run, row, retired); err != nil {
		return err
	}
	next, err := w.begin(w.f, start, w.run)
	if err != nil {
		return err
	}
	w.o.Seq, w.o.NextRun, w.o.Retired = next.FirstSeq, next.ID, &retired
	return nil
}
