// Command push-worker delivers push registrations: it POSTs the records of runs to the URLs that follow them, in order and at least once. Any number of them
// share the work.
package main

import (
	"context"

	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/worker"
)

type settings struct {
	Migrate bool `help:"Bring the store's schema up to this build first; otherwise an older one is refused."`
	node.Common
	node.Push
	node.Patience
	node.Targets
}

func main() {
	var s settings
	worker.Main(&s, "push-worker", "Deliver push registrations.", func(ctx context.Context, version string) error {
		return node.Run(ctx, node.Config{Common: s.Common, Name: "push-worker", Version: version, Migrate: s.Migrate, Push: &s.Push, Patience: s.Patience, Targets: s.Targets}, nil)
	})
}
