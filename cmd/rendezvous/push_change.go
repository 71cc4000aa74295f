package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/wire"
)

type pushParkCmd struct {
	remote
	pushName
	pushWhy
}

func (c *pushParkCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	r, err := rdv.ParkPush(ctx, wire.ParkPush{PushRef: c.ref(), Operator: me(), Reason: c.Reason, Op: c.Op})
	if err != nil {
		return err
	}
	return show[wire.PushParked](&c.remote, r, nil, func() { fmt.Println(r.Outcome) })
}

// pushChoice are the flags that choose parked registrations.
type pushChoice struct {
	ParkedFor string `help:"Only those parked for this reason, such as exhausted, gone, rejected, operator." placeholder:"REASON"`
	Gate      string `help:"Only those of this receiver, scheme://host:port." placeholder:"GATE"`
}

func (c pushChoice) filter() wire.PushFilter {
	return wire.PushFilter{Reason: rendezvous.ParkReason(c.ParkedFor), Gate: c.Gate}
}

type pushParkedCmd struct {
	remote
	watched
	pushChoice
	Limit  int    `help:"At most so many; 0: a page of 100."`
	Cursor string `help:"Go on behind an earlier page."`
}

func (c *pushParkedCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	return c.watching(ctx, &c.remote, func(ctx context.Context) error {
		var list wire.Pushes
		var err error
		list.Registrations, list.NextCursor, err = walk(c.Limit, c.Cursor, func(limit int, cursor string) ([]wire.Push, string, error) {
			page, err := rdv.ParkedPushes(ctx, wire.ParkedPushes{Filter: c.filter(), Limit: limit, Cursor: cursor})
			return page.Registrations, page.NextCursor, err
		})
		if err != nil {
			return err
		}
		return show(&c.remote, list, list.Registrations, func() {
			t := table{heads: []string{"PARKED SINCE", "REASON", "RUN", "ID", "NEXT", "ATTEMPTS", "URL", "ERROR"}}
			for _, p := range list.Registrations {
				t.add(clockTime(p.ParkedAt.Time), p.Reason, p.RunID, p.ID, p.Cursor.NextSeq, p.Attempts, dash(shorten(p.URL, 60)), dash(shorten(p.Error, 60)))
			}
			t.print()
			more(list.NextCursor)
		})
	})
}

type pushUnparkCmd struct {
	remote
	pushChoice
	pushWhy
	RunID  string        `arg:"" optional:"" name:"run" help:"The run of one registration; absent: all that the flags choose."`
	ID     string        `arg:"" optional:"" name:"id" help:"Its id; absent: the one that was put without an id."`
	All    bool          `help:"Every parked registration of the tenant, when no flag chooses."`
	At     time.Time     `help:"When to go on, an RFC 3339 time; absent: now." placeholder:"TIME"`
	Spread time.Duration `help:"Of many: spread them evenly over so long." placeholder:"DURATION"`
	Limit  int           `help:"Of many: at most so many, the longest parked first; 0: 100." placeholder:"N"`
}

func (c *pushUnparkCmd) Run(ctx context.Context) error {
	many := c.RunID == ""
	chosen := c.pushChoice != pushChoice{} || c.All
	if many != chosen {
		return rendezvous.InvalidField("run", "names one registration, and --parked-for, --gate or --all many; give one of them")
	}
	rdv, err := c.client()
	if err != nil {
		return err
	}
	if many {
		return c.many(ctx, rdv)
	}
	r, err := rdv.UnparkPush(ctx, wire.UnparkPush{
		PushRef: wire.PushRef{RunID: c.RunID, ID: c.ID}, At: wire.At(c.At), Operator: me(), Reason: c.Reason, Op: c.Op,
	})
	if err != nil {
		return err
	}
	if err := show[wire.PushUnparked](&c.remote, r, nil, func() {
		if r.Unparked {
			fmt.Println("unparked")
		}
	}); err != nil || r.Unparked {
		return err
	}
	return rendezvous.Errorf(rendezvous.CodeConflict, "it is not parked, or not there; rendezvous push list %s shows what is", c.RunID)
}

func (c *pushUnparkCmd) many(ctx context.Context, rdv *client.Client) error {
	r, err := rdv.UnparkPushes(ctx, wire.UnparkPushes{
		Filter: c.filter(), At: wire.At(c.At), SpreadMS: wire.AfterMS(c.Spread), Limit: c.Limit, Operator: me(), Reason: c.Reason,
	})
	if err != nil {
		return err
	}
	return show[wire.PushesUnparked](&c.remote, r, nil, func() {
		fmt.Printf("%d unparked\n", r.Count)
		if r.More {
			hint("more are parked; the same command goes on with them")
		}
	})
}

