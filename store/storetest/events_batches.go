package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// scene is what EV-87 plays twice, in two tenants with equal ids: in one batch, and one by one.
type scene struct {
	f     *Fix
	regs  []store.RegisterItem
	items []store.DeliverItem
}

// sceneOf sets up a tenant: runs of every standing, events before and waits before.
func sceneOf(f *Fix) *scene {
	s := &scene{f: f}
	run := func(id string) *Flow {
		return f.StartAs(store.Start{WorkflowID: "of-" + id, RunID: id, Type: "order"})
	}
	event := func(id string, keys ...rendezvous.Key) rendezvous.Event {
		return rendezvous.Event{EventID: rendezvous.EventID{Source: "shop", ID: id}, Type: "paid", Keys: keys, Payload: []byte("of " + id)}
	}
	key := func(n int) rendezvous.Key { return K("order", fmt.Sprint(n)) }
	free, leased, sealed, paused, older := run("free"), run("leased"), run("sealed"), run("paused"), run("older")
	epoch := leased.Drive().Epoch
	sealed.Conclude(rendezvous.StatusCompleted)
	must(f.PauseRun(ctx, paused.ID, nil, "", now))(f.T, "pause")
	older.Waits("old", "paid", key(3))
	for n := range 5 {
		f.Put(event(fmt.Sprint("before-", n), key(n), key(n+10)))
	}
	free.Waits("known", "paid", key(77))

	reg := func(r *Flow, epoch int64, effect string, keys ...rendezvous.Key) {
		s.regs = append(s.regs, store.RegisterItem{Tenant: f.Name(), Registration: store.Registration{Wait: r.Wait(effect, "paid", keys...), Epoch: epoch}})
	}
	reg(free, 0, "w0", key(0))            // answered
	reg(free, 0, "w1", key(0))            // the event is gone
	reg(leased, epoch, "w2", key(11))     // answered under the lease
	reg(leased, 0, "w3", key(12))         // lease_held
	reg(leased, epoch+5, "w3", key(12))   // fenced
	reg(sealed, 0, "w4", key(12))         // sealed
	reg(paused, 0, "w5", key(12))         // conflict
	reg(free, 0, "w6", key(3), key(4))    // its oldest is an older wait's; the next is its own
	reg(free, 0, "known", key(77))        // again
	reg(free, 0, "known", key(78))        // conflict
	reg(free, 0, "w0", key(0))            // again, in the same batch
	reg(free, 0, "bad", K("", "no name")) // invalid
	reg(&Flow{F: f, ID: "unknown"}, 0, "w", key(1))
	reg(free, 0, "w7", key(99))          // waits
	reg(leased, epoch, "w8", key(2))     // answered under the lease
	reg(leased, epoch, "w9", key(98))    // waits
	reg(free, 0, "w10", key(98), key(1)) // what w2 did not take of 1 is gone: waits
	reg(free, 0, "last")

	deliver := func(run string, e rendezvous.Event, keep bool) {
		s.items = append(s.items, store.DeliverItem{Tenant: f.Name(), RunID: run, Event: e, Keep: keep})
	}
	first := event("to-0", key(99))
	deliver("free", first, false)                               // matched
	deliver("free", first, false)                               // again
	deliver("leased", first, true)                              // duplicate
	deliver("free", event("to-1", key(99)), false)              // not waiting: no trace
	deliver("free", event("to-1", key(99)), true)               // kept
	deliver("free", event("to-1", key(99)), true)               // kept again
	deliver("leased", event("to-2"), true)                      // matched: no keys
	deliver("leased", event("to-3"), true)                      // kept
	deliver("sealed", event("to-4", key(1)), false)             // sealed
	deliver("sealed", event("to-5", key(1)), true)              // dead
	deliver("unknown", event("to-6", key(1)), false)            // not_found
	deliver("unknown", event("to-6", key(1)), true)             // kept
	deliver("free", event("before-0", key(0)), false)           // conflict
	deliver("free", event("", key(0)), false)                   // invalid
	deliver("older", event("before-3", key(3), key(13)), false) // taken by the registrations
	deliver("paused", event("to-7", key(1)), true)              // kept for a paused run
	odd := event("to-8", key(99))
	odd.Type = "refunded"
	deliver("free", odd, false) // other_type
	return s
}

