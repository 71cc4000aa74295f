package storetest

import (
	"testing"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/backendtest"
)

func TestCountingForwards(t *testing.T) {
	backendtest.Forwards(t, func(b backend.Backend) backend.Backend { return Count(b) })
}
