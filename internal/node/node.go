package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v4"
	"go.opentelemetry.io/otel"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/notify"
	"github.com/rendezvous-events/rendezvous/shard"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/open"
	"github.com/rendezvous-events/rendezvous/store/traced"
	"github.com/rendezvous-events/rendezvous/sweep"
	"github.com/rendezvous-events/rendezvous/telemetry"
)

// Node is a running process.
type Node struct {
	cfg       Config
	log       *slog.Logger
	telemetry *telemetry.Telemetry
	store     store.Store
	embedded  *messaging.Embedded
	conn      *messaging.Conn
	sender    *notify.Sender
	ready     []func(ctx context.Context) error // each a reason why the process is not ready
	checks    []func(ctx context.Context) []string
	up        atomic.Bool
	failed    chan error
	stages    []stage // what was started, in order

	sweeper       *sweep.Worker // nil without the role
	sweeperShards *shard.Member // its part of the pool

	// HTTP, Admin and NATS are where the process really listens, "" where it does not.
	HTTP, Admin, NATSURL string
}

// stage is something that was started and is to be stopped.
type stage struct {
	name string
	stop func(ctx context.Context) error
}

// began notes what is to be stopped, last first.
func (n *Node) began(name string, stop func(ctx context.Context) error) {
	n.stages = append(n.stages, stage{name, stop})
}

// Start brings a process up. On an error what was started is down again.
func Start(ctx context.Context, cfg Config) (n *Node, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Ingest != nil { // before anything is started: it is a setting too
		if cfg.tokens, err = cfg.Ingest.tokens(); err != nil {
			return nil, err
		}
	}
	if err := cfg.readDestinations(); err != nil {
		return nil, err
	}
	n = &Node{cfg: cfg, log: cfg.logger(), failed: make(chan error, 1)}
	for _, step := range [...]func(context.Context) error{
		n.startTelemetry, n.startAdmin, n.startStore, n.startMessaging, n.makeSweep, n.startIngest, n.startDelivery, n.startTimers, n.startPush, n.startSweep,
	} {
		if err := step(ctx); err != nil {
			stop, cancel := clock.WithTimeout(context.WithoutCancel(ctx), clock.System, cfg.Drain)
			defer cancel()
			return nil, errors.Join(err, n.Stop(stop))
		}
	}
	n.up.Store(true)
	n.began("readiness", func(context.Context) error { n.up.Store(false); return nil })
	n.log.InfoContext(ctx, "ready", "process", cfg.Name, "version", cfg.Version, "http", n.HTTP, "admin", n.Admin, "nats", n.NATSURL)
	return n, nil
}

// Failed delivers why the process cannot go on.
func (n *Node) Failed() <-chan error { return n.failed }

// Stop takes the process down in order; work under way may finish until ctx ends. Idempotent.
func (n *Node) Stop(ctx context.Context) error {
	var errs []error
	for i := len(n.stages) - 1; i >= 0; i-- {
		if err := n.stages[i].stop(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", n.stages[i].name, err))
		}
	}
	n.stages = nil
	return errors.Join(errs...)
}

// Run is a main's body: it starts the process, tells ready, and stops it on SIGINT or SIGTERM, or when it cannot go on. A second signal ends it at once.
func Run(ctx context.Context, cfg Config, ready func(*Node)) error {
	ctx, done := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer done()
	TuneMemory(cfg.Store)
	n, err := Start(ctx, cfg)
	if err != nil {
		return err
	}
	if ready != nil {
		ready(n)
	}
	select {
	case <-ctx.Done():
	case err = <-n.failed:
		n.log.Error("cannot go on", "error", err)
	}
	done() // a second signal is not caught any more
	stop, cancel := clock.WithTimeout(context.WithoutCancel(ctx), clock.System, cfg.Drain)
	defer cancel()
	n.log.Info("stopping", "process", cfg.Name)
	return errors.Join(err, n.Stop(stop))
}

func (n *Node) startTelemetry(ctx context.Context) error {
	t, err := telemetry.Start(ctx, "rendezvous-"+n.cfg.Name, n.cfg.Version)
	if err != nil {
		return err
	}
	n.telemetry = t
	// The exporters' only way to tell is global; left alone it writes to stderr past the log.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { n.log.Warn("OpenTelemetry reports an error", "error", err) }))
	n.began("telemetry", t.Stop)
	return nil
}