func registeredInBatch(t *testing.T, h *Harness) {
	fs := h.Two(t)
	batch, single := sceneOf(fs[0]), sceneOf(fs[1])
	got := must(h.Store.RegisterBatch(ctx, batch.regs, now))(t, "register a batch")
	want := make([]store.Registered, len(single.regs))
	for i, item := range single.regs {
		out, err := single.f.RegisterWait(ctx, item.Registration, now)
		if want[i] = out; err != nil {
			want[i] = store.Registered{Err: err}
		}
	}
	for i := range want {
		what := fmt.Sprintf("registration %d (%s)", i, batch.regs[i].Effect)
		eq(t, what+": code", rendezvous.CodeOf(got[i].Err), rendezvous.CodeOf(want[i].Err))
		eq(t, what+": outcome", got[i].Outcome, want[i].Outcome)
		eq(t, what+": workflow", got[i].Workflow, want[i].Workflow)
		eq(t, what+": parked", got[i].Parked, want[i].Parked)
		eq(t, what+": has an answer", got[i].Answer != nil, want[i].Answer != nil)
		if got[i].Answer != nil {
			sameRecord(t, what, *got[i].Answer, *want[i].Answer)
		}
		if got[i].Outcome == store.RegisterWaiting {
			rows := [2][]store.WaitRow{}
			for n, f := range fs {
				rows[n] = f.Listed(store.WaitFilter{RunID: batch.regs[i].RunID})
			}
			eq(t, what+": effects waiting", effectsOf(rows[0]), effectsOf(rows[1]))
		}
	}
	sameTenants(t, fs)
}

func deliveredInBatch(t *testing.T, h *Harness) {
	fs := h.Two(t)
	batch, single := sceneOf(fs[0]), sceneOf(fs[1])
	for _, s := range []*scene{batch, single} {
		for i, o := range must(h.Store.RegisterBatch(ctx, s.regs, now))(t, "register a batch") {
			if o.Err == nil && o.Outcome == "" {
				t.Fatalf("registration %d has neither outcome nor error", i)
			}
		}
	}
	got := must(h.Store.DeliverToBatch(ctx, batch.items, now))(t, "deliver a batch")
	for i, item := range single.items {
		what := fmt.Sprintf("event %d (%s to %s)", i, item.Event.ID, item.RunID)
		want, err := single.f.DeliverTo(ctx, item.RunID, item.Event, item.Keep, now)
		eq(t, what+": code", rendezvous.CodeOf(got[i].Err), rendezvous.CodeOf(err))
		eq(t, what+": outcome", got[i].Outcome, want.Outcome)
		eq(t, what+": again", got[i].Again, want.Again)
		eq(t, what+": place", got[i].Place, want.Place)
		eq(t, what+": reason", got[i].Why, want.Why)
		eq(t, what+": events to offer", len(got[i].Notices.Events), len(want.Notices.Events))
	}
	sameTenants(t, fs)
	for n := 1; n < len(got); n++ { // numbers rise in input order
		if a, b := got[n-1], got[n]; a.Outcome == store.DeliveryKept && b.Outcome == store.DeliveryKept && b.Number < a.Number {
			t.Fatalf("event %d has number %d, the one before it %d", n, b.Number, a.Number)
		}
	}
}

// sameTenants fails the test unless both tenants have equal histories, waits and events.
func sameTenants(t testing.TB, fs [2]*Fix) {
	t.Helper()
	var sets [2][]store.WaitRow
	for n, f := range fs {
		sets[n] = f.Listed(store.WaitFilter{})
	}
	eq(t, "effects waiting", effectsOf(sets[0]), effectsOf(sets[1]))
	for _, run := range []string{"free", "leased", "sealed", "paused", "older"} {
		a := (&Flow{F: fs[0], WorkflowID: "of-" + run, ID: run}).History()
		b := (&Flow{F: fs[1], WorkflowID: "of-" + run, ID: run}).History()
		byEffect := func(records []rendezvous.Record) map[string]rendezvous.Record {
			all := map[string]rendezvous.Record{}
			for _, r := range records {
				all[string(r.Kind)+" "+r.Effect] = r
			}
			return all
		}
		eq(t, "records of "+run, len(a), len(b))
		one, two := byEffect(a), byEffect(b)
		for name, r := range one {
			sameRecord(t, run+": "+name, r, two[name])
		}
	}
	var ids []string
	for n := range 5 {
		ids = append(ids, fmt.Sprint("before-", n))
	}
	for n := range 9 {
		ids = append(ids, fmt.Sprint("to-", n))
	}
	for _, id := range ids {
		eventID := rendezvous.EventID{Source: "shop", ID: id}
		a, errA := fs[0].LookupEvent(ctx, eventID, true)
		b, errB := fs[1].LookupEvent(ctx, eventID, true)
		eq(t, id+": code", rendezvous.CodeOf(errA), rendezvous.CodeOf(errB))
		a.Seq, b.Seq = min(a.Seq, 1), min(b.Seq, 1)
		ignore := cmpopts.IgnoreFields(store.StoredEvent{}, "Number", "ReceivedAt", "LiveSince", "ClaimedAt", "DeadAt")
		if diff := cmp.Diff(b, a, ignore, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s (-one by one +in a batch):\n%s", id, diff)
		}
	}
}

