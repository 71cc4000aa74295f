package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// pushModel plays verbs of chance over few runs and ids, beside a model of rows (push_fold.go) or at once.
var pushModel = []Case{
	{Name: "PU-14..PU-37 verbs of chance come to what a model of rows says", Run: pushesOfChance},
	{Name: "PU-17 PU-28 PU-29 PU-105 verbs of chance at once: cursors never go back, tokens rise, one holder, nothing sleeps or is lost", Run: pushesAtOnce},
}

// pushGame is a sequence of verbs over few runs and ids, so that they meet.
type pushGame struct {
	t     testing.TB
	h     *Harness
	rnd   *rand.Rand
	flows []*Flow
	rows  map[store.PushItem]*pushRow
	heads map[*Flow]int64
	ends  map[*Flow]int64 // the terminal, where the run is sealed
	last  int64           // the greatest token so far
	moves []string
}

// moment is less than what the model leaves between an instant and now: the clocks of databases go on by themselves.
const moment = 10 * time.Second

func newPushGame(t *testing.T, h *Harness, rnd *rand.Rand) *pushGame {
	g := &pushGame{t: t, h: h, rnd: rnd, rows: map[store.PushItem]*pushRow{}, heads: map[*Flow]int64{}, ends: map[*Flow]int64{}}
	for _, f := range h.Two(t) {
		for range 2 {
			r := f.Start()
			g.flows, g.heads[r] = append(g.flows, r), 1
		}
	}
	return g
}

func (g *pushGame) said(format string, args ...any) {
	g.moves = append(g.moves, fmt.Sprintf(format, args...))
}

func (g *pushGame) tell() {
	if g.t.Failed() {
		g.t.Logf("the moves were:\n%s", strings.Join(g.moves[max(0, len(g.moves)-60):], "\n"))
	}
}

// steady moves the clock past every instant that it would reach by itself during a verb.
func (g *pushGame) steady() {
	g.t.Helper()
	for range 50 {
		at, near := g.h.Now(g.t), time.Time{}
		for _, m := range g.rows {
			for _, x := range []time.Time{m.next, m.until} {
				if d := x.Sub(at); d >= 0 && d <= moment && x.After(near) {
					near = x
				}
			}
		}
		if near.IsZero() {
			return
		}
		g.h.Advance(near.Sub(at) + time.Millisecond)
	}
}

// move plays one verb and judges its answer by the model.
func (g *pushGame) move() {
	r := pick(g.rnd, g.flows...)
	key := r.PushKey(pick(g.rnd, "a", "b", "c"))
	item := store.PushItem{Tenant: r.F.Name(), PushKey: key}
	g.steady()
	m := g.rows[item]
	name := item.Tenant + "/" + key.RunID + "/" + key.ID
	switch g.rnd.IntN(20) {
	case 0, 1, 2:
		g.appends(r)
	case 3, 4:
		g.puts(r, item, m)
	case 5:
		g.said("delete %s", name)
		out := must(r.F.DeletePush(ctx, key))(g.t, "delete")
		if m != nil && m.there {
			m.delete()
		}
		if m.leased(g.h.Now(g.t)) {
			eq(g.t, "quiet at", out.QuietAt, m.until)
		}
	case 6, 7, 8:
		g.claims(r)
	case 9:
		g.advances(r, item, m)
	case 10:
		g.retries(r, item, m)
	case 11:
		g.parks(r, item, m)
	case 12:
		g.unparks(r, item, m)
	case 13:
		if m != nil && m.there {
			g.skips(r, item, m)
		}
	case 14:
		g.renews(m)
	case 15, 16, 17:
		if m != nil && m.there && m.token != 0 {
			g.settles(r, item, m)
		}
	default:
		step := pick(g.rnd, time.Millisecond, time.Second, 20*time.Second, pushLeaseEnd)
		g.said("the clock moves on by %s", step)
		g.h.Advance(step)
	}
}

