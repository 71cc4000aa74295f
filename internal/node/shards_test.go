package node_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/wire"
)

// SH-28, SH-16: one process of every role owns every shard of both pools, without waiting, in memory and on SQLite; the list names it and its host.
func TestASingleProcessOwnsEveryShardOfBothPools(t *testing.T) {
	host, err := os.Hostname()
	must(t, err)
	for _, url := range []string{"memory:", "sqlite:" + t.TempDir() + "/store"} {
		kind, _, _ := strings.Cut(url, ":")
		t.Run(kind, func(t *testing.T) {
			n := nodetest.Start(t, func(c *node.Config) { c.Store, c.Shards = url, rendezvous.DefaultShards })
			ready := clock.System.Now()
			c, err := client.New(client.Options{Tenant: "acme", URL: "http://" + n.HTTP})
			must(t, err)
			defer c.Close()
			owned := map[string]int{}
			for owned["timer"] != rendezvous.DefaultShards || owned["sweep"] != rendezvous.DefaultShards {
				got, err := c.ListShards(t.Context(), wire.ListShards{})
				must(t, err)
				clear(owned)
				for _, s := range got.Shards {
					if s.Serving && s.Address == host && strings.HasPrefix(s.Owner, "test-"+host+"/") {
						owned[s.Pool]++
					}
				}
				if took := clock.System.Now().Sub(ready); took > store.DefaultShardTTL {
					t.Fatalf("%s after it was ready it owns %v: %+v", took, owned, got)
				}
			}
		})
	}
}

// A store that hangs does not hold up the end of a process beyond its patience: what is not released ends with its leases.
func TestAnEndIsNotHeldUpByShardsThatAreNotReleased(t *testing.T) {
	var faults *fault.Backend
	n, err := node.Start(t.Context(), nodetest.Config(t, func(c *node.Config) {
		c.Ingest, c.Delivery, c.Timers = nil, false, nil
		c.Wrap = func(b backend.Backend) backend.Backend {
			faults = fault.Wrap(b)
			return faults
		}
	}))
	must(t, err)
	held := make(chan struct{})
	faults.Arm(fault.Failure{Verb: "renew_shards", Point: fault.BeforeCommit, Do: func(context.Context) error { <-held; return nil }, Times: -1})
	late := errors.New("out of patience")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(200*time.Millisecond, func() { cancel(late) })
	time.AfterFunc(time.Second, func() { close(held) }) // or the store itself would not close
	if err := n.Stop(ctx); !errors.Is(err, late) || !strings.Contains(err.Error(), "pool sweep: shards that were not released") {
		t.Errorf("stopped with %v", err)
	}
}
