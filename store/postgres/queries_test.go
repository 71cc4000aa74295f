package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/postgres"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

// query is one primitive of the backend, with how many rows it may touch on the filled store: about what it answers.
type query struct {
	name string
	most float64
	run  func(ctx context.Context, tx backend.Tx) error
}

func ask[T any](v T, err error) error { return err }

// scan is a page of a walk over all rows of a kind.
func scan(kind backend.Kind, after backend.Position) func(ctx context.Context, tx backend.Tx) error {
	return func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.(backend.Target).Scan(ctx, kind, after, 10, 1<<20))
	}
}

func letters(w backend.DeadWalk) func(ctx context.Context, tx backend.Tx) error {
	return func(ctx context.Context, tx backend.Tx) error { return ask3(tx.DeadLetters(ctx, "acme", w, 5)) }
}

func ask3[T, U any](v T, u U, err error) error { return err }

var (
	five    = backend.Span{Limit: 5, Look: 100} // of pages
	live1   = backend.WorkflowKey{Tenant: "acme", ID: "live-1"}
	held1   = backend.WorkflowKey{Tenant: "globex", ID: "live-1"}
	run1    = backend.RunKey{Tenant: "acme", ID: "live-1"}
	wait1   = backend.WaitKey{Tenant: "acme", RunID: "live-1", Effect: "w"}
	done1   = backend.WaitKey{Tenant: "acme", RunID: "done-1", Effect: "w"}
	lookups = []backend.Lookup{
		{Tenant: "acme", Type: "paid", Key: rendezvous.Key{Namespace: "order", Value: "live-1"}, Limit: 10},
		{Tenant: "acme", Type: "paid", Key: rendezvous.Key{Namespace: "order", Value: "alone-1"}, Limit: 10},
	}
)

