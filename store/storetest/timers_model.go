package storetest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// timersModel plays verbs of chance over runs with timers and deadlines, and folds histories behind them (timers_fold.go).
var timersModel = []Case{
	{Name: "TM-2 TM-7 TM-10 TM-16..TM-23 TM-29 TM-37..TM-44 verbs of chance leave rows that are what the history says", Run: timersOfChance},
	{Name: "TM-23 TM-30 TM-32 TM-43 EV-70 verbs of chance at once leave rows that are what the history says", Run: timersAtOnce},
}

// timerGame is a sequence of verbs over few runs, ids and keys, so that they meet.
type timerGame struct {
	t     testing.TB
	h     *Harness
	rnd   *rand.Rand
	pod   *TimerPod
	flows []*timerFlow
	mu    sync.Mutex
	moves []string
}

// timerFlow is a workflow with whoever drives it.
type timerFlow struct {
	*Flow
	mu    sync.Mutex
	epoch int64
	fold  *timersFold // as last folded
}

func newTimerGame(t *testing.T, h *Harness, rnd *rand.Rand) *timerGame {
	g := &timerGame{t: t, h: h, rnd: rnd, pod: h.TimerPod(t)}
	for _, f := range h.Two(t) {
		for range 2 {
			g.flows = append(g.flows, &timerFlow{Flow: g.begin(f, ID("workflow"))})
		}
	}
	return g
}

func (g *timerGame) begin(f *Fix, workflow string) *Flow {
	s := store.Start{WorkflowID: workflow, RunID: ID("run"), Type: "order"}
	if g.rnd.IntN(2) == 0 {
		s.Deadline = g.h.In(g.t, time.Duration(1+g.rnd.IntN(30))*time.Second)
	}
	return f.StartAs(s)
}

// fault is an error that no verb of this game may give.
func (g *timerGame) refused(what string, err error) {
	g.mu.Lock()
	g.moves = append(g.moves, fmt.Sprintf("%s: %v", what, err))
	g.mu.Unlock()
	switch rendezvous.CodeOf(err) {
	case "", rendezvous.CodeConflict, rendezvous.CodeInvalid, rendezvous.CodeLeaseHeld, rendezvous.CodeFenced, rendezvous.CodeSealed, rendezvous.CodeDuplicate,
		rendezvous.CodeRateLimited:
	default:
		g.t.Errorf("%s: %v", what, err)
	}
}

// in is an instant around now.
func (g *timerGame) in(rnd *rand.Rand) time.Time {
	return must(g.h.Store.Now(ctx))(g.t, "ask the store's now").Add(time.Duration(rnd.IntN(12_000)-2_000) * time.Millisecond)
}

// move plays one verb on a workflow. It is safe to be called at once for different generators.
func (g *timerGame) move(rnd *rand.Rand) {
	w := pick(rnd, g.flows...)
	w.mu.Lock()
	r, epoch, fold := *w.Flow, w.epoch, w.fold
	w.mu.Unlock()
	if rnd.IntN(8) == 0 {
		epoch = 0
	}
	f := r.F
	id, effect := pick(rnd, "a", "b", "c"), pick(rnd, "u", "v", "w")
	key := K("order", pick(rnd, "1", "2"))
	name := func(what string) string {
		return fmt.Sprintf("%s of %s/%s epoch %d", what, f.Name(), r.WorkflowID, epoch)
	}
	head := func() int64 {
		page, err := f.ReadHistoryFrom(ctx, r.WorkflowID, rendezvous.MaxSeq, 1)
		g.refused("head", err)
		return page.Head
	}
	switch rnd.IntN(24) {
	case 0, 1:
		_, err := f.ArmTimer(ctx, store.Arm{RunID: r.ID, Epoch: epoch, TimerID: id, FireAt: g.in(rnd), BatchID: ID("batch")}, now)
		g.refused(name("arm "+id), err)
	case 2:
		_, err := f.CancelTimer(ctx, r.ID, epoch, id, ID("batch"), "", now)
		g.refused(name("cancel "+id), err)
	case 3, 4, 5:
		var batch []rendezvous.Record
		for range 1 + rnd.IntN(4) {
			batch = append(batch, g.recordOfChance(rnd, &r, fold))
		}
		_, err := f.Append(ctx, store.Append{RunID: r.ID, Epoch: epoch, ExpectedSeq: head(), BatchID: ID("batch"), Records: batch}, now)
		var kinds []string
		for _, rec := range batch {
			kinds = append(kinds, string(rec.Kind))
		}
		g.refused(name("append "+strings.Join(kinds, " ")), err)
	case 6, 7, 8:
		wait := r.Wait(fmt.Sprintf("%s%d", effect, rnd.IntN(40)), "paid", key)
		if rnd.IntN(4) > 0 {
			wait.Deadline = g.in(rnd)
		}
		var err error
		if rnd.IntN(2) == 0 {
			_, err = f.RegisterWait(ctx, store.Registration{Wait: wait, Epoch: epoch}, now)
		} else { // it takes nothing, so that pairs stay apart
			_, err = f.Subscribe(ctx, store.Registration{Wait: wait, Epoch: epoch}, now)
		}
		g.refused(name(fmt.Sprintf("register %s on %s until %s", wait.Effect, key.Value, wait.Deadline)), err)
	case 9, 10:
		e := EventOf("paid", key)
		b, err := f.Buffer(ctx, e, now)
		g.refused(name("buffer on "+key.Value), err)
		if rnd.IntN(3) == 0 && err == nil {
			_, err := g.h.Store.OfferBatch(ctx, offersOf(b.Notices), now)
			g.refused(name("offer"), err)
		}
	case 11:
		g.withdraw(rnd, &r, epoch)
	case 12, 13:
		lease, err := f.AcquireLease(ctx, r.ID, ID("pod"), time.Duration(2+rnd.IntN(10))*time.Second, ID("acquire"))
		g.refused(name("acquire"), err)
		if err == nil {
			w.mu.Lock()
			w.epoch = lease.Epoch
			w.mu.Unlock()
		}
	case 14, 15:
		if epoch > 0 {
			got, err := f.Tenant.Suspend(ctx, r.ID, epoch, head(), true)
			g.refused(name("suspend "+string(got.Outcome)), err)
			if got.Outcome != store.SuspendContinue {
				w.lost(epoch)
			}
		}
	case 16:
		if epoch > 0 {
			_, err := f.ReleaseLease(ctx, r.ID, epoch)
			g.refused(name("release"), err)
			w.lost(epoch)
		}
	case 17:
		var err error
		if rnd.IntN(3) == 0 {
			_, err = f.PauseRun(ctx, r.ID, kim, "", now)
		} else {
			_, err = f.ResumeRun(ctx, r.ID, kim, "", now)
		}
		g.refused(name("pause or resume"), err)
	case 18:
		g.endOrContinue(rnd, w, &r, epoch, head())
	case 19:
		_, err := f.ReopenRun(ctx, r.reopening(), now)
		g.refused(name("reopen"), err)
	case 20:
		g.hold(rnd)
	default:
		g.page(rnd)
	}
}