// startPatience is how long a start waits for a store that is away; then the process fails and whoever runs it tries again.
const startPatience = time.Minute

func (n *Node) startStore(ctx context.Context) error {
	wrap := traced.Wrap(n.telemetry.Tracer, n.telemetry.Meter, clock.System)
	if inner, outer := n.cfg.Wrap, wrap; inner != nil {
		wrap = func(b backend.Backend) backend.Backend { return outer(inner(b)) }
	}
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond), backoff.WithMaxInterval(5*time.Second), backoff.WithMaxElapsedTime(startPatience))
	perRun := 0
	if n.cfg.Ingest != nil {
		perRun = n.cfg.Ingest.PushPerRun
	}
	try := func() error {
		s, err := open.Open(ctx, n.cfg.Store, open.Options{
			Clock: clock.System, Now: n.cfg.StoreClock, Shards: n.cfg.Shards, MaxEvent: n.cfg.Limit, Migrate: n.cfg.Migrate, Wrap: wrap,
			Destinations: n.cfg.destinations.Known(), PushPerRun: perRun,
		})
		if err != nil && !errors.Is(err, rendezvous.ErrUnavailable) {
			return backoff.Permanent(err)
		}
		n.store = s
		return err
	}
	err := backoff.RetryNotify(try, backoff.WithContext(wait, ctx), func(err error, d time.Duration) {
		n.log.WarnContext(ctx, "the store cannot be served yet; trying again", "in", d, "error", err)
	})
	if err != nil {
		return err
	}
	n.began("store", func(context.Context) error { return n.store.Close() })
	n.ready = append(n.ready, n.store.Ping)
	return nil
}

func (n *Node) startMessaging(ctx context.Context) error {
	cfg := n.cfg.messaging()
	deps := messaging.Deps{Log: n.log, Clock: clock.System}
	if cfg.IsEmbedded() {
		server, err := messaging.StartEmbedded(cfg, n.log)
		if err != nil {
			return err
		}
		n.embedded, deps.InProcess = server, server
		n.NATSURL = server.URL()
		n.began("NATS server", server.Shutdown)
		n.checks = append(n.checks, reason("the embedded NATS server", func(context.Context) error { return server.Health() }))
	} else {
		n.NATSURL = "external"
	}
	conn, err := messaging.Connect(cfg, deps)
	if err != nil {
		return err
	}
	n.conn = conn
	n.began("NATS connections", conn.Drain)
	quit, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		n.watch(conn, quit)
	}()
	n.began("watch", func(context.Context) error { close(quit); <-watched; return nil })
	n.checks = append(n.checks, func(context.Context) []string {
		if !conn.Connected() {
			return []string{"NATS is not connected: events are taken by the request door only, and waits are met by the passes"}
		}
		return nil
	})
	if n.sender, err = notify.New(conn, n.log, n.telemetry.Tracer, n.telemetry.Meter); err != nil {
		return err
	}
	n.began("notices", func(ctx context.Context) error { n.sender.Stop(ctx); return nil })
	provision, cancel := clock.WithTimeout(ctx, clock.System, 10*time.Second)
	defer cancel()
	if err := conn.Provision(provision); err != nil {
		if errors.Is(err, rendezvous.ErrInvalid) {
			return err
		}
		n.log.WarnContext(ctx, "streams not provisioned yet; consumers do it when NATS is there", "error", err, "cause", errors.Unwrap(err))
	}
	return nil
}

// watch turns a connection that is lost for good into the process's end.
func (n *Node) watch(conn *messaging.Conn, quit <-chan struct{}) {
	select {
	case err := <-conn.Failed():
		select {
		case n.failed <- err:
		default:
		}
	case <-quit:
	}
}

func reason(what string, check func(context.Context) error) func(context.Context) []string {
	return func(ctx context.Context) []string {
		if err := check(ctx); err != nil {
			return []string{what + ": " + err.Error()}
		}
		return nil
	}
}