// appends appends a record, ends the run or reopens it.
func (g *pushGame) appends(r *Flow) {
	g.t.Helper()
	switch {
	case g.ends[r] != 0:
		g.said("reopen %s", r.ID)
		out := r.Reopen()
		g.recorded(r, rendezvous.RunReopened, out.Notices)
		g.ends[r] = 0
	case g.rnd.IntN(6) == 0:
		g.said("fail %s", r.ID)
		out := r.Conclude(rendezvous.StatusFailed)
		g.ends[r] = g.heads[r] + 1
		g.recorded(r, rendezvous.RunFailed, out.Notices)
	default:
		kind, rec := rendezvous.Note, r.Noted("n")
		if g.rnd.IntN(2) == 0 {
			kind, rec = rendezvous.EffectStarted, r.Begun(ID("e"))
		}
		g.said("append %s to %s", kind, r.ID)
		g.recorded(r, kind, r.AppendFree(rec).Notices)
	}
}

// recorded is a record's effect on the run's rows.
func (g *pushGame) recorded(r *Flow, kind rendezvous.Kind, n store.Notices) {
	g.t.Helper()
	g.heads[r]++
	woken := false
	for item, m := range g.rows {
		if item.Tenant == r.F.Name() && item.RunID == r.ID && m.there && m.state == rendezvous.PushIdle && (kind.Terminal() || m.takes(kind)) {
			m.state, m.next, woken = rendezvous.PushLive, time.Time{}, true
		}
	}
	eq(g.t, "PUSH notice of "+string(kind), r.pushed(n) != nil, woken)
}

func (g *pushGame) puts(r *Flow, item store.PushItem, m *pushRow) {
	g.t.Helper()
	p := r.Hook(item.ID)
	if g.rnd.IntN(2) == 0 {
		p.Events = []string{string(rendezvous.Note)}
	}
	p.NextSeq = g.rnd.Int64N(g.heads[r] + 3)
	held := m != nil && m.there
	if held && g.rnd.IntN(3) == 0 {
		p = m.put
	}
	g.said("put %s/%s at %d", r.ID, item.ID, p.NextSeq)
	got, err := r.F.PutPush(ctx, p, now)
	if !held && p.NextSeq > g.heads[r]+1 {
		code(g.t, "put beyond the head", err, rendezvous.CodeInvalid)
		return
	}
	done(g.t, "put", err)
	switch {
	case !held:
		g.rows[item] = m.incarnate(p, g.begin(r, p.NextSeq))
		g.rows[item].idle(g, r)
		if g.ends[r] != 0 && g.rows[item].cursor.NextSeq > g.ends[r] {
			g.rows[item].state = rendezvous.PushLive // for its end
		}
	case p.URL != m.put.URL || !slices.Equal(p.Events, m.put.Events):
		m.replace(p, got.Push)
		if m.state == rendezvous.PushIdle && m.cursor.NextSeq <= g.heads[r] {
			g.t.Fatalf("a replaced row sleeps over record %d: %v", g.heads[r], m.cursor)
		}
	}
}

// begin is where a fresh registration begins.
func (g *pushGame) begin(r *Flow, next int64) int64 {
	switch {
	case next != 0:
		return next
	case g.ends[r] != 0:
		return g.ends[r]
	}
	return g.heads[r] + 1
}

func (g *pushGame) claims(r *Flow) {
	g.t.Helper()
	w := g.h.Pusher(g.t)
	c := w.ask(1 + g.rnd.IntN(4))
	own := g.rnd.IntN(2) == 0
	if own {
		c.Only = []store.PushRun{{Tenant: r.F.Name(), RunID: r.ID}}
	}
	at, due := g.h.Now(g.t), 0
	for item, m := range g.rows {
		if m.due(at) && (!own || item.Tenant == r.F.Name() && item.RunID == r.ID) {
			due++
		}
	}
	got := w.Ask(c)
	g.said("claim %d of %d, only %v: %v, parked %v", c.Limit, due, own, tokens(got.Pushes), got.Parked)
	eq(g.t, "claimed", len(got.Pushes)+len(got.Parked), min(due, c.Limit))
	eq(g.t, "saturated", got.Saturated, due > c.Limit)
	before := g.last
	for _, p := range got.Pushes {
		m := g.rows[store.PushItem{Tenant: p.Tenant, PushKey: p.Key()}]
		if m == nil || !m.due(at) {
			g.t.Fatalf("claimed %s/%s, which is not due: %+v", p.RunID, p.ID, m)
		}
		if p.Token <= before {
			g.t.Fatalf("token %d after %d", p.Token, before)
		}
		g.last = max(g.last, p.Token)
		m.lose(g.t, &p.Push)
		m.token, m.revoked, m.until = p.Token, false, p.ExpiresAt
		m.former = append(m.former, p.Token)
	}
	for _, p := range got.Parked {
		m := g.rows[p]
		m.lose(g.t, (&Flow{F: g.h.FixOf(g.t, p.Tenant), ID: p.RunID}).Push(p.ID))
		eq(g.t, "lost of what parks", m.lost >= store.DefaultPushLostLimit, true)
		m.park(rendezvous.ParkWorkerLost)
		m.token, m.until = 0, time.Time{}
	}
	eq(g.t, "lost", got.Lost <= len(got.Pushes)+len(got.Parked), true)
}

