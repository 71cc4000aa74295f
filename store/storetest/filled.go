package storetest

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/engine"
)

// Filled is what a filled store has, all of acme: runs wait-<i> with an open wait each (effect "w", type "paid", key order/wait-<i>); live events alone-<i> of
// source "shop" and that type, each under a key of its own that nobody waits for; dead letters letter-<i> like them; finished workflows done-<i>, one for five
// consumed events.
type Filled struct{ Waits, Live, Letters, Consumed int }

// FilledSize is RDV_FILLED waits, or 10,000; as many live events, a tenth of dead letters, five times as many consumed events.
func FilledSize(tb testing.TB) Filled {
	tb.Helper()
	n := 10_000
	if text := os.Getenv("RDV_FILLED"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 100 {
			tb.Fatalf("RDV_FILLED is %q, want a number from 100", text)
		}
	}
	return Filled{Waits: n, Live: n, Letters: n / 10, Consumed: 5 * n}
}

// samples is how often what takes a moment is measured.
const samples = 20

// BenchmarkFilled measures a filled store: what passes cost that find nothing, how fast they repair, and what operators read. Each is run [samples] times whatever
// b.N is: run it with -benchtime=1x.
func BenchmarkFilled(b *testing.B, x backend.Backend) {
	s, err := engine.New(x, engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	t, err := s.Tenant("acme")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("quiet", func(b *testing.B) { quietTicks(b, s) })
	b.Run("depths", func(b *testing.B) {
		moments(b, "all", func() error { return ignore(s.Depths(ctx)) })
	})
	b.Run("explain", func(b *testing.B) { explains(b, t) })
	b.Run("list", func(b *testing.B) { firstPages(b, t) })
	b.Run("repair", func(b *testing.B) { repairs(b, s, x) })
}

func ignore[T any](_ T, err error) error { return err }

// moments measures one call, and reports the median and the longest.
func moments(b *testing.B, name string, call func() error) {
	b.Run(name, func(b *testing.B) {
		took := make([]time.Duration, samples)
		for i := range took {
			before := b.Elapsed()
			if err := call(); err != nil {
				b.Fatal(err)
			}
			took[i] = b.Elapsed() - before
		}
		slices.Sort(took)
		ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(ms(took[samples/2]), "p50-ms")
		b.ReportMetric(ms(took[samples-1]), "max-ms")
	})
}

// quietTicks measures a tick of the sweeper that finds nothing, the pages of its passes alone, and the pass unmet once around, as after a start.
func quietTicks(b *testing.B, s store.Store) {
	cursor := ""
	unmet := func() error {
		taken, next, err := s.TakeUnmet(ctx, grace, sweepPage, sweepHold, cursor)
		if len(taken.Rows) > 0 {
			b.Errorf("%d unmet events", len(taken.Rows))
		}
		cursor = next
		return err
	}
	b.Run("unmet once around", func(b *testing.B) {
		pages := 0
		for more := true; more; more = cursor != "" {
			if err := unmet(); err != nil {
				b.Fatal(err)
			}
			pages++
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(b.Elapsed().Milliseconds()), "ms")
		b.ReportMetric(float64(pages), "pages")
	})
	lately := ""
	passes := map[string]func() error{
		"news": func() error {
			taken, next, err := s.TakeNews(ctx, grace, sweepPage, sweepHold, lately)
			if len(taken.Rows) > 0 {
				b.Errorf("%d unmet events that are new", len(taken.Rows))
			}
			lately = next
			return err
		},
		"leases": func() error { _, _, err := s.DueLeases(ctx, 200, ""); return err },
		"parked": func() error { return ignore(s.TakeParked(ctx, sweepPage, sweepHold)) },
		"unmet":  unmet,
		"woken":  func() error { return ignore(s.TakeWoken(ctx, sweepPage)) },
		"unclaimed": func() error {
			at, err := s.Now(ctx)
			if err != nil {
				return err
			}
			swept, err := s.SweepUnclaimed(ctx, at.Add(-1000*time.Hour), now, "", sweepPage)
			if len(swept.Retired) > 0 {
				b.Errorf("%d events retired", len(swept.Retired))
			}
			return err
		},
	}
	order := []string{"leases", "parked", "news", "unmet", "woken", "unclaimed"}
	for _, name := range order {
		moments(b, name, passes[name])
	}
	moments(b, "tick", func() error { // of these, and the depths
		for _, name := range order {
			if err := passes[name](); err != nil {
				return err
			}
		}
		return ignore(s.Depths(ctx))
	})
}

func explains(b *testing.B, t store.Tenant) {
	wait := rendezvous.WaitID{RunID: "wait-7", Effect: "w"}
	id := func(name string) rendezvous.EventID { return rendezvous.EventID{Source: "shop", ID: name} }
	verdict := func(want rendezvous.Verdict, x store.Explanation, err error) error {
		if x.Verdict != want {
			b.Errorf("verdict %s, want %s", x.Verdict, want)
		}
		return err
	}
	moments(b, "event that nobody waits for", func() error {
		x, err := t.ExplainEvent(ctx, id("alone-7"))
		return verdict(rendezvous.VerdictNoWait, x, err)
	})
	moments(b, "dead letter", func() error {
		x, err := t.ExplainEvent(ctx, id("letter-7"))
		return verdict(rendezvous.VerdictDead, x, err)
	})
	moments(b, "wait that nothing meets", func() error {
		x, err := t.ExplainWait(ctx, wait)
		return verdict(rendezvous.VerdictNoEvent, x, err)
	})
	moments(b, "pair", func() error { return ignore(t.ExplainPair(ctx, id("alone-7"), wait)) })
}

// firstPages measures the first page of every list, and the counts.
func firstPages(b *testing.B, t store.Tenant) {
	key, waiting := K("order", "letter-7"), K("order", "wait-7")
	workflows := func(f store.WorkflowFilter) func() error {
		return func() error { return ignore(t.QueryWorkflows(ctx, f, 0, "")) }
	}
	lists := map[string]func() error{
		"waits":                  func() error { return ignore(t.Waiting(ctx, store.WaitFilter{}, 0, "")) },
		"waits of a type":        func() error { return ignore(t.Waiting(ctx, store.WaitFilter{Type: "paid"}, 0, "")) },
		"waits of no type":       func() error { return ignore(t.Waiting(ctx, store.WaitFilter{Type: "none"}, 0, "")) },
		"waits of a key":         func() error { return ignore(t.Waiting(ctx, store.WaitFilter{Key: &waiting}, 0, "")) },
		"waits in no state":      func() error { return ignore(t.Waiting(ctx, store.WaitFilter{State: rendezvous.WaitParked}, 0, "")) },
		"parked waits":           func() error { return ignore(t.ParkedWaits(ctx, store.WaitFilter{}, 0, "")) },
		"quarantined waits":      func() error { return ignore(t.QuarantinedWaits(ctx, 0, "")) },
		"workflows":              workflows(store.WorkflowFilter{}),
		"workflows running":      workflows(store.WorkflowFilter{Statuses: []rendezvous.Status{rendezvous.StatusRunning}}),
		"workflows failed":       workflows(store.WorkflowFilter{Statuses: []rendezvous.Status{rendezvous.StatusFailed}}),
		"workflows of no type":   workflows(store.WorkflowFilter{Types: []string{"none"}}),
		"workflows of no queue":  workflows(store.WorkflowFilter{Queues: []string{"none"}}),
		"workflows of no prefix": workflows(store.WorkflowFilter{Prefix: "none"}),
		"letters":                func() error { return ignore(t.DeadLetters(ctx, store.DeadFilter{}, 0, "", false)) },
		"letters of a key":       func() error { return ignore(t.DeadLetters(ctx, store.DeadFilter{Key: &key}, 0, "", false)) },
		"letters of a type":      func() error { return ignore(t.DeadLetters(ctx, store.DeadFilter{Type: "paid"}, 0, "", false)) },
		"letters of no source": func() error {
			return ignore(t.DeadLetters(ctx, store.DeadFilter{Source: "none"}, 0, "", false))
		},
		"count of workflows to 10,000": func() error {
			_, _, err := t.CountWorkflows(ctx, store.WorkflowFilter{}, 10_000)
			return err
		},
		"count of failed workflows to 10,000": func() error {
			_, _, err := t.CountWorkflows(ctx, store.WorkflowFilter{Statuses: []rendezvous.Status{rendezvous.StatusFailed}}, 10_000)
			return err
		},
		"count of letters to 10,000": func() error { return ignore(t.CountDeadLetters(ctx, store.DeadFilter{}, 10_000, true)) },
	}
	for _, name := range slices.Sorted(maps.Keys(lists)) {
		moments(b, name, lists[name])
	}
}

// rate measures work that answers how many rows it did, page by page.
func rate(b *testing.B, name string, prepare func(b *testing.B), page func() (int, error)) {
	b.Run(name, func(b *testing.B) {
		prepare(b)
		b.ResetTimer()
		done := 0
		for range samples {
			n, err := page()
			if err != nil {
				b.Fatal(err)
			}
			done += n
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(done)/b.Elapsed().Seconds(), "rows/s")
		b.ReportMetric(float64(b.Elapsed().Milliseconds())/samples, "ms/page")
		b.ReportMetric(float64(done)/samples, "rows/page")
	})
}

// repairs measures what the passes do with full pages.
func repairs(b *testing.B, s store.Store, x backend.Backend) {
	owing := func(how Owed) func(b *testing.B) {
		return func(b *testing.B) { Owe(b, x, ID("owed"), samples*sweepPage, how) }
	}
	rate(b, "woken", owing(OwedNotice), func() (int, error) {
		taken, err := s.TakeWoken(ctx, sweepPage)
		return len(taken.Rows), err
	})
	rate(b, "parked, taken and delivered", owing(OwedParked), func() (int, error) {
		taken, err := s.TakeParked(ctx, sweepPage, sweepHold)
		if err != nil || len(taken.Rows) == 0 {
			return 0, err
		}
		refs := make([]store.WaitRef, len(taken.Rows))
		for i, w := range taken.Rows {
			refs[i] = store.WaitRef{Tenant: w.Tenant, WaitID: w.WaitID}
		}
		return len(refs), ignore(s.DeliverParked(ctx, refs, now))
	})
	moments(b, "news, a notice lost now", func() error { // the walk through all would come to it after the stock
		_, lately, err := s.TakeNews(ctx, time.Millisecond, sweepPage, sweepHold, "")
		if err != nil {
			return err
		}
		Owe(b, x, ID("lost"), 1, OwedApart)
		for range 1000 { // within its grace of a millisecond
			taken, next, err := s.TakeNews(ctx, time.Millisecond, sweepPage, sweepHold, lately)
			if err != nil {
				return err
			}
			if lately = next; len(taken.Rows) == 1 {
				lost := taken.Rows[0]
				return ignore(s.OfferBatch(ctx, []store.OfferItem{{Tenant: lost.Tenant, Event: &lost.Event.EventID}}, now))
			}
		}
		return errors.New("it is not found")
	})
	cursor := ""
	var pages [][]store.UnmetPair
	take := func() (int, error) {
		taken, next, err := s.TakeUnmet(ctx, time.Millisecond, sweepPage, sweepHold, cursor)
		if cursor = next; len(taken.Rows) > 0 {
			pages = append(pages, taken.Rows)
		}
		return len(taken.Rows), err
	}
	offer := func() (int, error) {
		if len(pages) == 0 {
			return 0, nil
		}
		items := make([]store.OfferItem, len(pages[0]))
		for i, p := range pages[0] {
			items[i] = store.OfferItem{Tenant: p.Tenant, Event: &p.Event.EventID}
		}
		pages = pages[1:]
		return len(items), ignore(s.OfferBatch(ctx, items, now))
	}
	rate(b, "unmet, taken", func(b *testing.B) {
		Owe(b, x, ID("owed"), (samples+1)*sweepPage, OwedApart)
		for len(pages) == 0 { // they are the youngest: the slices before them, and the page that comes to them, are no part of it
			if _, err := take(); err != nil {
				b.Fatal(err)
			}
		}
	}, take)
	rate(b, "unmet, offered", func(b *testing.B) {
		if _, err := offer(); err != nil { // that page
			b.Fatal(err)
		}
	}, offer)
	for _, limit := range []int{sweepPage, 5000} {
		rate(b, "unclaimed, "+strconv.Itoa(limit)+" a page", func(*testing.B) {}, func() (int, error) {
			swept, err := s.SweepUnclaimed(ctx, farAhead, now, "", limit)
			return len(swept.Retired), err
		})
	}
}
