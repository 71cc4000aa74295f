package sqlite

import (
	"context"
	"math"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

// Columns of a record, with its payload and without.
const (
	recordColumns = `h.tenant, h.workflow_id, h.seq, h.run_id, h.kind, h.v, h.effect, h.attempt, h.data, h.payload, h.content_type, h.source, h.operator_actor,
	h.operator_basis, h.recorded_at, h.batch_id`
	bareColumns = `h.tenant, h.workflow_id, h.seq, h.run_id, h.kind, h.v, h.effect, h.attempt, h.data, NULL, h.content_type, h.source, h.operator_actor,
	h.operator_basis, h.recorded_at, h.batch_id`
)

func (r *reader) records(ctx context.Context, sql string, args ...any) ([]rendezvous.Record, error) {
	var found []rendezvous.Record
	err := r.query(ctx, sql, func(c *columns) error {
		rec, err := row.Record(c, c.Text(), c.Text())
		found = append(found, rec)
		return err
	}, args...)
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Sizes are known without reading what stands on overflow pages.
const historySQL = `
SELECT octet_length(h.data) + coalesce(octet_length(h.payload), 0), ` + recordColumns + ` FROM history h
WHERE h.tenant = ? AND h.workflow_id = ? AND h.seq >= ? AND h.seq <= ?
ORDER BY h.seq LIMIT ? + 0`

// History implements [backend.Reader].
func (r *reader) History(ctx context.Context, key backend.WorkflowKey, from, to int64, limit, maxBytes int) ([]rendezvous.Record, error) {
	if to == 0 {
		to = math.MaxInt64
	}
	var page []rendezvous.Record
	total := 0
	err := r.query(ctx, historySQL, func(c *columns) error {
		total += c.Tally()
		if len(page) > 0 && total > maxBytes { // one record always fits, however large it is
			return errEnough
		}
		rec, err := row.Record(c, c.Text(), c.Text())
		page = append(page, rec)
		return err
	}, key.Tenant, key.ID, from, to, max(limit, 0))
	if err != nil {
		return nil, err
	}
	return page, nil
}

const historySizeSQL = `
SELECT count(*), coalesce(sum(octet_length(h.data) + coalesce(octet_length(h.payload), 0)), 0) FROM history h
WHERE h.tenant = ? AND h.workflow_id = ?`

// HistorySize implements [backend.Reader].
func (r *reader) HistorySize(ctx context.Context, key backend.WorkflowKey) (records, bytes int64, err error) {
	err = r.query(ctx, historySizeSQL, func(c *columns) error {
		records, bytes = c.Count(), c.Count()
		return nil
	}, key.Tenant, key.ID)
	return records, bytes, err
}

const effectSQL = `
SELECT ` + bareColumns + ` FROM history h INDEXED BY history_effects
WHERE h.tenant = ? AND h.run_id = ? AND h.effect = ? AND h.effect <> ''
ORDER BY h.seq`

// Effects implements [backend.Reader].
func (r *reader) Effects(ctx context.Context, keys []backend.WaitKey) (map[backend.WaitKey][]rendezvous.Record, error) {
	found := make(map[backend.WaitKey][]rendezvous.Record, len(keys))
	for _, k := range keys {
		if _, seen := found[k]; seen {
			continue
		}
		records, err := r.records(ctx, effectSQL, k.Tenant, k.RunID, k.Effect)
		if err != nil {
			return nil, err
		}
		if len(records) > 0 {
			found[k] = records
		}
	}
	return found, nil
}

const recordSQL = `SELECT ` + recordColumns + ` FROM history h WHERE h.tenant = ? AND h.workflow_id = ? AND h.seq = ?`

// RecordsAt implements [backend.Reader].
func (r *reader) RecordsAt(ctx context.Context, keys []backend.RecordKey) (map[backend.RecordKey]rendezvous.Record, error) {
	found := make(map[backend.RecordKey]rendezvous.Record, len(keys))
	for _, k := range keys {
		records, err := r.records(ctx, recordSQL, k.Tenant, k.WorkflowID, k.Seq)
		if err != nil {
			return nil, err
		}
		if len(records) > 0 {
			found[k] = records[0]
		}
	}
	return found, nil
}

const openEffectsSQL = `
SELECT ` + bareColumns + ` FROM history h INDEXED BY history_effects
WHERE h.tenant = ? AND h.run_id = ? AND h.effect <> '' AND NOT h.closes AND h.kind = 'effect.started'
	AND NOT EXISTS (
		SELECT 1 FROM history c INDEXED BY history_effects
		WHERE c.tenant = h.tenant AND c.run_id = h.run_id AND c.effect = h.effect AND c.effect <> '' AND c.attempt = h.attempt AND c.closes)
ORDER BY h.seq LIMIT ? + 0`

// OpenEffects implements [backend.Reader].
func (r *reader) OpenEffects(ctx context.Context, key backend.RunKey, limit int) ([]rendezvous.Record, error) {
	return r.records(ctx, openEffectsSQL, key.Tenant, key.ID, max(limit, 0))
}

const failuresSQL = `
SELECT ` + bareColumns + ` FROM history h INDEXED BY history_effects
WHERE h.tenant = ? AND h.run_id = ? AND h.effect <> '' AND h.closes AND h.kind = 'effect.failed'
	AND NOT EXISTS (
		SELECT 1 FROM history d INDEXED BY history_effects
		WHERE d.tenant = h.tenant AND d.run_id = h.run_id AND d.effect = h.effect AND d.effect <> '' AND d.closes
			AND d.kind = 'effect.done' AND d.seq > h.seq)
ORDER BY h.seq DESC`

// LastFailure implements [backend.Reader].
func (r *reader) LastFailure(ctx context.Context, key backend.RunKey) (string, error) {
	var last string
	err := r.query(ctx, failuresSQL, func(c *columns) error {
		rec, err := row.Record(c, c.Text(), c.Text())
		if err != nil {
			return err
		}
		var d rendezvous.EffectFailedData
		if err := rendezvous.DecodeData(rec, &d); err != nil {
			return err
		}
		if !d.Retryable {
			last = rec.Effect
			return errEnough
		}
		return nil
	}, key.Tenant, key.ID)
	return last, err
}
