package engine

import (
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// maxLetterBytes bounds the payloads of one page of dead letters.
const maxLetterBytes = rendezvous.MaxCollectBytes

// DeadLetters implements [store.DeadLetters].
func (t *tenant) DeadLetters(ctx context.Context, f store.DeadFilter, limit int, cursor string, payload bool) (store.DeadPage, error) {
	const verb = "dead_letters"
	limit, err := rendezvous.PageLimit(limit, rendezvous.DefaultList, rendezvous.MaxList)
	if err != nil {
		return store.DeadPage{}, err
	}
	if f, err = checkDeadFilter(f); err != nil {
		return store.DeadPage{}, err
	}
	var after numberPosition
	if err := decodeCursor(cursor, verb, t.name, f, &after); err != nil {
		return store.DeadPage{}, err
	}
	var page store.DeadPage
	err = t.view(ctx, verb, func(ctx context.Context, r backend.Reader) error {
		rows, next, err := r.DeadLetters(ctx, t.name, backend.DeadWalk{Filter: backend.DeadFilter(f), After: after.Number}, limit)
		if err == nil && payload {
			rows, next, err = withPayloads(ctx, r, rows, next)
		}
		if err != nil {
			return err
		}
		page = store.DeadPage{Letters: make([]store.DeadLetter, len(rows))}
		for i, e := range rows {
			page.Letters[i] = deadLetter(e)
		}
		if next != 0 {
			page.NextCursor = encodeCursor(verb, t.name, f, numberPosition{Number: next})
		}
		return nil
	})
	if err != nil {
		return store.DeadPage{}, err
	}
	return page, nil
}

// withPayloads reads letters whole, as many of the page as the bound on bytes lets pass, and at least one; next is where the page ends then.
func withPayloads(ctx context.Context, r backend.Reader, rows []*backend.Event, next int64) ([]*backend.Event, int64, error) {
	numbers, size := make([]int64, 0, len(rows)), 0
	for i, e := range rows {
		if size += e.PayloadSize; i > 0 && size > maxLetterBytes {
			rows, next = rows[:i], rows[i-1].Number
			break
		}
		numbers = append(numbers, e.Number)
	}
	whole, err := r.EventsByNumber(ctx, numbers, true)
	if err != nil {
		return nil, 0, err
	}
	for i, e := range rows {
		if w := whole[e.Number]; w != nil {
			rows[i] = w
		}
	}
	return rows, next, nil
}

// deadLetter is a letter as listed. One that does not decode shows who it is (R9).
func deadLetter(e *backend.Event) store.DeadLetter {
	if e.Corrupt == nil {
		return store.DeadLetter{StoredEvent: storedEvent(e)}
	}
	return store.DeadLetter{
		StoredEvent: store.StoredEvent{Number: e.Number, Event: rendezvous.Event{EventID: rendezvous.EventID{Source: e.Source, ID: e.ID}}}, Corrupt: e.Corrupt,
	}
}

// CountDeadLetters implements [store.DeadLetters].
func (t *tenant) CountDeadLetters(ctx context.Context, f store.DeadFilter, most int, byReason bool) (store.DeadCount, error) {
	if most < 0 {
		return store.DeadCount{}, rendezvous.InvalidField("cap", "%d is negative; give how far to count, or 0 for all", most)
	}
	f, err := checkDeadFilter(f)
	if err != nil {
		return store.DeadCount{}, err
	}
	var count store.DeadCount
	err = t.view(ctx, "count_dead_letters", func(ctx context.Context, r backend.Reader) error {
		counts, more, err := r.CountDead(ctx, t.name, backend.DeadFilter(f), most)
		if err != nil {
			return err
		}
		count = store.DeadCount{Capped: more}
		if byReason {
			count.ByReason = counts
		}
		for _, n := range counts {
			count.Count += n
		}
		return nil
	})
	if err != nil {
		return store.DeadCount{}, err
	}
	return count, nil
}

// checkDeadFilter judges a filter and answers it with its instants in whole microseconds, so that equal filters have equal cursors.
func checkDeadFilter(f store.DeadFilter) (store.DeadFilter, error) {
	if f.Reason != "" && !slices.Contains(rendezvous.DeadReasons[:], f.Reason) {
		return f, rendezvous.InvalidField("reason", "%q is no reason of a death; they are %v", f.Reason, rendezvous.DeadReasons)
	}
	for _, part := range [...]struct{ field, value string }{{"type", f.Type}, {"source", f.Source}} {
		if part.value != "" {
			if err := rendezvous.CheckID(part.field, part.value); err != nil {
				return f, err
			}
		}
	}
	if f.Key != nil {
		if _, err := rendezvous.CheckKeys([]rendezvous.Key{*f.Key}); err != nil {
			return f, err
		}
	}
	if err := checkInterval("received", &f.ReceivedAfter, &f.ReceivedBefore); err != nil {
		return f, err
	}
	return f, checkInterval("dead", &f.DeadAfter, &f.DeadBefore)
}

// checkInterval judges an interval that includes both its ends.
func checkInterval(name string, after, before *time.Time) error {
	*after, *before = rendezvous.DueInstant(*after), rendezvous.Instant(*before)
	if err := rendezvous.CheckInstant(name+"_after", *after); err != nil {
		return err
	}
	if err := rendezvous.CheckInstant(name+"_before", *before); err != nil {
		return err
	}
	if !before.IsZero() && after.After(*before) {
		return rendezvous.InvalidField(name+"_before", "is before %s_after, so nothing passes; give a later one", name).
			With("limit", rendezvous.FormatInstant(*after)).With("value", rendezvous.FormatInstant(*before))
	}
	return nil
}
