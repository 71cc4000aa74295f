package engine_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/memory"
)

// committed is a memory backend whose transactions run side by side as under READ COMMITTED: each read sees what is committed when it is made, workflow
// rows are locked until the end, and the writes go in at once. So the engine meets every interleaving that a database would show it, without one. It has
// the reads and writes of the verbs raced here, and no others.
type committed struct {
	*memory.Backend
	mu    sync.Mutex
	locks map[backend.WorkflowKey]*sync.Mutex
}

func (c *committed) Update(ctx context.Context, verb string, fn func(ctx context.Context, tx backend.Tx) error) error {
	tx := &committedTx{c: c}
	defer tx.unlock()
	if err := c.View(ctx, verb, func(_ context.Context, r backend.Reader) error { tx.now = r.Now(); return nil }); err != nil {
		return err
	}
	if err := fn(ctx, tx); err != nil {
		return err
	}
	if tx.changes == nil {
		return nil
	}
	return c.Backend.Update(ctx, verb, func(ctx context.Context, into backend.Tx) error {
		if len(tx.keys) > 0 {
			if _, err := into.LockWorkflows(ctx, tx.keys); err != nil {
				return err
			}
		}
		return into.Apply(ctx, tx.changes)
	})
}

type committedTx struct {
	backend.Tx
	c       *committed
	now     time.Time
	keys    []backend.WorkflowKey
	held    []*sync.Mutex
	changes *backend.Changes
}

func (t *committedTx) unlock() {
	for _, m := range t.held {
		m.Unlock()
	}
}

// one reads what is committed now, and lets others go first now and then.
func one[K, V any](t *committedTx, ctx context.Context, keys K, read func(r backend.Reader, ctx context.Context, keys K) (V, error)) (v V, err error) {
	if rand.IntN(3) == 0 {
		runtime.Gosched()
	}
	err = t.c.View(ctx, "read", func(ctx context.Context, r backend.Reader) (err error) {
		v, err = read(r, ctx, keys)
		return err
	})
	return v, err
}

func (t *committedTx) Now() time.Time { return t.now }

func (t *committedTx) Runs(ctx context.Context, k []backend.RunKey) (map[backend.RunKey]*backend.Run, error) {
	return one(t, ctx, k, backend.Reader.Runs)
}

func (t *committedTx) Workflows(ctx context.Context, k []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Workflow, error) {
	return one(t, ctx, k, backend.Reader.Workflows)
}

func (t *committedTx) Woken(ctx context.Context, k []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Woken, error) {
	return one(t, ctx, k, backend.Reader.Woken)
}

func (t *committedTx) Effects(ctx context.Context, k []backend.WaitKey) (map[backend.WaitKey][]rendezvous.Record, error) {
	return one(t, ctx, k, backend.Reader.Effects)
}

func (t *committedTx) Waits(ctx context.Context, k []backend.WaitKey) (map[backend.WaitKey]*backend.Wait, error) {
	return one(t, ctx, k, backend.Reader.Waits)
}

func (t *committedTx) WaitsOf(ctx context.Context, k []backend.RunKey) ([]*backend.Wait, error) {
	return one(t, ctx, k, backend.Reader.WaitsOf)
}

func (t *committedTx) OpenWaits(ctx context.Context, l []backend.Lookup) ([][]*backend.Wait, error) {
	return one(t, ctx, l, backend.Reader.OpenWaits)
}

func (t *committedTx) LiveEvents(ctx context.Context, l []backend.Lookup) ([][]*backend.Event, error) {
	return one(t, ctx, l, backend.Reader.LiveEvents)
}

func (t *committedTx) RecordsAt(ctx context.Context, k []backend.RecordKey) (map[backend.RecordKey]rendezvous.Record, error) {
	return one(t, ctx, k, backend.Reader.RecordsAt)
}

func (t *committedTx) EventsByKey(ctx context.Context, k []backend.EventKey, payload bool) (map[backend.EventKey]*backend.Event, error) {
	return one(t, ctx, k, func(r backend.Reader, ctx context.Context, k []backend.EventKey) (map[backend.EventKey]*backend.Event, error) {
		return r.EventsByKey(ctx, k, payload)
	})
}

func (t *committedTx) EventsByNumber(ctx context.Context, n []int64, payload bool) (map[int64]*backend.Event, error) {
	return one(t, ctx, n, func(r backend.Reader, ctx context.Context, n []int64) (map[int64]*backend.Event, error) {
		return r.EventsByNumber(ctx, n, payload)
	})
}

func (t *committedTx) LockWorkflows(ctx context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Workflow, error) {
	t.keys = slices.SortedFunc(slices.Values(keys), func(a, b backend.WorkflowKey) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID))
	})
	for _, k := range t.keys {
		t.c.mu.Lock()
		m := t.c.locks[k]
		if m == nil {
			m = &sync.Mutex{}
			t.c.locks[k] = m
		}
		t.c.mu.Unlock()
		m.Lock()
		t.held = append(t.held, m)
	}
	return t.Workflows(ctx, keys)
}

