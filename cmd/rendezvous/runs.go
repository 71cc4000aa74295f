package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/cloudevents"
	"github.com/rendezvous-events/rendezvous/wire"
)

type runCmd struct {
	Start    runStartCmd    `cmd:"" help:"Start a run of a workflow."`
	Show     runShowCmd     `cmd:"" help:"Show a workflow and its current run."`
	History  runHistoryCmd  `cmd:"" help:"Show a workflow's records, and with --follow those to come."`
	Chain    runChainCmd    `cmd:"" help:"Show a workflow's runs, the first first."`
	List     runListCmd     `cmd:"" help:"List workflows, newest start first."`
	Conclude runConcludeCmd `cmd:"" help:"End a run: completed, failed, cancelled or timed_out."`
	Cancel   runCancelCmd   `cmd:"" help:"Ask a run to cancel, or cancel it now."`
	Reopen   runReopenCmd   `cmd:"" help:"Let a run go on that failed or was cancelled."`
}

type runStartCmd struct {
	remote
	Type       string `arg:"" help:"The run's type, such as order."`
	WorkflowID string `help:"The workflow's id; absent: a new one."`
	RunID      string `help:"The run's id; absent: a new one."`
	Queue      string `help:"The queue whose executors drive it."`
	Input      string `help:"The input: JSON, @file, or - for standard input."`
	untilWhen
}

func (c *runStartCmd) Run(ctx context.Context) error {
	input, err := jsonPayload(c.Input, "input")
	if err != nil {
		return err
	}
	rdv, err := c.client()
	if err != nil {
		return err
	}
	req := wire.StartRun{Type: c.Type, WorkflowID: c.WorkflowID, RunID: c.RunID, Queue: c.Queue, Input: input, Operator: me()}
	req.Deadline, req.DeadlineAfterMS = c.due()
	r, err := rdv.StartRun(ctx, req)
	if err != nil {
		return err
	}
	return show[wire.Started](&c.remote, r, nil, func() {
		word := "started"
		if !r.First {
			word = "was started before"
		}
		fmt.Printf("%s  workflow %s  run %s  (%s)\n", word, r.WorkflowID, r.RunID, r.Status)
	})
}

func jsonPayload(flag, field string) (*wire.Payload, error) {
	b, err := dataOf(flag)
	if err != nil || b == nil {
		return nil, err
	}
	p := wire.PayloadOf(b, "application/json")
	if p.Data == nil {
		return nil, rendezvous.InvalidField(field, "is not JSON")
	}
	return p, nil
}

type runShowCmd struct {
	remote
	watched
	ID    string `arg:"" help:"A workflow's id, or a run's with --run."`
	RunID bool   `name:"run" help:"The id is a run's."`
}

func (c *runShowCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	ref := wire.WorkflowRef{WorkflowID: c.ID}
	if c.RunID {
		ref = wire.WorkflowRef{RunID: c.ID}
	}
	return c.watching(ctx, &c.remote, func(ctx context.Context) error {
		w, err := rdv.GetRun(ctx, ref)
		switch {
		case errors.Is(err, rendezvous.ErrNotFound) && !c.RunID:
			return noWorkflow(ctx, rdv, c.ID)
		case err != nil:
			return err
		}
		return show[wire.Workflow](&c.remote, w, nil, func() { describeRun(w) })
	})
}

func describeRun(w wire.Workflow) {
	t := table{heads: []string{"WORKFLOW", w.WorkflowID}}
	t.add("run", w.RunID)
	t.add("type", w.Type)
	t.add("queue", w.Queue)
	t.add("status", w.Status)
	t.add("records", w.HeadSeq)
	t.add("open waits", w.OpenWaits)
	t.add("live timers", w.LiveTimers)
	t.add("open effects", w.OpenEffects)
	t.add("started", clockTime(w.StartedAt.Time))
	t.add("updated", clockTime(w.UpdatedAt.Time))
	if !w.ClosedAt.IsZero() {
		t.add("closed", clockTime(w.ClosedAt.Time))
	}
	if w.LeaseOwner != "" {
		t.add("driven by", fmt.Sprintf("%s, epoch %d, %d ms left", w.LeaseOwner, w.LeaseEpoch, w.LeaseRemainingMS))
	}
	if w.FailureReason != "" || w.FailureCode != "" {
		t.add("failure", strings.TrimSpace(w.FailureCode+" "+w.FailureReason))
	}
	for _, r := range w.Requests {
		t.add("asked", fmt.Sprintf("%s since %s: %s", r.Kind, clockTime(r.At.Time), r.Reason))
	}
	t.print()
}

