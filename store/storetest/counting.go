package storetest

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// Counts is what a store asked of its backend.
type Counts struct {
	Updates   int64 // write transactions
	Views     int64 // read transactions
	Locks     int64 // of sets of workflow rows
	Histories int64 // reads of histories
	Records   int64 // records those answered
	Writes    int64 // sets of changes that were not empty
}

// Counting forwards to a backend and counts.
type Counting struct {
	backend.Backend
	updates, views, locks, histories, records, writes atomic.Int64
}

// Count puts b behind counters.
func Count(b backend.Backend) *Counting { return &Counting{Backend: b} }

// Counts is what was counted since the last Reset.
func (c *Counting) Counts() Counts {
	return Counts{
		Updates: c.updates.Load(), Views: c.views.Load(), Locks: c.locks.Load(), Histories: c.histories.Load(), Records: c.records.Load(),
		Writes: c.writes.Load(),
	}
}

// Reset begins to count anew.
func (c *Counting) Reset() {
	for _, n := range [...]*atomic.Int64{&c.updates, &c.views, &c.locks, &c.histories, &c.records, &c.writes} {
		n.Store(0)
	}
}

// Update implements [backend.Backend].
func (c *Counting) Update(ctx context.Context, verb string, fn func(ctx context.Context, tx backend.Tx) error) error {
	c.updates.Add(1)
	return c.Backend.Update(ctx, verb, func(ctx context.Context, tx backend.Tx) error { return fn(ctx, countedTx{tx, c}) })
}

// View implements [backend.Backend].
func (c *Counting) View(ctx context.Context, verb string, fn func(ctx context.Context, r backend.Reader) error) error {
	c.views.Add(1)
	return c.Backend.View(ctx, verb, func(ctx context.Context, r backend.Reader) error { return fn(ctx, countedReader{r, c}) })
}

func (c *Counting) history(records []rendezvous.Record, err error) ([]rendezvous.Record, error) {
	c.histories.Add(1)
	c.records.Add(int64(len(records)))
	return records, err
}

type countedReader struct {
	backend.Reader
	counts *Counting
}

// History implements [backend.Reader].
func (r countedReader) History(ctx context.Context, key backend.WorkflowKey, from, to int64, limit, maxBytes int) ([]rendezvous.Record, error) {
	return r.counts.history(r.Reader.History(ctx, key, from, to, limit, maxBytes))
}

type countedTx struct {
	backend.Tx
	counts *Counting
}

// History implements [backend.Reader].
func (t countedTx) History(ctx context.Context, key backend.WorkflowKey, from, to int64, limit, maxBytes int) ([]rendezvous.Record, error) {
	return t.counts.history(t.Tx.History(ctx, key, from, to, limit, maxBytes))
}

// LockWorkflows implements [backend.Tx].
func (t countedTx) LockWorkflows(ctx context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Workflow, error) {
	t.counts.locks.Add(1)
	return t.Tx.LockWorkflows(ctx, keys)
}

// Apply implements [backend.Tx].
func (t countedTx) Apply(ctx context.Context, c *backend.Changes) error {
	if !c.Empty() {
		t.counts.writes.Add(1)
	}
	return t.Tx.Apply(ctx, c)
}

// mostSteps is more than any verb takes.
const mostSteps = 64

// Steps is how many calls fn's transactions and reads of that verb make at most ("" is any verb): what a database would count as statements.
func (h *Harness) Steps(t *testing.T, verb string, fn func()) int {
	t.Helper()
	pass := func(context.Context) error { return nil }
	armed := make([]*fault.Armed, mostSteps)
	for i := range armed {
		armed[i] = h.Faults.Arm(fault.Failure{Verb: verb, Point: fault.AtCall, Call: i + 1, Times: -1, Do: pass})
	}
	fn()
	steps := 0
	for i, a := range armed {
		if a.Struck() > 0 {
			steps = i + 1
		}
		a.Disarm()
	}
	if steps == 0 || steps == mostSteps {
		t.Fatalf("%s took %d steps: not a number to judge by", verb, steps)
	}
	return steps
}

// Break lets a verb fail at every step in turn, then before and after its commit. fresh makes what one attempt works on and answers the attempt and
// what must hold afterwards: judge is told what the attempt answered, and whether it was committed nevertheless.
func (h *Harness) Break(t *testing.T, verb string, fresh func() (attempt func() error, judge func(err error, committed bool))) {
	t.Helper()
	failures := []fault.Failure{{Verb: verb, Point: fault.BeforeCommit}, {Verb: verb, Point: fault.AfterCommit}}
	for call := 1; call < mostSteps; call++ {
		failures = append(failures, fault.Failure{Verb: verb, Point: fault.AtCall, Call: call})
	}
	broken := 0
	for _, f := range failures {
		attempt, judge := fresh()
		armed := h.Faults.Arm(f)
		err := attempt()
		if armed.Struck() == 0 {
			armed.Disarm()
			if f.Point != fault.AtCall || broken < 3 {
				t.Fatalf("%s was never broken at %s: it is called otherwise", verb, f.Point)
			}
			return
		}
		broken++
		if err == nil && f.Point == fault.AtCall {
			continue // a step whose failure the verb may survive, such as a second look
		}
		judge(err, f.Point == fault.AfterCommit)
	}
	t.Fatalf("%s takes %d steps or more", verb, mostSteps)
}
