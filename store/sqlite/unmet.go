package sqlite

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
)

// unmetSlice is how many rows one walk goes over in one call, key rows or waits: what bounds how long a pass over a large stock of events nobody waits for keeps
// the writer.
const unmetSlice = 5_000

// Parameters of all are before, now, the instant and number of the place behind which the walk goes on, and how many rows it goes over.
const (
	inNobodysHands = `e.state = 'live' AND (e.take_until IS NULL OR e.take_until <= ?2) AND (e.expires_at IS NULL OR e.expires_at > ?2)`
	// Whether a key row i of an event stands beside a wait that it could have met: a targeted one looks at the waits of its run, whatever their keys.
	besideWait = ` CASE
	WHEN i.namespace <> '' THEN EXISTS (
		SELECT 1 FROM wait_keys k
		WHERE k.tenant = i.tenant AND k.namespace = i.namespace AND k.value = i.value AND k.type = i.type AND k.open_since <= ?1)
	ELSE i.value <> '' AND EXISTS (
		SELECT 1 FROM waits w
		WHERE w.tenant = i.tenant AND w.run_id = i.value AND w.type = i.type AND w.held_number IS NULL AND w.open_since <= ?1)
	END`

	// A slice of the live events by number, and whether each was left apart and is in nobody's hands.
	unmetSQL = `
SELECT NULL, i.number, i.tenant, CASE WHEN i.live_since <= ?1 AND` + besideWait + ` AND EXISTS (
	SELECT 1 FROM events e WHERE e.number = i.number AND ` + inNobodysHands + `) THEN i.number END
FROM event_keys i INDEXED BY event_keys_number WHERE i.number > ?4 ORDER BY i.number LIMIT ?5 + 0`
	// Events that are live again.
	newsOfEventsSQL = `
SELECT e.live_since, e.number, e.tenant, CASE WHEN e.live_since <= ?1 AND ` + inNobodysHands + ` AND EXISTS (
	SELECT 1 FROM event_keys i WHERE i.number = e.number AND` + besideWait + `) THEN e.number END
FROM events e INDEXED BY events_again WHERE e.live_since <> e.received_at AND (e.live_since, e.number) > (?3, ?4)
ORDER BY e.live_since, e.number LIMIT ?5 + 0`
	// A wait and the lowest event that it was left apart from: of the first few under each of its keys, and of those that are targeted at its run. What stands
	// behind many that are in hand, or another source's, is found by its own age, or by the walk through all. Whether there is any event is asked first: as a rule there is none.
	unmetWait = ` w.number, w.tenant, CASE WHEN w.held_number IS NULL AND w.open_since <= ?1 AND (
	EXISTS (SELECT 1 FROM event_keys i WHERE i.tenant = w.tenant AND i.namespace = '' AND i.value = w.run_id AND i.type = w.type)
	OR CASE WHEN json_valid(w.keys) THEN EXISTS (SELECT 1 FROM event_keys i
		WHERE i.tenant = w.tenant AND i.namespace = w.keys ->> '$[0][0]' AND i.value = w.keys ->> '$[0][1]' AND i.type = w.type)
		OR json_array_length(w.keys) > 1 AND EXISTS (SELECT 1 FROM json_each(w.keys) p CROSS JOIN event_keys i
			WHERE i.tenant = w.tenant AND i.namespace = CASE WHEN p.type = 'array' THEN p.value ->> 0 END
			AND i.value = CASE WHEN p.type = 'array' THEN p.value ->> 1 END AND i.type = w.type) END
	) THEN (
	SELECT min(f.number) FROM json_each(json_insert(iif(json_valid(w.keys), w.keys, '[]'), '$[#]', json_array('', w.run_id))) p CROSS JOIN events f ON f.number = (
		SELECT e.number FROM (
			SELECT i.number FROM event_keys i
			WHERE i.tenant = w.tenant AND i.namespace = CASE WHEN p.type = 'array' THEN p.value ->> 0 END
			AND i.value = CASE WHEN p.type = 'array' THEN p.value ->> 1 END AND i.type = w.type AND i.live_since <= ?1
			ORDER BY i.number LIMIT 20) few CROSS JOIN events e ON e.number = few.number
		WHERE ` + inNobodysHands + ` AND (w.from_source = '' OR w.from_source = e.source)
		ORDER BY few.number LIMIT 1)) END`
	newWaitsSQL   = `SELECT NULL,` + unmetWait + ` FROM waits w WHERE w.number > ?4 ORDER BY w.number LIMIT ?5 + 0`
	waitsAgainSQL = `
SELECT w.open_since,` + unmetWait + ` FROM waits w INDEXED BY waits_again WHERE w.open_since <> w.registered_at AND (w.open_since, w.number) > (?3, ?4)
ORDER BY w.open_since, w.number LIMIT ?5 + 0`
)

