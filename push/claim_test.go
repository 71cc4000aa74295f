package push_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
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
		ticks := newTicking(p.clock)
		w := p.pod(func(o *options) { o.Clock = ticks })
		if c.away {
			p.faults.Arm(fault.Failure{Verb: "claim_pushes", Point: fault.AtCall, Call: 1, Times: -1, Do: func(context.Context) error {
				return rendezvous.Errorf(rendezvous.CodeUnavailable, "away")
			}})
		}
		for range 5 {
			w.Pass()
			due, woke := ticks.Now().Add(c.sleep), make(chan time.Time)
			go func() {
				w.Sleep()
				woke <- ticks.Now()
			}()
			go ticks.fire(c.sleep)
			if at := <-woke; at.Before(due) {
				t.Fatalf("%s: it woke %s early", name, due.Sub(at))
			}
			if !c.away {
				break // the row is due now
			}
		}
	}
}

// PU-57: what waited for its gate is claimed when a turn leaves it, also where that was while the worker did not sleep.
func TestAPlaceThatBecameFreeIsClaimedFor(t *testing.T) {
	p := newPlane(t)
	leave := make(chan struct{})
	v := receive(t, func(int, message, *http.Request) answer {
		<-leave
		return answer{status: 204}
	})
	for _, run := range []string{"r", "s"} {
		p.start(run, hook(run, "h", v.URL))
	}
	w := p.pod(func(o *options) { o.GateInFlight = 1 })
	w.Pass() // begins a turn,
	v.await(t)
	w.Pass() // and finds the gate full
	close(leave)
	w.Wait()
	eq(t, "received", len(v.ids()), 1)
	woke := make(chan struct{})
	go func() {
		defer close(woke)
		w.Sleep()
	}()
	patient, done := clock.WithTimeout(t.Context(), clock.System, patience)
	defer done()
	select {
	case <-woke:
	case <-patient.Done():
		t.Fatal("it sleeps, and one waits")
	}
	w.Drive()
	eq(t, "received in the end", len(v.ids()), 2)
}
