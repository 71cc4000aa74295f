// Command timer-worker fires timers and deadlines, each once and never early. Any number of them divide the shards among themselves.
package main

import (
	"context"

	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/worker"
)

type settings struct {
	Migrate bool `help:"Bring the store's schema up to this build first; otherwise an older one is refused."`
	node.Common
	node.Timers
}

func main() {
	var s settings
	worker.Main(&s, "timer-worker", "Fire timers and deadlines.", func(ctx context.Context, version string) error {
		return node.Run(ctx, node.Config{Common: s.Common, Name: "timer-worker", Version: version, Migrate: s.Migrate, Timers: &s.Timers}, nil)
	})
}
