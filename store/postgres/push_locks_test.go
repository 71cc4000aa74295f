package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// R7, PU-105: who renews leases locks their registrations in the order of their keys, as settlements do: neither waits for the other for ever.
func TestLeasesAreLockedInTheOrderOfKeys(t *testing.T) {
	url := migrated.Database(t)
	execute(t, url, `INSERT INTO push_registrations `+
		pushOf("'acme', 'r', chr(96 + i), 'w', 'caller', 'g'", "'live'", "now()", "4 - i, 'pod'", "now() + interval '1 minute'", "NULL, ''")+` FROM generate_series(1, 3) i`)
	b := open(t, url)
	defer b.Close()
	renewed := make(chan error, 1)
	err := b.Update(t.Context(), "settle", func(ctx context.Context, tx backend.Tx) error {
		if _, err := tx.LockPushes(ctx, []backend.PushKey{push("acme", "r", "a")}); err != nil {
			return err
		}
		go func() {
			renewed <- b.Update(context.WithoutCancel(ctx), "renew", func(ctx context.Context, tx backend.Tx) error {
				rows, err := tx.PushesByToken(ctx, []int64{1, 2, 3})
				if err == nil && len(rows) != 3 {
					t.Errorf("%d rows, want 3", len(rows))
				}
				return err
			})
		}()
		awaitLocks(t, url)
		_, err := tx.LockPushes(ctx, []backend.PushKey{push("acme", "r", "c")})
		return err
	})
	if err != nil {
		t.Errorf("settle: %v", err)
	}
	if err := <-renewed; err != nil {
		t.Errorf("renew: %v", err)
	}
}

// awaitLocks returns when a session waits for a lock.
func awaitLocks(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		n := 0
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'").Scan(&n); err != nil || n > 0 {
			if err != nil {
				t.Error(err)
			}
			return
		}
		_ = clock.Sleep(t.Context(), clock.System, 10*time.Millisecond)
	}
	t.Error("nobody waits for a lock")
}
