package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// forgottenAfter is how long the row of a member stays that was not heard of any more.
const forgottenAfter = time.Minute

// checkShardTTL judges a lease's time to live: it is refused, not clamped (SH-11).
func checkShardTTL(ttl time.Duration) error {
	if ttl < store.MinShardTTL || ttl > store.MaxShardTTL {
		return rendezvous.InvalidField("ttl", "%s is outside %s..%s", ttl, store.MinShardTTL, store.MaxShardTTL).
			With("limit", store.MaxShardTTL.String()).With("value", ttl.String())
	}
	return nil
}

// AcquireOwnedShard implements [store.PoolHandle].
func (h *poolHandle) AcquireOwnedShard(ctx context.Context, shard int, ttl time.Duration) (store.ShardLease, error) {
	a, err := h.AcquireOwnedShards(ctx, []int{shard}, ttl)
	if err != nil {
		return store.ShardLease{}, err
	}
	if len(a.Lost) > 0 {
		l := a.Lost[0]
		return store.ShardLease{}, rendezvous.Errorf(rendezvous.CodeLeaseHeld, "shard %d is %q's for another %s; wait for its end", shard, l.Owner,
			l.Remaining.Round(time.Millisecond)).With("shard", shard).With("owner", l.Owner).With("remaining_ms", l.Remaining.Milliseconds())
	}
	return a.Won[0], nil
}

// AcquireOwnedShards implements [store.PoolHandle].
func (h *poolHandle) AcquireOwnedShards(ctx context.Context, shards []int, ttl time.Duration) (store.Acquisition, error) {
	if err := checkShardTTL(ttl); err != nil {
		return store.Acquisition{}, err
	}
	if err := h.checkShards(shards); err != nil {
		return store.Acquisition{}, err
	}
	h.mu.Lock()
	draining := h.draining
	h.mu.Unlock()
	if draining {
		return store.Acquisition{}, drains(h.owner)
	}
	start := h.clock.Now()
	var a store.Acquisition
	_, err := h.update(ctx, "acquire_shards", time.Time{}, func(ctx context.Context, u *unit) (err error) {
		a, err = u.acquireShards(ctx, h.pool, h.owner, sortedShards(shards), ttl)
		return err
	})
	if err != nil {
		return store.Acquisition{}, err
	}
	h.believe(a.Won, start, ttl, true)
	return a, nil
}

func drains(owner string) error {
	return conflict("draining", true, "member %q is draining and takes no shard any more; start it again", owner)
}

// acquireShards takes what is free or has expired. A lease that another owner has is seen without a lock: whoever asks for it delays none of its pages (SH-30).
func (u *unit) acquireShards(ctx context.Context, pool store.Pool, owner string, shards []int, ttl time.Duration) (a store.Acquisition, err error) {
	if err := u.mayAcquire(ctx, pool, owner); err != nil {
		return a, err
	}
	seen, err := u.tx.ShardLeases(ctx, string(pool))
	if err != nil {
		return a, err
	}
	held := map[int]*backend.ShardLease{}
	for _, l := range seen {
		if l.Owner != owner && shardHeld(l, u.now) {
			held[l.Shard] = l
		}
	}
	open := slices.DeleteFunc(slices.Clone(shards), func(s int) bool { return held[s] != nil })
	rows, err := u.tx.LockShards(ctx, string(pool), open, backend.ShardTake)
	if err != nil {
		return a, err
	}
	for _, s := range shards {
		l := rows[s]
		switch {
		case held[s] != nil:
			a.Lost = append(a.Lost, shardLease(held[s], u.now))
			continue
		case l == nil:
			l = &backend.ShardLease{Pool: string(pool), Shard: s, Owner: owner, Epoch: 1, ExpiresAt: u.shardExpiry(ttl)}
			u.ch.NewShardLeases = append(u.ch.NewShardLeases, l)
		case !shardHeld(l, u.now):
			l.Owner, l.Epoch, l.ExpiresAt, l.Serving, l.Address = owner, l.Epoch+1, u.shardExpiry(ttl), false, ""
			u.ch.ShardLeases = append(u.ch.ShardLeases, l)
		case l.Owner == owner: // a retry after a lost reply (SH-9)
			u.extend(l, ttl)
		default:
			a.Lost = append(a.Lost, shardLease(l, u.now))
			continue
		}
		a.Won = append(a.Won, shardLease(l, u.now))
	}
	return a, nil
}

// mayAcquire refuses a member that drains.
func (u *unit) mayAcquire(ctx context.Context, pool store.Pool, owner string) error {
	members, err := u.tx.Members(ctx, string(pool))
	if err != nil {
		return err
	}
	if slices.ContainsFunc(members, func(m *backend.Member) bool { return m.Incarnation == owner && m.Draining }) {
		return drains(owner)
	}
	return nil
}

// shardHeld reports whether somebody's live lease is on the shard: only the store's now decides (I16).
func shardHeld(l *backend.ShardLease, now time.Time) bool {
	return l.Owner != "" && l.ExpiresAt.After(now)
}

