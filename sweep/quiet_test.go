package sweep_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/sweep"
)

// writes counts the writes of a backend.
type writes struct {
	backend.Backend
	n *atomic.Int64
}

func (b writes) Update(ctx context.Context, verb string, fn func(ctx context.Context, tx backend.Tx) error) error {
	return b.Backend.Update(ctx, verb, func(ctx context.Context, tx backend.Tx) error { return fn(ctx, writesTx{tx, b.n}) })
}

type writesTx struct {
	backend.Tx
	n *atomic.Int64
}

func (tx writesTx) Apply(ctx context.Context, c *backend.Changes) error {
	tx.n.Add(1)
	return tx.Tx.Apply(ctx, c)
}

// SW-21, SW-27, S8: on a healthy plane, with runs that are driven, waits that wait and events nobody wants yet, ticks find nothing and write nothing.
func TestAQuietTickWritesNothing(t *testing.T) {
	var n atomic.Int64
	p := newPlane(t, func(b backend.Backend) backend.Backend { return writes{b, &n} })
	for _, run := range runs("run", 20) {
		p.start(run)
		p.await(run, p.lease(run, time.Hour))
	}
	p.buffer("nobody")
	w := p.sweep(p.seen(store.ShardNumbers(p.shards())...), sweep.Config{})
	n.Store(0)
	for range 10 {
		for _, got := range w.tick(5 * time.Second).Passes {
			if got.Handed > 0 || got.Err != nil || got.Pages != 1 {
				t.Errorf("reported %+v", got)
			}
		}
	}
	if got := n.Load(); got > 0 {
		t.Errorf("%d writes", got)
	}
	if s := p.state("nobody"); s != rendezvous.EventLive {
		t.Errorf("the event nobody wants yet is %s", s)
	}
	if r := w.Last(); r.Depths.OpenWaits != 20 || r.Depths.LiveEvents != 1 || len(r.Attention) > 0 {
		t.Errorf("depths %+v, attention %+v", r.Depths, r.Attention)
	}
}
