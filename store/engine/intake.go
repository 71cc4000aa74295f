package engine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Buffer implements [store.Events].
func (t *tenant) Buffer(ctx context.Context, ev rendezvous.Event, at time.Time) (store.Buffered, error) {
	out, err := t.BufferBatch(ctx, []store.BufferItem{{Tenant: t.name, Event: ev}}, at)
	if err != nil {
		return store.Buffered{}, err
	}
	return out[0], out[0].Err
}

// BufferBatch implements [store.Intake].
func (e *Engine) BufferBatch(ctx context.Context, items []store.BufferItem, at time.Time) ([]store.Buffered, error) {
	if err := checkItems(len(items), at); err != nil {
		return nil, err
	}
	in := make([]arrival, len(items))
	for i := range items {
		in[i] = e.arrive(items[i].Tenant, items[i].Event)
	}
	return inParts(in, func(part []arrival) ([]store.Buffered, error) {
		return e.buffer(ctx, part, at)
	}, func(err error) store.Buffered { return store.Buffered{Err: err} })
}

// arrival is an event at the store's border, judged by itself.
type arrival struct {
	key    backend.EventKey
	event  rendezvous.Event
	digest [sha256.Size]byte
	err    error // this event is refused
}

// arrive judges an event's limits (EV-9). The plane's own types and sources are for events the plane minted (EV-11): who may mint is the doors'
// business, which refuse a minter from outside.
func (e *Engine) arrive(tenant string, ev rendezvous.Event) arrival {
	a := arrival{key: backend.EventKey{Tenant: tenant, Source: ev.Source, ID: ev.ID}}
	if a.err = rendezvous.CheckTenant(tenant); a.err != nil {
		return a
	}
	if ev.MintedBy == nil {
		if a.err = ev.CheckOutside(); a.err != nil {
			return a
		}
	}
	if a.event, a.err = ev.Check(e.maxEvent); a.err == nil {
		a.digest = a.event.Digest()
	}
	return a
}

// maxExpiry is how far ahead of its arrival an event's own expiry may lie.
const maxExpiry = rendezvous.MaxExpiryDays * 24 * time.Hour

// checkExpiry judges what depends on the instant of the call; an expiry in the past is fine, such an event never meets anyone.
func (a *arrival) checkExpiry(at time.Time) error {
	if a.event.ExpiresAt.Sub(at) <= maxExpiry || a.event.ExpiresAt.IsZero() {
		return nil
	}
	return rendezvous.InvalidField("expires_at", "%s is more than %d days ahead; give an earlier one or none", rendezvous.FormatInstant(a.event.ExpiresAt),
		rendezvous.MaxExpiryDays).With("limit_days", rendezvous.MaxExpiryDays).With("value", rendezvous.FormatInstant(a.event.ExpiresAt))
}

// row is the event as it is stored, live, without its number.
func (a *arrival) row(at time.Time) backend.Event {
	ev := &a.event
	return backend.Event{
		Tenant: a.key.Tenant, Source: ev.Source, ID: ev.ID, Type: ev.Type, Keys: ev.Keys,
		ContentType: ev.ContentType, Payload: ev.Payload, HasPayload: ev.Payload != nil, PayloadSize: len(ev.Payload), Digest: a.digest[:],
		ReceivedAt: at, LiveSince: at, ExpiresAt: ev.ExpiresAt, State: rendezvous.EventLive, Minted: ev.MintedBy, Trace: ev.Trace,
	}
}

// compare judges an event whose identity is known already: conflict when its content is another (EV-3, EV-4). After erasure type and keys are all
// that is left to compare (EV-5). An unreadable row is corrupt.
func (a *arrival) compare(known *backend.Event) error {
	if known.Corrupt != nil {
		return known.Corrupt
	}
	if !known.Erased && bytes.Equal(known.Digest, a.digest[:]) {
		return nil
	}
	what := "content"
	switch {
	case known.Type != a.event.Type:
		what = "type"
	case !known.Purged && !rendezvous.SameKeys(known.Keys, a.event.Keys): // purged ones have none to compare any more
		what = "keys"
	case known.Erased:
		return nil
	}
	return conflict(what, string(known.State), "event %q of source %q is known with other %s (it is %s); an identity is never used twice: give a new id",
		a.key.ID, a.key.Source, what, known.State).With("state", string(known.State))
}

// lookFirst is how many batches look before they insert once one found an event that was known.
const lookFirst = 16

// buffer stores a batch in one commit. New events are the rule, so the first try inserts unseen; where one is known the next try reads first.
func (e *Engine) buffer(ctx context.Context, in []arrival, at time.Time) ([]store.Buffered, error) {
	var out []store.Buffered
	_, err := e.update(ctx, "buffer_batch", at, func(ctx context.Context, u *unit) error {
		b := buffering{u: u, in: in, stored: make(map[backend.EventKey]*backend.Event, len(in))}
		if err := b.read(ctx); err != nil {
			return err
		}
		if err := b.plan(ctx); err != nil {
			return err
		}
		out = b.out
		return nil
	})
	return out, err
}

// buffering is one try of a batch.
type buffering struct {
	u      *unit
	in     []arrival
	stored map[backend.EventKey]*backend.Event // known ones, and those new in this batch
	out    []store.Buffered
}