func (t *committedTx) draw(ctx context.Context, n int, draw func(tx backend.Tx, ctx context.Context, n int) ([]int64, error)) (numbers []int64, err error) {
	err = t.c.Backend.Update(ctx, "draw", func(ctx context.Context, tx backend.Tx) (err error) {
		numbers, err = draw(tx, ctx, n)
		return err
	})
	return numbers, err
}

func (t *committedTx) NewWaitNumbers(ctx context.Context, n int) ([]int64, error) {
	return t.draw(ctx, n, backend.Tx.NewWaitNumbers)
}

func (t *committedTx) NewEventNumbers(ctx context.Context, n int) ([]int64, error) {
	return t.draw(ctx, n, backend.Tx.NewEventNumbers)
}

func (t *committedTx) Apply(_ context.Context, c *backend.Changes) error {
	t.changes = c
	return nil
}

// race is one engine over a committed backend, and one over the memory backend itself, to set the stage.
type race struct {
	*testing.T
	ctx     context.Context
	b       *committed
	s, calm store.Store
}

func newRace(t *testing.T) *race {
	t.Helper()
	b := &committed{Backend: memory.Open(clock.System, 8), locks: map[backend.WorkflowKey]*sync.Mutex{}}
	s, err := engine.New(b, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	calm, err := engine.New(b.Backend, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &race{T: t, ctx: context.Background(), b: b, s: s, calm: calm}
}

// together runs what was given at once and waits for all.
func together(what ...func()) {
	var all sync.WaitGroup
	for _, fn := range what {
		all.Go(fn)
	}
	all.Wait()
}

func (r *race) check(err error) {
	if err != nil {
		r.Error(err)
	}
}

func (r *race) start(tenant string, runs ...string) store.Tenant {
	r.Helper()
	t, err := r.calm.Tenant(tenant)
	if err != nil {
		r.Fatal(err)
	}
	for _, run := range runs {
		if _, err := t.StartRun(r.ctx, store.Start{WorkflowID: run, RunID: run, Type: "order"}, time.Time{}); err != nil {
			r.Fatal(err)
		}
	}
	return t
}

func (r *race) register(tenant, run string, values ...string) {
	done, err := r.s.RegisterBatch(r.ctx, []store.RegisterItem{{Tenant: tenant, Registration: registrationOf(run, "e", 0, values...)}}, time.Time{})
	r.check(err)
	for _, d := range done {
		r.follow(d.Notices)
	}
}

// follow offers what notices name, as the delivery-worker does.
func (r *race) follow(n store.Notices) {
	var items []store.OfferItem
	for _, e := range n.Events {
		items = append(items, store.OfferItem{Tenant: e.Tenant, Event: &e.EventID})
	}
	for _, w := range n.Waits {
		items = append(items, store.OfferItem{Tenant: w.Tenant, Wait: &w.WaitID})
	}
	if len(items) > 0 {
		r.offer(items...)
	}
}

func (r *race) arrive(tenant, id string, values ...string) store.OfferItem {
	e := rendezvous.Event{EventID: rendezvous.EventID{Source: "shop", ID: id}, Type: "paid", Keys: orderKeys(values...)}
	_, err := r.calm.BufferBatch(r.ctx, []store.BufferItem{{Tenant: tenant, Event: e}}, time.Time{})
	r.check(err)
	return store.OfferItem{Tenant: tenant, Event: &e.EventID}
}

func (r *race) offer(items ...store.OfferItem) []store.Offer {
	o, err := r.s.OfferBatch(r.ctx, items, time.Time{})
	r.check(err)
	for i, offered := range o.Items {
		switch offered.Outcome {
		case store.OfferFailed:
			r.Errorf("failed: %v", offered.Err)
		case store.OfferLater:
			r.offer(items[i])
		}
	}
	r.follow(o.Notices)
	return o.Items
}

// settled counts the answers of the tenant's runs and judges that no pair was left apart and nothing was answered twice.
func (r *race) settled(tenant string, runs []string, ids []string) int {
	r.Helper()
	t, err := r.calm.Tenant(tenant)
	r.check(err)
	answered := map[string]string{}
	open := map[string][]rendezvous.Key{}
	waits, err := t.Waiting(r.ctx, store.WaitFilter{}, 0, "")
	r.check(err)
	for _, w := range waits.Waits {
		open[w.RunID] = w.Keys
	}
	for _, run := range runs {
		records, err := t.ReadHistory(r.ctx, run)
		r.check(err)
		for _, rec := range records {
			if rec.Kind != rendezvous.WaitAnswered {
				continue
			}
			var d rendezvous.WaitAnsweredData
			r.check(rendezvous.DecodeData(rec, &d))
			if before := answered[d.EventID]; before != "" {
				r.Errorf("%s answered both %s and %s", d.EventID, before, run)
			}
			answered[d.EventID] = run
			if _, still := open[run]; still {
				r.Errorf("%s is answered and its wait is there", run)
			}
		}
	}
	for _, id := range ids {
		e, err := t.LookupEvent(r.ctx, rendezvous.EventID{Source: "shop", ID: id}, false)
		r.check(err)
		if (e.State == rendezvous.EventConsumed) != (answered[id] != "") {
			r.Errorf("%s is %s, answered %q", id, e.State, answered[id])
		}
		for run, keys := range open {
			if _, shared := rendezvous.SharedKey(keys, e.Keys); shared && e.State == rendezvous.EventLive {
				r.Errorf("%s and %s are left apart", id, run)
			}
		}
	}
	return len(answered)
}

// rounds is how often a race is run: RDV_ROUNDS, or 1,000.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("RDV_ROUNDS")); err == nil && n > 0 {
		return n
	}
	if testing.Short() {
		return 50
	}
	return 1000
}

