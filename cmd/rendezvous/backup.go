package main

import (
	"context"
	"fmt"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/open"
)

type backupCmd struct {
	Store  string `help:"The embedded store to back up; it may be in use." default:"sqlite:./rendezvous-data/store" placeholder:"URL"`
	Target string `arg:"" help:"The directory to make: it must not be there."`
}

// Help implements kong.HelpProvider.
func (*backupCmd) Help() string {
	return `The backup holds the store as it was at one moment, while whoever uses it goes on. It is a store itself: to restore it, serve it, or a copy of it, by
rendezvous up --store sqlite:TARGET. Streams of NATS need no backup. A PostgreSQL database is backed up by its own tools.`
}

// Run backs up, and checks what it wrote.
func (c *backupCmd) Run(ctx context.Context) error {
	if err := parentOf("target", c.Target); err != nil {
		return err
	}
	if err := open.Backup(ctx, c.Store, c.Target); err != nil {
		return err
	}
	faults, err := open.Check(ctx, "sqlite:"+c.Target)
	if err != nil {
		return fmt.Errorf("%s is written, but could not be checked: %w", c.Target, err)
	}
	for _, fault := range faults {
		fmt.Println("  " + fault)
	}
	if len(faults) > 0 {
		return rendezvous.Errorf(rendezvous.CodeCorrupt, "%s is written, but what was backed up is damaged: see above", c.Target)
	}
	fmt.Printf("backed up to %s, and checked: it is sound\n", c.Target)
	return nil
}