// tokenOf is 0, the holder's, or one of before; ok says that the contract leaves nothing open of it.
func (g *pushGame) tokenOf(m *pushRow) (token int64, holder, ok bool) {
	at := g.h.Now(g.t)
	switch n := g.rnd.IntN(4); {
	case n == 0:
		return 0, !m.leased(at), !m.revoked && (m.token == 0 || m.leased(at))
	case n == 1 && len(m.former) > 0:
		token = pick(g.rnd, m.former...)
		return token, false, token != m.token
	}
	return m.token, m.token != 0 && !m.revoked, m.token != 0 && !m.revoked
}

func (g *pushGame) advances(r *Flow, item store.PushItem, m *pushRow) {
	g.t.Helper()
	to := at(1+g.rnd.Int64N(g.heads[r]+2), g.rnd.IntN(2))
	if m == nil || !m.there {
		_, err := r.F.AdvancePush(ctx, item.PushKey, 0, to)
		code(g.t, "advance of nothing", err, rendezvous.CodeNotFound)
		return
	}
	token, holder, ok := g.tokenOf(m)
	if !ok {
		return
	}
	g.said("advance %s/%s under %d to %v", r.ID, item.ID, token, to)
	got, err := r.F.AdvancePush(ctx, item.PushKey, token, to)
	switch {
	case token != 0 && token < m.first:
		code(g.t, "advance under a token of before", err, rendezvous.CodeNotFound)
	case to.Compare(at(g.heads[r]+1, 0)) > 0:
		code(g.t, "advance beyond the head", err, rendezvous.CodeInvalid)
	default:
		done(g.t, "advance", err)
		m.advance(to)
		eq(g.t, "advanced", got, store.PushAdvanced{Cursor: m.cursor, Owned: holder})
		if holder {
			m.attempts, m.failing, m.lost = 0, false, r.Push(item.ID).Lost
			if token == 0 && m.state != rendezvous.PushParked {
				m.next = time.Time{}
				m.idle(g, r)
			}
		}
	}
}

func (g *pushGame) retries(r *Flow, item store.PushItem, m *pushRow) {
	g.t.Helper()
	next := g.h.In(g.t, time.Duration(g.rnd.IntN(60))*time.Second)
	if m == nil || !m.there {
		code(g.t, "retry of nothing", r.F.RetryPush(ctx, item.PushKey, 0, next, "x"), rendezvous.CodeNotFound)
		return
	}
	token, holder, ok := g.tokenOf(m)
	if !ok {
		return
	}
	g.said("retry %s/%s under %d at %s", r.ID, item.ID, token, next)
	err := r.F.RetryPush(ctx, item.PushKey, token, next, "x")
	switch {
	case holder:
		done(g.t, "retry", err)
		m.charge()
		m.state, m.next, m.reason = rendezvous.PushLive, rendezvous.DueInstant(next), ""
		if m.handIn(); token == 0 {
			m.lost = r.Push(item.ID).Lost
		}
	case token == 0:
		code(g.t, "retry under another's lease", err, rendezvous.CodeLeaseHeld)
	case token < m.first: // of an incarnation before: it has no place here
		if c := rendezvous.CodeOf(err); c != rendezvous.CodeFenced && c != rendezvous.CodeNotFound {
			g.t.Fatalf("retry under a token of before: %v", err)
		}
	case !m.settled[token]:
		code(g.t, "retry under a stale token", err, rendezvous.CodeFenced)
	}
}

