package storetest

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// runsStarting is runs.md section 8, "Starting". Attributes and push registrations are not built; deadlines are in deadlines_runs.go.
var runsStarting = []Case{
	{Name: "RN-13 a start sent again gets the first answer and the present status", Run: startAgain},
	{Name: "RN-13 ids that the caller left out are minted, and a named one finds its start again", Run: startWithMintedIDs},
	{Name: "RN-14 the same ids with another start are a conflict that names the holder", Run: startOtherwise},
	{Name: "RN-15 of different starts of one workflow at once exactly one wins", Run: startsAtOnce},
	{Name: "RN-15 of starts of two workflows with one run id at once exactly one wins", Run: startsOfOneRunID},
	{Name: "RN-15 one start sent twice at once is one run", Run: startTwiceAtOnce},
	{Name: "RN-16 a refused start leaves nothing behind", Run: refusedStart},
	{Name: "RN-16 a start that fails at any step is there whole or not at all", Run: brokenStart},
	{Name: "RN-17 woken runs are handed out longest due first, fairly by tenant, in bounded pages", Run: wokenPages},
	{Name: "RN-17 a started run is woken, and its notice is repeated for ever at growing intervals", Run: startedIsWoken},
}

func startOf() store.Start {
	return store.Start{
		WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order", Queue: "slow", Input: []byte("in"), ContentType: "text/plain", Parent: "parent",
		CodeVersion: "v1", Operator: kim,
	}
}

func startAgain(t *testing.T, h *Harness) {
	for _, f := range [...]*Fix{h.FixOf(t, "acme"), h.FixOf(t, "globex")} {
		s := startOf()
		first := must(f.StartRun(ctx, s, now))(t, "start")
		ref := store.WorkflowRef{WorkflowID: s.WorkflowID, RunID: s.RunID}
		r := &Flow{F: f, WorkflowID: s.WorkflowID, ID: s.RunID}
		r.wantNotice(first.Notices.Resume, rendezvous.CauseStarted, 1)
		first.Notices = store.Notices{}
		eq(t, "the first answer", first, store.Started{WorkflowRef: ref, Seq: 1, First: true, Status: rendezvous.StatusRunning})
		again := func(what string, want rendezvous.Status) {
			t.Helper()
			before := r.outlook()
			s.Operator = lee // who asks is not what is asked
			got := must(f.StartRun(ctx, s, now))(t, "start again "+what)
			eq(t, "the answer "+what, got, store.Started{WorkflowRef: ref, Seq: 1, Status: want})
			eq(t, "the workflow "+what, r.outlook(), before)
		}
		again("at once", rendezvous.StatusRunning)
		d := r.Drive()
		d.Append(r.Noted("n"))
		again("while leased", rendezvous.StatusRunning)
		d.Release()
		r.Pause()
		again("while paused", rendezvous.StatusPaused)
		r.Resume()
		next := r.Continue()
		again("after the run went on as a new one", rendezvous.StatusContinued)
		next.Conclude(rendezvous.StatusFailed)
		again("after the workflow ended", rendezvous.StatusContinued)
		eq(t, "roots", len(must(f.ReadRunChain(ctx, r.WorkflowID, 0, 0))(t, "read the chain")), 2)
		eq(t, "who started it", r.History()[0].Operator, kim)
	}
	f := h.FixOf(t, "acme")
	for _, status := range []rendezvous.Status{rendezvous.StatusCompleted, rendezvous.StatusFailed, rendezvous.StatusCancelled} {
		s := startOf()
		r := f.StartAs(s)
		r.Conclude(status)
		got := must(f.StartRun(ctx, s, now))(t, "start again after the end")
		eq(t, "first, seq and status", fmt.Sprint(got.First, got.Seq, got.Status), fmt.Sprint(false, 1, status))
		r.WantKinds(r.History()[1].Kind)
	}
}

