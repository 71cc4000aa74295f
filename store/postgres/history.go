package postgres

import (
	"context"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

// History implements [backend.Reader].
func (r *reader) History(
	ctx context.Context, key backend.WorkflowKey, from, to int64, limit, maxBytes int,
) ([]rendezvous.Record, error) {
	if to == 0 {
		to = lastSeq
	}
	var page []rendezvous.Record
	err := r.query(ctx, historySQL, func(c *columns) error {
		rec, err := row.Record(c, key.Tenant, key.ID)
		page = append(page, rec)
		return err
	}, key.Tenant, key.ID, from, to, int64(limit), int64(maxBytes))
	if err != nil {
		return nil, err
	}
	return page, nil
}

// HistorySize implements [backend.Reader].
func (r *reader) HistorySize(ctx context.Context, key backend.WorkflowKey) (records, bytes int64, err error) {
	err = r.query(ctx, historySizeSQL, func(c *columns) error {
		records, bytes = c.Bigint(), c.Bigint()
		return nil
	}, key.Tenant, key.ID)
	return records, bytes, err
}

// placed reads records that come with their place among what was asked, and with their history.
func (r *reader) placed(ctx context.Context, sql string, each func(place int, rec rendezvous.Record), args ...any) error {
	return r.query(ctx, sql, func(c *columns) error {
		place := int(c.Bigint()) - 1
		rec, err := row.Record(c, c.Text(), c.Text())
		if err != nil {
			return err
		}
		each(place, rec)
		return nil
	}, args...)
}

// Effects implements [backend.Reader].
func (r *reader) Effects(ctx context.Context, keys []backend.WaitKey) (map[backend.WaitKey][]rendezvous.Record, error) {
	keys = backend.SortedKeys(keys)
	found := make(map[backend.WaitKey][]rendezvous.Record, len(keys))
	err := r.placed(ctx, effectsSQL, func(place int, rec rendezvous.Record) {
		found[keys[place]] = append(found[keys[place]], rec)
	}, texts(keys, waitTenant), texts(keys, waitRun), texts(keys, waitEffect))
	return found, err
}

// RecordsAt implements [backend.Reader].
func (r *reader) RecordsAt(ctx context.Context, keys []backend.RecordKey) (map[backend.RecordKey]rendezvous.Record, error) {
	found := make(map[backend.RecordKey]rendezvous.Record, len(keys))
	err := r.placed(ctx, recordsAtSQL, func(place int, rec rendezvous.Record) {
		found[keys[place]] = rec
	}, texts(keys, func(k backend.RecordKey) string { return k.Tenant }), texts(keys, func(k backend.RecordKey) string { return k.WorkflowID }),
		bigints(keys, func(k backend.RecordKey) int64 { return k.Seq }))
	return found, err
}

// OpenEffects implements [backend.Reader].
func (r *reader) OpenEffects(ctx context.Context, key backend.RunKey, limit int) ([]rendezvous.Record, error) {
	var found []rendezvous.Record
	err := r.placed(ctx, openEffectsSQL, func(_ int, rec rendezvous.Record) {
		found = append(found, rec)
	}, key.Tenant, key.ID, int64(limit))
	return found, err
}

// LastFailure implements [backend.Reader].
func (r *reader) LastFailure(ctx context.Context, key backend.RunKey) (string, error) {
	var last string
	err := r.query(ctx, failuresSQL, func(c *columns) error {
		if last != "" {
			return nil
		}
		c.Bigint() // the place, always 1
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
		}
		return nil
	}, key.Tenant, key.ID)
	return last, err
}
