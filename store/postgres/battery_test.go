package postgres_test

import (
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/backendtest"
)

// TestBackend asks postgres what store/engine relies on.
func TestBackend(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) (backend.Backend, func(time.Duration)) {
		url := stopped.Database(t)
		return open(t, url), advancer(t, url)
	})
}