// lost forgets a lease that was given up.
func (w *timerFlow) lost(epoch int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.epoch == epoch {
		w.epoch = 0
	}
}

// recordOfChance is a record that may or may not stand where it will.
func (g *timerGame) recordOfChance(rnd *rand.Rand, r *Flow, fold *timersFold) rendezvous.Record {
	id, effect := pick(rnd, "a", "b", "c"), "never"
	var live map[string]store.Arming
	if fold != nil {
		live = fold.live
		for effect = range fold.waits { // any
			break
		}
	}
	switch rnd.IntN(6) {
	case 0:
		return r.TimedAt(id, g.in(rnd))
	case 1:
		return r.TimedIn(id, time.Duration(rnd.IntN(5000))*time.Millisecond)
	case 2:
		return r.CancelledAs(id, max(live[id].ArmedSeq, 1))
	case 3:
		return r.FiredAs(id, max(live[id].ArmedSeq, 1))
	case 4:
		return r.TimedOut(effect)
	}
	return r.Noted("n")
}

func (g *timerGame) withdraw(rnd *rand.Rand, r *Flow, epoch int64) {
	page, err := r.F.Waiting(ctx, store.WaitFilter{RunID: r.ID}, 0, "")
	g.refused("list waits", err)
	if len(page.Waits) > 0 {
		_, err := r.F.Unsubscribe(ctx, pick(rnd, page.Waits...).WaitID, epoch, "", now)
		g.refused("withdraw a wait of "+r.WorkflowID, err)
	}
}

// endOrContinue ends the run by one of the roads; a workflow that completed is followed by another one.
func (g *timerGame) endOrContinue(rnd *rand.Rand, w *timerFlow, r *Flow, epoch, head int64) {
	f := r.F
	switch rnd.IntN(5) {
	case 0, 1:
		c := store.Conclusion{RunID: r.ID, Epoch: epoch, ExpectedSeq: head, BatchID: ID("batch"), Outcome: rendezvous.StatusFailed, Code: "x", Reason: "y"}
		_, err := f.Conclude(ctx, c, now)
		g.refused("fail "+r.WorkflowID, err)
	case 2:
		_, err := f.CancelRun(ctx, r.ID, kim, "", true, now)
		g.refused("cancel "+r.WorkflowID, err)
	case 3:
		c := store.Conclusion{RunID: r.ID, Epoch: epoch, ExpectedSeq: head, BatchID: ID("batch"), Outcome: rendezvous.StatusTimedOut}
		_, err := f.Conclude(ctx, c, now)
		g.refused("time out "+r.WorkflowID, err)
	default:
		c := store.Continuation{RunID: r.ID, Epoch: epoch, ExpectedSeq: head, BatchID: ID("batch"), NextRun: ID("run")}
		if rnd.IntN(2) == 0 {
			c.DeadlineAfter = ptr(time.Duration(1+rnd.IntN(20)) * time.Second)
		}
		_, err := f.ContinueAsNew(ctx, c, now)
		g.refused("continue "+r.WorkflowID, err)
		if err == nil {
			w.mu.Lock()
			w.Flow = &Flow{F: f, WorkflowID: r.WorkflowID, ID: c.NextRun}
			w.mu.Unlock()
		}
	}
}

