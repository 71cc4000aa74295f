package backendtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

var shardCases = []backendCase{
	{"heads by shard, tenant and id, page by page, narrowed, of a status", heads},
	{"heads follow their workflows' status", headsMove},
	{"leases of shards come back as they went in, by pool", shardLeases},
	{"of those that take one shard at once one wins", shardRace},
	{"writers of one shard do not overlap", shardWriters},
	{"members come and go by pool", members},
	{"workflows that nobody has locked are locked", tryLock},
}

func headNames(rows []backend.WorkflowHead) []string {
	var names []string
	for _, h := range rows {
		names = append(names, fmt.Sprintf("%d %s/%s", h.Shard, h.Key.Tenant, h.Key.ID))
	}
	return names
}

// shardFlow is a workflow in a shard of choice.
func (x *bench) shardFlow(tenant, id string, shard int, status rendezvous.Status) *backend.Workflow {
	x.Helper()
	w, changes := newFlow(tenant, id, x.now())
	w.Shard, w.Status = shard, status
	if status.Terminal() {
		w.ClosedAt = w.StartedAt
	}
	x.apply(changes)
	return w
}

func heads(x *bench) {
	running, paused, done := rendezvous.StatusRunning, rendezvous.StatusPaused, rendezvous.StatusCompleted
	for i, s := range []rendezvous.Status{running, done, paused, running, done, rendezvous.StatusFailed} {
		x.shardFlow(acme, fmt.Sprint("a", i), 2, s)
		x.shardFlow(globex, fmt.Sprint("g", i), 2, s)
	}
	w := x.shardFlow(acme, "last", 63, running)
	x.shardFlow(acme, "first", 0, running)
	w.Head = 77
	x.apply(&backend.Changes{Workflows: []*backend.Workflow{w}}, w.Key())
	list := func(o backend.Owned, status rendezvous.Status, after backend.HeadPosition, limit int) []backend.WorkflowHead {
		x.Helper()
		var rows []backend.WorkflowHead
		x.view(func(r backend.Reader) { rows = got(r.Heads(ctx, o, status, after, limit))(x) })
		return rows
	}
	none := backend.HeadPosition{}
	all := []string{
		"0 acme/wfirst", "2 acme/wa0", "2 acme/wa1", "2 acme/wa2", "2 acme/wa3", "2 acme/wa4", "2 acme/wa5",
		"2 globex/wg0", "2 globex/wg1", "2 globex/wg2", "2 globex/wg3", "2 globex/wg4", "2 globex/wg5", "63 acme/wlast",
	}
	live := []string{"0 acme/wfirst", "2 acme/wa0", "2 acme/wa3", "2 globex/wg0", "2 globex/wg3", "63 acme/wlast"}
	eq(x, "all", headNames(list(backend.Owned{}, "", none, 100)), all)
	eq(x, "running", headNames(list(backend.Owned{}, running, none, 100)), live)
	eq(x, "paused", headNames(list(backend.Owned{}, paused, none, 100)), []string{"2 acme/wa2", "2 globex/wg2"})
	eq(x, "completed", headNames(list(backend.Owned{}, done, none, 2)), []string{"2 acme/wa1", "2 acme/wa4"})
	eq(x, "of shards", headNames(list(backend.Owned{Shards: []int{63, 0, 63, 5}}, "", none, 100)), []string{all[0], all[13]})
	eq(x, "running, of a shard", headNames(list(backend.Owned{Shards: []int{2}}, running, none, 100)), live[1:5])
	eq(x, "of a tenant", headNames(list(backend.Owned{Tenant: globex}, "", none, 100)), all[7:13])
	eq(x, "of a tenant and shards", headNames(list(backend.Owned{Tenant: acme, Shards: []int{2, 63}}, running, none, 100)), []string{live[1], live[2], live[5]})
	eq(x, "of no shards", headNames(list(backend.Owned{Shards: []int{}}, "", none, 100)), nil)
	for _, page := range []struct {
		owned  backend.Owned
		status rendezvous.Status
		want   []string
	}{
		{backend.Owned{}, "", all},
		{backend.Owned{}, running, live},
		{backend.Owned{Shards: []int{63, 0, 2}, Tenant: acme}, "", append(append([]string{}, all[:7]...), all[13])},
	} {
		var walked []string
		for at := none; len(walked) < 50; {
			rows := list(page.owned, page.status, at, 3)
			if len(rows) == 0 {
				break
			}
			walked = append(walked, headNames(rows)...)
			last := rows[len(rows)-1]
			at = backend.HeadPosition{Set: true, Shard: last.Shard, Key: last.Key}
		}
		eq(x, "page by page", walked, page.want)
	}
	eq(x, "a head", list(backend.Owned{Shards: []int{63}}, "", none, 1), []backend.WorkflowHead{{Shard: 63, Key: w.Key(), Head: 77, Status: running}})
}

