package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/rendezvous-events/rendezvous"
)

//go:embed migrations
var migrations embed.FS

// versionTable is where the schema's version stands.
const versionTable = "rdv_migrations"

// Migrate brings the schema at url to this build's version. It does nothing where it is there already, and several processes may call it at once: one
// migrates, the others wait for it. A schema newer than the build is refused and left alone.
func Migrate(ctx context.Context, url string) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return invalidURL(err)
	}
	return migrate(ctx, config)
}

func migrate(ctx context.Context, config *pgx.ConnConfig) error {
	db := stdlib.OpenDB(*config)
	defer db.Close() // what was migrated is committed
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return fmt.Errorf("store/postgres: cannot read the migrations of this build: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName(versionTable), goose.WithSessionLocker(migrationLock{}))
	if err != nil {
		return fmt.Errorf("store/postgres: cannot prepare the migrations of this build: %w", err)
	}
	if err := checkEncoding(ctx, db); err != nil {
		return err
	}
	stored, err := provider.GetDBVersion(ctx)
	if err != nil {
		return translate(err)
	}
	if err := checkVersion(stored, true); err != nil || stored == buildVersion() {
		return err
	}
	if _, err := provider.Up(ctx); err != nil {
		var partial *goose.PartialError
		if errors.As(err, &partial) {
			return unavailable("migration %s failed and was undone; see the server's log", path.Base(partial.Failed.Source.Path)).Because(translate(partial.Err))
		}
		return translate(err)
	}
	return nil
}

// checkEncoding refuses a database in which not every text can be stored, before anything is made in it.
func checkEncoding(ctx context.Context, db *sql.DB) error {
	var encoding string
	if err := db.QueryRowContext(ctx, "SHOW server_encoding").Scan(&encoding); err != nil {
		return translate(err)
	}
	if encoding != "UTF8" {
		return rendezvous.InvalidField("store", "the encoding of the database is %s; create one with encoding UTF8", encoding).With("value", encoding)
	}
	return nil
}

// migrationLock lets one process migrate at a time. It belongs to the session, so the server gives it up when the process dies; whoever waits is woken at
// once, which goose's own lock, a poll, does not do.
type migrationLock struct{}

var _ lock.SessionLocker = migrationLock{}

// SessionLock implements [lock.SessionLocker].
func (migrationLock) SessionLock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock(hashtextextended('rdv_migrations', 0))")
	return err
}

// SessionUnlock implements [lock.SessionLocker].
func (migrationLock) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "SELECT pg_advisory_unlock(hashtextextended('rdv_migrations', 0))")
	return err
}

// buildVersion is the version of the schema this build is made for: the number of its last migration.
func buildVersion() int64 {
	entries, err := migrations.ReadDir("migrations")
	if err != nil {
		panic("store/postgres: embedded migrations: " + err.Error())
	}
	var last int64
	for _, e := range entries {
		number, _, _ := strings.Cut(e.Name(), "_")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			panic("store/postgres: embedded migration " + e.Name() + " has no number")
		}
		last = max(last, n)
	}
	return last
}

// checkVersion judges the schema's version: a newer one is never this build's to use (HI-7). An older one is good only where it is to be migrated.
func checkVersion(stored int64, migrating bool) error {
	build := buildVersion()
	switch {
	case stored > build:
		return unavailable("the schema of the store has version %d and this build knows version %d; run a newer build", stored, build).
			With("stored", stored).With("build", build)
	case stored < build && !migrating:
		return unavailable("the schema of the store has version %d and this build needs version %d; migrate it first", stored, build).
			With("stored", stored).With("build", build)
	}
	return nil
}
