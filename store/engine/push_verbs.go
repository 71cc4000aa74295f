package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// pushFenced says that a send lease is not the row's any more.
func pushFenced(p *backend.Push) *rendezvous.Error {
	return rendezvous.Errorf(rendezvous.CodeFenced, "the send lease of registration %q of run %q is over; stop sending for it", p.ID, p.RunID).
		With("run", p.RunID).With("id", p.ID)
}

// pushHeld says that somebody sends under a live lease.
func (u *unit) pushHeld(p *backend.Push) error {
	left := p.LeaseUntil.Sub(u.now)
	return rendezvous.Errorf(rendezvous.CodeLeaseHeld, "%q sends for registration %q of run %q for another %s; wait for its end", p.LeaseOwner, p.ID, p.RunID,
		left.Round(time.Millisecond)).With("owner", p.LeaseOwner).With("remaining_ms", left.Milliseconds()).With("run", p.RunID)
}

// sends reports whether somebody may send for the row now: what keeps token 0 from being its holder.
func (u *unit) sends(p *backend.Push) bool { return p.Leased(u.now) && !p.LeaseRevoked }

// tool ends a lease that has run out, for a call with token 0 that acts as holder.
func (u *unit) tool(p *backend.Push) {
	if !p.LeaseRevoked {
		endLease(p, endedTool)
	}
}

// pushOf locks a registration for one of the verbs that need it. refused is an answer that is told after the commit, which may end the wait for a revoked lease.
func (u *unit) pushOf(ctx context.Context, key backend.PushKey, token int64) (p *backend.Push, refused, err error) {
	p, gone, err := u.lockPush(ctx, key)
	if err != nil || p != nil {
		return p, nil, err
	}
	if gone != nil && handIn(gone, token) {
		u.dropPush(nil, gone)
	}
	return nil, pushNotFound(store.PushKey{RunID: key.RunID, ID: key.ID}), nil
}

// AdvancePush implements [store.PushStore].
func (t *tenant) AdvancePush(ctx context.Context, key store.PushKey, token int64, c rendezvous.Cursor) (store.PushAdvanced, error) {
	if err := checkPushToken(key, token); err != nil {
		return store.PushAdvanced{}, err
	}
	var out store.PushAdvanced
	var refused error
	notices, err := t.update(ctx, "advance_push", time.Time{}, func(ctx context.Context, u *unit) (err error) {
		out, refused, err = u.advancePush(ctx, t.pushKey(key), token, c)
		return err
	})
	_ = notices // none: whoever advances is at the registration
	if err == nil {
		err = refused
	}
	if err != nil {
		return store.PushAdvanced{}, err
	}
	return out, nil
}

func checkPushToken(key store.PushKey, token int64) error {
	if err := checkPushKey(key); err != nil {
		return err
	}
	if token < 0 {
		return rendezvous.InvalidField("token", "%d is negative", token)
	}
	return nil
}

func (u *unit) advancePush(ctx context.Context, key backend.PushKey, token int64, c rendezvous.Cursor) (out store.PushAdvanced, refused, err error) {
	f, run, err := u.lockFlowOfRun(ctx, key.Run())
	if err != nil {
		return out, nil, err
	}
	if f == nil {
		return out, pushNotFound(store.PushKey{RunID: key.RunID, ID: key.ID}), nil
	}
	p, refused, err := u.pushOf(ctx, key, token)
	if p == nil {
		return out, refused, err
	}
	if token != 0 && token < p.Incarnation {
		if handIn(p, token) { // whoever comes after the deleted one need not wait any more
			u.savePush(p)
		}
		return out, pushNotFound(store.PushKey{RunID: key.RunID, ID: key.ID}), nil
	}
	if err := checkCursor(c, f.Head); err != nil {
		return out, nil, err
	}
	moved := moveCursor(p, c)
	switch {
	case holder(p, token):
		forgive(p)
		out.Owned = true
	case token == 0 && !u.sends(p):
		forgive(p)
		out.Owned = true
		u.tool(p)
		if p.State != rendezvous.PushParked {
			u.rest(p, !run.SealedAt.IsZero(), f.Head)
		}
	case handIn(p, token), moved:
	default:
		out.Cursor = cursorOf(p)
		return out, nil, nil
	}
	u.savePush(p)
	out.Cursor = cursorOf(p)
	return out, nil, nil
}

// RetryPush implements [store.PushStore].
func (t *tenant) RetryPush(ctx context.Context, key store.PushKey, token int64, next time.Time, text string) error {
	if err := checkPushToken(key, token); err != nil {
		return err
	}
	if err := checkPushError(text, next); err != nil {
		return err
	}
	return t.withPush(ctx, "retry_push", key, token, func(u *unit, p *backend.Push) error {
		switch {
		case holder(p, token):
			endLease(p, endedRetry)
		case token == 0 && u.sends(p):
			return u.pushHeld(p)
		case token == 0:
			u.tool(p)
		case p.EndedToken == token && p.EndedAs == endedRetry: // again
			return nil
		default:
			return u.refuse(p, token)
		}
		u.charge(p, text)
		unparked(p, u.due(next))
		u.savePush(p)
		return nil
	})
}

