package sweep_test

import (
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/sweep"
)

// SW-19, I11: with every notice lost from the beginning, the passes alone answer what can be answered and call for every run with news, each once.
func TestWithoutAnyNoticeEverythingIsCompleted(t *testing.T) {
	p := newPlane(t)
	apart, parked, dead := runs("apart", 50), runs("parked", 50), runs("dead", 50)
	for _, run := range apart {
		p.start(run)
		p.await(run, 0)
		p.buffer(run)
	}
	for _, run := range parked {
		p.park(run)
	}
	for _, run := range dead { // their drivers died with mail
		p.start(run)
		p.await(run, p.lease(run, 5*time.Second))
		p.buffer(run)
		p.claim(run)
	}
	all := append(append(apart, parked...), dead...)
	p.sender.take()
	called := map[string]bool{}
	w := p.sweep(nil, sweep.Config{})
	for range 4 { // grace, lease and an interval of woken are over then
		w.tick(5 * time.Second)
		for _, r := range p.sender.take().Resume {
			called[r.RunID] = true
		}
	}
	for _, run := range all {
		if s, n := p.state(run), p.answers(run); s != rendezvous.EventConsumed || n != 1 || !called[run] {
			t.Fatalf("%s: event %s, %d answers, called for: %t", run, s, n, called[run])
		}
	}
}

// SW-20: a MATCH notice that is lost after a buffering, a registration, a release, a requeue or an erasure: event and wait meet within the grace and one tick.
func TestALostNoticeOfAnyOriginIsMadeGood(t *testing.T) {
	wait := func(run string) rendezvous.WaitID { return rendezvous.WaitID{RunID: run, Effect: "e"} }
	for name, lose := range map[string]func(p *plane){
		"buffer": func(p *plane) {
			p.await("run-1", 0)
			p.buffer("run-1")
		},
		"registration": func(p *plane) { // whoever registered died before it looked
			p.buffer("run-1")
			_, err := p.tenant.Subscribe(p.t.Context(), store.Registration{Wait: rendezvous.Wait{
				WaitID: wait("run-1"), Type: "t", Keys: []rendezvous.Key{{Namespace: "k", Value: "run-1"}},
			}}, time.Time{})
			must(p.t, err)
		},
		"release": func(p *plane) { // an older wait gives its event back
			p.start("run-0")
			r, err := p.tenant.RegisterWait(p.t.Context(), store.Registration{Wait: rendezvous.Wait{
				WaitID: wait("run-0"), Type: "t", Keys: []rendezvous.Key{{Namespace: "k", Value: "run-1"}},
			}}, time.Time{})
			must(p.t, err)
			if r.Outcome != store.RegisterWaiting {
				p.t.Fatalf("registered %+v", r)
			}
			p.await("run-1", 0)
			p.buffer("run-1")
			epoch := p.lease("run-0", time.Hour)
			p.claim("run-1")
			_, err = p.tenant.Unsubscribe(p.t.Context(), wait("run-0"), epoch, "", time.Time{})
			must(p.t, err)
		},
		"requeue": func(p *plane) { // its notice is lost, and so is the one of the registration
			p.buffer("run-1")
			p.clock.Advance(2 * time.Hour)
			_, err := p.store.SweepUnclaimed(p.t.Context(), p.clock.Now(), time.Time{}, "", 0)
			must(p.t, err)
			p.await("run-1", 0)
			_, err = p.tenant.RequeueDeadLetters(p.t.Context(), store.Selection{Events: []rendezvous.EventID{eventID("run-1")}}, store.Requeue{},
				rendezvous.Operator{Actor: "ann", Basis: rendezvous.BasisAsserted}, "op-1", time.Time{})
			must(p.t, err)
		},
		"erasure": func(p *plane) { // its event goes, and another one is there
			epoch := p.lease("run-1", time.Hour)
			p.await("run-1", epoch)
			_, err := p.tenant.Buffer(p.t.Context(), rendezvous.Event{
				EventID: eventID("erased"), Type: "t", Keys: []rendezvous.Key{{Namespace: "k", Value: "run-1"}}, Payload: []byte("1"),
			}, time.Time{})
			must(p.t, err)
			p.claim("erased")
			p.buffer("run-1")
			_, err = p.tenant.ErasePayload(p.t.Context(), eventID("erased"), nil, time.Time{})
			must(p.t, err)
			_, err = p.tenant.ReleaseLease(p.t.Context(), "run-1", epoch)
			must(p.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t)
			p.start("run-1")
			lose(p)
			if s := p.state("run-1"); s != rendezvous.EventLive {
				t.Fatalf("before the sweeper the event is %s", s)
			}
			w := p.sweep(nil, sweep.Config{})
			w.tick(0)
			w.tick(2*time.Second + 5*time.Second)
			if s, n := p.state("run-1"), p.answers("run-1"); s != rendezvous.EventConsumed || n != 1 {
				t.Errorf("the event is %s, %d answers", s, n)
			}
		})
	}
}