func startWithMintedIDs(t *testing.T, h *Harness) {
	f := h.Fix(t)
	minted := must(f.StartRun(ctx, store.Start{Type: "order"}, now))(t, "start without ids")
	other := must(f.StartRun(ctx, store.Start{Type: "order"}, now))(t, "start without ids again")
	eq(t, "both are first", []bool{minted.First, other.First}, []bool{true, true})
	for _, id := range []string{minted.WorkflowID, minted.RunID, other.WorkflowID, other.RunID} {
		u, err := uuid.Parse(id)
		done(t, "parse the minted id "+id, err)
		eq(t, "version of "+id, u.Version(), uuid.Version(7))
	}
	if minted.WorkflowID == other.WorkflowID || minted.RunID == other.RunID {
		t.Fatalf("minted twice: %v and %v", minted.WorkflowRef, other.WorkflowRef)
	}
	row := must(f.DescribeWorkflow(ctx, store.WorkflowRef{RunID: minted.RunID}))(t, "describe")
	eq(t, "workflow and queue", fmt.Sprint(row.WorkflowID, row.Queue), fmt.Sprint(minted.WorkflowID, rendezvous.DefaultQueue))

	byWorkflow := store.Start{WorkflowID: ID("workflow"), Type: "order"}
	byRun := store.Start{RunID: ID("run"), Type: "order"}
	for what, s := range map[string]store.Start{"the workflow's id": byWorkflow, "the run's id": byRun} {
		first := must(f.StartRun(ctx, s, now))(t, "start with only "+what)
		again := must(f.StartRun(ctx, s, now))(t, "start again with only "+what)
		eq(t, "the repeat with only "+what, again, store.Started{WorkflowRef: first.WorkflowRef, Seq: 1, Status: rendezvous.StatusRunning})
	}
}

func startOtherwise(t *testing.T, h *Harness) {
	f, g := h.FixOf(t, "acme"), h.FixOf(t, "globex")
	s := startOf()
	r := f.StartAs(s)
	change := func(fn func(s *store.Start)) store.Start { c := s; fn(&c); return c }
	for what, other := range map[string]store.Start{
		"input": change(func(s *store.Start) { s.Input = []byte("told in confidence") }), "no input": change(func(s *store.Start) { s.Input = nil }),
		"empty input": change(func(s *store.Start) { s.Input = []byte{} }), "type": change(func(s *store.Start) { s.Type = "refund" }),
		"queue": change(func(s *store.Start) { s.Queue = "" }), "content type": change(func(s *store.Start) { s.ContentType = "" }),
		"parent": change(func(s *store.Start) { s.Parent = "" }), "code version": change(func(s *store.Start) { s.CodeVersion = "v2" }),
		"run id":                     change(func(s *store.Start) { s.RunID = ID("run") }),
		"workflow id, of a used run": change(func(s *store.Start) { s.WorkflowID = ID("workflow") }),
	} {
		var err error
		r.unmoved("a start with another "+what, rendezvous.CodeConflict, func() error { _, err = f.StartRun(ctx, other, now); return err },
			"run", s.RunID, "workflow", s.WorkflowID)
		if strings.Contains(err.Error(), "confidence") {
			t.Fatalf("the error tells the input: %v", err)
		}
		if other.WorkflowID != s.WorkflowID {
			_, err := f.DescribeWorkflow(ctx, store.WorkflowRef{WorkflowID: other.WorkflowID})
			code(t, "describe the workflow that was not started", err, rendezvous.CodeNotFound)
		}
	}
	next := r.Continue()
	_, err := f.StartRun(ctx, change(func(s *store.Start) { s.WorkflowID, s.RunID = ID("workflow"), next.ID }), now)
	code(t, "a start with the id of a successor", err, rendezvous.CodeConflict, "run", next.ID, "workflow", s.WorkflowID)
	next.Conclude(rendezvous.StatusCompleted)
	_, err = f.StartRun(ctx, change(func(s *store.Start) { s.RunID = ID("run") }), now)
	code(t, "an ended workflow's id", err, rendezvous.CodeConflict, "run", s.RunID) // used once while it is kept
	theirs := must(g.StartRun(ctx, s, now))(t, "the same ids in another tenant")
	eq(t, "first in the other tenant", theirs.First, true)
}

func startsAtOnce(t *testing.T, h *Harness) {
	const starters = 4
	for round := range h.Rounds(t) {
		f := h.FixOf(t, [...]string{"acme", "globex"}[round%2])
		s := startOf()
		var out [starters]store.Started
		var errs [starters]error
		var fns []func()
		for i := range starters {
			fns = append(fns, func() {
				own := s
				own.Input = fmt.Append(nil, i)
				if round%2 == 0 {
					own.RunID = fmt.Sprint(s.RunID, "/", i)
				}
				out[i], errs[i] = f.StartRun(ctx, own, now)
			})
		}
		Race(t, fns...)
		winner := -1
		for i, err := range errs {
			if err == nil {
				eq(t, "winners before", winner, -1)
				winner = i
			}
		}
		if winner < 0 {
			t.Fatalf("nobody won: %v", errs)
		}
		eq(t, "first", out[winner].First, true)
		for i, err := range errs {
			if i != winner {
				code(t, "the loser", err, rendezvous.CodeConflict, "run", out[winner].RunID, "workflow", s.WorkflowID)
			}
		}
		r := &Flow{F: f, WorkflowID: s.WorkflowID, ID: out[winner].RunID}
		r.WantKinds()
		SamePayload(t, r.History()[0].Payload, fmt.Append(nil, winner))
		eq(t, "runs", len(must(f.ReadRunChain(ctx, s.WorkflowID, 0, 0))(t, "read the chain")), 1)
	}
}

