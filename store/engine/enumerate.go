package engine

import (
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Pages of enumerations (history.md section 7).
const (
	defaultEnumeration = 500
	maxEnumeration     = 10_000
)

// enumeration is the store as a walk sees it: those shards, nil being all (HI-28).
type enumeration struct {
	*Engine
	owned []int
}

// scoped are the verbs that a scope narrows. all is what is owned when it is asked: a walk that goes on sees what is owned then.
type scoped struct{ all func() enumeration }

// ListWorkflowIDs implements [store.Enumerations].
func (v scoped) ListWorkflowIDs(ctx context.Context, s store.Scope, after *store.WorkflowPosition, limit int) ([]store.WorkflowPosition, error) {
	return v.all().ids(ctx, s, after, limit)
}

// StreamHeads implements [store.Enumerations].
func (v scoped) StreamHeads(ctx context.Context, s store.Scope, after *store.WorkflowPosition, limit int) ([]store.WorkflowHead, error) {
	return v.all().heads(ctx, "stream_heads", s, "", after, limit)
}

// ListActive implements [store.Enumerations].
func (v scoped) ListActive(ctx context.Context, s store.Scope, after *store.WorkflowPosition, limit int) ([]store.WorkflowHead, error) {
	return v.all().heads(ctx, "list_active", s, rendezvous.StatusRunning, after, limit)
}

// ListPaused implements [store.Enumerations].
func (v scoped) ListPaused(ctx context.Context, s store.Scope, after *store.WorkflowPosition, limit int) ([]store.WorkflowHead, error) {
	return v.all().heads(ctx, "list_paused", s, rendezvous.StatusPaused, after, limit)
}

// ExpiredTimers implements [store.Enumerations].
func (v scoped) ExpiredTimers(ctx context.Context, asOf time.Time, s store.Scope, after *store.TimerPosition, limit int) ([]store.Timer, error) {
	return v.all().expired(ctx, asOf, s, after, limit)
}

// NextDue implements [store.Enumerations].
func (v scoped) NextDue(ctx context.Context, shards []int) (store.DueInstants, error) {
	return v.all().nextDue(ctx, shards)
}

// narrow is the shards that are both owned and asked for: nil asked for is all that is owned, nil answered is all there are. One that is not owned is fenced.
func (w enumeration) narrow(asked []int) ([]int, error) {
	if asked == nil {
		return w.owned, nil
	}
	if err := w.checkShards(asked); err != nil {
		return nil, err
	}
	asked = sortedShards(asked)
	for _, s := range asked {
		if _, owned := slices.BinarySearch(w.owned, s); w.owned != nil && !owned {
			return nil, rendezvous.Errorf(rendezvous.CodeFenced, "shard %d is not among those of this handle; stop work on it", s).With("shard", s)
		}
	}
	return asked, nil
}

// page judges what every enumeration is given.
func (w enumeration) page(s store.Scope, limit int) (backend.Owned, int, error) {
	limit, err := rendezvous.PageLimit(limit, defaultEnumeration, maxEnumeration)
	if err != nil {
		return backend.Owned{}, 0, err
	}
	if s.Tenant != "" {
		if err := rendezvous.CheckTenant(s.Tenant); err != nil {
			return backend.Owned{}, 0, err
		}
	}
	shards, err := w.narrow(s.Shards)
	return backend.Owned{Shards: shards, Tenant: s.Tenant}, limit, err
}

func (w enumeration) ids(ctx context.Context, s store.Scope, after *store.WorkflowPosition, limit int) ([]store.WorkflowPosition, error) {
	heads, err := w.heads(ctx, "list_workflow_ids", s, "", after, limit)
	ids := make([]store.WorkflowPosition, len(heads))
	for i, h := range heads {
		ids[i] = h.WorkflowPosition
	}
	return ids, err
}

func (w enumeration) heads(
	ctx context.Context, verb string, s store.Scope, status rendezvous.Status, after *store.WorkflowPosition, limit int,
) ([]store.WorkflowHead, error) {
	owned, limit, err := w.page(s, limit)
	if err != nil {
		return nil, err
	}
	var from backend.HeadPosition
	if after != nil {
		if err := w.checkPosition(*after); err != nil {
			return nil, err
		}
		from = backend.HeadPosition{Set: true, Shard: after.Shard, Key: backend.WorkflowKey{Tenant: after.Tenant, ID: after.WorkflowID}}
	}
	var heads []store.WorkflowHead
	err = w.view(ctx, verb, func(ctx context.Context, r backend.Reader) error {
		rows, err := r.Heads(ctx, owned, status, from, limit)
		if err != nil {
			return err
		}
		heads = make([]store.WorkflowHead, len(rows))
		for i, row := range rows {
			heads[i] = store.WorkflowHead{
				WorkflowPosition: store.WorkflowPosition{Shard: row.Shard, Tenant: row.Key.Tenant, WorkflowID: row.Key.ID}, Head: row.Head, Status: row.Status,
			}
		}
		return nil
	})
	return heads, err
}

// checkPosition judges where a walk goes on. Its shard may have left the scope since: the walk goes on behind it.
func (w enumeration) checkPosition(p store.WorkflowPosition) error {
	if err := w.checkShards([]int{p.Shard}); err != nil {
		return err
	}
	if err := rendezvous.CheckTenant(p.Tenant); err != nil {
		return err
	}
	return rendezvous.CheckID("after", p.WorkflowID)
}

func (w enumeration) expired(ctx context.Context, asOf time.Time, s store.Scope, after *store.TimerPosition, limit int) ([]store.Timer, error) {
	owned, limit, err := w.page(s, limit)
	if err != nil {
		return nil, err
	}
	if err := rendezvous.CheckInstant("as_of", asOf); err != nil {
		return nil, err
	}
	var from backend.TimerPosition
	if after != nil {
		if err := checkTimerPosition(*after); err != nil {
			return nil, err
		}
		from = backend.TimerPosition{
			Set: true, FireAt: after.FireAt, Key: backend.TimerKey{Tenant: after.Tenant, WorkflowID: after.WorkflowID, TimerID: after.TimerID},
		}
	}
	var timers []store.Timer
	err = w.view(ctx, "expired_timers", func(ctx context.Context, r backend.Reader) error {
		at := rendezvous.Instant(asOf)
		if at.IsZero() {
			at = r.Now()
		}
		rows, err := r.ExpiredTimers(ctx, at, owned, from, limit)
		if err != nil {
			return err
		}
		timers, err = listedTimers(ctx, r, rows)
		return err
	})
	return timers, err
}

func checkTimerPosition(p store.TimerPosition) error {
	if err := rendezvous.CheckInstant("after", p.FireAt); err != nil {
		return err
	}
	if err := rendezvous.CheckTenant(p.Tenant); err != nil {
		return err
	}
	if err := rendezvous.CheckID("after", p.WorkflowID); err != nil {
		return err
	}
	return rendezvous.CheckID("after", p.TimerID)
}

// listedTimers are rows as lists show them. A hold is shown while it holds: its time is not over and its shard is still owned as it was then.
func listedTimers(ctx context.Context, r backend.Reader, rows []*backend.Timer) ([]store.Timer, error) {
	var epochs map[int]int64
	timers := make([]store.Timer, len(rows))
	for i, t := range rows {
		timers[i] = storeTimer(t)
		if t.Corrupt != nil || t.Token == 0 || !t.HeldUntil.After(r.Now()) {
			continue
		}
		if epochs == nil {
			leases, err := r.ShardLeases(ctx, string(store.PoolTimer))
			if err != nil {
				return nil, err
			}
			epochs = map[int]int64{}
			for _, l := range leases {
				epochs[l.Shard] = l.Epoch
			}
		}
		if t.HoldEpoch >= epochs[t.Shard] {
			timers[i].Holder, timers[i].HeldUntil = t.Holder, t.HeldUntil
		}
	}
	return timers, nil
}

// storeTimer is a row as it is answered, without its hold. Of one that does not decode only the ids, its shard and its instant are known.
func storeTimer(t *backend.Timer) store.Timer {
	s := store.Timer{
		Tenant: t.Tenant, WorkflowRef: store.WorkflowRef{WorkflowID: t.WorkflowID, RunID: t.RunID}, TimerID: t.TimerID, Shard: t.Shard, Corrupt: t.Corrupt,
		Arming: store.Arming{FireAt: t.FireAt},
	}
	if t.Corrupt != nil {
		return s
	}
	s.Class, s.Effect, s.ArmedSeq, s.DueAt, s.Attempts, s.LastError, s.Parks, s.Trace = t.Class, t.Effect, t.ArmedSeq, t.DueAt, t.Attempts, t.LastError, t.Parks, t.Trace
	return s
}

func (w enumeration) nextDue(ctx context.Context, shards []int) (store.DueInstants, error) {
	shards, err := w.narrow(shards)
	if err != nil {
		return store.DueInstants{}, err
	}
	if shards == nil {
		for s := range w.Shards() {
			shards = append(shards, s)
		}
	}
	var due store.DueInstants
	err = w.view(ctx, "next_due", func(ctx context.Context, r backend.Reader) error {
		next, err := r.NextDue(ctx, shards)
		due = store.DueInstants{NextDue: next, Now: r.Now()}
		return err
	})
	return due, err
}
