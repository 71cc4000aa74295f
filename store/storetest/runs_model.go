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

// runsModel plays verbs of chance, of several owners and in two tenants, against the law of runs_law.go.
var runsModel = []Case{
	{Name: "RN-1..RN-6 RN-18..RN-26 RN-31..RN-36 HI-13..HI-19 HI-40 verbs of chance keep to the law", Run: verbsOfChance},
	{Name: "RN-3 RN-33 RN-44 RN-56 HI-13 HI-40 verbs of chance at once leave histories that fold to their rows", Run: verbsAtOnce},
}

// game is one sequence of verbs and the law beside it.
type game struct {
	t     *testing.T
	h     *Harness
	rnd   *rand.Rand
	law   *law
	fixes map[string]*Fix
	moves []string // for whoever reads a failure

	notices store.Notices      // of the move
	again   []func() error     // batches that landed, to be sent again
	sealed  map[string]outlook // of workflows when they ended
}

// move is what a verb answered and what the law says of it.
type move struct {
	what string
	err  error
	want rendezvous.Code
}

func verbsOfChance(t *testing.T, h *Harness) {
	seed := seedOf(t)
	for round := range 4 + h.Rounds(t)/25 { // sequences are long, and every step of them commits
		g := newGame(t, h, rand.New(rand.NewPCG(seed, uint64(round))))
		g.play(80)
	}
}

func newGame(t *testing.T, h *Harness, rnd *rand.Rand) *game {
	g := &game{t: t, h: h, rnd: rnd, law: &law{now: h.Now(t)}, fixes: map[string]*Fix{}, sealed: map[string]outlook{}}
	for _, name := range []string{"acme", "globex"} {
		g.fixes[name] = h.FixOf(t, name)
	}
	return g
}

func (g *game) play(moves int) {
	defer func() {
		if g.t.Failed() {
			g.t.Logf("the moves were:\n%s", strings.Join(g.moves, "\n"))
		}
	}()
	g.revive()
	for range moves {
		g.revive()
		g.notices = store.Notices{}
		m := g.next()
		g.moves = append(g.moves, fmt.Sprintf("%s -> %v", m.what, m.err))
		if got := rendezvous.CodeOf(m.err); got != m.want {
			g.t.Fatalf("%s: %v, the law says %q", m.what, m.err, m.want)
		}
		made := g.h.Offer(g.t, g.notices)
		g.law.meet()
		g.compare(m.what, made.Resume, false)
	}
	g.compare("all moves", nil, true)
	for _, f := range g.law.flows { // nothing of this game is left for the next
		must(g.fixes[f.tenant].CancelRun(ctx, f.run().id, nil, "", true, now))(g.t, "end "+f.id)
	}
}

// revive starts another workflow where an end has left fewer than two.
func (g *game) revive() {
	going := map[string]int{}
	for _, f := range g.law.flows {
		if !f.sealed() {
			going[f.tenant]++
		}
	}
	for _, name := range []string{"acme", "globex"} {
		if going[name] < 2 {
			g.start(g.fixes[name])
		}
	}
}

func (g *game) start(f *Fix) {
	s := store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order"}
	f.StartAs(s)
	flow := &lawFlow{tenant: f.Name(), id: s.WorkflowID, runs: []*lawRun{{id: s.RunID, effects: map[string][]lawAttempt{}}}}
	g.law.record(flow, false, rendezvous.RunStarted, "", 0)
	flow.woken = markYes
	g.law.flows = append(g.law.flows, flow)
}

// pick is any of some.
func pick[T any](rnd *rand.Rand, some ...T) T { return some[rnd.IntN(len(some))] }

// next makes one move.
func (g *game) next() move {
	f := g.law.flows[max(0, len(g.law.flows)-1-g.rnd.IntN(6))] // rather a young one: the old ones have ended
	w := &turn{game: g, f: f, fix: g.fixes[f.tenant], run: f.run().id, epoch: g.epoch(f), expected: f.head()}
	if g.rnd.IntN(20) == 0 {
		w.run = pick(g.rnd, f.runs[0].id, "nobody's")
	}
	if g.rnd.IntN(8) == 0 {
		w.expected = max(0, w.expected+pick[int64](g.rnd, -1, 1))
	}
	driven := func(holder func() move) func() move {
		if f.owner == "" && g.rnd.IntN(4) > 0 {
			return w.acquire
		}
		return holder
	}
	moves := []struct {
		weight int
		make   func() move
	}{
		{28, w.append},
		{6, w.acquire},
		{4, driven(w.renew)},
		{8, driven(w.suspend)},
		{4, driven(w.release)},
		{5, driven(w.collect)},
		{12, w.register},
		{4, w.withdraw},
		{14, w.send},
		{4, w.deliver},
		{2, w.conclude},
		{3, w.continues},
		{2, w.ask},
		{1, w.revoke},
		{3, w.pause},
		{4, w.resume},
		{2, w.reclaim},
		{5, w.wait},
		{3, w.repeat},
	}
	total := 0
	for _, m := range moves {
		total += m.weight
	}
	n := g.rnd.IntN(total)
	for _, m := range moves {
		if n -= m.weight; n < 0 {
			return m.make()
		}
	}
	panic("unreachable")
}

