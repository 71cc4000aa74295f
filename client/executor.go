package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/messaging"
)

// Handler does a run's work; see the package comment for how it is written. ctx ends when the lease is lost or the executor stops in earnest.
type Handler func(ctx context.Context, run *Run) error

// ByType picks a handler by the run's type. A run of another type is given to another driver: make the executors of one queue know the same types.
func ByType(handlers map[string]Handler) Handler {
	return func(ctx context.Context, run *Run) error {
		h := handlers[run.Type()]
		if h == nil {
			return fmt.Errorf("client: this executor has no handler for runs of type %q", run.Type())
		}
		return h(ctx, run)
	}
}

// ExecutorOptions say what an executor drives. Handler is required.
type ExecutorOptions struct {
	// Queue whose runs are driven; empty: default. All executors of a queue share its notices.
	Queue   string
	Handler Handler
	// Name of the member, e.g. the pod; empty: the host's. With an id minted at Start it makes the owner of leases.
	Name string
	// Lease is the ttl of leases, 2 s..1 h (30 s). They are renewed at a third of it.
	Lease time.Duration
	// Concurrency is how many runs are driven at once (64).
	Concurrency int
	// AckWait of the queue's durable, if this executor is the one that makes it (30 s).
	AckWait time.Duration
	// Driven is called at the end of each drive, if it is set. It must not block.
	Driven func(Driven)
	Log    *slog.Logger // the client's
}

// Driven is what one lease of a run came to.
type Driven struct {
	WorkflowID string
	RunID      string
	Cause      rendezvous.Cause // of the notice
	// Outcome: suspended, paused, concluded, released (given to another driver), lost (the lease), unreachable (the plane).
	Outcome string
	Calls   int // of the handler
	Err     error
}

const (
	defaultConcurrency = 64
	handlerGrace       = 5 * time.Second // for a handler to come back once its context ended
	releaseTimeout     = 5 * time.Second
	failFirst          = time.Second // a run's second failure in a row is held so long before another driver gets it; doubling
	failMost           = time.Minute
	runsKept           = 10_000 // runs of which something is remembered beyond their drive
)

// Executor drives the runs of a queue: it takes their notices, leases, calls the handler, and suspends or concludes. Make it with
// [Client.NewExecutor].
type Executor struct {
	client  *Client
	opts    ExecutorOptions
	owner   string
	pull    *messaging.Consumption
	slots   chan struct{}
	drives  sync.WaitGroup
	soft    context.Context // ends when Stop is called
	stop    context.CancelCauseFunc
	hard    context.Context // ends when Stop runs out of patience
	kill    context.CancelCauseFunc
	started sync.Once
	stopped sync.Once
	down    chan struct{}
	downErr error

	mu        sync.Mutex
	asked     map[string]string // run → acquire id of an acquisition whose answer was lost
	failures  map[string]int    // run → failures in a row
	abandoned int               // handlers that never came back
}

// NewExecutor makes an executor; Start begins. It needs a client with NATS. Errors: invalid, naming the option.
func (c *Client) NewExecutor(o ExecutorOptions) (*Executor, error) {
	if o.Queue == "" {
		o.Queue = rendezvous.DefaultQueue
	}
	if o.Name == "" {
		o.Name, _ = os.Hostname() // the owner has an id besides
	}
	if o.Lease == 0 {
		o.Lease = rendezvous.DefaultLease
	}
	if o.Concurrency <= 0 {
		o.Concurrency = defaultConcurrency
	}
	if o.AckWait <= 0 {
		o.AckWait = messaging.DefaultAckWait
	}
	if o.Log == nil {
		o.Log = c.opts.Log
	}
	switch {
	case o.Handler == nil:
		return nil, rendezvous.InvalidField("Handler", "is missing")
	case c.link == nil:
		return nil, rendezvous.InvalidField("NATS", "is needed to take notices; make the client with NATS or NATSURL")
	case o.Lease < rendezvous.MinLease || o.Lease > rendezvous.MaxLease:
		return nil, rendezvous.InvalidField("Lease", "%v is outside %v..%v", o.Lease, rendezvous.MinLease, rendezvous.MaxLease)
	}
	if err := rendezvous.CheckQueue(o.Queue); err != nil {
		return nil, err
	}
	if err := rendezvous.CheckID("Name", o.Name+"/"+NewID()); err != nil {
		return nil, err
	}
	e := &Executor{
		client: c, opts: o, owner: o.Name + "/" + NewID(), slots: make(chan struct{}, o.Concurrency), down: make(chan struct{}),
		asked: map[string]string{}, failures: map[string]int{},
	}
	e.soft, e.stop = context.WithCancelCause(context.Background())
	e.hard, e.kill = context.WithCancelCause(context.Background())
	return e, nil
}

