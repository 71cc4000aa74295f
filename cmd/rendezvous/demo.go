package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/wire"
)

// story is a morning in a small bookshop: payments, parcels and signatures of six orders, one payment told twice, and one for no order.
//
//go:embed demo.jsonl
var story []byte

// Orders of the story. Those of waiting have their runs before their events, those of late after.
var (
	waiting = []string{"1001", "1002", "1003"}
	late    = []string{"1004", "1005", "1006"}
)

// demoCmd plays the story on a plane of its own, through the public verbs only.
type demoCmd struct {
	Store   string        `help:"The store to play on; memory: by default." default:"memory:" placeholder:"URL"`
	Timeout time.Duration `help:"How long the story may take." default:"60s"`
	Verbose bool          `short:"v" help:"Show what the plane logs."`
}

// demo is one showing.
type demo struct {
	rdv   *client.Client
	lines []json.RawMessage
	sent  map[string]int // outcomes
}

func (c *demoCmd) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "rendezvous-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	n, err := node.Start(ctx, c.config(dir))
	if err != nil {
		return err
	}
	defer func() { _ = n.Stop(context.WithoutCancel(ctx)) }()
	rdv, err := client.New(client.Options{URL: "http://" + n.HTTP, NATSURL: n.NATSURL, Tenant: "bookshop", Log: c.log()})
	if err != nil {
		return err
	}
	defer rdv.Close()
	d := &demo{rdv: rdv, sent: map[string]int{}}
	if d.lines, err = lines(story, clock.System.Now().Add(keeps)); err != nil {
		return err
	}
	return d.play(ctx, n)
}

