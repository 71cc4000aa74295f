package engine

import (
	"context"
	"slices"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// readAnswers reads, payloads whole, the events that answer now and the answers that were given earlier: of both together no more than room.
func (u *unit) readAnswers(ctx context.Context, regs []*registration, room int) error {
	room, err := u.markLate(ctx, regs, room)
	if err != nil {
		return err
	}
	var numbers []int64
	for _, r := range regs {
		switch {
		case r.late:
		case r.event != nil:
			numbers = append(numbers, r.event.Number)
		case r.parked():
			numbers = append(numbers, r.row.Held.Number)
		}
	}
	if len(numbers) > 0 {
		events, err := u.tx.EventsByNumber(ctx, numbers, true)
		if err != nil {
			return err
		}
		for _, r := range regs {
			if err := r.bring(events); err != nil {
				return err
			}
		}
	}
	return u.readGiven(ctx, regs, room)
}

// parked reports whether the wait held an event before and asks for it.
func (r *registration) parked() bool {
	return r.claim && r.err == nil && r.first == nil && r.row != nil && waitState(r.row) == rendezvous.WaitParked
}

// markLate marks the registrations whose events are over room, and answers the room that the others leave. Five hundred payloads of 1 MiB would be a batch
// of half a gigabyte; what is over is claimed as by ClaimFor, and given by Collect, Suspend, DeliverParked or the same call again.
func (u *unit) markLate(ctx context.Context, regs []*registration, room int) (int, error) {
	if len(regs) <= room/rendezvous.MaxPayload {
		return room, nil // they fit, whatever they are
	}
	var parked []*backend.Wait
	for _, r := range regs {
		if r.parked() {
			parked = append(parked, r.row)
		}
	}
	held, err := u.heldBy(ctx, parked)
	if err != nil {
		return room, err
	}
	for _, r := range regs {
		e := r.event
		if r.parked() {
			e = held[r.row.Held.Number]
		}
		switch {
		case e == nil || e.Corrupt != nil: // bring judges it
		case e.PayloadSize > room:
			r.late = true
		default:
			room -= e.PayloadSize
		}
	}
	return room, nil
}

// givenPart is how many answers of earlier calls are read at once: their sizes are not known before.
const givenPart = 32

// readGiven reads answers that were given earlier. Nothing is left to be parked of them, so what is over room fails alone: the repeat of the call gets it.
func (u *unit) readGiven(ctx context.Context, regs []*registration, room int) error {
	given := slices.DeleteFunc(slices.Clone(regs), func(r *registration) bool {
		return r.err != nil || r.first != nil || !r.claim || r.stand.closing() != rendezvous.ClosedAnswered
	})
	for part := range slices.Chunk(given, givenPart) {
		if room <= 0 {
			overRoom(part)
			continue
		}
		keys := make([]backend.RecordKey, len(part))
		for i, r := range part {
			keys[i] = r.answerKey(r.stand.closed.Seq)
		}
		records, err := u.tx.RecordsAt(ctx, keys)
		if err != nil {
			return err
		}
		for i, r := range part {
			record, ok := records[keys[i]]
			if room -= len(record.Payload); room < 0 {
				overRoom(part[i:])
				break
			}
			if ok {
				r.took = &record
			}
		}
	}
	return nil
}

func overRoom(regs []*registration) {
	for _, r := range regs {
		r.err = unavailable("the answers of this batch are more than it hands out at once; the wait %q is answered, ask again", r.wait.Effect).
			With("effect", r.wait.Effect)
	}
}

func (r *registration) answerKey(seq int64) backend.RecordKey {
	return backend.RecordKey{Tenant: r.f.Tenant, WorkflowID: r.f.ID, Seq: seq}
}

// bring makes the event read last, with its payload, the one that answers. One that cannot be read answers nobody: an open wait stays open, and for a
// parked one this registration fails.
func (r *registration) bring(events map[int64]*backend.Event) error {
	switch {
	case r.late:
	case r.event != nil:
		full := events[r.event.Number]
		switch {
		case full == nil || full.Version != r.event.Version:
			return backend.ErrStale
		case full.Corrupt != nil:
			r.event = nil
		default:
			r.event = full
		}
	case r.parked():
		e := events[r.row.Held.Number]
		switch {
		case e != nil && e.Corrupt != nil:
			r.err = e.Corrupt
		case !holds(r.row, e):
			r.err = brokenPair(r.row, "the claim it holds does not stand on the event's side")
		default:
			r.event = e
		}
	}
	return nil
}
