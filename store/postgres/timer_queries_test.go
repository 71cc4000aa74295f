package postgres_test

import (
	"context"
	"fmt"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

var (
	due1   = backend.TimerKey{Tenant: "globex", WorkflowID: "live-1", TimerID: "due"}
	due2   = backend.TimerKey{Tenant: "globex", WorkflowID: "live-2", TimerID: "due"}
	slept2 = backend.RunKey{Tenant: "acme", ID: "live-2"}
)

// some is how many rows a page must have on the filled store; not asked of one that is still empty.
func some[T any](want int) func(rows []T, err error) error {
	return func(rows []T, err error) error {
		if err == nil && len(rows) != 0 && len(rows) != want {
			err = fmt.Errorf("%d rows, want %d", len(rows), want)
		}
		return err
	}
}

func upTo(n int) []int {
	shards := make([]int, n)
	for i := range shards {
		shards[i] = i
	}
	return shards
}

func due(shards []int, limit, want int) func(ctx context.Context, tx backend.Tx) error {
	return func(ctx context.Context, tx backend.Tx) error {
		rows, _, err := tx.DueTimers(ctx, shards, limit)
		return some[*backend.Timer](want)(rows, err)
	}
}

func expired(o backend.Owned, want int) func(ctx context.Context, tx backend.Tx) error {
	return func(ctx context.Context, tx backend.Tx) error {
		return some[*backend.Timer](want)(tx.ExpiredTimers(ctx, tx.Now(), o, backend.TimerPosition{}, 10))
	}
}

func heads(o backend.Owned, status rendezvous.Status, after backend.HeadPosition) func(ctx context.Context, tx backend.Tx) error {
	return func(ctx context.Context, tx backend.Tx) error {
		return some[backend.WorkflowHead](10)(tx.Heads(ctx, o, status, after, 10))
	}
}

func lock(how backend.ShardLock) func(ctx context.Context, tx backend.Tx) error {
	return func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.LockShards(ctx, "timer", []int{3, 5}, how))
	}
}

