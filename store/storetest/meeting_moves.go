package storetest

import (
	"fmt"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// The moves of a random stream: each calls one verb, compares its answer with what the model says of it, and moves the model on.

// move makes one move in one of the tenants.
func (s *stream) move() {
	s.t.Helper()
	m := s.tenants[s.rand.IntN(len(s.tenants))]
	moves := []struct {
		weight int
		make   func(m *modelTenant)
	}{
		{22, s.buffers},
		{14, s.registers},
		{6, s.registersBatch},
		{5, s.appends},
		{6, s.subscribes},
		{14, s.offers},
		{7, s.claimsFor},
		{7, s.matches},
		{9, s.delivers},
		{4, s.redelivers},
		{5, s.drives},
		{3, s.releases},
		{3, s.withdraws},
		{1, s.concludes},
	}
	total := 0
	for _, v := range moves {
		total += v.weight
	}
	n := s.rand.IntN(total)
	for _, v := range moves {
		if n -= v.weight; n < 0 {
			v.make(m)
			return
		}
	}
}

// oneOf is any of all, the zero value when there are none.
func oneOf[T any](s *stream, all []T) (one T, ok bool) {
	if len(all) == 0 {
		return one, false
	}
	return all[s.rand.IntN(len(all))], true
}

// keys are up to that many of the pool, some of them twice.
func (s *stream) keys(most int) []rendezvous.Key {
	var keys []rendezvous.Key
	for range s.rand.IntN(most + 1) {
		keys = append(keys, s.pool[s.rand.IntN(len(s.pool))])
	}
	return keys
}

func (s *stream) kind() string { return []string{"paid", "paid", "refunded"}[s.rand.IntN(3)] }

func (s *stream) source() string { return []string{"shop", "bank"}[s.rand.IntN(2)] }

func (s *stream) newEvent(m *modelTenant) *modelEvent {
	e := EventOf(s.kind(), s.keys(4)...)
	e.Source = s.source()
	if s.rand.IntN(8) == 0 {
		e.Payload = nil
	}
	return &modelEvent{Event: e, state: rendezvous.EventLive}
}

func (s *stream) newWait(r *modelFlow) *modelWait {
	r.waits++
	w := r.Wait(fmt.Sprint("w", r.waits), s.kind(), s.keys(3)...)
	if s.rand.IntN(5) == 0 {
		w.From = s.source()
	}
	return &modelWait{Wait: w, flow: r}
}

// running is any unsealed run.
func (s *stream) running(m *modelTenant) *modelFlow {
	var all []*modelFlow
	for _, r := range m.flows {
		if !r.sealed {
			all = append(all, r)
		}
	}
	r, ok := oneOf(s, all)
	if !ok {
		s.fail("no run is left")
	}
	return r
}

// adds makes a stored event the last of its tenant's.
func (s *stream) adds(m *modelTenant, e *modelEvent, number int64) {
	if number <= m.number {
		s.fail("%s has number %d, the event before it %d", e.ID, number, m.number)
	}
	m.number, m.events = number, append(m.events, e)
}

func (s *stream) buffers(m *modelTenant) {
	var items []store.BufferItem
	var events []*modelEvent
	var owners []*modelTenant
	for range 1 + s.rand.IntN(3) {
		e := s.newEvent(m)
		events, owners = append(events, e), append(owners, m)
		items = append(items, store.BufferItem{Tenant: m.f.Name(), Event: e.Event})
		m = s.tenants[s.rand.IntN(len(s.tenants))]
	}
	for i, o := range must(s.h.Store.BufferBatch(ctx, items, now))(s.t, "buffer a batch") {
		s.say("%s: buffer %s %s from %s, keys %v", owners[i].f.Name(), events[i].Type, events[i].ID, events[i].Source, events[i].Keys)
		if o.Outcome != store.BufferNew {
			s.fail("buffer: %s (%v)", o.Outcome, o.Err)
		}
		s.adds(owners[i], events[i], o.Number)
	}
}

// pairsOf judges pairs that the store says it made now: each must be due, and none may pass over a lease unless its driver asked for it.
func (s *stream) pairsOf(offers []store.Offer, due map[*modelEvent]*modelWait, asked ...*modelFlow) {
	s.t.Helper()
	for _, o := range offers {
		m := s.tenant(o.Tenant)
		e, w := m.event(s, o.Event), m.wait(s, o.Wait)
		if e.wait == w && e.state != rendezvous.EventLive {
			continue // told twice
		}
		if due[e] != w {
			s.fail("%s: the store gave %s to %s of %s; the model gives it to %s", o.Tenant, e.ID, w.Effect, w.RunID, whose(due[e]))
		}
		s.moved(m, e, w, o.Outcome, asked...)
	}
}

func whose(w *modelWait) string {
	if w == nil {
		return "nobody"
	}
	return w.Effect + " of " + w.RunID
}

// moved moves a pair on as its outcome says: delivered to a free run, or for a driver that asked; parked for a leased one.
func (s *stream) moved(m *modelTenant, e *modelEvent, w *modelWait, o store.OfferOutcome, asked ...*modelFlow) {
	s.t.Helper()
	mine := false
	for _, r := range asked {
		mine = mine || r == w.flow
	}
	switch {
	case o == store.OfferDelivered && (w.flow.driver == nil || mine):
		m.answers(e, w)
	case o == store.OfferParked && w.flow.driver != nil:
		m.claims(e, w)
	default:
		s.fail("%s for %s of %s: %s, leased: %v", m.f.Name(), w.Effect, w.RunID, o, w.flow.driver != nil)
	}
}

// allDue are the due pairs of both tenants.
func (s *stream) allDue() map[*modelEvent]*modelWait {
	all := map[*modelEvent]*modelWait{}
	for _, m := range s.tenants {
		for e, w := range m.due() {
			all[e] = w
		}
	}
	return all
}

func eventOf(due map[*modelEvent]*modelWait, w *modelWait) *modelEvent {
	for e, of := range due {
		if of == w {
			return e
		}
	}
	return nil
}

// registered judges the answers to registrations that the model has among its waits already.
func (s *stream) registered(waits []*modelWait, out []store.Registered) {
	s.t.Helper()
	due := s.allDue()
	var asked []*modelFlow
	for _, w := range waits {
		asked = append(asked, w.flow)
	}
	var also []store.Offer
	for i, w := range waits {
		m := s.tenant(w.flow.F.Name())
		e := eventOf(due, w)
		want := store.RegisterWaiting
		if e != nil {
			want = store.RegisterAnswered
		}
		if out[i].Err != nil || out[i].Outcome != want {
			s.fail("register %s of %s: %s (%v), want %s", w.Effect, w.RunID, out[i].Outcome, out[i].Err, want)
		}
		if e != nil {
			WantAnswerOf(s.t, *out[i].Answer, e.Event)
			m.answers(e, w)
		}
		also = append(also, out[i].Also...)
	}
	s.pairsOf(also, due, asked...)
}

func (s *stream) sayWait(verb string, w *modelWait) {
	s.say("%s: %s %s of %s (epoch %d): %s from %q, keys %v", w.flow.F.Name(), verb, w.Effect, w.RunID, w.flow.epoch(), w.Type, w.From, w.Keys)
}

func (s *stream) registers(m *modelTenant) {
	w := s.newWait(s.running(m))
	s.sayWait("register", w)
	out, err := m.f.RegisterWait(ctx, store.Registration{Wait: w.Wait, Epoch: w.flow.epoch()}, now)
	out.Err = err
	m.waits = append(m.waits, w)
	s.registered([]*modelWait{w}, []store.Registered{out})
}

func (s *stream) registersBatch(m *modelTenant) {
	var items []store.RegisterItem
	var waits []*modelWait
	for range 2 + s.rand.IntN(3) {
		w := s.newWait(s.running(m))
		s.sayWait("register in a batch", w)
		items = append(items, store.RegisterItem{Tenant: m.f.Name(), Registration: store.Registration{Wait: w.Wait, Epoch: w.flow.epoch()}})
		waits, m.waits = append(waits, w), append(m.waits, w)
		m = s.tenants[s.rand.IntN(len(s.tenants))]
	}
	s.registered(waits, must(s.h.Store.RegisterBatch(ctx, items, now))(s.t, "register a batch"))
}

func (s *stream) appends(m *modelTenant) {
	r := s.running(m)
	a := store.Append{RunID: r.ID, Epoch: r.epoch(), ExpectedSeq: r.Head(), BatchID: ID("batch")}
	var waits []*modelWait
	for range 1 + s.rand.IntN(3) {
		w := s.newWait(r)
		s.sayWait("append", w)
		waits, m.waits = append(waits, w), append(m.waits, w)
		a.Records = append(a.Records, r.Waited(w.Wait))
	}
	due := s.allDue()
	out := must(m.f.Tenant.Append(ctx, a, now))(s.t, "append")
	answers := map[string]rendezvous.Record{}
	for _, answer := range out.Answers {
		answers[answer.Effect] = answer.Record
	}
	for _, w := range waits {
		rec, answered := answers[w.Effect]
		if e := eventOf(due, w); answered != (e != nil) {
			s.fail("append %s of %s: answered %v, want %v", w.Effect, w.RunID, answered, e != nil)
		} else if e != nil {
			WantAnswerOf(s.t, rec, e.Event)
			m.answers(e, w)
		}
	}
	s.followed(due, r) // pairs that the second look made beside: the answer does not list them
}

// followed takes over from the store which other due pairs a verb made that does not list them.
func (s *stream) followed(due map[*modelEvent]*modelWait, asked ...*modelFlow) {
	s.t.Helper()
	for _, m := range s.tenants {
		for _, e := range m.events {
			w := due[e]
			if w == nil || e.state != rendezvous.EventLive {
				continue
			}
			switch stored := m.f.Stored(e.EventID); stored.State {
			case rendezvous.EventLive:
			case rendezvous.EventConsumed:
				s.moved(m, e, w, store.OfferDelivered, asked...)
			default:
				s.moved(m, e, w, store.OfferParked)
			}
		}
	}
}

func (s *stream) subscribes(m *modelTenant) {
	w := s.newWait(s.running(m))
	s.sayWait("subscribe", w)
	out := must(m.f.Subscribe(ctx, store.Registration{Wait: w.Wait, Epoch: w.flow.epoch()}, now))(s.t, "subscribe")
	if out.Closed != "" {
		s.fail("subscribe: closed %s", out.Closed)
	}
	m.waits = append(m.waits, w)
}

// offers offers events and waits of any standing, some of them twice.
func (s *stream) offers(m *modelTenant) {
	var items []store.OfferItem
	for range 1 + s.rand.IntN(5) {
		m := s.tenants[s.rand.IntN(len(s.tenants))]
		if e, ok := oneOf(s, m.events); ok && s.rand.IntN(3) > 0 {
			items = append(items, m.eventItem(e))
		}
		if w, ok := oneOf(s, m.waits); ok && s.rand.IntN(3) == 0 {
			items = append(items, m.waitItem(w))
		}
		if len(items) > 0 && s.rand.IntN(8) == 0 {
			items = append(items, items[0])
		}
	}
	if len(items) > 0 {
		s.offer(items)
	}
}

func (s *stream) offer(items []store.OfferItem) {
	s.t.Helper()
	due := s.allDue()
	out := must(s.h.Store.OfferBatch(ctx, items, now))(s.t, "offer")
	for _, item := range items {
		if item.Event != nil {
			s.say("%s: offer %s", item.Tenant, item.Event.ID)
		} else {
			s.say("%s: offer %s of %s", item.Tenant, item.Wait.Effect, item.Wait.RunID)
		}
	}
	for i, o := range out.Items {
		m := s.tenant(items[i].Tenant)
		if items[i].Event != nil {
			s.offeredEvent(m, m.event(s, *items[i].Event), o, due)
		} else {
			s.offeredWait(m, m.wait(s, *items[i].Wait), o, due)
		}
	}
	s.pairsOf(out.Also, due)
}

// offeredEvent judges the outcome of an event.
func (s *stream) offeredEvent(m *modelTenant, e *modelEvent, o store.Offer, due map[*modelEvent]*modelWait) {
	s.t.Helper()
	w := e.wait
	if e.state == rendezvous.EventLive {
		w = due[e]
	}
	switch {
	case e.state == rendezvous.EventDead:
		s.want(o, store.OfferDead, e.ID)
	case w == nil:
		s.want(o, store.OfferNoWaiter, e.ID)
	case o.Wait != w.WaitID:
		s.fail("offer of %s: the store names %v, the model %s", e.ID, o.Wait, whose(w))
	case e.state == rendezvous.EventConsumed:
		s.want(o, store.OfferAlreadyDelivered, e.ID)
	default:
		s.moved(m, e, w, o.Outcome)
	}
}

// offeredWait judges the outcome of a wait.
func (s *stream) offeredWait(m *modelTenant, w *modelWait, o store.Offer, due map[*modelEvent]*modelWait) {
	s.t.Helper()
	e := w.event
	if w.open() {
		e = eventOf(due, w)
	}
	switch {
	case w.ended != "":
		s.want(o, store.OfferClosed, w.Effect)
		if o.Closed != w.ended {
			s.fail("offer of %s: closed %s, want %s", w.Effect, o.Closed, w.ended)
		}
	case e == nil:
		s.want(o, store.OfferNoEvent, w.Effect)
	case o.Event != e.EventID:
		s.fail("offer of %s of %s: the store gave it %s, the model %s", w.Effect, w.RunID, o.Event.ID, e.ID)
	default:
		s.moved(m, e, w, o.Outcome)
	}
}

func (s *stream) want(o store.Offer, want store.OfferOutcome, of string) {
	s.t.Helper()
	if o.Outcome != want {
		s.fail("offer of %s: %s (%v), want %s", of, o.Outcome, o.Err, want)
	}
}

// claimsFor claims for a wait: its own event again, or its oldest unless an older wait meets that too.
func (s *stream) claimsFor(m *modelTenant) {
	w, ok := oneOf(s, m.waits)
	if !ok {
		return
	}
	s.say("%s: claim for %s of %s", m.f.Name(), w.Effect, w.RunID)
	got := must(m.f.ClaimFor(ctx, w.WaitID, now))(s.t, "claim")
	e := w.event
	if w.open() {
		if e = m.firstEvent(w, nil, nil); e != nil && m.firstWait(e, nil, nil) != w {
			e = nil // contested
		}
	}
	switch {
	case w.ended != "":
		if got.Event != nil || got.Closed != w.ended {
			s.fail("claim for %s: closed %q, want %s", w.Effect, got.Closed, w.ended)
		}
	case e == nil:
		if got.Event != nil || got.Closed != "" {
			s.fail("claim for %s found %v (closed %q), want nothing", w.Effect, got.Event, got.Closed)
		}
	case got.Event == nil || got.Event.EventID != e.EventID || got.Again != w.parked():
		s.fail("claim for %s: %+v, want %s, again: %v", w.Effect, got, e.ID, w.parked())
	default:
		SamePayload(s.t, got.Event.Payload, e.Payload)
		m.claims(e, w)
	}
}

// matches matches an event: its lowest wait, unless an older event meets that too.
func (s *stream) matches(m *modelTenant) {
	e, ok := oneOf(s, m.events)
	if !ok {
		return
	}
	s.say("%s: match %s", m.f.Name(), e.ID)
	got := must(m.f.MatchWaiter(ctx, e.EventID, now))(s.t, "match")
	wanted := func(want store.MatchOutcome) {
		if got.Outcome != want {
			s.fail("match of %s: %+v, want %s", e.ID, got, want)
		}
	}
	switch e.state {
	case rendezvous.EventClaimed:
		wanted(store.MatchClaimed)
		return
	case rendezvous.EventConsumed:
		wanted(store.MatchConsumed)
		return
	case rendezvous.EventDead:
		wanted(store.MatchDead)
		return
	}
	w := m.firstWait(e, nil, nil)
	if w == nil {
		wanted(store.MatchNoWaiter)
		return
	}
	if first := m.firstEvent(w, nil, nil); first != e {
		wanted(store.MatchOlder)
		eq(s.t, "older event", got.Older, first.EventID)
		return
	}
	wanted(store.MatchMatched)
	eq(s.t, "wait matched", got.Wait.WaitID, w.WaitID)
	m.claims(e, w)
}

// delivers gives an event, a new one or any other, to a run, sealed ones too.
func (s *stream) delivers(m *modelTenant) {
	r, _ := oneOf(s, m.flows)
	keep, known := s.rand.IntN(3) > 0, false
	e := s.newEvent(m)
	if old, ok := oneOf(s, m.events); ok && s.rand.IntN(3) == 0 {
		e, known = old, true
		keep = keep || e.target != ""
	}
	s.say("%s: deliver %s %s from %s, keys %v, to %s (keep: %v)", m.f.Name(), e.Type, e.ID, e.Source, e.Keys, r.ID, keep)
	got, err := m.f.DeliverTo(ctx, r.ID, e.Event, keep, now)
	wanted := func(want store.DeliveryOutcome, again bool) {
		s.t.Helper()
		if err != nil || got.Outcome != want || got.Again != again {
			s.fail("deliver %s: %+v (%v), want %s, again: %v", e.ID, got, err, want, again)
		}
	}
	targeted := func() {
		if e.target = r.ID; !known {
			s.adds(m, e, got.Number)
		}
	}
	switch {
	case e.state == rendezvous.EventClaimed && e.wait.RunID == r.ID:
		wanted(store.DeliveryMatched, true)
	case e.state != rendezvous.EventLive, e.target != "" && e.target != r.ID:
		wanted(store.DeliveryDuplicate, false)
	case r.sealed && !keep:
		code(s.t, "deliver to a sealed run", err, rendezvous.CodeSealed)
	case r.sealed:
		wanted(store.DeliveryDead, false)
		targeted()
		e.state = rendezvous.EventDead
	default:
		as := *e
		as.target = r.ID
		w := m.firstWait(&as, nil, nil)
		switch {
		case w != nil:
			wanted(store.DeliveryMatched, false)
			eq(s.t, "wait of the delivery", got.Effect, w.Effect)
			targeted()
			m.claims(e, w)
		case keep:
			wanted(store.DeliveryKept, false)
			targeted()
		default:
			wanted(store.DeliveryNotWaiting, false)
		}
	}
}

// redelivers records what a parked wait holds, if its run is free.
func (s *stream) redelivers(m *modelTenant) {
	var parked []*modelWait
	for _, w := range m.waits {
		if w.parked() {
			parked = append(parked, w)
		}
	}
	w, ok := oneOf(s, parked)
	if !ok {
		return
	}
	s.say("%s: deliver the parked %s of %s", m.f.Name(), w.Effect, w.RunID)
	s.moved(m, w.event, w, w.flow.Redeliver(w.Effect).Outcome)
}

func (s *stream) drives(m *modelTenant) {
	r := s.running(m)
	if r.driver == nil {
		s.say("%s: drive %s", m.f.Name(), r.ID)
		r.driver = r.DriveFor(rendezvous.MaxLease)
	}
}

func (s *stream) releases(m *modelTenant) {
	if r := s.running(m); r.driver != nil {
		s.release(m, r)
	}
}

func (s *stream) release(m *modelTenant, r *modelFlow) {
	s.say("%s: release %s", m.f.Name(), r.ID)
	if r.driver.Release().Outcome != store.SuspendReleased {
		s.fail("the lease of %s was not held", r.ID)
	}
	r.driver = nil
	m.records(r)
}

func (s *stream) withdraws(m *modelTenant) {
	w, ok := oneOf(s, m.waits)
	if !ok || w.flow.sealed {
		return
	}
	s.say("%s: withdraw %s of %s", m.f.Name(), w.Effect, w.RunID)
	got := must(m.f.Unsubscribe(ctx, w.WaitID, w.flow.epoch(), "", now))(s.t, "withdraw")
	want := store.WithdrawWithdrawn
	if w.ended != "" {
		want = store.WithdrawOutcome(w.ended)
	}
	eq(s.t, "outcome of withdrawing "+w.Effect, got.Outcome, want)
	if w.ended == "" {
		m.ends(w, rendezvous.ClosedWithdrawn)
	}
}

// concludes ends a run and starts another.
func (s *stream) concludes(m *modelTenant) {
	r := s.running(m)
	s.say("%s: conclude %s", m.f.Name(), r.ID)
	c := r.Conclusion(rendezvous.StatusCompleted)
	c.Epoch = r.epoch()
	must(m.f.Tenant.Conclude(ctx, c, now))(s.t, "conclude")
	r.sealed, r.driver = true, nil
	for _, w := range m.waits {
		if w.flow == r && w.ended == "" {
			m.ends(w, rendezvous.ClosedEnded)
		}
	}
	for _, e := range m.events {
		if e.state == rendezvous.EventLive && e.target == r.ID {
			e.state = rendezvous.EventDead
		}
	}
	m.begin(len(m.flows))
}
