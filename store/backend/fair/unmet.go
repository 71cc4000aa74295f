package fair

import (
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Unmet is how a backend of indexes looks for unmet events: how each of its looks is asked for.
type Unmet struct {
	Rows int // that one look goes over
	// Firsts are the first rows of tenants that became matchable behind a mark, up to Before, the earliest first, at most as many. waits says of which kind.
	Firsts func(waits bool, after backend.Mark, most int) ([]KeyRow, error)
	// Fetch answers new rows of ranges; those that have not met are Near and Held. Of a wait, Event is the event it met.
	Fetch func(waits bool, ranges []Range) ([]KeyRow, error)
	// Slice answers where the unmet events of the slice behind a place stand, in its order, and its end: nil for the last slice.
	Slice func(after backend.KeyPlace, rows int) (met []backend.KeyPlace, end *backend.KeyPlace, err error)
}

// Look makes the looks of one page and chooses limit of the events they found, fairly by tenant and in the order of the looks. It answers their numbers, rising.
// A look goes on where its first event got no place: whatever comes of those that got one, the next page gets further.
func (u Unmet) Look(l backend.UnmetLook, limit int) (numbers []int64, page backend.UnmetPage, err error) {
	events, pastEvents, err := u.news(false, l, l.Events, limit)
	if err != nil {
		return nil, page, err
	}
	waits, pastWaits, err := u.news(true, l, l.Waits, limit)
	if err != nil {
		return nil, page, err
	}
	slice, end, err := u.Slice(l.Slice, u.Rows)
	if err != nil {
		return nil, page, err
	}
	var c chosen
	for _, r := range events {
		c.add(r.Tenant, r.Number)
	}
	for _, r := range waits {
		c.add(r.Tenant, r.Event)
	}
	for _, p := range slice {
		c.add(p.Tenant, p.Number)
	}
	c.choose(limit)
	if i := slices.IndexFunc(events, func(r KeyRow) bool { return !c.placed[r.Number] }); i >= 0 {
		pastEvents = earlier(pastEvents, justBefore(events[i]))
	}
	if i := slices.IndexFunc(waits, func(r KeyRow) bool { return !c.placed[r.Event] }); i >= 0 {
		pastWaits = earlier(pastWaits, justBefore(waits[i]))
	}
	if i := slices.IndexFunc(slice, func(p backend.KeyPlace) bool { return !c.placed[p.Number] }); i >= 0 {
		end = &slice[i]
		end.Number--
	}
	page.Events, page.Waits, page.Around = markOf(l, pastEvents), markOf(l, pastWaits), end == nil
	if end != nil {
		page.Slice = *end
	}
	page.More = c.left || pastEvents != nil || pastWaits != nil
	return c.numbers(), page, nil
}

// news looks at events or waits that became matchable behind a mark.
func (u Unmet) news(waits bool, l backend.UnmetLook, after backend.Mark, limit int) (met []KeyRow, stop *KeyRow, err error) {
	if after.At.After(l.Before) {
		return nil, nil, nil
	}
	tenants := max(u.Rows/50, 1) // as many as get some way in one look
	firsts, err := u.Firsts(waits, after, tenants+1)
	if err != nil || len(firsts) == 0 {
		return nil, nil, err
	}
	start := KeyRow{Late: l.Before.UnixMicro() - after.At.UnixMicro(), Number: after.Number}
	met, stop, err = News(firsts, tenants, start, limit, u.Rows, func(ranges []Range) ([]KeyRow, error) { return u.Fetch(waits, ranges) })
	slices.SortFunc(met, Before)
	return met, stop, err
}

// markOf is a place of news as a mark; none is behind all.
func markOf(l backend.UnmetLook, r *KeyRow) backend.Mark {
	if r == nil {
		return backend.Mark{}
	}
	return backend.Mark{At: time.UnixMicro(l.Before.UnixMicro() - r.Late).UTC(), Number: r.Number}
}

// chosen gives places to events by tenant, in the order in which they are added.
type chosen struct {
	tenants []string
	own     map[string][]int64
	seen    map[int64]bool
	placed  map[int64]bool
	left    bool
}

func (c *chosen) add(tenant string, number int64) {
	if c.own == nil {
		c.own, c.seen = map[string][]int64{}, map[int64]bool{}
	}
	if c.seen[number] {
		return
	}
	c.seen[number] = true
	if c.own[tenant] == nil {
		c.tenants = append(c.tenants, tenant)
	}
	c.own[tenant] = append(c.own[tenant], number)
}

// choose places limit of them: each tenant's share first, then what comes first.
func (c *chosen) choose(limit int) {
	c.placed = map[int64]bool{}
	if len(c.tenants) == 0 {
		return
	}
	for _, most := range [...]int{max(limit/len(c.tenants), 1), limit} {
		for _, t := range c.tenants {
			for _, n := range c.own[t][:min(most, len(c.own[t]))] {
				if len(c.placed) < limit {
					c.placed[n] = true
				}
			}
		}
	}
	c.left = len(c.placed) < len(c.seen)
}

func (c *chosen) numbers() []int64 {
	var all []int64
	for n := range c.placed {
		all = append(all, n)
	}
	slices.Sort(all)
	return all
}
