package push

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/group"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/push/oauth"
	"github.com/rendezvous-events/rendezvous/push/outcome"
	"github.com/rendezvous-events/rendezvous/push/transport"
	"github.com/rendezvous-events/rendezvous/store"
)

// Store is what the worker needs of the store: the queue's verbs for leases, and the tenants' histories.
type Store interface {
	ClaimPushes(ctx context.Context, c store.ClaimPush) (store.ClaimedPushes, error)
	RenewPushes(ctx context.Context, tokens []int64, lease time.Duration) ([]store.PushLease, error)
	SettlePushes(ctx context.Context, items []store.PushSettlement) ([]store.PushSettled, error)
	Tenant(name string) (store.Tenant, error)
}

// Stream is what the worker needs of the messaging.
type Stream interface {
	ConsumePush(opts messaging.ConsumeOptions, h func(ctx context.Context, batch []messaging.PushNotice) []messaging.Outcome) (*messaging.Consumption, error)
}

// Poster makes requests: a [transport.Client].
type Poster interface {
	Do(ctx context.Context, r transport.Request) transport.Attempt
}

// Tokens gets bearer tokens: an [oauth.Tokens].
type Tokens interface {
	Bearer(ctx context.Context, key oauth.Key, auth rendezvous.PushAuth) (rendezvous.Secret, *transport.Error)
	Heard(key oauth.Key, status int)
}

// Deps is what a worker is given.
type Deps struct {
	Poster       Poster
	Tokens       Tokens
	Destinations *Destinations
	Random       outcome.Random
	Clock        clock.Clock
	Log          *slog.Logger
	Tracer       trace.Tracer
	Meter        metric.Meter
}

// Worker delivers registrations. Make it with [New].
type Worker struct {
	store   Store
	stream  Stream
	deps    Deps
	cfg     Config
	metrics *metrics
	leases  *leases
	places  *places
	memory  *memory
	counts  counts
	settles *group.Group[store.PushSettlement, store.PushSettled]
	pull    *messaging.Consumption

	life    context.Context // of settlements: ends when the worker gives up on the store
	die     context.CancelFunc
	posting context.Context // of requests: ends when a drain ran out of patience
	hang    context.CancelCauseFunc
	rounds  context.CancelFunc // ends the loops

	claiming sync.Mutex                          // one claim at a time, so that places are not claimed twice
	requests map[rendezvous.PushNamespace]string // of claims that were not answered
	closed   bool                                // nobody claims any more

	mu       sync.Mutex
	turned   int       // passes, for whose namespace goes first
	remnants time.Time // by the clock: when rows of destinations that are gone are looked for again
	next     time.Time // by the clock: when something is due that is known of; zero: nothing
	behind   backlog
	wake     chan struct{} // capacity 1

	stopping atomic.Bool
	landing  atomic.Int64 // turns that wait for the store
	looked   atomic.Int64 // unix ms of the clock: the last claim that was answered
	loops    sync.WaitGroup
	turns    sync.WaitGroup
	stop     sync.Once
	stopped  error
}

// New makes a worker; Start begins to claim, Stop ends it. Errors: invalid (a setting), conflict (a store that answers with another tenant's histories than
// it is asked for, PU-2).
func New(s Store, stream Stream, d Deps, cfg Config) (*Worker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := checkScope(s); err != nil {
		return nil, err
	}
	w := &Worker{store: s, stream: stream, deps: d, cfg: cfg.WithDefaults(), requests: map[rendezvous.PushNamespace]string{}, wake: make(chan struct{}, 1)}
	w.life, w.die = context.WithCancel(context.Background())
	w.posting, w.hang = context.WithCancelCause(w.life)
	w.places, w.memory = newPlaces(w.cfg.InFlight, w.cfg.GateInFlight), newMemory(w.cfg.Memory)
	var err error
	if w.metrics, err = newMetrics(d.Meter, w); err != nil {
		return nil, err
	}
	w.leases = newLeases(d.Clock, w.cfg.Lease, w.renew, func(store.PushLeaseState) { w.metrics.fencedBy(w.life, "renew") })
	w.settles = group.New(group.Config{Commits: 2, Log: d.Log}, settleSize, func(_ context.Context, items []store.PushSettlement) ([]store.PushSettled, error) {
		return w.settle(w.life, items)
	})
	return w, nil
}

