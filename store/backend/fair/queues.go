package fair

import (
	"cmp"
	"slices"

	"github.com/rendezvous-events/rendezvous"
)

// Range is a part of a tenant's queue of events that are due: those with an expiry of their own, or those without, each in the order of an index by instant and
// number. Late is the instant as how long ago it was when it fell due, in microseconds: the larger, the earlier.
type Range struct {
	Tenant string
	Own    bool
	After  *KeyRow // the last key row seen; nil where the range begins
	Most   int     // key rows
}

// KeyRow is a key row of a due event. An event's key rows stand together.
type KeyRow struct {
	Late   int64
	Number int64
	Near   bool // it shares its key and type with an open wait
	Held   bool // it does, and somebody has the event in hand
}

// Queues takes due events fairly by tenant, through their key rows.
type Queues struct {
	Tenants []string // that have any, the longest due first
	Limit   int      // events to take
	Near    int      // near events to name
	Look    int      // events to look at
	// Fetch answers the next key rows of each range, in its order.
	Fetch func(ranges []Range) ([][]KeyRow, error)

	queues    []*queue
	taken     []KeyRow
	near      []int64
	looked    int
	passedBy  bool // a near one got no name
	abandoned bool // there was more to look at
}

// queue is a tenant's two ranges, merged.
type queue [2]part

// part is what is known of a range: events in its order, at one row each.
type part struct {
	Range
	events []KeyRow
	done   bool // nothing comes behind events
}

// Take chooses the events: their numbers, the longest due first and of equals the lowest; the near ones that come before; and whether more was due.
// With T ≤ Limit tenants each gets its ⌊Limit/T⌋ places in a first round, the rest goes to the longest due; with more, each place is another tenant's.
func (q *Queues) Take() (numbers, near []int64, more bool, err error) {
	if len(q.Tenants) == 0 || q.Limit <= 0 {
		return nil, nil, len(q.Tenants) > 0, nil
	}
	over := max(len(q.Tenants)-q.Limit, 0)
	for _, t := range q.Tenants[:len(q.Tenants)-over] {
		q.queues = append(q.queues, &queue{{Range: Range{Tenant: t}}, {Range: Range{Tenant: t, Own: true}}})
	}
	if err := q.shares(q.Limit / len(q.queues)); err != nil {
		return nil, nil, false, err
	}
	left, err := q.rest()
	if err != nil {
		return nil, nil, false, err
	}
	slices.SortFunc(q.taken, before)
	for _, r := range q.taken {
		numbers = append(numbers, r.Number)
	}
	return numbers, q.near, over > 0 || left || q.passedBy || q.abandoned, nil
}

// before is the order of a page.
func before(a, b KeyRow) int {
	return cmp.Or(cmp.Compare(b.Late, a.Late), cmp.Compare(a.Number, b.Number))
}

// shares gives each tenant as many places.
func (q *Queues) shares(share int) error {
	open := slices.Clone(q.queues)
	got := map[*queue]int{}
	for len(open) > 0 && q.room() {
		if err := q.fill(open, share); err != nil {
			return err
		}
		open = slices.DeleteFunc(open, func(o *queue) bool {
			for o.ready() && q.room() {
				head := o.head()
				if head == nil || got[o] == share {
					return true
				}
				if q.pop(head) {
					got[o]++
				}
			}
			return false
		})
	}
	return nil
}

// rest gives what places are left to the longest due. It reports whether more was due.
func (q *Queues) rest() (more bool, err error) {
	for q.room() {
		if err := q.fill(q.queues, (q.Limit-len(q.taken))/len(q.queues)+1); err != nil {
			return false, err
		}
		for q.room() && !slices.ContainsFunc(q.queues, func(o *queue) bool { return !o.ready() }) {
			head := q.longest()
			if head == nil {
				return false, nil
			}
			if !head.events[0].Near && len(q.taken) == q.Limit {
				return true, nil
			}
			q.pop(head)
		}
	}
	return false, nil
}

// longest is the part with the event that is due the longest, nil where none is left.
func (q *Queues) longest() (longest *part) {
	for _, o := range q.queues {
		if head := o.head(); head != nil && (longest == nil || before(head.events[0], longest.events[0]) < 0) {
			longest = head
		}
	}
	return longest
}

// room reports whether the page may look at more.
func (q *Queues) room() bool {
	q.abandoned = q.looked >= q.Look
	return !q.abandoned
}

// pop moves on by one event, and reports whether it was taken: near ones are only named.
func (q *Queues) pop(p *part) bool {
	e := p.events[0]
	p.events = p.events[1:]
	q.looked++
	switch {
	case !e.Near:
		q.taken = append(q.taken, e)
		return true
	case e.Held:
	case len(q.near) < q.Near:
		q.near = append(q.near, e.Number)
	default:
		q.passedBy = true
	}
	return false
}

// fill fetches for every part that has run empty, about most events each.
func (q *Queues) fill(queues []*queue, most int) error {
	var parts []*part
	var ranges []Range
	for _, o := range queues {
		for i := range o {
			p := &o[i]
			if len(p.events) > 0 || p.done {
				continue
			}
			p.Most = max(most, 2*p.Most) + rendezvous.MaxKeys + 1 // an event may have been cut off, and is read again
			parts, ranges = append(parts, p), append(ranges, p.Range)
		}
	}
	if len(ranges) == 0 {
		return nil
	}
	rows, err := q.Fetch(ranges)
	if err != nil {
		return err
	}
	for i, p := range parts {
		p.add(rows[i])
	}
	return nil
}

// add takes key rows up, those of an event as one.
func (p *part) add(rows []KeyRow) {
	p.done = len(rows) < p.Most
	for _, r := range rows {
		if n := len(p.events); n > 0 && p.events[n-1].Number == r.Number {
			p.events[n-1].Near, p.events[n-1].Held = p.events[n-1].Near || r.Near, p.events[n-1].Held || r.Held
			continue
		}
		p.events = append(p.events, r)
	}
	if n := len(p.events); !p.done && n > 1 {
		p.events = p.events[:n-1]
	}
	if n := len(p.events); n > 0 {
		last := p.events[n-1]
		p.After = &last
	}
}

// ready reports whether the queue's next event is known, or that it has none.
func (o *queue) ready() bool {
	return !slices.ContainsFunc(o[:], func(p part) bool { return len(p.events) == 0 && !p.done })
}

// head is the part with the next event, nil at the end.
func (o *queue) head() *part {
	var head *part
	for i := range o {
		if p := &o[i]; len(p.events) > 0 && (head == nil || before(p.events[0], head.events[0]) < 0) {
			head = p
		}
	}
	return head
}
