package memory

import (
	"bytes"
	"slices"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Rows go in and out as deep copies: nobody outside ever holds what is stored. A row that does not decode goes out with its ids alone, so that nobody
// gets used to what a database could not have told.

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

func copyRequest(r *rendezvous.Request) *rendezvous.Request {
	c := copied(r)
	if c != nil {
		c.Operator = copied(c.Operator)
	}
	return c
}

func copyWorkflow(w *backend.Workflow) *backend.Workflow {
	if w.Corrupt != nil {
		return &backend.Workflow{Tenant: w.Tenant, ID: w.ID, Corrupt: w.Corrupt}
	}
	c := *w
	c.Pause, c.Cancel, c.PausedBy = copyRequest(w.Pause), copyRequest(w.Cancel), copied(w.PausedBy)
	return &c
}

func copyRun(r *backend.Run) *backend.Run {
	c := *r
	c.StartDigest, c.Retired = bytes.Clone(r.StartDigest), bytes.Clone(r.Retired)
	return &c
}

func copyBatch(b *backend.Batch) *backend.Batch {
	c := *b
	c.Digest, c.Outcome = bytes.Clone(b.Digest), bytes.Clone(b.Outcome)
	return &c
}

func copyWoken(w *backend.Woken) *backend.Woken {
	c := *w
	c.Links, c.Anew = slices.Clone(w.Links), false
	return &c
}

// copyRecord marks what this build does not know: it is kept verbatim.
func copyRecord(r rendezvous.Record) rendezvous.Record {
	r.Unknown = !r.Kind.Known() || r.V != rendezvous.KindVersion
	r.Data, r.Payload, r.Operator = bytes.Clone(r.Data), bytes.Clone(r.Payload), copied(r.Operator)
	return r
}

func copyEvent(e *backend.Event, payload bool) *backend.Event {
	if e.Corrupt != nil {
		return readableEvent(e)
	}
	c := *e
	c.Keys, c.Digest, c.Minted, c.OpBy = slices.Clone(e.Keys), bytes.Clone(e.Digest), copied(e.Minted), copied(e.OpBy)
	c.Shed, c.Rekey, c.HasPayload, c.PayloadSize = false, false, e.Payload != nil, len(e.Payload)
	if payload {
		c.Payload = bytes.Clone(e.Payload)
	} else {
		c.Payload, c.ContentType = nil, ""
	}
	return &c
}

// readableEvent is what a damaged row still tells: who it is, where it stands, and what counts its failures.
func readableEvent(e *backend.Event) *backend.Event {
	return &backend.Event{
		Version: e.Version, Keyed: e.Keyed, Listed: e.Listed, Number: e.Number, Tenant: e.Tenant, Source: e.Source, ID: e.ID, State: e.State,
		DeadReason: e.DeadReason, DeadDetail: e.DeadDetail, DeadAt: e.DeadAt, ClaimRun: e.ClaimRun, ClaimEffect: e.ClaimEffect, OfferFailures: e.OfferFailures, Take: e.Take, TakeUntil: e.TakeUntil, TakeOpen: e.TakeOpen,
		Takes: e.Takes, Corrupt: e.Corrupt,
	}
}

func copyWait(w *backend.Wait) *backend.Wait {
	if w.Corrupt != nil {
		return readableWait(w)
	}
	c := *w
	c.Keys, c.Held = slices.Clone(w.Keys), copied(w.Held)
	return &c
}

func copyTimer(t *backend.Timer) *backend.Timer {
	if t.Corrupt == nil {
		return copied(t)
	}
	return &backend.Timer{ // what a damaged row still tells
		Tenant: t.Tenant, WorkflowID: t.WorkflowID, TimerID: t.TimerID, RunID: t.RunID, Shard: t.Shard, FireAt: t.FireAt, DueAt: t.DueAt, ReadyAt: t.ReadyAt,
		Attempts: t.Attempts, Parks: t.Parks, Token: t.Token, Holder: t.Holder, HoldEpoch: t.HoldEpoch, HeldUntil: t.HeldUntil, Corrupt: t.Corrupt,
	}
}

// readableWait is what a damaged row still tells.
func readableWait(w *backend.Wait) *backend.Wait {
	c := &backend.Wait{
		Version: w.Version, Keyed: w.Keyed, Number: w.Number, Tenant: w.Tenant, RunID: w.RunID, Effect: w.Effect, Attempts: w.Attempts,
		NextAttemptAt: w.NextAttemptAt, Take: w.Take, TakeUntil: w.TakeUntil, TakeSettled: w.TakeSettled, QuarantinedAt: w.QuarantinedAt,
		Corrupt: w.Corrupt,
	}
	if w.Held != nil {
		c.Held = &backend.HeldEvent{Number: w.Held.Number}
	}
	return c
}
