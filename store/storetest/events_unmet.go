package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// eventsUnmet are the cases of the pass that repairs lost MATCH notices, page by page (SW-20, SW-21, SW-25, SW-34).
var eventsUnmet = []Case{
	{Name: "SW-20 a notice lost after each origin is repaired by the page after its grace", Run: unmetOrigins},
	{Name: "SW-21 a healthy store hands out nothing and writes nothing", Run: unmetHealthy},
	{Name: "SW-34 behind a large stock what is new is repaired by the next page", Run: unmetNews},
	{Name: "SW-25 a tenant with many unmet events does not keep another's from the first page", Run: unmetFair},
	{Name: "S1 events that only seem unmet do not keep the pass where it is", Run: unmetSeeming},
	{Name: "a walk goes on from any of its cursors, and from no other", Run: unmetCursors},
}

// unmetTick is how often the pass runs.
const unmetTick = 5 * time.Second

// unmetPass is the pass of one sweeper, with its cursor.
type unmetPass struct {
	h      *Harness
	t      *testing.T
	cursor string
}

// around walks until all has been looked at.
func (p *unmetPass) around() {
	p.t.Helper()
	for pages := 0; !p.page().Around; pages++ {
		if pages == 100 {
			p.t.Fatal("the slices never come around")
		}
	}
}

// page is one page, its events offered.
func (p *unmetPass) page() store.Taken[store.UnmetPair] {
	p.t.Helper()
	page, next, err := p.h.Store.TakeUnmet(ctx, grace, sweepPage, sweepHold, p.cursor)
	done(p.t, "take unmet pairs", err)
	p.cursor = next
	var n store.Notices
	for _, row := range page.Rows {
		n.Events = append(n.Events, row.Event)
	}
	p.h.Offer(p.t, n)
	return page
}

func unmetOrigins(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := &unmetPass{h: h, t: t}
	p.around()
	key := func() rendezvous.Key { return K("order", ID("order")) }
	for origin, lose := range map[string]func() (*Flow, rendezvous.Event){
		"buffer": func() (*Flow, rendezvous.Event) {
			r, k := f.Start(), key()
			r.Waits("w", "paid", k)
			return r, f.PutNew("paid", K("x", "1"), k)
		},
		"registration": func() (*Flow, rendezvous.Event) {
			k := key()
			e := f.PutNew("paid", k)
			h.Advance(time.Hour) // long after its own news
			r := f.Start()
			r.Subscribes("w", "paid", K("x", "2"), k)
			return r, e
		},
		"registration without keys": func() (*Flow, rendezvous.Event) {
			r, e := f.Start(), EventOf("paid", key())
			r.Kept(e)
			h.Advance(time.Hour)
			r.Subscribes("w", "paid")
			return r, e
		},
		"release": func() (*Flow, rendezvous.Event) {
			d, k := f.Start().Drive(), key()
			d.Waits("w", "paid", k)
			e := EventOf("paid", k)
			f.Send(e)
			h.Advance(time.Hour)
			r := f.Start()
			r.Waits("w", "paid", k)
			d.Flow.Revoke()
			return r, e
		},
		"requeue": func() (*Flow, rendezvous.Event) {
			k := key()
			e := f.Kill(EventOf("paid", k))
			r := f.Start()
			r.Waits("w", "paid", k)
			h.Advance(time.Hour)
			f.RequeueAll(e.EventID)
			return r, e
		},
		"erasure": func() (*Flow, rendezvous.Event) {
			d, k := f.Start().Drive(), key()
			d.Waits("w", "paid", k)
			held := EventOf("paid", k)
			f.Send(held)
			h.Advance(time.Hour)
			e := f.PutNew("paid", k)
			h.Advance(time.Hour)
			f.Erase(held.EventID)
			return d.Flow, e
		},
	} {
		r, e := lose()
		p.page() // too early
		h.Advance(grace + unmetTick)
		p.page()
		if r.Answer("w") == nil { // its run was leased
			eq(t, "state after the page behind a lost notice of "+origin, f.Stored(e.EventID).State, rendezvous.EventClaimed)
		} else {
			r.WantAnswered("w", e)
		}
	}
}

func unmetHealthy(t *testing.T, h *Harness) {
	f := h.Fix(t)
	alone, expired := f.PutNew("paid", K("order", "1")), EventOf("paid", K("order", "2"))
	expired.ExpiresAt = h.Now(t)
	f.Put(expired)
	f.Start().Waits("w", "paid", K("order", "2"))
	f.Start().Drive().Parked("held")
	before := f.Stored(alone.EventID)
	p := &unmetPass{h: h, t: t}
	for range 5 {
		h.Advance(unmetTick)
		page := p.page()
		eq(t, "page", page, store.Taken[store.UnmetPair]{Around: true})
	}
	eq(t, "stored", f.Stored(alone.EventID), before)
	f.WantLive(expired)
}

