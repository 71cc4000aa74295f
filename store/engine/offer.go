package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// OfferBatch implements [store.Matcher].
func (e *Engine) OfferBatch(ctx context.Context, items []store.OfferItem, at time.Time) (store.Offered, error) {
	if err := checkItems(len(items), at); err != nil {
		return store.Offered{}, err
	}
	return e.offer(ctx, "offer_batch", items, at, offerOptions{})
}

// offerOptions are what a second look offers with.
type offerOptions struct {
	epochs map[backend.RunKey]int64 // of runs that the caller drives: its answers are recorded under them
	sizes  map[backend.WaitKey]int  // filled in with the payload sizes of what was recorded, unless it is nil
}

// offer is OfferBatch with options.
func (e *Engine) offer(ctx context.Context, verb string, items []store.OfferItem, at time.Time, opts offerOptions) (store.Offered, error) {
	var all store.Offered
	offers, err := inParts(items, func(part []store.OfferItem) ([]store.Offer, error) {
		memory := newMatchMemory()
		var try *offering
		notices, err := e.update(ctx, verb, at, func(ctx context.Context, u *unit) error {
			try = &offering{unit: u, epochs: opts.epochs, match: u.matching(memory), looks: make([]look, len(part))}
			return try.run(ctx, part)
		})
		if err != nil {
			return nil, err
		}
		all.Also = append(all.Also, try.also...)
		all.Notices.Append(notices)
		if opts.sizes != nil {
			for _, d := range try.deals {
				opts.sizes[d.w.Key()] = d.e.PayloadSize
			}
		}
		return try.offers, nil
	}, failedOffer)
	if err != nil {
		return store.Offered{}, err
	}
	for i := range offers {
		offers[i] = named(offers[i], items[i])
	}
	all.Items = offers
	markPush(all.Items, all.Notices)
	markPush(all.Also, all.Notices)
	return all, nil
}

// markPush says of which deliveries a PUSH notice is due, which is known when they are committed.
func markPush(offers []store.Offer, notices store.Notices) {
	if len(notices.Push) == 0 {
		return
	}
	due := map[backend.RunKey]bool{}
	for _, p := range notices.Push {
		due[backend.RunKey{Tenant: p.Tenant, ID: p.RunID}] = true
	}
	for i, o := range offers {
		offers[i].Push = o.Outcome == store.OfferDelivered && due[backend.RunKey{Tenant: o.Tenant, ID: o.Wait.RunID}]
	}
}

func failedOffer(err error) store.Offer { return store.Offer{Outcome: store.OfferFailed, Err: err} }

// named completes an offer by what its item says.
func named(o store.Offer, item store.OfferItem) store.Offer {
	o.Tenant = item.Tenant
	if item.Event != nil {
		o.Event = *item.Event
	}
	if item.Wait != nil {
		o.Wait = *item.Wait
	}
	return o
}

// offering is one try of a batch of offers.
type offering struct {
	*unit
	epochs map[backend.RunKey]int64
	match  *matching
	looks  []look
	order  []int // the items in the order in which they are offered: events by number, then waits by number
	claims []pair
	deals  []*deal // in the order of event numbers

	effects   map[backend.WaitKey][]rendezvous.Record // of waits without a row
	runs      map[backend.RunKey]*backend.Run         // theirs
	marks     map[backend.WorkflowKey]*backend.Woken  // of workflows that consumed an event earlier
	workflows map[backend.WorkflowKey]*backend.Workflow
	given     map[backend.WaitKey][]rendezvous.Record // the answers of marked ones
	owed      []*backend.Woken                        // marks whose notice is repeated, in the order of the items

	offers []store.Offer
	also   []store.Offer
}

// look is one item as this try finds it.
type look struct {
	item store.OfferItem
	err  error      // the item cannot be worked
	e    *eventNode // the event; of an item that names a parked wait, the one it holds
	w    *waitNode  // the wait; of an item that names a claimed event, the one that holds it
	fate fate       // of a live event or an open wait
}

// deal is what became of an event and a wait in this try.
type deal struct {
	pair
	f       *flow
	claimed bool // the claim stood before
	offer   store.Offer
	told    bool // an item, or also, has it
}

func (o *offering) run(ctx context.Context, items []store.OfferItem) error {
	if err := o.read(ctx, items); err != nil {
		return err
	}
	if err := o.match.settle(ctx, o.claimFlows(), o.plan); err != nil {
		return err
	}
	if err := o.recheck(ctx); err != nil {
		return err
	}
	if err := o.deal(ctx); err != nil {
		return err
	}
	o.offers, o.owed = make([]store.Offer, len(o.looks)), nil
	for i := range o.looks {
		o.offers[i] = o.answerOf(&o.looks[i])
	}
	for _, d := range o.deals {
		if !d.told {
			o.also = append(o.also, d.offer)
		}
	}
	o.notice()
	if e := o.match.plan.deep; e != nil { // what was not reached is offered for itself: so the rest moves on
		o.notices.Events = append(o.notices.Events, eventRef(e.Event))
	}
	return nil
}

// plan offers the items in their order.
func (o *offering) plan(p *plan) {
	for _, i := range o.order {
		l := &o.looks[i]
		if l.item.Wait != nil {
			l.fate = p.wait(l.w)
			continue
		}
		if l.fate = p.event(l.e); l.fate == fateAlone && l.e.Target != "" {
			p.x.addressee(l.e)
		}
	}
}

