package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/open"
)

// Variables of the environment that make the program of these tests a pod that believes in its shards for ever, and one on whose store no fence stands.
const (
	asStubborn = "RENDEZVOUS_TEST_STUBBORN"
	fenceless  = "RENDEZVOUS_TEST_FENCELESS"

	stubbornOwner = "stubborn/1"
)

// beStubborn owns every shard for the shortest time there is, says so, and for each line that it reads works a page as if it still did.
func beStubborn() error {
	ctx := context.Background()
	o := open.Options{Clock: clock.System}
	if os.Getenv(fenceless) != "" {
		o.Wrap = func(b backend.Backend) backend.Backend { return noFence{b} }
	}
	s, err := open.Open(ctx, os.Getenv("RENDEZVOUS_STORE"), o)
	if err != nil {
		return err
	}
	handle, err := s.PoolHandle(store.PoolTimer, stubbornOwner)
	if err != nil {
		return err
	}
	all := make([]int, s.Shards())
	for i := range all {
		all[i] = i
	}
	won, err := handle.AcquireOwnedShards(ctx, all, store.MinShardTTL)
	if err != nil {
		return err
	}
	var own []store.ShardEpoch
	for _, l := range won.Won {
		own = append(own, store.ShardEpoch{Shard: l.Shard, Epoch: l.Epoch})
	}
	fmt.Println(len(own))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		page, err := handle.FireDueTimers(ctx, own, 0)
		switch {
		case err != nil:
			fmt.Println(rendezvous.CodeOf(err))
		case len(page.Fires) > 0:
			fmt.Println("fired")
		default:
			fmt.Println("nothing")
		}
	}
	return nil
}

// noFence is a store whose fences let everybody pass: what the contract rules out.
type noFence struct{ backend.Backend }

func (n noFence) Update(ctx context.Context, verb string, fn func(context.Context, backend.Tx) error) error {
	return n.Backend.Update(ctx, verb, func(ctx context.Context, tx backend.Tx) error { return fn(ctx, unfenced{tx}) })
}

type unfenced struct{ backend.Tx }

func (o unfenced) LockShards(ctx context.Context, pool string, shards []int, lock backend.ShardLock) (map[int]*backend.ShardLease, error) {
	rows, err := o.Tx.LockShards(ctx, pool, shards, lock)
	if lock == backend.ShardFence {
		for _, l := range rows {
			l.Owner, l.Epoch, l.ExpiresAt = stubbornOwner, 1, o.Now().Add(time.Hour)
		}
	}
	return rows, err
}

// stubborn is that pod, seen from the test.
type stubborn struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
}

func startStubborn(t *testing.T, env ...string) *stubborn {
	t.Helper()
	cmd := nodetest.Command(t, append(env, asStubborn+"=1"))
	s := &stubborn{t: t, in: must[io.WriteCloser](t)(cmd.StdinPipe()), out: bufio.NewScanner(must[io.ReadCloser](t)(cmd.StdoutPipe()))}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(cmd) })
	if got := s.answer(); got != "64" {
		t.Fatalf("it owns %s shards", got)
	}
	return s
}

func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait() // killed is how it ends
}

// fire lets it work a page and answers what it got.
func (s *stubborn) fire() string {
	s.t.Helper()
	if _, err := fmt.Fprintln(s.in, "fire"); err != nil {
		s.t.Fatal(err)
	}
	return s.answer()
}

func (s *stubborn) answer() string {
	s.t.Helper()
	if !s.out.Scan() {
		s.t.Fatalf("it ended: %v", s.out.Err())
	}
	return s.out.Text()
}
