package engine_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// parkLarge registers a wait under the lease and offers it an event with a payload of that many bytes.
func (w *world) parkLarge(run string, epoch int64, effect string, size int) {
	w.Helper()
	keys := []rendezvous.Key{{Namespace: "order", Value: run + "/" + effect}}
	_, err := w.t.RegisterWait(w.ctx, store.Registration{
		Wait: rendezvous.Wait{WaitID: rendezvous.WaitID{RunID: run, Effect: effect}, Type: "paid", Keys: keys}, Epoch: epoch,
	}, time.Time{})
	w.must(err)
	id := rendezvous.EventID{Source: "shop", ID: run + "/" + effect}
	_, err = w.t.Buffer(w.ctx, rendezvous.Event{EventID: id, Type: "paid", Keys: keys, Payload: bytes.Repeat([]byte("x"), size)}, time.Time{})
	w.must(err)
	_, err = w.s.OfferBatch(w.ctx, []store.OfferItem{{Tenant: "default", Event: &id}}, time.Time{})
	w.must(err)
}

// TestSuspendShowsMuchNewsInPages proves RN-34 for what does not fit one answer: nothing is skipped, and the lease stays until all was shown.
func TestSuspendShowsMuchNewsInPages(t *testing.T) {
	w := newWorld(t)
	w.start("r")
	l := w.acquire("r", "a")
	const answers = 20 // of 1 MiB: more than one call records, and far more than one answer shows
	for i := range answers {
		w.parkLarge("r", l.Epoch, fmt.Sprintf("e%02d", i), rendezvous.MaxPayload)
	}
	seen, shown, calls := int64(1+answers), 0, 0
	for {
		calls++
		got := w.suspend("r", l.Epoch, seen)
		if got.Outcome == store.SuspendSuspended {
			break
		}
		if got.Outcome != store.SuspendContinue || len(got.Records) == 0 {
			t.Fatalf("call %d: %s with %d records", calls, got.Outcome, len(got.Records))
		}
		for _, r := range got.Records {
			if seen++; r.Seq != seen || len(r.Payload) != rendezvous.MaxPayload || r.Effect != fmt.Sprintf("e%02d", shown) {
				t.Fatalf("call %d shows seq %d of %s with %d bytes, want seq %d, whole", calls, r.Seq, r.Effect, len(r.Payload), seen)
			}
			shown++
		}
		if got.More != (shown < answers) {
			t.Fatalf("call %d: more is %v after %d of %d answers", calls, got.More, shown, answers)
		}
	}
	if shown != answers {
		t.Fatalf("%d answers were shown, want %d", shown, answers)
	}
}

// TestAnEventOfferedWhileItsRunSuspendsIsSeenOnce walks RN-33 on this backend: Continue with the answer, or a suspended run that is woken with it.
func TestAnEventOfferedWhileItsRunSuspendsIsSeenOnce(t *testing.T) {
	w := newWorld(t)
	for round := range 1000 {
		run := fmt.Sprint("r", round)
		w.start(run)
		l := w.acquire(run, "a")
		keys := []rendezvous.Key{{Namespace: "order", Value: run}}
		reg, err := w.t.RegisterWait(w.ctx, store.Registration{
			Wait: rendezvous.Wait{WaitID: rendezvous.WaitID{RunID: run, Effect: "e"}, Type: "paid", Keys: keys}, Epoch: l.Epoch,
		}, time.Time{})
		w.must(err)
		id := rendezvous.EventID{Source: "shop", ID: run}
		_, err = w.t.Buffer(w.ctx, rendezvous.Event{EventID: id, Type: "paid", Keys: keys}, time.Time{})
		w.must(err)
		var suspended store.Suspended
		var offered store.Offered
		var errs [2]error
		var both sync.WaitGroup
		both.Go(func() { suspended, errs[0] = w.t.Suspend(w.ctx, run, l.Epoch, reg.Seq, false) })
		both.Go(func() {
			offered, errs[1] = w.s.OfferBatch(w.ctx, []store.OfferItem{{Tenant: "default", Event: &id}}, time.Time{})
		})
		both.Wait()
		w.must(errs[0])
		w.must(errs[1])
		told := suspended.Outcome == store.SuspendContinue && len(suspended.Records) == 1
		woken := suspended.Outcome == store.SuspendSuspended && offered.Items[0].Outcome == store.OfferDelivered && offered.Items[0].Resume
		if told == woken {
			t.Fatalf("round %d: suspend came to %+v, the offer to %+v", round, suspended, offered.Items[0])
		}
	}
}
