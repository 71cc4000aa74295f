package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/wire"
)

// The fifth part of the story: a payment that names an order nobody has, and what an operator does about it.
const (
	strayID = "pay-9999"
	window  = 2 * time.Second  // of the demo's plane
	keeps   = 10 * time.Minute // what the other events say of themselves
)

// lines are the events of the story, which say until when they keep; but for the stray one, for which the plane's window holds.
func lines(story []byte, until time.Time) ([]json.RawMessage, error) {
	var all []json.RawMessage
	for line := range bytes.Lines(story) {
		var e map[string]any
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		if e["id"] != strayID {
			e["expirytime"] = rendezvous.FormatInstant(until)
		}
		text, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
}

// buried shows the dead letter, and how it reaches the run it was meant for.
func (d *demo) buried(ctx context.Context) error {
	fmt.Printf("\n5. A dead letter. One payment names order 9999, which nobody has. After the window (%s here, 1h unless set) the sweeper gives it up:\n", window)
	if err := d.letters(ctx, 1); err != nil {
		return err
	}
	fmt.Println("   The bank meant order 1007. Its run now waits for a payment sent to it by name, whatever key it carries, and an operator requeues the letter to that run:")
	const run = "run-of-order-1007"
	if _, err := d.rdv.StartRun(ctx, wire.StartRun{Type: "order", WorkflowID: "order-1007", RunID: run, Queue: "desk"}); err != nil {
		return err
	}
	if _, err := d.rdv.RegisterWait(ctx, wire.RegisterWait{RunID: run, Effect: "payment", Type: "payment.received"}); err != nil {
		return err
	}
	done, err := d.rdv.RequeueLetters(ctx, wire.RequeueLetters{To: run, Selection: wire.Selection{
		Events: []rendezvous.EventID{{Source: "urn:demo:bank", ID: strayID}}, Operator: me(),
	}})
	if err != nil {
		return err
	}
	for _, l := range done.Results {
		fmt.Printf("   %s %s %s\n", l.Outcome, l.Source, l.ID)
	}
	if err := d.until(ctx, "order 1007 paid", func() (bool, error) {
		e, err := d.rdv.GetEvent(ctx, rendezvous.EventID{Source: "urn:demo:bank", ID: strayID}, false)
		return e.State == rendezvous.EventConsumed && e.RunID == run, err
	}); err != nil {
		return err
	}
	if err := d.letters(ctx, 0); err != nil {
		return err
	}
	info, err := d.rdv.Info(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("   order-1007 has its payment. Nothing is left: %d live events, %d open waits, %d dead letters.\n",
		info.Depths.LiveEvents, info.Depths.OpenWaits, info.Depths.DeadLetters)
	if info.Depths.LiveEvents+info.Depths.OpenWaits+info.Depths.DeadLetters != 0 {
		return fmt.Errorf("the story did not end as it should")
	}
	return nil
}

// letters waits until there are n dead letters, and shows them.
func (d *demo) letters(ctx context.Context, n int) error {
	var list wire.Letters
	if err := d.until(ctx, fmt.Sprintf("%d dead letters", n), func() (bool, error) {
		var err error
		list, err = d.rdv.ListLetters(ctx, wire.ListLetters{})
		return len(list.Letters) == n, err
	}); err != nil {
		return err
	}
	for _, l := range list.Letters {
		fmt.Printf("   %s: %s %s on %s, since %s\n", l.Reason, l.Source, l.ID, keyList(l.Keys), clockTime(l.DeadAt.Time))
	}
	return nil
}