func startsOfOneRunID(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for range h.Rounds(t) {
		a, b := startOf(), startOf()
		b.RunID = a.RunID
		var errs [2]error
		Race(t, func() { _, errs[0] = f.StartRun(ctx, a, now) }, func() { _, errs[1] = f.StartRun(ctx, b, now) })
		holder, loser := a.WorkflowID, b.WorkflowID
		if errs[0] != nil {
			holder, loser = loser, holder
			errs[0], errs[1] = errs[1], errs[0]
		}
		done(t, "the winner", errs[0])
		code(t, "the loser", errs[1], rendezvous.CodeConflict, "run", a.RunID, "workflow", holder)
		_, err := f.DescribeWorkflow(ctx, store.WorkflowRef{WorkflowID: loser})
		code(t, "describe the loser's workflow", err, rendezvous.CodeNotFound)
		eq(t, "holder", must(f.DescribeWorkflow(ctx, store.WorkflowRef{RunID: a.RunID}))(t, "describe the run").WorkflowID, holder)
	}
}

func startTwiceAtOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for range h.Rounds(t) {
		s := startOf()
		var out [3]store.Started
		var errs [3]error
		send := func(i int) func() { return func() { out[i], errs[i] = f.StartRun(ctx, s, now) } }
		Race(t, send(0), send(1), send(2))
		firsts := 0
		for i := range out {
			done(t, "start", errs[i])
			eq(t, "run and seq", fmt.Sprint(out[i].RunID, out[i].Seq), fmt.Sprint(s.RunID, 1))
			if out[i].First {
				firsts++
			}
		}
		eq(t, "firsts", firsts, 1)
		(&Flow{F: f, WorkflowID: s.WorkflowID, ID: s.RunID}).WantKinds()
	}
}

// wantNotStarted fails the test if anything is known of the start.
func (f *Fix) wantNotStarted(what string, s store.Start) {
	f.T.Helper()
	for _, ref := range []store.WorkflowRef{{WorkflowID: s.WorkflowID}, {RunID: s.RunID}} {
		_, err := f.DescribeWorkflow(ctx, ref)
		code(f.T, "describe "+what, err, rendezvous.CodeNotFound)
	}
	r := &Flow{F: f, WorkflowID: s.WorkflowID, ID: s.RunID}
	eq(f.T, "records of "+what, r.Head(), int64(0))
	_, err := r.Acquire("pod", ID("acquire"))
	code(f.T, "lease "+what, err, rendezvous.CodeNotFound)
	n, _, err := f.CountWorkflows(ctx, store.WorkflowFilter{Prefix: s.WorkflowID}, 0)
	done(f.T, "count workflows", err)
	eq(f.T, "workflows of "+what, n, 0)
}

func refusedStart(t *testing.T, h *Harness) {
	f := h.Fix(t)
	long := strings.Repeat("x", rendezvous.MaxID+1)
	for what, change := range map[string]func(s *store.Start){
		"no type":                func(s *store.Start) { s.Type = "" },
		"a type too long":        func(s *store.Start) { s.Type = long },
		"no queue's name":        func(s *store.Start) { s.Queue = "a.b" },
		"a parent too long":      func(s *store.Start) { s.Parent = long },
		"a version with control": func(s *store.Start) { s.CodeVersion = "v\x00" },
		"input over the limit":   func(s *store.Start) { s.Input = bytes.Repeat([]byte("x"), rendezvous.MaxPayload+1) },
		"a content type, long":   func(s *store.Start) { s.ContentType = long },
		"half an operator":       func(s *store.Start) { s.Operator = &rendezvous.Operator{Actor: "kim"} },
	} {
		s := startOf()
		change(&s)
		_, err := f.StartRun(ctx, s, now)
		if c := rendezvous.CodeOf(err); c != rendezvous.CodeInvalid && c != rendezvous.CodeTooLarge {
			t.Fatalf("a start with %s: %v, want it refused", what, err)
		}
		f.wantNotStarted("a start with "+what, s)
	}
	// What is not built is refused by name, by the one door it could come through: the record itself (history.md section 12).
	s := startOf()
	rec := rendezvous.Record{RunID: s.RunID, Kind: rendezvous.RunStarted, Data: []byte(`{"type":"order","queue":"default","attributes":{}}`)}
	_, err := f.Append(ctx, store.Append{WorkflowID: s.WorkflowID, RunID: s.RunID, BatchID: ID("batch"), Records: recs(rec)}, now)
	code(t, "a start with attributes", err, rendezvous.CodeInvalid, "field", "data.attributes")
	f.wantNotStarted("a start with attributes", s)
	// A first batch is refused whole for what stands behind its start.
	s = startOf()
	begins := &Flow{F: f, WorkflowID: s.WorkflowID, ID: s.RunID}
	root := begins.record(rendezvous.RunStarted, "", rendezvous.RunStartedData{Type: "order", Queue: "default"})
	batch := recs(root, begins.Waited(begins.Wait("w", "paid", K("order", "1"))), begins.Done("never"))
	_, err = f.Append(ctx, store.Append{WorkflowID: s.WorkflowID, RunID: s.RunID, BatchID: ID("batch"), Records: batch}, now)
	code(t, "a first batch that closes nothing", err, rendezvous.CodeConflict)
	f.wantNotStarted("a first batch that closes nothing", s)
	eq(t, "rows of waits", len(begins.Rows()), 0)
	eq(t, "woken runs", h.marks(f), 0)
	h.Advance(time.Hour)
	h.wantNoNotice(f, "after refused starts")
}

