package difftest

import (
	"cmp"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// meeting are events and waits of one tenant that all meet each other: one type, one key. So who comes first is by number alone (O1, O2).
type meeting struct {
	events []met // by number
	waits  []met // by number
}

// met is one side of a pair: an event, or a wait.
type met struct {
	number int64
	id     string // an event's
	run    string // a wait's
	effect string
	stand  string
	with   string // the event's id, or the wait's effect
}

// How an event and a wait stand.
const (
	isOpen     = "open" // an event: live
	isHeld     = "held" // an event: claimed
	isAnswered = "answered"
	isGone     = "gone" // an event: dead; a wait: withdrawn
)

// driven is the run that is leased all the while, at epoch 1: what it waits for is parked.
const driven = "driven"

// meetingLaw is events.md section 3 for them.
func meetingLaw(m meeting, call Step, got any, err error) (bool, meeting) {
	switch c := call.(type) {
	case Decided:
		allowed, _ := meetingLaw(m, c.Step, got, err)
		return allowed, m
	case Older:
		return m.stoodBefore(c, got.(store.Match)), m
	}
	m = meeting{slices.Clone(m.events), slices.Clone(m.waits)}
	switch c := call.(type) {
	case Buffer:
		return m.buffers(c.Event.ID, got, err), m
	case Subscribe:
		return m.subscribes(c.Wait, got, err), m
	case ClaimFor:
		return m.claims(c, got, err), m
	case MatchWaiter:
		return m.matches(c.ID, got, err), m
	case OfferBatch:
		return m.offers(c.Items[0].ID, got, err), m
	case Made:
		return m.makes(got.([]store.Offer)), m
	case DeliverParked:
		return m.delivers(c.Items[0], got, err), m
	case Unsubscribe:
		return m.withdraws(c.Effect, got, err), m
	case ErasePayload:
		return m.erases(c.ID, got, err), m
	}
	return false, m
}

func (m *meeting) event(id string) *met {
	if i := slices.IndexFunc(m.events, func(e met) bool { return e.id == id }); i >= 0 {
		return &m.events[i]
	}
	return nil
}

func (m *meeting) wait(effect string) *met {
	if i := slices.IndexFunc(m.waits, func(w met) bool { return w.effect == effect }); i >= 0 {
		return &m.waits[i]
	}
	return nil
}

// standing are those that stand so, by number.
func standing(all []met, how string) []*met {
	var found []*met
	for i := range all {
		if all[i].stand == how {
			found = append(found, &all[i])
		}
	}
	return found
}

// join puts a row in its place. Numbers are drawn before a commit, so a later commit may have a lower one.
func join(all []met, row met) []met {
	i, _ := slices.BinarySearchFunc(all, row, func(a, b met) int { return int(a.number - b.number) })
	return slices.Insert(all, i, row)
}

func pair(e, w *met, how string) { e.stand, e.with, w.stand, w.with = how, w.effect, how, e.id }

func (m *meeting) buffers(id string, got any, err error) bool {
	b, _ := got.(store.Buffered)
	if e := m.event(id); e != nil {
		return err == nil && b.Outcome == store.BufferDuplicate && b.State == stateOf(e)
	}
	m.events = join(m.events, met{number: b.Number, id: id, stand: isOpen})
	return err == nil && b.Outcome == store.BufferNew
}

func stateOf(e *met) rendezvous.EventState {
	return map[string]rendezvous.EventState{
		isOpen: rendezvous.EventLive, isHeld: rendezvous.EventClaimed, isAnswered: rendezvous.EventConsumed, isGone: rendezvous.EventDead,
	}[e.stand]
}

func (m *meeting) subscribes(wait Wait, got any, err error) bool {
	s, _ := got.(store.Subscribed)
	w := m.wait(wait.Effect)
	switch {
	case w == nil:
		m.waits = join(m.waits, met{number: s.Number, run: wait.Run, effect: wait.Effect, stand: isOpen})
		return err == nil && s.Closed == ""
	case w.stand == isAnswered || w.stand == isGone:
		return err == nil && s.Closed == closingOf(w)
	}
	return err == nil && s.Closed == "" && s.Number == w.number
}

func closingOf(w *met) rendezvous.Closing {
	if w.stand == isAnswered {
		return rendezvous.ClosedAnswered
	}
	return rendezvous.ClosedWithdrawn
}

// claims: the wait's own event again, or the oldest one unless an older wait meets that too (EV-28).
func (m *meeting) claims(c ClaimFor, got any, err error) bool {
	claim, _ := got.(store.Claim)
	w := m.wait(c.Effect)
	if w == nil {
		return is(err, rendezvous.CodeNotFound)
	}
	if err != nil {
		return false
	}
	switch w.stand {
	case isAnswered, isGone:
		return claim.Closed == closingOf(w) && claim.Event == nil
	case isHeld:
		return claim.Event != nil && claim.Event.ID == w.with && claim.Again
	}
	live := standing(m.events, isOpen)
	if len(live) == 0 || standing(m.waits, isOpen)[0] != w {
		return claim.Event == nil && claim.Closed == ""
	}
	pair(live[0], w, isHeld)
	return claim.Event != nil && claim.Event.ID == live[0].id && !claim.Again
}

// matches: the event's lowest wait, unless an older event meets that too (EV-34).
func (m *meeting) matches(id string, got any, err error) bool {
	match, _ := got.(store.Match)
	e := m.event(id)
	if e == nil {
		return is(err, rendezvous.CodeNotFound)
	}
	if err != nil {
		return false
	}
	if e.stand != isOpen {
		return match.Outcome == store.MatchOutcome(stateOf(e)) && match.Effect == e.with
	}
	live, waiting := standing(m.events, isOpen), standing(m.waits, isOpen)
	switch {
	case len(waiting) == 0:
		return match.Outcome == store.MatchNoWaiter
	case live[0] != e:
		return match.Outcome == store.MatchOlder && match.Older.ID == live[0].id
	}
	pair(e, waiting[0], isHeld)
	return match.Outcome == store.MatchMatched && match.Wait != nil && match.Wait.Effect == waiting[0].effect
}

// offers: the event, with every older one before it (EV-55).
func (m *meeting) offers(id string, got any, err error) bool {
	out, _ := got.(store.Offered)
	if err != nil {
		return false
	}
	o, e := out.Items[0], m.event(id)
	switch {
	case e == nil:
		return o.Outcome == store.OfferUnknown
	case e.stand == isGone:
		return o.Outcome == store.OfferDead
	case e.stand == isAnswered:
		return o.Outcome == store.OfferAlreadyDelivered && o.Wait.Effect == e.with
	case e.stand == isHeld:
		return m.gives(o, e, m.wait(e.with))
	}
	if o.Outcome != store.OfferNoWaiter {
		return m.pairs(append(slices.Clone(out.Also), o))
	}
	return m.pairs(slices.Clone(out.Also)) && slices.Index(standing(m.events, isOpen), e) >= len(standing(m.waits, isOpen))
}

// pairs are made by the number of their events, each of the oldest event and the lowest wait that are left.
func (m *meeting) pairs(made []store.Offer) bool {
	if slices.ContainsFunc(made, func(o store.Offer) bool { return m.event(o.Event.ID) == nil }) {
		return false
	}
	slices.SortFunc(made, func(a, b store.Offer) int { return cmp.Compare(m.event(a.Event.ID).number, m.event(b.Event.ID).number) })
	for _, o := range made {
		live, waiting := standing(m.events, isOpen), standing(m.waits, isOpen)
		if len(live) == 0 || len(waiting) == 0 || !m.gives(o, live[0], waiting[0]) {
			return false
		}
	}
	return true
}

// Decided is when a call that made pairs decided: who comes first is among the rows committed then (O4).
type Decided struct{ Step }

// Made is when it committed: both sides of each pair are open still, or were a pair before.
type Made struct{ Step }

// Older is a match that found an older event in its way: the wait and that event were read one after the other, and the caller is only told whom to offer
// first.
type Older struct{ MatchWaiter }

func (m *meeting) stoodBefore(c Older, got store.Match) bool {
	e, o := m.event(c.ID), m.event(got.Older.ID)
	return e != nil && o != nil && e.stand == isOpen && o.stand == isOpen && o.number < e.number
}

// apart tells the moments of such calls apart, for stores that let others write in between: each is a call of its own in the time of the whole.
func apart(history []porcupine.Operation) []porcupine.Operation {
	var all []porcupine.Operation
	for _, o := range history {
		step, got := o.Input.(Step), o.Output.(answer)
		if match, ok := got.value.(store.Match); ok && match.Outcome == store.MatchOlder {
			o.Input = Older{step.(MatchWaiter)}
		}
		if pairs := pairsIn(step, got.value); got.err == nil && len(pairs) > 0 {
			decided, made := o, o
			decided.Input, made.Input, made.Output = Decided{step}, Made{step}, answer{value: pairs}
			all = append(all, decided, made)
			continue
		}
		all = append(all, o)
	}
	return all
}

// pairsIn are the pairs that a call made, or found.
func pairsIn(step Step, got any) []store.Offer {
	switch got := got.(type) {
	case store.Claim:
		if got.Event != nil && !got.Again {
			return []store.Offer{{Outcome: store.OfferParked, Event: got.Event.EventID, Wait: rendezvous.WaitID{Effect: step.(ClaimFor).Effect}}}
		}
	case store.Match:
		if got.Wait != nil {
			return []store.Offer{{Outcome: store.OfferParked, Event: rendezvous.EventID{ID: step.(MatchWaiter).ID}, Wait: got.Wait.WaitID}}
		}
	case store.Offered:
		if _, offers := step.(OfferBatch); offers {
			return slices.DeleteFunc(slices.Concat(got.Also, got.Items), func(o store.Offer) bool {
				return o.Outcome != store.OfferDelivered && o.Outcome != store.OfferParked
			})
		}
	}
	return nil
}

// makes is the moment of a commit.
func (m *meeting) makes(pairs []store.Offer) bool {
	for _, o := range pairs {
		e, w := m.event(o.Event.ID), m.wait(o.Wait.Effect)
		if e == nil || w == nil {
			return false
		}
		how := isHeld
		if o.Outcome == store.OfferDelivered {
			how = isAnswered
		}
		fresh := e.stand == isOpen && w.stand == isOpen
		before := e.stand == isHeld && w.stand == isHeld && e.with == w.effect
		if !fresh && !before {
			return false
		}
		pair(e, w, how)
	}
	return true
}

// gives records a pair, or parks it while its run is driven.
func (m *meeting) gives(o store.Offer, e, w *met) bool {
	how, want := isAnswered, store.OfferDelivered
	if w.run == driven {
		how, want = isHeld, store.OfferParked
	}
	pair(e, w, how)
	return o.Outcome == want && o.Event.ID == e.id && o.Wait.Effect == w.effect
}

func (m *meeting) delivers(h Held, got any, err error) bool {
	out, _ := got.(store.Offered)
	if err != nil {
		return false
	}
	o, w := out.Items[0], m.wait(h.Effect)
	switch {
	case w == nil:
		return o.Outcome == store.OfferClosed || o.Outcome == store.OfferNothingHeld
	case w.stand == isGone:
		return o.Outcome == store.OfferClosed && o.Closed == rendezvous.ClosedWithdrawn
	case w.stand == isAnswered:
		return o.Outcome == store.OfferAlreadyDelivered && o.Event.ID == w.with
	case w.stand == isOpen:
		return o.Outcome == store.OfferNothingHeld
	}
	return m.gives(o, m.event(w.with), w)
}

func (m *meeting) withdraws(effect string, got any, err error) bool {
	a, _ := got.(store.Withdrawn)
	if err != nil {
		return false
	}
	w := m.wait(effect)
	switch {
	case w == nil:
		return a.Outcome == store.WithdrawNothing
	case w.stand == isAnswered:
		return a.Outcome == store.WithdrawAnswered
	case w.stand == isGone:
		return a.Outcome == store.WithdrawWithdrawn && a.Released == nil
	case w.stand == isOpen:
		w.stand = isGone
		return a.Outcome == store.WithdrawWithdrawn && a.Released == nil
	}
	e := m.event(w.with)
	e.stand, e.with, w.stand, w.with = isOpen, "", isGone, ""
	return a.Outcome == store.WithdrawWithdrawn && a.Released != nil && a.Released.ID == e.id
}

func (m *meeting) erases(id string, got any, err error) bool {
	a, _ := got.(store.Erasure)
	if err != nil {
		return false
	}
	e := m.event(id)
	if e == nil {
		return !a.Existed
	}
	was := stateOf(e)
	if e.stand == isHeld {
		w := m.wait(e.with)
		w.stand, w.with = isOpen, ""
		if a.Reopened == nil || a.Reopened.Effect != w.effect {
			return false
		}
	}
	if e.stand == isHeld || e.stand == isOpen {
		e.stand, e.with = isGone, ""
	}
	return a.Existed && a.Was == was
}