// claimFlows are the workflows of the claims that stood before.
func (o *offering) claimFlows() []backend.WorkflowKey {
	keys := make([]backend.WorkflowKey, len(o.claims))
	for i, c := range o.claims {
		keys[i] = flowKey(c.w.Wait)
	}
	return keys
}

// deal records, claims or fails every pair, in the order of event numbers: so that is the order of the answers in each run.
func (o *offering) deal(ctx context.Context) error {
	for _, p := range o.match.plan.pairs {
		o.deals = append(o.deals, &deal{pair: p})
	}
	for _, c := range o.claims {
		o.deals = append(o.deals, &deal{pair: c, claimed: true})
	}
	slices.SortFunc(o.deals, func(a, b *deal) int { return cmp.Compare(a.e.Number, b.e.Number) })
	broken, err := o.judgeClaims(ctx)
	if err != nil {
		return err
	}
	for _, d := range o.deals {
		d.e.dealt, d.w.dealt = d, d
		d.f = o.flows[flowKey(d.w.Wait)]
		d.offer = store.Offer{
			Tenant: d.w.Tenant, Event: rendezvous.EventID{Source: d.e.Source, ID: d.e.ID}, Wait: rendezvous.WaitID{RunID: d.w.RunID, Effect: d.w.Effect},
			WorkflowID: d.w.WorkflowID, EventTrace: d.e.Trace, WaitTrace: d.w.Trace,
		}
		o.dealOne(d, broken)
	}
	return nil
}

// judgeClaims reads how the claims stand in the history, as pairs does: only in a later try.
func (o *offering) judgeClaims(ctx context.Context) (pairing, error) {
	if o.try == 0 || len(o.claims) == 0 {
		return pairing{}, nil
	}
	waits := make([]*backend.Wait, len(o.claims))
	for i, c := range o.claims {
		waits[i] = c.w.Wait
	}
	return o.pairs(ctx, waits)
}

func (o *offering) dealOne(d *deal, claims pairing) {
	switch err := d.fault(claims); {
	case err != nil:
		d.offer.Outcome, d.offer.Err = store.OfferFailed, err
		if !d.claimed {
			o.failOffer(d.e.Event, err)
		} else if !o.leftOver(d.w.Wait, claims) {
			o.failAttempt(d.w.Wait, err)
		}
	case d.claimed && (d.f.RunID != d.w.RunID || d.f.Status.Terminal()): // possible only after a restore
		d.offer.Outcome = store.OfferReleased
		o.dropWait(d.w.Wait)
		if !o.release(d.e.Event, rendezvous.DeadAddresseeConcluded) {
			d.offer.Reason = d.e.DeadReason
		}
	case !d.w.QuarantinedAt.IsZero():
		d.offer.Outcome, d.offer.Quarantined = store.OfferParked, true
	case o.mayRecord(d.f):
		d.offer.Outcome, d.offer.Queue = store.OfferDelivered, d.f.Queue
		d.offer.Seq = o.answer(d.f, d.w.Wait, d.e.Event).Seq
		d.offer.Resume = d.f.notify && d.f.Status != rendezvous.StatusPaused
	default:
		d.offer.Outcome, d.offer.Remaining = store.OfferParked, max(0, d.f.LeaseExpires.Sub(o.now))
		if !d.claimed {
			o.claim(d.w.Wait, d.e.Event)
		}
	}
}

// fault is what keeps the pair from being recorded, nil for nothing (events.md section 7: never a lease).
func (d *deal) fault(claims pairing) error {
	switch {
	case d.f == nil:
		return brokenPair(d.w.Wait, "its workflow is not there")
	case d.f.Corrupt != nil:
		return d.f.Corrupt
	case d.w.Corrupt != nil:
		return d.w.Corrupt
	case d.e.Corrupt != nil:
		return d.e.Corrupt
	case d.claimed && !holds(d.w.Wait, d.e.Event):
		return brokenPair(d.w.Wait, "the claim it holds does not stand on the event's side")
	case claims.stand[d.w.Key()].closed != nil:
		return brokenPair(d.w.Wait, "it is closed in the history")
	case d.f.Head == rendezvous.MaxSeq:
		return rendezvous.OverLimit("seq", rendezvous.MaxSeq, rendezvous.MaxSeq)
	}
	return nil
}

// mayRecord reports whether an answer goes into the history now: the run is free, or its driver asks.
func (o *offering) mayRecord(f *flow) bool {
	if f.free {
		return true
	}
	epoch := o.epochs[backend.RunKey{Tenant: f.Tenant, ID: f.RunID}]
	return epoch != 0 && epoch == f.LeaseEpoch && f.LeaseOwner != ""
}

// failOffer counts a failed offer of a live event; at 16 it is undeliverable (EV-60).
func (u *unit) failOffer(e *backend.Event, cause error) {
	if e.State != rendezvous.EventLive {
		return
	}
	e.TakeOpen = false
	if e.OfferFailures++; e.OfferFailures >= rendezvous.UndeliverableFrom {
		failures := e.OfferFailures
		u.kill(e, rendezvous.DeadUndeliverable, clip(cause.Error()))
		e.OfferFailures = failures
		return
	}
	u.saveEvent(e)
}

// settleTake ends the take of an event that an offer left live, and forgets its failures. How long the take holds it back stays: an event that is
// offered in vain comes ever more seldom.
func (u *unit) settleTake(e *backend.Event) {
	if e.TakeOpen || e.OfferFailures > 0 {
		e.TakeOpen, e.OfferFailures = false, 0
		u.saveEvent(e)
	}
}
