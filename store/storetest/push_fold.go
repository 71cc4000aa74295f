package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// pushRow is what the model knows of a registration, and of the lease of one that was deleted.
type pushRow struct {
	there    bool
	put      store.PutPush
	cursor   rendezvous.Cursor
	state    rendezvous.PushState
	next     time.Time // zero: due since long
	attempts int
	failing  bool
	reason   rendezvous.ParkReason
	number   int64 // attempts for life
	lost     int
	token    int64 // of the lease, also a revoked one and one that ran out; 0: none
	revoked  bool
	until    time.Time
	first    int64          // tokens below are of incarnations before
	settled  map[int64]bool // tokens that ended their lease by themselves
	former   []int64        // all tokens that were given
}

func (m *pushRow) leased(now time.Time) bool { return m != nil && m.token != 0 && m.until.After(now) }

func (m *pushRow) due(now time.Time) bool {
	return m.there && m.state == rendezvous.PushLive && !m.next.After(now) && !m.leased(now)
}

func (m *pushRow) takes(k rendezvous.Kind) bool {
	return slices.Contains(m.put.Events, rendezvous.AllEvents) || slices.Contains(m.put.Events, string(k))
}

// incarnate is a fresh registration in the place of m, under the wait for its lease.
func (m *pushRow) incarnate(p store.PutPush, begin int64) *pushRow {
	n := &pushRow{there: true, put: p, cursor: at(begin, 0), state: rendezvous.PushLive}
	if m != nil {
		n.token, n.revoked, n.until, n.former, n.first = m.token, m.token != 0, m.until, m.former, m.first
		for _, t := range m.former {
			n.first = max(n.first, t+1)
		}
	}
	return n
}

func (m *pushRow) delete() {
	m.there = false
	m.revoke()
}

// replace is another Put over a held registration. Whether it sleeps at the end is looked up: both are sound.
func (m *pushRow) replace(p store.PutPush, got store.Push) {
	m.put, m.attempts, m.failing, m.reason, m.next, m.lost = p, 0, false, "", time.Time{}, got.Lost
	m.state = rendezvous.PushLive
	if got.State == rendezvous.PushIdle {
		m.state = rendezvous.PushIdle
	}
	m.revoke()
}

// idle lets the row sleep if it is past the head.
func (m *pushRow) idle(g *pushGame, r *Flow) {
	m.state = rendezvous.PushLive
	if m.cursor.NextSeq > g.heads[r] && g.ends[r] == 0 {
		m.state = rendezvous.PushIdle
	} else if m.cursor.NextSeq > g.heads[r] {
		m.state = r.Push(m.put.ID).State // past the end: it sleeps, or is to be completed
	}
}

func (m *pushRow) advance(to rendezvous.Cursor) {
	if to.Compare(m.cursor) > 0 {
		m.cursor = to
	}
}

func (m *pushRow) charge() {
	m.attempts++
	m.failing = true
}

func (m *pushRow) park(reason rendezvous.ParkReason) {
	m.state, m.reason = rendezvous.PushParked, reason
}

func (m *pushRow) revoke() { m.revoked = m.token != 0 }

func (m *pushRow) handIn() {
	if m.settled == nil {
		m.settled = map[int64]bool{}
	}
	m.settled[m.token] = true
	m.token, m.revoked, m.until, m.lost = 0, false, time.Time{}, 0
}

// lose is a claim that found a lease which had run out: lost goes up by one where nobody settled it. What becomes of a revoked one is looked up.
func (m *pushRow) lose(t testing.TB, p *store.Push) {
	t.Helper()
	switch {
	case m.revoked:
		m.number = p.AttemptNo
	case m.token != 0:
		eq(t, "lost of "+p.ID, p.Lost, m.lost+1)
		m.number++ // the unknown attempt
	default:
		eq(t, "lost of "+p.ID, p.Lost, m.lost)
	}
	m.lost = p.Lost
}

func (m *pushRow) settle(g *pushGame, r *Flow, s store.PushSettlement, out store.PushSettled) {
	g.t.Helper()
	head := g.heads[r]
	switch s.Do {
	case store.PushKeep:
		done(g.t, "keep", out.Err)
	case store.PushRelease:
		done(g.t, "release", out.Err)
		idle := s.Why == store.ReleaseRest && s.Head == head && m.cursor.NextSeq > head
		if g.ends[r] != 0 && idle {
			idle = out.Idle // past the end: it sleeps, or is to be completed
		}
		eq(g.t, "idle", out.Idle, idle)
		m.next, m.state = time.Time{}, rendezvous.PushLive
		if idle {
			m.state = rendezvous.PushIdle
		}
		m.handIn()
	case store.PushRetry:
		done(g.t, "retry", out.Err)
		m.charge()
		m.next = rendezvous.DueInstant(s.At)
		m.handIn()
	case store.PushPark:
		done(g.t, "park", out.Err)
		m.charge()
		m.park(s.Reason)
		m.handIn()
	case store.PushComplete:
		if g.ends[r] != 0 {
			done(g.t, "complete", out.Err)
			eq(g.t, "done", out.Done, true)
			m.there = false
			m.handIn()
			return
		}
		code(g.t, "complete of a running run", out.Err, rendezvous.CodeConflict)
		p := r.Push(m.put.ID)
		m.state, m.next = p.State, p.NextAttemptAt // it lives on
		if p.LeaseUntil.IsZero() {
			m.handIn()
		}
	}
}

// judge compares a row with what the model says of it.
func (m *pushRow) judge(t testing.TB, p *store.Push) {
	t.Helper()
	got := []any{p.Cursor, p.State, p.Attempts, !p.FailingSince.IsZero(), p.Reason, p.AttemptNo, p.Lost, p.URL}
	want := []any{m.cursor, m.state, m.attempts, m.failing, m.reason, m.number, m.lost, m.put.URL}
	if m.revoked { // whether a revoked lease that ran out counts as lost is nobody's concern
		got[6], want[6] = 0, 0
	}
	eq(t, "registration "+p.RunID+"/"+p.ID+" (cursor, state, attempts, failing, reason, number, lost, url)", got, want)
	if m.state == rendezvous.PushLive && !m.next.IsZero() {
		eq(t, "due instant of "+p.ID, p.NextAttemptAt, m.next)
	}
	if p.ParkedAt.IsZero() != (m.state != rendezvous.PushParked) {
		t.Fatalf("%s is %s, parked at %s", p.ID, p.State, p.ParkedAt)
	}
}
