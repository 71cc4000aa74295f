package postgres_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/backendtest"
	"github.com/rendezvous-events/rendezvous/store/postgres"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

// stores lends empty stores, their clocks standing still, to one case after the other: making a database, connecting and preparing statements cost more
// than most cases do.
type stores struct {
	tb   testing.TB // the stores live as long
	mu   sync.Mutex
	free []*lent
}

// lent is a store on loan: a case that closes it gives it back.
type lent struct {
	*postgres.Backend
	url   string
	spent atomic.Bool // fit for no other case
}

// Close implements [backend.Backend].
func (*lent) Close() error { return nil }

func (s *stores) lend(t *testing.T) *lent {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var l *lent
	if n := len(s.free); n > 0 {
		l, s.free = s.free[n-1], s.free[:n-1]
	} else {
		url := stopped.Database(s.tb)
		l = &lent{Backend: open(t, url), url: url}
		s.tb.Cleanup(func() { _ = l.Backend.Close() })
	}
	t.Cleanup(func() {
		if l.spent.Load() || t.Failed() {
			return
		}
		execute(t, l.url, "DELETE FROM push_log; DELETE FROM push_registrations; DELETE FROM members; DELETE FROM shard_leases; DELETE FROM timers; DELETE FROM woken; DELETE FROM wait_keys; DELETE FROM waits; DELETE FROM event_keys; DELETE FROM dead_keys; DELETE FROM events;"+
			"DELETE FROM batches; DELETE FROM history; DELETE FROM runs; DELETE FROM workflows")
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free = append(s.free, l)
	})
	return l
}

// TestBackend asks postgres what store/engine relies on.
func TestBackend(t *testing.T) {
	t.Parallel()
	s := &stores{tb: t}
	backendtest.Run(t, func(t *testing.T) (backend.Backend, func(time.Duration)) {
		url := s.lend(t).url
		return open(t, url), advancer(t, url) // one of its own, which the case really closes
	})
}

// R9: a timer whose row does not decode keeps its place, and can be put off.
func TestCorruptTimer(t *testing.T) {
	t.Parallel()
	url := stopped.Database(t)
	b := open(t, url)
	defer b.Close()
	backendtest.CorruptTimer(t, b, damage{url, new(atomic.Bool)}.Timer)
}

func (s *stores) harness(t *testing.T, o storetest.Options) *storetest.Harness {
	t.Helper()
	l := s.lend(t)
	o.Advance, o.Damage = advancer(t, l.url), damage{l.url, &l.spent}
	o.Reopen = func(t *testing.T) backend.Backend {
		l.spent.Store(true)
		if err := l.Backend.Close(); err != nil {
			t.Fatal(err)
		}
		return open(t, l.url)
	}
	return storetest.Assemble(t, l, o)
}

// TestBattery proves the contract on postgres.
func TestBattery(t *testing.T) {
	t.Parallel() // most of its time is waiting for the disk
	s := &stores{tb: t}
	storetest.Run(t, func(t *testing.T) *storetest.Harness { return s.harness(t, storetest.Options{}) })
}