// sameRecord compares records of two tenants: their seqs and instants may differ.
func sameRecord(t testing.TB, what string, a, b rendezvous.Record) {
	t.Helper()
	eq(t, what+": kind", a.Kind, b.Kind)
	eq(t, what+": effect", a.Effect, b.Effect)
	SamePayload(t, a.Payload, b.Payload)
	if a.Kind == rendezvous.WaitAnswered {
		var x, y rendezvous.WaitAnsweredData
		done(t, what, rendezvous.DecodeData(a, &x))
		done(t, what, rendezvous.DecodeData(b, &y))
		x.ReceivedAt, y.ReceivedAt = "", ""
		eq(t, what+": answer", x, y)
	}
}

func effectsOf(rows []store.WaitRow) []string {
	var all []string
	for _, r := range rows {
		all = append(all, fmt.Sprintf("%s of %s, %s, holds %v", r.Effect, r.RunID, r.State, r.Held))
	}
	return all
}

func batchesCostTheSame(t *testing.T, h *Harness) {
	// cost is the steps of a verb's transaction and how many transactions there were, second looks and all.
	cost := func(verb string, fn func()) [3]int {
		h.Counting.Reset()
		steps := h.Steps(t, verb, fn)
		n := h.Counting.Counts()
		return [3]int{steps, int(n.Updates), int(n.Views)}
	}
	for _, batch := range []struct {
		verb string
		of   func(c *crowd) func()
	}{{"register_batch", (*crowd).registers}, {"deliver_to_batch", (*crowd).delivers}, {"offer_batch", (*crowd).offers}} {
		few, many := cost(batch.verb, batch.of(crowdOf(t, h, 50))), cost(batch.verb, batch.of(crowdOf(t, h, 500)))
		eq(t, batch.verb+": steps, transactions and reads for 500 as for 50", many, few)
	}
	looks := [2]int{}
	for i, n := range []int{50, 500} {
		looks[i] = h.Steps(t, "second_look", crowdOf(t, h, n).registers())
	}
	eq(t, "steps of one second look for 500 as for 50", looks[1], looks[0])
}

// crowd is many waits-to-be of a fifth as many runs in two tenants, each with a key of its own.
type crowd struct {
	t     *testing.T
	h     *Harness
	waits []store.RegisterItem
	older []*Flow // a run in each tenant whose waits are older
}

func crowdOf(t *testing.T, h *Harness, n int) *crowd {
	c := &crowd{t: t, h: h}
	fs := h.Two(t)
	c.older = []*Flow{fs[0].Start(), fs[1].Start()}
	var runs []*Flow
	for i := range n {
		if i%10 == 0 {
			runs = append(runs, fs[0].Start(), fs[1].Start())
		}
		r := runs[len(runs)-2+i%2]
		w := r.Wait(fmt.Sprint("w", i), "paid", K("order", fmt.Sprintf("%s/%d", r.ID, i)), K("other", r.ID))
		c.waits = append(c.waits, store.RegisterItem{Tenant: r.F.Name(), Registration: store.Registration{Wait: w}})
	}
	return c
}

// buffers puts an event for each wait that wants one.
func (c *crowd) buffers(wants func(i int) bool) []store.BufferItem {
	var items []store.BufferItem
	for i, w := range c.waits {
		if wants(i) {
			items = append(items, store.BufferItem{Tenant: w.Tenant, Event: EventOf("paid", w.Keys[0])})
		}
	}
	for _, o := range must(c.h.Store.BufferBatch(ctx, items, now))(c.t, "buffer a batch") {
		done(c.t, "buffer", o.Err)
	}
	return items
}