// epoch is mostly the one that is good, or none on a free run.
func (g *game) epoch(f *lawFlow) int64 {
	switch n := g.rnd.IntN(10); {
	case n == 0:
		return 0
	case n == 1:
		return f.epoch + 1
	case n == 2 && f.epoch > 1:
		return f.epoch - 1
	case f.owner == "":
		return 0
	}
	return f.epoch
}

// compare fails the test unless every workflow is what the law says, record by record, and its row is its history folded (HI-13, HI-40).
// What has ended is looked at again only where all is.
func (g *game) compare(what string, resumed []store.ResumeRef, all bool) {
	g.t.Helper()
	certain, possible := 0, 0
	for _, f := range g.law.flows {
		if _, before := g.sealed[f.id]; !before || all {
			g.compareFlow(what, f)
		}
		if f.woken == markYes {
			certain++
		}
		if f.woken != markNo {
			possible++
		}
	}
	if n := g.h.marks(g.fixes["acme"]); n < certain || n > possible {
		g.t.Fatalf("after %s %d runs are woken, the law says %d..%d", what, n, certain, possible)
	}
	for _, n := range append(slices.Clone(resumed), g.h.SweepWoken(g.t)...) {
		i := slices.IndexFunc(g.law.flows, func(f *lawFlow) bool { return f.tenant == n.Tenant && f.id == n.WorkflowID })
		if f := g.law.flows[i]; f.woken == markNo || f.run().id != n.RunID || f.run().status != rendezvous.StatusRunning || f.live(g.law) {
			g.t.Fatalf("after %s a notice went to %s, which is %s, woken %v, leased %v", what, n.RunID, f.run().status, f.woken, f.live(g.law))
		}
	}
	for _, e := range g.law.events {
		if e.compared && !all {
			continue
		}
		e.compared = e.state == rendezvous.EventConsumed || e.state == rendezvous.EventDead
		stored := g.fixes[e.tenant].Stored(e.id)
		got := []string{string(stored.State), stored.RunID, stored.Effect}
		if stored.State == rendezvous.EventDead || stored.State == rendezvous.EventLive {
			got = got[:1]
		}
		want := []string{string(e.state), e.run, e.effect}[:len(got)]
		eq(g.t, "place of "+e.id.ID+" after "+what, got, want)
	}
}

func (g *game) compareFlow(what string, f *lawFlow) {
	g.t.Helper()
	r := &Flow{F: g.fixes[f.tenant], WorkflowID: f.id, ID: f.run().id}
	look := r.outlook()
	var got []lawRecord
	for _, rec := range look.Records {
		got = append(got, lawRecord{run: rec.RunID, kind: rec.Kind, effect: rec.Effect, attempt: rec.Attempt, at: rec.RecordedAt})
	}
	for i := range max(len(got), len(f.records)) {
		if i >= len(got) || i >= len(f.records) || got[i] != f.records[i] {
			g.t.Fatalf("after %s the history of %s is, from record %d on, %v, want %v", what, f.id, i+1, got[min(i, len(got)):], f.records[min(i, len(f.records)):])
		}
	}
	checkFold(g.t, what, look)

	row := look.Row
	eq(g.t, "run and status after "+what, fmt.Sprint(row.RunID, row.Status), fmt.Sprint(f.run().id, f.run().status))
	owner, left := "", time.Duration(0)
	if f.live(g.law) {
		owner, left = f.owner, f.expires.Sub(g.law.now)
	}
	eq(g.t, "lease after "+what, fmt.Sprint(row.LeaseOwner, row.LeaseEpoch, row.LeaseRemaining, row.Reclaims), fmt.Sprint(owner, f.epoch, left, f.reclaims))
	var requests []rendezvous.RequestKind
	if f.pause {
		requests = append(requests, rendezvous.RequestPause)
	}
	if f.cancel {
		requests = append(requests, rendezvous.RequestCancel)
	}
	eq(g.t, "requests after "+what, asked(row.Requests), requests)
	if !f.sealed() {
		eq(g.t, "open effects and waits after "+what, []int{row.OpenEffects, row.OpenWaits}, []int{f.run().open(false), f.run().open(true)})
	}
	var waits, want []string
	for _, w := range look.Waits {
		waits = append(waits, fmt.Sprint(w.Effect, " ", w.Keys, " ", w.State, " ", w.Held))
	}
	for _, w := range f.run().waits {
		state, held := rendezvous.WaitOpen, (*rendezvous.EventID)(nil)
		if w.held != nil {
			state, held = rendezvous.WaitParked, &w.held.id
		}
		want = append(want, fmt.Sprint(w.effect, " ", []rendezvous.Key{K("key", w.key)}, " ", state, " ", held))
	}
	eq(g.t, "waits after "+what, waits, want)
	for _, run := range f.runs[:len(f.runs)-1] {
		eq(g.t, "waits of an earlier run after "+what, len((&Flow{F: r.F, WorkflowID: f.id, ID: run.id}).Rows()), 0)
	}
	if before, ok := g.sealed[f.id]; ok { // sealed stays sealed
		eq(g.t, "an ended workflow after "+what, look, before)
	} else if f.sealed() {
		g.sealed[f.id] = look
	}
}

