package difftest

import (
	"encoding/json"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// StartRun is the verb. An empty run is minted, and so is an empty workflow.
type StartRun struct {
	Tenant, Workflow, Run, Type, Queue string
	Input, ContentType, Parent         string
	CodeVersion, Operator              string
	At                                 time.Duration
}

func (r StartRun) ask(s *side) (any, error) {
	t, err := s.of(r.Tenant)
	if err != nil {
		return nil, err
	}
	s.minting(r.Workflow, r.Run)
	got, err := t.StartRun(ctx, store.Start{
		WorkflowID: s.id(r.Workflow), RunID: s.id(r.Run), Type: r.Type, Queue: r.Queue, Input: bytesOf(r.Input), ContentType: r.ContentType,
		Parent: r.Parent, CodeVersion: r.CodeVersion, Operator: operator(r.Operator),
	}, at(r.At))
	s.mint(r.Workflow, got.WorkflowID)
	s.mint(r.Run, got.RunID)
	return got, err
}

// Record is a record of an append. Run is another run than the append's, for a successor.
type Record struct {
	Kind, Effect         string
	Attempt              int
	Data                 string
	Payload, ContentType string
	Operator, Run        string
}

// Append is the verb.
type Append struct {
	Tenant, Run, Workflow string
	Epoch, Expected       int64
	Batch                 string
	Records               []Record
	At                    time.Duration
}

func (a Append) ask(s *side) (any, error) {
	t, err := s.of(a.Tenant)
	if err != nil {
		return nil, err
	}
	var records []rendezvous.Record
	for _, r := range a.Records {
		run := r.Run
		if run == "" {
			run = a.Run
		}
		records = append(records, rendezvous.Record{
			RunID: s.id(run), Kind: rendezvous.Kind(r.Kind), Effect: r.Effect, Attempt: r.Attempt, Data: json.RawMessage(bytesOf(r.Data)),
			Payload: bytesOf(r.Payload), ContentType: r.ContentType, Operator: operator(r.Operator),
		})
	}
	return t.Append(ctx, store.Append{
		RunID: s.id(a.Run), Epoch: a.Epoch, ExpectedSeq: a.Expected, BatchID: a.Batch, WorkflowID: a.Workflow, Records: records,
	}, at(a.At))
}

// Conclude is the verb.
type Conclude struct {
	Tenant, Run         string
	Epoch, Expected     int64
	Batch, Outcome      string
	Result, ContentType string
	Code, Reason        string
	Operator            string
	At                  time.Duration
}

func (c Conclude) ask(s *side) (any, error) {
	t, err := s.of(c.Tenant)
	if err != nil {
		return nil, err
	}
	return t.Conclude(ctx, store.Conclusion{
		RunID: s.id(c.Run), Epoch: c.Epoch, ExpectedSeq: c.Expected, BatchID: c.Batch, Outcome: rendezvous.Status(c.Outcome), Result: bytesOf(c.Result),
		ContentType: c.ContentType, Code: c.Code, Reason: c.Reason, Operator: operator(c.Operator),
	}, at(c.At))
}

// ContinueAsNew is the verb. An empty next run is minted.
type ContinueAsNew struct {
	Tenant, Run        string
	Epoch, Expected    int64
	Batch, Next        string
	Input, ContentType string
	Type, Queue        string
	Operator           string
	At                 time.Duration
}

func (c ContinueAsNew) ask(s *side) (any, error) {
	t, err := s.of(c.Tenant)
	if err != nil {
		return nil, err
	}
	s.minting(c.Next)
	got, err := t.ContinueAsNew(ctx, store.Continuation{
		RunID: s.id(c.Run), Epoch: c.Epoch, ExpectedSeq: c.Expected, BatchID: c.Batch, NextRun: s.id(c.Next), Input: bytesOf(c.Input),
		ContentType: c.ContentType, Type: c.Type, Queue: c.Queue, Operator: operator(c.Operator),
	}, at(c.At))
	if !got.Again {
		s.mint(c.Next, got.RunID)
	}
	return got, err
}

// CancelRun is the verb.
type CancelRun struct {
	Tenant, Run, Operator, Reason string
	Now                           bool
	At                            time.Duration
}

func (c CancelRun) ask(s *side) (any, error) {
	t, err := s.of(c.Tenant)
	if err != nil {
		return nil, err
	}
	return t.CancelRun(ctx, s.id(c.Run), operator(c.Operator), c.Reason, c.Now, at(c.At))
}

// PauseRun is the verb.
type PauseRun struct {
	Tenant, Run, Operator, Reason string
	At                            time.Duration
}

func (p PauseRun) ask(s *side) (any, error) {
	t, err := s.of(p.Tenant)
	if err != nil {
		return nil, err
	}
	return t.PauseRun(ctx, s.id(p.Run), operator(p.Operator), p.Reason, at(p.At))
}

// ResumeRun is the verb.
type ResumeRun struct {
	Tenant, Run, Operator, Reason string
	At                            time.Duration
}

func (r ResumeRun) ask(s *side) (any, error) {
	t, err := s.of(r.Tenant)
	if err != nil {
		return nil, err
	}
	return t.ResumeRun(ctx, s.id(r.Run), operator(r.Operator), r.Reason, at(r.At))
}
