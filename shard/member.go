package shard

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
)

// Member is a pod of a pool. Make it with [New].
type Member struct {
	deps    Deps
	cfg     Config
	metrics *metrics
	kick    chan struct{}
	pages   sync.WaitGroup // watches over pages under way

	// Of the goroutine that runs rounds.
	held      map[int]*owned
	quits     []*quit
	seen      store.Directory
	seenAt    time.Time // when it was answered, by this process's clock
	freeSince map[int]time.Time
	shunned   map[int]time.Time // shards that failed a step, until when they are left to others
	gaveBack  time.Time         // when a part of the surplus was last given back
	last      time.Time         // when the last round began
	due       time.Time         // when the next one is
	reversed  bool              // for tests alone: extends before it publishes (SH-19)

	mu     sync.Mutex
	status status
}

// owned is a shard that this member holds.
type owned struct {
	epoch  int64
	quits  bool      // no page on it begins any more
	foster time.Time // until then it is not given back, though it is over the quota
}

// quit is shards on which no page begins any more; they are released when the last one is over, or when it takes too long.
type quit struct {
	shards []int
	over   <-chan struct{}
	until  time.Time
}

// New makes a member; Run joins the pool.
func New(d Deps, cfg Config) (*Member, error) {
	if cfg.TTL == 0 {
		cfg.TTL = store.DefaultShardTTL
	}
	if d.Changed == nil {
		d.Changed = func(context.Context) {}
	}
	m := &Member{deps: d, cfg: cfg, kick: make(chan struct{}, 1), held: map[int]*owned{}, freeSince: map[int]time.Time{}, shunned: map[int]time.Time{}}
	var err error
	m.metrics, err = newMetrics(d.Meter, m)
	return m, err
}

// Run owns shards until ctx is done. Then it drains: its row says so, pages under way finish within 2 s, the shards are released and the row goes.
func (m *Member) Run(ctx context.Context) error {
	if err := m.start(); err != nil {
		return err
	}
	defer m.pages.Wait()
	calls, stop := context.WithoutCancel(ctx), ctx.Done()
	for {
		if m.turn(calls) {
			return nil
		}
		t := m.deps.Clock.NewTimer(m.due.Sub(m.deps.Clock.Now()))
		select {
		case <-t.C():
		case <-m.kick:
			m.hear()
		case <-stop:
			stop = nil
			m.drain()
		}
		t.Stop()
	}
}

// turn makes a round if one is due, and answers whether this member has left.
func (m *Member) turn(ctx context.Context) (gone bool) {
	return !m.deps.Clock.Now().Before(m.due) && m.round(ctx)
}

// start owns nothing, which is not the same as owning all.
func (m *Member) start() error {
	m.due = m.deps.Clock.Now()
	return m.deps.Leases.SetOwnedShards([]int{})
}

// Kick makes a round come at once: a notice said that shards changed.
func (m *Member) Kick() {
	select {
	case m.kick <- struct{}{}:
	default:
	}
}

// Fenced says that a write under that many shards was refused: they are lost, and a round comes at once.
func (m *Member) Fenced(shards int) {
	m.metrics.fenced.Add(context.Background(), int64(shards), m.metrics.pool)
	m.Kick()
}

// hear lets a round come now, or a little later when there was one just now.
func (m *Member) hear() {
	now := m.deps.Clock.Now()
	if at := m.last.Add(hearing); at.After(now) && !m.anyOver(now) {
		now = at
	}
	if now.Before(m.due) {
		m.due = now
	}
}

// drain takes this member out: no page begins any more (SH-22).
func (m *Member) drain() {
	m.mu.Lock()
	m.status.draining = true
	m.mu.Unlock()
	m.due = m.deps.Clock.Now()
	m.giveUp(m.working())
}

func (m *Member) draining() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status.draining
}

