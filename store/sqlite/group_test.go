package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/sqlite"
)

var bg = context.Background()

// event is a row as doors store it; size is its payload's.
func event(number int64, id string, size int) *backend.Event {
	return &backend.Event{
		Number: number, Tenant: "acme", Source: "shop", ID: id, Type: "paid", Keys: []rendezvous.Key{{Namespace: "order", Value: id}},
		ContentType: "text/plain", Payload: make([]byte, size), Digest: make([]byte, 32), ReceivedAt: began, LiveSince: began, State: rendezvous.EventLive,
	}
}

func put(ctx context.Context, b backend.Backend, id string, size int) error {
	return b.Update(ctx, "put", func(ctx context.Context, tx backend.Tx) error {
		numbers, err := tx.NewEventNumbers(ctx, 1)
		if err != nil {
			return err
		}
		return tx.Apply(ctx, &backend.Changes{NewEvents: []*backend.Event{event(numbers[0], id, size)}})
	})
}

func stored(t *testing.T, b backend.Backend, id string) bool {
	t.Helper()
	found := false
	err := b.View(bg, "look", func(ctx context.Context, r backend.Reader) error {
		key := backend.EventKey{Tenant: "acme", Source: "shop", ID: id}
		rows, err := r.EventsByKey(ctx, []backend.EventKey{key}, false)
		found = rows[key] != nil
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// held runs a transaction that ends when it is told to, and waits until it has the turn.
func held(b backend.Backend, fn func(ctx context.Context, tx backend.Tx) error) (release func() error) {
	inside, leave, left := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		left <- b.Update(bg, "held", func(ctx context.Context, tx backend.Tx) error {
			close(inside)
			<-leave
			return fn(ctx, tx)
		})
	}()
	<-inside
	return func() error { close(leave); return <-left }
}

// TestACrowdSharesASync: callers that wait together are committed together, and each has its own outcome.
func TestACrowdSharesASync(t *testing.T) {
	b := open(t, t.TempDir(), clock.NewManual(began))
	defer b.Close()
	refused := errors.New("refused")
	release := held(b, func(context.Context, backend.Tx) error { return nil })
	const crowd = 40
	errs := make([]error, crowd)
	var all sync.WaitGroup
	for i := range crowd {
		all.Go(func() {
			if i%4 == 3 {
				errs[i] = b.Update(bg, "fail", func(ctx context.Context, tx backend.Tx) error {
					if err := tx.Apply(ctx, &backend.Changes{NewEvents: []*backend.Event{event(int64(1000+i), fmt.Sprint("failed-", i), 9)}}); err != nil {
						return err
					}
					return refused
				})
				return
			}
			errs[i] = put(bg, b, fmt.Sprint("e-", i), 9)
		})
	}
	ctx, cancel := clock.WithTimeout(bg, clock.System, 100*time.Millisecond) // for all to come to the turn; coming later makes more syncs and no failure
	<-ctx.Done()
	cancel()
	if err := release(); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	for i, err := range errs {
		if i%4 == 3 {
			if !errors.Is(err, refused) || stored(t, b, fmt.Sprint("failed-", i)) {
				t.Errorf("the transaction %d that refused: %v, stored %v", i, err, stored(t, b, fmt.Sprint("failed-", i)))
			}
		} else if err != nil || !stored(t, b, fmt.Sprint("e-", i)) {
			t.Errorf("the transaction %d: %v, stored %v", i, err, stored(t, b, fmt.Sprint("e-", i)))
		}
	}
	if n := b.Syncs(); n > crowd/4 {
		t.Errorf("%d syncs for a crowd of %d", n, crowd)
	}
}

// TestAPanicLeavesNothing: what panics is undone, and the next caller finds the store at work.
func TestAPanicLeavesNothing(t *testing.T) {
	b := open(t, t.TempDir(), clock.NewManual(began))
	defer b.Close()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = b.Update(bg, "panic", func(ctx context.Context, tx backend.Tx) error {
			if err := tx.Apply(ctx, &backend.Changes{NewEvents: []*backend.Event{event(1, "half", 9)}}); err != nil {
				t.Error(err)
			}
			panic("on purpose")
		})
	}()
	if err := put(bg, b, "next", 9); err != nil {
		t.Fatal(err)
	}
	if stored(t, b, "half") || !stored(t, b, "next") {
		t.Errorf("half is stored: %v, next: %v", stored(t, b, "half"), stored(t, b, "next"))
	}
}

// TestReadersSeeWhatIsCommitted: never half of a transaction, and they wait for no writer.
func TestReadersSeeWhatIsCommitted(t *testing.T) {
	b := open(t, t.TempDir(), clock.NewManual(began))
	defer b.Close()
	release := held(b, func(ctx context.Context, tx backend.Tx) error {
		return tx.Apply(ctx, &backend.Changes{NewEvents: []*backend.Event{event(1, "e", 9)}})
	})
	if stored(t, b, "e") {
		t.Error("a reader saw what was not committed")
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if !stored(t, b, "e") {
		t.Error("a reader does not see what is committed")
	}
}

// TestASecondProcessIsKeptOut names who has the directory.
func TestASecondProcessIsKeptOut(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, clock.System)
	_, err := sqlite.Open(bg, sqlite.Config{Dir: dir})
	if rendezvous.CodeOf(err) != rendezvous.CodeInvalid || !strings.Contains(err.Error(), fmt.Sprint("pid ", os.Getpid())) {
		t.Errorf("the second open: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := put(bg, b, "late", 9); rendezvous.CodeOf(err) != rendezvous.CodeUnavailable {
		t.Errorf("a call after the end: %v", err)
	}
	if err := b.View(bg, "late", func(context.Context, backend.Reader) error { return nil }); rendezvous.CodeOf(err) != rendezvous.CodeUnavailable {
		t.Errorf("a read after the end: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if err := open(t, dir, clock.System).Close(); err != nil {
		t.Fatal(err)
	}
}

// TestOpenRefuses what is not this build's store.
func TestOpenRefuses(t *testing.T) {
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "rendezvous.db"), []byte(strings.Repeat("no database, only text ", 300)), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sharded := t.TempDir()
	b, err := sqlite.Open(bg, sqlite.Config{Dir: sharded, Shards: 8})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	newer := t.TempDir()
	if err := open(t, newer, clock.System).Close(); err != nil {
		t.Fatal(err)
	}
	if err := (damage{newer}).do(step{sql: "PRAGMA user_version = 99"}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config sqlite.Config
		code   rendezvous.Code
		says   string
	}{
		"no directory":       {sqlite.Config{}, rendezvous.CodeInvalid, "names no directory"},
		"negative shards":    {sqlite.Config{Dir: t.TempDir(), Shards: -1}, rendezvous.CodeInvalid, "-1 is negative"},
		"other shards":       {sqlite.Config{Dir: sharded, Shards: 16}, rendezvous.CodeInvalid, "8 shards and 16"}, // SH-2
		"no database":        {sqlite.Config{Dir: foreign}, rendezvous.CodeCorrupt, "damaged"},
		"a file":             {sqlite.Config{Dir: file}, rendezvous.CodeUnavailable, "cannot be made"},
		"a newer schema":     {sqlite.Config{Dir: newer, Migrate: true}, rendezvous.CodeUnavailable, "version 99"},
		"too many readers":   {sqlite.Config{Dir: t.TempDir(), Readers: 5000}, rendezvous.CodeInvalid, "5000 is outside"},
		"a negative reader":  {sqlite.Config{Dir: t.TempDir(), Readers: -1}, rendezvous.CodeInvalid, "-1 is outside"},
		"shards of an empty": {sqlite.Config{Dir: t.TempDir(), Shards: 0}, "", ""},
	} {
		b, err := sqlite.Open(bg, c.config)
		if c.code == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if err := b.Close(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if rendezvous.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s saying %q", name, err, c.code, c.says)
		}
	}
}

// TestAFullStoreRefusesAndGoesOn: what does not fit is refused whole, what was acknowledged stays, and room makes it work again.
func TestAFullStoreRefusesAndGoesOn(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, clock.NewManual(began))
	defer func() { _ = b.Close() }()
	if err := b.Limit("200"); err != nil {
		t.Fatal(err)
	}
	var kept []string
	full := 0
	for i := range 60 {
		id := fmt.Sprint("e-", i)
		switch err := put(bg, b, id, 40_000); {
		case err == nil:
			kept = append(kept, id)
		case rendezvous.CodeOf(err) == rendezvous.CodeUnavailable && strings.Contains(err.Error(), "full"):
			full++
			if stored(t, b, id) {
				t.Errorf("%s was refused and is stored", id)
			}
		default:
			t.Fatalf("%s: %v", id, err)
		}
	}
	if full == 0 || len(kept) == 0 {
		t.Fatalf("%d were kept and %d refused: the test needs both", len(kept), full)
	}
	if err := b.Limit("1000000"); err != nil {
		t.Fatal(err)
	}
	if err := put(bg, b, "room", 40_000); err != nil {
		t.Fatalf("with room again: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = open(t, dir, clock.NewManual(began))
	for _, id := range append(kept, "room") {
		if !stored(t, b, id) {
			t.Errorf("%s was acknowledged and is gone", id)
		}
	}
}

// TestNumbersAreNeverGivenTwice, not even over an end without a close (I9).
func TestNumbersAreNeverGivenTwice(t *testing.T) {
	dir := t.TempDir()
	var last int64
	for range 3 {
		b := open(t, dir, clock.NewManual(began))
		for i := range 3 {
			err := b.Update(bg, "draw", func(ctx context.Context, tx backend.Tx) error {
				numbers, err := tx.NewEventNumbers(ctx, 7_000)
				if err != nil {
					return err
				}
				if numbers[0] <= last {
					t.Errorf("%d was given again", numbers[0])
				}
				last = numbers[len(numbers)-1]
				if i == 1 {
					return errors.New("undone")
				}
				return nil
			})
			if (err != nil) != (i == 1) {
				t.Fatal(err)
			}
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
