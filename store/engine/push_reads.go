package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// GetPush implements [store.PushStore].
func (t *tenant) GetPush(ctx context.Context, key store.PushKey) (*store.Push, error) {
	if err := checkPushKey(key); err != nil {
		return nil, err
	}
	var out *store.Push
	err := t.view(ctx, "get_push", func(ctx context.Context, r backend.Reader) error {
		rows, err := r.Pushes(ctx, []backend.PushKey{t.pushKey(key)})
		if p := rows[t.pushKey(key)]; p != nil && p.State != backend.PushGone {
			row := storePush(p)
			out = &row
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if out != nil && out.Corrupt != nil {
		return nil, out.Corrupt
	}
	return out, nil
}

// ListPush implements [store.PushStore].
func (t *tenant) ListPush(ctx context.Context, run string) ([]store.Push, error) {
	if err := rendezvous.CheckID("run_id", run); err != nil {
		return nil, err
	}
	var out []store.Push
	err := t.view(ctx, "list_push", func(ctx context.Context, r backend.Reader) error {
		rows, err := r.PushesOf(ctx, []backend.RunKey{{Tenant: t.name, ID: run}})
		out = storePushes(rows)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// mostUnserved is where due rows of the other namespace stop being counted.
const mostUnserved = 10_000

// dueAt is the instant of a due read: now where none is given.
func dueAt(at, now time.Time) time.Time {
	if at.IsZero() {
		return now
	}
	return rendezvous.Instant(at)
}

// DuePush implements [store.PushStore].
func (t *tenant) DuePush(ctx context.Context, at time.Time, limit int) ([]store.Push, error) {
	limit, err := checkDue(at, limit)
	if err != nil {
		return nil, err
	}
	var out []store.Push
	err = t.view(ctx, "due_push", func(ctx context.Context, r backend.Reader) error {
		var queues [][]*backend.Push
		for _, n := range [...]rendezvous.PushNamespace{rendezvous.PushCaller, rendezvous.PushOperator} {
			rows, err := r.DuePushes(ctx, backend.PushDue{Namespace: n, At: dueAt(at, r.Now()), Tenant: t.name}, limit)
			if err != nil {
				return err
			}
			queues = append(queues, rows)
		}
		out = storePushes(backend.MergeDue(queues[0], queues[1], limit))
		return nil
	})
	return out, err
}

func checkDue(at time.Time, limit int) (int, error) {
	if err := rendezvous.CheckInstant("at", at); err != nil {
		return 0, err
	}
	return rendezvous.PageLimit(limit, rendezvous.DefaultList, rendezvous.MaxList)
}

// DuePushIn implements [store.PushStore].
func (t *tenant) DuePushIn(ctx context.Context, at time.Time, limit int, namespace rendezvous.PushNamespace) (store.DuePushes, error) {
	limit, err := checkDue(at, limit)
	if err != nil {
		return store.DuePushes{}, err
	}
	if err := checkNamespace(namespace); err != nil {
		return store.DuePushes{}, err
	}
	var out store.DuePushes
	err = t.view(ctx, "due_push_in", func(ctx context.Context, r backend.Reader) error {
		due := backend.PushDue{Namespace: namespace, At: dueAt(at, r.Now()), Tenant: t.name}
		rows, err := r.DuePushes(ctx, due, limit)
		if err != nil {
			return err
		}
		out.Pushes = storePushes(rows)
		out.Unserved, out.Capped, err = unserved(ctx, r, due)
		return err
	})
	return out, err
}

func checkNamespace(n rendezvous.PushNamespace) error {
	if !n.Known() {
		return rendezvous.InvalidField("namespace", "%.32q is none of %s, %s", n, rendezvous.PushCaller, rendezvous.PushOperator)
	}
	return nil
}

// unserved counts the due rows of the other namespace.
func unserved(ctx context.Context, r backend.Reader, due backend.PushDue) (n int, capped bool, err error) {
	if due.Namespace == rendezvous.PushCaller {
		due.Namespace = rendezvous.PushOperator
	} else {
		due.Namespace = rendezvous.PushCaller
	}
	n, err = r.CountDuePushes(ctx, due, mostUnserved+1)
	return min(n, mostUnserved), n > mostUnserved, err
}

// parkedPushPosition is the last row of a page of ParkedPushes.
type parkedPushPosition struct {
	Run string `json:"r"`
	ID  string `json:"i"`
}

func (p *parkedPushPosition) sound() bool {
	return rendezvous.CheckID("cursor", p.Run) == nil && rendezvous.CheckRegistrationID("cursor", p.ID) == nil
}

// ParkedPushes implements [store.PushStore].
func (t *tenant) ParkedPushes(ctx context.Context, f store.PushParkedFilter, limit int, cursor string) (store.PushPage, error) {
	const verb = "parked_pushes"
	limit, err := rendezvous.PageLimit(limit, rendezvous.DefaultList, rendezvous.MaxList)
	if err != nil {
		return store.PushPage{}, err
	}
	filter, err := pushFilter(f)
	if err != nil {
		return store.PushPage{}, err
	}
	var at parkedPushPosition
	if err := decodeCursor(cursor, verb, t.name, f, &at); err != nil {
		return store.PushPage{}, err
	}
	after := backend.PushKey{}
	if cursor != "" {
		after = backend.PushKey{Tenant: t.name, RunID: at.Run, ID: at.ID}
	}
	var out store.PushPage
	err = t.view(ctx, verb, func(ctx context.Context, r backend.Reader) error {
		rows, next, err := r.ListParkedPushes(ctx, t.name, filter, after, backend.Span{Limit: limit, Look: t.look})
		out.Pushes = storePushes(rows)
		if next != (backend.PushKey{}) {
			out.NextCursor = encodeCursor(verb, t.name, f, parkedPushPosition{next.RunID, next.ID})
		}
		return err
	})
	if err != nil {
		return store.PushPage{}, err
	}
	return out, nil
}

func pushFilter(f store.PushParkedFilter) (backend.PushFilter, error) {
	if f.Reason != "" && !f.Reason.Known() {
		return backend.PushFilter{}, rendezvous.InvalidField("reason", "%.64q is no reason to park", f.Reason)
	}
	if f.Gate != "" {
		if err := rendezvous.CheckID("gate", f.Gate); err != nil {
			return backend.PushFilter{}, err
		}
	}
	return backend.PushFilter(f), nil
}

// UnparkPushes implements [store.PushStore].
func (t *tenant) UnparkPushes(ctx context.Context, many store.UnparkPushes) (store.PushesUnparked, error) {
	limit, err := rendezvous.PageLimit(many.Limit, rendezvous.DefaultList, rendezvous.MaxList)
	if err != nil {
		return store.PushesUnparked{}, err
	}
	filter, err := pushFilter(many.PushParkedFilter)
	if err != nil {
		return store.PushesUnparked{}, err
	}
	if many.Spread < 0 || many.Spread > rendezvous.MaxTimerAfter {
		return store.PushesUnparked{}, rendezvous.InvalidField("spread", "%s is outside 0..100 years", many.Spread).With("value", many.Spread.String())
	}
	if err := rendezvous.CheckInstant("at", rendezvous.DueInstant(many.At)); err != nil {
		return store.PushesUnparked{}, err
	}
	var out store.PushesUnparked
	_, err = t.update(ctx, "unpark_pushes", time.Time{}, func(ctx context.Context, u *unit) error {
		out = store.PushesUnparked{}
		keys, more, err := u.longestParked(ctx, t.name, filter, limit)
		if err != nil || len(keys) == 0 {
			return err
		}
		rows, err := u.tx.LockPushes(ctx, keys)
		if err != nil {
			return err
		}
		out.More = more
		at := u.due(many.At)
		for _, k := range keys {
			p := rows[k]
			if p == nil || p.Corrupt != nil || p.State != rendezvous.PushParked {
				continue
			}
			u.unpark(p, rendezvous.DueInstant(at.Add(spread(many.Spread, out.Count, len(keys)))))
			out.Count++
		}
		return nil
	})
	return out, err
}

// spread is the i-th of n instants over a time, its ends among them.
func spread(over time.Duration, i, n int) time.Duration {
	if n < 2 {
		return 0
	}
	return time.Duration(float64(over) * float64(i) / float64(n-1))
}

// longestParked are the rows that pass a filter, those parked the longest first. Where few pass it goes on, so that a page is empty only at the end.
func (u *unit) longestParked(ctx context.Context, tenant string, f backend.PushFilter, limit int) (keys []backend.PushKey, more bool, err error) {
	var after backend.ParkedPushPosition
	for {
		rows, next, err := u.tx.LongestParkedPushes(ctx, tenant, f, after, backend.Span{Limit: limit - len(keys), Look: u.engine.look})
		if err != nil {
			return nil, false, err
		}
		for _, p := range rows {
			keys = append(keys, p.Key())
		}
		if !next.Set || len(keys) > 0 {
			return keys, next.Set, nil
		}
		after = next
	}
}

// PushAttempts implements [store.PushStore].
func (t *tenant) PushAttempts(ctx context.Context, key store.PushKey, limit int, before int64) (store.PushAttemptPage, error) {
	if err := checkPushKey(key); err != nil {
		return store.PushAttemptPage{}, err
	}
	limit, err := rendezvous.PageLimit(limit, rendezvous.DefaultList, rendezvous.MaxList)
	if err != nil {
		return store.PushAttemptPage{}, err
	}
	if before < 0 {
		return store.PushAttemptPage{}, rendezvous.InvalidField("before", "%d is negative", before).With("value", before)
	}
	var out store.PushAttemptPage
	err = t.view(ctx, "push_attempts", func(ctx context.Context, r backend.Reader) error {
		at := t.pushKey(key)
		rows, err := r.Pushes(ctx, []backend.PushKey{at})
		if err != nil {
			return err
		}
		incarnation := int64(0)
		if p := rows[at]; p != nil && p.State != backend.PushGone {
			if p.Corrupt != nil {
				return p.Corrupt
			}
			incarnation = p.Incarnation
		}
		entries, err := r.PushLog(ctx, at, incarnation, before, limit+1)
		if len(entries) > limit {
			entries = entries[:limit]
			out.Before = entries[limit-1].No
		}
		for _, e := range entries {
			out.Attempts = append(out.Attempts, e.Attempt)
		}
		return err
	})
	if err != nil {
		return store.PushAttemptPage{}, err
	}
	return out, nil
}

// LogPush implements [store.PushStore].
func (t *tenant) LogPush(ctx context.Context, key store.PushKey, entry rendezvous.PushAttempt) (int64, error) {
	if err := checkPushKey(key); err != nil {
		return 0, err
	}
	if err := rendezvous.CheckBatchID("entry.id", entry.ID); err != nil {
		return 0, err
	}
	entry.Test = true
	entry, err := entry.Check()
	if err != nil {
		return 0, err
	}
	var no int64
	var refused error
	_, err = t.update(ctx, "log_push", time.Time{}, func(ctx context.Context, u *unit) error {
		p, gone, err := u.pushOf(ctx, t.pushKey(key), 0)
		if refused = gone; p == nil {
			return err
		}
		before, err := u.tx.PushLogged(ctx, p.Key(), p.Incarnation, entry.ID)
		switch {
		case err != nil:
			return err
		case before != nil:
			no = before.No
			return nil
		}
		no = u.enter(p, entry, false)
		u.savePush(p)
		return nil
	})
	if err == nil {
		err = refused
	}
	return no, err
}
