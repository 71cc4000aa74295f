package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/wire"
)

// untilWhen are the flags of a deadline: an instant or a duration.
type untilWhen struct {
	Deadline      string         `help:"Until when, an RFC 3339 time." placeholder:"TIME" xor:"deadline"`
	DeadlineAfter *time.Duration `help:"For how long, such as 90s or 48h." placeholder:"DURATION" xor:"deadline"`
}

func (u untilWhen) due() (*wire.Due, *int64) { return dueOf(u.Deadline, u.DeadlineAfter) }

// dueOf is an instant or a duration as requests give it; the plane judges the instant.
func dueOf(at string, after *time.Duration) (*wire.Due, *int64) {
	var due *wire.Due
	if at != "" {
		due = new(wire.Due(at))
	}
	if after == nil {
		return due, nil
	}
	return due, new(wire.AfterMS(*after))
}

type timerCmd struct {
	Arm    timerArmCmd    `cmd:"" help:"Arm a timer of a run, over one of its name."`
	Cancel timerCancelCmd `cmd:"" help:"Cancel a timer."`
	List   timerListCmd   `cmd:"" help:"List live timers and deadlines of a workflow or a run, soonest first."`
}

type timerArmCmd struct {
	remote
	RunID string         `arg:"" help:"The run to wake."`
	Timer string         `arg:"" help:"The timer's name in its run."`
	At    string         `help:"When it fires, an RFC 3339 time; one that is past fires at once." placeholder:"TIME" xor:"when" required:""`
	After *time.Duration `help:"In how long it fires, such as 90s or 48h." placeholder:"DURATION" xor:"when" required:""`
	Epoch int64          `help:"The lease's epoch, while the run is leased."`
}

func (c *timerArmCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	req := wire.ArmTimer{RunID: c.RunID, Epoch: c.Epoch, TimerID: c.Timer}
	req.FireAt, req.AfterMS = dueOf(c.At, c.After)
	r, err := rdv.ArmTimer(ctx, req)
	if err != nil {
		return err
	}
	return show[wire.Armed](&c.remote, r, nil, func() {
		fmt.Printf("armed at record %d: it fires at %s\n", r.ArmedSeq, clockTime(r.FireAt.Time))
	})
}

type timerCancelCmd struct {
	remote
	RunID  string `arg:"" help:"The timer's run."`
	Timer  string `arg:"" help:"The timer's name in its run."`
	Reason string `help:"Why."`
	Epoch  int64  `help:"The lease's epoch, while the run is leased."`
}

func (c *timerCancelCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	r, err := rdv.CancelTimer(ctx, wire.CancelTimer{RunID: c.RunID, Epoch: c.Epoch, TimerID: c.Timer, Reason: c.Reason})
	if err != nil {
		return err
	}
	return show[wire.CancelledTimer](&c.remote, r, nil, func() {
		if r.Seq == 0 {
			fmt.Println("not armed: the run never armed a timer of that name")
			return
		}
		fmt.Printf("%s at record %d\n", r.Outcome, r.Seq)
	})
}

type timerListCmd struct {
	remote
	watched
	ID     string `arg:"" help:"A workflow's id, or a run's with --run."`
	RunID  bool   `name:"run" help:"The id is a run's."`
	Class  string `help:"Only of this class: author (a run's own), wait or run (deadlines)." placeholder:"CLASS"`
	Limit  int    `help:"At most so many; 0: a page of 100."`
	Cursor string `help:"Go on behind an earlier page."`
}

func (c *timerListCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	req := wire.ListTimers{WorkflowID: c.ID, Class: rendezvous.TimerClass(c.Class)}
	if c.RunID {
		req.WorkflowID, req.RunID = "", c.ID
	}
	return c.watching(ctx, &c.remote, func(ctx context.Context) error {
		var list wire.TimerList
		var err error
		list.Timers, list.NextCursor, err = walk(c.Limit, c.Cursor, func(limit int, cursor string) ([]wire.Timer, string, error) {
			req.Limit, req.Cursor = limit, cursor
			page, err := rdv.ListTimers(ctx, req)
			return page.Timers, page.NextCursor, err
		})
		if err != nil {
			return err
		}
		return show(&c.remote, list, list.Timers, func() {
			t := table{heads: []string{"RUN", "TIMER", "CLASS", "FIRES", "ARMED", "NEXT", "PARKS", "FAILURES", "ERROR"}}
			for _, m := range list.Timers {
				t.add(m.RunID, timerName(m), m.Class, clockTime(m.FireAt.Time), m.ArmedSeq, clockTime(m.DueAt.Time), m.Parks, m.Attempts, orNone(m.LastError))
			}
			t.print()
			more(list.NextCursor)
		})
	})
}

// timerName is what people know a timer by: of a wait's deadline the wait.
func timerName(t wire.Timer) string {
	switch t.Class {
	case rendezvous.TimerWait:
		return "(deadline of wait " + t.Effect + ")"
	case rendezvous.TimerRun:
		return "(deadline of the run)"
	}
	return t.TimerID
}

type shardCmd struct {
	List shardListCmd `cmd:"" help:"Say which pod owns which shard, and which pods there are."`
}

type shardListCmd struct {
	remote
	watched
	Pool string `help:"Only of this pool: timer or sweep." placeholder:"POOL"`
}

func (c *shardListCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	return c.watching(ctx, &c.remote, func(ctx context.Context) error {
		list, err := rdv.ListShards(ctx, wire.ListShards{Pool: c.Pool})
		if err != nil {
			return err
		}
		return show(&c.remote, list, list.Shards, func() { printShards(list) })
	})
}

func printShards(list wire.ShardList) {
	t := table{heads: []string{"POOL", "SHARD", "OWNER", "EPOCH", "LEFT", "SERVING", "ADDRESS"}}
	for _, s := range list.Shards {
		owner, left := s.Owner, milliseconds(s.RemainingMS).String()
		if s.RemainingMS == 0 {
			owner, left = "(free)", "-"
		}
		t.add(s.Pool, s.Shard, owner, s.Epoch, left, s.Serving, orNone(s.Address))
	}
	t.print()
	if len(list.Members) == 0 {
		return
	}
	fmt.Println()
	t = table{heads: []string{"POOL", "MEMBER", "SINCE", "DRAINING", "ADDRESS"}}
	for _, m := range list.Members {
		t.add(m.Pool, m.Incarnation, clockTime(m.StartedAt.Time), m.Draining, orNone(m.Address))
	}
	t.print()
}
