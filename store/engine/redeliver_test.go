package engine_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

func ref(run, effect string) store.WaitRef {
	return store.WaitRef{Tenant: "default", WaitID: rendezvous.WaitID{RunID: run, Effect: effect}}
}

func (w *world) redeliver(refs ...store.WaitRef) []store.Offer {
	w.Helper()
	o, err := w.s.DeliverParked(w.ctx, refs, time.Time{})
	w.must(err)
	return o.Items
}

func (w *world) stored(id string) store.StoredEvent {
	w.Helper()
	e, err := w.t.LookupEvent(w.ctx, rendezvous.EventID{Source: "shop", ID: id}, true)
	w.must(err)
	return e
}

// TestACorruptPairFailsAlone: among three parked waits the one whose event does not decode fails, counts up to quarantine, and the others are recorded;
// neither Collect nor DeliverParked is stopped by it (RN-34, EV-60, EV-62).
func TestACorruptPairFailsAlone(t *testing.T) {
	w, damage := newDamagedWorld(t)
	w.start("r")
	epoch := w.acquire("r", "a").Epoch
	for _, effect := range []string{"one", "two", "three"} {
		w.park("r", epoch, effect)
	}
	w.must(damage.Event("default", rendezvous.EventID{Source: "shop", ID: "r/two"}))
	got, err := w.t.Collect(w.ctx, "r", epoch)
	w.must(err)
	if len(got.Records) != 2 || got.More || string(got.Records[0].Payload) != "for one" || string(got.Records[1].Payload) != "for three" {
		t.Fatalf("collected %+v, want the answers of one and three", got)
	}
	if _, err := w.t.ReleaseLease(w.ctx, "r", epoch); err != nil { // counts a second attempt
		t.Fatal(err)
	}
	for n := 3; n <= rendezvous.QuarantineAfter; n++ {
		o := w.redeliver(ref("r", "two"))[0]
		if o.Outcome != store.OfferFailed || o.Err == nil || o.Quarantined != (n == rendezvous.QuarantineAfter) {
			t.Fatalf("attempt %d came to %+v, want failed", n, o)
		}
	}
	if o := w.redeliver(ref("r", "two"))[0]; o.Outcome != store.OfferQuarantined {
		t.Fatalf("after %d failures: %+v, want quarantined", rendezvous.QuarantineAfter, o)
	}
	page, err := w.t.QuarantinedWaits(w.ctx, 0, "")
	w.must(err)
	if len(page.Waits) != 1 || page.Waits[0].Attempts != rendezvous.QuarantineAfter || page.Waits[0].LastError == "" {
		t.Fatalf("quarantined %+v, want the one wait with its attempts and error", page)
	}
}

// TestCollectKeepsItsBounds: 100 answers, or 16 MiB of payload, and the next call takes the rest (RN-34).
func TestCollectKeepsItsBounds(t *testing.T) {
	for name, c := range map[string]struct{ waits, payload, first int }{
		"answers": {rendezvous.MaxCollect + 3, 1, rendezvous.MaxCollect},
		"bytes":   {20, rendezvous.MaxPayload, 16},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.start("r")
			epoch := w.acquire("r", "a").Epoch
			items := make([]store.DeliverItem, c.waits)
			for i := range items {
				effect := fmt.Sprintf("w%03d", i)
				_, err := w.t.RegisterWait(w.ctx, store.Registration{
					Wait: rendezvous.Wait{WaitID: rendezvous.WaitID{RunID: "r", Effect: effect}, Type: effect}, Epoch: epoch,
				}, time.Time{})
				w.must(err)
				items[i] = store.DeliverItem{Tenant: "default", RunID: "r", Event: rendezvous.Event{
					EventID: rendezvous.EventID{Source: "shop", ID: effect}, Type: effect, Payload: bytes.Repeat([]byte{byte(i)}, c.payload),
				}}
			}
			out, err := w.s.DeliverToBatch(w.ctx, items, time.Time{})
			w.must(err)
			for i, d := range out {
				if d.Outcome != store.DeliveryMatched {
					t.Fatalf("item %d: %+v", i, d)
				}
			}
			seen := 0
			for _, want := range []int{c.first, c.waits - c.first, 0} {
				got, err := w.t.Collect(w.ctx, "r", epoch)
				w.must(err)
				if len(got.Records) != want || got.More != (seen == 0) {
					t.Fatalf("collected %d records, more %v; want %d", len(got.Records), got.More, want)
				}
				for _, r := range got.Records {
					if want := bytes.Repeat([]byte{byte(seen)}, c.payload); r.Effect != fmt.Sprintf("w%03d", seen) || !bytes.Equal(r.Payload, want) {
						t.Fatalf("record %d answers %s with %d bytes", seen, r.Effect, len(r.Payload))
					}
					seen++
				}
			}
		})
	}
}

