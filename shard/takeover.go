package shard

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rendezvous-events/rendezvous/store"
)

// look judges what the last directory says now: who holds how much, and which shards nobody has.
func (m *Member) look() (d division, free []int) {
	at := m.storeNow()
	d = division{shards: len(m.seen.Shards), held: map[string]int{}}
	for _, o := range m.seen.Members { // that lived when it was read
		if !o.Draining {
			d.held[o.Incarnation] = 0
		}
	}
	for _, l := range m.seen.Shards {
		if !ownedAt(l, at) {
			free = append(free, l.Shard)
		} else if _, live := d.held[l.Owner]; live {
			d.held[l.Owner]++
		}
	}
	return d, free
}

// storeNow is about what the store's clock says: never more.
func (m *Member) storeNow() time.Time { return m.seen.Now.Add(m.deps.Clock.Now().Sub(m.seenAt)) }

func ownedAt(l store.ShardLease, at time.Time) bool { return l.Owner != "" && l.ExpiresAt.After(at) }

// giveBack gives up what is over the quota, least preferred first and a part at a time, and answers whether more is to go.
func (m *Member) giveBack() (more bool) {
	d, _ := m.look()
	quota, in := d.quotas()[m.deps.Incarnation]
	now := m.deps.Clock.Now()
	working := m.working()
	own := slices.DeleteFunc(slices.Clone(working), func(s int) bool { return now.Before(m.held[s].foster) })
	surplus := len(own) - quota
	if !in || surplus <= 0 {
		return false
	}
	if now.Before(m.gaveBack.Add(pace)) {
		return true
	}
	part := preferred(own, m.deps.Incarnation)
	part = part[len(part)-min(surplus, max(len(working)/4, 2)):]
	m.gaveBack = now
	m.giveUp(part)
	return surplus > len(part)
}

// takeOver takes the free shards that are this member's to take, in the order of shards.md section 4, and answers whether there are more of them.
func (m *Member) takeOver(ctx context.Context) (more bool) {
	shards, foster := m.mine()
	if more = len(shards) > mostAtOnce; more {
		shards = shards[:mostAtOnce]
	}
	if len(shards) == 0 {
		return false
	}
	var a store.Acquisition
	err := m.call(ctx, func(ctx context.Context) (err error) {
		a, err = m.deps.Leases.AcquireOwnedShards(ctx, shards, m.cfg.TTL)
		return err
	})
	if err != nil { // won or not: if so, the next round sees them as this member's and asks again
		m.deps.Log.Warn("shards could not be acquired", "pool", m.deps.Pool, "member", m.deps.Incarnation, "error", err)
		return false
	}
	m.metrics.acquired.Add(ctx, int64(len(a.Won)), m.metrics.pool)
	m.metrics.lose("election", len(a.Lost))
	for _, l := range a.Lost {
		m.seen.Shards[l.Shard] = l
	}
	m.adopt(ctx, a.Won, foster)
	return more
}

// mine are the free shards that this member is to take, preferred ones first, and for how long it keeps those that it takes because nobody else does, though
// they may be over its quota.
func (m *Member) mine() (shards []int, foster map[int]time.Duration) {
	d, free := m.look()
	me := m.deps.Incarnation
	if _, in := d.held[me]; !in {
		return nil, nil
	}
	now := m.deps.Clock.Now()
	m.noteFree(free)
	free = slices.DeleteFunc(free, func(s int) bool { return now.Before(m.shunned[s]) })
	strays := m.strays()
	d.held[me] = len(m.working())
	wish := d.wish(free)
	for _, s := range free {
		if wish[s] == me {
			shards = append(shards, s)
		}
	}
	room := d.ceil() - len(m.working()) - len(shards)
	foster = map[int]time.Duration{}
	for _, s := range preferred(slices.Clone(free), me) {
		switch alone := now.Sub(m.freeSince[s]); {
		case wish[s] == me:
		case alone >= orphaned && room > 0:
			room--
			shards, foster[s] = append(shards, s), orphaned*5
		case alone >= deserted:
			shards, foster[s] = append(shards, s), deserted*15
		}
	}
	return append(strays, preferred(shards, me)...), foster
}

// noteFree keeps since when shards are seen free.
func (m *Member) noteFree(free []int) {
	since := make(map[int]time.Time, len(free))
	for _, s := range free {
		since[s] = m.deps.Clock.Now()
		if before, known := m.freeSince[s]; known {
			since[s] = before
		}
	}
	m.freeSince = since
}

// strays are shards that are this member's in the store and that it does not hold: the reply was lost.
func (m *Member) strays() (shards []int) {
	at := m.storeNow()
	for _, l := range m.seen.Shards {
		if l.Owner == m.deps.Incarnation && m.held[l.Shard] == nil && ownedAt(l, at) {
			shards = append(shards, l.Shard)
		}
	}
	return shards
}

