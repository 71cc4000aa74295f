package sqlite

import (
	"bytes"
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// What bounds a generation, of which there are two: how many events it has, and about how many bytes they take.
const (
	mostRecent      = 10_000
	mostRecentBytes = 16 << 20
)

// recent are events that came a moment ago and that nothing has happened to since, as a read would answer them: nearly every event is offered right after it was
// stored, and to read and decode its row again, once for itself and once as what stands under a wait's keys, costs as much as to store it. What the group that is
// open wrote is among them. They belong to the writer, and go at once with whatever may have made them untrue: a change of the row, a transaction that is undone,
// a commit by another connection.
type recent struct {
	young, old generation
	foreign    int64 // as PRAGMA data_version tells of other connections' commits
	changed    bool  // by the transaction that has the turn
}

// generation is events that came one after the other.
type generation struct {
	events  map[int64]*backend.Event
	numbers map[backend.EventKey]int64
	bytes   int // about; of those that came, gone ones too
}

func newGeneration() generation {
	return generation{events: map[int64]*backend.Event{}, numbers: map[backend.EventKey]int64{}}
}

func newRecent() *recent { return &recent{young: newGeneration(), old: newGeneration()} }

func (r *recent) forget() { r.young, r.old = newGeneration(), newGeneration() }

func (r *recent) event(number int64) *backend.Event {
	if e := r.young.events[number]; e != nil {
		return e
	}
	return r.old.events[number]
}

// number is an event's number, 0 where it is not remembered.
func (r *recent) number(k backend.EventKey) int64 {
	if n := r.young.numbers[k]; n != 0 {
		return n
	}
	return r.old.numbers[k]
}

// begin is called at a group's beginning.
func (r *recent) begin(ctx context.Context, q *reader) error {
	return q.query(ctx, "PRAGMA data_version", func(c *columns) error {
		if v := c.Bigint(); v != r.foreign {
			r.foreign = v
			r.forget()
		}
		return nil
	})
}

// add remembers a new event that only arrived.
func (r *recent) add(e *backend.Event) {
	if len(r.young.events) >= mostRecent || r.young.bytes >= mostRecentBytes {
		r.young, r.old = newGeneration(), r.young
	}
	row := *e
	row.Digest = bytes.Clone(e.Digest) // what comes with a batch may be a part of it, and would keep all its payloads
	row.Version, row.Keyed, row.HasPayload, row.PayloadSize = 1, true, e.Payload != nil, len(e.Payload)
	row.ContentType, row.Payload = "", nil
	for _, at := range []*time.Time{&row.ReceivedAt, &row.LiveSince, &row.ExpiresAt} {
		if !at.IsZero() {
			*at = time.UnixMicro(at.UnixMicro()).UTC()
		}
	}
	r.young.events[e.Number], r.young.numbers[e.Key()], r.changed = &row, e.Number, true
	r.young.bytes += sizeOf(&row)
}

// sizeOf is about what a remembered event takes.
func sizeOf(e *backend.Event) int {
	n := 1000 + len(e.Tenant) + len(e.Source) + len(e.ID) + len(e.Type) + len(e.Target) + len(e.Digest) + len(e.Trace.Parent) + len(e.Trace.State)
	for _, k := range e.Keys {
		n += 32 + len(k.Namespace) + len(k.Value)
	}
	return n
}

// drop forgets an event that is changed.
func (r *recent) drop(e *backend.Event) {
	for _, g := range [...]generation{r.young, r.old} {
		delete(g.events, e.Number)
		delete(g.numbers, e.Key())
	}
	r.changed = true
}

// remembered is a copy of an event that is at hand, nil for none.
func (r *reader) remembered(number int64) *backend.Event {
	if r.recent == nil {
		return nil
	}
	row := r.recent.event(number)
	if row == nil {
		return nil
	}
	e := *row
	r.loaded[number] = e
	return &e
}

// rememberedBy is the same by the event's key.
func (r *reader) rememberedBy(k backend.EventKey) *backend.Event {
	if r.recent == nil {
		return nil
	}
	return r.remembered(r.recent.number(k))
}

const liveNumbersSQL = `
SELECT i.number FROM event_keys i
WHERE i.tenant = ? AND i.namespace = ? AND i.value = ? AND i.type = ? AND i.number > ?
ORDER BY i.number LIMIT ? + 0`

// rememberedUnder answers what [reader.LiveEvents] does of one lookup, if all of it is at hand.
func (r *reader) rememberedUnder(ctx context.Context, l backend.Lookup) (events []*backend.Event, all bool, err error) {
	if r.recent == nil || len(r.recent.young.events)+len(r.recent.old.events) == 0 {
		return nil, false, nil
	}
	all = true
	err = r.query(ctx, liveNumbersSQL, func(c *columns) error {
		e := r.remembered(c.Count())
		if e == nil {
			all = false
			return errEnough
		}
		events = append(events, e)
		return nil
	}, lookupArgs(l)...)
	return events, all, err
}
