package main

import (
	"context"
	"fmt"

	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/wire"
)

type runReopenCmd struct {
	remote
	RunID  string `arg:"" help:"The run's id: its workflow's last."`
	Reason string `help:"Why."`
}

func (c *runReopenCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	r, err := rdv.ReopenRun(ctx, wire.ReopenRun{RunID: c.RunID, Reason: c.Reason, Operator: me()})
	if err != nil {
		return err
	}
	return show[wire.Reopened](&c.remote, r, nil, func() {
		fmt.Printf("reopened at record %d; %d timers are back at their old instants, its driver registers its waits again\n", r.Seq, r.Timers)
	})
}

type runChainCmd struct {
	remote
	ID    string `arg:"" help:"A workflow's id, or a run's with --run."`
	RunID bool   `name:"run" help:"The id is a run's."`
	After int64  `help:"Only runs that begin behind this record."`
	Limit int    `help:"At most so many; 0: a page of 100."`
}

func (c *runChainCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	ref := wire.WorkflowRef{WorkflowID: c.ID, AfterSeq: c.After, Limit: c.Limit}
	if c.RunID {
		ref.WorkflowID, ref.RunID = "", c.ID
	}
	chain, err := rdv.RunChain(ctx, ref)
	if err != nil {
		return err
	}
	if len(chain.Runs) == 0 && c.After == 0 {
		return noWorkflow(ctx, rdv, c.ID)
	}
	return show(&c.remote, chain, chain.Runs, func() {
		t := table{heads: []string{"RUN", "STATUS", "FIRST", "LAST", "STARTED", "CLOSED"}}
		for _, r := range chain.Runs {
			t.add(r.RunID, r.Status, r.FirstSeq, r.LastSeq, clockTime(r.StartedAt.Time), clockTime(r.ClosedAt.Time))
		}
		t.print()
	})
}

// followWait is how long one look of a follower waits for news.
const followWait = 20_000

// follow shows what there is, and then records as they come, until the workflow has ended or somebody interrupts. For programs each record is a line.
func (c *runHistoryCmd) follow(ctx context.Context, rdv *client.Client, page wire.History) error {
	if c.Output == "table" {
		fmt.Printf(followLine, "SEQ", "AT", "KIND", "EFFECT", "DATA", "PAYLOAD")
	}
	for from := c.From; ; {
		if err := c.showMore(page.Records); err != nil {
			return err
		}
		last := page.Records
		if len(last) > 0 {
			from = last[len(last)-1].Seq + 1
		} else if page.HeadSeq < from { // nothing came, or --from is the next that may come
			head, err := rdv.HistoryPage(ctx, wire.ReadHistory{WorkflowID: c.WorkflowID, FromSeq: page.HeadSeq})
			if err != nil {
				return interrupted(ctx, err)
			}
			if head.HeadSeq < from {
				last = head.Records
			}
		}
		if n := len(last); n > 0 && page.HeadSeq == last[n-1].Seq && last[n-1].Kind.Terminal() {
			return nil
		}
		var err error
		if page, err = rdv.HistoryPage(ctx, wire.ReadHistory{WorkflowID: c.WorkflowID, FromSeq: from, WaitMS: followWait}); err != nil {
			return interrupted(ctx, err)
		}
	}
}

// interrupted is err, unless who follows has ended it: that is how it ends.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// followLine is a record's line where the widths of later ones are not known yet.
const followLine = "%-6v %-23v  %-18v %-20v %s  %s\n"

func (c *runHistoryCmd) showMore(records []wire.Record) error {
	for _, r := range records {
		if c.Output != "table" {
			if err := printJSON(r, ""); err != nil {
				return err
			}
			continue
		}
		fmt.Printf(followLine, r.Seq, clockTime(r.RecordedAt.Time), r.Kind, r.Effect, shorten(string(r.Data), 100), shorten(payloadText(r.Payload), 60))
	}
	return nil
}
