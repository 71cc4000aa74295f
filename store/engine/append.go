package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Append implements [store.Runs].
func (t *tenant) Append(ctx context.Context, a store.Append, at time.Time) (store.Appended, error) {
	b, err := newAppend(t.name, a)
	if err != nil {
		return store.Appended{}, err
	}
	o, notices, err := t.append(ctx, "append", at, b)
	if err != nil {
		return store.Appended{}, err
	}
	room := rendezvous.MaxCollectBytes
	for _, a := range o.records {
		room -= len(a.Record.Payload)
	}
	answer := store.Appended{FirstSeq: o.First, Head: o.Head, Answers: o.records, Mail: o.mail, Again: o.again, Notices: notices}
	t.lookAgain(ctx, at, o.regs, room, &answer)
	return answer, nil
}

// lookAgain takes the second look of the waits that found nothing (O6); what it records counts to the head, for the driver's next expected seq.
func (t *tenant) lookAgain(ctx context.Context, at time.Time, regs []*registration, room int, answer *store.Appended) {
	if len(regs) == 0 {
		return
	}
	answer.Notices.Append(t.secondLook(ctx, at, regs, room))
	for _, r := range regs {
		if r.out.Parked {
			answer.Mail.Mail++
		}
		if r.out.Answer != nil {
			answer.Answers = append(answer.Answers, store.Answer{Effect: r.wait.Effect, Seq: r.out.Seq, Record: *r.out.Answer})
		}
		if r.closing != "" {
			answer.Head = max(answer.Head, r.out.Seq)
		}
	}
}

// newAppend is check 1: the batch by its shape and limits.
func newAppend(tenant string, a store.Append) (*batch, error) {
	b := &batch{tenant: tenant, workflow: a.WorkflowID, run: a.RunID, id: a.BatchID, epoch: a.Epoch, expected: a.ExpectedSeq}
	if err := b.check(); err != nil {
		return nil, err
	}
	if len(a.Records) > rendezvous.MaxAppendRecords {
		return nil, rendezvous.OverLimit("records", rendezvous.MaxAppendRecords, len(a.Records))
	}
	sum := newDigest("append")
	sum.text(a.WorkflowID, a.RunID)
	sum.number(a.ExpectedSeq)
	size := 0
	for i, r := range a.Records {
		checked, err := checkRecord(i, r)
		if err != nil {
			return nil, err
		}
		checked.Batch = a.BatchID
		size += len(checked.Payload) + len(checked.Data)
		sum.record(checked)
		b.records = append(b.records, checked)
	}
	b.digest = sum.sum()
	if size > rendezvous.MaxAppendBytes {
		return nil, rendezvous.OverLimit("records", rendezvous.MaxAppendBytes, size)
	}
	if a.WorkflowID != "" {
		if err := checkFirst(a.WorkflowID, b.records); err != nil {
			return nil, err
		}
	}
	return b, checkPlaces(a.RunID, b.records)
}

// checkRecord judges one record by its shape and says which one it is.
func checkRecord(i int, r rendezvous.Record) (rendezvous.Record, error) {
	if r.Kind == rendezvous.RunReopened {
		return r, misplaced(i, "(%s) is not appended; reopen the run by its verb", r.Kind)
	}
	r.Seq, r.RecordedAt, r.Unknown = 0, time.Time{}, false // the store's to give
	checked, err := r.CheckAppended()
	return checked, placed(err, i)
}

// checkFirst judges a batch that names its workflow: it is the first one, and begins it (RN-1, HI-10).
func checkFirst(workflow string, records []rendezvous.Record) error {
	if err := rendezvous.CheckID("workflow_id", workflow); err != nil {
		return err
	}
	if len(records) == 0 || records[0].Kind != rendezvous.RunStarted {
		return rendezvous.InvalidField("workflow_id", "is for a workflow's first batch, which begins with %s; leave it out", rendezvous.RunStarted)
	}
	return nil
}

