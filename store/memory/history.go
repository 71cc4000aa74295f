package memory

import (
	"context"
	"iter"
	"slices"
	"sort"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// History implements [backend.Reader].
func (r *reader) History(
	ctx context.Context, key backend.WorkflowKey, from, to int64, limit, maxBytes int,
) ([]rendezvous.Record, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var page []rendezvous.Record
	size := 0
	for rec := range r.histories[key].from(from) {
		if to != 0 && rec.Seq > to || len(page) == limit {
			break
		}
		if size += len(rec.Data) + len(rec.Payload); size > maxBytes && len(page) > 0 {
			break
		}
		if rec.damaged != nil {
			return nil, rec.damaged
		}
		page = append(page, copyRecord(rec.Record))
	}
	return page, nil
}

// HistorySize implements [backend.Reader].
func (r *reader) HistorySize(ctx context.Context, key backend.WorkflowKey) (records, bytes int64, err error) {
	if err := alive(ctx); err != nil {
		return 0, 0, err
	}
	if h := r.histories[key]; h != nil {
		return int64(len(h.records)), h.bytes, nil
	}
	return 0, 0, nil
}

// Effects implements [backend.Reader].
func (r *reader) Effects(ctx context.Context, keys []backend.WaitKey) (map[backend.WaitKey][]rendezvous.Record, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	found := make(map[backend.WaitKey][]rendezvous.Record, len(keys))
	for _, k := range keys {
		if _, twice := found[k]; twice {
			continue
		}
		for _, rec := range r.effects[k] {
			if rec.damaged != nil {
				return nil, rec.damaged
			}
			found[k] = append(found[k], bare(rec))
		}
	}
	return found, nil
}

// from yields the records with seq ≥ seq in order.
func (h *history) from(seq int64) iter.Seq[*record] {
	return func(yield func(*record) bool) {
		if h == nil {
			return
		}
		for _, rec := range h.records[h.find(seq):] {
			if !yield(rec) {
				return
			}
		}
	}
}

// find is the index of the first record with that seq or a higher one.
func (h *history) find(seq int64) int {
	return sort.Search(len(h.records), func(i int) bool { return h.records[i].Seq >= seq })
}

// RecordsAt implements [backend.Reader].
func (r *reader) RecordsAt(ctx context.Context, keys []backend.RecordKey) (map[backend.RecordKey]rendezvous.Record, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	found := make(map[backend.RecordKey]rendezvous.Record, len(keys))
	for _, k := range keys {
		for rec := range r.histories[backend.WorkflowKey{Tenant: k.Tenant, ID: k.WorkflowID}].from(k.Seq) {
			if rec.Seq != k.Seq {
				break
			}
			if rec.damaged != nil {
				return nil, rec.damaged
			}
			found[k] = copyRecord(rec.Record)
			break
		}
	}
	return found, nil
}

// OpenEffects implements [backend.Reader].
func (r *reader) OpenEffects(ctx context.Context, key backend.RunKey, limit int) ([]rendezvous.Record, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var found []rendezvous.Record
	if open := r.openings[key]; open != nil {
		for o := range open.all() {
			if len(found) >= limit {
				break
			}
			if o.rec.damaged != nil {
				return nil, o.rec.damaged
			}
			found = append(found, bare(o.rec))
		}
	}
	return found, nil
}

// LastFailure implements [backend.Reader].
func (r *reader) LastFailure(ctx context.Context, key backend.RunKey) (string, error) {
	if err := alive(ctx); err != nil {
		return "", err
	}
	for _, rec := range slices.Backward(r.failures[key]) {
		if rec.damaged != nil {
			return "", rec.damaged
		}
		var d rendezvous.EffectFailedData
		if err := rendezvous.DecodeData(rec.Record, &d); err != nil {
			return "", err
		}
		done := func(o *record) bool { return o.Kind == rendezvous.EffectDone && o.Seq > rec.Seq }
		if !d.Retryable && !slices.ContainsFunc(r.effects[backend.WaitKey{Tenant: key.Tenant, RunID: key.ID, Effect: rec.Effect}], done) {
			return rec.Effect, nil
		}
	}
	return "", nil
}

// bare is the record without its payload.
func bare(rec *record) rendezvous.Record {
	r := rec.Record
	r.Payload = nil
	return copyRecord(r)
}
