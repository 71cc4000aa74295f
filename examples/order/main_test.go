package main

import (
	"context"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/wire"
)

// The program a user starts from ends well against a plane of defaults.
func TestOrdersArePaidEitherWayRound(t *testing.T) {
	n := nodetest.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), nodetest.Patience)
	defer cancel()
	if err := play(ctx, client.Options{URL: "http://" + n.HTTP, NATSURL: n.NATSURL}); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{URL: "http://" + n.HTTP})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	done, err := c.CountRuns(ctx, wire.CountRuns{Filter: wire.WorkflowFilter{Statuses: []rendezvous.Status{rendezvous.StatusCompleted}}})
	if err != nil || done.Count != 2 {
		t.Fatalf("%d orders completed, not 2: %v", done.Count, err)
	}
}