func headsMove(x *bench) {
	w := x.flow(acme, "1")
	running := func() []string {
		x.Helper()
		var rows []backend.WorkflowHead
		x.view(func(r backend.Reader) {
			rows = got(r.Heads(ctx, backend.Owned{}, rendezvous.StatusRunning, backend.HeadPosition{}, 10))(x)
		})
		return headNames(rows)
	}
	set := func(s rendezvous.Status) {
		x.Helper()
		if w.Status, w.ClosedAt = s, (time.Time{}); s.Terminal() {
			w.ClosedAt = w.StartedAt
		}
		x.apply(&backend.Changes{Workflows: []*backend.Workflow{w}}, w.Key())
	}
	name := fmt.Sprintf("%d acme/w1", w.Shard)
	eq(x, "started", running(), []string{name})
	set(rendezvous.StatusPaused)
	eq(x, "paused", running(), nil)
	set(rendezvous.StatusRunning)
	eq(x, "resumed", running(), []string{name})
	set(rendezvous.StatusFailed)
	eq(x, "failed", running(), nil)
	set(rendezvous.StatusRunning)
	eq(x, "active again", running(), []string{name})
}

// shardLease is a lease in the pool timer, not stored yet.
func (x *bench) shardLease(shard int, owner string, epoch int64) *backend.ShardLease {
	x.Helper()
	return &backend.ShardLease{Pool: "timer", Shard: shard, Owner: owner, Epoch: epoch, ExpiresAt: x.now().Add(3 * time.Second)}
}

func (x *bench) leases(pool string) []*backend.ShardLease {
	x.Helper()
	var rows []*backend.ShardLease
	x.view(func(r backend.Reader) { rows = got(r.ShardLeases(ctx, pool))(x) })
	return rows
}

func shardLeases(x *bench) {
	a, b, other := x.shardLease(5, "pod/1", 1), x.shardLease(2, "pod/2", 1<<33), x.shardLease(5, "pod/3", 4)
	b.Serving, b.Address = true, "10.0.0.1:4222"
	other.Pool = "sweep"
	x.apply(&backend.Changes{NewShardLeases: []*backend.ShardLease{a, b, other}})
	eq(x, "leases", x.leases("timer"), []*backend.ShardLease{b, a})
	eq(x, "leases of another pool", x.leases("sweep"), []*backend.ShardLease{other})
	eq(x, "leases of a pool that is not", len(x.leases("other")), 0)
	x.stale("a lease that is there", &backend.Changes{NewShardLeases: []*backend.ShardLease{x.shardLease(7, "pod/9", 1), x.shardLease(5, "pod/9", 1)}})
	eq(x, "leases", x.leases("timer"), []*backend.ShardLease{b, a})
	for _, lock := range []backend.ShardLock{backend.ShardRenew, backend.ShardTake} {
		x.update(func(tx backend.Tx) {
			rows := got(tx.LockShards(ctx, "timer", []int{5, 1, 2, 5}, lock))(x)
			eq(x, "locked", rows, map[int]*backend.ShardLease{2: b, 5: a})
			rows[5].Epoch++
			rows[2].Owner, rows[2].ExpiresAt, rows[2].Serving, rows[2].Address = "", time.Time{}, false, ""
			if err := tx.Apply(ctx, &backend.Changes{ShardLeases: []*backend.ShardLease{rows[5], rows[2]}}); err != nil {
				x.Fatal(err)
			}
		})
		a.Epoch++
		b.Owner, b.ExpiresAt, b.Serving, b.Address = "", time.Time{}, false, ""
		eq(x, "changed leases", x.leases("timer"), []*backend.ShardLease{b, a})
	}
	w := x.flow(acme, "1")
	x.update(func(tx backend.Tx) {
		eq(x, "fenced", got(tx.LockShards(ctx, "timer", []int{5}, backend.ShardFence))(x)[5], a)
		eq(x, "workflows behind a fence", len(got(tx.LockWorkflows(ctx, []backend.WorkflowKey{w.Key()}))(x)), 1)
	})
	eq(x, "the other pool's", x.leases("sweep"), []*backend.ShardLease{other})
}