var queries = []query{
	{"Workflows", 2, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.Workflows(ctx, []backend.WorkflowKey{live1, held1}))
	}},
	{"LockWorkflows", 2, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.LockWorkflows(ctx, []backend.WorkflowKey{live1, held1}))
	}},
	{"Runs", 1, func(ctx context.Context, tx backend.Tx) error { return ask(tx.Runs(ctx, []backend.RunKey{run1})) }},
	{"RunsOf", 1, func(ctx context.Context, tx backend.Tx) error { return ask(tx.RunsOf(ctx, live1, 0, 10)) }},
	{"Batches", 1, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.Batches(ctx, []backend.BatchKey{{Tenant: "acme", RunID: "done-1", ID: "b"}}))
	}},
	{"Woken", 1, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.Woken(ctx, []backend.WorkflowKey{held1}))
	}},
	{"History", 2, func(ctx context.Context, tx backend.Tx) error { return ask(tx.History(ctx, live1, 1, 0, 10, 1<<20)) }},
	{"HistorySize", 2, func(ctx context.Context, tx backend.Tx) error { return ask3(tx.HistorySize(ctx, live1)) }},
	{"Effects", 4, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.Effects(ctx, []backend.WaitKey{wait1, done1}))
	}},
	{"RecordsAt", 1, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.RecordsAt(ctx, []backend.RecordKey{{Tenant: "acme", WorkflowID: "done-1", Seq: 3}}))
	}},
	{"OpenEffects", 2, func(ctx context.Context, tx backend.Tx) error { return ask(tx.OpenEffects(ctx, run1, 10)) }},
	{"LastFailure", 2, func(ctx context.Context, tx backend.Tx) error { return ask(tx.LastFailure(ctx, run1)) }},
	{"EventsByKey", 1, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.EventsByKey(ctx, []backend.EventKey{{Tenant: "acme", Source: "done", ID: "done-7"}}, true))
	}},
	{"EventsByNumber", 2, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.EventsByNumber(ctx, []int64{7, 8}, false))
	}},
	{"LiveEvents", 2, func(ctx context.Context, tx backend.Tx) error { return ask(tx.LiveEvents(ctx, lookups)) }},
	{"ClaimedEvents", 1, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.ClaimedEvents(ctx, []backend.WaitKey{{Tenant: "globex", RunID: "live-1", Effect: "w"}}))
	}},
	{"KeptCounts", 1, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.KeptCounts(ctx, []backend.RunKey{{Tenant: "acme", ID: "done-1"}}))
	}},
	{"KeptEvents", 2, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.KeptEvents(ctx, []backend.RunKey{{Tenant: "acme", ID: "done-1"}}))
	}},
	{"Waits", 1, func(ctx context.Context, tx backend.Tx) error { return ask(tx.Waits(ctx, []backend.WaitKey{wait1})) }},
	{"WaitsOf", 1, func(ctx context.Context, tx backend.Tx) error { return ask(tx.WaitsOf(ctx, []backend.RunKey{run1})) }},
	{"ParkedOf", 1, func(ctx context.Context, tx backend.Tx) error { return ask(tx.ParkedOf(ctx, []backend.RunKey{run1})) }},
	{"OpenWaits", 2, func(ctx context.Context, tx backend.Tx) error { return ask(tx.OpenWaits(ctx, lookups)) }},
	// Once in the match index, once the rows; and a walk through the live rows of the tenant, ten of each side.
	{"NearWaits", 22, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.NearWaits(ctx, backend.Near{Tenant: "acme", Type: "paid", Keys: []rendezvous.Key{lookups[0].Key, lookups[1].Key}, Most: 20, Walk: 100}))
	}},
	{"NearEvents", 12, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.NearEvents(ctx, backend.Near{Tenant: "acme", Type: "paid", Keys: []rendezvous.Key{lookups[0].Key, lookups[1].Key}, Most: 20, Walk: 100}))
	}},
	{"EffectNames", 2, func(ctx context.Context, tx backend.Tx) error { return ask(tx.EffectNames(ctx, run1, 10)) }},
	{"ListWaits", 7, func(ctx context.Context, tx backend.Tx) error {
		return ask3(tx.ListWaits(ctx, "acme", backend.WaitFilter{}, 0, five))
	}},
	{"ListWaits of a run", 1, func(ctx context.Context, tx backend.Tx) error {
		return ask3(tx.ListWaits(ctx, "acme", backend.WaitFilter{RunID: "live-9"}, 0, five))
	}},
	{"ListWaits of a type that has none", 100, func(ctx context.Context, tx backend.Tx) error {
		return ask3(tx.ListWaits(ctx, "acme", backend.WaitFilter{Type: "none"}, 0, five))
	}},
	{"ListParked of a type that has none", 100, func(ctx context.Context, tx backend.Tx) error {
		return ask3(tx.ListParked(ctx, "globex", backend.WaitFilter{Type: "none"}, backend.ParkedPosition{}, five))
	}},
	{"ListWorkflows of a type that has none", 101, func(ctx context.Context, tx backend.Tx) error {
		return ask3(tx.ListWorkflows(ctx, "acme", backend.WorkflowFilter{Types: []string{"none"}}, backend.WorkflowPosition{}, five))
	}},
	{"ListParked", 10, func(ctx context.Context, tx backend.Tx) error {
		return ask3(tx.ListParked(ctx, "globex", backend.WaitFilter{}, backend.ParkedPosition{}, five))
	}},
	{"ListQuarantined", 3, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.ListQuarantined(ctx, "globex", backend.ParkedPosition{}, 20))
	}},
	{"ListWorkflows", 10, func(ctx context.Context, tx backend.Tx) error {
		return ask3(tx.ListWorkflows(ctx, "acme", backend.WorkflowFilter{}, backend.WorkflowPosition{}, five))
	}},
	{"ListWorkflows, a later page", 11, func(ctx context.Context, tx backend.Tx) error {
		return ask3(tx.ListWorkflows(ctx, "acme", backend.WorkflowFilter{}, backend.WorkflowPosition{Set: true, StartedAt: tx.Now(), ID: "live-1"}, five))
	}},
	{"CountWorkflows up to 100", 100, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.CountWorkflows(ctx, "acme", backend.WorkflowFilter{}, 100))
	}},
	{"Abandoned", 8, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.Abandoned(ctx, nil, backend.AbandonedPosition{}, 10))
	}},
	{"DueLeases", 8, func(ctx context.Context, tx backend.Tx) error {
		return ask3(tx.DueLeases(ctx, nil, backend.AbandonedPosition{}, 10))
	}},
	{"DueLeases, a later page", 8, func(ctx context.Context, tx backend.Tx) error {
		return ask3(tx.DueLeases(ctx, nil, backend.AbandonedPosition{Set: true, Expires: tx.Now().Add(-time.Hour), Key: live1}, 10))
	}},
	// The 5,000 dead letters are among what it counts, and as many parked registrations, and the timers, and those of them that are due.
	{"Depths", 30_300, func(ctx context.Context, tx backend.Tx) error { return ask(tx.Depths(ctx, 10_000)) }},
	{"SW-35 Depths up to 10", 110, func(ctx context.Context, tx backend.Tx) error { return ask(tx.Depths(ctx, 10)) }},
	// One more than the page, once for the numbers and once for the rows.
	{"DeadLetters", 12, letters(backend.DeadWalk{})},
	{"DeadLetters, a later page", 12, letters(backend.DeadWalk{After: 22_000})},
	{"DeadLetters, the lowest first", 12, letters(backend.DeadWalk{Up: true})},
	{"DeadLetters of a type", 12, letters(backend.DeadWalk{Filter: backend.DeadFilter{Type: "paid"}})},
	{"DeadLetters of a type that has none", 0, letters(backend.DeadWalk{Filter: backend.DeadFilter{Type: "none"}, Up: true})},
	{"DeadLetters of a reason", 12, letters(backend.DeadWalk{Filter: backend.DeadFilter{Reason: "unclaimed"}})},
	{"DeadLetters of a reason that has none", 0, letters(backend.DeadWalk{Filter: backend.DeadFilter{Reason: "erased"}})},
	{"DeadLetters of a key", 12, letters(backend.DeadWalk{Filter: backend.DeadFilter{Key: &rendezvous.Key{Namespace: "order", Value: "live-1"}}})},
	{"DeadLetters of a key that has none", 0, letters(backend.DeadWalk{Filter: backend.DeadFilter{Key: &rendezvous.Key{Namespace: "order", Value: "live-2"}}, Up: true})},
	// Nothing passes: each of 5,000 letters is looked at, and no more.
	{"DeadLetters of a source", 10_000, letters(backend.DeadWalk{Filter: backend.DeadFilter{Source: "none"}})},
	{"CountDead up to 100", 101, func(ctx context.Context, tx backend.Tx) error {
		return ask3(tx.CountDead(ctx, "acme", backend.DeadFilter{}, 100))
	}},
	{"CountDead of a key and a type up to 100", 203, func(ctx context.Context, tx backend.Tx) error {
		f := backend.DeadFilter{Key: &rendezvous.Key{Namespace: "order", Value: "live-1"}, Type: "paid"}
		return ask3(tx.CountDead(ctx, "acme", f, 100))
	}},
	{"CountDead of a type up to 100", 203, func(ctx context.Context, tx backend.Tx) error {
		return ask3(tx.CountDead(ctx, "acme", backend.DeadFilter{Type: "paid"}, 100))
	}},
	{"CountDead of a reason up to 100", 203, func(ctx context.Context, tx backend.Tx) error {
		return ask3(tx.CountDead(ctx, "acme", backend.DeadFilter{Reason: "unclaimed"}, 100))
	}},
	{"EventsOfOp", 0, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.EventsOfOp(ctx, "acme", "op", true, 0, 10))
	}},
	// Five live events: once to find the tenant, once their key rows, once themselves.
	{"OverdueEvents", 60, func(ctx context.Context, tx backend.Tx) error {
		found, err := tx.OverdueEvents(ctx, backend.Overdue{Since: tx.Now(), At: tx.Now()}, 10)
		if err == nil && len(found.Due) < 5 {
			err = fmt.Errorf("%d events are due", len(found.Due))
		}
		return err
	}},
	// Once to find the tenant, and ten of them, and one more.
	{"OldLetters", 30, func(ctx context.Context, tx backend.Tx) error {
		return ask3(tx.OldLetters(ctx, tx.Now(), backend.LetterPosition{}, 10))
	}},
	{"OldLetters, a later page", 30, func(ctx context.Context, tx backend.Tx) error {
		return ask3(tx.OldLetters(ctx, tx.Now(), backend.LetterPosition{Set: true, At: tx.Now().Add(-time.Hour), Number: 22_000}, 10))
	}},
	{"Closed", 10, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.Closed(ctx, tx.Now(), backend.ClosedPosition{}, 10))
	}},
	{"Closed, a later page", 10, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.Closed(ctx, tx.Now(), backend.ClosedPosition{Set: true, Closed: tx.Now().Add(-20 * time.Hour), Key: live1}, 10))
	}},
	{"SW-27 Closed on a quiet tick", 0, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.Closed(ctx, tx.Now().Add(-48*time.Hour), backend.ClosedPosition{}, 10))
	}},
	{"RemnantOf", 0, func(ctx context.Context, tx backend.Tx) error { return ask(tx.RemnantOf(ctx, live1, run1)) }},
	{"SW-27 Remnants on a quiet tick", 0, func(ctx context.Context, tx backend.Tx) error { return ask(tx.Remnants(ctx, 10)) }},
	{"Scan of remnants", 0, scan(backend.Left, backend.Position{Tenant: "acme", ID: "done-5"})},
	// S8: nothing is old.
	{"OldLetters on a quiet tick", 2, func(ctx context.Context, tx backend.Tx) error {
		return ask3(tx.OldLetters(ctx, tx.Now().Add(-time.Hour), backend.LetterPosition{}, 10))
	}},
	{"NewEventNumbers", 0, func(ctx context.Context, tx backend.Tx) error { return ask(tx.NewEventNumbers(ctx, 10)) }},
	// Each row and its workflow; once to find the tenant, once to take, once to see whether there is more.
	{"DueParked", 40, func(ctx context.Context, tx backend.Tx) error { return ask3(tx.DueParked(ctx, nil, 10)) }},
	{"DueWoken", 50, func(ctx context.Context, tx backend.Tx) error { return ask3(tx.DueWoken(ctx, nil, 10)) }},
	{"DueParked of some shards", 40, func(ctx context.Context, tx backend.Tx) error { return ask3(tx.DueParked(ctx, []int{0, 1}, 10)) }},
	{"DueWoken of some shards", 50, func(ctx context.Context, tx backend.Tx) error { return ask3(tx.DueWoken(ctx, []int{0, 1}, 10)) }},
	// A page of ten: once for the keys, once for the rows.
	{"Scan of workflows", 20, scan(backend.Workflows, backend.Position{Tenant: "acme", ID: "done-5"})},
	{"Scan of runs", 20, scan(backend.Runs, backend.Position{Tenant: "acme", ID: "done-5"})},
	{"Scan of history", 20, scan(backend.History, backend.Position{Tenant: "acme", ID: "done-5", Number: 2})},
	{"Scan of batches", 20, scan(backend.Batches, backend.Position{Tenant: "acme", ID: "done-5", Part: "b"})},
	{"Scan of events", 20, scan(backend.Events, backend.Position{Number: 77})},
	{"Scan of waits", 20, scan(backend.Waits, backend.Position{Tenant: "acme", ID: "live-1", Part: "w"})},
	{"Scan of marks", 20, scan(backend.Marks, backend.Position{Tenant: "globex", ID: "live-1"})},
	{"About", 1, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.(backend.Target).About(ctx, backend.Events))
	}},
	{"Given", 0, func(ctx context.Context, tx backend.Tx) error { return ask(tx.(backend.Target).Given(ctx)) }},
	{"Raise", 3, func(ctx context.Context, tx backend.Tx) error {
		return tx.(backend.Target).Raise(ctx, backend.Numbers{Event: 1, Wait: 1, Take: 1})
	}},
	{"Mark", 4, func(ctx context.Context, tx backend.Tx) error {
		t, was := tx.(backend.Target), ""
		for _, mark := range []string{"first", "next", ""} {
			if err := t.Mark(ctx, was, mark); err != nil {
				return err
			}
			was = mark
		}
		return ask(t.Unfinished(ctx))
	}},
	{"Scan of timers", 20, scan(backend.Timers, backend.Position{Tenant: "acme", ID: "live-0", Part: "future-1"})},
	{"Scan of leases", 20, scan(backend.ShardLeases, backend.Position{ID: "timer", Number: 5})},
	{"UnmetEvents", 40, func(ctx context.Context, tx backend.Tx) error { return ask3(tx.UnmetEvents(ctx, tx.Now(), 0, 10)) }},
	{"LastNumbers", 0, func(ctx context.Context, tx backend.Tx) error { return ask(tx.LastNumbers(ctx)) }},
	{"SW-34 UnmetNews of all", 600, func(ctx context.Context, tx backend.Tx) error {
		return ask(tx.UnmetNews(ctx, tx.Now(), backend.News{}, 10))
	}},
	{"SW-34 UnmetNews", 20, func(ctx context.Context, tx backend.Tx) error {
		last, err := tx.LastNumbers(ctx)
		if err != nil {
			return err
		}
		lately := backend.Place{At: tx.Now()}
		return ask(tx.UnmetNews(ctx, tx.Now(), backend.News{{Number: last.Event - 3}, {Number: last.Wait - 3}, lately, lately}, 10))
	}},
}

