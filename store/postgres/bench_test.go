package postgres_test

import (
	"testing"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

// BenchmarkStore measures the hot path.
func BenchmarkStore(b *testing.B) {
	storetest.Benchmarks(b, func(b *testing.B) backend.Backend { return open(b, migrated.Database(b)) })
}
