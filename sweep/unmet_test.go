package sweep_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/sweep"
)

// sliced is a store with so many slices of live events that meet nothing in front of those that do. A look at one takes as long as it says.
type sliced struct {
	sweep.Store
	p      *plane
	slices int
	look   time.Duration
	looked *int
}

func (s sliced) TakeUnmet(ctx context.Context, grace time.Duration, limit int, hold time.Duration, cursor string) (store.Taken[store.UnmetPair], string, error) {
	*s.looked++
	n, _ := strconv.Atoi(cursor)
	if n < s.slices {
		s.p.clock.Advance(s.look)
		return store.Taken[store.UnmetPair]{}, strconv.Itoa(n + 1), nil
	}
	return s.Store.TakeUnmet(ctx, grace, limit, hold, "")
}

// SW-20, sweep.md section 2: a page looks on where a slice has nothing, for 100 ms, and the next page goes on where it ended.
func TestAPageLooksOnWhereNothingIsLeftApart(t *testing.T) {
	for _, c := range []struct {
		look  time.Duration
		ticks int
	}{{0, 1}, {time.Millisecond, 1}, {30 * time.Millisecond, 8}, {time.Second, 31}} {
		p := newPlane(t)
		p.start("run-1")
		p.await("run-1", 0)
		p.buffer("run-1")
		looked := 0
		w := p.sweep(sliced{p.store, p, 30, c.look, &looked}, sweep.Config{})
		for n := 1; n <= c.ticks; n++ {
			if p.state("run-1") != "live" {
				t.Fatalf("%s a look: met after %d ticks already", c.look, n-1)
			}
			w.tick(7 * time.Second)
		}
		if s := p.state("run-1"); s != "consumed" || looked != 31 {
			t.Errorf("%s a look: after %d ticks and %d looks the event is %s", c.look, c.ticks, looked, s)
		}
	}
}