type runHistoryCmd struct {
	remote
	WorkflowID string `arg:"" help:"The workflow's id."`
	From       int64  `help:"The first record to show." default:"1"`
	Follow     bool   `short:"f" help:"Then show records as they come, until the workflow has ended."`
}

func (c *runHistoryCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	all := wire.History{Records: []wire.Record{}}
	for from := c.From; ; {
		page, err := rdv.HistoryPage(ctx, wire.ReadHistory{WorkflowID: c.WorkflowID, FromSeq: from})
		if err != nil {
			return err
		}
		all.Records, all.HeadSeq = append(all.Records, page.Records...), page.HeadSeq
		if !page.More || len(page.Records) == 0 {
			break
		}
		from = page.Records[len(page.Records)-1].Seq + 1
	}
	if all.HeadSeq == 0 {
		return noWorkflow(ctx, rdv, c.WorkflowID)
	}
	if c.Follow {
		return c.follow(ctx, rdv, all)
	}
	return show(&c.remote, all, all.Records, func() { printHistory(all.Records) })
}

// noWorkflow is the error for an id that is no workflow's in the tenant: it tells when it is a run's.
func noWorkflow(ctx context.Context, rdv *client.Client, id string) error {
	also := ""
	if w, err := rdv.GetRun(ctx, wire.WorkflowRef{RunID: id}); err == nil {
		also = "; a run has that id; its workflow is " + w.WorkflowID
	}
	return rendezvous.Errorf(rendezvous.CodeNotFound, "workflow %q is not known in tenant %s%s", id, rdv.Tenant(), also)
}

func printHistory(records []wire.Record) {
	t := table{heads: []string{"SEQ", "AT", "KIND", "EFFECT", "DATA", "PAYLOAD"}}
	for _, r := range records {
		t.add(r.Seq, clockTime(r.RecordedAt.Time), r.Kind, r.Effect, shorten(string(r.Data), 100), shorten(payloadText(r.Payload), 60))
	}
	t.print()
}

// payloadText is a payload as people read it: JSON and text as they are, on one line, of anything else its size.
func payloadText(p *wire.Payload) string {
	b, contentType, err := p.Bytes()
	text := strings.HasPrefix(contentType, "text/") || contentType != "" && cloudevents.IsJSON(contentType)
	switch {
	case p == nil || err != nil:
		return ""
	case text && utf8.Valid(b):
		return strings.Map(printable, strings.Join(strings.Fields(string(b)), " "))
	}
	return fmt.Sprintf("%d bytes", len(b))
}

// printable drops what would steer a terminal.
func printable(r rune) rune {
	if unicode.IsControl(r) {
		return -1
	}
	return r
}

