// Package rendezvoustest starts a whole plane inside a Go test, for the tests of those who build on Rendezvous: the doors, the workers, an embedded NATS server
// and a store in memory, on free ports. What is hard to meet in life can be had on command:
//
//	p := rendezvoustest.Start(t)
//	c := p.Client(t, "acme")
//
//	p.Faults.Arm(fault.Failure{Verb: "buffer_batch", Point: fault.AfterCommit}) // the next event is stored, and its answer is lost
//	p.Clock.Advance(31 * time.Second)                                           // leases of 30 s have run out, and a run that slept so long goes on
//
// Timers and deadlines follow the clock: what is due when it stops is recorded within a moment.
//
// Failures strike transactions of the store, by the name of the verb's transaction: see package fault for points and repetition. The clock is the store's: expiry of
// events and leases, retries of parked waits, and instants in histories. Timers of the processes themselves run on: a pass looks again within a second.
// What nobody wanted for an hour of that clock becomes a dead letter.
package rendezvoustest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// Plane is a whole plane within a test. It ends with the test.
type Plane struct {
	URL     string         // of the API
	NATSURL string         // of the embedded server
	Faults  *fault.Backend // fails transactions of the store
	Clock   *clock.Manual  // the store's; it stands until it is moved
}

// Option changes what Start starts.
type Option func(*node.Config)

// Store keeps the state elsewhere than in memory: sqlite:DIR. A PostgreSQL store has a clock of its own and is refused.
func Store(url string) Option { return func(c *node.Config) { c.Store = url } }

// Log sends what the plane logs to a logger; without it, it is thrown away.
func Log(l *slog.Logger) Option { return func(c *node.Config) { c.Logger = l } }

// probe is how soon a jump of the clock is noticed.
const probe = 50 * time.Millisecond

// stopPatience is how long the end of a plane may take.
const stopPatience = 30 * time.Second

// Start brings a plane up and takes it down when the test ends; either fails the test where it does not succeed. The clock stands at the present, in whole seconds.
func Start(t testing.TB, options ...Option) *Plane {
	t.Helper()
	p := &Plane{Clock: clock.NewManual(clock.System.Now().UTC().Truncate(time.Second))}
	cfg := node.Private("rendezvoustest", t.TempDir())
	cfg.Version, cfg.StoreClock = "test", p.Clock
	cfg.Sweep.Tick, cfg.Sweep.Woken, cfg.Timers.Probe = time.Second, time.Second, probe
	cfg.Wrap = func(b backend.Backend) backend.Backend {
		p.Faults = fault.Wrap(b)
		return p.Faults
	}
	for _, o := range options {
		o(&cfg)
	}
	n, err := node.Start(t.Context(), cfg)
	if err != nil {
		t.Fatalf("start the plane: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := clock.WithTimeout(context.Background(), clock.System, stopPatience)
		defer cancel()
		if err := n.Stop(ctx); err != nil {
			t.Errorf("stop the plane: %v", err)
		}
	})
	p.URL, p.NATSURL = "http://"+n.HTTP, n.NATSURL
	return p
}

// Client is a client of one tenant: verbs over HTTP, publishing and executors over NATS. It is closed with the test.
func (p *Plane) Client(t testing.TB, tenant string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{Tenant: tenant, URL: p.URL, NATSURL: p.NATSURL})
	if err != nil {
		t.Fatalf("make a client: %v", err)
	}
	t.Cleanup(c.Close)
	return c
}
