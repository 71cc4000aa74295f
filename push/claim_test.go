package push_test

import (
	"context"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// Section 4: after a claim the worker sleeps until the next row is due, and behind one that failed for a second; its own pass does not wake it.
func TestAWorkerSleepsUntilSomethingIsDue(t *testing.T) {
	for name, c := range map[string]struct {
		away  bool
		sleep time.Duration
	}{"a row is due in 3 s": {false, 3 * time.Second}, "the store is away": {true, time.Second}} {
		p := newPlane(t)
		v := receive(t, nil)
		p.start("r", hook("r", "h", v.URL))
		must(t, p.tenant.RetryPush(t.Context(), p.get("r", "h").Key(), 0, p.clock.Now().Add(3*time.Second), "the receiver answered 500"))
		w := p.pod()
		if c.away {
			p.faults.Arm(fault.Failure{Verb: "claim_pushes", Point: fault.AtCall, Call: 1, Times: -1, Do: func(context.Context) error {
				return rendezvous.Errorf(rendezvous.CodeUnavailable, "away")
			}})
		}
		for range 5 {
			w.Pass()
			due, woke := p.clock.Now().Add(c.sleep), make(chan time.Time)
			go func() {
				w.Sleep()
				woke <- p.clock.Now()
			}()
			go func() {
				p.clock.Waiting(1)
				p.clock.Advance(c.sleep)
			}()
			if at := <-woke; at.Before(due) {
				t.Fatalf("%s: it woke %s early", name, due.Sub(at))
			}
			if !c.away {
				break // the row is due now
			}
		}
	}
}
