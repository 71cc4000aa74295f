package difftest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// Clients at once, and how many calls each makes.
const (
	clients = 4
	calls   = 7
)

// overlaps runs histories of overlapping calls on each store, and checks each.
func overlaps(t *testing.T, one func(t *testing.T, w *World, s *side, seed uint64) string) {
	for _, k := range []Kind{memoryKind(), sqliteKind(t), postgresKind(t)} {
		t.Run(k.Name, func(t *testing.T) {
			began, n := time.Now(), (sequences(t)+1)/2
			for range n {
				seed := rand.Uint64()
				w := NewWorld(t, []Kind{k})
				if wrong := one(t, w, w.sides[0], seed); wrong != "" {
					t.Fatalf("seed %d: %s", seed, wrong)
				}
			}
			t.Logf("%d histories of %d calls, %.1f a second", n, clients*calls, float64(n)/time.Since(began).Seconds())
		})
	}
}

// TestARunHasOneDriverAndOneHistory: overlapping acquires, renewals, appends, suspends, releases and ends of one run have a legal order.
func TestARunHasOneDriverAndOneHistory(t *testing.T) {
	overlaps(t, func(t *testing.T, w *World, s *side, seed uint64) string {
		w.Do(StartRun{Tenant: "a", Workflow: "w1", Run: "r1", Type: "order"})
		var all []func(Ask)
		for i := range clients {
			d := &driver{rnd: rand.New(rand.NewPCG(seed, uint64(i))), owner: fmt.Sprint("pod/", i%3), head: 1}
			all = append(all, d.drive)
		}
		return Check(runState{head: 1, batches: map[string]landed{}}, runLaw, Overlap(s, all...))
	})
}

// driver is a client of one run that believes what it was told last.
type driver struct {
	rnd         *rand.Rand
	owner       string
	epoch, head int64
	last        Step
}

func (d *driver) drive(ask Ask) {
	for n := range calls {
		step := d.choose(n)
		if d.last != nil && d.rnd.IntN(6) == 0 {
			step = d.last
		}
		d.last = step
		switch got, _ := ask(step); got := got.(type) {
		case store.Lease:
			d.epoch, d.head = max(got.Epoch, d.epoch), max(got.Head, d.head)
		case store.Appended:
			d.head = max(got.Head, d.head)
		case store.HistoryPage:
			d.head = max(got.Head, d.head)
		case store.Suspended:
			d.head = max(got.Head, d.head)
		}
	}
}

func (d *driver) choose(n int) Step {
	epoch := max(d.epoch, 1)
	batch := fmt.Sprint("b", d.rnd.Uint64())
	switch d.rnd.IntN(20) {
	case 0, 1, 2, 3, 4:
		return AcquireLease{"a", "r1", d.owner, time.Hour, fmt.Sprint("k", d.rnd.IntN(2))}
	case 5, 6:
		return RenewLease{"a", "r1", d.owner, epoch, time.Hour}
	case 7, 8:
		return ReadHistoryFrom{"a", "w1", rendezvous.MaxSeq, 1}
	case 9, 10:
		return Suspend{"a", "r1", epoch, d.head, true}
	case 11, 12:
		return ReleaseLease{"a", "r1", epoch}
	case 13:
		if n < calls/2 {
			break
		}
		return Conclude{Tenant: "a", Run: "r1", Epoch: d.epoch, Expected: d.head, Batch: batch, Outcome: "completed"}
	case 14:
		if n < calls-1 {
			break
		}
		return CancelRun{Tenant: "a", Run: "r1", Now: true}
	}
	a := Append{Tenant: "a", Run: "r1", Epoch: d.epoch, Expected: d.head, Batch: batch}
	for range 1 + d.rnd.IntN(2) {
		a.Records = append(a.Records, Record{Kind: "note", Data: `{"name":"n"}`})
	}
	return a
}

// TestAnEventAnswersOneWait: overlapping claims, matches, offers, withdrawals and erasures of events and waits that all meet have a legal order.
func TestAnEventAnswersOneWait(t *testing.T) {
	overlaps(t, func(t *testing.T, w *World, s *side, seed uint64) string {
		w.Do(StartRun{Tenant: "a", Workflow: "w1", Run: "free", Type: "order"})
		w.Do(StartRun{Tenant: "a", Workflow: "w2", Run: driven, Type: "order"})
		w.Do(AcquireLease{"a", driven, "pod/1", time.Hour, "k1"})
		var all []func(Ask)
		for i := range clients {
			rnd := rand.New(rand.NewPCG(seed, uint64(i)))
			all = append(all, func(ask Ask) {
				for n := range calls {
					_, _ = ask(meets(rnd, n))
				}
			})
		}
		history := Overlap(s, all...)
		if !s.Serial {
			history = apart(history)
		}
		return Check(meeting{}, meetingLaw, history)
	})
}

// meets is a call about one of few events and waits, buffering and subscribing first, mostly.
func meets(rnd *rand.Rand, n int) Step {
	id, effect := fmt.Sprint(rnd.IntN(4)), fmt.Sprint(rnd.IntN(4))
	run, epoch := "free", int64(0)
	if effect < "2" {
		run, epoch = driven, 1
	}
	most := 14
	if n < 2 {
		most = 6
	}
	switch rnd.IntN(most) {
	case 0, 1, 2:
		return Buffer{Tenant: "a", Event: Event{Source: "shop", ID: id, Type: "paid", Keys: []string{"o=1"}, Payload: "p"}}
	case 3, 4, 5:
		return Subscribe{Tenant: "a", Wait: Wait{Run: run, Effect: effect, Type: "paid", Keys: []string{"o=1"}, Epoch: epoch}}
	case 6, 7:
		return ClaimFor{Tenant: "a", Run: run, Effect: effect}
	case 8, 9:
		return MatchWaiter{Tenant: "a", Source: "shop", ID: id}
	case 10, 11:
		return OfferBatch{Items: []Offer{{Tenant: "a", Source: "shop", ID: id}}}
	case 12:
		return Unsubscribe{Tenant: "a", Run: run, Effect: effect, Epoch: epoch}
	}
	if rnd.IntN(2) == 0 {
		return ErasePayload{Tenant: "a", Source: "shop", ID: id}
	}
	return DeliverParked{Items: []Held{{"a", run, effect}}}
}