func brokenStart(t *testing.T, h *Harness) {
	f := h.Fix(t)
	h.Break(t, "start_run", func() (func() error, func(error, bool)) {
		s := startOf()
		woken := h.marks(f)
		attempt := func() error { _, err := f.StartRun(ctx, s, now); return err }
		return attempt, func(err error, committed bool) {
			if !committed {
				f.wantNotStarted("a start that failed", s)
				eq(t, "woken runs", h.marks(f), woken)
			} else {
				code(t, "a start whose answer was lost", err, rendezvous.CodeCommitUnknown)
			}
			got := must(f.StartRun(ctx, s, now))(t, "the same start again")
			eq(t, "first", got.First, !committed)
			eq(t, "woken runs", h.marks(f), woken+1)
			(&Flow{F: f, WorkflowID: s.WorkflowID, ID: s.RunID}).WantKinds()
		}
	})
}

func startedIsWoken(t *testing.T, h *Harness) {
	f := h.Fix(t)
	s := startOf()
	started := must(f.StartRun(ctx, s, now))(t, "start")
	r := &Flow{F: f, WorkflowID: s.WorkflowID, ID: s.RunID}
	r.wantNotice(started.Notices.Resume, rendezvous.CauseStarted, 1)
	eq(t, "woken runs", h.marks(f), 1)
	h.Advance(10*time.Second - time.Microsecond)
	h.wantNoNotice(f, "before 10 s are over")
	h.Advance(time.Microsecond)
	interval := 10 * time.Second
	for n := 1; n <= 30; n++ {
		notices := h.SweepWoken(t)
		r.wantNotice(notices, rendezvous.CauseStarted, 1)
		eq(t, "notices sent for this news", r.resumeOf(notices).Notices, n)
		h.wantNoNotice(f, "right behind one")
		interval = min(2*interval, 10*time.Minute)
		h.Advance(interval / 2)
		h.wantNoNotice(f, fmt.Sprintf("half of %s after notice %d", interval, n))
		h.Advance(interval/2 + interval/4) // with jitter
	}
	r.Drive() // an executor at last
	eq(t, "woken runs", h.marks(f), 0)
	h.Advance(time.Hour)
	h.wantNoNotice(f, "of a run that a driver took and left")
}

func wokenPages(t *testing.T, h *Harness) {
	many, few := h.FixOf(t, "acme"), h.FixOf(t, "globex")
	var want []string
	for range 8 {
		want = append(want, many.Start().ID)
		h.Advance(time.Millisecond)
	}
	lone := few.Start().ID
	h.Advance(10 * time.Second)
	take := func(limit int) ([]string, bool) {
		t.Helper()
		page := must(h.Store.TakeWoken(ctx, limit))(t, "take woken runs")
		if len(page.Rows) > limit {
			t.Fatalf("%d rows of at most %d", len(page.Rows), limit)
		}
		var ids []string
		for _, n := range page.Rows {
			ids = append(ids, n.RunID)
		}
		return ids, page.Saturated
	}
	first, more := take(4)
	eq(t, "the first page: three of the one that waits longest, one of the other's", first, append(want[:3:3], lone))
	eq(t, "saturated", more, true)
	second, more := take(4)
	eq(t, "the second page", second, want[3:7])
	eq(t, "saturated", more, true)
	third, more := take(4)
	eq(t, "the third page", third, want[7:])
	eq(t, "saturated", more, false)
	rest, _ := take(4)
	eq(t, "right behind", rest, nil)
	_, err := h.Store.TakeWoken(ctx, -1)
	code(t, "a negative limit", err, rendezvous.CodeInvalid)
	_, err = h.Store.TakeWoken(ctx, rendezvous.MaxList+1)
	code(t, "a limit over the most", err, rendezvous.CodeTooLarge, "limit", rendezvous.MaxList)
}
