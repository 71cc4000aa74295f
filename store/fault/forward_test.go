package fault_test

import (
	"testing"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/backendtest"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// TestForwards: what no failure strikes is as if it were not there (SH-27).
func TestForwards(t *testing.T) {
	backendtest.Forwards(t, func(b backend.Backend) backend.Backend { return fault.Wrap(b) })
}
