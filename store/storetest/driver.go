package storetest

import (
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// Driver holds a run's lease. It keeps its epoch when the lease is lost, as a pod does that was asleep.
type Driver struct {
	*Flow
	Owner string
	Epoch int64
	Seen  int64 // the head it has read
}

// Drive takes the run's lease for 30 s, as an incarnation of its own.
func (r *Flow) Drive() *Driver {
	r.F.T.Helper()
	return r.DriveFor(rendezvous.DefaultLease)
}

// DriveFor takes the run's lease for that long.
func (r *Flow) DriveFor(ttl time.Duration) *Driver {
	r.F.T.Helper()
	owner := ID("pod")
	lease := must(r.F.AcquireLease(ctx, r.ID, owner, ttl, ID("acquire")))(r.F.T, "acquire the lease of "+r.ID)
	return &Driver{Flow: r, Owner: owner, Epoch: lease.Epoch, Seen: lease.Head}
}

// Batch makes an append at the head the driver has seen, under its epoch.
func (d *Driver) Batch(records ...rendezvous.Record) store.Append {
	return store.Append{RunID: d.ID, Epoch: d.Epoch, ExpectedSeq: d.Seen, BatchID: ID("batch"), Records: records}
}

// Append writes records and moves what the driver has seen.
func (d *Driver) Append(records ...rendezvous.Record) store.Appended {
	d.F.T.Helper()
	out := must(d.F.Tenant.Append(ctx, d.Batch(records...), now))(d.F.T, "append")
	d.Seen = out.Head
	return out
}

// Register registers a wait under the driver's epoch.
func (d *Driver) Register(w rendezvous.Wait) store.Registered {
	d.F.T.Helper()
	out := must(d.F.RegisterWait(ctx, store.Registration{Wait: w, Epoch: d.Epoch}, now))(d.F.T, "register "+w.Effect)
	d.Seen = d.Head()
	return out
}

// Waits registers a wait under the driver's epoch that nothing answers yet.
func (d *Driver) Waits(effect, kind string, keys ...rendezvous.Key) rendezvous.Wait {
	d.F.T.Helper()
	w := d.Wait(effect, kind, keys...)
	eq(d.F.T, "outcome of registering "+effect, d.Register(w).Outcome, store.RegisterWaiting)
	return w
}

// Suspend offers the lease back.
func (d *Driver) Suspend() store.Suspended {
	d.F.T.Helper()
	out := must(d.F.Tenant.Suspend(ctx, d.ID, d.Epoch, d.Seen, false))(d.F.T, "suspend "+d.ID)
	d.Seen = max(d.Seen, out.Head)
	return out
}

// Collect records the parked answers.
func (d *Driver) Collect() store.Collected {
	d.F.T.Helper()
	out := must(d.F.Tenant.Collect(ctx, d.ID, d.Epoch))(d.F.T, "collect for "+d.ID)
	d.Seen = max(d.Seen, out.Head)
	return out
}

// Release gives the lease up.
func (d *Driver) Release() store.Suspended {
	d.F.T.Helper()
	return must(d.F.ReleaseLease(ctx, d.ID, d.Epoch))(d.F.T, "release "+d.ID)
}

// Conclude ends the run under the driver's epoch.
func (d *Driver) Conclude(outcome rendezvous.Status) store.Concluded {
	d.F.T.Helper()
	c := d.Conclusion(outcome)
	c.Epoch = d.Epoch
	return must(d.F.Tenant.Conclude(ctx, c, now))(d.F.T, "conclude "+d.ID)
}

// AppendFree writes records without a lease, at the present head.
func (r *Flow) AppendFree(records ...rendezvous.Record) store.Appended {
	r.F.T.Helper()
	a := store.Append{RunID: r.ID, ExpectedSeq: r.Head(), BatchID: ID("batch"), Records: records}
	return must(r.F.Append(ctx, a, now))(r.F.T, "append")
}

// record makes a record of the run.
func (r *Flow) record(kind rendezvous.Kind, effect string, data any) rendezvous.Record {
	rec := rendezvous.Record{RunID: r.ID, Kind: kind, Effect: effect}
	if data != nil {
		rec.Data = rendezvous.EncodeData(data)
	}
	return rec
}

// Begun makes effect.started.
func (r *Flow) Begun(effect string) rendezvous.Record {
	return r.record(rendezvous.EffectStarted, effect, rendezvous.NameData{Name: "charge"})
}

// Done makes effect.done.
func (r *Flow) Done(effect string) rendezvous.Record {
	return r.record(rendezvous.EffectDone, effect, nil)
}

// Failed makes effect.failed.
func (r *Flow) Failed(effect string, retryable bool) rendezvous.Record {
	return r.record(rendezvous.EffectFailed, effect, rendezvous.EffectFailedData{Code: "refused", Reason: "no funds", Retryable: retryable})
}

// Noted makes note.
func (r *Flow) Noted(name string) rendezvous.Record {
	return r.record(rendezvous.Note, "", rendezvous.NameData{Name: name})
}

// Waited makes wait.registered of a wait.
func (r *Flow) Waited(w rendezvous.Wait) rendezvous.Record {
	rec := r.record(rendezvous.WaitRegistered, w.Effect, rendezvous.WaitRegisteredData{Type: w.Type, Keys: w.Keys, From: w.From})
	rec.Attempt = w.Attempt
	return rec
}

// Withdrawn makes wait.withdrawn.
func (r *Flow) Withdrawn(effect string) rendezvous.Record {
	return r.record(rendezvous.WaitWithdrawn, effect, nil)
}

// Answered makes wait.answered by an event.
func (r *Flow) Answered(effect string, e rendezvous.Event) rendezvous.Record {
	return r.record(rendezvous.WaitAnswered, effect, rendezvous.WaitAnsweredData{EventSource: e.Source, EventID: e.ID, EventType: e.Type})
}

// Paused makes run.paused.
func (r *Flow) Paused() rendezvous.Record { return r.record(rendezvous.RunPaused, "", nil) }

// Resumed makes run.resumed.
func (r *Flow) Resumed() rendezvous.Record { return r.record(rendezvous.RunResumed, "", nil) }

// Completed makes run.completed.
func (r *Flow) Completed() rendezvous.Record { return r.record(rendezvous.RunCompleted, "", nil) }

// FailedAs makes run.failed.
func (r *Flow) FailedAs(c string) rendezvous.Record {
	return r.record(rendezvous.RunFailed, "", rendezvous.RunFailedData{Code: c, Reason: "it broke"})
}

// Cancelled makes run.cancelled.
func (r *Flow) Cancelled() rendezvous.Record {
	return r.record(rendezvous.RunCancelled, "", rendezvous.ReasonData{Reason: "not wanted"})
}

// ContinuedTo makes run.continued.
func (r *Flow) ContinuedTo(next string) rendezvous.Record {
	return r.record(rendezvous.RunContinued, "", rendezvous.RunContinuedData{NextRun: next})
}

// StartedAfter makes the run.started of the run's successor.
func (r *Flow) StartedAfter(next string) rendezvous.Record {
	rec := r.record(rendezvous.RunStarted, "", rendezvous.RunStartedData{Type: "order", Queue: rendezvous.DefaultQueue, PreviousRun: r.ID})
	rec.RunID = next
	return rec
}

// Continue continues the run as new and answers its successor.
func (r *Flow) Continue() *Flow {
	r.F.T.Helper()
	c := store.Continuation{RunID: r.ID, ExpectedSeq: r.Head(), BatchID: ID("batch"), NextRun: ID("run")}
	out := must(r.F.ContinueAsNew(ctx, c, now))(r.F.T, "continue "+r.ID)
	return &Flow{F: r.F, WorkflowID: r.WorkflowID, ID: out.RunID}
}
