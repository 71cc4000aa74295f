package engine

import (
	"context"
	"slices"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// recordNews records what waits for the end of f's lease: its parked answers, oldest claim first, and then its due timers and deadlines in the order of
// (fire_at, armed_seq, timer id), all within Collect's bounds (RN-34, TM-29). Payloads are copied into the records answered.
func (u *unit) recordNews(ctx context.Context, f *flow) (parkedOutcome, error) {
	all, err := u.recordNewsOf(ctx, []*flow{f})
	if err != nil {
		return parkedOutcome{}, err
	}
	return u.of(ctx, f, all)
}

// recordNewsOf is recordNews for many runs at once, at the cost of one, without payloads. The bounds hold for each run.
func (u *unit) recordNewsOf(ctx context.Context, flows []*flow) (map[backend.WorkflowKey]*parkedOutcome, error) {
	out, err := u.recordParkedOf(ctx, flows)
	if err != nil {
		return nil, err
	}
	var keys []backend.WorkflowKey
	for _, f := range flows {
		if f.LiveTimers > 0 {
			keys = append(keys, f.Key())
		}
	}
	if len(keys) == 0 {
		return out, nil
	}
	due, err := u.timersOf(ctx, keys, u.now)
	due = slices.DeleteFunc(due, func(t *backend.Timer) bool { return t.Class == rendezvous.TimerRun }) // the timer-worker's
	if err != nil || len(due) == 0 {
		return out, err
	}
	if out == nil {
		out = map[backend.WorkflowKey]*parkedOutcome{}
	}
	for _, f := range flows {
		if out[f.Key()] == nil {
			out[f.Key()] = &parkedOutcome{}
		}
	}
	before, added := len(u.ch.Records), map[backend.WorkflowKey]int{}
	fires := firing{
		unit:   u,
		record: func(*flow) bool { return true }, // its driver asks, or its lease is over
		room: func(f *flow, n int) bool {
			o := out[f.Key()]
			if o.more = o.more || len(o.records)+added[f.Key()] == rendezvous.MaxCollect; !o.room(n) {
				return false
			}
			added[f.Key()]++
			return true
		},
	}
	if _, err := fires.fire(ctx, due); err != nil {
		return nil, err
	}
	for _, r := range u.ch.Records[before:] {
		o := out[backend.WorkflowKey{Tenant: r.Tenant, ID: r.WorkflowID}]
		o.records = append(o.records, r)
	}
	return out, nil
}
