package messaging

import (
	"context"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
)

// TestFilesNobodyDeletesAreWaitedForSoLong: a stream that was seen and has gone may be on its way out for long; one that was never seen was half made when a
// process was killed, and the next one is not to wait ten seconds for it.
func TestFilesNobodyDeletesAreWaitedForSoLong(t *testing.T) {
	for _, c := range []struct {
		name string
		seen bool
		want time.Duration
	}{{"never seen", false, settleFor}, {"seen", true, settleMost}} {
		t.Run(c.name, func(t *testing.T) {
			began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			hand := clock.NewManual(began)
			s := &settler{clock: hand, born: map[[2]string]time.Time{}, deleting: func(string, string) bool { return true }}
			if c.seen {
				s.found("rdv_MATCH", "", began)
			}
			done := make(chan error, 1)
			go func() { done <- s.wait(context.Background(), "rdv_MATCH", "", func() bool { return true }) }()
			for range int(c.want / settleLook) { // fewer or more, and the test does not end
				hand.Waiting(1)
				hand.Advance(settleLook)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