// round renews, gives back and takes over; of a member that drains, it gives back alone. It answers whether this member has left.
func (m *Member) round(ctx context.Context) (gone bool) {
	m.last = m.deps.Clock.Now()
	if m.draining() {
		return m.roundOut(ctx)
	}
	m.release(ctx)
	if err := m.renew(ctx); err != nil {
		m.failed(err)
		return false
	}
	surplus := m.giveBack()
	m.release(ctx) // what nobody works on goes at once
	m.schedule(surplus, m.takeOver(ctx))
	m.observe()
	return false
}

// roundOut is a round of a member that drains. The others are to see that it does before they see its shards free. It does not wait for a store that is away:
// its leases end by themselves.
func (m *Member) roundOut(ctx context.Context) (gone bool) {
	err := m.renew(ctx)
	if err != nil {
		m.failed(err)
	} else {
		m.due = m.last.Add(m.period()) // or when a page is over
	}
	m.release(ctx)
	if len(m.held) > 0 {
		m.observe()
		return false
	}
	if err == nil {
		m.leave(ctx)
	}
	m.observe()
	return true
}

// leave ends this life of the member. What cannot be told to the store now, it finds out when the leases end.
func (m *Member) leave(ctx context.Context) {
	if err := m.call(ctx, m.deps.Leases.Leave); err != nil {
		m.deps.Log.Warn("the row of a pool's member stays until it expires", "pool", m.deps.Pool, "member", m.deps.Incarnation, "error", err)
	}
	m.deps.Changed(ctx)
}

// failed counts a round that came to nothing, and makes the next one come soon.
func (m *Member) failed(err error) {
	m.due = m.deps.Clock.Now().Add(retrying + rand.N(retrying))
	m.metrics.failed.Add(context.Background(), 1, m.metrics.pool)
	m.deps.Log.Warn("the shards of a pool could not be renewed", "pool", m.deps.Pool, "member", m.deps.Incarnation, "error", err)
}

// period is from one renewal to the next: a second, or less where leases are short.
func (m *Member) period() time.Duration { return min(m.cfg.TTL/3, time.Second) }

// call makes a call of the store, which has half the time that a lease lives, and no more than half of the default one: the next can still come in time.
func (m *Member) call(ctx context.Context, fn func(ctx context.Context) error) error {
	ctx, cancel := clock.WithTimeout(ctx, m.deps.Clock, min(m.cfg.TTL, store.DefaultShardTTL)/2)
	defer cancel()
	return fn(ctx)
}

// renew makes heartbeat, renewal and directory one, and drops what was lost.
func (m *Member) renew(ctx context.Context) error {
	start := m.deps.Clock.Now()
	var r store.Renewal
	err := m.call(ctx, func(ctx context.Context) (err error) {
		r, err = m.deps.Leases.RenewOwnedShards(ctx, m.epochs(), m.cfg.TTL, store.Member{
			Incarnation: m.deps.Incarnation, Address: m.cfg.Address, Draining: m.draining(),
		})
		return err
	})
	if err != nil {
		return err
	}
	m.seen, m.seenAt = r.Directory, m.deps.Clock.Now()
	lost := make([]int, len(r.Lost))
	for i, l := range r.Lost {
		lost[i] = l.Shard
	}
	m.drop(lost, "taken")
	// A renewal that took its time leaves no belief until the next; one that did not leaves none only after a fence.
	if quick := m.deps.Clock.Now().Sub(start) < m.cfg.TTL/2; quick {
		m.doubted(ctx)
	}
	return nil
}

// doubted gives up shards that are held and not believed in: a write of theirs was refused. They are acquired anew.
func (m *Member) doubted(ctx context.Context) {
	var shards []int
	for _, s := range m.working() {
		if !m.deps.Leases.IsCurrentOwner(s) {
			shards = append(shards, s)
		}
	}
	if len(shards) > 0 {
		epochs := m.epochsOf(shards)
		m.drop(shards, "doubted")
		m.free(ctx, epochs)
	}
}

