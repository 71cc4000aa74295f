package postgres_test

import (
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/postgres"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

const benchBatch = rendezvous.MaxBatchItems

// benchStore is a store on a running clock.
func benchStore(tb testing.TB, changes ...func(*postgres.Config)) (store.Store, *postgres.Backend, string) {
	tb.Helper()
	url := migrated.Database(tb)
	b := open(tb, url, changes...)
	s, err := engine.New(b, engine.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s, b, url
}

// BenchmarkStore measures the hot path.
func BenchmarkStore(b *testing.B) {
	storetest.Benchmarks(b, func(b *testing.B) backend.Backend { return open(b, migrated.Database(b)) })
}
