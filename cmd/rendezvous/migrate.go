package main

import (
	"context"
	"fmt"

	"github.com/rendezvous-events/rendezvous/store/open"
)

type migrateCmd struct {
	Store string `help:"The store: postgres://…" required:"" placeholder:"URL"`
}

// Run brings the schema up to this build; several at once and again are fine.
func (c *migrateCmd) Run(ctx context.Context) error {
	if err := open.Migrate(ctx, c.Store); err != nil {
		return err
	}
	fmt.Println("the store's schema is that of this build")
	return nil
}
