package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// defaultRetention is the page of what retention ends.
const defaultRetention = 200

// letterPosition is the place of an old letter.
type letterPosition struct {
	At     time.Time `json:"at"`
	Number int64     `json:"number"`
}

func (p *letterPosition) sound() bool { return soundAt(p.At) && p.Number > 0 }

// PurgeOldLetters implements [store.Retainer].
func (e *Engine) PurgeOldLetters(ctx context.Context, deadBefore time.Time, limit int, cursor string) (store.OldLetters, error) {
	const verb = "purge_old_letters"
	limit, err := rendezvous.PageLimit(limit, defaultRetention, rendezvous.MaxBatchItems)
	if err != nil {
		return store.OldLetters{}, err
	}
	before, err := checkCutoff("dead_before", deadBefore)
	if err != nil || before.IsZero() {
		return store.OldLetters{}, err
	}
	var at letterPosition
	if err := decodeCursor(cursor, verb, "", nil, &at); err != nil {
		return store.OldLetters{}, err
	}
	op, err := mintID() // a name of its own: no operator's op is mistaken for it
	if err != nil {
		return store.OldLetters{}, err
	}
	c := choice{op: op, operator: &rendezvous.Operator{Actor: store.Retention, Basis: rendezvous.BasisConnected}}
	var page store.OldLetters
	_, err = e.update(ctx, verb, time.Time{}, func(ctx context.Context, u *unit) error {
		rows, more, err := u.tx.OldLetters(ctx, before, backend.LetterPosition{Set: cursor != "", At: at.At, Number: at.Number}, limit)
		if err != nil {
			return err
		}
		page = store.OldLetters{}
		for _, row := range rows {
			letter := store.OldLetter{Tenant: row.Tenant, EventID: rendezvous.EventID{Source: row.Source, ID: row.ID}, Corrupt: row.Corrupt}
			if row.Corrupt != nil {
				page.Spared = append(page.Spared, letter)
				continue
			}
			u.purge(&c, row)
			page.Purged = append(page.Purged, letter)
		}
		if more && len(rows) > 0 {
			page.NextCursor = encodeCursor(verb, "", nil, behindAll(rows))
		}
		return nil
	})
	if err != nil {
		return store.OldLetters{}, err
	}
	return page, nil
}

// behindAll is the place from which nothing is left out: of the tenants' last rows the first. What a tenant is owed, and got no place for, comes behind its last.
func behindAll(rows []*backend.Event) letterPosition {
	last := map[string]*backend.Event{}
	for _, e := range rows {
		last[e.Tenant] = e
	}
	for _, e := range rows {
		if last[e.Tenant] == e {
			return letterPosition{At: e.DeadAt, Number: e.Number}
		}
	}
	return letterPosition{}
}