// due is an instant of a schedule: rounded up, and now where none is given.
func (u *unit) due(at time.Time) time.Time {
	if at.IsZero() {
		return u.now
	}
	return rendezvous.DueInstant(at)
}

// checkPushError judges the text of a failure and the instant of the next attempt.
func checkPushError(text string, next time.Time) error {
	if err := rendezvous.CheckReason("error", text); err != nil {
		return err
	}
	return rendezvous.CheckInstant("next_attempt_at", rendezvous.DueInstant(next))
}

// refuse answers a stale token: fenced, and nothing changes but that a revoked one is handed in.
func (u *unit) refuse(p *backend.Push, token int64) error {
	err := pushFenced(p)
	if handIn(p, token) {
		u.savePush(p)
	}
	return err
}

// withPush runs one verb on a locked registration. The error that fn answers is told after the commit.
func (t *tenant) withPush(ctx context.Context, verb string, key store.PushKey, token int64, fn func(u *unit, p *backend.Push) error) error {
	var refused error
	_, err := t.update(ctx, verb, time.Time{}, func(ctx context.Context, u *unit) (err error) {
		p, gone, err := u.pushOf(ctx, t.pushKey(key), token)
		if refused = gone; p == nil {
			return err
		}
		refused = fn(u, p)
		return nil
	})
	if err != nil {
		return err
	}
	return refused
}

// ParkPush implements [store.PushStore].
func (t *tenant) ParkPush(ctx context.Context, k store.ParkPush) error {
	if err := checkPushToken(k.PushKey, k.Token); err != nil {
		return err
	}
	if err := checkPushPark(k.Reason, k.Error); err != nil {
		return err
	}
	return t.withPush(ctx, "park_push", k.PushKey, k.Token, func(u *unit, p *backend.Push) error {
		switch {
		case holder(p, k.Token):
			endLease(p, endedPark)
			u.charge(p, k.Error)
		case k.Token == 0:
			u.revoke(p)
		case p.EndedToken == k.Token && p.EndedAs == endedPark: // again
			return nil
		default:
			return u.refuse(p, k.Token)
		}
		u.park(p, k.Reason, k.Error)
		u.savePush(p)
		return nil
	})
}

func checkPushPark(reason rendezvous.ParkReason, text string) error {
	if !reason.Known() {
		return rendezvous.InvalidField("reason", "%.64q is no reason to park", reason)
	}
	return checkPushError(text, time.Time{})
}

// UnparkPush implements [store.PushStore].
func (t *tenant) UnparkPush(ctx context.Context, key store.PushKey, at time.Time, op string) (bool, error) {
	if err := checkPushKey(key); err != nil {
		return false, err
	}
	if err := rendezvous.CheckInstant("at", rendezvous.DueInstant(at)); err != nil {
		return false, err
	}
	if op != "" {
		if err := rendezvous.CheckBatchID("op", op); err != nil {
			return false, err
		}
	}
	done := false
	_, err := t.update(ctx, "unpark_push", time.Time{}, func(ctx context.Context, u *unit) error {
		p, _, err := u.lockPush(ctx, t.pushKey(key))
		again := p != nil && op != "" && p.UnparkOp == op // whatever it came to since: a late repeat undoes nobody's parking
		if done = again || p != nil && p.State == rendezvous.PushParked; !done || again {
			return err
		}
		u.unpark(p, u.due(at))
		p.UnparkOp = op
		return nil
	})
	return done && err == nil, err
}

// unpark gives a parked row another series of attempts.
func (u *unit) unpark(p *backend.Push, at time.Time) {
	unparked(p, at)
	p.Attempts, p.Rejects, p.Lost, p.FailingSince = 0, 0, 0, time.Time{}
	u.savePush(p)
}

// SkipPush implements [store.PushStore].
func (t *tenant) SkipPush(ctx context.Context, s store.PushSkip) (rendezvous.Cursor, error) {
	if err := checkSkip(s); err != nil {
		return rendezvous.Cursor{}, err
	}
	var out rendezvous.Cursor
	var refused error
	_, err := t.update(ctx, "skip_push", time.Time{}, func(ctx context.Context, u *unit) error {
		f, _, err := u.lockFlowOfRun(ctx, backend.RunKey{Tenant: t.name, ID: s.RunID})
		if err != nil {
			return err
		}
		p, gone, err := u.pushOf(ctx, t.pushKey(s.PushKey), 0)
		if refused = gone; p == nil || f == nil {
			return err
		}
		out, refused = u.skip(p, f.Head, s)
		return nil
	})
	if err == nil {
		err = refused
	}
	return out, err
}

func checkSkip(s store.PushSkip) error {
	if err := checkPushKey(s.PushKey); err != nil {
		return err
	}
	if s.Seq < 1 {
		return rendezvous.InvalidField("seq", "%d is below 1", s.Seq).With("value", s.Seq)
	}
	if err := rendezvous.CheckID("actor", s.Actor); err != nil {
		return err
	}
	return rendezvous.CheckReason("reason", s.Reason)
}

