package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	zombie "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/backend"
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