// adopt makes acquired shards this member's work. Each step drops alone what fails it; publishing comes before extending, so that no enumeration sees a shard
// whose fence was not passed (SH-17, SH-18).
func (m *Member) adopt(ctx context.Context, won []store.ShardLease, foster map[int]time.Duration) {
	if m.reversed {
		_ = m.deps.Leases.ExtendOwnedShards(numbers(won))
	}
	var kept []store.ShardEpoch
	var dropped []store.ShardEpoch
	for _, e := range m.enter(ctx, won) {
		if e.failedAt != "" {
			m.deps.Log.Warn("a shard could not be taken over", "pool", m.deps.Pool, "member", m.deps.Incarnation, "shard", e.shard.Shard, "at", e.failedAt, "error", e.err)
			m.metrics.lose(e.failedAt, 1)
			dropped = append(dropped, e.shard)
			if e.err != nil {
				m.shunned[e.shard.Shard] = m.deps.Clock.Now().Add(shunning)
			}
			continue
		}
		kept = append(kept, e.shard)
	}
	if len(dropped) > 0 {
		m.deps.Work.Quit(store.ShardNumbers(dropped))
		m.free(ctx, dropped)
	}
	if len(kept) == 0 {
		return
	}
	if err := m.deps.Leases.ExtendOwnedShards(store.ShardNumbers(kept)); err != nil {
		m.deps.Log.Error("the scope could not be extended", "pool", m.deps.Pool, "error", err)
		return
	}
	now := m.deps.Clock.Now()
	for _, s := range kept {
		m.held[s.Shard] = &owned{epoch: s.Epoch, foster: now.Add(foster[s.Shard])}
		if since, known := m.freeSince[s.Shard]; known {
			m.metrics.handover.Record(ctx, now.Sub(since).Seconds(), m.metrics.pool)
			delete(m.freeSince, s.Shard)
		}
	}
	m.deps.Work.Adopt(kept)
	m.deps.Log.Info("shards taken over", "pool", m.deps.Pool, "member", m.deps.Incarnation, "shards", store.ShardNumbers(kept))
}

// entry is an acquired shard on its way to the scope, and at which step it failed.
type entry struct {
	shard    store.ShardEpoch
	failedAt string
	err      error
}

// enter takes acquired shards through the steps before the scope is extended. Some publish at once: each is a commit of its own, and those of a pod that died with
// half of the shards are to be over before the next renewal also where the database is slow.
func (m *Member) enter(ctx context.Context, won []store.ShardLease) []entry {
	entries := make([]entry, len(won))
	var publishing errgroup.Group
	publishing.SetLimit(publishers)
	for i, l := range won {
		e := &entries[i]
		e.shard = store.ShardEpoch{Shard: l.Shard, Epoch: l.Epoch}
		if m.deps.Clock.Now().Sub(m.last) >= m.period() {
			e.failedAt = "slow" // a renewal is due: the others are for the next round
			continue
		}
		if e.err = m.deps.Work.Subscribe(ctx, l.Shard); e.err != nil {
			e.failedAt = "subscribe"
			continue
		}
		publishing.Go(func() error {
			e.err = m.call(ctx, func(ctx context.Context) error {
				return m.deps.Leases.PublishShardOwner(ctx, e.shard.Shard, e.shard.Epoch, m.cfg.Address)
			})
			if e.err != nil {
				e.failedAt = "publish"
			}
			return nil
		})
	}
	_ = publishing.Wait() // each keeps its own error
	for i := range entries {
		if e := &entries[i]; e.failedAt == "" && !m.deps.Leases.IsCurrentOwner(e.shard.Shard) {
			e.failedAt = "belief"
		}
	}
	return entries
}

// schedule says when the next round is due: a third of the ttl from this one, sooner while something is to be had or to be given, and when a lease of
// another's runs out.
func (m *Member) schedule(surplus, more bool) {
	now := m.deps.Clock.Now()
	m.due = m.last.Add(m.period())
	sooner := func(at time.Time) {
		if at.Before(m.due) {
			m.due = at
		}
	}
	if more {
		sooner(now)
	}
	if surplus {
		sooner(m.gaveBack.Add(pace))
	}
	at := m.storeNow()
	for _, o := range m.seen.Members {
		if o.Draining {
			sooner(m.last.Add(restless))
		}
	}
	for _, l := range m.seen.Shards {
		switch {
		case m.held[l.Shard] != nil:
		case !ownedAt(l, at):
			sooner(m.last.Add(restless))
		case l.Owner != m.deps.Incarnation:
			sooner(now.Add(l.ExpiresAt.Sub(at)).Add(rand.N(spread)))
		}
	}
}

func numbers(leases []store.ShardLease) []int {
	shards := make([]int, len(leases))
	for i, l := range leases {
		shards[i] = l.Shard
	}
	return shards
}