func (u *unit) shardExpiry(ttl time.Duration) time.Time { return rendezvous.DueInstant(u.now.Add(ttl)) }

// extend lets a live lease end ttl from now, if it does not end later already.
func (u *unit) extend(l *backend.ShardLease, ttl time.Duration) {
	if end := u.shardExpiry(ttl); end.After(l.ExpiresAt) {
		l.ExpiresAt = end
		u.ch.ShardLeases = append(u.ch.ShardLeases, l)
	}
}

// PublishShardOwner implements [store.PoolHandle].
func (h *poolHandle) PublishShardOwner(ctx context.Context, shard int, epoch int64, address string) error {
	if err := h.checkShards([]int{shard}); err != nil {
		return err
	}
	if err := checkAddress(address); err != nil {
		return err
	}
	var lost []int
	_, err := h.update(ctx, "publish_shard", time.Time{}, func(ctx context.Context, u *unit) error {
		// The row is written, so the lock is a renewal's: under a fence's, a renewal in between would be undone.
		rows, _, refused, err := u.fenceRows(ctx, backend.ShardRenew, h.pool, h.owner, []store.ShardEpoch{{Shard: shard, Epoch: epoch}})
		if lost = refused; err != nil {
			return err
		}
		if l := rows[shard]; !l.Serving || l.Address != address {
			l.Serving, l.Address = true, address
			u.ch.ShardLeases = append(u.ch.ShardLeases, l)
		}
		return nil
	})
	h.doubt([]store.ShardEpoch{{Shard: shard, Epoch: epoch}}, lost)
	return err
}

// checkAddress judges where a pod can be reached, which may be empty.
func checkAddress(s string) error {
	if s == "" {
		return nil
	}
	return rendezvous.CheckID("address", s)
}

// RenewOwnedShards implements [store.PoolHandle].
func (h *poolHandle) RenewOwnedShards(ctx context.Context, shards []store.ShardEpoch, ttl time.Duration, m store.Member) (store.Renewal, error) {
	if err := checkShardTTL(ttl); err != nil {
		return store.Renewal{}, err
	}
	if err := h.checkEpochs(shards); err != nil {
		return store.Renewal{}, err
	}
	if err := h.checkMember(m); err != nil {
		return store.Renewal{}, err
	}
	h.mu.Lock()
	h.draining = h.draining || m.Draining // also when the store cannot be told now
	m.Draining = h.draining
	h.mu.Unlock()
	start := h.clock.Now()
	row := &backend.Member{Pool: string(h.pool), Incarnation: h.owner, Address: m.Address, StartedAt: rendezvous.Instant(m.StartedAt), Draining: m.Draining}
	var r store.Renewal
	_, err := h.update(ctx, "renew_shards", time.Time{}, func(ctx context.Context, u *unit) (err error) {
		member := *row
		r, err = u.renewShards(ctx, &member, shards, ttl)
		return err
	})
	if err != nil {
		return store.Renewal{}, err
	}
	h.believe(r.Held, start, ttl, false)
	lost := make([]int, len(r.Lost))
	for i, l := range r.Lost {
		lost[i] = l.Shard
	}
	h.lose(lost)
	return r, nil
}

func (h *poolHandle) checkMember(m store.Member) error {
	if m.Incarnation != "" && m.Incarnation != h.owner {
		return rendezvous.InvalidField("incarnation", "%q is not this handle's, which is %q", m.Incarnation, h.owner)
	}
	if err := checkAddress(m.Address); err != nil {
		return err
	}
	return rendezvous.CheckInstant("started_at", m.StartedAt)
}

// renewShards is heartbeat, renewal and directory in one. It never revives a lease and never takes one (SH-12).
func (u *unit) renewShards(ctx context.Context, m *backend.Member, shards []store.ShardEpoch, ttl time.Duration) (r store.Renewal, err error) {
	rows, err := u.tx.LockShards(ctx, m.Pool, numbersOf(shards), backend.ShardRenew)
	if err != nil {
		return r, err
	}
	own := map[int]*backend.ShardLease{}
	for _, s := range distinct(shards) {
		if l := rows[s.Shard]; ownsShard(l, m.Incarnation, s.Epoch, u.now) {
			u.extend(l, ttl)
			own[s.Shard] = l
			r.Held = append(r.Held, shardLease(l, u.now))
		}
	}
	for _, s := range numbersOf(shards) {
		if own[s] != nil {
			continue
		}
		l := rows[s]
		if l == nil {
			l = &backend.ShardLease{Shard: s}
		}
		r.Lost = append(r.Lost, shardLease(l, u.now))
	}
	slices.SortFunc(r.Held, func(a, b store.ShardLease) int { return a.Shard - b.Shard })
	leases, err := u.tx.ShardLeases(ctx, m.Pool)
	if err != nil {
		return r, err
	}
	for i, l := range leases {
		if own[l.Shard] != nil {
			leases[i] = own[l.Shard]
		}
	}
	members, err := u.heartbeat(ctx, m, ttl)
	if err != nil {
		return r, err
	}
	r.Directory = directory(u.engine.Shards(), leases, members, u.now)
	return r, nil
}

