package engine

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// beliefMargin is how long before a lease ends its owner no longer believes in it: time to stop (SH-15).
const beliefMargin = 300 * time.Millisecond

// poolHandle is the store as one pod of one pool sees it.
type poolHandle struct {
	*Engine
	scoped
	pool  store.Pool
	owner string // an incarnation

	mu       sync.Mutex
	scope    []int // sorted; nil is own-all. Replaced, never changed: whoever took it may keep it
	beliefs  map[int]belief
	draining bool // for the rest of this life
}

// belief is why a pod thinks that a shard is its own.
type belief struct {
	epoch int64
	until time.Time // by the process's clock
}

var _ store.PoolHandle = (*poolHandle)(nil)

// PoolHandle implements [store.Pools].
func (e *Engine) PoolHandle(pool store.Pool, incarnation string) (store.PoolHandle, error) {
	if err := checkPool(pool); err != nil {
		return nil, err
	}
	if err := checkIncarnation(incarnation); err != nil {
		return nil, err
	}
	h := &poolHandle{Engine: e, pool: pool, owner: incarnation, beliefs: map[int]belief{}}
	h.scoped.all = func() enumeration { return enumeration{e, h.owned()} }
	return h, nil
}

// Shards implements [store.Pools].
func (e *Engine) Shards() int { return e.backend.Shards() }

func checkPool(p store.Pool) error {
	if p == store.PoolTimer || p == store.PoolSweep {
		return nil
	}
	return rendezvous.InvalidField("pool", "%q is no pool; give %s or %s", string(p), store.PoolTimer, store.PoolSweep)
}

// checkIncarnation judges a member name, "/" and an id: a pod that starts again is a stranger to its former self.
func checkIncarnation(s string) error {
	if err := rendezvous.CheckID("incarnation", s); err != nil {
		return err
	}
	if slash := strings.LastIndexByte(s, '/'); slash <= 0 || slash == len(s)-1 {
		return rendezvous.InvalidField("incarnation", "%q is not a member's name, a slash and an id", s)
	}
	return nil
}

// checkShards judges numbers of shards; they may repeat.
func (e *Engine) checkShards(shards []int) error {
	for _, s := range shards {
		if n := e.Shards(); s < 0 || s >= n {
			return rendezvous.InvalidField("shard", "%d is outside 0..%d", s, n-1).With("limit", n-1).With("value", s)
		}
	}
	return nil
}

// checkEpochs judges shards with the epochs under which their caller holds them.
func (e *Engine) checkEpochs(shards []store.ShardEpoch) error {
	for _, s := range shards {
		if err := e.checkShards([]int{s.Shard}); err != nil {
			return err
		}
	}
	return nil
}

// sortedShards is a set of shards by number; nil stays nil, and empty stays empty.
func sortedShards(shards []int) []int {
	if shards == nil {
		return nil
	}
	set := slices.Clone(shards)
	slices.Sort(set)
	return append([]int{}, slices.Compact(set)...)
}

// SetOwnedShards implements [store.PoolHandle].
func (h *poolHandle) SetOwnedShards(shards []int) error {
	if err := h.checkShards(shards); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.scope = sortedShards(shards)
	return nil
}

// ExtendOwnedShards implements [store.PoolHandle].
func (h *poolHandle) ExtendOwnedShards(shards []int) error {
	if err := h.checkShards(shards); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.scope != nil {
		h.scope = sortedShards(append(slices.Clip(h.scope), shards...))
	}
	return nil
}

// owned is the scope as it is now: what an enumeration that begins now sees.
func (h *poolHandle) owned() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.scope
}

// lose drops shards from the scope and ends the belief in them. Own-all stays: it means everything, whoever owns it.
func (h *poolHandle) lose(shards []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range shards {
		delete(h.beliefs, s)
	}
	if h.scope != nil {
		h.scope = append([]int{}, slices.DeleteFunc(slices.Clone(h.scope), func(s int) bool { return slices.Contains(shards, s) })...)
	}
}

// doubt ends the belief in shards whose fence refused this pod (SH-15), unless it holds one anew by now: under a later epoch than the one that was refused.
func (h *poolHandle) doubt(asked []store.ShardEpoch, lost []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range asked {
		if h.beliefs[s.Shard].epoch <= s.Epoch && slices.Contains(lost, s.Shard) {
			delete(h.beliefs, s.Shard)
		}
	}
}

