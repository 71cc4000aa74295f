package sqlite

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitemigration"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/rendezvous-events/rendezvous"
)

//go:embed migrations
var migrations embed.FS

// applicationID marks a database as one of this project: "rdvs" in ASCII.
const applicationID = 0x72647673

// schema is the migrations of this build, in the order of their names. Each runs in a transaction of its own; how many ran stands in user_version.
func schema() (sqlitemigration.Schema, error) {
	s := sqlitemigration.Schema{AppID: applicationID}
	names, err := fs.Glob(migrations, "migrations/*.sql") // sorted
	if err != nil {
		return s, fmt.Errorf("store/sqlite: cannot read the migrations of this build: %w", err)
	}
	for _, name := range names {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return s, fmt.Errorf("store/sqlite: cannot read the migrations of this build: %w", err)
		}
		s.Migrations = append(s.Migrations, string(text))
	}
	return s, nil
}

// migrate brings the schema to this build's version where that is allowed; a new file has none and gets it in any case.
func migrate(ctx context.Context, conn *sqlite.Conn, allowed bool) error {
	s, err := schema()
	if err != nil {
		return err
	}
	id, err := pragma(conn, "application_id")
	if err != nil {
		return err
	}
	stored, err := pragma(conn, "user_version")
	if err != nil {
		return err
	}
	empty, err := isEmpty(conn)
	if err != nil {
		return err
	}
	build := len(s.Migrations)
	switch {
	case !empty && id != applicationID:
		return rendezvous.InvalidField("store", "%s in the directory is another program's database", databaseFile)
	case stored > build:
		return unavailable("the schema of the store has version %d and this build knows version %d; run a newer build", stored, build).
			With("stored", stored).With("build", build)
	case stored == build && !empty:
		return nil
	case !empty && !allowed:
		return unavailable("the schema of the store has version %d and this build needs version %d; migrate it first", stored, build).
			With("stored", stored).With("build", build)
	}
	return translate(sqlitemigration.Migrate(ctx, conn, s))
}

func pragma(conn *sqlite.Conn, name string) (int, error) {
	var value int
	err := sqlitex.ExecuteTransient(conn, "PRAGMA "+name, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		value = stmt.ColumnInt(0)
		return nil
	}})
	return value, translate(err)
}

func isEmpty(conn *sqlite.Conn) (bool, error) {
	tables := 0
	err := sqlitex.ExecuteTransient(conn, "SELECT count(*) FROM sqlite_schema", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		tables = stmt.ColumnInt(0)
		return nil
	}})
	return tables == 0, translate(err)
}

// Migrate brings the schema of the store in dir to this build's version. It does nothing where it is there already.
func Migrate(ctx context.Context, dir string) error {
	b, err := Open(ctx, Config{Dir: dir, Migrate: true})
	if err != nil {
		return err
	}
	return b.Close()
}
