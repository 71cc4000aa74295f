package sweep_test

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/sweep"
)

// noNews is a store in which nothing became matchable since the pass unmet last looked.
type noNews struct{ Store }

func (noNews) TakeNews(context.Context, time.Duration, int, time.Duration, string) (store.Taken[store.UnmetPair], string, error) {
	return store.Taken[store.UnmetPair]{}, "", nil
}

// sliced is a store with so many slices of live events that meet nothing in front of those that do. A look at one takes as long as it says.
type sliced struct {
	Store
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

// SW-34: what is left apart now is met in the next tick, wherever the walk through all is, and however many slices are before it.
func TestWhatIsNewIsLookedAtFirst(t *testing.T) {
	p := newPlane(t)
	looked := 0
	w := p.sweep(sliced{p.all(), p, 1000, 30 * time.Millisecond, &looked}, sweep.Config{})
	w.tick(7 * time.Second)
	for _, run := range []string{"run-1", "run-2"} {
		p.start(run)
		p.await(run, 0)
		p.buffer(run)
		before := looked
		w.tick(7 * time.Second)
		if s := p.state(run); s != "consumed" || looked-before != 4 {
			t.Errorf("%s: its event is %s, and %d slices were looked at", run, s, looked-before)
		}
	}
}

// following is a store that tells where each look at the news was to go on, and where the one before said.
type following struct {
	Store
	asked, said *[]string
}

func (s following) TakeNews(ctx context.Context, grace time.Duration, limit int, hold time.Duration, cursor string) (store.Taken[store.UnmetPair], string, error) {
	taken, next, err := s.Store.TakeNews(ctx, grace, limit, hold, cursor)
	*s.asked, *s.said = append(*s.asked, cursor), append(*s.said, next)
	return taken, next, err
}

// SW-34: the pass goes on where it was, so a look costs what is new since.
func TestALookAtTheNewsGoesOnWhereTheLastWas(t *testing.T) {
	p := newPlane(t)
	var asked, said []string
	w := p.sweep(following{p.all(), &asked, &said}, sweep.Config{})
	for range 3 {
		w.tick(7 * time.Second)
	}
	if want := append([]string{""}, said[:len(said)-1]...); !slices.Equal(asked, want) || len(asked) != 3 {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

// unwalked is a store whose walk through all fails.
type unwalked struct{ Store }

func (unwalked) TakeUnmet(context.Context, time.Duration, int, time.Duration, string) (store.Taken[store.UnmetPair], string, error) {
	return store.Taken[store.UnmetPair]{}, "", rendezvous.Errorf(rendezvous.CodeUnavailable, "away")
}

// SW-34, decision 0013: news that a page took before it failed are given back, and are there for the next.
func TestNewsOfAPageThatFailedAreGivenBack(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	p.await("run-1", 0)
	p.buffer("run-1")
	w := p.sweep(unwalked{p.all()}, sweep.Config{})
	if r := w.tick(7 * time.Second); pass(t, r, sweep.Unmet).Err == nil || p.state("run-1") != rendezvous.EventLive {
		t.Fatalf("%+v; the event is %s", pass(t, r, sweep.Unmet), p.state("run-1"))
	}
	w = p.sweep(nil, sweep.Config{})
	if w.tick(8 * time.Second); p.state("run-1") != rendezvous.EventConsumed { // 1.5 ticks of 5 s and more
		t.Errorf("the event is %s", p.state("run-1"))
	}
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
		w := p.sweep(sliced{noNews{p.all()}, p, 30, c.look, &looked}, sweep.Config{})
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
