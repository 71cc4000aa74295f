package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// How big a storm of verbs is.
const (
	stormCallers = 5
	stormVerbs   = 14
	stormKeys    = 3
)

// storm is verbs of several callers on one workflow of each of two tenants at once, each caller knowing only what its own calls told it.
type storm struct {
	t     *testing.T
	h     *Harness
	runs  [2]*Flow
	sent  [stormCallers][]sentEvent
	odd   [stormCallers]error
	said  [stormCallers][]string
	later [stormCallers]store.Notices
}

type sentEvent struct {
	f *Fix
	e rendezvous.Event
}

func verbsAtOnce(t *testing.T, h *Harness) {
	seed := seedOf(t)
	for round := range h.Rounds(t) {
		s := &storm{t: t, h: h}
		for i, name := range []string{"acme", "globex"} {
			s.runs[i] = h.FixOf(t, name).Start()
		}
		var fns []func()
		for i := range stormCallers {
			rnd := rand.New(rand.NewPCG(seed, uint64(round*stormCallers+i)))
			fns = append(fns, func() { s.call(i, rnd) })
		}
		Race(t, fns...)
		for i, err := range s.odd {
			if err != nil {
				t.Fatalf("RDV_SEED=%d: caller %d: %v, after\n%s", seed, i, err, strings.Join(s.said[i], "\n"))
			}
		}
		s.calm()
		for _, r := range s.runs {
			s.check(r)
		}
	}
}

// refusals are the codes that a verb may answer when others come before it. Anything else is odd.
var refusals = []rendezvous.Code{
	"", rendezvous.CodeConflict, rendezvous.CodeDuplicate, rendezvous.CodeSealed, rendezvous.CodeFenced, rendezvous.CodeLeaseHeld,
}

// caller is one who calls: it knows the runs, and of each the epoch and the head it was told last.
type caller struct {
	s     *storm
	i     int
	rnd   *rand.Rand
	name  string
	run   [2]string
	epoch [2]int64
	head  [2]int64
}

func (s *storm) call(i int, rnd *rand.Rand) {
	c := &caller{s: s, i: i, rnd: rnd, name: ID("pod")}
	for k, r := range s.runs {
		c.run[k], c.head[k] = r.ID, 1
	}
	for range stormVerbs {
		what, n, err := c.verb(rnd.IntN(2))
		s.said[i] = append(s.said[i], fmt.Sprint(what, " -> ", err))
		s.later[i].Append(n)
		if !slices.Contains(refusals, rendezvous.CodeOf(err)) || err != nil && rendezvous.CodeOf(err) == "" {
			s.odd[i] = err
			return
		}
	}
}

// verb calls one on workflow k.
func (c *caller) verb(k int) (string, store.Notices, error) {
	f, r := c.s.runs[k].F, &Flow{F: c.s.runs[k].F, WorkflowID: c.s.runs[k].WorkflowID, ID: c.run[k]}
	effect := fmt.Sprint("w", c.rnd.IntN(8))
	key := K("storm", fmt.Sprint(c.s.runs[k].ID, "/", c.rnd.IntN(stormKeys)))
	switch c.rnd.IntN(16) {
	case 0, 1, 2:
		l, err := r.Acquire(c.name, ID("acquire"))
		if err == nil {
			c.epoch[k], c.head[k] = l.Epoch, l.Head
		}
		return "acquire", store.Notices{}, err
	case 3, 4, 5:
		a := store.Append{RunID: r.ID, Epoch: c.epoch[k], ExpectedSeq: c.head[k], BatchID: ID("batch"), Records: recs(r.Noted(c.name))}
		if c.rnd.IntN(2) == 0 {
			a.Records = append(a.Records, r.Waited(r.Wait(effect, "paid", key)))
		}
		out, err := f.Append(ctx, a, now)
		c.learn(k, out.Head, err)
		return "append", out.Notices, err
	case 6, 7:
		out, err := f.RegisterWait(ctx, store.Registration{Wait: r.Wait(effect, "paid", key), Epoch: c.epoch[k]}, now)
		return "register", out.Notices, err
	case 8, 9:
		e := EventOf("paid", key)
		out, err := f.Buffer(ctx, e, now)
		if err == nil {
			c.s.sent[c.i] = append(c.s.sent[c.i], sentEvent{f, e})
			var offered store.Offered
			offered, err = c.s.h.Store.OfferBatch(ctx, f.Items(e), now)
			out.Notices = offered.Notices
		}
		return "event", out.Notices, err
	case 10:
		out, err := f.Collect(ctx, r.ID, max(c.epoch[k], 1))
		c.learn(k, out.Head, err)
		return "collect", out.Notices, err
	case 11:
		out, err := f.Tenant.Suspend(ctx, r.ID, max(c.epoch[k], 1), c.head[k], false)
		c.learn(k, out.Head, err)
		return "suspend", out.Notices, err
	case 12:
		out, err := f.ReleaseLease(ctx, r.ID, max(c.epoch[k], 1))
		return "release", out.Notices, err
	case 13:
		out, err := f.PauseRun(ctx, r.ID, nil, "", now)
		if err == nil {
			out, err = f.ResumeRun(ctx, r.ID, nil, "", now)
		}
		return "pause and resume", out.Notices, err
	case 14:
		out, err := f.Unsubscribe(ctx, r.WaitID(effect), c.epoch[k], "", now)
		return "withdraw", out.Notices, err
	default:
		return c.end(k, f, r)
	}
}

