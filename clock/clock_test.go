package clock_test

import (
	"strings"
	"testing"

	"github.com/rendezvous-events/rendezvous/clock"
)

// SH-15, TM-54: a step of the machine's clock moves no difference between two instants.
func TestTheSystemClockCarriesAMonotonicReading(t *testing.T) {
	if now := clock.System.Now(); !strings.Contains(now.String(), " m=") {
		t.Errorf("%s has none", now)
	}
}