type pushSkipCmd struct {
	remote
	pushName
	pushWhy
	Seq int64 `required:"" help:"The record to go past: exactly the one at which the registration stopped." placeholder:"SEQ"`
	Yes bool  `short:"y" help:"Do not ask."`
}

func (c *pushSkipCmd) Run(ctx context.Context) error {
	what := fmt.Sprintf("The receiver does not get record %d from this registration, ever.", c.Seq)
	return c.sure(c.Yes, what, "skip", func(rdv *client.Client) error {
		r, err := rdv.SkipPush(ctx, wire.SkipPush{PushRef: c.ref(), Seq: c.Seq, Operator: me(), Reason: c.Reason, Op: c.Op})
		if err != nil {
			return err
		}
		return show[wire.PushSkipped](&c.remote, r, nil, func() {
			fmt.Printf("%s: it is at record %d, and stays parked until it is unparked\n", r.Outcome, r.Cursor.NextSeq)
		})
	})
}

type pushRotateCmd struct {
	remote
	pushName
	Key       string         `help:"The new key: @file, or whsec_ or whsk_ text; absent: one is made, and shown." placeholder:"SECRET"`
	Algorithm string         `help:"Of a key that is made: v1 (shared secret), which is the default, or v1a (ed25519)." placeholder:"NAME"`
	Grace     *time.Duration `help:"How long the older keys go on (0s to 168h); absent: 24h." placeholder:"DURATION"`
	Op        string         `help:"Name of this operation: the same command with the same name, within 10 minutes, shows the same key." placeholder:"NAME"`
}

func (c *pushRotateCmd) Run(ctx context.Context) error {
	key, err := secretOf(c.Key)
	if err != nil {
		return err
	}
	rdv, err := c.client()
	if err != nil {
		return err
	}
	req := wire.RotatePush{PushRef: c.ref(), Key: key, Algorithm: c.Algorithm, Op: c.Op}
	if c.Grace != nil {
		ms := wire.AfterMS(*c.Grace)
		req.GraceMS = &ms
	}
	r, err := rdv.RotatePush(ctx, req)
	if err != nil {
		return err
	}
	return show[wire.PushRotated](&c.remote, r, nil, func() {
		fmt.Printf("%s %s signs from the next request on (version %d)\n", r.KeyID, r.Algorithm, r.Version)
		if r.Key.Set() {
			fmt.Fprintln(os.Stdout, r.Key.Reveal())
			hint("this key is not shown again")
		}
		if r.Public != "" {
			fmt.Println("receivers verify with", r.Public)
		}
	})
}

type pushAttemptsCmd struct {
	remote
	watched
	pushName
	Limit  int    `help:"At most so many; 0: a page of 100."`
	Cursor string `help:"Go on behind an earlier page."`
}

func (c *pushAttemptsCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	return c.watching(ctx, &c.remote, func(ctx context.Context) error {
		list, err := rdv.PushAttempts(ctx, wire.PushAttempts{PushRef: c.ref(), Limit: c.Limit, Cursor: c.Cursor})
		if err != nil {
			return err
		}
		return show(&c.remote, list, list.Attempts, func() {
			t := table{heads: []string{"NO", "AT", "RECORD", "OUTCOME", "STATUS", "TOOK", "NEXT ATTEMPT", "ERROR"}}
			for _, a := range list.Attempts {
				status, took, text := "-", "-", a.Error
				if a.Status != 0 {
					status = fmt.Sprint(a.Status)
				}
				if a.Phases != nil {
					took = fmt.Sprintf("%d ms", a.Phases.Total)
				}
				if a.Actor != "" {
					text = a.Actor + ": " + a.Reason
				}
				t.add(a.AttemptNo, clockTime(a.At.Time), a.Seq, a.Outcome, status, took, clockTime(a.NextAttemptAt.Time), dash(shorten(text, 60)))
			}
			t.print()
			if len(list.Attempts) == 0 && c.Cursor == "" {
				hint("nothing failed, or there never was such a registration; acceptances are in the log where the plane runs with --push-log-accepted all")
			}
			more(list.NextCursor)
		})
	})
}
