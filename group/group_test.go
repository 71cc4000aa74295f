package group

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/rendezvous-events/rendezvous"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func one(int) int { return 1 }

func TestEveryCallerGetsItsOwnOutcome(t *testing.T) {
	var most atomic.Int64
	g := New(Config{Items: 50}, one, func(_ context.Context, items []int) ([]int, error) {
		most.Store(max(most.Load(), int64(len(items))))
		out := make([]int, len(items))
		for i, v := range items {
			out[i] = v * 2
		}
		return out, nil
	})
	var wg sync.WaitGroup
	for i := range 2000 {
		wg.Go(func() {
			if got, err := g.Do(t.Context(), i); err != nil || got != 2*i {
				t.Errorf("Do(%d) = %d, %v", i, got, err)
			}
		})
	}
	wg.Wait()
	g.Stop(t.Context())
	g.Stop(t.Context())
	if most.Load() > 50 {
		t.Errorf("a batch held %d items, over its bound of 50", most.Load())
	}
	if _, err := g.Do(t.Context(), 1); !errors.Is(err, rendezvous.ErrUnavailable) {
		t.Errorf("after Stop: %v", err)
	}
}

func TestItemsGatherWhileACommitIsUnderWay(t *testing.T) {
	under, let := make(chan struct{}), make(chan struct{})
	var sizes []int
	g := New(Config{}, one, func(_ context.Context, items []int) ([]int, error) {
		sizes = append(sizes, len(items))
		if len(sizes) == 1 {
			close(under)
			<-let
		}
		return items, nil
	})
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = g.Do(t.Context(), 0) })
	<-under
	handed := make(chan struct{}, 10)
	for i := range 10 {
		wg.Go(func() { handed <- struct{}{}; _, _ = g.Do(t.Context(), i) })
	}
	for range 10 {
		<-handed
	}
	close(let)
	wg.Wait()
	g.Stop(t.Context())
	total := 0
	for _, n := range sizes {
		total += n
	}
	if total != 11 || sizes[0] != 1 {
		t.Errorf("batches of %v: want one item first and 11 in all", sizes)
	}
}

func TestBytesBoundABatchAndOneItemAlwaysFits(t *testing.T) {
	g := New(Config{Bytes: 10, Commits: 2}, func(v int) int { return v }, func(_ context.Context, items []int) ([]int, error) {
		sum := 0
		for _, v := range items {
			sum += v
		}
		if len(items) > 1 && sum > 10 {
			t.Errorf("a batch of %v is over 10 bytes", items)
		}
		return items, nil
	})
	defer g.Stop(t.Context())
	outs, errs := g.HandAll(t.Context(), []int{4, 4, 4, 25, 1, 9, 9, 2})()
	for i, err := range errs {
		if err != nil {
			t.Errorf("item %d: %v", i, err)
		}
	}
	if outs[3] != 25 {
		t.Errorf("the large item came back as %d", outs[3])
	}
}

func TestAFailedCommitIsEveryItemsError(t *testing.T) {
	g := New(Config{}, one, func(context.Context, []int) ([]int, error) { return nil, rendezvous.ErrUnavailable })
	defer g.Stop(t.Context())
	if _, err := g.Do(t.Context(), 1); !errors.Is(err, rendezvous.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestACommitThatPanicsIsItsItemsErrorAlone(t *testing.T) {
	var log strings.Builder
	g := New(Config{Log: slog.New(slog.NewTextHandler(&log, nil))}, one, func(_ context.Context, items []int) ([]int, error) {
		if items[0] == 13 {
			panic("a bug")
		}
		return items, nil
	})
	_, errs := g.HandAll(t.Context(), []int{13, 4242})()
	for _, err := range errs {
		if !errors.Is(err, rendezvous.ErrCommitUnknown) || strings.Contains(err.Error(), "a bug") {
			t.Errorf("got %v", err)
		}
	}
	if got, err := g.Do(t.Context(), 1); got != 1 || err != nil {
		t.Errorf("the next commit: %d, %v", got, err)
	}
	g.Stop(t.Context())
	if text := log.String(); !strings.Contains(text, "a bug") || !strings.Contains(text, "group_test.go") || strings.Contains(text, "4242") {
		t.Errorf("the log: %s", text)
	}
}

func TestACallerWhoLeavesIsToldThatItMayBeDone(t *testing.T) {
	under, let := make(chan struct{}), make(chan struct{})
	g := New(Config{}, one, func(_ context.Context, items []int) ([]int, error) {
		close(under)
		<-let
		return items, nil
	})
	ctx, leave := context.WithCancel(t.Context())
	go func() { <-under; leave() }()
	if _, err := g.Do(ctx, 1); !errors.Is(err, rendezvous.ErrCommitUnknown) {
		t.Errorf("got %v", err)
	}
	close(let)
	g.Stop(t.Context())
}

func TestWhatIsHandedInTogetherIsCommittedTogetherAndInOrder(t *testing.T) {
	var mu sync.Mutex
	var commits [][]int
	g := New(Config{Items: 4, Commits: 2}, one, func(_ context.Context, items []int) ([]int, error) {
		mu.Lock()
		defer mu.Unlock()
		commits = append(commits, items)
		return items, nil
	})
	defer g.Stop(t.Context())
	outs, errs := g.HandAll(t.Context(), []int{1, 2, 3, 4, 5, 6, 7, 8, 9})()
	if !slices.Equal(outs, []int{1, 2, 3, 4, 5, 6, 7, 8, 9}) || len(errs) != 9 {
		t.Errorf("%v %v", outs, errs)
	}
	if len(commits) != 3 || !slices.Equal(slices.Concat(commits...), outs) {
		t.Errorf("commits %v", commits)
	}
	if outs, errs := g.HandAll(t.Context(), nil)(); len(outs)+len(errs) != 0 {
		t.Errorf("nothing came back as %v %v", outs, errs)
	}
}