func (g *pushGame) parks(r *Flow, item store.PushItem, m *pushRow) {
	g.t.Helper()
	if m == nil || !m.there {
		return
	}
	g.said("park %s/%s", r.ID, item.ID)
	r.Stop(item.ID, rendezvous.ParkByOperator)
	m.park(rendezvous.ParkByOperator)
	m.revoke()
}

func (g *pushGame) unparks(r *Flow, item store.PushItem, m *pushRow) {
	g.t.Helper()
	T := g.h.In(g.t, time.Duration(g.rnd.IntN(60))*time.Second)
	g.said("unpark %s/%s at %s", r.ID, item.ID, T)
	is := must(r.F.UnparkPush(ctx, item.PushKey, T, ""))(g.t, "unpark")
	eq(g.t, "unparked", is, m != nil && m.there && m.state == rendezvous.PushParked)
	if is {
		m.state, m.reason, m.next, m.attempts, m.failing = rendezvous.PushLive, "", rendezvous.DueInstant(T), 0, false
		m.lost = r.Push(item.ID).Lost
	}
}

func (g *pushGame) skips(r *Flow, item store.PushItem, m *pushRow) {
	g.t.Helper()
	seq := m.cursor.NextSeq + int64(g.rnd.IntN(2))
	if seq > g.heads[r] {
		return
	}
	g.said("skip %s/%s at %d", r.ID, item.ID, seq)
	_, err := r.skip(item.ID, seq)
	switch {
	case m.state != rendezvous.PushParked, seq != m.cursor.NextSeq:
		if seq+1 == m.cursor.NextSeq && err == nil {
			return // the skip of before, again
		}
		code(g.t, "skip", err, rendezvous.CodeConflict)
	default:
		done(g.t, "skip", err)
		m.advance(at(seq+1, 0))
		m.attempts, m.number = 0, r.Push(item.ID).AttemptNo
		m.failing = !r.Push(item.ID).FailingSince.IsZero()
		m.revoke()
	}
}

func (g *pushGame) renews(m *pushRow) {
	g.t.Helper()
	if m == nil || len(m.former) == 0 {
		return
	}
	token := pick(g.rnd, m.former...)
	got := g.h.Pusher(g.t).Renew(token)
	g.said("renew %d: %s", token, got.State)
	switch {
	case token != m.token, m.revoked && !m.leased(g.h.Now(g.t)):
		eq(g.t, "renewed a token that is over", got.State != store.PushLeaseHeld, true)
	case m.revoked:
		eq(g.t, "renewed a revoked token", got.State, store.PushLeaseRevoked)
	default:
		eq(g.t, "renewed", got.State, store.PushLeaseHeld)
		m.until = got.ExpiresAt
	}
}