// S8 and the issue: the cost of what the store runs follows what it answers and writes, not what is finished, whatever the statistics say.
func TestPlans(t *testing.T) {
	onFilled(t, func(t *testing.T, url string, b *postgres.Backend, seen *observer) {
		for _, q := range slices.Concat(queries, timerQueries, pushQueries) {
			t.Run(q.name, func(t *testing.T) { checkQuery(t, b, seen, q) })
		}
		t.Run("verbs", func(t *testing.T) { checkVerbs(t, b, seen) })
		t.Run("driving", func(t *testing.T) { checkDriving(t, b, seen, url) })
		t.Run("HI-6 a page near the end of a long history", func(t *testing.T) {
			execute(t, url, `INSERT INTO history SELECT 'acme', 'live-1', s, 'live-1', 'note', 1, '', 0, false, '{"name":"n"}', 'x', '', '', '', '', rdv_now(), ''
				FROM generate_series(3, 100000) s`)
			checkQuery(t, b, seen, query{"History", 501, func(ctx context.Context, tx backend.Tx) error { // one more, to see that it is not wanted
				page, err := tx.History(ctx, live1, 99_001, 0, 500, 4<<20)
				if err == nil && (len(page) != 500 || page[0].Seq != 99_001) {
					err = fmt.Errorf("%d records", len(page))
				}
				return err
			}})
		})
	})
}