// shardRace has several take a shard that nobody ever had.
func shardRace(x *bench) {
	const takers = 8
	taken := errors.New("it is there")
	for shard := range 20 {
		errs := make([]error, takers)
		var all sync.WaitGroup
		lease := x.shardLease(shard, "", 1)
		for i := range takers {
			all.Go(func() {
				errs[i] = x.b.Update(ctx, "test", func(ctx context.Context, tx backend.Tx) error {
					rows, err := tx.LockShards(ctx, "timer", []int{shard}, backend.ShardTake)
					if err != nil {
						return err
					}
					if rows[shard] != nil {
						return taken
					}
					mine := *lease
					mine.Owner = fmt.Sprint("pod/", i)
					return tx.Apply(ctx, &backend.Changes{NewShardLeases: []*backend.ShardLease{&mine}})
				})
			})
		}
		all.Wait()
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner < 0:
				winner = i
			case err == nil:
				x.Fatalf("%d and %d both took shard %d", winner, i, shard)
			case !errors.Is(err, taken) && !errors.Is(err, backend.ErrStale) && !errors.Is(err, backend.ErrRetry):
				x.Fatal(err)
			}
		}
		if winner < 0 {
			x.Fatalf("nobody took shard %d: %v", shard, errs)
		}
		if rows := x.leases("timer"); len(rows) != shard+1 || rows[shard].Owner != fmt.Sprint("pod/", winner) {
			x.Fatalf("shard %d was taken by %d, but is %+v", shard, winner, rows[len(rows)-1])
		}
	}
}

// shardWriters has each of several count up one lease.
func shardWriters(x *bench) {
	const writers, each = 8, 10
	x.apply(&backend.Changes{NewShardLeases: []*backend.ShardLease{x.shardLease(3, "pod/1", 1)}})
	var all sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		all.Go(func() {
			for n := 0; n < each && errs[i] == nil; n++ {
				lock := []backend.ShardLock{backend.ShardTake, backend.ShardRenew}[n%2]
				errs[i] = x.countShard(lock)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		x.Fatal(err)
	}
	eq(x, "epoch", x.leases("timer")[0].Epoch, int64(1+writers*each))
}

func (x *bench) countShard(lock backend.ShardLock) error {
	for {
		err := x.b.Update(ctx, "test", func(ctx context.Context, tx backend.Tx) error {
			rows, err := tx.LockShards(ctx, "timer", []int{3}, lock)
			if err != nil {
				return err
			}
			rows[3].Epoch++
			return tx.Apply(ctx, &backend.Changes{ShardLeases: []*backend.ShardLease{rows[3]}})
		})
		if !errors.Is(err, backend.ErrRetry) {
			return err
		}
	}
}

// member is a member of the pool timer, not stored yet.
func (x *bench) member(incarnation string) *backend.Member {
	x.Helper()
	now := x.now()
	return &backend.Member{Pool: "timer", Incarnation: incarnation, Address: "10.0.0.1:4222", StartedAt: now, ExpiresAt: now.Add(3 * time.Second)}
}

func members(x *bench) {
	a, b, other := x.member("pod-b/1"), x.member("pod-a/2"), x.member("pod-b/1")
	other.Pool, other.Address = "sweep", ""
	x.apply(&backend.Changes{Members: []*backend.Member{a, b, other}})
	list := func(pool string) []*backend.Member {
		x.Helper()
		var rows []*backend.Member
		x.view(func(r backend.Reader) { rows = got(r.Members(ctx, pool))(x) })
		return rows
	}
	eq(x, "members", list("timer"), []*backend.Member{b, a})
	a.Draining, a.ExpiresAt, a.Address = true, a.ExpiresAt.Add(time.Second), "10.0.0.2:4222"
	x.apply(&backend.Changes{Members: []*backend.Member{a}, GoneMembers: []backend.MemberKey{b.Key(), {Pool: "timer", Incarnation: "none"}}})
	eq(x, "members", list("timer"), []*backend.Member{a})
	eq(x, "members of another pool", list("sweep"), []*backend.Member{other})
}

func tryLock(x *bench) {
	w, other := x.flow(acme, "1"), x.flow(acme, "2")
	x.update(func(tx backend.Tx) {
		rows := got(tx.TryLockWorkflows(ctx, []backend.WorkflowKey{other.Key(), w.Key(), flowKey(globex, "w1"), w.Key()}))(x)
		eq(x, "locked", rows, map[backend.WorkflowKey]*backend.Workflow{w.Key(): w, other.Key(): other})
		w.Head = 5
		if err := tx.Apply(ctx, &backend.Changes{Workflows: []*backend.Workflow{w}, Timers: []*backend.Timer{x.timerAt(other, "t", tx.Now())}}); err != nil {
			x.Fatal(err)
		}
	})
	x.view(func(r backend.Reader) {
		eq(x, "written under the lock", got(r.Workflows(ctx, []backend.WorkflowKey{w.Key()}))(x)[w.Key()].Head, int64(5))
		eq(x, "timers", len(got(r.TimersOf(ctx, []backend.WorkflowKey{other.Key()}, time.Time{}))(x)), 1)
	})
}
