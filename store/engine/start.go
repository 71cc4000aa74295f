package engine

import (
	"bytes"
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// start is a StartRun ready to be written: its RunStarted is checked and names the run.
type start struct {
	tenant   string
	workflow string // "" where the caller named none
	run      string // "" where the caller named none
	record   rendezvous.Record
	data     rendezvous.RunStartedData
	push     []store.PutPush
}

// StartRun implements [store.Runs].
func (t *tenant) StartRun(ctx context.Context, s store.Start, at time.Time) (store.Started, error) {
	n, err := newStart(t.name, s, t.perRun)
	if err != nil {
		return store.Started{}, err
	}
	workflow := n.workflow
	if workflow == "" {
		if workflow, err = mintID(); err != nil {
			return store.Started{}, err
		}
	}
	var answer store.Started
	notices, err := t.update(ctx, "start_run", at, func(ctx context.Context, u *unit) error {
		before, err := u.startedBefore(ctx, n)
		if err != nil {
			return err
		}
		if before != nil {
			answer = *before
			return nil
		}
		f := u.newFlow(t.name, workflow)
		run, err := u.begin(f, n.record, nil)
		if err != nil {
			return err
		}
		if err := u.beginPush(f, run, n.push); err != nil {
			return err
		}
		run.StartDigest = n.digest()
		answer = store.Started{WorkflowRef: store.WorkflowRef{WorkflowID: f.ID, RunID: run.ID}, Seq: run.FirstSeq, First: true, Status: f.Status}
		return nil
	})
	if err != nil {
		return store.Started{}, err
	}
	answer.Notices = notices
	return answer, nil
}

// newStart judges a start by its shape and fills in its defaults; the run's id is minted where none is named.
func newStart(tenant string, s store.Start, mostPush int) (start, error) {
	n := start{tenant: tenant, workflow: s.WorkflowID, run: s.RunID}
	if err := checkStart(s); err != nil {
		return n, err
	}
	n.data = rendezvous.RunStartedData{Type: s.Type, Queue: s.Queue, Parent: s.Parent, CodeVersion: s.CodeVersion}
	n.data.Deadline, n.data.DeadlineAfter = deadlineData(s.Deadline, s.DeadlineAfter)
	if n.data.Queue == "" {
		n.data.Queue = rendezvous.DefaultQueue
	}
	run := s.RunID
	var err error
	if run == "" {
		if run, err = mintID(); err != nil {
			return n, err
		}
	}
	if n.push, err = checkStartPush(s.Push, run, mostPush); err != nil {
		return n, err
	}
	record, err := rendezvous.Record{
		RunID: run, Kind: rendezvous.RunStarted, Data: rendezvous.EncodeData(n.data), Payload: s.Input, ContentType: s.ContentType, Operator: s.Operator,
	}.CheckAppended()
	n.record = record
	return n, err
}

// checkStart judges what a start names before it is encoded, where text that is not UTF-8 would be changed. An empty queue is the default one.
func checkStart(s store.Start) error {
	if err := rendezvous.CheckID("type", s.Type); err != nil {
		return err
	}
	for _, f := range [...]struct{ name, id string }{
		{"workflow_id", s.WorkflowID}, {"run_id", s.RunID}, {"parent", s.Parent}, {"code_version", s.CodeVersion},
	} {
		if f.id == "" {
			continue
		}
		if err := rendezvous.CheckID(f.name, f.id); err != nil {
			return err
		}
	}
	if len(s.Input) > rendezvous.MaxPayload {
		return rendezvous.OverLimit("input", rendezvous.MaxPayload, len(s.Input))
	}
	if _, err := rendezvous.CheckDeadline(s.Deadline, s.DeadlineAfter); err != nil {
		return err
	}
	if s.Queue == "" {
		return nil
	}
	return rendezvous.CheckQueue(s.Queue)
}

// startedBefore answers a repeated start as the first, with the status of now, also after the run ended (RN-13). Ids that are taken otherwise are a
// conflict that names their holder (RN-14); nil when they are free. Which ids count is what the caller named: minted ones are nobody's.
func (u *unit) startedBefore(ctx context.Context, s start) (*store.Started, error) {
	h, err := u.holders(ctx, s.tenant, s.workflow, s.run)
	if err != nil {
		return nil, err
	}
	switch {
	case h.run == nil && h.workflow == nil:
		return nil, nil
	case s.workflow != "" && h.workflow == nil, h.run != nil && h.run.PreviousRun != "", h.workflow != nil && h.run != nil && h.run.WorkflowID != h.workflow.ID:
		return nil, runTaken(h.run)
	case h.root == nil:
		return nil, backend.ErrStale // the rows were read while they appeared
	case s.run != "" && h.root.ID != s.run:
		return nil, workflowTaken(h.root)
	case !bytes.Equal(h.root.StartDigest, s.digest()):
		return nil, workflowTaken(h.root)
	}
	answer := &store.Started{WorkflowRef: store.WorkflowRef{WorkflowID: h.root.WorkflowID, RunID: h.root.ID}, Seq: h.root.FirstSeq, Status: h.root.Status}
	if w := h.workflow; w != nil && w.RunID == h.root.ID && h.root.SealedAt.IsZero() {
		answer.Status = w.Status
	}
	return answer, nil
}

// holders are who has the ids of a start already.
type holders struct {
	workflow *backend.Workflow
	run      *backend.Run // of the run id named
	root     *backend.Run // the workflow's first run
}

// holders looks ids up without a lock: a start that lands meanwhile makes the insertion stale, and the verb is made anew (RN-15).
func (u *unit) holders(ctx context.Context, tenant, workflow, run string) (holders, error) {
	var h holders
	if err := u.checkRemnants(ctx, tenant, workflow, run); err != nil {
		return h, err
	}
	if run != "" {
		key := backend.RunKey{Tenant: tenant, ID: run}
		runs, err := u.tx.Runs(ctx, []backend.RunKey{key})
		if err != nil {
			return h, err
		}
		if h.run = runs[key]; h.run != nil && workflow == "" {
			workflow = h.run.WorkflowID
		}
	}
	if workflow == "" {
		return h, nil
	}
	key := backend.WorkflowKey{Tenant: tenant, ID: workflow}
	rows, err := u.tx.Workflows(ctx, []backend.WorkflowKey{key})
	if err != nil || rows[key] == nil {
		return h, err
	}
	h.workflow = rows[key]
	if h.workflow.Corrupt != nil {
		return h, h.workflow.Corrupt
	}
	chain, err := u.tx.RunsOf(ctx, key, 0, 1)
	if err == nil && len(chain) > 0 {
		h.root = chain[0]
	}
	return h, err
}

func runTaken(run *backend.Run) error {
	return conflict("run_id", run.WorkflowID, "run id %q is taken by a run of workflow %q; choose another", run.ID, run.WorkflowID).
		With("run", run.ID).With("workflow", run.WorkflowID)
}

func workflowTaken(root *backend.Run) error {
	return conflict("workflow_id", root.ID, "workflow %q was started otherwise, as run %q; choose another id, or send the same start again", root.WorkflowID, root.ID).
		With("run", root.ID).With("workflow", root.WorkflowID)
}

// newFlow begins a workflow that no row is there for yet: nobody can hold it, so it needs no lock; who else inserts it meanwhile makes this one stale.
func (u *unit) newFlow(tenant, workflow string) *flow {
	w := &backend.Workflow{
		Tenant: tenant, ID: workflow, Shard: rendezvous.Shard(tenant, workflow, u.engine.backend.Shards()), Status: rendezvous.StatusRunning,
	}
	u.first(w)
	u.ch.NewWorkflows = append(u.ch.NewWorkflows, w)
	f := &flow{Workflow: w, free: true}
	u.flows[w.Key()] = f
	return f
}

// begin records a RunStarted and makes its run the workflow's current one; previous is the run it goes on from, nil for the first. The caller has sealed
// that one. A free run is woken; otherwise the lease covers the new run (RN-17, RN-46).
func (u *unit) begin(f *flow, started rendezvous.Record, previous *backend.Run) (*backend.Run, error) {
	var d rendezvous.RunStartedData
	if err := rendezvous.DecodeData(started, &d); err != nil {
		return nil, err
	}
	digest := startDigest(d, started)
	deadline, err := u.resolveDeadline(f, &started, d)
	if err != nil {
		return nil, err
	}
	row := u.record(f, started)
	run := &backend.Run{
		Tenant: f.Tenant, ID: row.RunID, WorkflowID: f.ID, Status: f.Status, FirstSeq: row.Seq, StartedAt: row.RecordedAt, StartDigest: digest,
	}
	f.RunID, f.Type, f.Queue, f.StartedAt = run.ID, d.Type, d.Queue, row.RecordedAt
	f.OpenEffects, f.OpenWaits, f.LiveTimers, f.Reopened = 0, 0, 0, 0
	f.FailureCode, f.FailureReason, f.FailedEffect = "", "", ""
	if previous != nil {
		run.PreviousRun, previous.NextRun = previous.ID, run.ID
	} else {
		f.CreatedAt, f.Parent = row.RecordedAt, d.Parent
	}
	u.first(run)
	u.ch.NewRuns = append(u.ch.NewRuns, run)
	u.armRun(f, deadline, row.Seq)
	u.watch(f, row.Seq, nil)
	if !f.free {
		u.unwake(f)
		return run, nil
	}
	u.wake(f, rendezvous.CauseStarted, row.Seq)
	f.woken.Anew = true // whatever the run before it was woken for is over
	return run, nil
}

// digest sums what the start asks for.
func (s start) digest() []byte {
	sum := startDigest(s.data, s.record)
	if len(s.push) == 0 {
		return sum
	}
	all := newDigest("start with push")
	all.bytes(sum)
	for _, p := range s.push {
		// The id is the run's where none was given: a minted one is nobody's, so it is not in the sum.
		id := p.ID
		if id == rendezvous.DefaultRegistrationID(p.RunID) {
			id = ""
		}
		all.text(id)
		all.number(p.NextSeq)
		all.bytes(backend.EncodePushSettings(backend.PushSettings{Registration: p.Registration}))
	}
	return all.sum()
}

// startDigest sums what a start asks for, but for its ids: two starts of one workflow are the same when these are.
func startDigest(d rendezvous.RunStartedData, r rendezvous.Record) []byte {
	sum := newDigest("start")
	sum.text(d.Type, d.Queue, d.Parent, d.CodeVersion, r.ContentType, d.Deadline)
	if d.DeadlineAfter != nil {
		sum.number(*d.DeadlineAfter)
	}
	sum.bytes(r.Payload)
	return sum.sum()
}

// deadlineData is a deadline as a record carries it on the way in.
func deadlineData(at time.Time, after *time.Duration) (string, *int64) {
	var text string
	if !at.IsZero() {
		text = rendezvous.FormatInstant(rendezvous.DueInstant(at))
	}
	if after == nil {
		return text, nil
	}
	micros := rendezvous.Micros(*after)
	return text, &micros
}

// resolveDeadline makes the instant of a run's deadline, and its record say it; zero for none. It lies in the future (TM-41).
func (u *unit) resolveDeadline(f *flow, started *rendezvous.Record, d rendezvous.RunStartedData) (time.Time, error) {
	if d.Deadline == "" && d.DeadlineAfter == nil {
		return time.Time{}, nil
	}
	at, err := rendezvous.Resolve("deadline", d.Deadline, "deadline_after", d.DeadlineAfter, u.stamp(f))
	if err != nil {
		return at, err
	}
	if !at.After(u.now) {
		return at, rendezvous.InvalidField("deadline", "%s is not in the future; the store's now is %s", rendezvous.FormatInstant(at), rendezvous.FormatInstant(u.now)).
			With("value", rendezvous.FormatInstant(at))
	}
	started.Data, err = withInstant(started.Data, "deadline", "deadline_after", at)
	return at, err
}

// armRun arms the deadline of f's current run; zero is none.
func (u *unit) armRun(f *flow, deadline time.Time, seq int64) {
	if !deadline.IsZero() {
		u.arm(f, backend.Timer{TimerID: rendezvous.RunTimerID(f.RunID), Class: rendezvous.TimerRun, FireAt: deadline, ArmedSeq: seq}, false)
	}
}
