package api

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/wire"
)

// dueOf reads what a request says is due: an instant, a duration in milliseconds, or neither. Both are refused, in the names of the request.
func dueOf(atField string, at *wire.Due, afterField string, afterMS *int64) (time.Time, *time.Duration, error) {
	if at != nil && afterMS != nil {
		return time.Time{}, nil, rendezvous.InvalidField(atField, "and %s are both given; give one", afterField)
	}
	if afterMS == nil {
		t, err := at.Instant(atField)
		return t, nil, err
	}
	ms, most := *afterMS, rendezvous.MaxTimerAfter.Milliseconds()
	switch {
	case ms < 0:
		return time.Time{}, nil, rendezvous.InvalidField(afterField, "%d is negative; give 0..%d milliseconds", ms, most).With("limit", most).With("value", ms)
	case ms > most:
		return time.Time{}, nil, rendezvous.InvalidField(afterField, "%d milliseconds are more than %d, 100 years", ms, most).With("limit", most).With("value", ms)
	}
	return time.Time{}, new(milliseconds(ms)), nil
}

func armTimer(ctx context.Context, c call, req wire.ArmTimer) (wire.Armed, error) {
	if req.FireAt == nil && req.AfterMS == nil {
		return wire.Armed{}, rendezvous.InvalidField("fire_at", "is missing; give fire_at or after_ms")
	}
	at, after, err := dueOf("fire_at", req.FireAt, "after_ms", req.AfterMS)
	if err != nil {
		return wire.Armed{}, err
	}
	got, err := c.tenant.ArmTimer(ctx, store.Arm{
		RunID: req.RunID, Epoch: req.Epoch, TimerID: req.TimerID, FireAt: at, After: after, BatchID: req.BatchID, Trace: traceOf(ctx),
	}, time.Time{})
	if err != nil {
		return wire.Armed{}, err
	}
	c.try(ctx, got.Notices)
	return wire.Armed{ArmedSeq: got.ArmedSeq, FireAt: wire.At(got.FireAt), Again: got.Again}, nil
}

func cancelTimer(ctx context.Context, c call, req wire.CancelTimer) (wire.CancelledTimer, error) {
	got, err := c.tenant.CancelTimer(ctx, req.RunID, req.Epoch, req.TimerID, req.BatchID, req.Reason, time.Time{})
	if err != nil {
		return wire.CancelledTimer{}, err
	}
	return wire.CancelledTimer{Outcome: string(got.Outcome), Seq: got.Seq, Again: got.Again}, nil
}

func listTimers(ctx context.Context, c call, req wire.ListTimers) (wire.TimerList, error) {
	ref, err := workflowRef(wire.WorkflowRef{WorkflowID: req.WorkflowID, RunID: req.RunID})
	if err != nil {
		return wire.TimerList{}, err
	}
	page, err := c.tenant.ListTimers(ctx, ref, req.Class, req.Limit, req.Cursor)
	out := wire.TimerList{Timers: make([]wire.Timer, len(page.Timers)), NextCursor: page.NextCursor}
	for i, t := range page.Timers {
		out.Timers[i] = wire.Timer{
			RunID: t.RunID, WorkflowID: t.WorkflowID, TimerID: t.TimerID, Class: t.Class, Effect: t.Effect, FireAt: wire.At(t.FireAt), ArmedSeq: t.ArmedSeq,
			Parks: t.Parks, Attempts: t.Attempts, LastError: t.LastError, Holder: t.Holder, HeldUntil: wire.At(t.HeldUntil), Corrupt: t.Corrupt != nil,
		}
		if !t.DueAt.Equal(t.FireAt) {
			out.Timers[i].DueAt = wire.At(t.DueAt)
		}
	}
	return out, err
}

// listShards shows who owns what. A pool that nobody ever joined is left out, unless it is asked for, or is the one whose shards fire timers.
func listShards(ctx context.Context, c call, req wire.ListShards) (wire.ShardList, error) {
	pools := []store.Pool{store.PoolTimer, store.PoolSweep}
	if req.Pool != "" {
		pools = []store.Pool{store.Pool(req.Pool)}
	}
	out := wire.ShardList{Shards: []wire.Shard{}, Members: []wire.Member{}}
	for _, pool := range pools {
		d, err := c.cfg.Store.ShardDirectory(ctx, pool)
		if err != nil {
			return wire.ShardList{}, err
		}
		if out.Now = wire.At(d.Now); req.Pool == "" && pool != store.PoolTimer && unused(d) {
			continue
		}
		out.Shards, out.Members = append(out.Shards, shardsOf(pool, d)...), append(out.Members, membersOf(pool, d)...)
	}
	return out, nil
}

// unused reports whether nobody ever took a shard of a pool, nor is there to.
func unused(d store.Directory) bool {
	for _, s := range d.Shards {
		if s.Epoch != 0 {
			return false
		}
	}
	return len(d.Members) == 0
}

func shardsOf(pool store.Pool, d store.Directory) []wire.Shard {
	out := make([]wire.Shard, len(d.Shards))
	for i, s := range d.Shards {
		out[i] = wire.Shard{
			Pool: string(pool), Shard: s.Shard, Owner: s.Owner, Epoch: s.Epoch, ExpiresAt: wire.At(s.ExpiresAt), RemainingMS: s.Remaining.Milliseconds(),
			Serving: s.Serving, Address: s.Address,
		}
	}
	return out
}

func membersOf(pool store.Pool, d store.Directory) []wire.Member {
	out := make([]wire.Member, len(d.Members))
	for i, m := range d.Members {
		out[i] = wire.Member{
			Pool: string(pool), Incarnation: m.Incarnation, Address: m.Address, StartedAt: wire.At(m.StartedAt), Draining: m.Draining, ExpiresAt: wire.At(m.ExpiresAt),
		}
	}
	return out
}