// EV-41, EV-42, EV-43, O6: registrations and arrivals at the same moment leave no pair apart, on keys that overlap.
func TestRaceOfRegistrationsAndArrivals(t *testing.T) {
	r := newRace(t)
	for round := range rounds() {
		tenant := fmt.Sprint("t", round)
		runs, ids := []string{"r0", "r1", "r2"}, []string{"e0", "e1", "e2"}
		r.start(tenant, runs...)
		together(
			func() { r.register(tenant, "r0", "a", "b") },
			func() { r.register(tenant, "r1", "b", "c") },
			func() { r.register(tenant, "r2", "c") },
			func() { r.offer(r.arrive(tenant, "e0", "a", "c")) },
			func() { r.offer(r.arrive(tenant, "e1", "b")) },
			func() { r.offer(r.arrive(tenant, "e2", "c", "b")) },
		)
		if n := r.settled(tenant, runs, ids); n == 0 || t.Failed() {
			t.Fatalf("round %d: %d answers", round, n)
		}
	}
}

// EV-30, EV-58: the same batch on two workers at once answers each event once, and the loser says so with the same seq.
func TestRaceOfTwoWorkersOnOneBatch(t *testing.T) {
	r := newRace(t)
	for round := range rounds() {
		tenant := fmt.Sprint("t", round)
		runs, ids := []string{"r0", "r1", "r2", "r3"}, []string{"e0", "e1", "e2", "e3"}
		r.start(tenant, runs...)
		var items []store.OfferItem
		for i, run := range runs {
			r.register(tenant, run, fmt.Sprint("k", i/2))
		}
		for i := range ids {
			items = append(items, r.arrive(tenant, ids[i], fmt.Sprint("k", i/2)))
		}
		var a, b []store.Offer
		together(func() { a = r.offer(items...) }, func() { b = r.offer(items...) })
		for i := range a {
			won := (a[i].Outcome == store.OfferDelivered) != (b[i].Outcome == store.OfferDelivered)
			said := a[i].Outcome == store.OfferAlreadyDelivered || b[i].Outcome == store.OfferAlreadyDelivered
			if !won || !said || a[i].Seq != b[i].Seq || a[i].Wait != b[i].Wait {
				t.Fatalf("round %d: %+v and %+v", round, a, b)
			}
		}
		if n := r.settled(tenant, runs, ids); n != 4 || t.Failed() {
			t.Fatalf("round %d: %d answers", round, n)
		}
	}
}

// EV-28, EV-29, R6: claims from both sides at once agree, and none says that there is nothing while a pair is open.
func TestRaceOfClaimsFromBothSides(t *testing.T) {
	r := newRace(t)
	for round := range rounds() {
		tenant := fmt.Sprint("t", round)
		r.start(tenant, "r0", "r1")
		r.register(tenant, "r0", "a")
		r.register(tenant, "r1", "a")
		e := r.arrive(tenant, "e0", "a")
		h, err := r.s.Tenant(tenant)
		r.check(err)
		var m store.Match
		var c, younger store.Claim
		together(
			func() { var err error; m, err = h.MatchWaiter(r.ctx, *e.Event, time.Time{}); r.check(err) },
			func() {
				var err error
				c, err = h.ClaimFor(r.ctx, rendezvous.WaitID{RunID: "r0", Effect: "e"}, time.Time{})
				r.check(err)
			},
			func() {
				var err error
				younger, err = h.ClaimFor(r.ctx, rendezvous.WaitID{RunID: "r1", Effect: "e"}, time.Time{})
				r.check(err)
			},
		)
		matched := m.Outcome == store.MatchMatched && m.Wait.RunID == "r0" || m.Outcome == store.MatchClaimed && m.RunID == "r0"
		if !matched || c.Event == nil || younger.Event != nil || c.Again != (m.Outcome == store.MatchMatched) {
			t.Fatalf("round %d: %+v, %+v, %+v", round, m, c, younger)
		}
	}
}
