package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// ClaimFor implements [store.Waits].
func (t *tenant) ClaimFor(ctx context.Context, id rendezvous.WaitID, at time.Time) (store.Claim, error) {
	if err := checkWaitID(id); err != nil {
		return store.Claim{}, err
	}
	memory := newMatchMemory()
	var claim store.Claim
	_, err := t.update(ctx, "claim_for", at, func(ctx context.Context, u *unit) (err error) {
		claim, err = u.claimFor(ctx, backend.WaitKey{Tenant: t.name, RunID: id.RunID, Effect: id.Effect}, memory)
		return err
	})
	if err != nil {
		return store.Claim{}, err
	}
	return claim, nil
}

func (u *unit) claimFor(ctx context.Context, key backend.WaitKey, memory *matchMemory) (store.Claim, error) {
	rows, err := u.tx.Waits(ctx, []backend.WaitKey{key})
	if err != nil {
		return store.Claim{}, err
	}
	row := rows[key]
	switch {
	case row == nil:
		return u.unclaimable(ctx, key)
	case row.Corrupt != nil:
		return store.Claim{}, row.Corrupt
	case row.Held != nil:
		return u.claimAgain(ctx, row)
	}
	m := u.matching(memory)
	w := m.plan.x.wait(row)
	var e *eventNode
	err = m.settle(ctx, []backend.WorkflowKey{flowKey(row)}, func(p *plan) { e = p.claim(w) })
	if err != nil {
		return store.Claim{}, err
	}
	f := u.flows[flowKey(row)]
	switch {
	case f == nil:
		return store.Claim{}, backend.ErrStale
	case f.Corrupt != nil:
		return store.Claim{}, f.Corrupt
	case f.RunID != row.RunID || f.Status.Terminal(): // possible only after a restore
		return store.Claim{Closed: rendezvous.ClosedEnded}, nil
	case e == nil:
		return store.Claim{}, u.unmovedWait(ctx, row)
	}
	u.claim(w.Wait, e.Event)
	return u.claimed(ctx, e.Event)
}

// claim pairs w with its oldest event, unless an older wait meets that too: then nothing is taken, and who has it is for an offer to say (EV-28).
// Which runs are sealed decides, so both waits are judged.
func (p *plan) claim(w *waitNode) *eventNode {
	e, known := p.x.oldestEvent(w, nil)
	if !known || e == nil || w.passed {
		return nil
	}
	first, known := p.x.lowestWait(e)
	if !known {
		p.x.take(e, w) // a guess, for what the next in line will ask
		return nil
	}
	if first == nil { // w itself was taken since its row was read: that it moved on is found out behind
		return nil
	}
	if first != w {
		p.judged = append(p.judged, first)
		return nil
	}
	p.pair(e, w)
	return e
}

// claimed answers the claimed event whole. Its payload is read now; had the event moved on meanwhile, the claim itself would be stale.
func (u *unit) claimed(ctx context.Context, e *backend.Event) (store.Claim, error) {
	rows, err := u.tx.EventsByNumber(ctx, []int64{e.Number}, true)
	if err != nil {
		return store.Claim{}, err
	}
	full := rows[e.Number]
	switch {
	case full == nil:
		return store.Claim{}, backend.ErrStale
	case full.Corrupt != nil:
		return store.Claim{}, full.Corrupt
	}
	out := eventOf(full)
	return store.Claim{Event: &out, ReceivedAt: full.ReceivedAt}, nil
}

// claimAgain hands a parked wait its own event, and never another one (EV-39, EV-50). A claim whose other side moved on since the wait was read is
// looked at anew.
func (u *unit) claimAgain(ctx context.Context, w *backend.Wait) (store.Claim, error) {
	rows, err := u.tx.EventsByNumber(ctx, []int64{w.Held.Number}, true)
	if err != nil {
		return store.Claim{}, err
	}
	e := rows[w.Held.Number]
	switch {
	case e != nil && e.Corrupt != nil:
		return store.Claim{}, e.Corrupt
	case !holds(w, e) && u.try < brokenAfter:
		return store.Claim{}, backend.ErrStale
	case !holds(w, e):
		return store.Claim{}, brokenPair(w, "the claim it holds does not stand on the event's side")
	}
	out := eventOf(e)
	return store.Claim{Event: &out, ReceivedAt: e.ReceivedAt, Again: true}, nil
}

// unclaimable answers for a wait without a row: how it ended, or that it never was registered. One whose row is lost has nothing to take until it is
// registered again.
func (u *unit) unclaimable(ctx context.Context, key backend.WaitKey) (store.Claim, error) {
	effects, err := u.tx.Effects(ctx, []backend.WaitKey{key})
	if err != nil {
		return store.Claim{}, err
	}
	runKey := backend.RunKey{Tenant: key.Tenant, ID: key.RunID}
	runs, err := u.tx.Runs(ctx, []backend.RunKey{runKey})
	if err != nil {
		return store.Claim{}, err
	}
	run := runs[runKey]
	s := standingOf(effects[key])
	if run == nil { // of a pruned run records may be left
		s = standing{}
	}
	switch {
	case s.closed != nil:
		return store.Claim{Closed: s.closing(), Seq: s.closed.Seq}, nil
	case s.opened == nil:
		return store.Claim{}, rendezvous.Errorf(rendezvous.CodeNotFound, "wait %q of run %q was never registered; register it first", key.Effect, key.RunID).
			With("run", key.RunID).With("effect", key.Effect)
	}
	if u.try == 0 { // registered since the row was looked for, as a rule: it may have something to take
		return store.Claim{}, backend.ErrStale
	}
	if !run.SealedAt.IsZero() {
		return store.Claim{Closed: rendezvous.ClosedEnded, Seq: run.LastSeq}, nil
	}
	return store.Claim{}, nil
}