// Owner is the incarnation that holds this executor's leases.
func (e *Executor) Owner() string { return e.owner }

// Start takes the first notices and returns. The plane need not be up. An executor is started once.
func (e *Executor) Start() error {
	err := rendezvous.InvalidField("Start", "was called before; make another executor")
	e.started.Do(func() {
		err = nil
		c := e.client.opts
		queue := messaging.ResumeQueue{Tenant: c.Tenant, Queue: e.opts.Queue, Prefix: c.Prefix, Domain: c.Domain, AckWait: e.opts.AckWait}
		deps := messaging.Deps{Log: e.opts.Log, Clock: c.Clock, Jitter: c.Jitter}
		opts := messaging.ConsumeOptions{Batch: messaging.Batch{
			Size: min(max(e.opts.Concurrency/4, 1), 32), Linger: -1, Concurrency: 2, // few: what is fetched and not worked is kept from the others
		}}
		pull, bad := messaging.ConsumeResume(e.client.link.nc, queue, deps, opts, e.notices)
		if bad != nil {
			err = rendezvous.AsError(bad)
			return
		}
		e.pull = pull
	})
	if err == nil {
		return nil
	}
	return err
}

// Stop drains: no new runs are taken, handlers under way go on until they return or ctx ends; then their contexts end, and what is left to do is given
// to another driver by releasing the leases. It returns when all is down; the error says that a handler was cut off. Idempotent, every caller waits.
func (e *Executor) Stop(ctx context.Context) error {
	e.stopped.Do(func() {
		defer close(e.down)
		e.started.Do(func() {}) // one that was never started stays so
		e.stop(errStopping)
		if e.pull != nil {
			e.downErr = e.pull.Stop(ctx)
		}
		e.downErr = errors.Join(e.downErr, e.awaitDrives(ctx))
	})
	<-e.down
	return e.downErr
}

func (e *Executor) awaitDrives(ctx context.Context) error {
	done := make(chan struct{})
	go func() { e.drives.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	e.kill(errStopping)
	<-done
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.abandoned > 0 {
		return fmt.Errorf("%d handlers did not end with their context; their leases are released: %w", e.abandoned, context.Cause(ctx))
	}
	return context.Cause(ctx)
}

// notices takes a batch of resume notices: one outcome each, once it is known who drives the run.
func (e *Executor) notices(ctx context.Context, batch []messaging.ResumeNotice) []messaging.Outcome {
	out := make([]messaging.Outcome, len(batch))
	var wg sync.WaitGroup
	for i, n := range batch {
		wg.Go(func() { out[i] = e.notice(ctx, n) })
	}
	wg.Wait()
	return out
}

// countFailure counts a run's failures in a row; ok forgets them.
func (e *Executor) countFailure(run string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.failures) >= runsKept && e.failures[run] == 0 {
		clear(e.failures) // the pauses begin anew; nothing else hangs on it
	}
	e.failures[run]++
	return e.failures[run]
}

func (e *Executor) ok(run string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.failures, run)
}
