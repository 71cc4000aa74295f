// Command sweeper finds what lost notices, dead drivers and crashes left behind, and ends what nobody wants. Any number of them divide the shards among themselves.
package main

import (
	"context"

	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/worker"
)

type settings struct {
	Migrate bool `help:"Bring the store's schema up to this build first; otherwise an older one is refused."`
	node.Common
	node.Sweep
	node.Patience
}

func main() {
	var s settings
	worker.Main(&s, "sweeper", "Find what lost notices, dead drivers and crashes left behind.", func(ctx context.Context, version string) error {
		return node.Run(ctx, node.Config{Common: s.Common, Name: "sweeper", Version: version, Migrate: s.Migrate, Sweep: &s.Sweep, Patience: s.Patience}, nil)
	})
}