func unmetNews(t *testing.T, h *Harness) {
	f := h.Fix(t)
	const stock = 6000
	BufferAll(t, h.Store, EventsOf(f.Name(), 0, stock))
	p := &unmetPass{h: h, t: t}
	h.Advance(time.Minute)
	p.around()
	for range 5 { // wherever its slices are
		r, late := f.Start(), f.Start()
		r.Waits("w", "paid", K("order", r.ID))
		e := f.PutNew("paid", K("order", r.ID))
		old := f.PutNew("paid", K("order", late.ID))
		h.Advance(time.Minute)
		p.page()
		r.WantAnswered("w", e)
		late.Subscribes("w", "paid", K("order", late.ID))
		h.Advance(grace + unmetTick)
		p.page()
		late.WantAnswered("w", old)
	}
}

func unmetFair(t *testing.T, h *Harness) {
	const many = 700
	f, other := h.FixOf(t, "acme"), h.FixOf(t, "globex")
	run := f.Start()
	var waits []store.RegisterItem
	for i := range many {
		w := run.Wait(fmt.Sprint("w", i), "order.paid", KeysOf(i)...)
		waits = append(waits, store.RegisterItem{Tenant: f.Name(), Registration: store.Registration{Wait: w}})
	}
	RegisterAll(t, h.Store, waits, store.RegisterWaiting)
	r := other.Start()
	r.Waits("w", "paid", K("order", "1"))
	p := &unmetPass{h: h, t: t}
	p.around()
	h.Advance(time.Minute)
	BufferAll(t, h.Store, EventsOf(f.Name(), 0, many))
	e := other.PutNew("paid", K("order", "1"))
	h.Advance(grace + unmetTick)
	first := p.page()
	eq(t, "first page", []any{len(first.Rows), first.Saturated}, []any{sweepPage, true})
	r.WantAnswered("w", e)
	p.around()
	eq(t, "waits left", len(run.Rows()), 0)
}

// unmetSeeming: events that share key and type with a wait of another sender are more than a page.
func unmetSeeming(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	w := r.Wait("w", "order.paid", K("all", "1"))
	w.From = "bank"
	eq(t, "registering", r.Register(w).Outcome, store.RegisterWaiting)
	events := EventsOf(f.Name(), 0, sweepPage+100)
	for i := range events {
		events[i].Event.Keys = append(events[i].Event.Keys, K("all", "1"))
	}
	BufferAll(t, h.Store, events)
	late := f.Start()
	late.Waits("w", "paid", K("order", "zzz"))
	e := f.PutNew("paid", K("order", "zzz"))
	h.Advance(time.Minute)
	p := &unmetPass{h: h, t: t}
	p.around()
	late.WantAnswered("w", e)
	r.WantOpen("w")
}

func unmetCursors(t *testing.T, h *Harness) {
	f := h.Fix(t)
	_, first, err := h.Store.TakeUnmet(ctx, grace, 0, 0, "")
	done(t, "first page", err)
	r := f.Start()
	r.Waits("w", "paid", K("order", "1"))
	e := f.PutNew("paid", K("order", "1"))
	h.Advance(time.Minute)
	for range 3 { // a repeat hands out what the page before did not settle, and no take is given twice
		page, _, err := h.Store.TakeUnmet(ctx, grace, 0, time.Minute, first)
		done(t, "page", err)
		eq(t, "rows", len(page.Rows), 1)
		eq(t, "event", page.Rows[0].Event.EventID, e.EventID)
		again, _, err := h.Store.TakeUnmet(ctx, grace, 0, time.Minute, first)
		done(t, "page again", err)
		eq(t, "rows again", len(again.Rows), 0)
		h.Advance(11 * time.Minute)
	}
	list := f.Kill(EventOf("lost"))
	_ = f.Kill(EventOf("lost"))
	letters := must(f.DeadLetters(ctx, store.DeadFilter{}, 1, "", false))(t, "list")
	for what, cursor := range map[string]string{
		"damaged": strings.ToUpper(first), "of another verb": letters.NextCursor, "no cursor": "0", "a number": "17", "of " + list.ID: list.ID,
	} {
		_, _, err := h.Store.TakeUnmet(ctx, grace, 0, 0, cursor)
		code(t, "a cursor "+what, err, rendezvous.CodeInvalid, "field", "cursor")
	}
}