// TestALostWorkerIsCounted: a take that runs out unsettled is a failed attempt; the sixteenth quarantines the wait instead of handing it out, and an
// operator makes it due again (EV-62, EV-86).
func TestALostWorkerIsCounted(t *testing.T) {
	w := newWorld(t)
	w.start("r")
	epoch := w.acquire("r", "a").Epoch
	w.park("r", epoch, "one")
	if got, err := w.s.TakeParked(w.ctx, 0, 0); err != nil || len(got.Rows) != 0 {
		t.Fatalf("taken under a lease: %+v, %v", got, err)
	}
	w.clock.Advance(11 * time.Second) // the lease is over
	var first int64
	for n := range rendezvous.QuarantineAfter {
		got, err := w.s.TakeParked(w.ctx, 0, time.Second)
		w.must(err)
		if len(got.Rows) != 1 || got.Rows[0].Attempts != n {
			t.Fatalf("take %d: %+v", n, got)
		}
		if first == 0 {
			first = got.Rows[0].Take
		}
		if again, err := w.s.TakeParked(w.ctx, 0, time.Second); err != nil || len(again.Rows) != 0 {
			t.Fatalf("taken twice: %+v, %v", again, err)
		}
		w.clock.Advance(time.Second)
	}
	if got, err := w.s.TakeParked(w.ctx, 0, time.Second); err != nil || len(got.Rows) != 0 {
		t.Fatalf("the last take: %+v, %v; want quarantine", got, err)
	}
	late, err := w.s.ParkWait(w.ctx, []store.ParkItem{{Tenant: "default", WaitID: ref("r", "one").WaitID, Cause: store.ParkFailed, Take: first}}, time.Time{})
	w.must(err)
	w.want("the first take's parking", late[0].Err, rendezvous.ErrFenced)
	for _, want := range []bool{true, false} {
		if got, err := w.t.RetryWait(w.ctx, ref("r", "one").WaitID, nil); err != nil || got != want {
			t.Fatalf("retry: %v, %v; want %v", got, err, want)
		}
	}
	if o := w.redeliver(ref("r", "one"))[0]; o.Outcome != store.OfferDelivered {
		t.Fatalf("after the retry: %+v", o)
	}
}

// TestALostRowIsRestoredByParking: the row of a wait goes while a claim names it; parking makes it anew from the history, and the answer is recorded.
func TestALostRowIsRestoredByParking(t *testing.T) {
	w, damage := newDamagedWorld(t)
	w.start("r")
	epoch := w.acquire("r", "a").Epoch
	w.park("r", epoch, "one")
	w.must(damage.LoseWait("default", ref("r", "one").WaitID))
	if o := w.redeliver(ref("r", "one"))[0]; o.Outcome != store.OfferNothingHeld {
		t.Fatalf("without its row: %+v, want nothing held", o)
	}
	parked, err := w.s.ParkWait(w.ctx, []store.ParkItem{
		{Tenant: "default", WaitID: ref("r", "one").WaitID, Cause: store.ParkLeased, RetryIn: time.Second},
		{Tenant: "default", WaitID: ref("r", "never").WaitID, Cause: store.ParkLeased},
	}, time.Time{})
	w.must(err)
	if parked[0].Outcome != store.ParkedParked || parked[1].Outcome != store.ParkedNothingHeld {
		t.Fatalf("parked %+v", parked)
	}
	got, err := w.t.Collect(w.ctx, "r", epoch)
	w.must(err)
	if len(got.Records) != 1 || string(got.Records[0].Payload) != "for one" {
		t.Fatalf("collected %+v", got)
	}
}

