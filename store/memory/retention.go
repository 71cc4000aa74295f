package memory

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
)

// OldLetters implements [backend.Tx].
func (t *transaction) OldLetters(ctx context.Context, before time.Time, after backend.LetterPosition, limit int) ([]*backend.Event, bool, error) {
	if err := alive(ctx); err != nil {
		return nil, false, err
	}
	due := map[string][]instant{}
	for name, o := range t.tenants {
		walk := o.died.all()
		if after.Set {
			walk = o.died.above(instant{after.At, after.Number})
		}
		for x := range walk {
			if x.at.After(before) || len(due[name]) > limit {
				break
			}
			due[name] = append(due[name], x)
		}
	}
	places, left := fair.Choose(due, limit, compareInstants)
	rows := make([]*backend.Event, len(places))
	for i, x := range places {
		rows[i] = copyEvent(t.eventsByNum[x.number], false)
	}
	return rows, len(left) > 0, nil
}
