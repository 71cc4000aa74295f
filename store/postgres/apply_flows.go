package postgres

import (
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

func (w *writes) insertFlows(c *backend.Changes) {
	flows := sorted(c.NewWorkflows, byFlow)
	w.add(insertWorkflowsSQL, len(flows), true, append([]any{
		texts(flows, func(f *backend.Workflow) string { return f.Tenant }),
		texts(flows, func(f *backend.Workflow) string { return f.ID }),
		integers(flows, func(f *backend.Workflow) int { return f.Shard }),
	}, flowColumns(flows)...)...)
	runs := sorted(c.NewRuns, byRun)
	w.add(insertRunsSQL, len(runs), true,
		texts(runs, func(r *backend.Run) string { return r.Tenant }),
		texts(runs, func(r *backend.Run) string { return r.ID }),
		texts(runs, func(r *backend.Run) string { return r.WorkflowID }),
		texts(runs, func(r *backend.Run) string { return r.PreviousRun }),
		texts(runs, func(r *backend.Run) string { return r.NextRun }),
		texts(runs, func(r *backend.Run) string { return string(r.Status) }),
		bigints(runs, func(r *backend.Run) int64 { return r.FirstSeq }),
		bigints(runs, func(r *backend.Run) int64 { return r.LastSeq }),
		instants(runs, func(r *backend.Run) time.Time { return r.StartedAt }),
		instants(runs, func(r *backend.Run) time.Time { return r.ClosedAt }),
		instants(runs, func(r *backend.Run) time.Time { return r.SealedAt }),
		texts(runs, func(r *backend.Run) string { return string(r.Outcome) }),
		blobs(runs, func(r *backend.Run) []byte { return r.StartDigest }),
		blobs(runs, func(r *backend.Run) []byte { return r.Retired }),
	)
}

func (w *writes) updateFlows(c *backend.Changes, locked map[backend.WorkflowKey]backend.Workflow) {
	var bumped, flows []*backend.Workflow
	for _, f := range sorted(c.Workflows, byFlow) {
		if was, ok := locked[f.Key()]; ok && f.OnlyBumped(was) {
			bumped = append(bumped, f)
		} else {
			flows = append(flows, f)
		}
	}
	w.add(bumpWorkflowsSQL, len(bumped), true,
		texts(bumped, func(f *backend.Workflow) string { return f.Tenant }),
		texts(bumped, func(f *backend.Workflow) string { return f.ID }),
		bigints(bumped, func(f *backend.Workflow) int64 { return f.Head }),
		instants(bumped, func(f *backend.Workflow) time.Time { return f.UpdatedAt }),
		integers(bumped, func(f *backend.Workflow) int { return f.OpenEffects }),
		integers(bumped, func(f *backend.Workflow) int { return f.OpenWaits }),
		integers(bumped, func(f *backend.Workflow) int { return f.LiveTimers }),
		integers(bumped, func(f *backend.Workflow) int { return f.Registrations }),
	)
	w.add(updateWorkflowsSQL, len(flows), true, append([]any{
		texts(flows, func(f *backend.Workflow) string { return f.Tenant }),
		texts(flows, func(f *backend.Workflow) string { return f.ID }),
	}, flowColumns(flows)...)...)
	runs := sorted(c.Runs, byRun)
	w.add(updateRunsSQL, len(runs), true,
		texts(runs, func(r *backend.Run) string { return r.Tenant }),
		texts(runs, func(r *backend.Run) string { return r.ID }),
		texts(runs, func(r *backend.Run) string { return r.NextRun }),
		texts(runs, func(r *backend.Run) string { return string(r.Status) }),
		bigints(runs, func(r *backend.Run) int64 { return r.LastSeq }),
		instants(runs, func(r *backend.Run) time.Time { return r.ClosedAt }),
		instants(runs, func(r *backend.Run) time.Time { return r.SealedAt }),
		texts(runs, func(r *backend.Run) string { return string(r.Outcome) }),
		blobs(runs, func(r *backend.Run) []byte { return r.Retired }),
	)
}

// flowColumns are the columns of workflows that can change, in the order of both statements.
func flowColumns(flows []*backend.Workflow) []any {
	return []any{
		texts(flows, func(f *backend.Workflow) string { return f.RunID }),
		texts(flows, func(f *backend.Workflow) string { return f.Type }),
		texts(flows, func(f *backend.Workflow) string { return f.Queue }),
		texts(flows, func(f *backend.Workflow) string { return string(f.Status) }),
		bigints(flows, func(f *backend.Workflow) int64 { return f.Head }),
		instants(flows, func(f *backend.Workflow) time.Time { return f.CreatedAt }),
		instants(flows, func(f *backend.Workflow) time.Time { return f.StartedAt }),
		instants(flows, func(f *backend.Workflow) time.Time { return f.ClosedAt }),
		instants(flows, func(f *backend.Workflow) time.Time { return f.UpdatedAt }),
		texts(flows, func(f *backend.Workflow) string { return f.Parent }),
		texts(flows, func(f *backend.Workflow) string { return f.FailureCode }),
		texts(flows, func(f *backend.Workflow) string { return f.FailureReason }),
		texts(flows, func(f *backend.Workflow) string { return f.FailedEffect }),
		integers(flows, func(f *backend.Workflow) int { return f.OpenEffects }),
		integers(flows, func(f *backend.Workflow) int { return f.OpenWaits }),
		integers(flows, func(f *backend.Workflow) int { return f.LiveTimers }),
		integers(flows, func(f *backend.Workflow) int { return f.Registrations }),
		bigints(flows, func(f *backend.Workflow) int64 { return f.Reopened }),
		texts(flows, func(f *backend.Workflow) string { return f.LeaseOwner }),
		bigints(flows, func(f *backend.Workflow) int64 { return f.LeaseEpoch }),
		instants(flows, func(f *backend.Workflow) time.Time { return f.LeaseExpires }),
		texts(flows, func(f *backend.Workflow) string { return string(f.LeaseEnded) }),
		texts(flows, func(f *backend.Workflow) string { return f.AcquireID }),
		integers(flows, func(f *backend.Workflow) int { return f.Reclaims }),
		documents(flows, func(f *backend.Workflow) string { return requestDocument(f.Pause) }),
		documents(flows, func(f *backend.Workflow) string { return requestDocument(f.Cancel) }),
		texts(flows, func(f *backend.Workflow) string { return actor(f.PausedBy) }),
		texts(flows, func(f *backend.Workflow) string { return basis(f.PausedBy) }),
		instants(flows, func(f *backend.Workflow) time.Time { return f.PausedAt }),
	}
}

func (w *writes) insertRecords(c *backend.Changes) {
	// A payload of an event that is new in this transaction is at hand; one that is stored is copied there.
	fresh := map[int64]*backend.Event{}
	for _, e := range c.NewEvents {
		fresh[e.Number] = e
	}
	source := func(r *backend.Record) *backend.Event {
		if r.PayloadOf == 0 {
			return nil
		}
		return fresh[r.PayloadOf]
	}
	rows := c.Records
	w.add(insertHistorySQL, len(rows), true,
		texts(rows, func(r *backend.Record) string { return r.Tenant }),
		texts(rows, func(r *backend.Record) string { return r.WorkflowID }),
		bigints(rows, func(r *backend.Record) int64 { return r.Seq }),
		texts(rows, func(r *backend.Record) string { return r.RunID }),
		texts(rows, func(r *backend.Record) string { return string(r.Kind) }),
		integers(rows, func(r *backend.Record) int { return r.V }),
		texts(rows, func(r *backend.Record) string { return r.Effect }),
		integers(rows, func(r *backend.Record) int { return r.Attempt }),
		booleans(rows, func(r *backend.Record) bool { return r.Kind.Phase() == rendezvous.PhaseClose }),
		texts(rows, func(r *backend.Record) string { return string(r.Data) }),
		blobs(rows, func(r *backend.Record) []byte {
			switch e := source(r); {
			case e != nil:
				return e.Payload
			case r.PayloadOf != 0:
				return nil
			}
			return r.Payload
		}),
		texts(rows, func(r *backend.Record) string {
			if e := source(r); e != nil {
				return e.ContentType
			}
			return r.ContentType
		}),
		texts(rows, func(r *backend.Record) string { return r.Source }),
		texts(rows, func(r *backend.Record) string { return actor(r.Operator) }),
		texts(rows, func(r *backend.Record) string { return basis(r.Operator) }),
		instants(rows, func(r *backend.Record) time.Time { return r.RecordedAt }),
		texts(rows, func(r *backend.Record) string { return r.Batch }),
		bigints(rows, func(r *backend.Record) int64 {
			if source(r) != nil {
				return 0
			}
			return r.PayloadOf
		}),
		documents(rows, timerOf),
	)
}

func (w *writes) insertBatches(rows []*backend.Batch) {
	w.add(insertBatchesSQL, len(rows), true,
		texts(rows, func(b *backend.Batch) string { return b.Tenant }),
		texts(rows, func(b *backend.Batch) string { return b.RunID }),
		texts(rows, func(b *backend.Batch) string { return b.ID }),
		blobs(rows, func(b *backend.Batch) []byte { return some(b.Digest) }),
		bigints(rows, func(b *backend.Batch) int64 { return b.FirstSeq }),
		bigints(rows, func(b *backend.Batch) int64 { return b.LastSeq }),
		blobs(rows, func(b *backend.Batch) []byte { return some(b.Outcome) }),
	)
}

// some is b for a column that is never NULL.
func some(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func (w *writes) marks(c *backend.Changes) {
	gone := backend.SortedKeys(c.Unwoken)
	w.add(deleteWokenSQL, len(gone), false, texts(gone, workflowTenant), texts(gone, workflowID))
	var news, anew []*backend.Woken
	for _, m := range sorted(c.Woken, byMark) {
		if m.Anew {
			anew = append(anew, m)
		} else {
			news = append(news, m)
		}
	}
	w.add(insertWokenSQL, len(news), false, markColumns(news)...)
	w.add(insertWokenAnewSQL, len(anew), false, markColumns(anew)...)
	moved := sorted(c.MarkedWoken, byMark)
	w.add(updateWokenSQL, len(moved), false,
		texts(moved, func(m *backend.Woken) string { return m.Tenant }),
		texts(moved, func(m *backend.Woken) string { return m.WorkflowID }),
		integers(moved, func(m *backend.Woken) int { return m.Notices }),
		instants(moved, func(m *backend.Woken) time.Time { return m.NextNoticeAt }),
	)
}

func markColumns(marks []*backend.Woken) []any {
	return []any{
		texts(marks, func(m *backend.Woken) string { return m.Tenant }),
		texts(marks, func(m *backend.Woken) string { return m.WorkflowID }),
		texts(marks, func(m *backend.Woken) string { return m.RunID }),
		texts(marks, func(m *backend.Woken) string { return m.Queue }),
		instants(marks, func(m *backend.Woken) time.Time { return m.Since }),
		texts(marks, func(m *backend.Woken) string { return string(m.Cause) }),
		bigints(marks, func(m *backend.Woken) int64 { return m.Seq }),
		integers(marks, func(m *backend.Woken) int { return m.Notices }),
		instants(marks, func(m *backend.Woken) time.Time { return m.NextNoticeAt }),
		pairs(marks, func(m *backend.Woken) []string { return flatLinks(m.Links) }),
	}
}