// append makes checks 2 to 7 of runs.md section 2 in their order and writes the batch.
func (u *unit) append(ctx context.Context, b *batch) (*outcome, error) {
	if b.begins() {
		return u.appendFirst(ctx, b)
	}
	f, run, err := u.lockRun(ctx, b.tenant, b.run)
	if run == nil {
		return nil, err
	}
	before, knownErr := u.known(ctx, b) // under the lock: a repeat sent along with the first sees what that one did
	if before != nil || knownErr != nil {
		if knownErr != nil {
			return nil, knownErr
		}
		return before, u.repeat(ctx, f, b.run, before)
	}
	if err != nil {
		return nil, err
	}
	if err := u.checkLease(f, b.epoch); err != nil {
		return nil, err
	}
	if b.expected != f.Head && !b.anyHead {
		return nil, headConflict(b.expected, f.Head)
	}
	if b.build != nil {
		if b.records, err = b.build(ctx, u, f); err != nil {
			return nil, err
		}
	}
	return u.write(ctx, f, run, b)
}

// appendFirst is a batch that begins its workflow: StartRun by way of Append. Check 3 falls away; taken ids are a conflict that names the holder.
func (u *unit) appendFirst(ctx context.Context, b *batch) (*outcome, error) {
	before, err := u.known(ctx, b)
	if err != nil {
		return nil, err
	}
	h, err := u.holders(ctx, b.tenant, b.workflow, b.run)
	switch {
	case err != nil:
		return nil, err
	case before != nil && h.workflow == nil:
		return nil, backend.ErrStale
	case before != nil:
		return before, u.repeat(ctx, &flow{Workflow: h.workflow}, b.run, before)
	case h.root != nil:
		return nil, workflowTaken(h.root)
	case h.run != nil:
		return nil, runTaken(h.run)
	case b.epoch != 0:
		return nil, fenced(0) // RN-23: nobody ever leased it
	case b.expected != 0:
		return nil, headConflict(b.expected, 0)
	}
	return u.write(ctx, u.newFlow(b.tenant, b.workflow), nil, b)
}

// write judges legal order and writes the batch with everything its records do.
func (u *unit) write(ctx context.Context, f *flow, run *backend.Run, b *batch) (*outcome, error) {
	facts, err := u.orderFacts(ctx, f, b)
	if err != nil {
		return nil, err
	}
	if err := checkOrder(facts, b.records); err != nil {
		return nil, err
	}
	w := &writing{unit: u, f: f, run: run, b: b, o: &outcome{}, authors: -1}
	if err := w.prepare(ctx); err != nil {
		return nil, err
	}
	if w.o.refused != nil {
		return w.o, nil
	}
	before, waits := f.Head, f.OpenWaits
	if err := w.records(ctx); err != nil {
		return nil, err
	}
	last := f.Head
	if err := w.register(ctx); err != nil {
		return nil, err
	}
	w.o.Head = f.Head
	if len(b.records) > 0 {
		w.o.First = before + 1
		if err := u.keep(b, before+1, last, *w.o); err != nil {
			return nil, err
		}
	}
	w.o.mail, err = w.mail(ctx, waits)
	return w.o, err
}

// orderFacts reads what legal order is judged from, set-based.
func (u *unit) orderFacts(ctx context.Context, f *flow, b *batch) (orderFacts, error) {
	facts := orderFacts{
		run: f.RunID, status: f.Status, pausing: f.Pause != nil, head: f.Head, reopened: f.Reopened, effects: map[string][]rendezvous.Record{},
	}
	if f.RunID == "" {
		return facts, nil
	}
	seen := map[backend.WaitKey]struct{}{}
	var keys []backend.WaitKey
	closings := 0
	for _, r := range b.records {
		key := backend.WaitKey{Tenant: f.Tenant, RunID: f.RunID, Effect: r.Effect}
		if _, again := seen[key]; r.Effect != "" && !again {
			seen[key] = struct{}{}
			keys = append(keys, key)
		}
		if r.Kind.Phase() == rendezvous.PhaseClose {
			closings++
		}
	}
	if len(keys) > 0 {
		stored, err := u.tx.Effects(ctx, keys)
		if err != nil {
			return facts, err
		}
		for key, records := range stored {
			facts.effects[key.Effect] = records
		}
	}
	var err error
	if f.Reopened > 0 && len(keys) > 0 {
		if facts.superseded, err = u.superseded(ctx, f); err != nil {
			return facts, err
		}
	}
	if b.next() == "" || f.OpenEffects == 0 {
		return facts, nil
	}
	facts.open, err = u.tx.OpenEffects(ctx, backend.RunKey{Tenant: f.Tenant, ID: f.RunID}, closings+1)
	return facts, err
}
