package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/open"
)

type migrateCmd struct {
	Schema migrateSchemaCmd `cmd:"" default:"withargs" help:"Bring a store's schema up to this build; what migrate does without a further word."`
	Copy   migrateCopyCmd   `cmd:"" help:"Copy everything to another store, to move there."`
}

type migrateSchemaCmd struct {
	Store string `help:"The store: sqlite:DIR or postgres://…" required:"" placeholder:"URL"`
}

// Run brings the schema up to this build; several at once and again are fine.
func (c *migrateSchemaCmd) Run(ctx context.Context) error {
	if err := placeFor(c.Store); err != nil {
		return err
	}
	if err := open.Migrate(ctx, c.Store); err != nil {
		return err
	}
	fmt.Println("the store's schema is that of this build")
	return nil
}

type migrateCopyCmd struct {
	From string `arg:"" help:"The store to copy, which nobody may use: sqlite:DIR or postgres://…"`
	To   string `arg:"" help:"The store to copy to: one that is empty or not there, or one that the same copy was killed at."`
}

// Help implements kong.HelpProvider.
func (*migrateCopyCmd) Help() string {
	return `Stop everything that uses FROM first. FROM is only read. TO opens for nothing else until all of it is there and was read again and compared with FROM, row
by row; then point the workers at TO, and leave FROM alone. A copy that was interrupted, however that was, goes on when the same command is run again.
A password need not be written in a URL: PGPASSWORD, PGPASSFILE and ~/.pgpass are read.`
}

// Run copies, or goes on with that.
func (c *migrateCopyCmd) Run(ctx context.Context) error {
	bar := newProgress(os.Stderr)
	report, err := open.Copy(ctx, c.From, c.To, bar.show)
	bar.end()
	switch {
	case bar.began && (errors.Is(err, rendezvous.ErrUnavailable) || errors.Is(err, rendezvous.ErrCommitUnknown)):
		return fmt.Errorf("%w (run the same command again: it goes on where it was)", err)
	case err != nil:
		return err
	}
	t := table{heads: []string{"COPIED", "ROWS", "CHECKSUM"}}
	for _, kind := range backend.Kinds {
		t.add(kind, report[kind].Rows, report[kind].Sum.String()[:16])
	}
	t.print()
	fmt.Println("All is there, read again and compared. Point the workers at the copy, and do not start the old store again.")
	return nil
}