// drop stops the work on shards that are lost already.
func (m *Member) drop(shards []int, reason string) {
	if len(shards) == 0 {
		return
	}
	for _, s := range shards {
		delete(m.held, s)
	}
	m.deps.Work.Quit(shards)
	m.metrics.lose(reason, len(shards))
	m.deps.Log.Info("shards lost", "pool", m.deps.Pool, "member", m.deps.Incarnation, "shards", shards, "reason", reason)
}

// giveUp lets the work on shards end; then they are released.
func (m *Member) giveUp(shards []int) {
	if len(shards) == 0 {
		return
	}
	for _, s := range shards {
		m.held[s].quits = true
	}
	m.narrow()
	q := &quit{shards: shards, over: m.deps.Work.Quit(shards), until: m.deps.Clock.Now().Add(finishing)}
	m.quits = append(m.quits, q)
	if q.ended(m.deps.Clock.Now()) {
		return
	}
	t := m.deps.Clock.NewTimer(finishing)
	m.pages.Go(func() {
		defer t.Stop()
		select {
		case <-q.over:
		case <-t.C():
		}
		m.Kick()
	})
}

// narrow takes what is given up out of the scope: an enumeration that begins from now on does not see it (SH-22).
func (m *Member) narrow() {
	own := append([]int{}, m.working()...) // never nil, which would own all
	if err := m.deps.Leases.SetOwnedShards(own); err != nil {
		m.deps.Log.Error("the scope could not be narrowed", "pool", m.deps.Pool, "error", err)
	}
}

func (q *quit) ended(now time.Time) bool {
	select {
	case <-q.over:
		return true
	default:
		return !now.Before(q.until)
	}
}

func (m *Member) anyOver(now time.Time) bool {
	return slices.ContainsFunc(m.quits, func(q *quit) bool { return q.ended(now) })
}

// release releases the shards whose work has ended.
func (m *Member) release(ctx context.Context) {
	now := m.deps.Clock.Now()
	var shards []int
	m.quits = slices.DeleteFunc(m.quits, func(q *quit) bool {
		if !q.ended(now) {
			return false
		}
		for _, s := range q.shards {
			if m.held[s] != nil { // else it was lost meanwhile
				shards = append(shards, s)
			}
		}
		return true
	})
	if len(shards) == 0 {
		return
	}
	epochs := m.epochsOf(shards)
	for _, s := range shards {
		delete(m.held, s)
	}
	m.free(ctx, epochs)
	m.deps.Log.Info("shards released", "pool", m.deps.Pool, "member", m.deps.Incarnation, "shards", shards)
}

// free gives leases back and tells the others. What cannot be given back now ends by itself.
func (m *Member) free(ctx context.Context, shards []store.ShardEpoch) {
	err := m.call(ctx, func(ctx context.Context) error { return m.deps.Leases.ReleaseOwnedShards(ctx, shards) })
	if err != nil {
		m.deps.Log.Warn("shards could not be released and stay until their leases end", "pool", m.deps.Pool, "member", m.deps.Incarnation, "error", err)
		return
	}
	for _, s := range shards {
		m.seen.Shards[s.Shard] = store.ShardLease{Shard: s.Shard, Epoch: s.Epoch}
	}
	m.deps.Changed(ctx)
}

// working are the shards held and not given up, by number.
func (m *Member) working() []int {
	var shards []int
	for s, o := range m.held {
		if !o.quits {
			shards = append(shards, s)
		}
	}
	slices.Sort(shards)
	return shards
}

func (m *Member) epochs() []store.ShardEpoch {
	shards := make([]store.ShardEpoch, 0, len(m.held))
	for s, o := range m.held {
		shards = append(shards, store.ShardEpoch{Shard: s, Epoch: o.epoch})
	}
	slices.SortFunc(shards, func(a, b store.ShardEpoch) int { return a.Shard - b.Shard })
	return shards
}

func (m *Member) epochsOf(shards []int) []store.ShardEpoch {
	epochs := make([]store.ShardEpoch, len(shards))
	for i, s := range shards {
		epochs[i] = store.ShardEpoch{Shard: s, Epoch: m.held[s].epoch}
	}
	return epochs
}
