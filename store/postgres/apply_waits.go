package postgres

import (
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

func placeTenant(w *backend.Wait) string { return w.Tenant }
func placeNumber(w *backend.Wait) int64  { return w.Number }
func waitVersion(w *backend.Wait) int64  { return w.Version }
func waitAttempt(w *backend.Wait) int    { return w.Attempt }
func waitKeyRows(rows []keyRow, w *backend.Wait) []keyRow {
	for _, k := range w.Keys {
		rows = append(rows, keyRow{tenant: w.Tenant, key: k, typ: w.Type, number: w.Number, since: w.OpenSince})
	}
	return rows
}

func (w *writes) insertWaits(fresh []*backend.Wait) {
	var open, others []*backend.Wait
	var keys []keyRow
	for _, wait := range sorted(fresh, byPlace) {
		if wait.Open() {
			keys = waitKeyRows(keys, wait)
		}
		if wait.Open() && wait.Take == 0 && !wait.TakeSettled { // an open wait is in nobody's hands; a token would be kept
			open = append(open, wait)
		} else {
			others = append(others, wait)
		}
	}
	w.add(insertOpenWaitsSQL, len(open), true, append(registeredColumns(open), instants(open, func(w *backend.Wait) time.Time { return w.OpenSince }))...)
	w.add(insertWaitsSQL, len(others), true, append(registeredColumns(others), waitColumns(others)...)...)
	w.insertKeyRows(insertWaitKeysSQL, keys)
}

// registeredColumns are the columns of waits that their registration says.
func registeredColumns(rows []*backend.Wait) []any {
	return []any{
		texts(rows, placeTenant), bigints(rows, placeNumber),
		texts(rows, func(w *backend.Wait) string { return w.RunID }),
		texts(rows, func(w *backend.Wait) string { return w.Effect }),
		texts(rows, func(w *backend.Wait) string { return w.WorkflowID }),
		integers(rows, func(w *backend.Wait) int { return w.Shard }),
		integers(rows, waitAttempt),
		texts(rows, func(w *backend.Wait) string { return w.Type }),
		pairs(rows, func(w *backend.Wait) []string { return flatKeys(w.Keys) }),
		texts(rows, func(w *backend.Wait) string { return w.From }),
		texts(rows, func(w *backend.Wait) string { return w.Trace.Parent }),
		texts(rows, func(w *backend.Wait) string { return w.Trace.State }),
		instants(rows, func(w *backend.Wait) time.Time { return w.RegisteredAt }),
		instants(rows, func(w *backend.Wait) time.Time { return w.Deadline }),
	}
}

// waitColumns are the columns of waits that can change, in the order of both statements.
func waitColumns(rows []*backend.Wait) []any {
	return append([]any{
		instants(rows, func(w *backend.Wait) time.Time { return w.OpenSince }),
		bigintsOrNull(rows, func(w *backend.Wait) int64 { return held(w).Number }),
		texts(rows, func(w *backend.Wait) string { return held(w).Source }),
		texts(rows, func(w *backend.Wait) string { return held(w).ID }),
		bigints(rows, func(w *backend.Wait) int64 { return held(w).Claim }),
		instants(rows, func(w *backend.Wait) time.Time { return w.ParkedAt }),
	}, tryColumns(rows)...)
}

// tryColumns are the columns that count tries and failures.
func tryColumns(rows []*backend.Wait) []any {
	return []any{
		integers(rows, func(w *backend.Wait) int { return w.Attempts }),
		instants(rows, func(w *backend.Wait) time.Time { return w.NextAttemptAt }),
		texts(rows, func(w *backend.Wait) string { return w.LastError }),
		bigints(rows, func(w *backend.Wait) int64 { return w.Take }),
		instants(rows, func(w *backend.Wait) time.Time { return w.TakeUntil }),
		booleans(rows, func(w *backend.Wait) bool { return w.TakeSettled }),
		instants(rows, func(w *backend.Wait) time.Time { return w.QuarantinedAt }),
	}
}

func held(w *backend.Wait) backend.HeldEvent {
	if w.Held == nil {
		return backend.HeldEvent{}
	}
	return *w.Held
}

func (w *writes) deleteWaits(gone []*backend.Wait) {
	rows := sorted(gone, byPlace)
	w.add(deleteWaitsSQL, len(rows), true, texts(rows, placeTenant), bigints(rows, placeNumber), bigints(rows, waitVersion))
	var keys []keyRow
	for _, wait := range rows {
		if wait.Keyed {
			keys = waitKeyRows(keys, wait)
		}
	}
	w.add(deleteWaitKeysSQL, len(keys), false, keyRowColumns(keys)...)
}

// updateWaits keeps the law of key rows: an open wait has them and nothing else has.
func (w *writes) updateWaits(changed []*backend.Wait) {
	var sound, damaged []*backend.Wait
	var gone, keys []keyRow
	for _, wait := range sorted(changed, byPlace) {
		if wait.Corrupt != nil {
			damaged = append(damaged, wait)
			continue
		}
		sound = append(sound, wait)
		switch {
		case wait.Keyed && !wait.Open():
			gone = waitKeyRows(gone, wait)
		case !wait.Keyed && wait.Open():
			keys = waitKeyRows(keys, wait)
		}
	}
	w.add(updateWaitsSQL, len(sound), true, append([]any{
		texts(sound, placeTenant), bigints(sound, placeNumber), bigints(sound, waitVersion), integers(sound, waitAttempt),
	}, waitColumns(sound)...)...)
	w.add(updateCorruptWaitsSQL, len(damaged), true, append([]any{
		texts(damaged, placeTenant), bigints(damaged, placeNumber), bigints(damaged, waitVersion),
	}, tryColumns(damaged)...)...)
	w.add(deleteWaitKeysSQL, len(gone), false, keyRowColumns(gone)...)
	w.insertKeyRows(restoreWaitKeysSQL, keys)
}
