package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/wire"
)

// startNode is a whole plane in this process: memory, embedded NATS with a listener.
func startNode(t *testing.T) *node.Node {
	t.Helper()
	cfg := node.Private("test", t.TempDir())
	cfg.NATS.AckWait = 2 * time.Second
	cfg.Sweep.Tick, cfg.Sweep.Woken = 200*time.Millisecond, time.Second
	n, err := node.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := n.Stop(ctx); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	return n
}

// deleter deletes every stream and consumer again and again: in each round once so many more events were sent.
func deleter(ctx context.Context, t *testing.T, url string, rounds int, sent <-chan struct{}) {
	nc, err := nats.Connect(url)
	if err != nil {
		t.Error(err)
		return
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Error(err)
		return
	}
	for round := range rounds {
		for range 25 {
			select {
			case <-sent:
			case <-ctx.Done():
				return
			}
		}
		names := js.StreamNames(ctx)
		for name := range names.Name() {
			if round%2 == 0 {
				deleteConsumers(ctx, js, name)
			}
			_ = js.DeleteStream(ctx, name) // gone already is as good
		}
		if err := names.Err(); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
	}
}

// I11: every stream and consumer is deleted under load, again and again. Producers on the stream door send again what events.get does not know, workers
// make streams and consumers again by themselves, and every pair meets, whichever side came first.
func TestEveryStreamDeletedUnderLoadAndEveryPairMeets(t *testing.T) {
	const producers, each, rounds = 8, 40, 8
	n := startNode(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	c, err := client.New(client.Options{URL: "http://" + n.HTTP, NATSURL: n.NATSURL, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	sent := make(chan struct{}, producers*each)
	var work sync.WaitGroup
	work.Go(func() { deleter(ctx, t, n.NATSURL, rounds, sent) })
	var met atomic.Int64
	for p := range producers {
		work.Go(func() {
			for i := range each {
				run := fmt.Sprintf("r-%d-%d", p, i)
				if err := pairOf(ctx, c, run, i%2 == 0, sent); err != nil {
					t.Errorf("%s: %v", run, err)
					return
				}
				met.Add(1)
			}
		})
	}
	work.Wait()
	if met.Load() != producers*each {
		t.Errorf("%d of %d pairs were sent", met.Load(), producers*each)
	}
	for p := range producers {
		for i := range each {
			answeredByItsOwn(ctx, t, c, fmt.Sprintf("r-%d-%d", p, i))
		}
	}
	streamDoorWorks(ctx, t, c)
}

// streamDoorWorks publishes one more event, once nothing is deleted any more, and never turns to the request door for it.
func streamDoorWorks(ctx context.Context, t *testing.T, c *client.Client) {
	t.Helper()
	if err := c.Publish(ctx, event("last", key("last"))); err != nil {
		t.Fatal(err)
	}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		_, err := c.GetEvent(ctx, rendezvous.EventID{Source: source, ID: "last"}, false)
		switch {
		case err == nil:
			return
		case !errors.Is(err, rendezvous.ErrNotFound):
			t.Fatal(err)
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatal("the stream door takes nothing any more")
		}
	}
}

// pairOf starts a run and brings both sides of a pair, the wait first or the event first.
func pairOf(ctx context.Context, c *client.Client, run string, waitFirst bool, sent chan<- struct{}) error {
	if _, err := c.StartRun(ctx, wire.StartRun{WorkflowID: run, RunID: run, Type: "soak", Queue: queueIdle}); err != nil {
		return err
	}
	wait := func() error {
		_, err := c.RegisterWait(ctx, wire.RegisterWait{RunID: run, Effect: "w", Type: eventType, Keys: []rendezvous.Key{key(run)}})
		return err
	}
	send := func() error {
		sent <- struct{}{}
		return c.PublishConfirmed(ctx, event(run, key(run)))
	}
	steps := []func() error{send, wait}
	if waitFirst {
		steps = []func() error{wait, send}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// answeredByItsOwn waits for the run's answer, and holds it and the event against each other.
func answeredByItsOwn(ctx context.Context, t *testing.T, c *client.Client, run string) {
	t.Helper()
	page, err := c.HistoryPage(ctx, wire.ReadHistory{WorkflowID: run, FromSeq: 3, WaitMS: 30_000})
	if err != nil || len(page.Records) != 1 || page.Records[0].Kind != rendezvous.WaitAnswered {
		t.Fatalf("%s has no answer: %+v, %v", run, page, err)
	}
	e, err := c.GetEvent(ctx, rendezvous.EventID{Source: source, ID: run}, false)
	if err != nil || e.State != rendezvous.EventConsumed || e.RunID != run || e.Seq != 3 {
		t.Errorf("event of %s: %+v, %v", run, e, err)
	}
}