// page fires a page and does what its worker does then.
func (g *timerGame) page(rnd *rand.Rand) {
	got, err := g.pod.FireDueTimers(ctx, g.pod.Owned, rnd.IntN(6))
	var all []string
	for _, x := range got.Fires {
		all = append(all, fmt.Sprintf("%s/%s/%s %s", x.Tenant, x.WorkflowID, x.TimerID, x.Outcome))
		if x.Outcome == store.FireFailed || x.Outcome == store.FireDropped {
			g.t.Errorf("timer %s of %s: %s (%v)", x.TimerID, x.WorkflowID, x.Outcome, x.Err)
		}
		if x.Outcome == store.FireContested {
			_, err := g.h.Store.OfferBatch(ctx, []store.OfferItem{{Tenant: x.Tenant, Wait: &rendezvous.WaitID{RunID: x.RunID, Effect: x.Effect}}}, now)
			g.refused("offer a contested wait", err)
		}
	}
	g.refused("page ["+strings.Join(all, ", ")+"]", err)
}

func (g *timerGame) hold(rnd *rand.Rand) {
	held, err := g.pod.ClaimDueTimers(ctx, g.pod.Owned, time.Duration(1+rnd.IntN(3))*time.Second, 3)
	g.refused("hold", err)
	for _, x := range held {
		switch rnd.IntN(3) {
		case 0:
			got, _, err := g.pod.FireTimer(ctx, x)
			g.refused(fmt.Sprintf("fire held %s of %s: %s", x.TimerID, x.WorkflowID, got.Outcome), err)
		case 1:
			g.refused("give back", g.pod.ReleaseTimers(ctx, []int64{x.Token}))
		}
	}
}

// fold compares all workflows with their histories.
func (g *timerGame) fold() {
	g.t.Helper()
	for _, w := range g.flows {
		w.fold = w.sound()
		if w.Describe().Status.Terminal() && g.rnd.IntN(3) == 0 { // it stays behind, sound
			w.Flow, w.epoch, w.fold = g.begin(w.F, ID("workflow")), 0, nil
		}
	}
}

func (g *timerGame) tell() {
	if g.t.Failed() {
		g.t.Logf("the moves were:\n%s", strings.Join(g.moves, "\n"))
	}
}

// end lets everything come due and fails the test if anything that is due stays.
func (g *timerGame) end() {
	g.t.Helper()
	g.h.Advance(time.Hour)
	g.h.SweepLeases(g.t)
	for rounds := 0; ; rounds++ {
		g.h.Advance(10 * time.Second)
		g.pod.Own(g.t)
		g.page(rand.New(rand.NewPCG(1, 1)))
		left := g.h.expired(g.t, g.h.Store, g.h.Now(g.t), store.Scope{}, 0)
		if len(left) == 0 {
			break
		}
		if rounds > 200 {
			g.t.Fatalf("due for ever: %+v", left)
		}
	}
	g.fold()
	for _, w := range g.flows {
		_, err := w.F.CancelRun(ctx, w.ID, nil, "", true, now)
		g.refused("end", err)
	}
	g.h.noRows(g.t)
}

func timersOfChance(t *testing.T, h *Harness) {
	seed := seedOf(t)
	t.Logf("RDV_SEED=%d", seed)
	for round := range 2 + h.Rounds(t)/20 {
		rnd := rand.New(rand.NewPCG(seed, uint64(round)))
		g := newTimerGame(t, h, rnd)
		func() {
			defer g.tell()
			for range 120 {
				if rnd.IntN(3) == 0 {
					h.Advance(time.Duration(rnd.IntN(2000)) * time.Millisecond)
					if rnd.IntN(8) == 0 {
						h.SweepLeases(t)
					}
				}
				g.pod.Own(t)
				g.move(rnd)
				g.fold()
				if t.Failed() {
					return
				}
			}
			g.end()
		}()
		if t.Failed() {
			return
		}
		done(t, "give the shards back", g.pod.ReleaseOwnedShards(ctx, g.pod.Owned))
	}
}

func timersAtOnce(t *testing.T, h *Harness) {
	seed := seedOf(t)
	t.Logf("RDV_SEED=%d", seed)
	for round := range 1 + h.Rounds(t)/10 {
		rnd := rand.New(rand.NewPCG(seed, uint64(1000+round)))
		g := newTimerGame(t, h, rnd)
		func() {
			defer g.tell()
			for range 20 {
				h.Advance(time.Duration(rnd.IntN(2000)) * time.Millisecond)
				g.pod.Own(t)
				var movers []func()
				for range 4 {
					own := rand.New(rand.NewPCG(rnd.Uint64(), rnd.Uint64()))
					movers = append(movers, func() {
						for range 3 {
							g.move(own)
						}
					})
				}
				Race(t, movers...)
				g.fold()
				if t.Failed() {
					return
				}
			}
			g.end()
		}()
		if t.Failed() {
			return
		}
		done(t, "give the shards back", g.pod.ReleaseOwnedShards(ctx, g.pod.Owned))
	}
}