func (c *crowd) register(items []store.RegisterItem, outcome func(i int) store.RegisterOutcome) {
	c.t.Helper()
	for i, o := range must(c.h.Store.RegisterBatch(ctx, items, now))(c.t, "register a batch") {
		done(c.t, fmt.Sprint("item ", i), o.Err)
		eq(c.t, fmt.Sprint("outcome of item ", i), o.Outcome, outcome(i))
	}
}

func waiting(int) store.RegisterOutcome { return store.RegisterWaiting }

// registers registers them: a third is answered, a third contested, a third waits.
func (c *crowd) registers() func() {
	var older []store.RegisterItem
	for i, w := range c.waits {
		if i%3 == 1 {
			w.RunID = c.older[i%2].ID
			older = append(older, w)
		}
	}
	c.register(older, waiting)
	c.buffers(func(i int) bool { return i%3 < 2 })
	return func() {
		c.register(c.waits, func(i int) store.RegisterOutcome {
			if i%3 == 0 {
				return store.RegisterAnswered
			}
			return store.RegisterWaiting
		})
	}
}

// delivers gives an event to the run of each: a third matches, a third is kept, a third finds nothing.
func (c *crowd) delivers() func() {
	var first []store.RegisterItem
	items := make([]store.DeliverItem, len(c.waits))
	for i, w := range c.waits {
		items[i] = store.DeliverItem{Tenant: w.Tenant, RunID: w.RunID, Event: EventOf("paid", w.Keys[0]), Keep: i%3 == 1}
		if i%3 == 0 {
			first = append(first, w)
		}
	}
	c.register(first, waiting)
	return func() {
		want := []store.DeliveryOutcome{store.DeliveryMatched, store.DeliveryKept, store.DeliveryNotWaiting}
		for i, o := range must(c.h.Store.DeliverToBatch(ctx, items, now))(c.t, "deliver a batch") {
			done(c.t, fmt.Sprint("item ", i), o.Err)
			eq(c.t, fmt.Sprint("outcome of item ", i), o.Outcome, want[i%3])
		}
	}
}

// offers offers an event for each.
func (c *crowd) offers() func() {
	c.register(c.waits, waiting)
	var items []store.OfferItem
	for _, b := range c.buffers(func(int) bool { return true }) {
		items = append(items, store.OfferItem{Tenant: b.Tenant, Event: &b.Event.EventID})
	}
	return func() {
		for i, o := range must(c.h.Store.OfferBatch(ctx, items, now))(c.t, "offer a batch").Items {
			eq(c.t, fmt.Sprint("outcome of item ", i), o.Outcome, store.OfferDelivered)
		}
	}
}

func batchesAreBounded(t *testing.T, h *Harness) {
	const over = rendezvous.MaxBatchItems + 1
	verbs := map[string]func(n int) error{
		"RegisterBatch": func(n int) error {
			_, err := h.Store.RegisterBatch(ctx, make([]store.RegisterItem, n), now)
			return err
		},
		"DeliverToBatch": func(n int) error {
			_, err := h.Store.DeliverToBatch(ctx, make([]store.DeliverItem, n), now)
			return err
		},
		"OfferBatch":    func(n int) error { _, err := h.Store.OfferBatch(ctx, make([]store.OfferItem, n), now); return err },
		"DeliverParked": func(n int) error { _, err := h.Store.DeliverParked(ctx, make([]store.WaitRef, n), now); return err },
		"ParkWait":      func(n int) error { _, err := h.Store.ParkWait(ctx, make([]store.ParkItem, n), now); return err },
		"TakeParked":    func(n int) error { _, err := h.Store.TakeParked(ctx, n, 0); return err },
	}
	for name, call := range verbs {
		code(t, name+" of 501", call(over), rendezvous.CodeTooLarge, "limit", rendezvous.MaxBatchItems, "value", over)
		done(t, name+" of 500 that name nothing", call(rendezvous.MaxBatchItems)) // each fails alone
	}
}

