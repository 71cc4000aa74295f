package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// DeliverTo implements [store.Events].
func (t *tenant) DeliverTo(ctx context.Context, run string, ev rendezvous.Event, keep bool, at time.Time) (store.Delivery, error) {
	out, err := t.DeliverToBatch(ctx, []store.DeliverItem{{Tenant: t.name, RunID: run, Event: ev, Keep: keep}}, at)
	if err != nil {
		return store.Delivery{}, err
	}
	return out[0], out[0].Err
}

// DeliverToBatch implements [store.Intake].
func (e *Engine) DeliverToBatch(ctx context.Context, items []store.DeliverItem, at time.Time) ([]store.Delivery, error) {
	if err := checkItems(len(items), at); err != nil {
		return nil, err
	}
	in := make([]errand, len(items))
	for i, item := range items {
		in[i] = errand{arrival: e.arrive(item.Tenant, item.Event), run: backend.RunKey{Tenant: item.Tenant, ID: item.RunID}, keep: item.Keep}
		if in[i].err == nil {
			in[i].err = rendezvous.CheckID("run_id", item.RunID)
		}
	}
	return inParts(in, func(part []errand) (out []store.Delivery, err error) {
		_, err = e.update(ctx, "deliver_to_batch", at, func(ctx context.Context, u *unit) (err error) {
			out, err = u.deliverTo(ctx, part)
			return err
		})
		return out, err
	}, func(err error) store.Delivery { return store.Delivery{Err: err} })
}

// errand is an event for one run.
type errand struct {
	arrival
	run  backend.RunKey
	keep bool
}

// delivering is one try of DeliverToBatch. Rows change as items are judged, so a later item sees what an earlier one did.
type delivering struct {
	u      *unit
	events map[backend.EventKey]*backend.Event // known ones, and those new in this batch
	number map[backend.EventKey]int64          // drawn in input order for the identities that were not known
	runs   map[backend.RunKey]*backend.Run
	waits  map[backend.RunKey][]*backend.Wait // of unsealed runs, by number
	kept   map[backend.RunKey]int
}

func (u *unit) deliverTo(ctx context.Context, in []errand) ([]store.Delivery, error) {
	out := make([]store.Delivery, len(in))
	good := make([]*errand, 0, len(in))
	for i := range in {
		if out[i].Err = in[i].err; out[i].Err == nil {
			out[i].Err = in[i].checkExpiry(u.at)
		}
		if out[i].Err == nil {
			good = append(good, &in[i])
		}
	}
	if len(good) == 0 {
		return out, nil
	}
	d := delivering{u: u}
	if err := d.read(ctx, good); err != nil {
		return nil, err
	}
	for i := range in {
		if out[i].Err == nil {
			var err error
			if out[i], err = d.deliver(&in[i]); err != nil {
				out[i] = store.Delivery{Err: err}
			}
		}
	}
	sortByIdentity(u.ch.NewEvents)
	return out, nil
}

// read locks the runs' workflows and reads, under the lock, everything the batch is judged by: a fixed handful of statements.
func (d *delivering) read(ctx context.Context, in []*errand) error {
	runs := make([]backend.RunKey, len(in))
	keys := make([]backend.EventKey, len(in))
	for i, it := range in {
		runs[i], keys[i] = it.run, it.key
	}
	runs, keys = distinct(runs), distinct(keys)
	if err := d.readRuns(ctx, runs); err != nil {
		return err
	}
	var err error
	if d.events, err = d.u.tx.EventsByKey(ctx, keys, false); err != nil {
		return err
	}
	if err := d.readKept(ctx, in); err != nil {
		return err
	}
	return d.draw(ctx, in)
}

// readRuns locks, and reads the waits of the runs that are open.
func (d *delivering) readRuns(ctx context.Context, keys []backend.RunKey) error {
	var err error
	if d.runs, err = d.u.lockRuns(ctx, keys); err != nil {
		return err
	}
	var open []backend.RunKey
	for k, run := range d.runs {
		switch f := d.u.flowOf(run); {
		case f == nil:
			delete(d.runs, k)
		case f.Corrupt == nil && current(f, run):
			open = append(open, k)
		}
	}
	if len(open) == 0 {
		return nil
	}
	rows, err := d.u.tx.WaitsOf(ctx, open)
	if err != nil {
		return err
	}
	d.waits = make(map[backend.RunKey][]*backend.Wait, len(open))
	for _, w := range rows {
		k := backend.RunKey{Tenant: w.Tenant, ID: w.RunID}
		d.waits[k] = append(d.waits[k], w)
	}
	return nil
}