// timerQueries are those about timers and shards.
var timerQueries = []query{
	{"TryLockWorkflows", 2, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.TryLockWorkflows(ctx, []backend.WorkflowKey{live1, held1}))
	}},
	{"Timers", 2, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.Timers(ctx, []backend.TimerKey{due1, due2}))
	}},
	{"LockTimers", 2, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.LockTimers(ctx, []backend.TimerKey{due1, due2}))
	}},
	{"HeldTimers", 3, func(ctx context.Context, tx backend.Tx) error { return ask(tx.HeldTimers(ctx, []int64{0, 7, 8})) }},
	{"TimersOf", 2, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.TimersOf(ctx, []backend.WorkflowKey{held1}, tx.Now()))
	}},
	{"ListTimers", 2, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.ListTimers(ctx, held1, rendezvous.TimerAuthor, backend.TimerPosition{}, 10))
	}},
	{"CountTimers", 13, func(ctx context.Context, tx backend.Tx) error { return ask(tx.CountTimers(ctx, "globex")) }},
	{"LastTimerRecords", 2, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.LastTimerRecords(ctx, []backend.RunTimerKey{{Tenant: "acme", RunID: "live-2", TimerID: "t-1"}, {Tenant: "acme", RunID: "live-2", TimerID: "t-1001"}}))
	}},
	// All records about timers of a run that armed 1,001, and for each arming those behind it.
	{"OutstandingTimers", 3002, func(ctx context.Context, tx backend.Tx) error {
		return some[rendezvous.Record](1)(tx.OutstandingTimers(ctx, slept2, 10))
	}},
	{"FinalFailures", 2, func(ctx context.Context, tx backend.Tx) error { return ask(tx.FinalFailures(ctx, run1)) }},
	// A page of each shard that has so many.
	{"TM-4 ExpiredTimers", 20, expired(backend.Owned{}, 10)},
	{"TM-4 ExpiredTimers of shards", 10, expired(backend.Owned{Shards: []int{0, 1}}, 10)},
	{"TM-4 ExpiredTimers of a tenant", 10, expired(backend.Owned{Tenant: "globex"}, 10)},
	{"TM-4 ExpiredTimers, a later page", 20, func(ctx context.Context, tx backend.Tx) error {
		after := backend.TimerPosition{Set: true, FireAt: tx.Now().Add(-24*time.Hour + time.Hour), Key: backend.TimerKey{Tenant: "acme", WorkflowID: "live-0"}}
		return ask(tx.ExpiredTimers(ctx, tx.Now(), backend.Owned{}, after, 10))
	}},
	// One row and one lease each; and the three whose hold is void.
	{"NextDue", 131, func(ctx context.Context, tx backend.Tx) error { return ask(tx.NextDue(ctx, upTo(64))) }},
	{"TM-27 DueTimers", 30, due(upTo(4), 20, 13)},
	// One more than the page, to see that it is not all; tenants and their first; each tenant's share, and what is left of the page.
	{"TM-34 DueTimers in a flood", 110, due([]int{0, 5}, 10, 10)},
	{"HI-24 Heads", 10, heads(backend.Owned{}, "", backend.HeadPosition{})},
	{"HI-24 Heads, a later page", 10, heads(backend.Owned{}, "", backend.HeadPosition{Set: true, Key: backend.WorkflowKey{Tenant: "acme", ID: "done-5"}})},
	{"HI-24 Heads of a tenant", 10, heads(backend.Owned{Tenant: "globex"}, "", backend.HeadPosition{})},
	{"HI-24 Heads of shards", 10, heads(backend.Owned{Shards: []int{0, 3}}, "", backend.HeadPosition{})},
	{"HI-24 Heads that run", 10, heads(backend.Owned{}, rendezvous.StatusRunning, backend.HeadPosition{})},
	{"HI-24 Heads of a tenant that run", 10, heads(backend.Owned{Tenant: "globex"}, rendezvous.StatusRunning, backend.HeadPosition{})},
	{"HI-24 Heads that are paused", 0, heads(backend.Owned{}, rendezvous.StatusPaused, backend.HeadPosition{})},
	{"ShardLeases", 64, func(ctx context.Context, tx backend.Tx) error { return ask(tx.ShardLeases(ctx, "timer")) }},
	{"Members", 3, func(ctx context.Context, tx backend.Tx) error { return ask(tx.Members(ctx, "timer")) }},
	{"LockShards to fence", 2, lock(backend.ShardFence)},
	{"LockShards to renew", 2, lock(backend.ShardRenew)},
	{"LockShards to take", 2, lock(backend.ShardTake)},
	// Each write looks up what it changes.
	{"Apply of timers", 4, func(ctx context.Context, tx backend.Tx) error {
		gone := backend.TimerKey{Tenant: "globex", WorkflowID: "live-5", TimerID: "due"}
		rows, err := tx.LockTimers(ctx, []backend.TimerKey{due1})
		if err != nil {
			return err
		}
		c := backend.Changes{GoneTimers: []backend.TimerKey{gone}}
		for _, x := range rows {
			c.HeldTimers = append(c.HeldTimers, x)
			again := *x
			again.WorkflowID = gone.WorkflowID
			c.Timers = append(c.Timers, &again)
		}
		return tx.Apply(ctx, &c)
	}},
	{"Apply of leases and members", 6, func(ctx context.Context, tx backend.Tx) error {
		rows, err := tx.LockShards(ctx, "timer", []int{3}, backend.ShardRenew)
		if err != nil {
			return err
		}
		c := backend.Changes{
			NewShardLeases: []*backend.ShardLease{{Pool: "sweep", Shard: int(tx.Now().UnixMicro() % 1_000_000_000), Epoch: 1}},
			GoneMembers:    []backend.MemberKey{{Pool: "timer", Incarnation: "pod/1"}},
			Members:        []*backend.Member{{Pool: "sweep", Incarnation: "pod/2", StartedAt: tx.Now(), ExpiresAt: tx.Now()}},
		}
		for _, l := range rows {
			c.ShardLeases = append(c.ShardLeases, l)
		}
		return tx.Apply(ctx, &c)
	}},
}
