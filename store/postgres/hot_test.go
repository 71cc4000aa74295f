package postgres_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

// updates is how many rows of a table were updated, and how many of those updates were HOT: no index got a new entry.
type updates struct{ all, hot int64 }

// updatesOf reads a table's statistics once everything that was done is in them.
func updatesOf(tb testing.TB, url, table string) (u updates) {
	tb.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = $1", table).Scan(&u.all, &u.hot); err != nil {
		tb.Fatal(err)
	}
	return u
}

// settledUpdates reads the counts again until there are so many: a session tells its statistics when it ends, a little after its client has gone.
func settledUpdates(t *testing.T, url, table string, want int64) updates {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		u := updatesOf(t, url, table)
		if int64(u.all) >= want || time.Now().After(end) {
			return u
		}
		_ = clock.Sleep(t.Context(), clock.System, 20*time.Millisecond)
	}
}

// hotAfter runs fn on a store of its own, whose sessions end with it, so that they have told their statistics.
func hotAfter(t *testing.T, url string, fn func(s store.Store)) {
	t.Helper()
	s, err := engine.New(open(t, url), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fn(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// HI-48: an append without a lifecycle record is a HOT update of the workflow row, and touches no run row.
func TestAppendIsAHotUpdate(t *testing.T) {
	url := migrated.Database(t)
	const appends = 200
	hotAfter(t, url, func(s store.Store) {
		acme, err := s.Tenant("acme")
		if err != nil {
			t.Fatal(err)
		}
		started, err := acme.StartRun(t.Context(), store.Start{Type: "order"}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range appends {
			note := rendezvous.Record{RunID: started.RunID, Kind: rendezvous.Note, Data: rendezvous.EncodeData(rendezvous.NameData{Name: "n"})}
			if _, err := acme.Append(t.Context(), store.Append{
				RunID: started.RunID, ExpectedSeq: int64(i) + 1, Records: []rendezvous.Record{note}, BatchID: fmt.Sprint("batch-", i),
			}, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
	})
	if flows := settledUpdates(t, url, "workflows", appends); flows.all != appends || flows.hot != appends {
		t.Errorf("%d appends made %d updates of workflow rows, %d of them HOT", appends, flows.all, flows.hot)
	}
	if runs := updatesOf(t, url, "runs"); runs.all != 0 {
		t.Errorf("appends made %d updates of run rows", runs.all)
	}
}

// The issue: live to consumed at one stroke is a HOT update, in batches over neighbours, with none left over for an index on a state column to spoil.
func TestDeliveryIsAHotUpdate(t *testing.T) {
	url := migrated.Database(t)
	const events = 5000
	b := open(t, url)
	for from := 0; from < events; from += rendezvous.MaxBatchItems {
		storetest.StartRuns(t, b, "acme", from, rendezvous.MaxBatchItems)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	hotAfter(t, url, func(s store.Store) {
		storetest.RegisterAll(t, s, storetest.WaitsOf("acme", 0, events), store.RegisterWaiting)
	})
	registered := settledUpdates(t, url, "workflows", events)
	hotAfter(t, url, func(s store.Store) {
		storetest.BufferAll(t, s, storetest.EventsOf("acme", 0, events))
		storetest.OfferAll(t, s, storetest.EventsOf("acme", 0, events), store.OfferDelivered)
	})
	delivered := settledUpdates(t, url, "events", events)
	answered := settledUpdates(t, url, "workflows", 2*events)
	for what, u := range map[string]updates{
		"registrations, of workflow rows": registered,
		"answers, of workflow rows":       {answered.all - registered.all, answered.hot - registered.hot},
		"answers, of event rows":          delivered,
	} {
		t.Logf("%s: %d updates, %d HOT", what, u.all, u.hot)
		if u.all != events || u.hot < events*95/100 {
			t.Errorf("%s: %d updates, %d HOT, want %d and nearly all HOT", what, u.all, u.hot, events)
		}
	}
}
