package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"

	zombie "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/engine"
)

// sights is what a reader answers of an event: by its key, by its number where that is known, and under each of its keys.
func sights(ctx context.Context, r backend.Reader, e *backend.Event) ([]*backend.Event, error) {
	by, err := r.EventsByKey(ctx, []backend.EventKey{e.Key()}, false)
	if err != nil {
		return nil, err
	}
	seen := []*backend.Event{by[e.Key()]}
	for _, k := range e.MatchKeys() {
		under, err := r.LiveEvents(ctx, []backend.Lookup{{Tenant: e.Tenant, Type: e.Type, Key: k, Limit: 10}})
		if err != nil {
			return nil, err
		}
		seen = append(seen, under[0]...)
	}
	return seen, nil
}

// seen is what the writer sees of an event, and what is stored.
func seen(t *testing.T, b backend.Backend, e *backend.Event) (writer, stored []*backend.Event) {
	t.Helper()
	err := errors.Join(
		b.Update(bg, "look", func(ctx context.Context, tx backend.Tx) (err error) { writer, err = sights(ctx, tx, e); return err }),
		b.View(bg, "look", func(ctx context.Context, r backend.Reader) (err error) { stored, err = sights(ctx, r, e); return err }),
	)
	if err != nil {
		t.Fatal(err)
	}
	return writer, stored
}

// agree fails the test unless the writer sees what is stored.
func agree(t *testing.T, b backend.Backend, e *backend.Event) []*backend.Event {
	t.Helper()
	writer, stored := seen(t, b, e)
	if !reflect.DeepEqual(writer, stored) {
		for i := range max(len(writer), len(stored)) {
			t.Logf("the writer sees %+v", writer[min(i, len(writer)-1)])
			t.Logf("stored is       %+v", stored[min(i, len(stored)-1)])
		}
		t.Fatalf("of %s the writer sees something else than is stored", e.ID)
	}
	return stored
}

func change(t *testing.T, b backend.Backend, c *backend.Changes) {
	t.Helper()
	if err := b.Update(bg, "change", func(ctx context.Context, tx backend.Tx) error { return tx.Apply(ctx, c) }); err != nil {
		t.Fatal(err)
	}
}

// TestWhatTheWriterRemembersIsWhatIsStored: of events that have just come, whatever they have.
func TestWhatTheWriterRemembersIsWhatIsStored(t *testing.T) {
	b := open(t, t.TempDir(), clock.NewManual(began))
	defer b.Close()
	events := make([]*backend.Event, 7)
	for i := range events {
		events[i] = event(int64(i+1), fmt.Sprint("e", i), 10*i)
	}
	events[1].Payload, events[1].ContentType = nil, ""
	events[2].Keys = append(events[2].Keys, rendezvous.Key{Namespace: "é", Value: "%"})
	events[3].Keys = nil
	events[4].Target, events[4].Keys = "run-1", nil
	events[5].ExpiresAt, events[5].Minted = began.Add(time.Hour+1500*time.Nanosecond), &rendezvous.Operator{Actor: "ann", Basis: rendezvous.BasisAsserted}
	events[6].ReceivedAt, events[6].Trace = began.Add(-time.Minute).In(time.FixedZone("x", 3600)), rendezvous.Trace{Parent: "p", State: "s"}
	change(t, b, &backend.Changes{NewEvents: events})
	for _, e := range events {
		if got := agree(t, b, e); got[0] == nil || len(got) < 2 {
			t.Fatalf("%s is not stored and live", e.ID)
		}
	}
}

// TestWhatIsNotTrueAnyMoreIsNotRemembered: a changed row, an undone transaction, a commit by another process, and more events than are remembered.
func TestWhatIsNotTrueAnyMoreIsNotRemembered(t *testing.T) {
	dir := t.TempDir()
	b := open(t, dir, clock.NewManual(began))
	defer b.Close()

	e := event(1, "changed", 10)
	change(t, b, &backend.Changes{NewEvents: []*backend.Event{e}})
	row, _ := seen(t, b, e)
	row[0].State, row[0].DeadReason, row[0].DeadAt = rendezvous.EventDead, rendezvous.DeadUnclaimed, began
	change(t, b, &backend.Changes{Events: row[:1]})
	if got := agree(t, b, e); len(got) != 1 || got[0].State != rendezvous.EventDead {
		t.Errorf("a changed event is %+v", got)
	}

	undone, kept := event(2, "undone", 10), event(3, "kept", 10)
	release := held(b, func(ctx context.Context, tx backend.Tx) error {
		return tx.Apply(ctx, &backend.Changes{NewEvents: []*backend.Event{kept}})
	})
	refused := errors.New("refused")
	failed := make(chan error, 1)
	go func() { // it joins the group of the other
		failed <- b.Update(bg, "undone", func(ctx context.Context, tx backend.Tx) error {
			return errors.Join(tx.Apply(ctx, &backend.Changes{NewEvents: []*backend.Event{undone}}), refused)
		})
	}()
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, refused) {
		t.Fatal(err)
	}
	if got := agree(t, b, undone); got[0] != nil || len(got) != 1 {
		t.Errorf("an undone event is %+v", got)
	}
	agree(t, b, kept)

	touched := event(4, "touched", 10)
	change(t, b, &backend.Changes{NewEvents: []*backend.Event{touched}})
	agree(t, b, touched)
	conn, err := zombie.OpenConn(filepath.Join(dir, "rendezvous.db"), zombie.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := sqlitex.ExecuteTransient(conn, `UPDATE events SET trace_state = 'by hand' WHERE number = 4`, nil); err != nil {
		t.Fatal(err)
	}
	if got := agree(t, b, touched); got[0].Trace.State != "by hand" {
		t.Errorf("an event that another process changed is %+v", got[0])
	}

	first := event(100, "first", 0)
	change(t, b, &backend.Changes{NewEvents: []*backend.Event{first}})
	for n := int64(101); n < 21_200; n += 500 {
		var many []*backend.Event
		for i := range int64(500) {
			many = append(many, event(n+i, fmt.Sprint(n+i), 0))
		}
		change(t, b, &backend.Changes{NewEvents: many})
		agree(t, b, many[0])
	}
	if n := b.Remembered(); n < 1 || n > 20_000 {
		t.Errorf("%d events are remembered of 21,000", n)
	}
	agree(t, b, first)
}