func pulledInLater(t *testing.T, h *Harness) {
	f := h.Fix(t)
	const many = rendezvous.MaxBatchItems + 20
	key := K("order", "1")
	r := f.Start()
	var waits []store.RegisterItem
	var events []store.BufferItem
	for i := range many {
		waits = append(waits, store.RegisterItem{Tenant: f.Name(), Registration: store.Registration{Wait: r.Wait(fmt.Sprint("w", i), "paid", key)}})
		events = append(events, store.BufferItem{Tenant: f.Name(), Event: EventOf("paid", key)})
	}
	for from := 0; from < many; from += rendezvous.MaxBatchItems {
		to := min(many, from+rendezvous.MaxBatchItems)
		for _, o := range must(h.Store.RegisterBatch(ctx, waits[from:to], now))(t, "register") {
			done(t, "register", o.Err)
		}
	}
	for from := 0; from < many; from += rendezvous.MaxBatchItems {
		must(h.Store.BufferBatch(ctx, events[from:min(many, from+rendezvous.MaxBatchItems)], now))(t, "buffer")
	}
	last := events[many-1].Event
	out := f.OfferAll(last)
	eq(t, "outcome of the last event", out.Items[0].Outcome, store.OfferLater)
	if len(out.Also) > rendezvous.MaxBatchItems {
		t.Fatalf("%d pairs were pulled in, more than 500", len(out.Also))
	}
	f.WantLive(last)
	out.Notices.Events = append(out.Notices.Events, store.EventRef{Tenant: f.Name(), EventID: last.EventID})
	h.Offer(t, out.Notices)
	for _, i := range []int{0, 1, many / 2, many - 2, many - 1} { // oldest first, all the same
		stored := f.Stored(events[i].Event.EventID)
		eq(t, fmt.Sprint("wait that event ", i, " answered"), stored.Effect, fmt.Sprint("w", i))
	}
	eq(t, "waits left", r.Rows(), nil)
}

// roomAtTheLimit: a run has room for one more wait.
func roomAtTheLimit(t *testing.T, h *Harness) {
	f := h.Fix(t)
	full := func() *Flow {
		r := f.Start()
		var waits []rendezvous.Wait
		for i := range rendezvous.MaxWaitsPerRun - 1 {
			waits = append(waits, r.Wait(fmt.Sprint("w", i), "other"))
		}
		for part := range slices.Chunk(waits, rendezvous.MaxBatchItems) {
			r.registerAll(part, 0)
		}
		return r
	}
	outcome := func(got store.Registered) string {
		if got.Err != nil {
			return string(rendezvous.CodeOf(got.Err))
		}
		return string(got.Outcome)
	}

	r, other := full(), f.Start()
	key := func(v string) rendezvous.Key { return K(r.ID, v) }
	events := map[string]rendezvous.Event{}
	for _, v := range []string{"1", "2", "4"} {
		events[v] = f.PutNew("paid", key(v))
	}
	var items []store.RegisterItem
	for _, w := range []rendezvous.Wait{
		r.Wait("a", "paid", key("1")), r.Wait("b", "paid", key("2")), r.Wait("c", "paid", key("3")), r.Wait("d", "paid", key("4")), r.Wait("d", "paid", key("4")),
		other.Wait("d", "paid", key("4")), r.Wait("a", "paid", key("1")), r.Wait("e", "paid"),
	} {
		items = append(items, store.RegisterItem{Tenant: f.Name(), Registration: store.Registration{Wait: w}})
	}
	var got []string
	for _, o := range must(h.Store.RegisterBatch(ctx, items, now))(t, "register a batch") {
		got = append(got, outcome(o))
	}
	eq(t, "outcomes", got, []string{"answered", "answered", "waiting", "too_large", "too_large", "answered", "answered", "too_large"})
	eq(t, "open waits", r.Describe().OpenWaits, rendezvous.MaxWaitsPerRun)
	r.WantAnswered("b", events["2"])
	other.WantAnswered("d", events["4"])
	eq(t, "row of the one refused", r.Row("d"), nil)
	_, err := f.Subscribe(ctx, store.Registration{Wait: r.Wait("s", "paid")}, now)
	code(t, "a subscription over the limit", err, rendezvous.CodeTooLarge, "limit", rendezvous.MaxWaitsPerRun, "value", rendezvous.MaxWaitsPerRun+1)

	r = full()
	first, second := f.PutNew("paid", key("1")), f.PutNew("paid", key("2"))
	two := recs(r.Waited(r.Wait("a", "paid", key("1"))), r.Waited(r.Wait("b", "paid", key("2"))))
	r.unwritten("one wait too many", rendezvous.CodeTooLarge, append(two, r.Waited(r.Wait("c", "paid")), r.Waited(r.Wait("d", "paid"))),
		"limit", rendezvous.MaxWaitsPerRun, "value", rendezvous.MaxWaitsPerRun+1)
	r.AppendFree(append(two, r.Waited(r.Wait("c", "paid")))...)
	r.WantAnswered("a", first)
	r.WantAnswered("b", second)
	eq(t, "open waits", r.Describe().OpenWaits, rendezvous.MaxWaitsPerRun)
}
