package node

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/api"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/delivery"
	"github.com/rendezvous-events/rendezvous/group"
	"github.com/rendezvous-events/rendezvous/ingest"
	"github.com/rendezvous-events/rendezvous/shard"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/open"
	"github.com/rendezvous-events/rendezvous/sweep"
)

// startIngest opens the doors: the group commit, the verbs over HTTP and NATS, and the INBOX stream.
func (n *Node) startIngest(ctx context.Context) error {
	if n.cfg.Ingest == nil {
		return nil
	}
	tokens := n.cfg.tokens
	m, err := ingest.NewMetrics(n.telemetry.Meter)
	if err != nil {
		return err
	}
	door := ingest.NewDoor(n.store, n.sender, group.Config{Commits: 2, Log: n.log}, n.telemetry.Tracer, m)
	n.began("door", door.Stop)
	targets, err := n.cfg.Targets.Policy()
	if err != nil {
		return err
	}
	service, err := api.New(api.Config{
		Store: n.store, Door: door, Sender: n.sender, Clock: clock.System, Log: n.log, Tracer: n.telemetry.Tracer, Meter: n.telemetry.Meter,
		Version: n.cfg.Version, Kind: open.Kind(n.cfg.Store), Targets: targets, Checks: n.checks,
	})
	if err != nil {
		return err
	}
	n.began("verbs", service.Stop)
	if n.HTTP, err = n.serve(ctx, "http", n.cfg.Ingest.HTTP, service.HTTP(tokens)); err != nil {
		return err
	}
	if n.HTTP != "" && !tokens.Any() {
		n.log.InfoContext(ctx, "no tokens are configured: every tenant is open, on loopback only", "http", n.HTTP)
	}
	requests, err := service.ServeNATS(n.conn.ConsumeConn(), n.cfg.NATS.Prefix, serviceVersion(n.cfg.Version))
	if err != nil {
		return err
	}
	n.began("NATS verbs", func(ctx context.Context) error { requests.Stop(ctx); return nil })
	inbox := ingest.NewInbox(door, n.conn, n.log)
	if err := inbox.Start(); err != nil {
		return err
	}
	n.began("INBOX", inbox.Stop)
	n.began("long polls", func(context.Context) error { service.EndPolls(); return nil })
	return nil
}

// startDelivery starts the worker that works MATCH.
func (n *Node) startDelivery(context.Context) error {
	if !n.cfg.Delivery {
		return nil
	}
	deps := delivery.Deps{Sender: n.sender, Clock: clock.System, Log: n.log, Tracer: n.telemetry.Tracer, Meter: n.telemetry.Meter}
	worker, err := delivery.New(n.store, n.conn, deps)
	if err != nil {
		return err
	}
	gap := func() {} // a sweeper in another process looks at its own connection
	if n.sweeper != nil {
		gap = n.sweeper.Kick
	}
	if err := worker.Start(gap); err != nil {
		return err
	}
	n.began("delivery-worker", worker.Stop)
	return nil
}

// makeSweep makes the passes. They start last, to be stopped first: system.check asks them what a human should look at, and the delivery-worker kicks them
// when notices may have been lost.
func (n *Node) makeSweep(context.Context) error {
	if n.cfg.Sweep == nil {
		return nil
	}
	incarnation := shard.Incarnation(memberName(n.cfg.Name))
	handle, err := n.store.PoolHandle(store.PoolSweep, incarnation)
	if err != nil {
		return err
	}
	deps := sweep.Deps{Sender: n.sender, Clock: clock.System, Log: n.log, Meter: n.telemetry.Meter}
	if n.sweeper, err = sweep.New(n.store, handle, n.conn, deps, n.cfg.sweeping()); err != nil {
		return err
	}
	n.checks = append(n.checks, func(context.Context) []string { return n.sweeper.Reasons() })
	n.sweeperShards, err = n.member(store.PoolSweep, incarnation, handle, n.sweeper, n.cfg.Sweep.Lease)
	return err
}

// startSweep starts the passes and joins the pool of the sweepers.
func (n *Node) startSweep(ctx context.Context) error {
	if n.sweeper == nil {
		return nil
	}
	if err := n.sweeper.Start(); err != nil {
		return err
	}
	n.began("sweeper", n.sweeper.Stop)
	n.ready = append(n.ready, func(context.Context) error { return n.sweeper.Ready() })
	return n.join(ctx, store.PoolSweep, n.sweeperShards)
}

// serve listens and serves until the node stops; the address answered is the real one. setting is what the address is set by.
func (n *Node) serve(ctx context.Context, setting, address string, h http.Handler) (string, error) {
	if address == "" {
		return "", nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", rendezvous.InvalidField(setting, "cannot listen on %s; choose another address: %v", address, err)
	}
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 60 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog:    slog.NewLogLogger(n.log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	ended := make(chan error, 1)
	go func() {
		err := server.Serve(l)
		ended <- err
		if !errors.Is(err, http.ErrServerClosed) {
			select {
			case n.failed <- err:
			default:
			}
		}
	}()
	n.began("server of "+setting, func(ctx context.Context) error {
		err := server.Shutdown(ctx)
		if err != nil {
			err = errors.Join(err, server.Close())
		}
		<-ended
		return err
	})
	return l.Addr().String(), nil
}

// serviceVersion is a version as NATS services want it: three numbers.
func serviceVersion(v string) string {
	if semver.MatchString(v) {
		return v
	}
	return "0.0.0"
}