// skip goes past a record without a 2xx: the one way to (PU-24).
func (u *unit) skip(p *backend.Push, head int64, s store.PushSkip) (rendezvous.Cursor, error) {
	next := rendezvous.Cursor{NextSeq: s.Seq + 1}
	switch {
	case p.Skipped == s.Seq: // again
		return next, nil
	case p.State != rendezvous.PushParked:
		return rendezvous.Cursor{}, conflict("state", string(p.State), "registration %q of run %q is %s; only a parked one is skipped", p.ID, p.RunID, p.State).
			With("run", p.RunID)
	case p.NextSeq != s.Seq:
		return rendezvous.Cursor{}, conflict("next_seq", p.NextSeq, "registration %q of run %q is at record %d, not %d", p.ID, p.RunID, p.NextSeq, s.Seq).
			With("run", p.RunID).With("next_index", p.NextIndex)
	case s.Seq > head:
		return rendezvous.Cursor{}, conflict("head", head, "record %d of run %q is not there yet", s.Seq, p.RunID).With("run", p.RunID)
	}
	u.enter(p, rendezvous.PushAttempt{Seq: p.NextSeq, Index: p.NextIndex, At: u.now, Class: rendezvous.ClassSkipped, Actor: s.Actor, Reason: s.Reason}, true)
	p.NextSeq, p.NextIndex, p.Attempts, p.Rejects, p.Skipped = next.NextSeq, 0, 0, 0, s.Seq
	u.revoke(p)
	u.savePush(p)
	return next, nil
}

// CompletePush implements [store.PushStore].
func (t *tenant) CompletePush(ctx context.Context, key store.PushKey, token, nextSeq int64) error {
	if err := checkPushToken(key, token); err != nil {
		return err
	}
	var refused error
	_, err := t.update(ctx, "complete_push", time.Time{}, func(ctx context.Context, u *unit) error {
		refused = nil
		f, run, err := u.lockFlowOfRun(ctx, backend.RunKey{Tenant: t.name, ID: key.RunID})
		if f == nil {
			return err
		}
		p, _, err := u.pushOf(ctx, t.pushKey(key), token)
		if p == nil {
			return err // it is done
		}
		if token != 0 && token < p.Incarnation {
			if handIn(p, token) {
				u.savePush(p)
			}
			return nil // what it is about is done
		}
		if token == 0 && u.sends(p) {
			refused = u.pushHeld(p)
			return nil
		}
		if err := checkCursor(rendezvous.Cursor{NextSeq: nextSeq}, f.Head); err != nil {
			return err
		}
		moved := moveCursor(p, rendezvous.Cursor{NextSeq: nextSeq})
		switch own := token == 0 || holder(p, token); {
		case !own:
			if refused = u.refuse(p, token); moved {
				u.savePush(p)
			}
		case !ended(run, nextSeq):
			forgive(p)
			u.savePush(p)
			refused = stillGoes(p)
		case token == 0:
			u.deletePush(f, p) // somebody may send yet under a lease that was revoked
		default:
			u.dropPush(f, p)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return refused
}

// ended reports whether a cursor is past the terminal record of a run that is sealed there.
func ended(run *backend.Run, next int64) bool { return !run.SealedAt.IsZero() && next > run.LastSeq }

// DeletePush implements [store.PushStore].
func (t *tenant) DeletePush(ctx context.Context, key store.PushKey) (store.PushDeleted, error) {
	if err := checkPushKey(key); err != nil {
		return store.PushDeleted{}, err
	}
	var out store.PushDeleted
	_, err := t.update(ctx, "delete_push", time.Time{}, func(ctx context.Context, u *unit) error {
		out = store.PushDeleted{}
		f, _, err := u.lockFlowOfRun(ctx, backend.RunKey{Tenant: t.name, ID: key.RunID})
		if f == nil {
			return err
		}
		rows, err := u.tx.LockPushes(ctx, []backend.PushKey{t.pushKey(key)})
		if p := rows[t.pushKey(key)]; p != nil {
			out.QuietAt = u.deletePush(f, p)
		}
		return err
	})
	return out, err
}

// deletePush ends a registration. One that somebody sends for stays as gone until that is over: whoever comes after it waits as long. Its secrets go at once.
func (u *unit) deletePush(f *flow, p *backend.Push) (quietAt time.Time) {
	if p.Leased(u.now) {
		quietAt = p.LeaseUntil
	}
	switch {
	case p.State == backend.PushGone:
	case quietAt.IsZero() || p.Corrupt != nil:
		u.dropPush(f, p)
	default:
		f.Registrations = max(0, f.Registrations-1)
		u.saveFlow(f)
		u.revoke(p)
		p.State, p.ParkedAt, p.Reason, p.FailingSince = backend.PushGone, time.Time{}, "", time.Time{}
		p.Settings, p.Takes, p.Resettled, p.Last, p.Error, p.Logged = backend.PushSettings{}, 0, true, nil, "", 0
		u.savePush(p)
	}
	return quietAt
}
