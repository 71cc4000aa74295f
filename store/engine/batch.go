package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
	"time"

	"github.com/google/uuid"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// batch is what Append, Conclude and ContinueAsNew have in common: records of one run, written at an expected head under a name.
type batch struct {
	tenant   string
	workflow string // only of a batch that begins its workflow
	run, id  string
	epoch    int64
	expected int64
	digest   []byte
	trace    rendezvous.Trace    // of the request, kept with the timers it arms
	records  []rendezvous.Record // checked by shape and place
	anyHead  bool                // it is written at the head it finds; expected is none
	// build, under the lock, makes the records where they depend on what is stored.
	build func(ctx context.Context, u *unit, f *flow) ([]rendezvous.Record, error)
}

func (b *batch) key() backend.BatchKey {
	return backend.BatchKey{Tenant: b.tenant, RunID: b.run, ID: b.id}
}

// begins reports whether the batch begins its workflow.
func (b *batch) begins() bool { return b.workflow != "" }

// ends reports whether the batch ends its run, by a terminal or by going on as a new one.
func (b *batch) ends() bool {
	for _, r := range b.records {
		if r.Kind.Terminal() {
			return true
		}
	}
	return false
}

// next is the run that the batch continues as, "" for none.
func (b *batch) next() string {
	if n := len(b.records); n > 1 && b.records[n-2].Kind == rendezvous.RunContinued {
		return b.records[n-1].RunID
	}
	return ""
}

// check is check 1 of what all batches share (runs.md section 2).
func (b *batch) check() error {
	if err := rendezvous.CheckID("run_id", b.run); err != nil {
		return err
	}
	if err := rendezvous.CheckBatchID("batch_id", b.id); err != nil {
		return err
	}
	if b.expected < 0 {
		return rendezvous.InvalidField("expected_seq", "%d is negative; give the seq of the last record you read, 0 for none", b.expected)
	}
	return nil
}

// outcome is what a batch came to. It is kept as JSON with the batch's row, so that its repeat gets the first answer whatever happened since.
type outcome struct {
	First   int64           `json:"first_seq,omitempty"`
	Head    int64           `json:"head"`
	Answers []keptAnswer    `json:"answers,omitempty"`
	Seq     int64           `json:"seq,omitempty"`      // of the terminal, or of the successor's RunStarted
	NextRun string          `json:"next_run,omitempty"` // of a run continued as new
	Retired *store.Retired  `json:"retired,omitempty"`  // of a run that ended
	FireAt  time.Time       `json:"fire_at,omitzero"`   // of a timer that was armed
	Timers  int             `json:"timers,omitempty"`   // of a run that was reopened
	refused error           // nothing of the batch was written, but what its last look claimed (RN-10)
	again   bool            // the first outcome of a known batch
	records []store.Answer  // the answers whole
	mail    store.Mail      // as it is now, not as it was
	regs    []*registration // waits whose second look is due
}

// keptAnswer is an answer as kept: the record itself is in the history.
type keptAnswer struct {
	Effect string `json:"effect"`
	Seq    int64  `json:"seq"`
}

// known is check 2: the first outcome of a batch that landed, nil for a new one, conflict for another request under its name (RN-6).
func (u *unit) known(ctx context.Context, b *batch) (*outcome, error) {
	rows, err := u.tx.Batches(ctx, []backend.BatchKey{b.key()})
	if err != nil {
		return nil, err
	}
	row := rows[b.key()]
	if row == nil {
		return nil, nil
	}
	if !bytes.Equal(row.Digest, b.digest) {
		return nil, conflict("batch_id", b.id, "batch %q of run %q was another request; choose a new batch id", b.id, b.run).With("first_seq", row.FirstSeq)
	}
	var o outcome
	if err := json.Unmarshal(row.Outcome, &o); err != nil {
		return nil, rendezvous.Errorf(rendezvous.CodeCorrupt, "the kept outcome of batch %q of run %q does not decode", b.id, b.run).
			With("run", b.run).With("batch", b.id).Because(err)
	}
	o.again = true
	return &o, nil
}

