package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Bounds of a page of due timers, and of what in it is worked one by one.
const (
	defaultFires = 500
	mostFires    = 2000
	mostEnds     = 50 // deadlines of runs: each is a conclusion
)

// How long ClaimDueTimers holds a timer where its caller does not say.
const defaultTimerHold = 60 * time.Second

// timerPool refuses the timer verbs to handles of another pool: holds are judged by the epochs of this one.
func (h *poolHandle) timerPool() error {
	if h.pool != store.PoolTimer {
		return rendezvous.InvalidField("pool", "%q fires no timers; take a handle of the pool %s", string(h.pool), store.PoolTimer)
	}
	return nil
}

// FireDueTimers implements [store.TimerQueue].
func (h *poolHandle) FireDueTimers(ctx context.Context, shards []store.ShardEpoch, limit int) (store.FiredPage, error) {
	limit, err := rendezvous.PageLimit(limit, defaultFires, mostFires)
	if err != nil {
		return store.FiredPage{}, err
	}
	if err := h.timerPool(); err != nil {
		return store.FiredPage{}, err
	}
	for {
		p := &duePage{limit: limit}
		lost, notices, err := h.fenced(ctx, "fire_due_timers", shards, p.fire)
		switch {
		case err == nil || rendezvous.CodeOf(err) == rendezvous.CodeCommitUnknown:
			page := store.FiredPage{Fires: p.fires, Lost: lost, Full: p.full, Busy: p.busy, Now: p.now, Notices: notices}
			if err == nil {
				h.nextOf(ctx, &page, p.passed)
			}
			return page, err
		case !itemsFault(err) || p.only == nil && limit == 1:
			return store.FiredPage{Lost: lost}, err
		case limit > 1: // one of them spoils the page for the others: it is to be met alone
			limit = max(1, limit/2)
		default:
			return h.failAlone(ctx, shards, p.only, err)
		}
	}
}

// nextOf completes a page by when its shards' next timers can be taken. The page is committed: that this could not be read is no error of it.
func (h *poolHandle) nextOf(ctx context.Context, page *store.FiredPage, passed []store.ShardEpoch) {
	_ = h.view(ctx, "next_due", func(ctx context.Context, r backend.Reader) error {
		next, err := r.NextDue(ctx, numbersOf(passed))
		if err == nil {
			page.NextDue, page.Now = map[int]time.Time{}, r.Now()
			maps.Copy(page.NextDue, next)
		}
		return err
	})
}

// failAlone counts a failure of the one timer that cannot be recorded.
func (h *poolHandle) failAlone(ctx context.Context, shards []store.ShardEpoch, key *backend.TimerKey, cause error) (store.FiredPage, error) {
	var page store.FiredPage
	lost, _, err := h.fenced(ctx, "fail_timer", shards, func(ctx context.Context, u *unit, _ []store.ShardEpoch) error {
		page = store.FiredPage{Full: true, Now: u.now}
		if err := u.lock(ctx, []backend.WorkflowKey{{Tenant: key.Tenant, ID: key.WorkflowID}}); err != nil {
			return err
		}
		rows, err := u.tx.Timers(ctx, []backend.TimerKey{*key})
		if t := rows[*key]; t != nil {
			f, out := firing{unit: u}, store.Fire{Timer: storeTimer(t)}
			f.fail(t, &out, cause)
			page.Fires = append(page.Fires, out)
		}
		return err
	})
	page.Lost = lost
	if err == nil {
		h.nextOf(ctx, &page, shards)
	}
	return page, err
}

// duePage is one try of FireDueTimers.
type duePage struct {
	limit  int
	passed []store.ShardEpoch
	fires  []store.Fire
	full   bool
	busy   int
	now    time.Time
	only   *backend.TimerKey // the page's timer, where it has just one
}

func (p *duePage) fire(ctx context.Context, u *unit, passed []store.ShardEpoch) error {
	*p = duePage{limit: p.limit, passed: passed, now: u.now}
	rows, more, err := u.tx.DueTimers(ctx, numbersOf(passed), p.limit)
	if err != nil {
		return err
	}
	p.full = more
	rows = p.bounded(rows)
	if len(rows) == 0 {
		return nil
	}
	if len(rows) == 1 {
		key := rows[0].Key()
		p.only = &key
	}
	if rows, err = u.lockDue(ctx, rows, &p.busy); err != nil {
		return err
	}
	f := firing{unit: u, record: func(f *flow) bool { return f.free }}
	p.fires, err = f.fire(ctx, rows)
	return err
}

// bounded leaves deadlines of runs beyond the bound to the next page.
func (p *duePage) bounded(rows []*backend.Timer) []*backend.Timer {
	ends := 0
	return slices.DeleteFunc(rows, func(t *backend.Timer) bool {
		if t.Class != rendezvous.TimerRun {
			return false
		}
		ends++
		p.full = p.full || ends > mostEnds
		return ends > mostEnds
	})
}

