// Command delivery-worker makes events meet the runs that wait for them.
package main

import (
	"context"

	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/worker"
)

type settings struct {
	Migrate bool `help:"Bring the store's schema up to this build first; otherwise an older one is refused."`
	node.Common
}

func main() {
	var s settings
	worker.Main(&s, "delivery-worker", "Make events meet the runs that wait for them.", func(ctx context.Context, version string) error {
		return node.Run(ctx, node.Config{Common: s.Common, Name: "delivery-worker", Version: version, Migrate: s.Migrate, Delivery: true}, nil)
	})
}