// TestWhatIsRememberedKeepsNoPayloads alive: an event of a batch may point into what came with it.
func TestWhatIsRememberedKeepsNoPayloads(t *testing.T) {
	b := open(t, t.TempDir(), clock.NewManual(began))
	s, err := engine.New(b, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range 10 {
		items := make([]store.BufferItem, 50)
		for j := range items {
			id := fmt.Sprintf("e-%d-%d", i, j)
			items[j] = store.BufferItem{Tenant: "acme", Event: rendezvous.Event{
				EventID: rendezvous.EventID{Source: "shop", ID: id}, Type: "paid", Keys: []rendezvous.Key{{Namespace: "order", Value: id}},
				ContentType: "text/plain", Payload: make([]byte, 100_000),
			}}
		}
		if _, err := s.BufferBatch(bg, items, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	grown := heap() - before
	if n := int64(b.Remembered()); n == 0 || grown/n > 20_000 {
		t.Errorf("%d events are remembered, and the heap grew by %d bytes", n, grown)
	}
}

// TestWhatIsRememberedIsBoundedInBytes, whatever the events have: keys and names as long as they may be.
func TestWhatIsRememberedIsBoundedInBytes(t *testing.T) {
	b := open(t, t.TempDir(), clock.NewManual(began))
	defer b.Close()
	for n := int64(1); n <= 5_000; n += 500 {
		var many []*backend.Event
		for i := range int64(500) {
			e := event(n+i, fmt.Sprintf("%0512d", n+i), 0)
			e.Keys = nil
			for k := range rendezvous.MaxKeys {
				e.Keys = append(e.Keys, rendezvous.Key{Namespace: fmt.Sprintf("%0256d", k), Value: fmt.Sprintf("%0256d", n+i)})
			}
			many = append(many, e)
		}
		change(t, b, &backend.Changes{NewEvents: many})
	}
	if n := b.Remembered(); n == 0 || n > 4_000 { // of about 10 KiB each
		t.Errorf("%d events are remembered", n)
	}
}

// TestRandomGroups: first ones and later ones of groups that are refused, panic or meet a full database, deaths of events that have just come; after each group
// the writer sees what is stored.
func TestRandomGroups(t *testing.T) {
	b := open(t, t.TempDir(), clock.NewManual(began))
	defer b.Close()
	rng := rand.New(rand.NewPCG(1, 2))
	refused := errors.New("refused")
	var all []*backend.Event
	remembered := 0
	come := func() *backend.Event {
		n := int64(len(all) + 1)
		all = append(all, event(n, fmt.Sprint("e", n), rng.IntN(2)*50_000))
		return all[n-1]
	}
	for round := range 250 {
		if round%5 == 4 {
			_ = b.Limit("1") // as large as it is: full at once
		}
		first, bad := come(), rng.IntN(2) == 0
		release := held(b, func(ctx context.Context, tx backend.Tx) error {
			err := tx.Apply(ctx, &backend.Changes{NewEvents: []*backend.Event{first}})
			if bad {
				return errors.Join(err, refused)
			}
			return err
		})
		var others sync.WaitGroup
		for range 4 {
			old, e, kind := all[rng.IntN(len(all))], come(), rng.IntN(5)
			others.Go(func() {
				defer func() { _ = recover() }()
				_ = b.Update(bg, "other", func(ctx context.Context, tx backend.Tx) error {
					c := &backend.Changes{NewEvents: []*backend.Event{e}}
					by, err := tx.EventsByKey(ctx, []backend.EventKey{old.Key()}, false)
					if o := by[old.Key()]; err == nil && o != nil && o.Live() && kind >= 2 {
						o.State, o.DeadReason, o.DeadAt = rendezvous.EventDead, rendezvous.DeadUnclaimed, began
						c.Events = append(c.Events, o)
					}
					if err := errors.Join(err, tx.Apply(ctx, c)); err != nil {
						return err
					}
					switch kind {
					case 1, 3:
						return refused
					case 4:
						panic("a verb's mistake")
					}
					return nil
				})
			})
		}
		_ = release()
		others.Wait()
		if err := b.Limit("1000000"); err != nil {
			t.Fatal(err)
		}
		remembered += b.Remembered()
		for range 8 {
			agree(t, b, all[len(all)-1-rng.IntN(min(len(all), 40))])
		}
	}
	for _, e := range all {
		agree(t, b, e)
	}
	if remembered == 0 {
		t.Error("nothing was ever remembered")
	}
}