// TestARestoredRowOfASealedRunIsReleased: a backup brings back the parked wait of a concluded run. Listing parked waits lets its event go, whole, and
// shows nothing (SW-18).
func TestARestoredRowOfASealedRunIsReleased(t *testing.T) {
	w, damage := newDamagedWorld(t)
	w.start("r")
	w.start("other")
	epoch := w.acquire("r", "a").Epoch
	w.park("r", epoch, "one")
	restore, err := damage.Keep("default", ref("r", "one").WaitID)
	w.must(err)
	_, err = w.t.Conclude(w.ctx, store.Conclusion{RunID: "r", Epoch: epoch, ExpectedSeq: 2, BatchID: "end", Outcome: rendezvous.StatusCompleted}, time.Time{})
	w.must(err)
	w.must(restore())
	w.park("other", w.acquire("other", "a").Epoch, "one")
	page, err := w.t.ParkedWaits(w.ctx, store.WaitFilter{}, 1, "")
	w.must(err)
	if len(page.Released) != 1 || page.Released[0].ID != "r/one" || len(page.Waits) != 1 || page.Waits[0].RunID != "other" || page.NextCursor != "" {
		t.Fatalf("page %+v, want the event released and the other run's wait alone", page)
	}
	if len(page.Notices.Events) != 1 {
		t.Fatalf("notices %+v, want the released event", page.Notices)
	}
	if e := w.stored("r/one"); e.State != rendezvous.EventLive || string(e.Payload) != "for one" {
		t.Fatalf("the event is %+v, want live and whole", e)
	}
}

// TestABatchEndsWhatItTouched: the batch that ends a run also registers a wait, which never gets a row, and withdraws another, which is not retired a
// second time (RN-43).
func TestABatchEndsWhatItTouched(t *testing.T) {
	w := newWorld(t)
	w.start("r")
	epoch := w.acquire("r", "a").Epoch
	w.park("r", epoch, "held")
	w.park("r", epoch, "withdrawn")
	wait := rendezvous.EncodeData(rendezvous.WaitRegisteredData{Type: "later", Keys: []rendezvous.Key{{Namespace: "k", Value: "v"}}})
	out, err := w.t.Append(w.ctx, store.Append{RunID: "r", Epoch: epoch, ExpectedSeq: 3, BatchID: "end", Records: []rendezvous.Record{
		{RunID: "r", Kind: rendezvous.WaitRegistered, Effect: "new", Data: wait},
		{RunID: "r", Kind: rendezvous.WaitWithdrawn, Effect: "withdrawn"},
		{RunID: "r", Kind: rendezvous.RunCompleted},
	}}, time.Time{})
	w.must(err)
	if out.Head != 6 {
		t.Fatalf("landed at %+v, want head 6", out)
	}
	page, err := w.t.Waiting(w.ctx, store.WaitFilter{}, 0, "")
	w.must(err)
	if len(page.Waits) != 0 {
		t.Fatalf("left %+v, want no wait", page.Waits)
	}
	retired, _, err := w.t.UnsubscribeRun(w.ctx, "r", 0, nil, time.Time{})
	w.must(err)
	if retired.Waits != 1 || len(retired.Released) != 1 || retired.Released[0].ID != "r/held" {
		t.Fatalf("kept %+v, want the held wait and its event", retired)
	}
	for _, id := range []string{"r/held", "r/withdrawn"} {
		if e := w.stored(id); e.State != rendezvous.EventLive || len(e.Payload) == 0 {
			t.Fatalf("%s is %+v, want live and whole", id, e)
		}
	}
}

