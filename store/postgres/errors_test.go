package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// secret stands for everything an error of the server may quote.
const secret = "s3cret-payload"

func serverFault(code, constraint string) *pgconn.PgError {
	return &pgconn.PgError{
		Severity: "ERROR", Code: code, ConstraintName: constraint, TableName: "events", Message: "bad value " + secret, Detail: "Key (id)=(" + secret + ") exists.",
		Hint: secret, Where: secret, InternalQuery: "SELECT '" + secret + "'",
	}
}

func TestTranslateErrors(t *testing.T) {
	known := rendezvous.Errorf(rendezvous.CodeSealed, "ended")
	for _, c := range []struct {
		name string
		err  error
		is   error
	}{
		{"serialization failure", serverFault("40001", ""), backend.ErrRetry},
		{"deadlock", serverFault("40P01", ""), backend.ErrRetry},
		{"a known identity", serverFault("23505", "events_pkey"), backend.ErrStale},
		{"a known opening", serverFault("23505", "history_effects"), backend.ErrStale},
		{"a unique constraint that is not ours", serverFault("23505", "somebody_elses"), rendezvous.ErrCorrupt},
		{"a broken law", serverFault("23514", "events_state"), rendezvous.ErrCorrupt},
		{"a missing value", serverFault("23502", ""), rendezvous.ErrCorrupt},
		{"a damaged page", serverFault("XX001", ""), rendezvous.ErrCorrupt},
		{"a value that does not fit", serverFault("22021", ""), rendezvous.ErrCorrupt},
		{"statement timeout", serverFault("57014", ""), rendezvous.ErrUnavailable},
		{"lock timeout", serverFault("55P03", ""), rendezvous.ErrUnavailable},
		{"too many connections", serverFault("53300", ""), rendezvous.ErrUnavailable},
		{"disk full", serverFault("53100", ""), rendezvous.ErrUnavailable},
		{"out of memory", serverFault("53200", ""), rendezvous.ErrUnavailable},
		{"administrator's shutdown", serverFault("57P01", ""), rendezvous.ErrUnavailable},
		{"starting up", serverFault("57P03", ""), rendezvous.ErrUnavailable},
		{"a standby", serverFault("25006", ""), rendezvous.ErrUnavailable},
		{"wrong password", serverFault("28P01", ""), rendezvous.ErrUnavailable},
		{"no such database", serverFault("3D000", ""), rendezvous.ErrUnavailable},
		{"too old a server", serverFault("42704", ""), rendezvous.ErrUnavailable},
		{"no such table", serverFault("42P01", ""), rendezvous.ErrUnavailable},
		{"anything else of the server", serverFault("0A000", ""), rendezvous.ErrUnavailable},
		{"cut connection", io.ErrUnexpectedEOF, rendezvous.ErrUnavailable},
		{"refused connection", &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}, rendezvous.ErrUnavailable},
		{"cancelled", context.Canceled, rendezvous.ErrUnavailable},
		{"out of time", context.DeadlineExceeded, rendezvous.ErrUnavailable},
		{"one of ours", known, rendezvous.ErrSealed},
		{"stale", backend.ErrStale, backend.ErrStale},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := translate(c.err)
			if !errors.Is(got, c.is) {
				t.Errorf("translate(%v) = %v, want %v", c.err, got, c.is)
			}
			for err := got; err != nil; err = errors.Unwrap(err) {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q tells what the server quoted", err)
				}
			}
		})
	}
	if err := translate(nil); err != nil {
		t.Errorf("translate(nil) = %v", err)
	}
}

// R8: only an answer says whether a COMMIT was carried out.
func TestTranslateErrorsOfCommit(t *testing.T) {
	fatal := serverFault("57P01", "")
	fatal.Severity = "FATAL"
	for _, c := range []struct {
		name string
		err  error
		is   error
	}{
		{"the connection ended", io.ErrUnexpectedEOF, rendezvous.ErrCommitUnknown},
		{"no answer in time", context.DeadlineExceeded, rendezvous.ErrCommitUnknown},
		{"the session was ended", fatal, rendezvous.ErrCommitUnknown},
		{"the server refused", serverFault("40001", ""), backend.ErrRetry},
		{"the server gave it up", serverFault("57014", ""), rendezvous.ErrUnavailable},
		{"it had failed before", pgx.ErrTxCommitRollback, rendezvous.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := translateCommit("append", c.err); !errors.Is(got, c.is) {
				t.Errorf("translateCommit(%v) = %v, want %v", c.err, got, c.is)
			}
		})
	}
	if err := translateCommit("append", nil); err != nil {
		t.Errorf("translateCommit(nil) = %v", err)
	}
}