// repeat completes a first outcome for its repeat: the answers whole, and mail and requests as they are now.
func (u *unit) repeat(ctx context.Context, f *flow, run string, o *outcome) error {
	if n := len(o.Answers); n > 0 {
		records, err := u.readAll(ctx, f.Key(), o.Answers[0].Seq, o.Answers[n-1].Seq)
		if err != nil {
			return err
		}
		for _, a := range o.Answers {
			i := a.Seq - o.Answers[0].Seq
			if i < 0 || i >= int64(len(records)) {
				return rendezvous.Errorf(rendezvous.CodeCorrupt, "record %d of workflow %q is missing", a.Seq, f.ID).With("workflow", f.ID).With("seq", a.Seq)
			}
			o.records = append(o.records, store.Answer{Effect: a.Effect, Seq: a.Seq, Record: records[i]})
		}
	}
	if f.RunID != run || f.Status.Terminal() {
		return nil
	}
	var err error
	o.mail, err = u.mail(ctx, f)
	return err
}

// readAll reads the records from..to, page by page.
func (u *unit) readAll(ctx context.Context, key backend.WorkflowKey, from, to int64) ([]rendezvous.Record, error) {
	var all []rendezvous.Record
	for from <= to {
		page, err := u.tx.History(ctx, key, from, to, rendezvous.MaxHistoryPage, rendezvous.MaxCollectBytes)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			break
		}
		all = append(all, page...)
		from = page[len(page)-1].Seq + 1
	}
	return all, nil
}

// keep puts the batch's row among the changes. An empty batch is none: it only checked (RN-5).
func (u *unit) keep(b *batch, first, last int64, o outcome) error {
	kept, err := json.Marshal(o)
	if err != nil {
		return err
	}
	u.ch.NewBatches = append(u.ch.NewBatches, &backend.Batch{
		Tenant: b.tenant, RunID: b.run, ID: b.id, Digest: b.digest, FirstSeq: first, LastSeq: last, Outcome: kept,
	})
	return nil
}

// land makes one update of a batch. A commit whose answer was lost is looked up by the batch id before it is called unknown (RN-7): found, the outcome
// that fn left is the one that landed.
func (e *Engine) land(ctx context.Context, verb string, at time.Time, b *batch, fn func(ctx context.Context, u *unit) error) (store.Notices, error) {
	notices, err := e.update(ctx, verb, at, fn)
	if rendezvous.CodeOf(err) != rendezvous.CodeCommitUnknown {
		return notices, err
	}
	landed := false
	if e.view(ctx, verb, func(ctx context.Context, r backend.Reader) error {
		rows, err := r.Batches(ctx, []backend.BatchKey{b.key()})
		row := rows[b.key()]
		landed = err == nil && row != nil && bytes.Equal(row.Digest, b.digest)
		return err
	}) == nil && landed {
		return notices, nil
	}
	return store.Notices{}, err
}

// append is [Engine.land] of a batch that [unit.append] writes.
func (e *Engine) append(ctx context.Context, verb string, at time.Time, b *batch) (*outcome, store.Notices, error) {
	var o *outcome
	notices, err := e.land(ctx, verb, at, b, func(ctx context.Context, u *unit) error {
		got, err := u.append(ctx, b)
		o = got
		return err
	})
	if err == nil {
		err = o.refused
	}
	return o, notices, err
}

// digest sums a request as sent, every part length-prefixed so that no two read alike. The epoch and the operator are not in it: they say who asks, and
// a retry under a newer lease is the same request.
type digest struct{ hash.Hash }

func newDigest(verb string) digest {
	d := digest{sha256.New()}
	d.text(verb)
	return d
}

func (d digest) number(n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	d.Write(b[:])
}

func (d digest) text(parts ...string) {
	for _, s := range parts {
		d.number(int64(len(s)))
		d.Write([]byte(s))
	}
}

func (d digest) deadline(at time.Time, after *time.Duration) {
	if !at.IsZero() {
		d.text("deadline", rendezvous.FormatInstant(rendezvous.DueInstant(at)))
	}
	if after != nil {
		d.text("deadline_after")
		d.number(int64(*after))
	}
}

// bytes tells none from empty.
func (d digest) bytes(b []byte) {
	if b == nil {
		d.number(-1)
		return
	}
	d.number(int64(len(b)))
	d.Write(b)
}

func (d digest) record(r rendezvous.Record) {
	d.text(r.RunID, string(r.Kind), r.Effect)
	d.number(int64(r.Attempt))
	d.bytes(r.Data)
	d.bytes(r.Payload)
	d.text(r.ContentType, r.Source)
}

func (d digest) sum() []byte { return d.Sum(nil) }

// mintID makes an id where the caller named none: a UUID of version 7.
func mintID() (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", unavailable("no id could be minted; try again").Because(err)
	}
	return id.String(), nil
}
