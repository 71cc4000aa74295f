package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// maxSettled is how many attempts one settlement tells of.
const maxSettled = 1000

// settledPush is a settlement's outcome as it is kept in the row, for its repeat: the row keeps those of the last batch, since a batch is repeated whole.
type settledPush struct {
	Name   string            `json:"name"`
	Cursor rendezvous.Cursor `json:"cursor"`
	Idle   bool              `json:"idle,omitempty"`
	Ended  bool              `json:"ended,omitempty"` // complete was refused: the run went on
}

// SettlePushes implements [store.PushQueue].
func (e *Engine) SettlePushes(ctx context.Context, items []store.PushSettlement) ([]store.PushSettled, error) {
	if len(items) > rendezvous.MaxBatchItems {
		return nil, rendezvous.OverLimit("items", rendezvous.MaxBatchItems, len(items))
	}
	checked := make([]store.PushSettlement, len(items))
	faults := make([]error, len(items))
	for i, it := range items {
		checked[i], faults[i] = checkSettlement(it)
	}
	var out []store.PushSettled
	_, err := e.update(ctx, "settle_pushes", time.Time{}, func(ctx context.Context, u *unit) (err error) {
		out, err = u.settlePushes(ctx, checked, faults)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// checkSettlement judges a settlement by its shape, and answers it with its instants as they are stored.
func checkSettlement(it store.PushSettlement) (store.PushSettlement, error) {
	if err := rendezvous.CheckTenant(it.Tenant); err != nil {
		return it, err
	}
	if err := checkPushKey(it.PushKey); err != nil {
		return it, err
	}
	if it.Token < 1 {
		return it, rendezvous.InvalidField("token", "%d is no token; give the one of the claim", it.Token)
	}
	if err := rendezvous.CheckBatchID("name", it.Name); err != nil {
		return it, err
	}
	if len(it.Attempts) > maxSettled {
		return it, rendezvous.OverLimit("attempts", maxSettled, len(it.Attempts))
	}
	attempts := make([]rendezvous.PushAttempt, len(it.Attempts))
	for i, a := range it.Attempts {
		checked, err := a.Check()
		if err != nil {
			return it, err
		}
		attempts[i] = checked
	}
	it.Attempts = attempts
	if err := rendezvous.CheckInstant("at", rendezvous.DueInstant(it.At)); err != nil {
		return it, err
	}
	switch it.Do {
	case store.PushKeep, store.PushComplete:
	case store.PushRelease:
		switch it.Why {
		case store.ReleaseRest, store.ReleasePage, store.ReleaseRate, store.ReleaseGate, store.ReleaseProxy, store.ReleaseDrain, store.ReleaseOwn:
		default:
			return it, rendezvous.InvalidField("why", "%.32q is no reason to release", it.Why)
		}
	case store.PushRetry:
		return it, checkPushError(it.Error, it.At)
	case store.PushPark:
		return it, checkPushPark(it.Reason, it.Error)
	default:
		return it, rendezvous.InvalidField("do", "%.32q is none of keep, release, retry, park, complete", it.Do)
	}
	return it, nil
}

// settling is one try of SettlePushes.
type settling struct {
	*unit
	rows  map[backend.PushKey]*backend.Push
	heads map[backend.WorkflowKey]*backend.Workflow // of those that are not locked
	runs  map[backend.RunKey]*backend.Run           // of those that are
	kept  map[backend.PushKey]*settledBatch
}

// settledBatch is what is known of a registration's settlements.
type settledBatch struct {
	before []settledPush // of the batch before, as the row kept them
	batch  []settledPush // of this one, repeats too
}

// find is the outcome of a settlement that was made before.
func (b *settledBatch) find(name string) (settledPush, bool) {
	for _, list := range [...][]settledPush{b.batch, b.before} {
		for _, kept := range list {
			if kept.Name == name {
				return kept, true
			}
		}
	}
	return settledPush{}, false
}

// known reads what a row has kept of settlements, once a batch.
func (s *settling) known(p *backend.Push) (*settledBatch, error) {
	b := s.kept[p.Key()]
	if b == nil {
		b = &settledBatch{}
		if len(p.SettleOutcome) > 0 && json.Unmarshal(p.SettleOutcome, &b.before) != nil {
			return nil, backend.Corrupt("outcome of a settlement", "settle_outcome", "tenant", p.Tenant, "run", p.RunID, "id", p.ID)
		}
		s.kept[p.Key()] = b
	}
	return b, nil
}

func (u *unit) settlePushes(ctx context.Context, items []store.PushSettlement, faults []error) ([]store.PushSettled, error) {
	s := settling{unit: u, kept: map[backend.PushKey]*settledBatch{}}
	if err := s.read(ctx, items, faults); err != nil {
		return nil, err
	}
	out := make([]store.PushSettled, len(items))
	for i, it := range items {
		if out[i].Err = faults[i]; out[i].Err == nil {
			out[i] = s.settle(it)
		}
	}
	return out, nil
}

// read locks what the items are about: the workflows of those that rest or complete, then all registrations. The others' workflows are looked at.
func (s *settling) read(ctx context.Context, items []store.PushSettlement, faults []error) error {
	var keys, ending []backend.PushKey
	for i, it := range items {
		if faults[i] != nil {
			continue
		}
		keys = append(keys, settledKey(it))
		if it.Do == store.PushComplete || it.Do == store.PushRelease && it.Why == store.ReleaseRest {
			ending = append(ending, settledKey(it))
		}
	}
	if len(keys) == 0 {
		return nil
	}
	if err := s.lockEnding(ctx, ending); err != nil {
		return err
	}
	var err error
	if s.rows, err = s.tx.LockPushes(ctx, backend.SortedKeys(keys)); err != nil {
		return err
	}
	var read []backend.WorkflowKey
	for _, p := range s.rows {
		if p.Corrupt == nil && s.flows[p.Flow()] == nil {
			read = append(read, p.Flow())
		}
	}
	if len(read) > 0 {
		s.heads, err = s.tx.Workflows(ctx, backend.SortedKeys(read))
	}
	return err
}

// lockEnding locks the workflows of registrations that rest or complete, and reads their runs.
func (s *settling) lockEnding(ctx context.Context, keys []backend.PushKey) error {
	if len(keys) == 0 {
		return nil
	}
	seen, err := s.tx.Pushes(ctx, keys)
	if err != nil {
		return err
	}
	var locked []backend.WorkflowKey
	var runs []backend.RunKey
	for key, p := range seen {
		if p.Corrupt == nil {
			locked, runs = append(locked, p.Flow()), append(runs, key.Run())
		}
	}
	if len(locked) == 0 {
		return nil
	}
	if err := s.lock(ctx, backend.SortedKeys(locked)); err != nil {
		return err
	}
	s.runs, err = s.tx.Runs(ctx, backend.SortedKeys(runs))
	return err
}

func settledKey(it store.PushSettlement) backend.PushKey {
	return backend.PushKey{Tenant: it.Tenant, RunID: it.RunID, ID: it.ID}
}

// flowOf is the workflow of a row, locked or read; an error where it is not there, or does not decode.
func (s *settling) flowOf(p *backend.Push) (f *flow, w *backend.Workflow, err error) {
	if f = s.flows[p.Flow()]; f != nil {
		w = f.Workflow
	} else {
		w = s.heads[p.Flow()]
	}
	if w == nil {
		return nil, nil, runNotFound(p.RunID)
	}
	return f, w, w.Corrupt
}

// settle makes one settlement, or says why it cannot be made: an item fails alone.
func (s *settling) settle(it store.PushSettlement) store.PushSettled {
	p := s.rows[settledKey(it)]
	switch {
	case p == nil, p.State == backend.PushGone, p.Corrupt == nil && it.Token < p.Incarnation:
		return s.settleGone(p, it)
	case p.Corrupt != nil:
		return store.PushSettled{State: store.PushLeaseFenced, Err: p.Corrupt}
	}
	known, err := s.known(p)
	if err != nil {
		return store.PushSettled{State: leaseState(p, it.Token), Err: err}
	}
	if kept, is := known.find(it.Name); is {
		known.batch = append(known.batch, kept)
		return settledBefore(p, kept)
	}
	f, w, err := s.flowOf(p)
	if err == nil && it.Advance != nil {
		err = checkCursor(*it.Advance, w.Head)
	}
	if err != nil {
		return store.PushSettled{Cursor: cursorOf(p), State: leaseState(p, it.Token), Err: err}
	}
	moved := it.Advance != nil && moveCursor(p, *it.Advance)
	if !holder(p, it.Token) {
		return s.settleStale(p, it, moved)
	}
	if it.Advance != nil {
		forgive(p)
	}
	p.Lost = 0
	s.logAttempts(p, it)
	kept, err := s.end(p, f, it)
	if err == nil && it.Do == store.PushComplete {
		return store.PushSettled{Cursor: kept.Cursor, State: store.PushLeaseHeld, Done: true}
	}
	kept.Name = it.Name
	known.batch = append(known.batch, kept)
	p.SettleID, p.SettleOutcome = it.Name, mustJSON(known.batch)
	s.savePush(p)
	return store.PushSettled{Cursor: kept.Cursor, State: store.PushLeaseHeld, Idle: kept.Idle, Err: err}
}

// settleGone answers for a registration that is gone, or is another by now.
func (s *settling) settleGone(p *backend.Push, it store.PushSettlement) store.PushSettled {
	out := store.PushSettled{State: store.PushLeaseFenced}
	if p != nil && p.LeaseToken == it.Token {
		out.State = store.PushLeaseRevoked
		switch {
		case it.Do == store.PushKeep:
		case p.State == backend.PushGone:
			s.dropPush(nil, p)
		case handIn(p, it.Token): // whoever comes after the deleted one need not wait any more
			s.savePush(p)
		}
	}
	if it.Do == store.PushComplete {
		out.Done = true
		return out
	}
	out.Err = pushNotFound(it.PushKey)
	return out
}

// settledBefore answers a repeat as the first time.
func settledBefore(p *backend.Push, kept settledPush) store.PushSettled {
	out := store.PushSettled{Cursor: kept.Cursor, State: store.PushLeaseHeld, Idle: kept.Idle}
	if kept.Ended {
		out.Err = stillGoes(p)
	}
	return out
}

// leaseState is how a token stands.
func leaseState(p *backend.Push, token int64) store.PushLeaseState {
	switch {
	case holder(p, token):
		return store.PushLeaseHeld
	case p.LeaseToken == token:
		return store.PushLeaseRevoked
	}
	return store.PushLeaseFenced
}

// settleStale is the settlement of who is not holder any more: an acceptance is a fact, all else is not (PU-30, PU-33).
func (s *settling) settleStale(p *backend.Push, it store.PushSettlement, moved bool) store.PushSettled {
	out := store.PushSettled{Cursor: cursorOf(p), State: leaseState(p, it.Token)}
	if it.Do != store.PushKeep {
		out.Err = pushFenced(p)
		moved = handIn(p, it.Token) || moved
	}
	if moved {
		s.savePush(p)
	}
	return out
}

// logAttempts numbers a settlement's attempts and logs those that are to be.
func (s *settling) logAttempts(p *backend.Push, it store.PushSettlement) {
	for _, a := range it.Attempts {
		if a.Class != rendezvous.ClassAccepted || it.LogAccepted {
			a.No = s.enter(p, a, false)
		} else {
			p.AttemptNo++
			a.No = p.AttemptNo
		}
		a.Response = ""
		p.Last = &a
	}
}

// end is what a settlement does after its acceptances.
func (s *settling) end(p *backend.Push, f *flow, it store.PushSettlement) (settledPush, error) {
	switch it.Do {
	case store.PushRelease:
		endLease(p, endedRelease)
		idle := s.release(p, f, it)
		return settledPush{Cursor: cursorOf(p), Idle: idle}, nil
	case store.PushRetry:
		endLease(p, endedRetry)
		s.charge(p, it.Error)
		rejects := p.Rejects + 1
		if n := len(it.Attempts); n == 0 || it.Attempts[n-1].Class != rendezvous.ClassRejected {
			rejects = 0
		}
		p.Rejects = rejects
		unparked(p, s.due(it.At))
	case store.PushPark:
		endLease(p, endedPark)
		s.charge(p, it.Error)
		s.park(p, it.Reason, it.Error)
	case store.PushComplete:
		run := s.runs[p.Key().Run()]
		if f == nil || run == nil || !ended(run, p.NextSeq) {
			return settledPush{Cursor: cursorOf(p), Ended: true}, stillGoes(p)
		}
		kept := settledPush{Cursor: cursorOf(p)}
		s.dropPush(f, p)
		return kept, nil
	}
	return settledPush{Cursor: cursorOf(p)}, nil
}

// release gives a row back, uncharged. It rests only where the head is still the one that its holder read (push.md section 2).
func (s *settling) release(p *backend.Push, f *flow, it store.PushSettlement) (idle bool) {
	switch it.Why {
	case store.ReleaseRest:
		run := s.runs[p.Key().Run()]
		if f != nil && run != nil && f.Head == it.Head {
			return s.rest(p, !run.SealedAt.IsZero(), f.Head)
		}
		p.NextAttemptAt = s.now
	case store.ReleasePage, store.ReleaseDrain:
		p.NextAttemptAt = s.now
	default:
		p.NextAttemptAt = s.due(it.At)
	}
	return false
}

// stillGoes says that a run is not over where its registration is.
func stillGoes(p *backend.Push) error {
	return conflict("status", "running", "run %q is not over at the cursor of registration %q; send what it recorded since", p.RunID, p.ID).With("run", p.RunID)
}
