package main

import (
	"context"
	"fmt"

	"github.com/rendezvous-events/rendezvous/wire"
)

type systemCmd struct {
	Info  systemInfoCmd  `cmd:"" help:"Version, store and depths."`
	Check systemCheckCmd `cmd:"" help:"A verdict on the plane's health, with reasons; exit code 1 unless ok, or watched."`
}

type systemInfoCmd struct{ remote }

func (c *systemInfoCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	i, err := rdv.Info(ctx)
	if err != nil {
		return err
	}
	return show[wire.Info](&c.remote, i, nil, func() {
		t := table{heads: []string{"RENDEZVOUS", i.Version}}
		t.add("store", i.Store)
		t.add("tenant", i.Tenant)
		t.add("store's now", clockTime(i.Now.Time))
		if d := i.Depths; d != nil {
			t.add("live events", d.LiveEvents)
			t.add("open waits", d.OpenWaits)
			t.add("parked waits", d.ParkedWaits)
			t.add("quarantined waits", d.QuarantinedWaits)
			t.add("woken runs", d.Woken)
			t.add("timers", d.Timers)
			t.add("due timers", d.DueTimers)
			t.add("due registrations", d.DuePushes)
			t.add("failing registrations", d.FailingPushes)
			t.add("parked registrations", d.ParkedPushes)
			t.add("dead letters", d.DeadLetters)
		}
		t.print()
	})
}

type systemCheckCmd struct {
	remote
	watched
}

func (c *systemCheckCmd) Run(ctx context.Context) error {
	rdv, err := c.client()
	if err != nil {
		return err
	}
	return c.watching(ctx, &c.remote, func(ctx context.Context) error {
		r, err := rdv.Check(ctx)
		if err != nil {
			return err
		}
		if err := show[wire.Check](&c.remote, r, nil, func() {
			fmt.Println(r.Verdict)
			for _, reason := range r.Reasons {
				fmt.Println("  " + reason)
			}
		}); err != nil {
			return err
		}
		if r.Verdict != wire.CheckOK && !c.Watch { // who watches wants to see it get well
			return fmt.Errorf("the plane is %s", r.Verdict)
		}
		return nil
	})
}