// believe notes shards that are this pod's for ttl from start, when it asked for them. A renewal (anew is false) holds up a belief and makes none: what was
// released meanwhile stays released.
func (h *poolHandle) believe(leases []store.ShardLease, start time.Time, ttl time.Duration, anew bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	until := start.Add(ttl - beliefMargin)
	for _, l := range leases {
		b, known := h.beliefs[l.Shard]
		known = known && b.epoch == l.Epoch
		switch {
		case known && until.After(b.until), !known && anew:
			h.beliefs[l.Shard] = belief{l.Epoch, until}
		}
	}
}

// IsCurrentOwner implements [store.PoolHandle].
func (h *poolHandle) IsCurrentOwner(shard int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, ok := h.beliefs[shard]
	return ok && h.clock.Now().Before(b.until)
}

// fenced makes a write verb of the shards that pass the fence; fn plans for those. It answers the others. None passes: fenced.
func (h *poolHandle) fenced(
	ctx context.Context, verb string, shards []store.ShardEpoch, fn func(ctx context.Context, u *unit, passed []store.ShardEpoch) error,
) (lost []int, notices store.Notices, err error) {
	if len(shards) == 0 {
		return nil, notices, rendezvous.InvalidField("shards", "is empty; give those to work on, with their epochs")
	}
	if err := h.checkEpochs(shards); err != nil {
		return nil, notices, err
	}
	notices, err = h.update(ctx, verb, time.Time{}, func(ctx context.Context, u *unit) (err error) {
		var passed []store.ShardEpoch
		if passed, lost, err = u.fence(ctx, h.pool, h.owner, shards); err != nil {
			return err
		}
		return fn(ctx, u, passed)
	})
	h.doubt(shards, lost)
	return lost, notices, err
}

// fence is the first thing a write verb of shards does (shards.md section 2): it shares their lease rows until the end of the transaction, so that no takeover
// falls within, and tells the shards that are the caller's at that epoch, by number, from those that are not. None is: fenced.
func (u *unit) fence(ctx context.Context, pool store.Pool, owner string, shards []store.ShardEpoch) (passed []store.ShardEpoch, lost []int, err error) {
	_, passed, lost, err = u.fenceRows(ctx, backend.ShardFence, pool, owner, shards)
	return passed, lost, err
}

// fenceRows is fence under any lock that a takeover waits for, with the rows.
func (u *unit) fenceRows(
	ctx context.Context, lock backend.ShardLock, pool store.Pool, owner string, shards []store.ShardEpoch,
) (rows map[int]*backend.ShardLease, passed []store.ShardEpoch, lost []int, err error) {
	if rows, err = u.tx.LockShards(ctx, string(pool), numbersOf(shards), lock); err != nil {
		return nil, nil, nil, err
	}
	for _, s := range distinct(shards) {
		if ownsShard(rows[s.Shard], owner, s.Epoch, u.now) {
			passed = append(passed, s)
		}
	}
	for _, s := range shards {
		if !slices.ContainsFunc(passed, func(p store.ShardEpoch) bool { return p.Shard == s.Shard }) {
			lost = append(lost, s.Shard)
		}
	}
	lost = sortedShards(lost)
	if len(passed) == 0 && len(shards) > 0 {
		return nil, nil, lost, shardFenced(shards[0], rows[shards[0].Shard])
	}
	slices.SortFunc(passed, func(a, b store.ShardEpoch) int { return a.Shard - b.Shard })
	return rows, passed, lost, nil
}

// ownsShard reports whether a lease is live, of that owner and of exactly that epoch: neither a stale nor an invented one passes (SH-14).
func ownsShard(l *backend.ShardLease, owner string, epoch int64, now time.Time) bool {
	return l != nil && l.Owner == owner && l.Epoch == epoch && l.ExpiresAt.After(now)
}

// numbersOf is the set of shards of a list, by number.
func numbersOf(shards []store.ShardEpoch) []int { return sortedShards(store.ShardNumbers(shards)) }

func shardFenced(s store.ShardEpoch, l *backend.ShardLease) error {
	var current int64
	if l != nil {
		current = l.Epoch
	}
	return rendezvous.Errorf(rendezvous.CodeFenced, "epoch %d of shard %d is not good (it is %d now, or its lease ended); stop work on this shard", s.Epoch, s.Shard,
		current).With("shard", s.Shard).With("epoch", current)
}