// heartbeat writes the member's row and answers the pool's members with it. A member that drains does so to its end, and keeps when it started.
func (u *unit) heartbeat(ctx context.Context, m *backend.Member, ttl time.Duration) ([]*backend.Member, error) {
	members, err := u.tx.Members(ctx, m.Pool)
	if err != nil {
		return nil, err
	}
	m.ExpiresAt = u.shardExpiry(ttl)
	at, known := slices.BinarySearchFunc(members, m.Incarnation, func(o *backend.Member, own string) int { return strings.Compare(o.Incarnation, own) })
	if known {
		m.Draining, m.StartedAt = m.Draining || members[at].Draining, members[at].StartedAt
		members[at] = m
	} else {
		members = slices.Insert(members, at, m)
	}
	if m.StartedAt.IsZero() {
		m.StartedAt = u.now
	}
	u.ch.Members = append(u.ch.Members, m)
	u.forgetMembers(members, m)
	return members, nil
}

// forgetMembers drops rows of members that died long ago. One member does it for all: the first that lives.
func (u *unit) forgetMembers(members []*backend.Member, m *backend.Member) {
	for _, o := range members {
		if o.ExpiresAt.After(u.now) {
			if o != m {
				return
			}
			break
		}
	}
	for _, o := range members {
		if !o.ExpiresAt.After(u.now.Add(-forgottenAfter)) {
			u.ch.GoneMembers = append(u.ch.GoneMembers, o.Key())
		}
	}
}

// ReleaseOwnedShards implements [store.PoolHandle].
func (h *poolHandle) ReleaseOwnedShards(ctx context.Context, shards []store.ShardEpoch) error {
	if err := h.checkEpochs(shards); err != nil {
		return err
	}
	h.lose(numbersOf(shards))
	_, err := h.update(ctx, "release_shards", time.Time{}, func(ctx context.Context, u *unit) error {
		// A renewal's lock waits for no page: a page still under way ends before the next owner's take, which does wait for it.
		rows, err := u.tx.LockShards(ctx, string(h.pool), numbersOf(shards), backend.ShardRenew)
		if err != nil {
			return err
		}
		for _, s := range distinct(shards) {
			if l := rows[s.Shard]; l != nil && l.Owner == h.owner && l.Epoch == s.Epoch {
				l.Owner, l.ExpiresAt, l.Serving, l.Address = "", u.now, false, "" // the epoch stays: it is never used again
				u.ch.ShardLeases = append(u.ch.ShardLeases, l)
			}
		}
		return nil
	})
	return err
}

// Leave implements [store.PoolHandle].
func (h *poolHandle) Leave(ctx context.Context) error {
	h.mu.Lock()
	h.draining = true
	h.mu.Unlock()
	_, err := h.update(ctx, "leave_pool", time.Time{}, func(_ context.Context, u *unit) error {
		u.ch.GoneMembers = []backend.MemberKey{{Pool: string(h.pool), Incarnation: h.owner}}
		return nil
	})
	return err
}

// ShardDirectory implements [store.Pools].
func (e *Engine) ShardDirectory(ctx context.Context, pool store.Pool) (d store.Directory, err error) {
	if err := checkPool(pool); err != nil {
		return d, err
	}
	err = e.view(ctx, "shard_directory", func(ctx context.Context, r backend.Reader) error {
		leases, err := r.ShardLeases(ctx, string(pool))
		if err != nil {
			return err
		}
		members, err := r.Members(ctx, string(pool))
		if err != nil {
			return err
		}
		d = directory(e.Shards(), leases, members, r.Now())
		return nil
	})
	return d, err
}

// directory names all n shards, the free ones too, and the members that live.
func directory(n int, leases []*backend.ShardLease, members []*backend.Member, now time.Time) store.Directory {
	d := store.Directory{Shards: make([]store.ShardLease, n), Now: now}
	for i := range d.Shards {
		d.Shards[i].Shard = i
	}
	for _, l := range leases {
		if l.Shard < n {
			d.Shards[l.Shard] = shardLease(l, now)
		}
	}
	for _, m := range members {
		if m.ExpiresAt.After(now) {
			d.Members = append(d.Members, store.Member{
				Incarnation: m.Incarnation, Address: m.Address, StartedAt: m.StartedAt, Draining: m.Draining, ExpiresAt: m.ExpiresAt,
			})
		}
	}
	return d
}

// shardLease is a row as it is answered: of one that is free no time is left.
func shardLease(l *backend.ShardLease, now time.Time) store.ShardLease {
	s := store.ShardLease{Shard: l.Shard, Owner: l.Owner, Epoch: l.Epoch, ExpiresAt: l.ExpiresAt, Serving: l.Serving, Address: l.Address}
	if shardHeld(l, now) {
		s.Remaining = l.ExpiresAt.Sub(now)
	}
	return s
}