// lockDue locks the workflows of due timers, but for those that are being written, and answers the rows as they are under the lock and still due; those of
// workflows that are not there are among them.
func (u *unit) lockDue(ctx context.Context, rows []*backend.Timer, busy *int) ([]*backend.Timer, error) {
	keys := make([]backend.WorkflowKey, len(rows))
	for i, t := range rows {
		keys[i] = backend.WorkflowKey{Tenant: t.Tenant, ID: t.WorkflowID}
	}
	keys = distinct(keys)
	slices.SortFunc(keys, func(a, b backend.WorkflowKey) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID))
	})
	locked, err := u.tx.TryLockWorkflows(ctx, keys)
	if err != nil {
		return nil, err
	}
	u.hold(locked)
	absent, err := u.absent(ctx, keys)
	if err != nil {
		return nil, err
	}
	var timers []backend.TimerKey
	holds := map[backend.TimerKey]int64{}
	for _, t := range rows {
		key := backend.WorkflowKey{Tenant: t.Tenant, ID: t.WorkflowID}
		if u.flows[key] == nil && !absent[key] {
			*busy++
			continue
		}
		timers = append(timers, t.Key())
		holds[t.Key()] = t.Token
	}
	if len(timers) == 0 {
		return nil, nil
	}
	now, err := u.tx.Timers(ctx, timers)
	due := make([]*backend.Timer, 0, len(timers))
	for _, key := range timers {
		if t := now[key]; t != nil && (t.Corrupt != nil || !t.DueAt.After(u.now) && t.Token == holds[key]) {
			due = append(due, t)
		}
	}
	return due, err
}

