package memory

import (
	"context"
	"math"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// pick answers copies of the rows under those keys.
func pick[K comparable, V any](ctx context.Context, rows map[K]*V, keys []K, copy func(*V) *V) (map[K]*V, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	found := make(map[K]*V, len(keys))
	for _, k := range keys {
		if row := rows[k]; row != nil && found[k] == nil {
			found[k] = copy(row)
		}
	}
	return found, nil
}

// Workflows implements [backend.Reader].
func (r *reader) Workflows(ctx context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Workflow, error) {
	return pick(ctx, r.workflows, keys, copyWorkflow)
}

// Runs implements [backend.Reader].
func (r *reader) Runs(ctx context.Context, keys []backend.RunKey) (map[backend.RunKey]*backend.Run, error) {
	return pick(ctx, r.runs, keys, copyRun)
}

// RunsOf implements [backend.Reader].
func (r *reader) RunsOf(ctx context.Context, key backend.WorkflowKey, after int64, limit int) ([]*backend.Run, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var rows []*backend.Run
	if chain := r.chains[key]; chain != nil && after < math.MaxInt64 {
		for p := range chain.above(runPlace{seq: after + 1}) {
			if len(rows) == limit {
				break
			}
			rows = append(rows, copyRun(r.runs[backend.RunKey{Tenant: key.Tenant, ID: p.id}]))
		}
	}
	return rows, nil
}

// Batches implements [backend.Reader].
func (r *reader) Batches(ctx context.Context, keys []backend.BatchKey) (map[backend.BatchKey]*backend.Batch, error) {
	return pick(ctx, r.batches, keys, copyBatch)
}

// Woken implements [backend.Reader].
func (r *reader) Woken(ctx context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Woken, error) {
	return pick(ctx, r.woken, keys, copyWoken)
}

// EventsByKey implements [backend.Reader].
func (r *reader) EventsByKey(ctx context.Context, keys []backend.EventKey, payload bool) (map[backend.EventKey]*backend.Event, error) {
	return pick(ctx, r.events, keys, eventCopier(payload))
}

// EventsByNumber implements [backend.Reader].
func (r *reader) EventsByNumber(ctx context.Context, numbers []int64, payload bool) (map[int64]*backend.Event, error) {
	return pick(ctx, r.eventsByNum, numbers, eventCopier(payload))
}

func eventCopier(payload bool) func(*backend.Event) *backend.Event {
	return func(e *backend.Event) *backend.Event { return copyEvent(e, payload) }
}

// LiveEvents implements [backend.Reader].
func (r *reader) LiveEvents(ctx context.Context, lookups []backend.Lookup) ([][]*backend.Event, error) {
	return match(ctx, r, lookups, eventSide, r.eventsByNum, eventCopier(false))
}

// OpenWaits implements [backend.Reader].
func (r *reader) OpenWaits(ctx context.Context, lookups []backend.Lookup) ([][]*backend.Wait, error) {
	asked := make([]backend.Lookup, len(lookups))
	for i, l := range lookups {
		if asked[i] = l; l.Key.Namespace == "" { // where runs stand, for their kept events: no wait has such a key
			asked[i].Limit = 0
		}
	}
	return match(ctx, r, asked, waitSide, r.waitsByNum, copyWait)
}

// match reads one side of the match index.
func match[V any](
	ctx context.Context, r *reader, lookups []backend.Lookup, half side, rows map[int64]*V, copy func(*V) *V,
) ([][]*V, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	found := make([][]*V, len(lookups))
	for i, l := range lookups {
		s := r.meets[meeting{l.Tenant, l.Type, l.Key}]
		if s == nil {
			continue
		}
		for number := range half(s).above(l.After) {
			if len(found[i]) >= l.Limit {
				break
			}
			found[i] = append(found[i], copy(rows[number]))
		}
	}
	return found, nil
}

// ClaimedEvents implements [backend.Reader].
func (r *reader) ClaimedEvents(ctx context.Context, keys []backend.WaitKey) (map[backend.WaitKey]*backend.Event, error) {
	return pick(ctx, r.claimed, keys, eventCopier(false))
}

// KeptCounts implements [backend.Reader].
func (r *reader) KeptCounts(ctx context.Context, keys []backend.RunKey) (map[backend.RunKey]int, error) {
	return counts(ctx, keys, func(k backend.RunKey) int {
		if s := r.kept[k]; s != nil {
			return s.len()
		}
		return 0
	})
}

// KeptEvents implements [backend.Reader].
func (r *reader) KeptEvents(ctx context.Context, keys []backend.RunKey) ([]*backend.Event, error) {
	return ofRuns(ctx, keys, r.kept, r.eventsByNum, eventCopier(false))
}

// Waits implements [backend.Reader].
func (r *reader) Waits(ctx context.Context, keys []backend.WaitKey) (map[backend.WaitKey]*backend.Wait, error) {
	return pick(ctx, r.waits, keys, copyWait)
}

// WaitsOf implements [backend.Reader].
func (r *reader) WaitsOf(ctx context.Context, keys []backend.RunKey) ([]*backend.Wait, error) {
	return ofRuns(ctx, keys, r.runWaits, r.waitsByNum, copyWait)
}

// ofRuns reads the rows of runs by (tenant, run, number).
func ofRuns[V any](
	ctx context.Context, keys []backend.RunKey, index map[backend.RunKey]*sorted[int64], rows map[int64]*V, copy func(*V) *V,
) ([]*V, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	var found []*V
	for _, k := range sortedRuns(keys) {
		if s := index[k]; s != nil {
			for number := range s.all() {
				found = append(found, copy(rows[number]))
			}
		}
	}
	return found, nil
}

// ParkedOf implements [backend.Reader].
func (r *reader) ParkedOf(ctx context.Context, keys []backend.RunKey) (map[backend.RunKey]int, error) {
	return counts(ctx, keys, func(k backend.RunKey) int { return r.mail[k] })
}

// counts leaves out runs without any.
func counts(ctx context.Context, keys []backend.RunKey, count func(backend.RunKey) int) (map[backend.RunKey]int, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	found := make(map[backend.RunKey]int, len(keys))
	for _, k := range keys {
		if n := count(k); n > 0 {
			found[k] = n
		}
	}
	return found, nil
}
