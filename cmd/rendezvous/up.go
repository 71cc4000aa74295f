package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/worker"
	"github.com/rendezvous-events/rendezvous/store/open"
)

// upCmd serves every role in one process.
type upCmd struct {
	node.Common
	node.Door
	node.Sweep
	node.Timers
	node.Push
	node.Patience
	node.Targets
	Data       string `help:"Folder for what the process keeps: the embedded store and NATS streams." default:"./rendezvous-data" placeholder:"DIR"`
	NATSListen string `name:"nats-listen" help:"Address of the embedded NATS server; empty: this process only." default:"127.0.0.1:4222" placeholder:"HOST:PORT"`
}

// Run serves until a signal.
func (c *upCmd) Run(ctx context.Context) error {
	if err := placeFor(c.Store); err != nil {
		return err
	}
	fresh := !open.Exists(c.config().Store)
	return node.Run(ctx, c.config(), func(n *node.Node) { c.welcome(ctx, n, fresh) })
}

func (c *upCmd) config() node.Config {
	cfg := node.Config{Common: c.Common, Name: "up", Version: worker.Version(), Migrate: true, Ingest: &c.Door, Delivery: true, Sweep: &c.Sweep, Timers: &c.Timers, Push: &c.Push, Patience: c.Patience, Targets: c.Targets}
	if cfg.Store == "" {
		cfg.Store = "sqlite:" + filepath.Join(c.Data, "store")
	}
	if cfg.NATS.URL == "" {
		cfg.EmbeddedDir, cfg.EmbeddedListen = filepath.Join(c.Data, "nats"), c.NATSListen
	}
	return cfg
}

// welcome tells a newcomer what to try next.
func (c *upCmd) welcome(ctx context.Context, n *node.Node, fresh bool) {
	server := ""
	if n.HTTP != "127.0.0.1:7480" {
		server = " --server http://" + n.HTTP
	}
	name := "1"
	if !fresh { // what was tried before is in the store
		name = clock.System.Now().Format("150405")
	}
	metrics := ""
	if n.Admin != "" && (n.Admin != "127.0.0.1:7481" || n.HTTP != "127.0.0.1:7480") {
		metrics = " --metrics http://" + n.Admin
	}
	rdv, kind := os.Args[0]+" ", open.Kind(c.config().Store)
	var b strings.Builder
	fmt.Fprintf(&b, "\nRendezvous is up.  API http://%s   health and metrics http://%s   NATS %s   store %s\n", n.HTTP, n.Admin, n.NATSURL, kind)
	switch kind {
	case "memory":
		b.WriteString("The store is memory: what it holds is gone when this process ends (without --store it is kept).\n")
	case "sqlite":
		fmt.Fprintf(&b, "All it holds is in %s, and is there again at the next start.\n", holds(ctx, c.config().Store, fresh))
	}
	b.WriteString("\nTry it in another terminal. A run waits, an event comes, they meet:\n\n")
	if c.Tokens != "" {
		fmt.Fprintf(&b, "  export RENDEZVOUS_TOKEN=... RENDEZVOUS_TENANT=...   # of a token in %s\n", c.Tokens)
	}
	fmt.Fprintf(&b, `  %[1]srun start order --workflow-id order-%[3]s --run-id run-%[3]s%[2]s
  %[1]swait register run-%[3]s payment --type payment.received --key order=order-%[3]s%[2]s
  %[1]sevent put --type payment.received --source urn:bank --id p-%[3]s --key order=order-%[3]s --data '{"amount":12}'%[2]s
  %[1]srun history order-%[3]s%[2]s

The other way round, the event first and then the wait, ends the same:

  %[1]sevent put --type parcel.delivered --source urn:post --id d-%[3]s --key order=order-%[3]s%[2]s
  %[1]swait register run-%[3]s delivery --type parcel.delivered --key order=order-%[3]s%[2]s

Watch it live: %[1]stop%[2]s%[4]s
See also: %[1]s--help, %[1]sdemo. Stop with Ctrl-C.

`, rdv, server, name, metrics)
	fmt.Print(b.String())
}
