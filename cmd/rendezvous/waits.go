package main

import (
	"context"
	"fmt"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/wire"
)

type waitCmd struct {
	Register waitRegisterCmd `cmd:"" help:"Register a wait: answered at once if its event is there already."`
	Withdraw waitWithdrawCmd `cmd:"" help:"Give a wait up."`
	Explain  waitExplainCmd  `cmd:"" help:"Say why a wait got no event, and what to do."`
	List     waitListCmd     `cmd:"" help:"List waits, oldest first."`
	Retry    waitRetryCmd    `cmd:"" help:"Try a quarantined wait again, once its cause is mended."`
}

type waitRegisterCmd struct {
	remote
	RunID   string   `arg:"" help:"The run that waits."`
	Effect  string   `arg:"" help:"The wait's name, unique in its run."`
	Type    string   `help:"The type of event it waits for." required:""`
	Key     []string `help:"A correlation key, namespace=value; repeatable. One shared key is enough." placeholder:"NS=VALUE" sep:"none"`
	From    string   `help:"Only events of this source."`
	Epoch   int64    `help:"The lease's epoch, while the run is leased."`
	Attempt int      `help:"The attempt, when an earlier one was left open."`
	untilWhen
}

func (c *waitRegisterCmd) Run(ctx context.Context) error {
	keys, err := keysOf(c.Key)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		hint("no key: only an event sent to this very run (event put --run %s) can answer this wait; give it --key NS=VALUE", c.RunID)
	}
	rdv, err := c.client()
	if err != nil {
		return err
	}
	req := wire.RegisterWait{RunID: c.RunID, Effect: c.Effect, Type: c.Type, Keys: keys, From: c.From, Epoch: c.Epoch, Attempt: c.Attempt}
	req.Deadline, req.DeadlineAfterMS = c.due()
	r, err := rdv.RegisterWait(ctx, req)
	if err != nil {
		return err
	}
	return show[wire.Registered](&c.remote, r, nil, func() {
		switch {
		case r.Answered != nil:
			fmt.Printf("answered at record %d by an event of %s\n", r.Seq, r.Answered.Source)
			printHistory([]wire.Record{*r.Answered})
		case r.Parked:
			fmt.Println("waiting: an event is claimed for it, and is recorded when the run's driver collects it or the lease ends")
		case r.Waiting:
			fmt.Printf("waiting since record %d\n", r.Seq)
		case r.TimedOut:
			fmt.Printf("timed out at record %d: no event answered it before its deadline\n", r.Seq)
		default:
			fmt.Printf("withdrawn before, at record %d\n", r.Seq)
		}
	})
}

type waitWithdrawCmd struct {
	remote
	RunID  string `arg:"" help:"The run that waits."`
	Effect string `arg:"" help:"The wait's name."`
	Epoch  int64  `help:"The lease's epoch, while the run is leased."`
	Reason string `help:"Why."`
}

func (c *waitWithdrawCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	r, err := rdv.WithdrawWait(ctx, wire.WithdrawWait{RunID: c.RunID, Effect: c.Effect, Epoch: c.Epoch, Reason: c.Reason})
	if err != nil {
		return err
	}
	return show[wire.Withdrawn](&c.remote, r, nil, func() {
		switch {
		case r.Outcome == "nothing":
			fmt.Println("nothing: that wait never was registered")
		case r.Released != nil:
			fmt.Printf("%s at record %d; the event it held (%s %s) is live again\n", r.Outcome, r.Seq, r.Released.Source, r.Released.ID)
		default:
			fmt.Printf("%s at record %d\n", r.Outcome, r.Seq)
		}
	})
}

type waitListCmd struct {
	remote
	watched
	RunID  string `name:"run" help:"Only this run's."`
	Type   string `help:"Only waits for this type of event."`
	Key    string `help:"Only waits on this key, namespace=value." placeholder:"NS=VALUE"`
	Parked bool   `help:"Only parked ones, next attempt first."`
	Limit  int    `help:"At most so many; 0: a page of 100."`
	Cursor string `help:"Go on behind an earlier page."`
}

func (c *waitListCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	req := wire.ListWaits{Parked: c.Parked, RunID: c.RunID, Filter: wire.WaitFilter{Type: c.Type}}
	if c.Key != "" {
		keys, err := keysOf([]string{c.Key})
		if err != nil {
			return err
		}
		req.Filter.Key = &keys[0]
	}
	return c.watching(ctx, &c.remote, func(ctx context.Context) error {
		var list wire.WaitList
		var err error
		list.Waits, list.NextCursor, err = walk(c.Limit, c.Cursor, func(limit int, cursor string) ([]wire.Wait, string, error) {
			req.Limit, req.Cursor = limit, cursor
			page, err := rdv.ListWaits(ctx, req)
			return page.Waits, page.NextCursor, err
		})
		if err != nil {
			return err
		}
		return show(&c.remote, list, list.Waits, func() {
			t := table{heads: []string{"RUN", "EFFECT", "STATE", "TYPE", "KEYS", "SINCE", "DEADLINE", "EVENT", "ATTEMPTS"}}
			for _, w := range list.Waits {
				t.add(w.RunID, w.Effect, w.State, w.Type, keyList(w.Keys), clockTime(w.RegisteredAt.Time), clockTime(w.Deadline.Time), heldEvent(w.Event), w.Attempts)
			}
			t.print()
			more(list.NextCursor)
		})
	})
}

type waitRetryCmd struct {
	remote
	RunID  string `arg:"" help:"The run that waits."`
	Effect string `arg:"" help:"The wait's name."`
}

func (c *waitRetryCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	r, err := rdv.RetryWait(ctx, wire.RetryWait{RunID: c.RunID, Effect: c.Effect, Operator: me()})
	if err != nil {
		return err
	}
	return show[wire.Retried](&c.remote, r, nil, func() {
		if r.Outcome == wire.RetriedNow {
			fmt.Println("retried: the sweeper tries it with its next tick")
			return
		}
		fmt.Println("not quarantined: nothing to do (wait list --parked shows what is)")
	})
}

func heldEvent(e *rendezvous.EventID) string {
	if e == nil {
		return "-"
	}
	return e.Source + " " + e.ID
}
