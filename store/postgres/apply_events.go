package postgres

import (
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// keyRow is one row of the match index.
type keyRow struct {
	tenant string
	key    rendezvous.Key
	typ    string
	number int64
	since  time.Time
	until  time.Time // the event's own expiry
}

func keyRowColumns(rows []keyRow) []any {
	return []any{
		texts(rows, func(r keyRow) string { return r.tenant }),
		texts(rows, func(r keyRow) string { return r.key.Namespace }),
		texts(rows, func(r keyRow) string { return r.key.Value }),
		texts(rows, func(r keyRow) string { return r.typ }),
		bigints(rows, func(r keyRow) int64 { return r.number }),
	}
}

func (w *writes) insertKeyRows(sql string, rows []keyRow) {
	w.add(sql, len(rows), false, append(keyRowColumns(rows), instants(rows, func(r keyRow) time.Time { return r.since }))...)
}

func (w *writes) insertEventKeyRows(sql string, rows []keyRow) {
	w.add(sql, len(rows), false, append(keyRowColumns(rows), instants(rows, func(r keyRow) time.Time { return r.since }),
		instants(rows, func(r keyRow) time.Time { return r.until }))...)
}

// deadKeyRows are keys under which lists of dead letters show an event.
func deadKeyRows(rows []keyRow, e *backend.Event) []keyRow {
	for _, k := range e.Keys {
		rows = append(rows, keyRow{tenant: e.Tenant, key: k, number: e.Number})
	}
	return rows
}

func (w *writes) deadKeys(sql string, rows []keyRow) {
	w.add(sql, len(rows), false,
		texts(rows, func(r keyRow) string { return r.tenant }),
		texts(rows, func(r keyRow) string { return r.key.Namespace }),
		texts(rows, func(r keyRow) string { return r.key.Value }),
		bigints(rows, func(r keyRow) int64 { return r.number }),
	)
}

func eventKeyRows(rows []keyRow, e *backend.Event) []keyRow {
	for _, k := range e.MatchKeys() {
		rows = append(rows, keyRow{e.Tenant, k, e.Type, e.Number, e.LiveSince, e.ExpiresAt})
	}
	return rows
}

func (w *writes) insertEvents(fresh []*backend.Event) {
	rows := sorted(fresh, byIdentity)
	if slices.ContainsFunc(rows, func(e *backend.Event) bool { return !untouched(e) }) {
		w.insertEventsOfAnyKind(rows)
	} else {
		w.insertLiveEvents(rows)
	}
	var keys, dead []keyRow
	for _, e := range rows {
		if e.Live() {
			keys = eventKeyRows(keys, e)
		}
		if e.Dead() {
			dead = deadKeyRows(dead, e)
		}
	}
	w.insertEventKeyRows(insertEventKeysSQL, keys)
	w.deadKeys(insertDeadKeysSQL, dead)
}

// untouched reports whether nothing has happened yet to a new event: it is as doors store events.
func untouched(e *backend.Event) bool {
	return e.Live() && !e.Shed && e.ClaimRun == "" && e.Seq == 0 && e.DeadReason == "" && e.DeadDetail == "" && e.DeadAt.IsZero() && !e.Erased &&
		e.OfferFailures == 0 && e.Take == 0 && e.TakeUntil.IsZero() && !e.TakeOpen && e.Takes == 0 && e.Requeues == 0 &&
		!e.Purged && e.Op == ""
}

// sentColumns are the columns of events that come from who sent them.
func sentColumns(rows []*backend.Event) []any {
	return []any{
		bigints(rows, eventNumber),
		texts(rows, func(e *backend.Event) string { return e.Tenant }),
		texts(rows, func(e *backend.Event) string { return e.Source }),
		texts(rows, func(e *backend.Event) string { return e.ID }),
		texts(rows, func(e *backend.Event) string { return e.Type }),
		pairs(rows, func(e *backend.Event) []string { return flatKeys(e.Keys) }),
		texts(rows, func(e *backend.Event) string { return e.ContentType }),
		blobs(rows, func(e *backend.Event) []byte {
			if e.Shed {
				return nil
			}
			return e.Payload
		}),
		blobs(rows, func(e *backend.Event) []byte { return e.Digest }),
		instants(rows, func(e *backend.Event) time.Time { return e.ReceivedAt }),
	}
}

// originColumns are who minted events and where their traces began.
func originColumns(rows []*backend.Event) []any {
	return []any{
		texts(rows, func(e *backend.Event) string { return actor(e.Minted) }),
		texts(rows, func(e *backend.Event) string { return basis(e.Minted) }),
		texts(rows, func(e *backend.Event) string { return e.Trace.Parent }),
		texts(rows, func(e *backend.Event) string { return e.Trace.State }),
	}
}

func (w *writes) insertLiveEvents(rows []*backend.Event) {
	w.add(insertLiveEventsSQL, len(rows), true, slices.Concat(sentColumns(rows), []any{
		instants(rows, func(e *backend.Event) time.Time { return e.LiveSince }),
		instants(rows, func(e *backend.Event) time.Time { return e.ExpiresAt }),
		texts(rows, func(e *backend.Event) string { return e.Target }),
	}, originColumns(rows))...)
}

func (w *writes) insertEventsOfAnyKind(rows []*backend.Event) {
	w.add(insertEventsSQL, len(rows), true, slices.Concat(sentColumns(rows), eventColumns(rows), originColumns(rows))...)
}

// eventColumns are the columns of events that can change, in the order of both statements.
func eventColumns(rows []*backend.Event) []any {
	return []any{
		instants(rows, func(e *backend.Event) time.Time { return e.LiveSince }),
		instants(rows, func(e *backend.Event) time.Time { return e.ExpiresAt }),
		texts(rows, func(e *backend.Event) string { return e.Target }),
		texts(rows, func(e *backend.Event) string { return string(e.State) }),
		texts(rows, func(e *backend.Event) string { return e.ClaimRun }),
		texts(rows, func(e *backend.Event) string { return e.ClaimEffect }),
		instants(rows, func(e *backend.Event) time.Time { return e.ClaimedAt }),
		texts(rows, func(e *backend.Event) string { return e.Workflow }),
		texts(rows, func(e *backend.Event) string { return e.Run }),
		texts(rows, func(e *backend.Event) string { return e.Effect }),
		bigints(rows, func(e *backend.Event) int64 { return e.Seq }),
		texts(rows, func(e *backend.Event) string { return string(e.DeadReason) }),
		texts(rows, func(e *backend.Event) string { return e.DeadDetail }),
		instants(rows, func(e *backend.Event) time.Time { return e.DeadAt }),
		booleans(rows, func(e *backend.Event) bool { return e.Erased }),
		integers(rows, func(e *backend.Event) int { return e.OfferFailures }),
		bigints(rows, func(e *backend.Event) int64 { return e.Take }),
		instants(rows, func(e *backend.Event) time.Time { return e.TakeUntil }),
		booleans(rows, func(e *backend.Event) bool { return e.TakeOpen }),
		integers(rows, func(e *backend.Event) int { return e.Takes }),
		integers(rows, func(e *backend.Event) int { return e.Requeues }),
		booleans(rows, func(e *backend.Event) bool { return e.Purged }),
		texts(rows, func(e *backend.Event) string { return e.Op }),
		texts(rows, func(e *backend.Event) string { return actor(e.OpBy) }),
		texts(rows, func(e *backend.Event) string { return basis(e.OpBy) }),
	}
}

// updateEvents keeps the laws of key rows: a live event has its own and a dead letter its own, and nothing else has any.
func (w *writes) updateEvents(changed []*backend.Event, loaded map[int64]backend.Event) {
	var answered, died, sound, damaged []*backend.Event
	var gone []int64
	var keys, dead, raised []keyRow
	for _, e := range sorted(changed, byNumber) {
		was, known := loaded[e.Number]
		switch {
		case e.Corrupt != nil:
			damaged = append(damaged, e)
		case known && e.OnlyAnswered(&was):
			answered = append(answered, e)
		case known && e.OnlyDied(&was):
			died = append(died, e)
		default:
			sound = append(sound, e)
		}
		if e.Keyed && (!e.Live() || e.Rekey) {
			gone = append(gone, e.Number)
		}
		if e.Corrupt == nil && e.Live() && (!e.Keyed || e.Rekey) {
			keys = eventKeyRows(keys, e)
		}
		switch {
		case e.Dead() && !e.Listed:
			dead = deadKeyRows(dead, e)
		case !e.Dead() && e.Listed:
			raised = deadKeyRows(raised, e)
		}
	}
	w.consumeEvents(answered)
	w.retireEvents(died)
	w.changeEvents(sound)
	w.changeCorruptEvents(damaged)
	w.add(deleteEventKeysSQL, len(gone), false, bigints(gone, func(n int64) int64 { return n }))
	w.insertEventKeyRows(restoreEventKeysSQL, keys)
	w.deadKeys(insertDeadKeysSQL, dead)
	w.deadKeys(deleteDeadKeysSQL, raised)
}

func (w *writes) consumeEvents(rows []*backend.Event) {
	w.add(consumeEventsSQL, len(rows), true, bigints(rows, eventNumber), bigints(rows, eventVersion),
		texts(rows, func(e *backend.Event) string { return e.Workflow }),
		texts(rows, func(e *backend.Event) string { return e.Run }),
		texts(rows, func(e *backend.Event) string { return e.Effect }),
		bigints(rows, func(e *backend.Event) int64 { return e.Seq }),
	)
}

func (w *writes) retireEvents(rows []*backend.Event) {
	w.add(retireEventsSQL, len(rows), true, bigints(rows, eventNumber), bigints(rows, eventVersion),
		texts(rows, func(e *backend.Event) string { return string(e.DeadReason) }),
		texts(rows, func(e *backend.Event) string { return e.DeadDetail }),
		instants(rows, func(e *backend.Event) time.Time { return e.DeadAt }),
	)
}

func eventNumber(e *backend.Event) int64  { return e.Number }
func eventVersion(e *backend.Event) int64 { return e.Version }

func (w *writes) changeEvents(rows []*backend.Event) {
	args := []any{
		bigints(rows, eventNumber), bigints(rows, eventVersion),
		blobs(rows, func(e *backend.Event) []byte { return e.Digest }),
	}
	args = append(args, eventColumns(rows)...)
	w.add(updateEventsSQL, len(rows), true, append(args, booleans(rows, func(e *backend.Event) bool { return e.Shed }))...)
}

func (w *writes) changeCorruptEvents(rows []*backend.Event) {
	w.add(updateCorruptEventsSQL, len(rows), true,
		bigints(rows, eventNumber), bigints(rows, eventVersion),
		texts(rows, func(e *backend.Event) string { return string(e.State) }),
		texts(rows, func(e *backend.Event) string { return string(e.DeadReason) }),
		texts(rows, func(e *backend.Event) string { return e.DeadDetail }),
		instants(rows, func(e *backend.Event) time.Time { return e.DeadAt }),
		integers(rows, func(e *backend.Event) int { return e.OfferFailures }),
		bigints(rows, func(e *backend.Event) int64 { return e.Take }),
		instants(rows, func(e *backend.Event) time.Time { return e.TakeUntil }),
		booleans(rows, func(e *backend.Event) bool { return e.TakeOpen }),
		integers(rows, func(e *backend.Event) int { return e.Takes }),
	)
}
