package row

import (
	"encoding/json"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Workflow reads a workflow.
func Workflow(c *Columns) *backend.Workflow {
	w := &backend.Workflow{
		Tenant: c.Text(), ID: c.Text(), Shard: c.Tally(), RunID: c.Text(), Type: c.Text(), Queue: c.Text(), Status: c.Status(), Head: c.Count(),
		CreatedAt: c.Instant(), StartedAt: c.Instant(), ClosedAt: c.InstantOrNone(), UpdatedAt: c.Instant(), Parent: c.Text(),
		FailureCode: c.Text(), FailureReason: c.Text(), FailedEffect: c.Text(), OpenEffects: c.Integer(), OpenWaits: c.Integer(),
		LiveTimers: c.Integer(), Registrations: c.Integer(), Reopened: c.Count(),
		LeaseOwner: c.Text(), LeaseEpoch: c.Count(), LeaseExpires: c.InstantOrNone(), LeaseEnded: rendezvous.LeaseEnd(c.Text()),
		AcquireID: c.Text(), Reclaims: c.Tally(), Pause: c.Request(rendezvous.RequestPause), Cancel: c.Request(rendezvous.RequestCancel),
		PausedBy: c.Operator(), PausedAt: c.InstantOrNone(),
	}
	c.Judge(w.Unsound())
	w.Corrupt = c.Corrupt("workflow row", "tenant", w.Tenant, "workflow", w.ID)
	return w
}

// Run reads a run.
func Run(c *Columns) (*backend.Run, error) {
	r := &backend.Run{
		Tenant: c.Text(), ID: c.Text(), WorkflowID: c.Text(), PreviousRun: c.Text(), NextRun: c.Text(), Status: c.Status(), FirstSeq: c.Count(),
		LastSeq: c.Count(), StartedAt: c.Instant(), ClosedAt: c.InstantOrNone(), SealedAt: c.InstantOrNone(), Outcome: rendezvous.Kind(c.Text()),
		StartDigest: c.Bytes(), Retired: c.Bytes(),
	}
	c.Judge(r.Unsound())
	return r, c.Corrupt("run row", "tenant", r.Tenant, "run", r.ID)
}

// Batch reads a batch.
func Batch(c *Columns) (*backend.Batch, error) {
	b := &backend.Batch{
		Tenant: c.Text(), RunID: c.Text(), ID: c.Text(), Digest: c.Bytes(), FirstSeq: c.Count(), LastSeq: c.Count(), Outcome: c.Bytes(),
	}
	return b, c.Corrupt("batch", "tenant", b.Tenant, "run", b.RunID, "batch", b.ID)
}

// Remnant reads a remnant.
func Remnant(c *Columns) (*backend.Remnant, error) {
	r := &backend.Remnant{Tenant: c.Text(), RunID: c.Text(), WorkflowID: c.Text(), FirstSeq: c.Count(), LastSeq: c.Count()}
	return r, c.Corrupt("remnant of a pruned run", "tenant", r.Tenant, "run", r.RunID)
}

// Woken reads a mark.
func Woken(c *Columns) (*backend.Woken, error) {
	m := &backend.Woken{
		Tenant: c.Text(), WorkflowID: c.Text(), RunID: c.Text(), Queue: c.Text(), Since: c.Instant(), Cause: rendezvous.Cause(c.Text()), Seq: c.Count(),
		Notices: c.Tally(), NextNoticeAt: c.Instant(), Links: c.links(),
	}
	return m, c.Corrupt("mark of a woken run", "tenant", m.Tenant, "workflow", m.WorkflowID)
}

// Record reads a record of that history. What this build does not know is marked and answered as it is; what does not decode is ErrCorrupt (HI-8).
func Record(c *Columns, tenant, workflow string) (rendezvous.Record, error) {
	r := rendezvous.Record{
		Seq: c.Count(), RunID: c.Text(), Kind: rendezvous.Kind(c.Text()), V: c.Integer(), Effect: c.Text(), Attempt: c.Tally(),
		Data: json.RawMessage(c.Text()), Payload: c.Bytes(), ContentType: c.Text(), Source: c.Text(), Operator: c.Operator(), RecordedAt: c.Instant(),
		Batch: c.Text(),
	}
	r.Unknown = !r.Kind.Known() || r.V != rendezvous.KindVersion
	c.Judge(backend.UnsoundRecord(r))
	return r, c.Corrupt("record", "tenant", tenant, "workflow", workflow, "seq", r.Seq)
}

// Event reads an event. Of a row that does not decode, what could be read stays: where it stands and what counts its failures is needed to end it.
func Event(c *Columns) *backend.Event {
	e := &backend.Event{
		Number: c.Count(), Version: c.Count(), Tenant: c.Text(), Source: c.Text(), ID: c.Text(), Type: c.Text(), Keys: c.Keys(), Digest: c.Bytes(),
		ReceivedAt: c.Instant(), LiveSince: c.Instant(), ExpiresAt: c.InstantOrNone(), Target: c.Text(), State: rendezvous.EventState(c.Text()),
		ClaimRun: c.Text(), ClaimEffect: c.Text(), ClaimedAt: c.InstantOrNone(), Workflow: c.Text(), Run: c.Text(), Effect: c.Text(), Seq: c.Count(),
		DeadReason: rendezvous.DeadReason(c.Text()), DeadDetail: c.Text(), DeadAt: c.InstantOrNone(), Erased: c.Boolean(),
		OfferFailures: c.Tally(), Take: c.Count(), TakeUntil: c.InstantOrNone(), TakeOpen: c.Boolean(), Takes: c.Tally(), Requeues: c.Tally(),
		Purged: c.Boolean(), Op: c.Text(), OpBy: c.Operator(), Minted: c.Operator(), Trace: rendezvous.Trace{Parent: c.Text(), State: c.Text()},
	}
	if e.HasPayload = !c.Absent(); e.HasPayload {
		e.PayloadSize = c.Tally()
	}
	e.ContentType, e.Payload = c.Text(), c.Bytes()
	e.Keyed, e.Listed = e.Live(), e.Dead()
	c.Judge(e.Unsound())
	e.Corrupt = c.Corrupt("event", "tenant", e.Tenant, "source", e.Source, "id", e.ID, "number", e.Number)
	return e
}

// Wait reads a wait. Of a row that does not decode, what could be read stays: what counts its failures is needed to quarantine it.
func Wait(c *Columns) *backend.Wait {
	w := &backend.Wait{
		Number: c.Count(), Version: c.Count(), Tenant: c.Text(), RunID: c.Text(), Effect: c.Text(), WorkflowID: c.Text(), Shard: c.Tally(),
		Attempt: c.Tally(), Type: c.Text(), Keys: c.Keys(), From: c.Text(), Trace: rendezvous.Trace{Parent: c.Text(), State: c.Text()},
		RegisteredAt: c.Instant(), Deadline: c.InstantOrNone(), OpenSince: c.Instant(),
	}
	held := backend.HeldEvent{}
	if !c.Absent() {
		held.Number = c.Count()
	}
	held.Source, held.ID, held.Claim = c.Text(), c.Text(), c.Count()
	w.ParkedAt, w.Attempts, w.NextAttemptAt, w.LastError = c.InstantOrNone(), c.Tally(), c.InstantOrNone(), c.Text()
	w.Take, w.TakeUntil, w.TakeSettled, w.QuarantinedAt = c.Count(), c.InstantOrNone(), c.Boolean(), c.InstantOrNone()
	if held.Number != 0 {
		w.Held = &held
	}
	w.Keyed = w.Open()
	c.Judge(w.Unsound(held))
	w.Corrupt = c.Corrupt("wait", "tenant", w.Tenant, "run", w.RunID, "effect", w.Effect, "number", w.Number)
	return w
}
