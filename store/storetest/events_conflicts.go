package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// others are events of one identity whose content differs from e's, by what differs.
func others(e rendezvous.Event) map[string][]rendezvous.Event {
	change := func(fn func(e *rendezvous.Event)) rendezvous.Event { c := e; fn(&c); return c }
	return map[string][]rendezvous.Event{
		"type": {change(func(e *rendezvous.Event) { e.Type = "refunded" })},
		"keys": {
			change(func(e *rendezvous.Event) { e.Keys = nil }),
			change(func(e *rendezvous.Event) { e.Keys = append(slices.Clone(e.Keys), K("order", "more")) }),
			change(func(e *rendezvous.Event) { e.Keys = []rendezvous.Key{K("order", "other")} }),
		},
		"content": {
			change(func(e *rendezvous.Event) { e.Payload = []byte("told in confidence") }),
			change(func(e *rendezvous.Event) { e.Payload = nil }),
			change(func(e *rendezvous.Event) { e.Payload = []byte{} }),
			change(func(e *rendezvous.Event) { e.ContentType = "text/plain" }),
		},
	}
}

// wantConflicts fails the test unless every other content of e's identity is a conflict that names what differs.
func (f *Fix) wantConflicts(e rendezvous.Event, state rendezvous.EventState) {
	f.T.Helper()
	for what, all := range others(e) {
		for _, o := range all {
			_, err := f.Buffer(ctx, o, now)
			code(f.T, "buffer with other "+what, err, rendezvous.CodeConflict, "what", what, "state", string(state))
			if len(o.Payload) > 0 && strings.Contains(err.Error(), string(o.Payload)) {
				f.T.Fatalf("the error tells the payload: %v", err)
			}
		}
	}
}

func otherContent(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Waits("paid", "paid", K("order", "1"))
	e := f.PutNew("paid", K("order", "1"))
	f.wantConflicts(e, rendezvous.EventLive)
	eq(t, "stored event", f.Stored(e.EventID).Event, e)
	h.Offer(t, f.Put(e).Notices)
	r.WantAnswer("paid", e)
}

func sameContent(t *testing.T, h *Harness) {
	f := h.Fix(t)
	e := EventOf("paid", K("order", "1"), K("customer", "7"))
	e.ExpiresAt, e.Trace = h.Now(t).Add(time.Hour), rendezvous.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
	number := f.Put(e).Number
	alike := e
	alike.Keys = []rendezvous.Key{K("customer", "7"), K("order", "1"), K("customer", "7")}
	alike.ExpiresAt, alike.Trace = h.Now(t).Add(time.Minute), rendezvous.Trace{}
	h.Advance(time.Second)
	eq(t, "outcome", f.Put(alike).Outcome, store.BufferDuplicate)
	alike.ExpiresAt = time.Time{}
	eq(t, "outcome", must(f.Buffer(ctx, alike, h.Now(t).Add(-time.Hour)))(t, "buffer at another time").Outcome, store.BufferDuplicate)
	stored := f.Stored(e.EventID)
	eq(t, "stored event", stored.Event, e)
	eq(t, "stored number", stored.Number, number)
}

func conflictLater(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Waits("paid", "paid", K("order", "1"))
	delivered := EventOf("paid", K("order", "1"))
	f.Send(delivered)
	f.WantState(delivered.EventID, rendezvous.EventConsumed)
	f.wantConflicts(delivered, rendezvous.EventConsumed)

	r.Conclude(rendezvous.StatusCompleted)
	dead := EventOf("paid", K("order", "2"))
	eq(t, "outcome", must(f.DeliverTo(ctx, r.ID, dead, true, now))(t, "deliver to a concluded run").Outcome, store.DeliveryDead)
	f.wantConflicts(dead, rendezvous.EventDead)

	erased := f.PutNew("paid", K("order", "3"))
	must(f.ErasePayload(ctx, erased.EventID, nil, now))(t, "erase")
	other := erased
	other.Payload = []byte("other")
	again := f.Put(other) // only type and keys can be compared
	eq(t, "outcome after erasure", again.Outcome, store.BufferDuplicate)
	eq(t, "place after erasure", again.Place, store.Place{State: rendezvous.EventDead, Reason: rendezvous.DeadErased})
	for _, what := range []string{"type", "keys"} {
		for _, o := range others(erased)[what] {
			_, err := f.Buffer(ctx, o, now)
			code(t, "buffer with other "+what+" after erasure", err, rendezvous.CodeConflict, "what", what)
		}
	}
}
