package backend

import (
	"math"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// DeadFilter chooses dead letters; zero parts mean any. Intervals are inclusive on both sides.
type DeadFilter struct {
	Reason         rendezvous.DeadReason
	Type, Source   string
	Key            *rendezvous.Key
	ReceivedAfter  time.Time
	ReceivedBefore time.Time
	DeadAfter      time.Time
	DeadBefore     time.Time
}

// DeadWalk is a walk over dead letters, from page to page.
type DeadWalk struct {
	Filter DeadFilter
	After  int64 // the number where the page before ended, 0 to begin
	Up     bool  // lowest number first; else highest, which are the newest
}

// DeadIndex is an order of dead letters: which part of a filter an index answers. The others are looked at in the rows.
type DeadIndex string

// The indexes of dead letters, all by number.
const (
	DeadAll      DeadIndex = ""
	DeadByKey    DeadIndex = "key"
	DeadByType   DeadIndex = "type"
	DeadByReason DeadIndex = "reason"
)

// Index is the one that is to answer the filter, and whether it answers all of it.
func (f *DeadFilter) Index() (by DeadIndex, whole bool) {
	rest := *f
	switch {
	case f.Key != nil:
		by, rest.Key = DeadByKey, nil
	case f.Type != "":
		by, rest.Type = DeadByType, ""
	case f.Reason != "":
		by, rest.Reason = DeadByReason, ""
	}
	return by, rest == DeadFilter{}
}

// Sought is what that index is asked for: of a key its namespace and value.
func (f *DeadFilter) Sought() (by DeadIndex, what, value string) {
	switch by, _ = f.Index(); by {
	case DeadByType:
		what = f.Type
	case DeadByReason:
		what = string(f.Reason)
	case DeadByKey:
		what, value = f.Key.Namespace, f.Key.Value
	}
	return by, what, value
}

// Passes reports whether lists show the event under that filter. Of a row that does not decode, the keys are not known: an index had them.
func (f *DeadFilter) Passes(e *Event) bool {
	in := func(t, after, before time.Time) bool {
		return (after.IsZero() || !t.Before(after)) && (before.IsZero() || !t.After(before))
	}
	return (e.Corrupt != nil || e.Dead()) && !e.Purged && (f.Reason == "" || f.Reason == e.DeadReason) && (f.Type == "" || f.Type == e.Type) &&
		(f.Source == "" || f.Source == e.Source) && (f.Key == nil || e.Corrupt != nil || slices.Contains(e.Keys, *f.Key)) &&
		in(e.ReceivedAt, f.ReceivedAfter, f.ReceivedBefore) && in(e.DeadAt, f.DeadAfter, f.DeadBefore)
}

const (
	deadLook  = 5000 // letters that one page looks at, about
	deadChunk = 200  // letters that are looked at together first where the index answers only a part of the filter; then twice as many each time
)

// Page makes a page of a walk. numbers answers the next numbers that the filter's index has behind one, at most n, and read the rows
// of numbers, where the index answers a part of the filter of those that pass at least.
func (w DeadWalk) Page(
	limit int, numbers func(by DeadIndex, after int64, n int) ([]int64, error), read func(numbers []int64) (map[int64]*Event, error),
) (rows []*Event, next int64, err error) {
	by, whole := w.Filter.Index()
	after, looked := w.After, 0
	if !w.Up && after == 0 {
		after = math.MaxInt64
	}
	for chunk := deadChunk; ; chunk *= 2 {
		n := limit + 1 - len(rows) // one more tells whether this is the last page
		if !whole {
			n = max(n, min(chunk, deadLook-looked))
		}
		found, err := numbers(by, after, n)
		if err != nil {
			return nil, 0, err
		}
		events, err := read(found)
		if err != nil {
			return nil, 0, err
		}
		for _, number := range found {
			if e := events[number]; e == nil || !w.Filter.Passes(e) {
				continue
			}
			if len(rows) == limit {
				return rows, rows[limit-1].Number, nil
			}
			rows = append(rows, events[number])
		}
		if len(found) < n {
			return rows, 0, nil
		}
		after = found[n-1]
		if looked += n; looked >= deadLook {
			return rows, after, nil
		}
	}
}

// DeadCount is a count of dead letters in the order of their numbers, made up to one more than is asked for: that one says that there are more, and is not counted.
type DeadCount struct {
	most    int
	counts  map[rendezvous.DeadReason]int
	total   int
	highest int64                 // number
	last    rendezvous.DeadReason // of the letter with that number
}

// NewDeadCount is a count up to most, 0 being all.
func NewDeadCount(most int) *DeadCount {
	return &DeadCount{most: most, counts: map[rendezvous.DeadReason]int{}}
}

// Limit is how many letters are to be looked at.
func (c *DeadCount) Limit() int64 {
	if c.most == 0 || c.most == math.MaxInt {
		return math.MaxInt64
	}
	return int64(c.most) + 1
}

// Add counts the letters of one reason; highest is the greatest number of theirs.
func (c *DeadCount) Add(reason rendezvous.DeadReason, n int, highest int64) {
	c.counts[reason] = n
	if c.total += n; highest > c.highest {
		c.highest, c.last = highest, reason
	}
}

// Counts is what was counted, and whether there are more.
func (c *DeadCount) Counts() (counts map[rendezvous.DeadReason]int, more bool) {
	if c.most == 0 || c.total <= c.most {
		return c.counts, false
	}
	if c.counts[c.last]--; c.counts[c.last] == 0 {
		delete(c.counts, c.last)
	}
	return c.counts, true
}

// Overdue says which live events a sweep is about: those with an own expiry ≤ At, and those without one whose LiveSince is ≤ Since. A zero Since is none.
type Overdue struct {
	Tenant    string // "" for all
	Since, At time.Time
}

// Late is for how many microseconds an event is due; of a row that does not decode it is what can be said.
func (o Overdue) Late(e *Event) int64 {
	if e.ExpiresAt.IsZero() {
		return o.Since.UnixMicro() - e.LiveSince.UnixMicro()
	}
	return o.At.UnixMicro() - e.ExpiresAt.UnixMicro()
}

// OverdueEvents is a page of what a sweep is about.
type OverdueEvents struct {
	Due []*Event
	// Near are events without an expiry of their own that come before the last of Due in the order and share a match key and type with an open wait: they may
	// meet it. A targeted one is near when its run has an open wait of its type. They do not count; one under a running take is in somebody's hands and
	// left out. At most MostNear.
	Near []*Event
	More bool // more was due than the page has, or looked at
}

// Bounds of one page.
const (
	MostNear   = rendezvous.MaxBatchItems // near events that it names
	MostLooked = 20_000                   // events that it looks at
)
