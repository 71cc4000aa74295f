package postgres

import (
	"cmp"
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

// OldLetters implements [backend.Tx].
func (t *transaction) OldLetters(ctx context.Context, before time.Time, after backend.LetterPosition, limit int) ([]*backend.Event, bool, error) {
	begin, number := startOfTime, int64(firstNumber)
	if after.Set {
		begin, number = after.At, after.Number
	}
	var tenants []string
	err := t.query(ctx, oldLetterTenantsSQL, func(c *columns) error {
		tenants = append(tenants, c.Text())
		return nil
	}, before, begin, number, int64(limit)+1)
	if err != nil {
		return nil, false, err
	}
	tenantOf := func(e *backend.Event) string { return e.Tenant }
	compare := func(a, b *backend.Event) int { return cmp.Or(a.DeadAt.Compare(b.DeadAt), byNumber(a, b)) }
	return fair.Rows(tenants, limit, tenantOf, compare, func(places []fair.Place[backend.Event]) ([]*backend.Event, error) {
		return t.eventRows(ctx, oldLettersSQL, before,
			texts(places, func(p fair.Place[backend.Event]) string { return p.Tenant }),
			instants(places, func(p fair.Place[backend.Event]) time.Time {
				if p.After == nil {
					return begin
				}
				return p.After.DeadAt
			}),
			bigints(places, func(p fair.Place[backend.Event]) int64 {
				if p.After == nil {
					return number
				}
				return p.After.Number
			}),
			bigints(places, func(p fair.Place[backend.Event]) int64 { return int64(p.Most) }))
	})
}

// Closed implements [backend.Reader].
func (r *reader) Closed(ctx context.Context, before time.Time, after backend.ClosedPosition, limit int) ([]*backend.Workflow, error) {
	from := startOfTime
	if after.Set {
		from = after.Closed
	}
	var rows []*backend.Workflow
	err := r.query(ctx, closedSQL, func(c *columns) error {
		rows = append(rows, row.Workflow(c))
		return nil
	}, before, from, after.Key.Tenant, after.Key.ID, int64(limit))
	return rows, err
}

func (r *reader) remnantRows(ctx context.Context, sql string, args ...any) ([]*backend.Remnant, error) {
	var rows []*backend.Remnant
	err := r.query(ctx, sql, func(c *columns) error {
		x, err := row.Remnant(c)
		rows = append(rows, x)
		return err
	}, args...)
	return rows, err
}

// RemnantOf implements [backend.Reader].
func (r *reader) RemnantOf(ctx context.Context, flow backend.WorkflowKey, run backend.RunKey) (*backend.Remnant, error) {
	rows, err := r.remnantRows(ctx, remnantOfSQL, run.Tenant, run.ID, flow.Tenant, flow.ID)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return rows[0], nil
}

// remnantsAt reads remnants by key.
func (r *reader) remnantsAt(ctx context.Context, keys []backend.RunKey) (map[backend.RunKey]*backend.Remnant, error) {
	rows, err := r.remnantRows(ctx, remnantsAtSQL, texts(keys, runTenant), texts(keys, runID))
	found := make(map[backend.RunKey]*backend.Remnant, len(rows))
	for _, x := range rows {
		found[x.Key()] = x
	}
	return found, err
}

// Remnants implements [backend.Tx].
func (t *transaction) Remnants(ctx context.Context, limit int) (backend.Remnants, error) {
	var found backend.Remnants
	var err error
	if found.Runs, err = t.remnantRows(ctx, remnantsSQL, int64(backend.MostRemnants)); err != nil || len(found.Runs) == 0 {
		return found, err
	}
	most := int64(limit) + 1 // one more than fits tells that there is more
	tenants := texts(found.Runs, func(x *backend.Remnant) string { return x.Tenant })
	err = t.query(ctx, leftRecordsSQL, func(c *columns) error {
		found.Records = append(found.Records, backend.RecordKey{Tenant: c.Text(), WorkflowID: c.Text(), Seq: c.Bigint()})
		return nil
	}, tenants, texts(found.Runs, func(x *backend.Remnant) string { return x.WorkflowID }),
		bigints(found.Runs, func(x *backend.Remnant) int64 { return x.FirstSeq }),
		bigints(found.Runs, func(x *backend.Remnant) int64 { return x.LastSeq }), most)
	if err != nil {
		return found, err
	}
	err = t.query(ctx, leftBatchesSQL, func(c *columns) error {
		found.Batches = append(found.Batches, backend.BatchKey{Tenant: c.Text(), RunID: c.Text(), ID: c.Text()})
		return nil
	}, tenants, texts(found.Runs, func(x *backend.Remnant) string { return x.RunID }), most)
	found.Cut(limit)
	return found, err
}

// prune makes what retention ends go.
func (w *writes) prune(c *backend.Changes) {
	runs := backend.SortedKeys(c.GoneRuns)
	w.add(deleteRunPushesSQL, len(runs), false, texts(runs, runTenant), texts(runs, runID))
	w.add(deleteRunPushLogSQL, len(runs), false, texts(runs, runTenant), texts(runs, runID))
	w.add(deleteRunsSQL, len(runs), true, texts(runs, runTenant), texts(runs, runID))
	flows := backend.SortedKeys(c.GoneWorkflows)
	w.add(deleteWorkflowsSQL, len(flows), true,
		texts(flows, func(k backend.WorkflowKey) string { return k.Tenant }), texts(flows, func(k backend.WorkflowKey) string { return k.ID }))
	w.add(insertRemnantsSQL, len(c.Remnants), true,
		texts(c.Remnants, func(x *backend.Remnant) string { return x.Tenant }),
		texts(c.Remnants, func(x *backend.Remnant) string { return x.RunID }),
		texts(c.Remnants, func(x *backend.Remnant) string { return x.WorkflowID }),
		bigints(c.Remnants, func(x *backend.Remnant) int64 { return x.FirstSeq }),
		bigints(c.Remnants, func(x *backend.Remnant) int64 { return x.LastSeq }),
	)
	w.add(deleteHistorySQL, len(c.GoneRecords), false,
		texts(c.GoneRecords, func(k backend.RecordKey) string { return k.Tenant }),
		texts(c.GoneRecords, func(k backend.RecordKey) string { return k.WorkflowID }),
		bigints(c.GoneRecords, func(k backend.RecordKey) int64 { return k.Seq }),
	)
	w.add(deleteBatchesSQL, len(c.GoneBatches), false,
		texts(c.GoneBatches, func(k backend.BatchKey) string { return k.Tenant }),
		texts(c.GoneBatches, func(k backend.BatchKey) string { return k.RunID }),
		texts(c.GoneBatches, func(k backend.BatchKey) string { return k.ID }),
	)
	left := backend.SortedKeys(c.GoneRemnants)
	w.add(deleteRemnantsSQL, len(left), false, texts(left, runTenant), texts(left, runID))
}
