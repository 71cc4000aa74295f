package engine

import (
	"context"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// passOver makes the index pass over those of the waits that can be answered no more: their run is sealed or their effect closed, which is possible only after a
// restore (EV-37). It reports whether there are any: then who asked has to ask again. nil waits are none.
func (x *index) passOver(ctx context.Context, r backend.Reader, waits []*waitNode) (more bool, err error) {
	var runKeys []backend.RunKey
	var keys []backend.WaitKey
	for _, w := range waits {
		if w != nil {
			runKeys, keys = append(runKeys, backend.RunKey{Tenant: w.Tenant, ID: w.RunID}), append(keys, w.Key())
		}
	}
	if len(keys) == 0 {
		return false, nil
	}
	runs, err := r.Runs(ctx, distinct(runKeys))
	if err != nil {
		return false, err
	}
	effects, err := r.Effects(ctx, distinct(keys))
	if err != nil {
		return false, err
	}
	for _, w := range waits {
		if w == nil {
			continue
		}
		if run := runs[backend.RunKey{Tenant: w.Tenant, ID: w.RunID}]; run == nil || !run.SealedAt.IsZero() {
			x.sealed[backend.RunKey{Tenant: w.Tenant, ID: w.RunID}], more = struct{}{}, true
		}
		if standingOf(effects[w.Key()]).closed != nil {
			x.closed[w.Number], more = struct{}{}, true
		}
	}
	if more {
		x.pass()
	}
	return more, nil
}
