package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// parkedOutcome is what recordParked did: the records in order, and whether its bounds left parked waits for the next call.
type parkedOutcome struct {
	records []*backend.Record
	bytes   int // their payloads
	more    bool
}

// room reports whether one more answer of n bytes is within the bounds, and counts it; otherwise there is more.
func (o *parkedOutcome) room(n int) bool {
	if o.more = o.more || len(o.records) == rendezvous.MaxCollect || o.bytes+n > rendezvous.MaxCollectBytes; o.more {
		return false
	}
	o.bytes += n
	return true
}

// count is how many records there are; nil has none.
func (o *parkedOutcome) count() int {
	if o == nil {
		return 0
	}
	return len(o.records)
}

// of is what was done for one run, its answers with their payloads: for whoever is handed them.
func (u *unit) of(ctx context.Context, f *flow, all map[backend.WorkflowKey]*parkedOutcome) (parkedOutcome, error) {
	out := all[f.Key()]
	if out == nil {
		return parkedOutcome{}, nil
	}
	return *out, u.loadPayloads(ctx, out.records)
}

// recordParked records the parked answers of f's current run, oldest claim first, within 100 and 16 MiB of payload (RN-34); quarantined waits are left
// out. A pair that cannot be recorded fails alone: it stays parked and counts a failed attempt. A run that counts as free (f.free) is woken.
func (u *unit) recordParked(ctx context.Context, f *flow) (parkedOutcome, error) {
	all, err := u.recordParkedOf(ctx, []*flow{f})
	if err != nil {
		return parkedOutcome{}, err
	}
	return u.of(ctx, f, all)
}

// recordParkedOf is recordParked for many runs at once, at the cost of one, without payloads. The bounds hold for each run.
func (u *unit) recordParkedOf(ctx context.Context, flows []*flow) (map[backend.WorkflowKey]*parkedOutcome, error) {
	runs := make([]backend.RunKey, len(flows))
	for i, f := range flows {
		runs[i] = backend.RunKey{Tenant: f.Tenant, ID: f.RunID}
	}
	waits, err := u.waitsOf(ctx, runs)
	if err != nil {
		return nil, err
	}
	waits = slices.DeleteFunc(waits, func(w *backend.Wait) bool { return waitState(w) != rendezvous.WaitParked })
	if len(waits) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(waits, func(a, b *backend.Wait) int { // oldest claim first
		return cmp.Compare(a.Held.Claim, b.Held.Claim)
	})
	pairs, err := u.pairs(ctx, waits)
	if err != nil {
		return nil, err
	}
	of := make(map[backend.RunKey][]*backend.Wait, len(flows))
	for _, w := range waits {
		k := backend.RunKey{Tenant: w.Tenant, ID: w.RunID}
		of[k] = append(of[k], w)
	}
	out := make(map[backend.WorkflowKey]*parkedOutcome, len(flows))
	for i, f := range flows {
		one := u.recordRun(f, of[runs[i]], pairs)
		out[f.Key()] = &one
	}
	return out, nil
}

// recordRun records what is parked of f's run, as far as its bounds go.
func (u *unit) recordRun(f *flow, waits []*backend.Wait, pairs pairing) parkedOutcome {
	var out parkedOutcome
	for _, w := range waits {
		e, err := pairs.judge(w)
		if err != nil {
			if !u.leftOver(w, pairs) {
				u.failAttempt(w, err)
			}
			continue
		}
		if !out.room(e.PayloadSize) {
			break
		}
		out.records = append(out.records, u.answer(f, w, e))
	}
	return out
}

// loadPayloads copies the payloads of those of the records that are answers into them. The store still takes them from the events.
func (u *unit) loadPayloads(ctx context.Context, records []*backend.Record) error {
	records = slices.DeleteFunc(slices.Clone(records), func(r *backend.Record) bool { return r.PayloadOf == 0 })
	if len(records) == 0 {
		return nil
	}
	numbers := make([]int64, len(records))
	for i, r := range records {
		numbers[i] = r.PayloadOf
	}
	events, err := u.tx.EventsByNumber(ctx, numbers, true)
	if err != nil {
		return err
	}
	for _, r := range records {
		e := events[r.PayloadOf]
		if e == nil {
			return backend.ErrStale // it moved since the pair was judged: so will its version say
		}
		r.Payload, r.ContentType = e.Payload, e.ContentType
	}
	return nil
}

// pairing is parked waits with the events they hold, and how they stand in the history where that was read.
type pairing struct {
	held  map[int64]*backend.Event
	stand map[backend.WaitKey]standing
}

// pairs reads what those waits hold. What the history says of them is read only by a later try: a wait that is closed there has no row but after a
// restore, and then it is the answer's record that makes the first try stale.
func (u *unit) pairs(ctx context.Context, waits []*backend.Wait) (pairing, error) {
	var p pairing
	var err error
	if p.held, err = u.heldBy(ctx, waits); err != nil || u.try == 0 {
		return p, err
	}
	p.stand, err = u.standings(ctx, waits)
	return p, err
}

// judge answers the event that w holds, or why the pair cannot be recorded.
func (p pairing) judge(w *backend.Wait) (*backend.Event, error) {
	if w.Corrupt != nil {
		return nil, w.Corrupt
	}
	if w.Held == nil {
		return nil, brokenPair(w, "it holds nothing")
	}
	e := p.held[w.Held.Number]
	switch {
	case e != nil && e.Corrupt != nil:
		return nil, e.Corrupt
	case !holds(w, e):
		return nil, brokenPair(w, "the claim it holds does not stand on the event's side")
	case p.stand[w.Key()].closed != nil:
		return nil, brokenPair(w, fmt.Sprintf("it is closed in the history since seq %d", p.stand[w.Key()].closed.Seq))
	case e.PayloadSize > rendezvous.MaxPayload:
		return nil, rendezvous.OverLimit("payload", rendezvous.MaxPayload, e.PayloadSize)
	}
	return e, nil
}

func brokenPair(w *backend.Wait, what string) error {
	return rendezvous.Errorf(rendezvous.CodeCorrupt, "wait %q of run %q cannot be answered: %s", w.Effect, w.RunID, what).
		With("run", w.RunID).With("effect", w.Effect)
}

// leftOver makes the row of a wait go that is closed in the history, and gives its event its place. It reports whether it did.
func (u *unit) leftOver(w *backend.Wait, p pairing) bool {
	s := p.stand[w.Key()]
	if s.closed == nil || w.Corrupt != nil {
		return false
	}
	_, err := u.settle(w, p.held, s, rendezvous.DeadWaitWithdrawn)
	return err == nil
}