func (d *delivering) readKept(ctx context.Context, in []*errand) error {
	var keys []backend.RunKey
	for _, it := range in {
		if it.keep {
			keys = append(keys, it.run)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	kept, err := d.u.tx.KeptCounts(ctx, distinct(keys))
	if err != nil {
		return err
	}
	d.kept = make(map[backend.RunKey]int, len(kept))
	for k, n := range kept {
		d.kept[k] = n
	}
	return nil
}

// draw draws the numbers of identities that may be new, in input order. One that leaves no trace leaves a gap, which is normal.
func (d *delivering) draw(ctx context.Context, in []*errand) error {
	var fresh []backend.EventKey
	for _, it := range in {
		if d.events[it.key] == nil && (it.keep || d.runs[it.run] != nil) {
			fresh = append(fresh, it.key)
		}
	}
	if fresh = distinct(fresh); len(fresh) == 0 {
		return nil
	}
	numbers, err := d.u.tx.NewEventNumbers(ctx, len(fresh))
	if err != nil {
		return err
	}
	d.number = make(map[backend.EventKey]int64, len(fresh))
	for i, k := range fresh {
		d.number[k] = numbers[i]
	}
	return nil
}

// deliver decides one item (events.md section 6, steps 1 to 4).
func (d *delivering) deliver(it *errand) (store.Delivery, error) {
	e := d.events[it.key]
	if e != nil {
		if err := it.compare(e); err != nil {
			return store.Delivery{}, err
		}
		if out, done := standsAlready(e, it.run.ID); done {
			return out, nil
		}
	}
	run := d.runs[it.run]
	f := d.u.flowOf(run)
	switch {
	case run == nil && !it.keep:
		return store.Delivery{}, runNotFound(it.run.ID)
	case run == nil: // its start may be under way
		return d.keep(it, e)
	case f.Corrupt != nil:
		return store.Delivery{}, f.Corrupt
	case !current(f, run) && !it.keep:
		return store.Delivery{}, sealed(f.Workflow, run)
	case !current(f, run):
		e = d.target(it, e)
		d.u.kill(e, rendezvous.DeadAddresseeConcluded, "")
		return store.Delivery{Outcome: store.DeliveryDead, Place: placeOf(e), Number: e.Number}, nil
	}
	w, why := d.elect(it, e)
	switch {
	case w != nil:
		e = d.target(it, e)
		d.u.claim(w, e)
		return store.Delivery{Outcome: store.DeliveryMatched, Place: placeOf(e), Number: e.Number}, nil
	case it.keep || (e != nil && e.Target == it.run.ID):
		return d.keep(it, e)
	}
	return store.Delivery{Outcome: store.DeliveryNotWaiting, Why: why}, nil // EV-47, EV-49: nothing is written
}

// standsAlready is step 1 for an identity with equal content: where it is, unless it is live and free for this run, or kept for it.
func standsAlready(e *backend.Event, run string) (store.Delivery, bool) {
	switch {
	case e.State == rendezvous.EventClaimed && e.ClaimRun == run: // EV-46
		return store.Delivery{Outcome: store.DeliveryMatched, Again: true, Place: placeOf(e), Number: e.Number}, true
	case e.State != rendezvous.EventLive || (e.Target != "" && e.Target != run):
		return store.Delivery{Outcome: store.DeliveryDuplicate, Place: placeOf(e)}, true
	}
	return store.Delivery{}, false
}

// target makes the event this run's: a new row, or the one that was live and untargeted or kept.
func (d *delivering) target(it *errand, e *backend.Event) *backend.Event {
	if e == nil {
		row := it.row(d.u.at)
		row.Number = d.number[it.key]
		e = &row
		d.events[it.key] = e
		d.u.ch.NewEvents = append(d.u.ch.NewEvents, e)
	}
	if e.Target != it.run.ID {
		e.Target = it.run.ID
		d.u.saveEvent(e)
	}
	return e
}

// keep is step 4: the event is live and the run's, for its next fitting registration (EV-52, EV-85).
func (d *delivering) keep(it *errand, e *backend.Event) (store.Delivery, error) {
	if e == nil || e.Target != it.run.ID {
		if d.kept[it.run] >= rendezvous.MaxKeptPerRun {
			return store.Delivery{}, keptFull(it.run.ID)
		}
		d.kept[it.run]++
		e = d.target(it, e)
		e.Rekey = e.Version != 0 // it was live for everybody
	}
	return store.Delivery{
		Outcome: store.DeliveryKept, Place: placeOf(e), Number: e.Number, Notices: store.Notices{Events: []store.EventRef{eventRef(e)}},
	}, nil
}

// elect is step 3: the run's lowest-numbered wait that the event would meet as its own (EV-48). Its sender named the run, so no older event and no
// other run's wait stands before it (O3, EV-45, EV-50). Where there is none it answers the nearest reason.
func (d *delivering) elect(it *errand, e *backend.Event) (*backend.Wait, string) {
	var as backend.Event // the event as it would stand; what is stored decides (R5)
	if e != nil {
		as = *e
	} else {
		as = it.row(d.u.at)
	}
	as.Target = it.run.ID
	why, fewest := noWait, 0
	for _, w := range d.waits[it.run] {
		if w.Corrupt != nil {
			continue
		}
		if meets(&as, w, d.u.at) {
			return w, ""
		}
		if reasons := pairReasons(&as, &remains{Wait: w}, d.u.at); len(reasons) > 0 && (fewest == 0 || len(reasons) < fewest) {
			why, fewest = string(reasons[0].Code), len(reasons)
		}
	}
	return nil, why
}

// noWait is why no pair reason can be given: the run waits for nothing.
const noWait = string(rendezvous.VerdictNoWait)