// read looks up what is known already, when there is reason to believe that something is.
func (b *buffering) read(ctx context.Context) error {
	e := b.u.engine
	if b.u.try > 0 {
		e.replays.Store(lookFirst)
	} else if left := e.replays.Load(); left <= 0 || !e.replays.CompareAndSwap(left, left-1) {
		return nil
	}
	known, err := b.u.tx.EventsByKey(ctx, arrivalKeys(b.in), false)
	if err != nil {
		return err
	}
	if len(known) > 0 {
		e.replays.Store(lookFirst)
		b.stored = known
	}
	return nil
}

// arrivalKeys are the identities of a batch that passed their checks, each once (in-batch duplicates are collapsed).
func arrivalKeys(in []arrival) []backend.EventKey {
	keys := make([]backend.EventKey, 0, len(in))
	seen := make(map[backend.EventKey]struct{}, len(in))
	for i := range in {
		if _, twice := seen[in[i].key]; in[i].err != nil || twice {
			continue
		}
		seen[in[i].key] = struct{}{}
		keys = append(keys, in[i].key)
	}
	return keys
}

// plan judges every item in input order and numbers what is new in that order (EV-7).
func (b *buffering) plan(ctx context.Context) error {
	b.out = make([]store.Buffered, len(b.in))
	rows := make([]backend.Event, 0, len(b.in)) // one block, never grown: pointers into it stay good
	refs := make([]store.EventRef, len(b.in))
	first := make([]int, 0, len(b.in)) // per new row: its item
	for i := range b.in {
		a, out := &b.in[i], &b.out[i]
		if out.Err = a.err; out.Err == nil {
			out.Err = a.checkExpiry(b.u.at)
		}
		if out.Err != nil {
			continue
		}
		row := b.stored[a.key]
		if row == nil {
			rows = append(rows, a.row(b.u.at))
			row = &rows[len(rows)-1]
			b.stored[a.key] = row
			first = append(first, i)
			out.Outcome = store.BufferNew
		} else {
			if out.Err = a.compare(row); out.Err != nil {
				continue
			}
			out.Outcome, out.Place = store.BufferDuplicate, placeOf(row)
		}
		if row.State == rendezvous.EventLive || row.State == rendezvous.EventClaimed { // EV-15: a retry repairs a lost notice
			refs[i] = eventRef(row)
			out.Notices.Events = refs[i : i+1 : i+1]
		}
	}
	if len(rows) == 0 {
		return nil
	}
	numbers, err := b.u.tx.NewEventNumbers(ctx, len(rows))
	if err != nil {
		return err
	}
	b.u.ch.NewEvents = slices.Grow(b.u.ch.NewEvents, len(rows))
	for k := range rows {
		rows[k].Number = numbers[k]
		b.out[first[k]].Number = numbers[k]
		b.u.ch.NewEvents = append(b.u.ch.NewEvents, &rows[k])
	}
	sortByIdentity(b.u.ch.NewEvents)
	return nil
}

// sortByIdentity is the order in which new events are inserted, whatever their numbers: two batches that bring the same identities wait for each other
// and never in a circle (R7).
func sortByIdentity(rows []*backend.Event) {
	slices.SortFunc(rows, func(a, b *backend.Event) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Source, b.Source), strings.Compare(a.ID, b.ID))
	})
}

// checkItems judges the size of a [Q] batch and its instant, which are of the whole call (R2, R3).
func checkItems(n int, at time.Time) error {
	switch {
	case n == 0:
		return rendezvous.InvalidField("items", "is empty; give 1..%d", rendezvous.MaxBatchItems)
	case n > rendezvous.MaxBatchItems:
		return rendezvous.OverLimit("items", rendezvous.MaxBatchItems, n)
	}
	return checkAt(at)
}

// checkAt judges the instant of a call before anything is stamped with it: the zero time is the store's now (R2).
func checkAt(at time.Time) error {
	if !at.IsZero() && rendezvous.Instant(at).IsZero() {
		return rendezvous.InvalidField("at", "%s is less than a microsecond into year 1, which stands for none; give none for the store's now", at).
			With("limit", rendezvous.FormatInstant(time.Time{}.Add(time.Microsecond))).With("value", at.UTC().Format(time.RFC3339Nano))
	}
	return rendezvous.CheckInstant("at", at)
}

// inParts runs a batch verb over its items as one transaction. If that fails for a reason of its items' own, the batch is halved until the culprit
// stands alone and fails alone (R3). unavailable and commit_unknown are no item's fault: they are the answer of the whole batch, and repeating it is
// safe whatever part went through (R8).
func inParts[I, O any](items []I, run func([]I) ([]O, error), failed func(error) O) ([]O, error) {
	out, err := run(items)
	switch {
	case err == nil:
		return out, nil
	case !itemsFault(err):
		return nil, err
	case len(items) == 1:
		return []O{failed(err)}, nil
	}
	half := len(items) / 2
	left, err := inParts(items[:half], run, failed)
	if err != nil {
		return nil, err
	}
	right, err := inParts(items[half:], run, failed)
	if err != nil {
		return nil, err
	}
	return append(left, right...), nil
}