func (c *demoCmd) log() *slog.Logger {
	if c.Verbose {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}

// config is a plane that shows the story without long pauses.
func (c *demoCmd) config(dir string) node.Config {
	cfg := node.Private("demo", dir)
	cfg.Store, cfg.Drain, cfg.Logger = c.Store, 10*time.Second, c.log()
	cfg.Sweep.Tick, cfg.Sweep.Woken, cfg.Sweep.Window = 500*time.Millisecond, 2*time.Second, window
	cfg.Targets = node.Targets{CallerHosts: []string{"127.0.0.1"}, DevLoopback: true}
	return cfg
}

func (d *demo) play(ctx context.Context, n *node.Node) error {
	fmt.Printf("A bookshop: six orders wait for a payment, a parcel and a signature. API http://%s, NATS %s\n\n", n.HTTP, n.NATSURL)
	driven := make(chan client.Driven, 256)
	executor, err := d.rdv.NewExecutor(client.ExecutorOptions{Queue: "orders", Name: "demo", Handler: order, Driven: func(r client.Driven) { driven <- r }})
	if err != nil {
		return err
	}
	if err := executor.Start(); err != nil {
		return err
	}
	defer func() { _ = executor.Stop(context.WithoutCancel(ctx)) }()

	fmt.Println("1. Waits first. Three orders start; each waits for its payment:")
	if err := d.start(ctx, waiting); err != nil {
		return err
	}
	if err := d.waits(ctx, len(waiting)); err != nil {
		return err
	}
	fmt.Println("\n2. Every event of the morning comes in, of all six orders, as CloudEvents:")
	if err := d.send(ctx); err != nil {
		return err
	}
	if err := d.completed(ctx, waiting); err != nil {
		return err
	}
	fmt.Printf("   orders %s are complete; the events of %s wait in the buffer\n", strings.Join(waiting, ", "), strings.Join(late, ", "))

	fmt.Println("\n3. Events first. The other three orders start only now, and find their events:")
	if err := d.start(ctx, late); err != nil {
		return err
	}
	if err := d.completed(ctx, late); err != nil {
		return err
	}
	if err := d.summary(ctx); err != nil {
		return err
	}
	if err := d.timed(ctx); err != nil {
		return err
	}
	if err := d.buried(ctx); err != nil {
		return err
	}
	if err := d.pushed(ctx); err != nil {
		return err
	}
	fmt.Println("All met.")
	return nil
}

// order is what drives one order: a replayed function, see package client.
func order(ctx context.Context, run *client.Run) error {
	id := strings.TrimPrefix(run.WorkflowID(), "order-")
	if _, err := run.Await(ctx, "payment", "payment.received", client.OnKey("order", id), client.From("urn:demo:bank")); err != nil {
		return err
	}
	shipped, err := run.Await(ctx, "parcel", "parcel.shipped", client.OnKey("order", id))
	if err != nil {
		return err
	}
	var parcel struct {
		Parcel string `json:"parcel"`
	}
	if err := shipped.JSON(&parcel); err != nil {
		return err
	}
	signed, err := run.Await(ctx, "signature", "parcel.delivered", client.OnKey("parcel", parcel.Parcel))
	if err != nil {
		return err
	}
	return run.Complete(ctx, signed.Payload)
}

func (d *demo) start(ctx context.Context, orders []string) error {
	for _, o := range orders {
		got, err := d.rdv.StartRun(ctx, wire.StartRun{Type: "order", WorkflowID: "order-" + o, Queue: "orders"})
		if err != nil {
			return err
		}
		fmt.Printf("   started %s  run %s\n", got.WorkflowID, got.RunID)
	}
	return nil
}

// waits shows the open waits once there are n.
func (d *demo) waits(ctx context.Context, n int) error {
	var list wire.WaitList
	err := d.until(ctx, fmt.Sprintf("%d waits", n), func() (bool, error) {
		var err error
		list, err = d.rdv.ListWaits(ctx, wire.ListWaits{})
		return len(list.Waits) >= n, err
	})
	for _, w := range list.Waits {
		fmt.Printf("   %s waits: %s on %s\n", w.WorkflowID, w.Type, keyList(w.Keys))
	}
	return err
}

func (d *demo) send(ctx context.Context) error {
	results, err := d.rdv.PutEncoded(ctx, d.lines)
	if err != nil {
		return err
	}
	for _, r := range results {
		d.sent[r.Outcome]++
		if r.Error != nil {
			return fmt.Errorf("event %s %s was refused: %w", r.Source, r.ID, r.Error.Domain())
		}
	}
	fmt.Printf("   %d events: %d accepted, %d duplicate (the bank told one payment twice)\n", len(results), d.sent[wire.Accepted], d.sent[wire.Duplicate])
	return nil
}

// completed waits until every order is.
func (d *demo) completed(ctx context.Context, orders []string) error {
	for _, o := range orders {
		if err := d.until(ctx, "order "+o+" complete", func() (bool, error) {
			w, err := d.rdv.GetRun(ctx, wire.WorkflowRef{WorkflowID: "order-" + o})
			return w.Status == rendezvous.StatusCompleted, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// until asks again every few milliseconds.
func (d *demo) until(ctx context.Context, what string, done func() (bool, error)) error {
	for {
		ok, err := done()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not in time", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// summary reads every history back and judges what it promises: each wait answered once, by the event of its order.
func (d *demo) summary(ctx context.Context) error {
	fmt.Printf("\n%-12s %-10s %-36s %-13s %s\n", "WORKFLOW", "WAIT", "ANSWERED BY", "FIRST CAME", "PAYLOAD")
	waitFirst, eventFirst := 0, 0
	used := map[string]bool{}
	for _, o := range append(append([]string{}, waiting...), late...) {
		records, err := d.rdv.History(ctx, "order-"+o, 1)
		if err != nil {
			return err
		}
		registered := map[string]time.Time{}
		for _, r := range records {
			switch r.Kind {
			case rendezvous.WaitRegistered:
				registered[r.Effect] = r.RecordedAt
			case rendezvous.WaitAnswered:
				var a rendezvous.WaitAnsweredData
				if err := rendezvous.DecodeData(r, &a); err != nil {
					return err
				}
				if used[a.EventID] || !bytes.Contains(r.Payload, []byte(expected(o, r.Effect))) {
					return fmt.Errorf("order %s: wait %s was answered by event %s, which is not its own or answered before", o, r.Effect, a.EventID)
				}
				used[a.EventID] = true
				first := "the wait"
				waitFirst++
				if at, err := time.Parse(time.RFC3339Nano, a.ReceivedAt); err == nil && at.Before(registered[r.Effect]) {
					first = "the event"
					waitFirst--
					eventFirst++
				}
				fmt.Printf("%-12s %-10s %-36s %-13s %s\n", "order-"+o, r.Effect, a.EventSource+" "+a.EventID, first, shorten(string(r.Payload), 60))
			}
		}
	}
	fmt.Printf("\n%d of 18 waits answered, each by its own event, once: %d waits came first, %d events came first.\n", waitFirst+eventFirst, waitFirst, eventFirst)
	if waitFirst+eventFirst != 18 || waitFirst == 0 || eventFirst < 9 {
		return fmt.Errorf("the story did not end as it should")
	}
	return nil
}

// expected is a part of the payload that only the right event carries.
func expected(order, effect string) string {
	if effect == "signature" {
		return `"parcel":"P` + string([]byte{'7', '0', order[len(order)-1]}) + `"`
	}
	return `"order":"` + order + `"`
}
