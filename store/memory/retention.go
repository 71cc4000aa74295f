package memory

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
)

// OldLetters implements [backend.Tx].
func (t *transaction) OldLetters(ctx context.Context, before time.Time, after backend.LetterPosition, limit int) ([]*backend.Event, bool, error) {
	if err := alive(ctx); err != nil {
		return nil, false, err
	}
	due := map[string][]instant{}
	for name, o := range t.tenants {
		walk := o.died.all()
		if after.Set {
			walk = o.died.above(instant{after.At, after.Number})
		}
		for x := range walk {
			if x.at.After(before) || len(due[name]) > limit {
				break
			}
			due[name] = append(due[name], x)
		}
	}
	places, left := fair.Choose(due, limit, compareInstants)
	rows := make([]*backend.Event, len(places))
	for i, x := range places {
		rows[i] = copyEvent(t.eventsByNum[x.number], false)
	}
	return rows, len(left) > 0, nil
}

// Closed implements [backend.Reader].
func (r *reader) Closed(ctx context.Context, before time.Time, after backend.ClosedPosition, limit int) ([]*backend.Workflow, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	walk := r.closed.all()
	if after.Set {
		walk = r.closed.above(closing{after.Closed, after.Key})
	}
	var rows []*backend.Workflow
	for x := range walk {
		if len(rows) >= limit || x.at.After(before) {
			break
		}
		c := copyWorkflow(r.workflows[x.key])
		c.ClosedAt = x.at
		rows = append(rows, c)
	}
	return rows, nil
}

// RemnantOf implements [backend.Reader].
func (r *reader) RemnantOf(ctx context.Context, flow backend.WorkflowKey, run backend.RunKey) (*backend.Remnant, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	if x := r.remnants[run]; x != nil || r.left[flow] == 0 {
		return copied(x), nil
	}
	for _, x := range r.remnants {
		if x.Tenant == flow.Tenant && x.WorkflowID == flow.ID {
			return copied(x), nil
		}
	}
	return nil, nil
}

// Remnants implements [backend.Tx].
func (t *transaction) Remnants(ctx context.Context, limit int) (backend.Remnants, error) {
	var found backend.Remnants
	if err := alive(ctx); err != nil {
		return found, err
	}
	for _, k := range slices.SortedFunc(maps.Keys(t.remnants), backend.RunKey.Compare) {
		if len(found.Runs) == backend.MostRemnants {
			break
		}
		x := t.remnants[k]
		found.Runs = append(found.Runs, copied(x))
		for rec := range t.histories[backend.WorkflowKey{Tenant: x.Tenant, ID: x.WorkflowID}].from(x.FirstSeq) {
			if rec.Seq > x.LastSeq {
				break
			}
			found.Records = append(found.Records, backend.RecordKey{Tenant: x.Tenant, WorkflowID: x.WorkflowID, Seq: rec.Seq})
		}
	}
	if len(found.Runs) == 0 {
		return found, nil
	}
	left := map[backend.RunKey]struct{}{}
	for _, x := range found.Runs {
		left[x.Key()] = struct{}{}
	}
	for k := range t.batches {
		if _, ok := left[backend.RunKey{Tenant: k.Tenant, ID: k.RunID}]; ok {
			found.Batches = append(found.Batches, k)
		}
	}
	slices.SortFunc(found.Batches, backend.BatchKey.Compare)
	found.Cut(limit)
	return found, nil
}

// pruned reports whether something to start has an id of a remnant, or something to go is not there.
func (t *transaction) pruned(c *backend.Changes) bool {
	for _, w := range c.NewWorkflows {
		if t.left[w.Key()] > 0 {
			return true
		}
	}
	for _, r := range c.NewRuns {
		if t.remnants[r.Key()] != nil {
			return true
		}
	}
	gone := func(k backend.RunKey) bool { return t.runs[k] == nil }
	return slices.ContainsFunc(c.GoneWorkflows, func(k backend.WorkflowKey) bool { return t.workflows[k] == nil }) ||
		slices.ContainsFunc(c.GoneRuns, gone) || taken(t.remnants, c.Remnants)
}

// prune carries out what retention ends.
func (t *transaction) prune(c *backend.Changes) {
	for _, k := range c.GoneRuns {
		t.prunePushes(k)
		t.unlinkRun(t.runs[k])
	}
	for _, k := range c.GoneWorkflows {
		t.unlinkWorkflow(t.workflows[k])
	}
	for _, r := range c.Remnants {
		t.remnants[r.Key()] = copied(r)
		t.left[backend.WorkflowKey{Tenant: r.Tenant, ID: r.WorkflowID}]++
	}
	for _, k := range c.GoneRecords {
		t.erase(k)
	}
	for _, k := range c.GoneBatches {
		delete(t.batches, k)
	}
	for _, k := range c.GoneRemnants {
		x := t.remnants[k]
		if x == nil {
			continue
		}
		delete(t.remnants, k)
		flow := backend.WorkflowKey{Tenant: x.Tenant, ID: x.WorkflowID}
		if t.left[flow]--; t.left[flow] == 0 {
			delete(t.left, flow)
		}
	}
}

// erase takes a record out of its history and out of every index.
func (t *transaction) erase(k backend.RecordKey) {
	key := backend.WorkflowKey{Tenant: k.Tenant, ID: k.WorkflowID}
	h := t.histories[key]
	if !h.has(k.Seq) {
		return
	}
	i := h.find(k.Seq)
	rec := h.records[i]
	h.bytes -= int64(len(rec.Data) + len(rec.Payload))
	if h.records = slices.Delete(h.records, i, i+1); len(h.records) == 0 {
		delete(t.histories, key)
	}
	if rec.Kind.Phase() != rendezvous.PhaseNone {
		t.unlinkEffect(backend.WaitKey{Tenant: k.Tenant, RunID: rec.RunID, Effect: rec.Effect}, rec)
	}
	t.unlinkTimerRecord(k.Tenant, rec)
}
