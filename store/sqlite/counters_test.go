package sqlite

import (
	"context"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

func made(t *testing.T, dir string) *Backend {
	t.Helper()
	b, err := Open(context.Background(), Config{Dir: dir, Clock: clock.NewManual(time.Date(2026, 11, 29, 8, 0, 0, 0, time.UTC))})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// I9: what a transaction reserved is forgotten with it, also where its group goes on; else numbers would be given that a restart gives again.
func TestAnUndoneReservationIsNone(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	b := made(t, dir)
	draw := func(ctx context.Context, tx backend.Tx) error {
		_, err := tx.NewEventNumbers(ctx, 1)
		return err
	}
	var last int64
	<-b.turn
	if err := b.run("CREATE TEMP TRIGGER refuse BEFORE UPDATE ON counters WHEN new.name = 'wait' BEGIN SELECT RAISE(ABORT, 'on purpose'); END"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.join(ctx, func(context.Context, backend.Tx) error { return nil }); err != nil {
		t.Fatal(err)
	}
	_, err := b.join(ctx, func(ctx context.Context, tx backend.Tx) error { // event numbers are reserved, wait numbers are not
		if _, err := tx.NewWaitNumbers(ctx, 1); err != nil {
			return err
		}
		return draw(ctx, tx)
	})
	if rendezvous.CodeOf(err) != rendezvous.CodeCorrupt {
		t.Fatalf("the transaction whose reservation failed: %v", err)
	}
	if err := b.run("DROP TRIGGER refuse"); err != nil {
		t.Fatal(err)
	}
	_, err = b.join(ctx, func(ctx context.Context, tx backend.Tx) error {
		numbers, err := tx.NewEventNumbers(ctx, 1)
		last = numbers[0]
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b.commitGroup()
	b.leave()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = made(t, dir)
	defer b.Close()
	err = b.Update(ctx, "draw", func(ctx context.Context, tx backend.Tx) error {
		numbers, err := tx.NewEventNumbers(ctx, 1)
		if err == nil && numbers[0] <= last {
			t.Errorf("%d is given again after %d", numbers[0], last)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A store whose disk failed in a commit answers nothing more, not even a read: what it would show may be gone when the file is recovered.
func TestABrokenStoreServesNothing(t *testing.T) {
	b := made(t, t.TempDir())
	b.end(unavailable("the disk failed"))
	for name, call := range map[string]func() error{
		"a read": func() error {
			return b.View(t.Context(), "read", func(context.Context, backend.Reader) error { return nil })
		},
		"a write": func() error {
			return b.Update(t.Context(), "write", func(context.Context, backend.Tx) error { return nil })
		},
		"a ping": func() error { return b.Ping(t.Context()) },
	} {
		if err := call(); rendezvous.CodeOf(err) != rendezvous.CodeUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := b.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}
