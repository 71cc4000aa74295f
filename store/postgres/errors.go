package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// uniques are the constraints whose violation means that somebody else wrote the row meanwhile: the verb is made anew and finds it.
var uniques = map[string]struct{}{
	"workflows_pkey": {}, "runs_pkey": {}, "woken_pkey": {}, "history_pkey": {}, "history_effects": {}, "batches_pkey": {},
	"events_pkey": {}, "events_number": {}, "waits_pkey": {}, "waits_number": {}, "event_keys_pkey": {}, "wait_keys_pkey": {},
	"remnants_pkey": {}, "shard_leases_pkey": {}, "push_registrations_pkey": {}, "push_log_pkey": {}, "push_log_entries": {},
}

// translate turns an error of the driver or of the server into one of this project's. What is one already stays. SQL texts, values and rows, which an error
// of the server may quote, are left behind: of those only the code, the table and the constraint are told.
func translate(err error) error {
	var known *rendezvous.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known), errors.Is(err, backend.ErrStale), errors.Is(err, backend.ErrRetry):
		return err
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return translateServer(pg)
	}
	return translateConnection(err)
}

func translateServer(pg *pgconn.PgError) error {
	cause := serverError{pg.Code, pg.Severity, pg.TableName, pg.ConstraintName}
	switch pg.Code {
	case "40001", "40P01": // serialization failure, deadlock
		return fmt.Errorf("%w: %w", backend.ErrRetry, cause)
	case "23505": // unique violation
		if _, ok := uniques[pg.ConstraintName]; ok {
			return fmt.Errorf("%w: %w", backend.ErrStale, cause)
		}
	case "57014":
		return unavailable("the database gave a statement up after its time limit; nothing was done, try again").Because(cause)
	case "55P03":
		return unavailable("a row was locked for too long by somebody else; nothing was done, try again").Because(cause)
	case "53300":
		return unavailable("the database has no connection left; nothing was done, try again, or raise max_connections").Because(cause)
	case "53100":
		return unavailable("the database's disk is full; nothing was done").Because(cause)
	case "25006":
		return unavailable("the database is read-only (a standby?); nothing was done").Because(cause)
	case "42704": // undefined object, here a setting
		return unavailable("the database does not know a setting this build needs; PostgreSQL 14 or newer is required").Because(cause)
	case "42P01", "42703", "42883", "3F000": // undefined table, column, function, schema
		return unavailable("the schema of the database is not this build's; migrate it").Because(cause)
	}
	switch pg.Code[:min(2, len(pg.Code))] {
	case "23":
		return rendezvous.Errorf(rendezvous.CodeCorrupt, "the change breaks the law %s of the table %s; nothing was written: report this", pg.ConstraintName, pg.TableName).
			Because(cause)
	case "XX", "22": // stored data the server itself cannot read, or a value that does not fit
		return rendezvous.Errorf(rendezvous.CodeCorrupt, "the database cannot read or take a value (SQLSTATE %s); nothing was written", pg.Code).Because(cause)
	case "28", "3D": // credentials, database name
		return unavailable("the database refuses the connection (SQLSTATE %s): check user, password and database name", pg.Code).Because(cause)
	case "57", "53", "08", "58":
		return unavailable("the database is not able to serve now (SQLSTATE %s); nothing was done, try again", pg.Code).Because(cause)
	}
	return unavailable("the database refused (SQLSTATE %s); nothing was done", pg.Code).Because(cause)
}

func translateConnection(err error) error {
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unavailable("the call was given up before it was done; nothing was done").Because(err)
	case errors.As(err, &network):
		return unavailable("the database does not answer; nothing was done, try again").Because(err)
	}
	return unavailable("the connection to the database was lost; nothing was done, try again").Because(err)
}

// serverError is what may be told of an error of the server: never its message, detail or statement, which quote values.
type serverError struct{ code, severity, table, constraint string }

func (e serverError) Error() string {
	s := e.severity + " SQLSTATE " + e.code
	if e.table != "" {
		s += " on table " + e.table
	}
	if e.constraint != "" {
		s += " by " + e.constraint
	}
	return s
}

func unavailable(format string, args ...any) *rendezvous.Error {
	return rendezvous.Errorf(rendezvous.CodeUnavailable, format, args...)
}
