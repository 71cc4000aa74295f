package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Engine keeps the store contract on any backend.
type Engine struct {
	scoped   // all is owned
	backend  backend.Backend
	clock    clock.Clock
	maxEvent int
	look     int
	perRun   int // registrations of callers
	// destinations are registered with each run's first record.
	destinations []rendezvous.Destination
	// replays is for how many batches yet intake looks before it inserts: producers are sending again.
	replays atomic.Int32
}

// Options are the engine's settings; the zero value is good.
type Options struct {
	Clock    clock.Clock // for pauses between retries; the store's now is the backend's. Default clock.System
	Look     int         // rows that a page of a list with a filter looks at. Default 10,000
	MaxEvent int         // an event's payload in bytes, at most rendezvous.MaxPayload, which is the default
	// Destinations are the operator's push destinations: every run that this store starts, continues or reopens is registered with them (push.md section 1).
	Destinations []rendezvous.Destination
	PushPerRun   int // push registrations of callers that a run may have. Default 10
}

var _ store.Store = (*Engine)(nil)

// mostLooked bounds what a page of a list costs whose filter matches little: 10,000 rows are looked at in less than 50 ms (decision 0018).
const mostLooked = 10_000

// New makes a store of a backend. An event limit above the record limit is refused: an accepted event could not be journaled.
func New(b backend.Backend, o Options) (*Engine, error) {
	if o.Clock == nil {
		o.Clock = clock.System
	}
	if o.MaxEvent == 0 {
		o.MaxEvent = rendezvous.MaxPayload
	}
	if o.Look == 0 {
		o.Look = mostLooked
	}
	if o.MaxEvent < 0 || o.MaxEvent > rendezvous.MaxPayload {
		return nil, rendezvous.OverLimit("max_event", rendezvous.MaxPayload, o.MaxEvent)
	}
	if o.PushPerRun == 0 {
		o.PushPerRun = rendezvous.MaxRegistrationsPerRun
	}
	if o.PushPerRun < 0 {
		return nil, rendezvous.InvalidField("push.per_run", "%d is negative", o.PushPerRun).With("value", o.PushPerRun)
	}
	destinations, err := rendezvous.CheckDestinations(o.Destinations)
	if err != nil {
		return nil, err
	}
	e := &Engine{backend: b, clock: o.Clock, maxEvent: o.MaxEvent, look: o.Look, perRun: o.PushPerRun, destinations: destinations}
	e.all = func() enumeration { return enumeration{e, nil} }
	return e, nil
}

// Tenant implements [store.Store].
func (e *Engine) Tenant(name string) (store.Tenant, error) {
	if err := rendezvous.CheckTenant(name); err != nil {
		return nil, err
	}
	return &tenant{Engine: e, name: name}, nil
}

// Ping implements [store.Store].
func (e *Engine) Ping(ctx context.Context) error { return e.backend.Ping(ctx) }

// Close implements [store.Store].
func (e *Engine) Close() error { return e.backend.Close() }

// tenant is the handle of one tenant.
type tenant struct {
	*Engine
	name string
}

// Name implements [store.Tenant].
func (t *tenant) Name() string { return t.name }

// maxTries bounds how often a verb is made anew. Every stale try means that somebody else's commit went through, so the plane as a whole moves on.
const maxTries = 24

// update runs one write verb: fn plans in u and the changes it leaves are applied and committed. It is made anew while rows move on under it (R7).
// fn must not keep anything across calls: it starts over each time. What is to be noticed after the commit is answered, also beside commit_unknown.
func (e *Engine) update(ctx context.Context, verb string, at time.Time, fn func(ctx context.Context, u *unit) error) (store.Notices, error) {
	err := checkAt(at)
	if err != nil {
		return store.Notices{}, err
	}
	for try := range maxTries {
		if try > 0 {
			if cause := clock.Sleep(ctx, e.clock, backoff(try)); cause != nil {
				return store.Notices{}, unavailable("%s was interrupted", verb).Because(cause)
			}
		}
		var u *unit
		err = e.backend.Update(ctx, verb, func(ctx context.Context, tx backend.Tx) error {
			u = newUnit(e, tx, at)
			u.try = try
			if err := fn(ctx, u); err != nil {
				return err
			}
			return u.apply(ctx)
		})
		if !errors.Is(err, backend.ErrStale) && !errors.Is(err, backend.ErrRetry) {
			if u != nil && (err == nil || rendezvous.CodeOf(err) == rendezvous.CodeCommitUnknown) {
				return u.notices, err // it may have landed: a caller that finds out has the notices to send
			}
			return store.Notices{}, err
		}
	}
	return store.Notices{}, unavailable("%s: rows kept moving under it; try again", verb).Because(err)
}

// view runs one read over a snapshot.
func (e *Engine) view(ctx context.Context, verb string, fn func(ctx context.Context, r backend.Reader) error) error {
	return e.backend.View(ctx, verb, fn)
}

// backoff is a jittered pause, 1 ms doubling to 64 ms: rows held by others free up in about the time of a commit.
func backoff(try int) time.Duration {
	most := time.Millisecond << min(try-1, 6)
	return most/2 + rand.N(most)
}

func unavailable(format string, args ...any) *rendezvous.Error {
	return rendezvous.Errorf(rendezvous.CodeUnavailable, format, args...)
}
