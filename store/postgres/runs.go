package postgres

import (
	"context"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

func runTenant(k backend.RunKey) string { return k.Tenant }
func runID(k backend.RunKey) string     { return k.ID }

// Runs implements [backend.Reader].
func (r *reader) Runs(ctx context.Context, keys []backend.RunKey) (map[backend.RunKey]*backend.Run, error) {
	found := make(map[backend.RunKey]*backend.Run, len(keys))
	err := r.query(ctx, runsSQL, func(c *columns) error {
		run, err := row.Run(c)
		if err != nil {
			return err
		}
		found[run.Key()] = run
		return nil
	}, texts(keys, runTenant), texts(keys, runID))
	return found, err
}

// RunsOf implements [backend.Reader].
func (r *reader) RunsOf(ctx context.Context, key backend.WorkflowKey, after int64, limit int) ([]*backend.Run, error) {
	var rows []*backend.Run
	err := r.query(ctx, runsOfSQL, func(c *columns) error {
		run, err := row.Run(c)
		rows = append(rows, run)
		return err
	}, key.Tenant, key.ID, after, int64(limit))
	return rows, err
}

// Batches implements [backend.Reader].
func (r *reader) Batches(ctx context.Context, keys []backend.BatchKey) (map[backend.BatchKey]*backend.Batch, error) {
	found := make(map[backend.BatchKey]*backend.Batch, len(keys))
	err := r.query(ctx, batchesSQL, func(c *columns) error {
		b, err := row.Batch(c)
		found[b.Key()] = b
		return err
	}, texts(keys, func(k backend.BatchKey) string { return k.Tenant }), texts(keys, func(k backend.BatchKey) string { return k.RunID }),
		texts(keys, func(k backend.BatchKey) string { return k.ID }))
	return found, err
}
