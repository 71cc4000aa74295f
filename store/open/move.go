package open

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/move"
	"github.com/rendezvous-events/rendezvous/store/postgres"
	"github.com/rendezvous-events/rendezvous/store/sqlite"
)

// embedded is the directory of an SQLite store; otherwise is what to do with one of PostgreSQL.
func embedded(url, otherwise string) (string, error) {
	which, err := kind(url)
	switch {
	case err != nil:
		return "", err
	case which == kindMemory:
		return "", rendezvous.InvalidField("store", "memory: keeps nothing beyond its process")
	case which == kindPostgres:
		return "", rendezvous.InvalidField("store", "%s", otherwise)
	}
	return directory(url), nil
}

// Backup writes the embedded store at url, which may be in use, into a new directory, which is a store itself (package sqlite).
func Backup(ctx context.Context, url, target string) error {
	dir, err := embedded(url, "a PostgreSQL database is backed up by its own tools: pg_dump, or continuous archiving")
	if err != nil {
		return err
	}
	return sqlite.Backup(ctx, dir, target)
}

// Check answers what is wrong with the embedded store at url, which may be in use; nothing for a sound one (package sqlite).
func Check(ctx context.Context, url string) ([]string, error) {
	dir, err := embedded(url, "a PostgreSQL database is checked by its own tools: pg_amcheck")
	if err != nil {
		return nil, err
	}
	return sqlite.Check(ctx, dir)
}

// Copy copies everything from one durable store to another, or goes on with that (package move). The schema of the target is made where it is missing.
func Copy(ctx context.Context, from, to string, watch func(move.Progress)) (report move.Report, err error) {
	o := move.Options{Watch: watch}
	if o.From, err = name("from", from); err != nil {
		return nil, err
	}
	if o.To, err = name("to", to); err != nil {
		return nil, err
	}
	source, err := openSource(ctx, from)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := openTarget(ctx, to, source.Shards())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	return move.Copy(ctx, source, target, o)
}

// name is what a store is called, wherever it is called from and without its secrets.
func name(field, url string) (string, error) {
	which, err := kind(url)
	switch {
	case err != nil:
		return "", err
	case which == kindPostgres:
		return postgres.Name(url)
	case which == kindMemory:
		return "", rendezvous.InvalidField(field, "memory: keeps nothing beyond its process; give sqlite:DIR or postgres://user@host/database")
	}
	dir, err := filepath.Abs(directory(url))
	if err != nil {
		return "", rendezvous.InvalidField(field, "the directory has no place: %v", err)
	}
	return kindSQLite + ":" + dir, nil
}

// openSource opens a store that is there already.
func openSource(ctx context.Context, url string) (backend.Backend, error) {
	if Kind(url) == kindSQLite && !sqlite.Exists(directory(url)) {
		return nil, rendezvous.InvalidField("from", "there is no store in %s", directory(url))
	}
	return openBackend(ctx, url, Options{Clock: clock.System})
}

// openTarget opens a store to copy to, and makes it where it is missing.
func openTarget(ctx context.Context, url string, shards int) (backend.Backend, error) {
	if Kind(url) == kindSQLite {
		b, err := sqlite.Open(ctx, sqlite.Config{Dir: directory(url), Shards: shards, Migrate: true, Copying: true})
		if err != nil {
			return nil, err // not b: a nil pointer in an interface is not nil
		}
		return b, nil
	}
	b, err := postgres.Open(ctx, postgres.Config{URL: url, Shards: shards, Migrate: true, Copying: true})
	if err != nil {
		return nil, err
	}
	return b, nil
}
