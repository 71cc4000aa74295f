package engine

import (
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// secondLook offers the waits that took nothing, after their commit (O6), and completes their out. It answers what to notice. Under READ COMMITTED a
// registration and an offer of the event can each miss the other's uncommitted row; whichever commits last sees both. Its failure fails nothing: the
// lost-notice pass comes behind it, and a page of due timers behind the polls it did not end. room is how many bytes of payload the answers it hands out
// may have.
func (e *Engine) secondLook(ctx context.Context, at time.Time, regs []*registration, room int) store.Notices {
	waiting := slices.DeleteFunc(slices.Clone(regs), func(r *registration) bool { return r.err != nil || !r.look || r.row == nil })
	if len(waiting) == 0 {
		return store.Notices{}
	}
	var met []*registration
	err := e.view(ctx, "second_look", func(ctx context.Context, r backend.Reader) (err error) {
		met, err = meeting(ctx, r, at, waiting)
		return err
	})
	if err != nil {
		return store.Notices{}
	}
	var notices store.Notices
	if len(met) > 0 {
		if notices, room, err = e.offerMet(ctx, at, met, room); err != nil {
			return store.Notices{}
		}
	}
	polls := slices.DeleteFunc(waiting, func(r *registration) bool { return !r.poll || !r.look || r.row == nil || r.out.Parked })
	if len(polls) > 0 {
		notices.Append(e.endPolls(ctx, at, polls, room))
	}
	return notices
}

// offerMet offers the waits that some event may meet, and answers what room is left.
func (e *Engine) offerMet(ctx context.Context, at time.Time, met []*registration, room int) (store.Notices, int, error) {
	items, epochs := make([]store.OfferItem, len(met)), map[backend.RunKey]int64{}
	for i, r := range met {
		items[i] = store.OfferItem{Tenant: r.f.Tenant, Wait: &r.wait.WaitID}
		epochs[backend.RunKey{Tenant: r.f.Tenant, ID: r.wait.RunID}] = r.epoch
	}
	sizes := map[backend.WaitKey]int{}
	offered, err := e.offer(ctx, "second_look", items, at, offerOptions{epochs: epochs, sizes: sizes})
	if err != nil {
		return store.Notices{}, room, err
	}
	for i, r := range met {
		if offered.Items[i].Outcome == store.OfferLater { // its look is not over
			offered.Notices.Waits = append(offered.Notices.Waits, waitRef(r.row))
		}
	}
	met[0].out.Also = offered.Also
	return offered.Notices, e.completeLook(ctx, met, offered.Items, sizes, room), nil
}

// endPolls records the time-outs of polls whose events went to older waits (events.md section 5), each after a last look of its own.
func (e *Engine) endPolls(ctx context.Context, at time.Time, polls []*registration, room int) store.Notices {
	var fires []store.Fire
	notices, err := e.update(ctx, "second_look", at, func(ctx context.Context, u *unit) (err error) {
		fires, err = u.firePolls(ctx, polls)
		return err
	})
	if err != nil {
		return store.Notices{}
	}
	var answered []*registration
	var items []store.Offer
	for _, x := range fires {
		r := polls[slices.IndexFunc(polls, func(r *registration) bool {
			return r.f.Tenant == x.Tenant && r.wait.RunID == x.RunID && r.wait.Effect == x.Effect
		})]
		switch x.Outcome {
		case store.FireFired:
			r.out.Number, r.row, r.look = 0, nil, false
			r.close(x.Seq, rendezvous.ClosedTimedOut, nil)
		case store.FireAnswered:
			answered, items = append(answered, r), append(items, store.Offer{Outcome: store.OfferDelivered, Seq: x.Seq})
		case store.FireParked:
			r.out.Parked = true
		}
	}
	e.completeLook(ctx, answered, items, nil, room)
	return notices
}

// firePolls works the timers of polls as a page of due timers does; whoever registered under a good epoch is told here.
func (u *unit) firePolls(ctx context.Context, polls []*registration) ([]store.Fire, error) {
	keys, timers := make([]backend.WorkflowKey, len(polls)), make([]backend.TimerKey, len(polls))
	for i, r := range polls {
		keys[i], timers[i] = r.f.Key(), waitTimer(r.row)
	}
	if err := u.lock(ctx, distinct(keys)); err != nil {
		return nil, err
	}
	rows, err := u.tx.Timers(ctx, timers)
	if err != nil {
		return nil, err
	}
	var due []*backend.Timer
	for i, r := range polls {
		f, t := u.flows[keys[i]], rows[timers[i]]
		if f == nil || f.Corrupt != nil || t == nil || t.Corrupt != nil || t.ArmedSeq != r.seq || u.checkLease(f, r.epoch) != nil {
			continue // somebody else ended it, or will
		}
		if r.epoch != 0 {
			f.free = false
		}
		due = append(due, t)
	}
	fires := firing{unit: u, record: func(f *flow) bool { return f.free || f.driven }}
	return fires.fire(ctx, due)
}

// meetPage is how many events of a key the unlocked read looks at; a wait that meets none of a full page is offered all the same.
const meetPage = 4

// meeting answers those of the waits that some live event may meet: one unlocked read for all.
func meeting(ctx context.Context, reader backend.Reader, at time.Time, waiting []*registration) ([]*registration, error) {
	if at.IsZero() {
		at = reader.Now()
	}
	var lookups []backend.Lookup
	var owners []*registration
	for _, r := range waiting {
		for _, k := range append(slices.Clone(r.row.Keys), backend.TargetKey(r.row.RunID)) {
			lookups = append(lookups, backend.Lookup{Tenant: r.row.Tenant, Type: r.row.Type, Key: k, Limit: meetPage})
			owners = append(owners, r)
		}
	}
	found, err := reader.LiveEvents(ctx, lookups)
	if err != nil {
		return nil, err
	}
	var met []*registration
	for i, r := range owners {
		if len(met) > 0 && met[len(met)-1] == r {
			continue
		}
		meet := func(e *backend.Event) bool { return e.Corrupt == nil && meets(e, r.row, at) }
		if len(found[i]) == meetPage || slices.ContainsFunc(found[i], meet) {
			met = append(met, r)
		}
	}
	return met, nil
}

// completeLook tells each registration what its look came to, and answers what room is left. Somebody else's offer may have come first: that is an answer
// too, of a size not known. Those whose answer is over room are told that they wait: asking again gives the answer, as a driver's Suspend does.
func (e *Engine) completeLook(ctx context.Context, met []*registration, offers []store.Offer, sizes map[backend.WaitKey]int, room int) int {
	var keys []backend.RecordKey
	var answered []*registration
	for i, r := range met {
		switch o := offers[i]; {
		case o.Outcome == store.OfferParked:
			r.out.Parked = true
		case o.Outcome == store.OfferDelivered, o.Outcome == store.OfferClosed && o.Closed == rendezvous.ClosedAnswered:
			size, known := sizes[r.key()]
			if !known {
				size = rendezvous.MaxPayload
			}
			if size > room {
				continue
			}
			room -= size
			keys = append(keys, r.answerKey(o.Seq))
			answered = append(answered, r)
		}
	}
	if len(keys) == 0 {
		return room
	}
	var records map[backend.RecordKey]rendezvous.Record
	err := e.view(ctx, "second_look", func(ctx context.Context, r backend.Reader) (err error) {
		records, err = r.RecordsAt(ctx, keys)
		return err
	})
	if err != nil {
		return room // they are told that they wait: asking again gives the answer
	}
	for i, r := range answered {
		if record, ok := records[keys[i]]; ok {
			r.out.Number, r.row, r.look = 0, nil, false
			r.close(record.Seq, rendezvous.ClosedAnswered, &record)
		}
	}
	return room
}
