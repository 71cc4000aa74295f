// Command ingest is the front of the plane: both doors for events, and every verb over HTTP and NATS.
package main

import (
	"context"

	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/worker"
)

type settings struct {
	Migrate bool `help:"Bring the store's schema up to this build first; otherwise an older one is refused."`
	node.Common
	node.Door
	node.Targets
}

func main() {
	var s settings
	worker.Main(&s, "ingest", "Take events in, and answer every verb.", func(ctx context.Context, version string) error {
		return node.Run(ctx, node.Config{Common: s.Common, Name: "ingest", Version: version, Migrate: s.Migrate, Ingest: &s.Door, Targets: s.Targets}, nil)
	})
}
