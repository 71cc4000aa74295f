package memory_test

import (
	"context"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/memory"
)

// TestMisuseIsAnError: what a database would let through until two writers meet is refused here at once (R7).
func TestMisuseIsAnError(t *testing.T) {
	w := &backend.Workflow{Tenant: "acme", ID: "w", RunID: "r", Status: rendezvous.StatusRunning, Head: 1}
	wait := &backend.Wait{Number: 1, Tenant: "acme", RunID: "r", Effect: "e", WorkflowID: "w"}
	key := []backend.WorkflowKey{w.Key()}
	timer := &backend.Timer{Tenant: "acme", WorkflowID: "w", TimerID: "t"}
	lease := &backend.ShardLease{Pool: "timer", Epoch: 1}
	for name, misuse := range map[string]func(ctx context.Context, tx backend.Tx) error{
		"a workflow without its lock": func(ctx context.Context, tx backend.Tx) error {
			return tx.Apply(ctx, &backend.Changes{Workflows: []*backend.Workflow{w}})
		},
		"a wait without its workflow's lock": func(ctx context.Context, tx backend.Tx) error {
			return tx.Apply(ctx, &backend.Changes{NewWaits: []*backend.Wait{wait}})
		},
		"a record without its workflow's lock": func(ctx context.Context, tx backend.Tx) error {
			return tx.Apply(ctx, &backend.Changes{Records: []*backend.Record{{Tenant: "acme", WorkflowID: "w", Record: rendezvous.Record{Seq: 2}}}})
		},
		"a timer without its workflow's lock": func(ctx context.Context, tx backend.Tx) error {
			return tx.Apply(ctx, &backend.Changes{Timers: []*backend.Timer{timer}})
		},
		"a timer that goes without its workflow's lock": func(ctx context.Context, tx backend.Tx) error {
			return tx.Apply(ctx, &backend.Changes{GoneTimers: []backend.TimerKey{timer.Key()}})
		},
		"a hold without its timer's lock": func(ctx context.Context, tx backend.Tx) error {
			return tx.Apply(ctx, &backend.Changes{HeldTimers: []*backend.Timer{timer}})
		},
		"a lease without its lock": func(ctx context.Context, tx backend.Tx) error {
			return tx.Apply(ctx, &backend.Changes{ShardLeases: []*backend.ShardLease{lease}})
		},
		"a lease under a fence": func(ctx context.Context, tx backend.Tx) error {
			if _, err := tx.LockShards(ctx, "timer", []int{0}, backend.ShardFence); err != nil {
				t.Error(err)
			}
			return tx.Apply(ctx, &backend.Changes{ShardLeases: []*backend.ShardLease{lease}})
		},
		"shards after workflows": func(ctx context.Context, tx backend.Tx) error {
			if _, err := tx.TryLockWorkflows(ctx, key); err != nil {
				t.Error(err)
			}
			_, err := tx.LockShards(ctx, "timer", []int{0}, backend.ShardFence)
			return err
		},
		"locking twice": func(ctx context.Context, tx backend.Tx) error {
			if _, err := tx.LockWorkflows(ctx, key); err != nil {
				t.Error(err)
			}
			_, err := tx.LockWorkflows(ctx, key)
			return err
		},
		"applying twice": func(ctx context.Context, tx backend.Tx) error {
			if err := tx.Apply(ctx, &backend.Changes{}); err != nil {
				t.Error(err)
			}
			return tx.Apply(ctx, &backend.Changes{})
		},
	} {
		b := memory.Open(clock.NewManual(began), rendezvous.DefaultShards)
		start := func(ctx context.Context, tx backend.Tx) error {
			return tx.Apply(ctx, &backend.Changes{NewWorkflows: []*backend.Workflow{w}, NewShardLeases: []*backend.ShardLease{lease}})
		}
		if err := b.Update(context.Background(), "test", start); err != nil {
			t.Fatal(err)
		}
		if err := b.Update(context.Background(), "test", misuse); rendezvous.CodeOf(err) != rendezvous.CodeInvalid {
			t.Errorf("%s: got %v, want it refused", name, err)
		}
	}
}

// TestWaitingForATurnEnds: a call that waits behind a long transaction is given up with its context.
func TestWaitingForATurnEnds(t *testing.T) {
	b := memory.Open(clock.NewManual(began), rendezvous.DefaultShards)
	inside, leave, left := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		left <- b.Update(context.Background(), "long", func(context.Context, backend.Tx) error {
			close(inside)
			<-leave
			return nil
		})
	}()
	<-inside
	ctx, cancel := context.WithCancel(context.Background())
	waiting := make(chan error)
	go func() {
		waiting <- b.View(ctx, "short", func(context.Context, backend.Reader) error { return nil })
	}()
	cancel()
	if err := <-waiting; rendezvous.CodeOf(err) != rendezvous.CodeUnavailable {
		t.Errorf("the call that waited: %v", err)
	}
	close(leave)
	if err := <-left; err != nil {
		t.Errorf("the long transaction: %v", err)
	}
}

// TestNowIsWholeMicroseconds: finer digits are cut off (history.md section 1).
func TestNowIsWholeMicroseconds(t *testing.T) {
	c := clock.NewManual(began.Add(999 * time.Nanosecond))
	b := memory.Open(c, rendezvous.DefaultShards)
	err := b.View(context.Background(), "test", func(_ context.Context, r backend.Reader) error {
		if !r.Now().Equal(began) {
			t.Errorf("now is %v, want %v", r.Now(), began)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
