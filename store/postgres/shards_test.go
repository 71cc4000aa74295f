package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// TM-30: timers and workflows that somebody has locked are passed over by whoever would rather work others.
func TestLockedTimersArePassedOver(t *testing.T) {
	b := open(t, analyzed.Database(t))
	defer b.Close()
	void1 := backend.TimerKey{Tenant: "globex", WorkflowID: "live-1", TimerID: "void"}
	err := b.Update(t.Context(), "test", func(ctx context.Context, outer backend.Tx) error {
		if rows, err := outer.LockTimers(ctx, []backend.TimerKey{due1, void1}); err != nil || len(rows) != 2 {
			t.Fatal(err, rows)
		}
		if rows, err := outer.TryLockWorkflows(ctx, []backend.WorkflowKey{live1}); err != nil || len(rows) != 1 {
			t.Fatal(err, rows)
		}
		return b.Update(ctx, "test", func(ctx context.Context, inner backend.Tx) error {
			if rows, err := inner.LockTimers(ctx, []backend.TimerKey{due1, due2}); err != nil || len(rows) != 1 || rows[due2] == nil {
				t.Error(err, rows)
			}
			rows, err := inner.TryLockWorkflows(ctx, []backend.WorkflowKey{live1, held1})
			if len(rows) != 1 || rows[held1] == nil {
				t.Error(err, rows)
			}
			return err
		})
	})
	if err != nil {
		t.Error(err)
	}
}

// TM-31: who gives a timer back waits for those who look at it, so that it is free at once.
func TestALockedTimerIsGivenBackAllTheSame(t *testing.T) {
	b := open(t, analyzed.Database(t))
	defer b.Close()
	looked, asked := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		<-looked
		ended <- b.Update(t.Context(), "test", func(ctx context.Context, tx backend.Tx) error {
			close(asked)
			rows, err := tx.HeldTimers(ctx, []int64{7, 8})
			if len(rows) != 2 {
				t.Error(err, rows)
			}
			return err
		})
	}()
	err := b.Update(t.Context(), "test", func(ctx context.Context, tx backend.Tx) error {
		rows, err := tx.HeldTimers(ctx, []int64{7})
		if len(rows) != 1 {
			t.Error(err, rows)
		}
		close(looked)
		<-asked
		_ = clock.Sleep(ctx, clock.System, 50*time.Millisecond) // the other waits by now, most likely
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// SH-30: fences delay neither each other nor a renewal.
func TestFencesWaitForNobody(t *testing.T) {
	url := migrated.Database(t)
	execute(t, url, `INSERT INTO shard_leases VALUES ('timer', 3, 'pod', 1, rdv_now(), true, '')`)
	b := open(t, url)
	defer b.Close()
	locked := func(ctx context.Context, how backend.ShardLock, fn func(ctx context.Context, tx backend.Tx, l *backend.ShardLease) error) error {
		return b.Update(ctx, "test", func(ctx context.Context, tx backend.Tx) error {
			leases, err := tx.LockShards(ctx, "timer", []int{3}, how)
			if err != nil {
				return err
			}
			return fn(ctx, tx, leases[3])
		})
	}
	renew := func(_ context.Context, tx backend.Tx, l *backend.ShardLease) error {
		l.ExpiresAt = l.ExpiresAt.Add(1)
		return tx.Apply(t.Context(), &backend.Changes{ShardLeases: []*backend.ShardLease{l}})
	}
	err := locked(t.Context(), backend.ShardFence, func(ctx context.Context, _ backend.Tx, _ *backend.ShardLease) error {
		return locked(ctx, backend.ShardFence, func(ctx context.Context, _ backend.Tx, _ *backend.ShardLease) error {
			return locked(ctx, backend.ShardRenew, renew)
		})
	})
	if err != nil {
		t.Error(err)
	}
	err = locked(t.Context(), backend.ShardRenew, func(ctx context.Context, tx backend.Tx, l *backend.ShardLease) error {
		if err := renew(ctx, tx, l); err != nil {
			return err
		}
		return locked(ctx, backend.ShardFence, func(context.Context, backend.Tx, *backend.ShardLease) error { return nil })
	})
	if err != nil {
		t.Error(err)
	}
}

// shards.md section 2: a pod that stands still in a transaction keeps nobody from its shards for longer than 2 s, and what it would have written is not.
func TestAFrozenPodLosesItsShards(t *testing.T) {
	for _, how := range []backend.ShardLock{backend.ShardFence, backend.ShardRenew, backend.ShardTake} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			url := migrated.Database(t)
			execute(t, url, `INSERT INTO shard_leases VALUES ('timer', 3, 'pod', 1, rdv_now(), true, '')`)
			b := open(t, url)
			defer b.Close()
			err := b.Update(t.Context(), "test", func(ctx context.Context, tx backend.Tx) error {
				leases, err := tx.LockShards(ctx, "timer", []int{3}, how)
				if err != nil {
					return err
				}
				// While this one stands still, another takes the shard: it waits for the server to end the transaction.
				conn, err := pgx.Connect(ctx, url)
				if err != nil {
					return err
				}
				defer conn.Close(ctx)
				if _, err := conn.Exec(ctx, "SET lock_timeout = '20s'"); err != nil {
					return err
				}
				if _, err := conn.Exec(ctx, "SELECT FROM shard_leases FOR UPDATE"); err != nil {
					t.Errorf("the shard was not free: %v", err)
				}
				leases[3].Serving = false
				return tx.Apply(ctx, &backend.Changes{ShardLeases: []*backend.ShardLease{leases[3]}})
			})
			if rendezvous.CodeOf(err) != rendezvous.CodeUnavailable {
				t.Errorf("got %v, want unavailable", err)
			}
		})
	}
}
