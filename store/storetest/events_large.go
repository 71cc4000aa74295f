package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// largeFit is how many of the largest payloads one call hands out; largeMany is some more.
const (
	largeFit  = rendezvous.MaxCollectBytes / rendezvous.MaxPayload
	largeMany = largeFit + 3
)

// putLarge buffers an event of the largest payload that meets the wait.
func (f *Fix) putLarge(w rendezvous.Wait) rendezvous.Event {
	f.T.Helper()
	e := EventOf(w.Type, w.Keys...)
	e.Payload = slices.Repeat([]byte(w.Effect[len(w.Effect)-1:]), rendezvous.MaxPayload)
	eq(f.T, "outcome of a new event", f.Put(e).Outcome, store.BufferNew)
	return e
}

// large makes n waits of the run, each with an event of the largest payload that is there already.
func (r *Flow) large(n int) ([]rendezvous.Wait, map[string]rendezvous.Event) {
	r.F.T.Helper()
	var waits []rendezvous.Wait
	events := map[string]rendezvous.Event{}
	for i := range n {
		w := r.Wait(fmt.Sprint("w", i), "paid", K("large", fmt.Sprint(r.ID, "/", i)))
		waits, events[w.Effect] = append(waits, w), r.F.putLarge(w)
	}
	return waits, events
}

func (r *Flow) registerAll(waits []rendezvous.Wait, epoch int64) []store.Registered {
	r.F.T.Helper()
	items := make([]store.RegisterItem, len(waits))
	for i, w := range waits {
		items[i] = store.RegisterItem{Tenant: r.F.Name(), Registration: store.Registration{Wait: w, Epoch: epoch}}
	}
	return must(r.F.H.Store.RegisterBatch(ctx, items, now))(r.F.T, "register a batch")
}

// handedOut counts what a batch of registrations came to, and fails the test when it gives more than one call may.
func (r *Flow) handedOut(got []store.Registered) (answered, parked, waiting, failed int) {
	r.F.T.Helper()
	size := 0
	for i, g := range got {
		switch {
		case g.Err != nil:
			code(r.F.T, fmt.Sprint("registration ", i), g.Err, rendezvous.CodeUnavailable)
			failed++
		case g.Answer != nil:
			size += len(g.Answer.Payload)
			answered++
		case g.Parked:
			parked++
		default:
			waiting++
		}
	}
	if size > rendezvous.MaxCollectBytes {
		r.F.T.Fatalf("%d bytes of payload in the answers of one batch, want at most %d", size, rendezvous.MaxCollectBytes)
	}
	return answered, parked, waiting, failed
}

// answers are the answers in the workflow's history.
func (r *Flow) answers() []rendezvous.Record {
	r.F.T.Helper()
	return slices.DeleteFunc(r.History(), func(rec rendezvous.Record) bool { return rec.Kind != rendezvous.WaitAnswered })
}

func largeAnswersInBatch(t *testing.T, h *Harness) {
	f := h.Fix(t)
	d := f.Start().Drive()
	waits, events := d.large(largeMany)
	count := func(what string, got []store.Registered, want ...int) {
		t.Helper()
		answered, parked, waiting, failed := d.handedOut(got)
		eq(t, what+": answered, parked, waiting, failed", []int{answered, parked, waiting, failed}, want)
	}
	count("first", d.registerAll(waits, d.Epoch), largeFit, largeMany-largeFit, 0, 0)
	eq(t, "rows of waits", len(d.Rows()), largeMany-largeFit)
	count("again: what is parked comes first", d.registerAll(waits, d.Epoch), largeFit, 0, 0, largeMany-largeFit)
	count("again: those that were over", d.registerAll(waits[largeMany-6:largeMany-3], d.Epoch), 3, 0, 0, 0)
	d.wantAnswers("a batch", d.answers(), events)

	r := f.Start()
	waits, _ = r.large(largeMany)
	var refs []store.WaitRef
	for i, g := range r.registerAll(waits, 0) {
		if g.Parked {
			refs = append(refs, store.WaitRef{Tenant: f.Name(), WaitID: waits[i].WaitID})
		}
	}
	eq(t, "waits parked on a free run", len(refs), largeMany-largeFit)
	for _, o := range must(h.Store.DeliverParked(ctx, refs, now))(t, "deliver what is parked").Items {
		eq(t, "what is parked on a free run", o.Outcome, store.OfferDelivered)
	}
}

func largeAnswersInLook(t *testing.T, h *Harness) {
	f := h.Fix(t)
	d, older := f.Start().Drive(), f.Start()
	first, second := map[string]rendezvous.Event{}, map[string]rendezvous.Event{}
	var waits []rendezvous.Wait
	for i := range largeMany { // each oldest event is an older wait's, so ours are given by the second look
		w := d.Wait(fmt.Sprint("w", i), "paid", K("large", fmt.Sprint(i)))
		older.Waits(w.Effect, "paid", w.Keys...)
		first[w.Effect], second[w.Effect] = f.PutNew("paid", w.Keys...), f.putLarge(w)
		waits = append(waits, w)
	}
	answered, parked, waiting, failed := d.handedOut(d.registerAll(waits, d.Epoch))
	eq(t, "answered, parked, waiting, failed", []int{answered, parked, waiting, failed}, []int{largeFit, 0, largeMany - largeFit, 0})
	for _, w := range waits {
		if got := must(f.RegisterWait(ctx, store.Registration{Wait: w, Epoch: d.Epoch}, now))(t, "register again"); got.Answer == nil {
			t.Fatalf("%s is %s when it is asked for again, want its answer", w.Effect, got.Outcome)
		}
	}
	d.wantAnswers("a second look", d.answers(), second)
	(&Driver{Flow: older}).wantAnswers("the older run", older.answers(), first)
}

func largeAnswersInAppend(t *testing.T, h *Harness) {
	f := h.Fix(t)
	d := f.Start().Drive()
	waits, events := d.large(largeMany)
	var records []rendezvous.Record
	for _, w := range waits {
		records = append(records, d.Waited(w))
	}
	batch := d.Batch(records...)
	for _, what := range []string{"append", "append again"} {
		out := must(f.Append(ctx, batch, now))(t, what)
		eq(t, what+": answers", len(out.Answers), largeFit)
		eq(t, what+": mail", out.Mail.Mail, largeMany-largeFit)
		eq(t, what+": head", out.Head, d.Head())
	}
	eq(t, "answers that the collect records", len(d.Collect().Records), largeMany-largeFit)
	d.wantAnswers("an append and a collect", d.answers(), events)
}