func checkQuery(t *testing.T, b *postgres.Backend, seen *observer, q query) {
	t.Helper()
	plans := seen.during(t, func() {
		if err := b.Update(t.Context(), "test", q.run); err != nil {
			t.Fatal(err)
		}
	})
	if touched := judge(t, plans); len(plans) == 0 || touched > q.most {
		t.Errorf("%d plans touched %.0f rows, want at most %.0f: %+v", len(plans), touched, q.most, plans)
	}
}

// judge holds plans to the law and sums up what they touched.
func judge(t *testing.T, plans []ranPlan) (touched float64) {
	t.Helper()
	for _, p := range plans {
		p.law(t)
		touched += p.Plan.touched()
	}
	return touched
}

// checkVerbs: EV-87 and R3: the verbs of the hot path cost the same statements for 500 items as for 50, and touch some rows for each item.
func checkVerbs(t *testing.T, b *postgres.Backend, seen *observer) {
	s, err := engine.New(b, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	statements := map[string]map[int]int{}
	run := func(verb string, n int, fn func()) {
		t.Helper()
		plans := seen.during(t, fn)
		if touched, most := judge(t, plans), float64(20*n); touched > most {
			t.Errorf("%s of %d touched %.0f rows, want at most %.0f", verb, n, touched, most)
			for _, p := range plans {
				t.Logf("%6.0f %s", p.Plan.touched(), p.name())
			}
		}
		if statements[verb] == nil {
			statements[verb] = map[int]int{}
		}
		statements[verb][n] = len(plans)
	}
	known := storetest.EventsOf("initech", 0, 1)
	storetest.BufferAll(t, s, known)
	again := func(items []store.BufferItem) {
		t.Helper()
		done, err := s.BufferBatch(t.Context(), items, time.Time{})
		if err != nil || done[0].Outcome != store.BufferDuplicate {
			t.Fatal(err, done)
		}
	}
	again(known) // from here on a batch looks before it inserts
	from := 1
	for _, n := range []int{50, 500} {
		storetest.StartRuns(t, b, "initech", from, 2*n)
		free, late := storetest.EventsOf("initech", from, n), storetest.EventsOf("initech", from+n, n)
		run("BufferBatch", n, func() { storetest.BufferAll(t, s, free) })
		run("BufferBatch of duplicates", n, func() { again(free) })
		run("RegisterBatch, answered", n, func() { storetest.RegisterAll(t, s, storetest.WaitsOf("initech", from, n), store.RegisterAnswered) })
		run("RegisterBatch, waiting", n, func() { storetest.RegisterAll(t, s, storetest.WaitsOf("initech", from+n, n), store.RegisterWaiting) })
		storetest.BufferAll(t, s, late)
		run("OfferBatch", n, func() { storetest.OfferAll(t, s, late, store.OfferDelivered) })
		run("OfferBatch of delivered", n, func() { storetest.OfferAll(t, s, late, store.OfferAlreadyDelivered) })
		from += 2 * n
	}
	for verb, n := range statements {
		if n[500] != n[50] {
			t.Errorf("%s: 500 items cost %d statements, 50 cost %d", verb, n[500], n[50])
		}
		t.Logf("%s: %d statements", verb, n[500])
	}
}

// checkDriving has a run leased, parked for, collected, concluded, reclaimed and swept: the verbs beside the hot path, one item each, so each is to touch a handful
// of rows.
func checkDriving(t *testing.T, b *postgres.Backend, seen *observer, url string) {
	s, err := engine.New(b, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := s.Tenant("umbrella")
	if err != nil {
		t.Fatal(err)
	}
	run := func(verb string, fn func() error) {
		t.Helper()
		plans := seen.during(t, func() {
			if err := fn(); err != nil {
				t.Fatalf("%s: %v", verb, err)
			}
		})
		if touched := judge(t, plans); touched > 100 {
			t.Errorf("%s touched %.0f rows", verb, touched)
			for _, p := range plans {
				t.Logf("%6.0f %s", p.Plan.touched(), p.name())
			}
		}
	}
	ctx, now := t.Context(), time.Time{}
	const id = "run-000000"
	storetest.StartRuns(t, b, "umbrella", 0, 1)
	wait := storetest.WaitsOf("umbrella", 0, 1)[0].Registration
	events := storetest.EventsOf("umbrella", 0, 3)
	for i := range events {
		events[i].Event.Keys = storetest.KeysOf(0)
	}
	var lease store.Lease
	run("AcquireLease", func() (err error) { lease, err = tenant.AcquireLease(ctx, id, "pod", time.Minute, "a"); return err })
	wait.Epoch = lease.Epoch
	run("RegisterWait", func() error { return ask(tenant.RegisterWait(ctx, wait, now)) })
	storetest.BufferAll(t, s, events[:1])
	run("OfferBatch that parks", func() error { storetest.OfferAll(t, s, events[:1], store.OfferParked); return nil })
	run("DeliverParked of a leased run", func() error {
		return ask(s.DeliverParked(ctx, []store.WaitRef{{Tenant: "umbrella", WaitID: wait.WaitID}}, now))
	})
	run("Collect", func() error { return ask(tenant.Collect(ctx, id, lease.Epoch)) })
	wait.Effect = "second"
	run("RegisterWait", func() error { return ask(tenant.RegisterWait(ctx, wait, now)) })
	storetest.BufferAll(t, s, events[1:2])
	run("OfferBatch that parks", func() error { storetest.OfferAll(t, s, events[1:2], store.OfferParked); return nil })
	run("Unsubscribe that releases", func() error { return ask(tenant.Unsubscribe(ctx, wait.WaitID, lease.Epoch, "", now)) })
	run("RenewLease", func() error { return ask(tenant.RenewLease(ctx, id, "pod", lease.Epoch, 2*time.Second)) })
	advancer(t, url)(time.Minute)
	run("ReclaimRun", func() error {
		rows, _, err := s.DueLeases(ctx, 100, "")
		if err != nil {
			return err
		}
		var items []store.ReclaimItem
		for _, r := range rows {
			items = append(items, store.ReclaimItem{Tenant: r.Tenant, WorkflowID: r.WorkflowID, Epoch: r.Epoch, ExpiresAt: r.ExpiresAt})
		}
		return ask(s.ReclaimRun(ctx, items))
	})
	run("TakeWoken", func() error { return ask(s.TakeWoken(ctx, 5)) })
	run("TakeParked", func() error { return ask(s.TakeParked(ctx, 5, 0)) })
	run("TakeUnmet", func() error { return ask3(s.TakeUnmet(ctx, 2*time.Second, 5, 0, "")) })
	run("PauseRun", func() error { return ask(tenant.PauseRun(ctx, id, nil, "", now)) })
	run("ResumeRun", func() error { return ask(tenant.ResumeRun(ctx, id, nil, "", now)) })
	run("ErasePayload", func() error { return ask(tenant.ErasePayload(ctx, events[1].Event.EventID, nil, now)) })
	letter := []rendezvous.EventID{events[2].Event.EventID}
	storetest.BufferAll(t, s, events[2:])
	operator := rendezvous.Operator{Actor: "kim", Basis: rendezvous.BasisAsserted}
	run("SweepUnclaimed", func() error { return ask(tenant.SweepUnclaimed(ctx, time.Now().Add(time.Hour), now, "", 5)) })
	run("RequeueDeadLetters", func() error {
		return ask(tenant.RequeueDeadLetters(ctx, store.Selection{Events: letter}, store.Requeue{}, operator, "op", now))
	})
	run("EventsOfOp", func() error {
		return ask(tenant.RequeueDeadLetters(ctx, store.Selection{Filter: &store.DeadFilter{}, Bound: 5}, store.Requeue{}, operator, "op", now))
	})
	run("SweepUnclaimed", func() error { return ask(tenant.SweepUnclaimed(ctx, time.Now().Add(time.Hour), now, "", 5)) })
	run("PurgeDeadLetters", func() error {
		return ask(tenant.PurgeDeadLetters(ctx, store.Selection{Events: letter}, operator, "op2", now))
	})
	run("PruneWorkflows", func() error { return ask(s.PruneWorkflows(ctx, time.Now().Add(-22*time.Hour), 3, "")) })
	run("PruneRecords", func() error { return ask(s.PruneRecords(ctx, 5)) })
	run("PruneRecords, the last", func() error { return ask(s.PruneRecords(ctx, 50)) })
	run("CancelRun now", func() error { return ask(tenant.CancelRun(ctx, id, nil, "", true, now)) })
}