// TestARestoredRowOfAnAnsweredWaitIsSettled: a backup brings back the parked wait, and its claimed event, whose answer is in the history. Whichever verb
// meets it first finds that answer, records no second one, and the event is consumed as it was (I6).
func TestARestoredRowOfAnAnsweredWaitIsSettled(t *testing.T) {
	for name, meet := range map[string]func(w *world, epoch int64){
		"DeliverParked": func(w *world, _ int64) {
			w.clock.Advance(time.Minute)
			if o := w.redeliver(ref("r", "one"))[0]; o.Outcome != store.OfferAlreadyDelivered || o.Seq != 3 {
				w.Fatalf("redelivered as %+v, want already delivered at 3", o)
			}
		},
		"Collect": func(w *world, epoch int64) {
			if got, err := w.t.Collect(w.ctx, "r", epoch); err != nil || len(got.Records) != 0 || got.Head != 3 {
				w.Fatalf("collected %+v, %v; want nothing new", got, err)
			}
		},
		"Unsubscribe": func(w *world, epoch int64) {
			got, err := w.t.Unsubscribe(w.ctx, ref("r", "one").WaitID, epoch, "", time.Time{})
			if err != nil || got.Outcome != store.WithdrawAnswered || got.Seq != 3 || got.Released != nil {
				w.Fatalf("unsubscribed as %+v, %v; want answered at 3", got, err)
			}
		},
		"UnsubscribeRun": func(w *world, epoch int64) {
			got, _, err := w.t.UnsubscribeRun(w.ctx, "r", epoch, []string{"one"}, time.Time{})
			if err != nil || got.Waits != 1 || len(got.Released)+len(got.Dead) != 0 || len(got.Corrected) != 1 {
				w.Fatalf("unsubscribed as %+v, %v; want one wait, its effect corrected", got, err)
			}
		},
		"Conclude": func(w *world, epoch int64) {
			got, err := w.t.Conclude(w.ctx, store.Conclusion{
				RunID: "r", Epoch: epoch, ExpectedSeq: 3, BatchID: "end", Outcome: rendezvous.StatusCompleted,
			}, time.Time{})
			if err != nil || got.Retired.Waits != 1 || len(got.Retired.Released)+len(got.Retired.Dead) != 0 {
				w.Fatalf("concluded as %+v, %v; want one wait and no event let go", got, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, damage := newDamagedWorld(t)
			w.start("r")
			epoch := w.acquire("r", "a").Epoch
			w.park("r", epoch, "one")
			restore, err := damage.Keep("default", ref("r", "one").WaitID)
			w.must(err)
			if got, err := w.t.Collect(w.ctx, "r", epoch); err != nil || len(got.Records) != 1 {
				t.Fatalf("collected %+v, %v", got, err)
			}
			w.must(restore())
			meet(w, epoch)
			if e := w.stored("r/one"); e.State != rendezvous.EventConsumed || e.Seq != 3 || e.HasPayload {
				t.Fatalf("the event is %+v, want consumed at 3 and shed", e)
			}
			page, err := w.t.Waiting(w.ctx, store.WaitFilter{}, 0, "")
			w.must(err)
			if len(page.Waits) != 0 {
				t.Fatalf("left %+v", page.Waits)
			}
		})
	}
}

// TestWithdrawingALostRowLetsItsEventGo: the row of a parked wait is lost; withdrawing the wait closes the history and the event is live again (EV-22).
func TestWithdrawingALostRowLetsItsEventGo(t *testing.T) {
	w, damage := newDamagedWorld(t)
	w.start("r")
	epoch := w.acquire("r", "a").Epoch
	w.park("r", epoch, "one")
	w.must(damage.LoseWait("default", ref("r", "one").WaitID))
	got, err := w.t.Unsubscribe(w.ctx, ref("r", "one").WaitID, epoch, "no longer", time.Time{})
	w.must(err)
	if got.Outcome != store.WithdrawWithdrawn || got.Released == nil || len(got.Notices.Events) != 1 {
		t.Fatalf("withdrawn as %+v, want the event released", got)
	}
	if e := w.stored("r/one"); e.State != rendezvous.EventLive || string(e.Payload) != "for one" {
		t.Fatalf("the event is %+v, want live and whole", e)
	}
}
