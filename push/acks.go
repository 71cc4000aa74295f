package push

import (
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/push/transport"
	"github.com/rendezvous-events/rendezvous/store"
)

// acks are a turn's acceptances on their way to the store: those of a settlement under way, and those behind it. One is under way at a time.
type acks struct {
	settlements int
	flushed     rendezvous.Cursor        // handed in
	attempts    []rendezvous.PushAttempt // since the last settlement
	waiting     int                      // messages accepted since then
	since       time.Time                // the first of them was
	flight      chan store.PushSettled   // nil: none
	flying      int                      // messages of the one under way
	flew        time.Time                // when the first of those was accepted
	refused     rendezvous.Cursor        // where the store would not complete
}

// accepted notes that a message was taken.
func (t *turn) accepted(next rendezvous.Cursor, a rendezvous.PushAttempt) {
	t.cursor = next
	t.attempts = append(t.attempts, a)
	if t.waiting == 0 {
		t.since = t.deps.Clock.Now()
	}
	t.waiting++
	t.state.Attempts, t.state.Rejects, t.state.FailingSince = 0, 0, time.Time{}
}

// room hands in what was accepted, and returns when no more than may be lost is unacknowledged: 16 messages, or what was accepted in 100 ms (push.md section 4).
func (t *turn) room() {
	t.land(false)
	for {
		if t.waiting > 0 && t.flight == nil {
			t.flush()
		}
		oldest := t.since
		if t.flight != nil {
			oldest = t.flew
		}
		unflushed := t.waiting + t.flying
		if unflushed < t.cfg.Unflushed && (unflushed == 0 || t.deps.Clock.Now().Sub(oldest) < unflushedFor) {
			return
		}
		t.land(true)
	}
}

// flush hands a settlement in that keeps the lease.
func (t *turn) flush() {
	s := t.settlement(&ending{do: store.PushKeep})
	t.flying, t.flew, t.waiting = t.waiting, t.since, 0
	flight := make(chan store.PushSettled, 1)
	t.flight = flight
	wait := t.settles.Hand(t.life, s)
	go func() { // land waits for it
		got, err := wait()
		if err != nil {
			got.Err = err
		}
		switch got.State {
		case store.PushLeaseRevoked:
			t.leases.stop(t.row.Token)
		case store.PushLeaseFenced:
			t.lose(errFenced)
		}
		flight <- got
	}()
}

// land takes the outcome of the settlement under way, waiting for it where it is asked to.
func (t *turn) land(wait bool) {
	if t.flight == nil {
		return
	}
	var got store.PushSettled
	select {
	case got = <-t.flight:
	default:
		if !wait {
			return
		}
		t.landing.Add(1)
		got = <-t.flight
		t.landing.Add(-1)
	}
	t.landed(got)
}

func (t *turn) landed(got store.PushSettled) {
	t.flight, t.flying = nil, 0
	t.heard(got)
}

// beside makes a request. What was accepted behind a settlement under way leaves when that is answered, however long the request takes.
func (t *turn) beside(request func() transport.Attempt) transport.Attempt {
	if t.waiting == 0 {
		return request()
	}
	over, done := make(chan struct{}), make(chan struct{})
	defer func() { close(over); <-done }() // behind it the turn is its goroutine's alone again
	go func() {
		defer close(done)
		for t.waiting > 0 {
			select {
			case got := <-t.flight:
				t.landed(got)
				t.flush()
			case <-over:
				return
			}
		}
	}()
	return request()
}

// heard notes what a settlement that kept the lease came to.
func (t *turn) heard(got store.PushSettled) {
	if got.State == store.PushLeaseFenced || got.State == store.PushLeaseRevoked {
		t.counts.add(Report{Fenced: 1})
		t.metrics.fencedBy(t.life, "settle")
	}
	if got.Err != nil && got.State == "" {
		t.leases.stop(t.row.Token)
		t.flushed = t.row.Cursor // the last settlement says it again; where that fails, too, the next holder sends it again
		t.deps.Log.WarnContext(t.life, "acceptances not acknowledged; if the turn's end cannot do it either, their messages are sent again", "tenant", t.row.Tenant,
			"run_id", t.row.RunID, "id", t.row.ID, "code", rendezvous.CodeOf(got.Err), "error", got.Err)
	}
}

// settlement is what has happened since the last one, and an ending.
func (t *turn) settlement(e *ending) store.PushSettlement {
	s := store.PushSettlement{
		PushItem: store.PushItem{Tenant: t.row.Tenant, PushKey: t.row.Key()}, Token: t.row.Token, Name: t.name(), Attempts: t.attempts,
		LogAccepted: t.cfg.LogAccepted == LogAll, Do: e.do, At: e.at, Why: e.why, Head: e.head, Reason: e.reason, Error: e.text,
	}
	if t.cursor.Compare(t.flushed) > 0 {
		s.Advance = new(t.cursor)
		t.flushed = t.cursor
	}
	t.attempts = nil
	return s
}

// settleEnd hands the last settlement in and answers whether the turn goes on: its run was reopened behind what seemed its end.
func (t *turn) settleEnd(e *ending) (again bool) {
	t.land(true)
	if t.ctx.Err() == nil || t.holds() {
		t.deferred(e)
	}
	got, err := t.settles.Do(t.life, t.settlement(e))
	t.waiting = 0
	if err != nil {
		got.Err = err
	}
	switch {
	case e.do == store.PushComplete && got.Done:
		t.counts.add(Report{Completed: 1})
		t.metrics.completed.Add(t.life, 1)
	case e.do == store.PushComplete && got.State == store.PushLeaseHeld && rendezvous.CodeOf(got.Err) == rendezvous.CodeConflict:
		return t.reopened()
	case got.State == store.PushLeaseFenced || got.State == store.PushLeaseRevoked:
		t.counts.add(Report{Fenced: 1})
		t.metrics.fencedBy(t.life, "settle")
	case got.Err != nil:
		t.deps.Log.WarnContext(t.life, "settlement failed; the registration comes again when its lease ends", "tenant", t.row.Tenant, "run_id", t.row.RunID, "id", t.row.ID,
			"code", rendezvous.CodeOf(got.Err), "error", got.Err)
	}
	t.look(e, got)
	return false
}

// reopened has the turn read on where its run was reopened behind the terminal record; once for a cursor, then somebody else is to look.
func (t *turn) reopened() (again bool) {
	if t.refused == t.cursor || t.ctx.Err() != nil {
		return t.settleEnd(t.own())
	}
	t.refused, t.passed = t.cursor, false
	return true
}

// holds reports whether the lease was not lost, whatever ended the turn.
func (t *turn) holds() bool { return t.leases.left(t.row.Token) > 0 }

// deferred counts what is put off uncharged.
func (t *turn) deferred(e *ending) {
	if e.do == store.PushRelease && e.why != store.ReleaseRest && e.why != store.ReleasePage {
		t.counts.add(Report{Deferred: 1})
		t.metrics.deferredFor(t.life, e.why)
	}
}

// look has the worker claim when the registration is due again.
func (t *turn) look(e *ending, got store.PushSettled) {
	switch {
	case got.State == store.PushLeaseRevoked && !t.draining(): // whoever revoked it has it due, and told of that while the lease was held
		t.dueAt(t.deps.Clock.Now())
	case e.do == store.PushRetry || e.do == store.PushRelease && !e.at.IsZero():
		t.dueAt(t.anchor.by(e.at))
	case e.do == store.PushRelease && !got.Idle && e.why != store.ReleaseDrain:
		t.dueAt(t.deps.Clock.Now())
	}
}