// newsWalks are the statements of the walks.
var newsWalks = [backend.NewsWalks]string{
	backend.NewEvents: unmetSQL, backend.NewWaits: newWaitsSQL, backend.LiveAgain: newsOfEventsSQL, backend.OpenAgain: waitsAgainSQL,
}

// UnmetEvents implements [backend.Tx].
func (t *transaction) UnmetEvents(ctx context.Context, before time.Time, after int64, limit int) ([]*backend.Event, int64, error) {
	slice, err := t.walk(ctx, unmetSQL, before, backend.Place{Number: after})
	if err != nil {
		return nil, 0, err
	}
	due := map[string][]int64{}
	for _, f := range slice.Finds {
		if own := due[f.Tenant]; len(own) == 0 || own[len(own)-1] != f.Event {
			due[f.Tenant] = append(own, f.Event)
		}
	}
	var next int64
	if slice.Cut {
		next = slice.End.Number - 1 // an event's key rows may have been cut apart
	}
	numbers, left := fair.Numbers(due, limit)
	if left != 0 {
		next = left - 1
	}
	rows, err := t.inOrder(ctx, numbers)
	return rows, next, err
}

// UnmetNews implements [backend.Tx].
func (t *transaction) UnmetNews(ctx context.Context, before time.Time, from backend.News, limit int) (page backend.NewsPage, err error) {
	var walks [backend.NewsWalks]fair.Look
	for i, sql := range newsWalks {
		if walks[i], err = t.walk(ctx, sql, before, from[i]); err != nil {
			return page, err
		}
	}
	if w := &walks[backend.NewEvents]; w.Cut {
		w.End = w.End.Before()
	}
	numbers, page := fair.News(&walks, limit)
	page.Rows, err = t.inOrder(ctx, numbers)
	return page, err
}

// walk goes over the next rows.
func (t *transaction) walk(ctx context.Context, sql string, before time.Time, from backend.Place) (fair.Look, error) {
	w, looked, at := fair.Look{End: from}, 0, start
	if !from.At.IsZero() {
		at = from.At.UnixMicro()
	}
	err := t.query(ctx, sql, func(c *columns) error {
		looked++
		w.End = backend.Place{At: c.InstantOrNone(), Number: c.Bigint()}
		f := fair.Find{Place: w.End, Tenant: c.Text()}
		if !c.Absent() {
			f.Event = c.Bigint()
			w.Finds = append(w.Finds, f)
		}
		return nil
	}, before, t.now, at, from.Number, unmetSlice)
	w.Cut = looked == unmetSlice
	return w, err
}

// LastNumbers implements [backend.Tx]. It knows them better than the disk, which has what may have been given.
func (t *transaction) LastNumbers(context.Context) (backend.Numbers, error) {
	return backend.Numbers{Event: t.counts[eventNumber].last, Wait: t.counts[waitNumber].last, Take: t.counts[takeToken].last}, nil
}