func shorten(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

type runListCmd struct {
	remote
	watched
	Type   []string `help:"Only of these types."`
	Status []string `help:"Only of these statuses: running, paused, completed, failed, cancelled, timed_out."`
	Active bool     `help:"Only running ones."`
	Paused bool     `help:"Only paused ones; with --active, those too."`
	Queue  []string `help:"Only of these queues."`
	Prefix string   `help:"Only workflow ids that begin so."`
	Limit  int      `help:"At most so many; 0: a page of 100."`
	Cursor string   `help:"Go on behind an earlier page."`
}

func (c *runListCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	req := wire.ListRuns{Filter: wire.WorkflowFilter{Types: c.Type, Queues: c.Queue, Prefix: c.Prefix}}
	if c.Active {
		c.Status = append(c.Status, string(rendezvous.StatusRunning))
	}
	if c.Paused {
		c.Status = append(c.Status, string(rendezvous.StatusPaused))
	}
	for _, s := range c.Status {
		req.Filter.Statuses = append(req.Filter.Statuses, rendezvous.Status(s))
	}
	return c.watching(ctx, &c.remote, func(ctx context.Context) error {
		var list wire.RunList
		var err error
		list.Runs, list.NextCursor, err = walk(c.Limit, c.Cursor, func(limit int, cursor string) ([]wire.Workflow, string, error) {
			req.Limit, req.Cursor = limit, cursor
			page, err := rdv.ListRuns(ctx, req)
			return page.Runs, page.NextCursor, err
		})
		if err != nil {
			return err
		}
		return show(&c.remote, list, list.Runs, func() {
			t := table{heads: []string{"WORKFLOW", "RUN", "TYPE", "STATUS", "RECORDS", "WAITS", "STARTED"}}
			for _, w := range list.Runs {
				t.add(w.WorkflowID, w.RunID, w.Type, w.Status, w.HeadSeq, w.OpenWaits, clockTime(w.StartedAt.Time))
			}
			t.print()
			more(list.NextCursor)
		})
	})
}

func more(cursor string) {
	if cursor != "" {
		fmt.Println("more: --cursor " + cursor)
	}
}

type runConcludeCmd struct {
	remote
	RunID    string `arg:"" help:"The run's id."`
	Outcome  string `help:"completed, failed, cancelled, or from its deadline on timed_out." enum:"completed,failed,cancelled,timed_out" default:"completed"`
	Result   string `help:"completed: the result; failed: the detail; JSON, @file, or - for standard input."`
	Code     string `help:"failed: a word for programs."`
	Reason   string `help:"failed, cancelled: why."`
	Epoch    int64  `help:"The lease's epoch, while the run is leased."`
	Expected int64  `help:"The head you read; 0: the present one."`
	Yes      bool   `short:"y" help:"Do not ask."`
}

func (c *runConcludeCmd) Run(ctx context.Context) error {
	payload, err := jsonPayload(c.Result, "result")
	if err != nil {
		return err
	}
	rdv, err := c.client()
	if err != nil {
		return err
	}
	if err := confirmRun(ctx, rdv, c.Yes, c.RunID, " ends as "+c.Outcome+".", "end"); err != nil {
		return err
	}
	req := wire.Conclude{
		RunID: c.RunID, Epoch: c.Epoch, ExpectedSeq: c.Expected, Outcome: rendezvous.Status(c.Outcome), Code: c.Code, Reason: c.Reason, Operator: me(),
	}
	if c.Outcome == string(rendezvous.StatusFailed) {
		req.Detail = payload
	} else {
		req.Result = payload
	}
	if req.ExpectedSeq == 0 {
		if req.ExpectedSeq, err = head(ctx, rdv, c.RunID); err != nil {
			return err
		}
	}
	r, err := rdv.Conclude(ctx, req)
	if err != nil {
		return err
	}
	return show[wire.Concluded](&c.remote, r, nil, func() {
		fmt.Printf("%s at record %d; %d waits and %d timers ended, %d events released, %d dead letters\n", c.Outcome, r.Seq, r.Waits, r.Timers, len(r.Released), len(r.Dead))
	})
}

// confirmRun asks before what cannot be undone of a run, which is there; yes skips the question.
func confirmRun(ctx context.Context, rdv *client.Client, yes bool, run, what, word string) error {
	if yes {
		return nil
	}
	w, err := rdv.GetRun(ctx, wire.WorkflowRef{RunID: run})
	if err != nil {
		return err
	}
	return confirm(fmt.Sprintf("Run %s of workflow %s (%s)%s", run, w.WorkflowID, w.Status, what), word)
}

func head(ctx context.Context, rdv *client.Client, run string) (int64, error) {
	w, err := rdv.GetRun(ctx, wire.WorkflowRef{RunID: run})
	return w.HeadSeq, err
}

type runCancelCmd struct {
	remote
	RunID  string `arg:"" help:"The run's id."`
	Reason string `help:"Why."`
	Now    bool   `help:"Do not ask its driver: take the lease away and end the run."`
	Yes    bool   `short:"y" help:"Do not ask."`
}

func (c *runCancelCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	if err := confirmRun(ctx, rdv, c.Yes || !c.Now, c.RunID, " ends at once, whoever drives it.", "cancel"); err != nil {
		return err
	}
	r, err := rdv.CancelRun(ctx, wire.ActOnRun{RunID: c.RunID, Reason: c.Reason, Operator: me(), Now: c.Now})
	if err != nil {
		return err
	}
	return show[wire.Acted](&c.remote, r, nil, func() {
		switch {
		case r.RunOutcome != "":
			fmt.Printf("%s: the run ended as %s before\n", r.Outcome, r.RunOutcome)
		case r.Operator != nil:
			fmt.Printf("%s by %s at %s\n", r.Outcome, r.Operator.Actor, clockTime(r.At.Time))
		default:
			fmt.Printf("%s at record %d\n", r.Outcome, r.Seq)
		}
	})
}