// end ends the run, or lets it go on as a new one.
func (c *caller) end(k int, f *Fix, r *Flow) (string, store.Notices, error) {
	switch c.rnd.IntN(4) {
	case 0:
		out, err := f.CancelRun(ctx, r.ID, nil, "", true, now)
		return "cancel now", out.Notices, err
	case 1:
		o := store.Conclusion{RunID: r.ID, Epoch: c.epoch[k], ExpectedSeq: c.head[k], BatchID: ID("batch"), Outcome: rendezvous.StatusCompleted}
		out, err := f.Conclude(ctx, o, now)
		return "conclude", out.Notices, err
	}
	next := store.Continuation{RunID: r.ID, Epoch: c.epoch[k], ExpectedSeq: c.head[k], BatchID: ID("batch"), NextRun: ID("run")}
	out, err := f.ContinueAsNew(ctx, next, now)
	if err == nil {
		c.run[k], c.head[k] = out.RunID, out.Seq
	}
	return "continue", out.Notices, err
}

// learn keeps what an answer says of the head, or of whoever came before.
func (c *caller) learn(k int, head int64, err error) {
	var e *rendezvous.Error
	switch {
	case err == nil:
		c.head[k] = max(c.head[k], head)
	case errors.As(err, &e):
		if head, ok := e.Details["head"].(int64); ok {
			c.head[k] = head
		}
		if next, ok := e.Details["current_run"].(string); ok {
			c.run[k] = next
		}
	}
}

// calm lets every lease run out and every pass go once around.
func (s *storm) calm() {
	for i := range s.later {
		s.h.Offer(s.t, s.later[i])
	}
	s.h.Advance(leaseEnd)
	s.h.SweepLeases(s.t)
	s.h.SweepUnmet(s.t)
	s.h.SweepParked(s.t)
}

// check fails the test unless the workflow's rows are its history folded, and every event has exactly one place.
func (s *storm) check(r *Flow) {
	s.t.Helper()
	look := r.outlook()
	if !look.Row.Status.Terminal() { // rows are those of the current run
		look.Waits = (&Flow{F: r.F, WorkflowID: r.WorkflowID, ID: look.Row.RunID}).Rows()
	}
	checkFold(s.t, "a storm", look)
	answers := map[rendezvous.EventID]rendezvous.Record{}
	for _, rec := range look.Records {
		var d rendezvous.WaitAnsweredData
		if rec.Kind != rendezvous.WaitAnswered {
			continue
		}
		done(s.t, "decode an answer", rendezvous.DecodeData(rec, &d))
		id := rendezvous.EventID{Source: d.EventSource, ID: d.EventID}
		if before, twice := answers[id]; twice {
			s.t.Fatalf("event %s answers at %d and at %d", id.ID, before.Seq, rec.Seq)
		}
		answers[id] = rec
	}
	open := map[rendezvous.Key]bool{}
	for _, w := range look.Waits {
		eq(s.t, "state of a wait once all is calm", w.State, rendezvous.WaitOpen)
		open[w.Keys[0]] = true
	}
	for _, sent := range slices.Concat(s.sent[:]...) {
		if sent.f != r.F {
			continue
		}
		rec, answered := answers[sent.e.EventID]
		if answered {
			WantAnswerOf(s.t, rec, sent.e)
			sent.f.WantConsumed(sent.e, r.WorkflowID, rec.RunID, rec.Effect, rec.Seq)
		} else {
			sent.f.WantLive(sent.e)
			if open[sent.e.Keys[0]] {
				s.t.Fatalf("event %s and a wait of its key are left apart", sent.e.ID)
			}
		}
	}
	must(r.F.CancelRun(ctx, look.Row.RunID, nil, "", true, now))(s.t, "end the run")
}
