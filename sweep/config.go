package sweep

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/store"
)

// Store is what the plane-wide passes need of the store.
type Store interface {
	store.Matcher
	store.Sweeper
	store.Retainer
	DuePushRuns(ctx context.Context, before time.Time, limit int) (runs []store.DuePushRun, more bool, err error)
	ParkAgedPushes(ctx context.Context, maxAge time.Duration, limit int) (parked []store.PushItem, more bool, err error)
	TrimPushLogs(ctx context.Context, keep int, age time.Duration, limit int) (removed int, more bool, err error)
	TakeUnmet(ctx context.Context, grace time.Duration, limit int, hold time.Duration, cursor string) (store.Taken[store.UnmetPair], string, error)
	TakeNews(ctx context.Context, grace time.Duration, limit int, hold time.Duration, cursor string) (store.Taken[store.UnmetPair], string, error)
	GiveBackUnmet(ctx context.Context, pairs []store.UnmetPair, retryIn time.Duration) error
	Now(ctx context.Context) (time.Time, error)
	Depths(ctx context.Context) (store.Depths, error)
}

// Shards is what the passes over runs, waits and timers need of the pool's handle, which shows them the rows of the shards that it owns (shards.md section 3).
type Shards interface {
	store.Redeliverer
	DueLeases(ctx context.Context, limit int, cursor string) (rows []store.AbandonedRun, next string, err error)
	ReclaimRun(ctx context.Context, items []store.ReclaimItem) ([]store.Reclaimed, error)
	TakeWoken(ctx context.Context, limit int) (store.Taken[store.ResumeRef], error)
	NextDue(ctx context.Context, shards []int) (store.DueInstants, error)
	IsCurrentOwner(shard int) bool
}

// Stream is what the pass exhausted needs of the messaging.
type Stream interface {
	ConsumeAdvisory(opts messaging.ConsumeOptions, h func(ctx context.Context, batch []messaging.Advisory) []messaging.Outcome) (*messaging.Consumption, error)
}

// Sender sends notices after a commit; what it cannot send, a pass finds again.
type Sender interface {
	Try(ctx context.Context, n store.Notices)
}

// Deps is what a worker is given.
type Deps struct {
	Sender Sender
	Clock  clock.Clock
	Log    *slog.Logger
	Meter  metric.Meter
}

// Config times the passes. The zero value takes the contract's numbers (sweep.md section 2).
type Config struct {
	Tick      time.Duration // of the passes whose interval is not below: 5 s
	Woken     time.Duration // of woken and late, and of the look at the depths: 10 s
	Upkeep    time.Duration // of push_upkeep: 30 s
	Retention time.Duration // of retention: 10 min
	Pages     int           // pages a saturated pass may work in one tick: 20
	Page      time.Duration // budget of one page: 2 s
	Grace     time.Duration // how long an unmet pair may be on its way: 2 s
	Window    time.Duration // how long an event without an expiry of its own may wait: 1 h
	// PushMaxAge is how long a push registration may fail: push.max_age, 72 h.
	PushMaxAge time.Duration
	// RetainDead is how long a dead letter is kept: 30 d; Forever keeps all.
	RetainDead time.Duration
	// RetainWorkflows is how long a closed workflow is kept; 0 and Forever keep all.
	RetainWorkflows time.Duration
	// Reported, when not nil, is called with the report of every tick, after it.
	Reported func(Report)
}

// Forever is the time of what retention leaves alone.
const Forever time.Duration = -1

func (c Config) withDefaults() Config {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&c.Tick, 5*time.Second)
	def(&c.Woken, 10*time.Second)
	def(&c.Upkeep, 30*time.Second)
	def(&c.Retention, 10*time.Minute)
	def(&c.Page, 2*time.Second)
	def(&c.Grace, 2*time.Second)
	def(&c.Window, time.Hour)
	def(&c.PushMaxAge, store.DefaultPushMaxAge)
	if c.RetainDead == 0 {
		c.RetainDead = 30 * 24 * time.Hour
	}
	if c.Pages <= 0 {
		c.Pages = 20
	}
	return c
}
