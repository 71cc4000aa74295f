package backendtest

import (
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

var rowCases = []backendCase{
	{"workflow rows come back as they went in, full and bare", workflowRows},
	{"run rows come back as they went in, and change", runRows},
	{"event rows come back as they went in, payload only when asked", eventRows},
	{"none and empty payloads are two things", payloads},
	{"wait rows come back as they went in, open and parked", waitRows},
	{"batches come back as they went in", batchRows},
	{"rows are the caller's own copies", ownCopies},
	{"keys that name nothing are absent", absentKeys},
}

func workflowRows(x *bench) {
	bare := x.flow(acme, "1")
	at := x.now()
	w, leased := x.flow(acme, "2"), x.flow(acme, "3")
	op := &rendezvous.Operator{Actor: "kim", Basis: rendezvous.BasisAuthenticated}
	w.Status, w.Head, w.ClosedAt, w.UpdatedAt, w.Parent = rendezvous.StatusFailed, 9, at, at.Add(time.Microsecond), "w1"
	w.FailureCode, w.FailureReason, w.FailedEffect, w.OpenEffects, w.OpenWaits = "refused", "no funds\nat all", "charge", 2, 3
	w.LiveTimers, w.Reopened = 4, 7
	w.LeaseEpoch, w.LeaseEnded = 9, rendezvous.LeaseRevoked // a closed workflow has no owner
	leased.LeaseOwner, leased.LeaseEpoch, leased.LeaseExpires, leased.LeaseEnded = "pod", 7, at.Add(time.Hour), rendezvous.LeaseReclaimed
	leased.AcquireID, leased.Reclaims = "a1", 4
	w.Pause = &rendezvous.Request{Kind: rendezvous.RequestPause, Operator: op, Reason: "wait", At: at}
	w.Cancel = &rendezvous.Request{Kind: rendezvous.RequestCancel, At: at}
	w.PausedBy, w.PausedAt = op, at
	x.apply(&backend.Changes{Workflows: []*backend.Workflow{w, leased}}, w.Key(), leased.Key())
	x.view(func(r backend.Reader) {
		rows := got(r.Workflows(ctx, []backend.WorkflowKey{bare.Key(), w.Key(), leased.Key()}))(x)
		eq(x, "workflows", rows, map[backend.WorkflowKey]*backend.Workflow{bare.Key(): bare, w.Key(): w, leased.Key(): leased})
	})
	x.update(func(tx backend.Tx) {
		rows := got(tx.LockWorkflows(ctx, []backend.WorkflowKey{w.Key(), bare.Key(), flowKey(globex, "w1")}))(x)
		eq(x, "locked workflows", rows, map[backend.WorkflowKey]*backend.Workflow{bare.Key(): bare, w.Key(): w})
	})
	for _, change := range []func(){func() { bare.Head, bare.LiveTimers = 2, 1 }, func() { bare.Head, bare.Reopened = 3, 3 }} {
		x.update(func(tx backend.Tx) {
			got(tx.LockWorkflows(ctx, []backend.WorkflowKey{bare.Key()}))(x)
			change()
			if err := tx.Apply(ctx, &backend.Changes{Workflows: []*backend.Workflow{bare}}); err != nil {
				x.Fatal(err)
			}
		})
		x.view(func(r backend.Reader) {
			eq(x, "a changed row", got(r.Workflows(ctx, []backend.WorkflowKey{bare.Key()}))(x)[bare.Key()], bare)
		})
	}
}

func runRows(x *bench) {
	w := x.flow(acme, "1")
	at := x.now()
	next := &backend.Run{
		Tenant: acme, ID: "r1b", WorkflowID: w.ID, PreviousRun: "r1", NextRun: "r1c", Status: rendezvous.StatusContinued, FirstSeq: 5, LastSeq: 9,
		StartedAt: at, ClosedAt: at.Add(time.Second), SealedAt: at.Add(time.Second), Outcome: rendezvous.RunContinued, StartDigest: []byte{0, 1, 2},
		Retired: []byte(`{"waits":1}`),
	}
	last := &backend.Run{
		Tenant: acme, ID: "r1c", WorkflowID: w.ID, PreviousRun: "r1b", Status: rendezvous.StatusRunning, FirstSeq: 10, StartedAt: at,
	}
	x.apply(&backend.Changes{NewRuns: []*backend.Run{next, last}}, w.Key())
	last.Status, last.Outcome, last.LastSeq, last.SealedAt, last.ClosedAt = rendezvous.StatusCompleted, rendezvous.RunCompleted, 12, at, at
	x.apply(&backend.Changes{Runs: []*backend.Run{last}}, w.Key())
	x.view(func(r backend.Reader) {
		rows := got(r.Runs(ctx, []backend.RunKey{next.Key(), last.Key()}))(x)
		eq(x, "runs", rows, map[backend.RunKey]*backend.Run{next.Key(): next, last.Key(): last})
		chain := got(r.RunsOf(ctx, w.Key(), 0, 10))(x)
		eq(x, "length of the chain", len(chain), 3)
		eq(x, "second of the chain", chain[1], next)
		eq(x, "chain after seq 1", got(r.RunsOf(ctx, w.Key(), 1, 1))(x), []*backend.Run{next})
		eq(x, "chain after seq 5", got(r.RunsOf(ctx, w.Key(), 5, 10))(x), []*backend.Run{last})
		eq(x, "chain of another tenant", got(r.RunsOf(ctx, flowKey(globex, w.ID), 0, 10))(x), nil)
	})
}

func eventRows(x *bench) {
	full := x.event(acme, "e1", key("1"), rendezvous.Key{Namespace: "customer", Value: "é\u2028"})
	at := full.ReceivedAt
	full.ExpiresAt, full.Target = at.Add(time.Hour), "r1"
	full.Minted = &rendezvous.Operator{Actor: "kim", Basis: rendezvous.BasisAsserted}
	full.Trace = rendezvous.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b"}
	bare := x.event(acme, "e2")
	x.apply(&backend.Changes{NewEvents: []*backend.Event{full, bare}})
	for _, e := range []*backend.Event{full, bare} {
		e.HasPayload, e.PayloadSize = true, len(e.Payload)
	}
	x.view(func(r backend.Reader) {
		rows := got(r.EventsByKey(ctx, []backend.EventKey{full.Key(), bare.Key()}, true))(x)
		eq(x, "events by key", rows, map[backend.EventKey]*backend.Event{full.Key(): full, bare.Key(): bare})
		numbered := got(r.EventsByNumber(ctx, []int64{full.Number, bare.Number}, true))(x)
		eq(x, "events by number", numbered, map[int64]*backend.Event{full.Number: full, bare.Number: bare})
	})
	if x.read(full).Version == 0 {
		x.Fatal("a stored row has version 0, which is a new row's")
	}
	full.ContentType, full.Payload = "", nil
	eq(x, "event without its payload", x.read(full), full)

	e := x.read(full)
	e.State, e.DeadReason, e.DeadDetail, e.DeadAt = rendezvous.EventDead, rendezvous.DeadErased, "asked\nfor", at
	e.Erased, e.Digest, e.Shed, e.OfferFailures, e.Take, e.TakeUntil, e.TakeOpen, e.Takes, e.Requeues = true, nil, true, 3, 17, at.Add(time.Minute), true, 2, 1
	x.apply(&backend.Changes{Events: []*backend.Event{e}})
	e.Shed, e.HasPayload, e.PayloadSize = false, false, 0
	eq(x, "event after its death", x.read(e), e)
}

func payloads(x *bench) {
	none, empty := x.event(acme, "none"), x.event(acme, "empty")
	none.Payload, empty.Payload = nil, []byte{}
	bytes := x.event(acme, "bytes")
	bytes.Payload = []byte("\x00\xff\x00null")
	x.apply(&backend.Changes{NewEvents: []*backend.Event{none, empty, bytes}})
	x.view(func(r backend.Reader) {
		rows := got(r.EventsByKey(ctx, []backend.EventKey{none.Key(), empty.Key(), bytes.Key()}, true))(x)
		if n := rows[none.Key()]; n.HasPayload || n.Payload != nil {
			x.Fatalf("no payload came back as %v (%v)", n.Payload, n.HasPayload)
		}
		if n := rows[empty.Key()]; !n.HasPayload || n.Payload == nil || len(n.Payload) != 0 {
			x.Fatalf("an empty payload came back as %v (%v)", n.Payload, n.HasPayload)
		}
		eq(x, "bytes", string(rows[bytes.Key()].Payload), "\x00\xff\x00null")
	})
}

func waitRows(x *bench) {
	w := x.flow(acme, "1")
	open := x.wait(w, "open")
	open.From, open.Attempt, open.Trace = "shop", 2, rendezvous.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b"}
	open.Deadline = open.RegisteredAt.Add(time.Hour)
	held := x.wait(w, "held", key("1"), key("2"))
	e := x.event(acme, "e", key("1"))
	claim(held, e, x.now())
	x.apply(&backend.Changes{NewWaits: []*backend.Wait{open, held}, NewEvents: []*backend.Event{e}}, w.Key())
	eq(x, "open wait", x.reread(open), open)
	eq(x, "parked wait", x.reread(held), held)

	row := x.reread(held)
	row.Attempts, row.LastError, row.Take, row.TakeUntil, row.TakeSettled = 16, "it broke", 5, x.now().Add(time.Minute), true
	row.QuarantinedAt = x.now()
	x.apply(&backend.Changes{Waits: []*backend.Wait{row}})
	eq(x, "quarantined wait", x.reread(held), row)
	x.view(func(r backend.Reader) {
		eq(x, "waits of the run", effectsOf(got(r.WaitsOf(ctx, []backend.RunKey{runKey(acme, "r1"), runKey(globex, "r1")}))(x)), []string{"open", "held"})
	})
}

func batchRows(x *bench) {
	w := x.flow(acme, "1")
	full := &backend.Batch{Tenant: acme, RunID: "r1", ID: "b1", Digest: []byte{9, 0, 9}, FirstSeq: 2, LastSeq: 4, Outcome: []byte(`{"head":4}`)}
	empty := &backend.Batch{Tenant: acme, RunID: "r1", ID: "b2", Digest: []byte{1}, Outcome: []byte(`{}`)}
	x.apply(&backend.Changes{NewBatches: []*backend.Batch{full, empty}}, w.Key())
	x.view(func(r backend.Reader) {
		rows := got(r.Batches(ctx, []backend.BatchKey{full.Key(), empty.Key(), {Tenant: globex, RunID: "r1", ID: "b1"}}))(x)
		eq(x, "batches", rows, map[backend.BatchKey]*backend.Batch{full.Key(): full, empty.Key(): empty})
	})
}

func ownCopies(x *bench) {
	w := x.flow(acme, "1")
	wait := x.opened(w, "wait", key("1"))
	e := x.stored(acme, "e", key("1"))
	wait.Keys[0], e.Keys[0], e.Digest[0] = key("other"), key("other"), ^e.Digest[0]
	eq(x, "wait's keys", x.reread(wait).Keys, []rendezvous.Key{key("1")})
	eq(x, "event's keys", x.read(e).Keys, []rendezvous.Key{key("1")})
	if x.read(e).Digest[0] == e.Digest[0] {
		x.Fatal("the digest handed out is the stored one")
	}
}

func absentKeys(x *bench) {
	w := x.flow(acme, "1")
	x.stored(acme, "e")
	x.opened(w, "wait")
	x.view(func(r backend.Reader) {
		eq(x, "workflows", len(got(r.Workflows(ctx, []backend.WorkflowKey{flowKey(globex, "w1"), flowKey(acme, "w2")}))(x)), 0)
		eq(x, "runs", len(got(r.Runs(ctx, []backend.RunKey{runKey(globex, "r1")}))(x)), 0)
		eq(x, "events by key", len(got(r.EventsByKey(ctx, []backend.EventKey{{Tenant: globex, Source: "shop", ID: "e"}, {Tenant: acme, ID: "e"}}, true))(x)), 0)
		eq(x, "events by number", len(got(r.EventsByNumber(ctx, []int64{1 << 40}, true))(x)), 0)
		eq(x, "waits", len(got(r.Waits(ctx, []backend.WaitKey{{Tenant: globex, RunID: "r1", Effect: "wait"}}))(x)), 0)
		eq(x, "marks", len(got(r.Woken(ctx, []backend.WorkflowKey{w.Key()}))(x)), 0)
		eq(x, "no keys at all", len(got(r.EventsByKey(ctx, nil, true))(x)), 0)
	})
}