func (g *pushGame) settles(r *Flow, item store.PushItem, m *pushRow) {
	g.t.Helper()
	c := store.ClaimedPush{Push: store.Push{Tenant: item.Tenant}, Token: m.token}
	c.RunID, c.ID = item.RunID, item.ID
	do := pick(g.rnd, store.PushKeep, store.PushRelease, store.PushRelease, store.PushRetry, store.PushPark, store.PushComplete)
	s := settling(c, do)
	head := g.heads[r]
	if do == store.PushRelease && g.rnd.IntN(2) == 0 {
		s.Why, s.Head = store.ReleaseRest, head-int64(g.rnd.IntN(2))
	}
	if g.rnd.IntN(3) > 0 {
		s.Advance = ptr(at(min(m.cursor.NextSeq+int64(g.rnd.IntN(3)), head+1), 0))
	}
	if do == store.PushComplete {
		s.Advance = ptr(at(head+1, 0))
	}
	for range g.rnd.IntN(3) {
		s.Attempts = append(s.Attempts, g.h.attempt(g.t, rendezvous.ClassFailed, max(m.cursor.NextSeq, 1)))
	}
	if do == store.PushRetry {
		s.At = g.h.In(g.t, time.Duration(g.rnd.IntN(60))*time.Second)
	}
	out := g.h.Pusher(g.t).SettleAll(s)[0]
	g.said("settle %s/%s under %d (revoked %v): %s %s to %v: %v, idle %v", r.ID, item.ID, m.token, m.revoked, do, s.Why, s.Advance, out.Err, out.Idle)
	if m.token < m.first { // of the incarnation before: it is handed in, and moves nothing
		if do != store.PushComplete {
			code(g.t, "settle under a token of before", out.Err, rendezvous.CodeNotFound)
		}
		if do != store.PushKeep {
			m.handIn()
		}
		return
	}
	if s.Advance != nil {
		m.advance(*s.Advance)
	}
	if m.revoked {
		if m.leased(g.h.Now(g.t)) {
			eq(g.t, "state", out.State, store.PushLeaseRevoked)
		}
		eq(g.t, "deposed", out.State != store.PushLeaseHeld, true)
		m.number = r.Push(item.ID).AttemptNo
		if do == store.PushComplete { // what a deposed holder may end is its own affair; here it may not
			code(g.t, "complete under a revoked token", out.Err, rendezvous.CodeFenced)
		}
		if do != store.PushKeep {
			m.handIn()
			m.lost = r.Push(item.ID).Lost
		}
		return
	}
	eq(g.t, "state", out.State, store.PushLeaseHeld)
	m.number += int64(len(s.Attempts))
	m.lost = 0
	if s.Advance != nil {
		m.attempts, m.failing = 0, false
	}
	m.settle(g, r, s, out)
}

// judge compares all rows with the model.
func (g *pushGame) judge() {
	g.t.Helper()
	for _, r := range g.flows {
		r.awake("after " + g.moves[len(g.moves)-1])
		there := 0
		for item, m := range g.rows {
			if item.Tenant == r.F.Name() && item.RunID == r.ID && m.there {
				there++
				m.judge(g.t, r.Push(item.ID))
			}
		}
		eq(g.t, "rows of "+r.ID, len(must(r.F.ListPush(ctx, r.ID))(g.t, "list")), there)
	}
	g.steady()
	now := g.h.Now(g.t)
	for _, f := range []*Fix{g.flows[0].F, g.flows[len(g.flows)-1].F} {
		var due, parked []string
		for item, m := range g.rows {
			if item.Tenant != f.Name() || !m.there {
				continue
			}
			if m.due(now) {
				due = append(due, item.RunID+"/"+item.ID)
			}
			if m.state == rendezvous.PushParked {
				parked = append(parked, item.RunID+"/"+item.ID)
			}
		}
		rows := must(f.DuePush(ctx, time.Time{}, 0))(g.t, "list what is due")
		if !slices.IsSortedFunc(rows, func(a, b store.Push) int {
			if c := a.NextAttemptAt.Compare(b.NextAttemptAt); c != 0 {
				return c
			}
			return byBytes(a, b)
		}) {
			g.t.Fatalf("not in due order: %v", pushNames(rows))
		}
		eq(g.t, "due of "+f.Name(), sorted(pushNames(rows)), sorted(due))
		eq(g.t, "parked of "+f.Name(), pushNames(f.parkedPushes(store.PushParkedFilter{}, 0)), sorted(parked))
	}
}

func pushesOfChance(t *testing.T, h *Harness) {
	seed := seedOf(t)
	t.Logf("RDV_SEED=%d", seed)
	for round := range 2 + h.Rounds(t)/20 {
		g := newPushGame(t, h, rand.New(rand.NewPCG(seed, uint64(round))))
		func() {
			defer g.tell()
			for range 150 {
				g.move()
				if len(g.moves) > 0 {
					g.judge()
				}
			}
		}()
		g.clear()
	}
}

// clear removes all registrations and lets their leases end.
func (g *pushGame) clear() {
	g.t.Helper()
	for item := range g.rows {
		f := g.h.FixOf(g.t, item.Tenant)
		must(f.DeletePush(ctx, item.PushKey))(g.t, "delete")
	}
	g.h.Advance(pushLeaseEnd)
}