// absent tells which of the workflows that are not locked do not exist.
func (u *unit) absent(ctx context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]bool, error) {
	var missing []backend.WorkflowKey
	for _, k := range keys {
		if u.flows[k] == nil {
			missing = append(missing, k)
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	there, err := u.tx.Workflows(ctx, missing)
	absent := map[backend.WorkflowKey]bool{}
	for _, k := range missing {
		absent[k] = there[k] == nil
	}
	return absent, err
}

// ClaimDueTimers implements [store.TimerQueue].
func (h *poolHandle) ClaimDueTimers(ctx context.Context, shards []store.ShardEpoch, hold time.Duration, limit int) ([]store.HeldTimer, error) {
	limit, err := rendezvous.PageLimit(limit, defaultFires, mostFires)
	if err != nil {
		return nil, err
	}
	if err := h.timerPool(); err != nil {
		return nil, err
	}
	if hold == 0 {
		hold = defaultTimerHold
	}
	if hold, err = checkHold(hold); err != nil {
		return nil, err
	}
	var out []store.HeldTimer
	_, _, err = h.fenced(ctx, "claim_due_timers", shards, func(ctx context.Context, u *unit, passed []store.ShardEpoch) (err error) {
		out, err = u.holdDue(ctx, h.owner, passed, hold, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// holdDue sets holds without the workflows' locks: their taker waits for nobody (R7).
func (u *unit) holdDue(ctx context.Context, owner string, passed []store.ShardEpoch, hold time.Duration, limit int) ([]store.HeldTimer, error) {
	rows, _, err := u.tx.DueTimers(ctx, numbersOf(passed), limit)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	epochs := map[int]int64{}
	for _, s := range passed {
		epochs[s.Shard] = s.Epoch
	}
	keys := make([]backend.TimerKey, len(rows))
	for i, t := range rows {
		keys[i] = t.Key()
	}
	locked, err := u.tx.LockTimers(ctx, keys)
	if err != nil {
		return nil, err
	}
	tokens, err := u.tx.NewTakes(ctx, len(rows))
	if err != nil {
		return nil, err
	}
	var out []store.HeldTimer
	for i, key := range keys {
		t := locked[key]
		if t == nil || t.Corrupt == nil && t.DueAt.After(u.now) || t.Token != 0 && t.HeldUntil.After(u.now) && t.HoldEpoch >= epochs[t.Shard] {
			continue
		}
		t.Token, t.Holder, t.HoldEpoch, t.HeldUntil = tokens[i], owner, epochs[t.Shard], rendezvous.DueInstant(u.now.Add(hold))
		t.ReadyAt = t.HeldUntil
		u.ch.HeldTimers = append(u.ch.HeldTimers, t)
		if t.Corrupt != nil { // handed to nobody, and out of the way of the others while its hold stands
			continue
		}
		held := store.HeldTimer{Timer: storeTimer(t), Token: t.Token}
		held.Holder, held.HeldUntil = t.Holder, t.HeldUntil
		out = append(out, held)
	}
	return out, nil
}

// ReleaseTimers implements [store.TimerQueue].
func (h *poolHandle) ReleaseTimers(ctx context.Context, tokens []int64) error {
	if len(tokens) > mostFires {
		return rendezvous.OverLimit("tokens", mostFires, len(tokens))
	}
	if len(tokens) == 0 {
		return nil
	}
	_, err := h.update(ctx, "release_timers", time.Time{}, func(ctx context.Context, u *unit) error {
		rows, err := u.tx.HeldTimers(ctx, tokens)
		for _, t := range rows {
			if t.Holder == h.owner && t.Corrupt == nil {
				t.ReadyAt, t.Token, t.Holder, t.HoldEpoch, t.HeldUntil = t.DueAt, 0, "", 0, time.Time{}
				u.ch.HeldTimers = append(u.ch.HeldTimers, t)
			}
		}
		return err
	})
	return err
}

// FireTimer implements [store.TimerQueue].
func (h *poolHandle) FireTimer(ctx context.Context, held store.HeldTimer) (store.Fire, store.Notices, error) {
	if err := h.timerPool(); err != nil {
		return store.Fire{}, store.Notices{}, err
	}
	if err := rendezvous.CheckTenant(held.Tenant); err != nil {
		return store.Fire{}, store.Notices{}, err
	}
	if err := checkArming(held.WorkflowID, held.TimerID, &held.Arming); err != nil {
		return store.Fire{}, store.Notices{}, err
	}
	var out store.Fire
	notices, err := h.update(ctx, "fire_timer", time.Time{}, func(ctx context.Context, u *unit) (err error) {
		out, err = u.fireHeld(ctx, h.pool, held)
		return err
	})
	if err != nil {
		return store.Fire{}, store.Notices{}, err
	}
	return out, notices, nil
}

// fireHeld records one claimed timer, or says what became of it instead.
func (u *unit) fireHeld(ctx context.Context, pool store.Pool, held store.HeldTimer) (store.Fire, error) {
	out := store.Fire{Timer: held.Timer}
	leases, err := u.tx.LockShards(ctx, string(pool), []int{held.Shard}, backend.ShardFence)
	if err != nil {
		return out, err
	}
	key := backend.TimerKey{Tenant: held.Tenant, WorkflowID: held.WorkflowID, TimerID: held.TimerID}
	at := backend.WorkflowKey{Tenant: held.Tenant, ID: held.WorkflowID}
	if err := u.lock(ctx, []backend.WorkflowKey{at}); err != nil {
		return out, err
	}
	rows, err := u.tx.Timers(ctx, []backend.TimerKey{key})
	if err != nil {
		return out, err
	}
	t := rows[key]
	switch {
	case t == nil:
		out.Outcome, out.Seq, err = u.firedBefore(ctx, held)
		return out, err
	case t.Corrupt != nil:
		return out, t.Corrupt
	case t.ArmedSeq != held.ArmedSeq || !t.FireAt.Equal(held.FireAt):
		out.Outcome = store.FireSuperseded
		return out, nil
	case t.Token == 0 || t.Token != held.Token || !t.HeldUntil.After(u.now) || leases[t.Shard] == nil || leases[t.Shard].Epoch != t.HoldEpoch:
		out.Outcome = store.FireLost
		return out, nil
	case t.FireAt.After(u.now):
		out.Outcome, out.Remaining = store.FireNotDue, t.FireAt.Sub(u.now)
		return out, nil
	}
	f := firing{unit: u, record: func(f *flow) bool { return f.free }}
	fires, err := f.fire(ctx, []*backend.Timer{t})
	if err != nil || len(fires) == 0 {
		return out, err
	}
	return fires[0], nil
}

// firedBefore says of an arming without a row whether it fired, or was superseded.
func (u *unit) firedBefore(ctx context.Context, held store.HeldTimer) (store.FireOutcome, int64, error) {
	var fired *rendezvous.Record
	switch held.Class {
	case rendezvous.TimerWait:
		key := backend.WaitKey{Tenant: held.Tenant, RunID: held.RunID, Effect: held.Effect}
		effects, err := u.tx.Effects(ctx, []backend.WaitKey{key})
		if err != nil {
			return "", 0, err
		}
		if s := standingOf(effects[key]); s.closing() == rendezvous.ClosedTimedOut && s.opened.Seq == held.ArmedSeq {
			fired = s.closed
		}
	case rendezvous.TimerRun:
		key := backend.RunKey{Tenant: held.Tenant, ID: held.RunID}
		runs, err := u.tx.Runs(ctx, []backend.RunKey{key})
		if err != nil {
			return "", 0, err
		}
		if run := runs[key]; run != nil && run.Outcome == rendezvous.RunTimedOut {
			return store.FireAlready, run.LastSeq, nil
		}
	default:
		key := backend.RunTimerKey{Tenant: held.Tenant, RunID: held.RunID, TimerID: held.TimerID}
		last, err := u.tx.LastTimerRecords(ctx, []backend.RunTimerKey{key})
		if err != nil {
			return "", 0, err
		}
		var d rendezvous.TimerFiredData
		if r, ok := last[key]; ok && r.Kind == rendezvous.TimerFired && rendezvous.DecodeData(r, &d) == nil && d.ArmedSeq == held.ArmedSeq {
			fired = &r
		}
	}
	if fired == nil {
		return store.FireSuperseded, 0, nil
	}
	return store.FireAlready, fired.Seq, nil
}
