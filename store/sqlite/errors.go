package sqlite

import (
	"context"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// translate turns an error of SQLite into one of this project's. What is one already stays. Texts of SQLite, which may quote SQL, are left behind: of those
// only the code is told.
func translate(err error) error {
	var known *rendezvous.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known), errors.Is(err, backend.ErrStale), errors.Is(err, backend.ErrRetry):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return unavailable("the call was given up before it was done; nothing was done").Because(err)
	}
	code := sqlite.ErrCode(err)
	cause := codeError{code}
	switch code {
	case sqlite.ResultConstraintUnique, sqlite.ResultConstraintPrimaryKey, sqlite.ResultConstraintRowID:
		return fmt.Errorf("%w: %w", backend.ErrStale, cause)
	case sqlite.ResultIOErrNoMem:
		return unavailable("the store has no memory left; nothing was done, try again").Because(cause)
	}
	switch code.ToPrimary() {
	case sqlite.ResultConstraint:
		return rendezvous.Errorf(rendezvous.CodeCorrupt, "the change breaks a law of its table; nothing was written: report this").Because(cause)
	case sqlite.ResultMismatch, sqlite.ResultTooBig:
		return rendezvous.Errorf(rendezvous.CodeCorrupt, "the store cannot take a value; nothing was written: report this").Because(cause)
	case sqlite.ResultCorrupt, sqlite.ResultNotADB, sqlite.ResultFormat:
		return rendezvous.Errorf(rendezvous.CodeCorrupt, "the store's file is damaged; restore a backup").Because(cause)
	case sqlite.ResultFull:
		return unavailable("the store's disk is full; nothing was done, make room and try again").Because(cause)
	case sqlite.ResultIOErr:
		return unavailable("the store's disk fails; nothing was done").Because(cause)
	case sqlite.ResultBusy, sqlite.ResultLocked, sqlite.ResultProtocol:
		return unavailable("the store's file is in somebody else's hands; nothing was done, try again").Because(cause)
	case sqlite.ResultReadOnly, sqlite.ResultPerm, sqlite.ResultCantOpen, sqlite.ResultAuth:
		return unavailable("the store's file cannot be opened or written; check its permissions").Because(cause)
	case sqlite.ResultInterrupt:
		return unavailable("the call was given up before it was done; nothing was done").Because(cause)
	}
	return unavailable("the store refused; nothing was done").Because(cause)
}

// codeError is what may be told of an error of SQLite.
type codeError struct{ code sqlite.ResultCode }

func (e codeError) Error() string { return "SQLite " + e.code.String() }

func unavailable(format string, args ...any) *rendezvous.Error {
	return rendezvous.Errorf(rendezvous.CodeUnavailable, format, args...)
}

// alive is unavailable once ctx is done: nothing was written and the caller has gone.
func alive(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return unavailable("the call was given up before it was done").Because(context.Cause(ctx))
}
