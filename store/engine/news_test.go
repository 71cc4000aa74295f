package engine

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// SW-34: whenever looks are made, each row whose transaction takes no longer than the overlap from drawing its number to the end of its grace is looked at, and
// marks do not pile up.
func TestLooksAtTheNewsMissNothing(t *testing.T) {
	type row struct {
		number int64
		seen   time.Duration // from when a look finds it
		found  bool
	}
	rapid.Check(t, func(t *rapid.T) {
		const overlap = 10 * time.Second
		start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		var c newsCursor
		var rows []*row
		now, last := time.Duration(0), int64(firstNumbers)
		look := func() {
			c.begin(start.Add(now), backend.Numbers{Event: last, Wait: last}, overlap)
			for _, r := range rows {
				r.found = r.found || r.seen <= now && r.number > c.From[backend.NewEvents].Number
			}
			if len(c.Marks) > 7 {
				t.Fatalf("%d marks", len(c.Marks))
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, 5 * time.Second, 20 * time.Second, time.Hour}).Draw(t, "pause")
			if rapid.Bool().Draw(t, "a row") {
				last++
				rows = append(rows, &row{number: last, seen: now + time.Duration(rapid.Int64Range(0, int64(overlap)).Draw(t, "later"))})
				continue
			}
			look()
		}
		now += overlap
		look()
		for _, r := range rows {
			if !r.found {
				t.Fatalf("row %d, there from %s on, was never looked at", r.number, r.seen)
			}
		}
	})
}

// SW-34: in regular ticks a look goes over what came in the last few ticks, not more.
func TestALookAtTheNewsGoesOverAFewTicks(t *testing.T) {
	const tick, overlap = 5 * time.Second, 12 * time.Second
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var c newsCursor
	for n := range int64(100) {
		c.begin(now, backend.Numbers{Event: firstNumbers + n}, overlap)
		if back := firstNumbers + n - c.From[backend.NewEvents].Number; n > 6 && back > 4 || len(c.Marks) > 6 {
			t.Fatalf("tick %d looks %d ticks back, with %d marks", n, back, len(c.Marks))
		}
		now = now.Add(tick)
	}
}