// checkFold fails the test unless a workflow's rows are its history folded: numbered without gaps, recorded_at never falling and equal within a batch,
// the status of every run its last lifecycle record's, the chain linked, and the counts those of what is open (history.md sections 2, 5 and 6).
func checkFold(t testing.TB, what string, look outlook) {
	t.Helper()
	type key struct {
		effect  string
		attempt int
	}
	var runs []store.RunSummary
	open := map[bool]map[key]bool{}
	batches := map[string]time.Time{}
	var last rendezvous.Record
	for i, rec := range look.Records {
		if rec.Seq != int64(i+1) || rec.RecordedAt.Before(last.RecordedAt) {
			t.Fatalf("after %s record %d has seq %d and was recorded at %s, after %s", what, i+1, rec.Seq, rec.RecordedAt, last.RecordedAt)
		}
		if at, ok := batches[rec.Batch]; ok && rec.Batch != "" && !at.Equal(rec.RecordedAt) {
			t.Fatalf("after %s a batch was recorded at %s and at %s", what, at, rec.RecordedAt)
		}
		batches[rec.Batch] = rec.RecordedAt
		last = rec
		if rec.Kind == rendezvous.RunStarted {
			var d rendezvous.RunStartedData
			done(t, "decode the start", rendezvous.DecodeData(rec, &d))
			runs = append(runs, store.RunSummary{RunID: rec.RunID, PreviousRun: d.PreviousRun, FirstSeq: rec.Seq, StartedAt: rec.RecordedAt})
			open = map[bool]map[key]bool{true: {}, false: {}}
		}
		run := &runs[len(runs)-1]
		if run.Status.Terminal() && run.Status != "" {
			t.Fatalf("after %s record %d (%s) follows the end of its run", what, rec.Seq, rec.Kind)
		}
		if rec.RunID != run.RunID {
			t.Fatalf("after %s record %d is of run %s in the segment of %s", what, rec.Seq, rec.RunID, run.RunID)
		}
		run.LastSeq = rec.Seq
		if s := rec.Kind.Status(); s != "" {
			run.Status = s
			if s.Terminal() {
				run.ClosedAt, run.Outcome = rec.RecordedAt, rec.Kind
			}
		}
		switch k := (key{rec.Effect, rec.Attempt}); rec.Kind.Phase() {
		case rendezvous.PhaseOpen:
			open[rec.Kind.IsWait()][k] = true
		case rendezvous.PhaseClose:
			if !open[rec.Kind.IsWait()][k] {
				t.Fatalf("after %s record %d closes %v, which is not open", what, rec.Seq, k)
			}
			delete(open[rec.Kind.IsWait()], k)
		}
	}
	eq(t, "chain after "+what, look.Chain, runs)
	run, row := runs[len(runs)-1], look.Row
	effects, waits := len(open[false]), len(open[true])
	if run.Status.Terminal() {
		effects, waits = 0, 0
	}
	eq(t, "row after "+what,
		fmt.Sprint(row.RunID, row.Status, row.Head, row.CreatedAt, row.StartedAt, row.ClosedAt, row.UpdatedAt, row.OpenEffects, row.OpenWaits),
		fmt.Sprint(run.RunID, run.Status, last.Seq, runs[0].StartedAt, run.StartedAt, run.ClosedAt, last.RecordedAt, effects, waits))
	eq(t, "rows of waits after "+what, len(look.Waits), waits)
}
