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
// lost-notice pass comes behind it. room is how many bytes of payload the answers it hands out may have.
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
	if err != nil || len(met) == 0 {
		return store.Notices{}
	}
	items, epochs := make([]store.OfferItem, len(met)), map[backend.RunKey]int64{}
	for i, r := range met {
		items[i] = store.OfferItem{Tenant: r.f.Tenant, Wait: &r.wait.WaitID}
		epochs[backend.RunKey{Tenant: r.f.Tenant, ID: r.wait.RunID}] = r.epoch
	}
	sizes := map[backend.WaitKey]int{}
	offered, err := e.offer(ctx, "second_look", items, at, offerOptions{epochs: epochs, sizes: sizes})
	if err != nil {
		return store.Notices{}
	}
	for i, r := range met {
		if offered.Items[i].Outcome == store.OfferLater { // its look is not over
			offered.Notices.Waits = append(offered.Notices.Waits, waitRef(r.row))
		}
	}
	e.completeLook(ctx, met, offered, sizes, room)
	return offered.Notices
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

// completeLook tells each registration what its look came to. Somebody else's offer may have come first: that is an answer too, of a size not known.
// Those whose answer is over room are told that they wait: asking again gives the answer, as a driver's Suspend does.
func (e *Engine) completeLook(ctx context.Context, met []*registration, offered store.Offered, sizes map[backend.WaitKey]int, room int) {
	var keys []backend.RecordKey
	var answered []*registration
	for i, r := range met {
		switch o := offered.Items[i]; {
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
	met[0].out.Also = offered.Also
	if len(keys) == 0 {
		return
	}
	var records map[backend.RecordKey]rendezvous.Record
	err := e.view(ctx, "second_look", func(ctx context.Context, r backend.Reader) (err error) {
		records, err = r.RecordsAt(ctx, keys)
		return err
	})
	if err != nil {
		return // they are told that they wait: asking again gives the answer
	}
	for i, r := range answered {
		if record, ok := records[keys[i]]; ok {
			r.out.Number, r.row, r.look = 0, nil, false
			r.close(record.Seq, rendezvous.ClosedAnswered, &record)
		}
	}
}