// checkScope refuses a store of one tenant: the queue is of all (PU-2).
func checkScope(s Store) error {
	t, err := s.Tenant(rendezvous.DefaultTenant)
	if err != nil {
		return err
	}
	if t.Name() != rendezvous.DefaultTenant {
		return rendezvous.Errorf(rendezvous.CodeConflict, "the store answers for the tenant %q where %q was asked for; a push-worker serves all tenants", t.Name(),
			rendezvous.DefaultTenant).With("tenant", t.Name())
	}
	return nil
}

func (w *Worker) renew(ctx context.Context, tokens []int64) ([]store.PushLease, error) {
	ctx, cancel := clock.WithTimeout(ctx, w.deps.Clock, w.cfg.Call)
	defer cancel()
	got, err := w.store.RenewPushes(ctx, tokens, w.cfg.Lease)
	if err != nil {
		w.deps.Log.WarnContext(ctx, "send leases not renewed", "leases", len(tokens), "code", rendezvous.CodeOf(err), "error", err)
	}
	return got, err
}

// Start begins to claim: by notices where there is a stream, and by the poll.
func (w *Worker) Start() error {
	ctx, cancel := context.WithCancel(w.life)
	w.rounds = cancel
	w.looked.Store(w.deps.Clock.Now().UnixMilli())
	if w.stream != nil {
		pull, err := w.stream.ConsumePush(messaging.ConsumeOptions{Batch: messaging.Batch{Linger: -1}, Gap: func() { w.dueAt(w.deps.Clock.Now()) }}, w.noticed)
		if err != nil {
			cancel()
			return err
		}
		w.pull = pull
	}
	w.loops.Go(func() { w.leases.watch(w.life) }) // as long as there may be turns: notices may begin some until the drain closes the worker
	w.loops.Go(func() { w.leases.renewing(w.life) })
	w.loops.Go(func() { w.loop(ctx) })
	return nil
}

// Stop claims no more and begins no message; requests under way may finish within the drain, or until ctx ends, and are cancelled then. What was accepted is
// acknowledged and every lease given back, within 5 s more (PU-51). Idempotent.
func (w *Worker) Stop(ctx context.Context) error {
	w.stop.Do(func() { w.stopped = w.drain(ctx) })
	return w.stopped
}

func (w *Worker) drain(ctx context.Context) error {
	w.stopping.Store(true)
	if w.rounds != nil {
		w.rounds()
	}
	var errs []error
	if w.pull != nil {
		errs = append(errs, w.pull.Stop(ctx))
	}
	w.claiming.Lock() // whoever claims now is the last
	w.closed = true
	w.claiming.Unlock()
	down := make(chan struct{})
	go func() { w.turns.Wait(); close(down) }()
	if !w.wait(ctx, down, w.cfg.Drain) {
		w.hang(errDrained)
		if last := context.WithoutCancel(ctx); !w.wait(last, down, lastWords) {
			errs = append(errs, errors.New("settlements of push registrations were left to the end of their leases; the store does not answer"))
			w.die()
			<-down
		}
	}
	last, cancel := clock.WithTimeout(context.WithoutCancel(ctx), w.deps.Clock, lastWords)
	defer cancel()
	w.settles.Stop(last)
	w.die()
	w.loops.Wait()
	return errors.Join(errs...)
}

// wait waits until down, for that long at most and not beyond ctx; false where it is not down.
func (w *Worker) wait(ctx context.Context, down <-chan struct{}, most time.Duration) bool {
	t := w.deps.Clock.NewTimer(most)
	defer t.Stop()
	select {
	case <-down:
		return true
	case <-t.C():
	case <-ctx.Done():
	}
	return false
}

// draining reports whether no new message may be begun.
func (w *Worker) draining() bool { return w.stopping.Load() }

// Ready says that the store answered a claim within three polls.
func (w *Worker) Ready() error {
	age := w.deps.Clock.Now().Sub(time.UnixMilli(w.looked.Load()))
	if age > 3*w.cfg.Poll+w.cfg.Call {
		return fmt.Errorf("no push registration was claimed since %d ms: the store does not answer", age.Milliseconds())
	}
	return nil
}

// Totals is what the worker did since it was made.
func (w *Worker) Totals() Report { return w.counts.total() }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
