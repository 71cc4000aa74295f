package rendezvous

import (
	"errors"
	"fmt"
	"maps"
)

// Code is the stable word of an error: what a program decides on, the same in Go and on the wire (design section 7).
type Code string

// The closed set of codes.
const (
	CodeInvalid       Code = "invalid"        // the request can never work as it is
	CodeNotFound      Code = "not_found"      // nothing of that name in this tenant
	CodeConflict      Code = "conflict"       // what is stored stands against it; details say what and the current value
	CodeDuplicate     Code = "duplicate"      // that effect attempt is taken
	CodeFenced        Code = "fenced"         // the epoch or token is no longer good: stop work
	CodeLeaseHeld     Code = "lease_held"     // somebody drives the run now
	CodeSealed        Code = "sealed"         // the run is concluded
	CodeUnavailable   Code = "unavailable"    // nothing was done; try again later
	CodeCommitUnknown Code = "commit_unknown" // it may or may not have been done; repeat the same call
	CodeCorrupt       Code = "corrupt"        // a stored value does not decode
	CodeUnauthorized  Code = "unauthorized"   // the caller may not do this
	CodeTooLarge      Code = "too_large"      // over a limit
	CodeRateLimited   Code = "rate_limited"   // too many of them now
)

// Sentinels for errors.Is: errors.Is(err, ErrConflict) holds for every error with that code.
var (
	ErrInvalid       = &Error{Code: CodeInvalid}
	ErrNotFound      = &Error{Code: CodeNotFound}
	ErrConflict      = &Error{Code: CodeConflict}
	ErrDuplicate     = &Error{Code: CodeDuplicate}
	ErrFenced        = &Error{Code: CodeFenced}
	ErrLeaseHeld     = &Error{Code: CodeLeaseHeld}
	ErrSealed        = &Error{Code: CodeSealed}
	ErrUnavailable   = &Error{Code: CodeUnavailable}
	ErrCommitUnknown = &Error{Code: CodeCommitUnknown}
	ErrCorrupt       = &Error{Code: CodeCorrupt}
	ErrUnauthorized  = &Error{Code: CodeUnauthorized}
	ErrTooLarge      = &Error{Code: CodeTooLarge}
	ErrRateLimited   = &Error{Code: CodeRateLimited}
)

// Error is the one error type that crosses the plane's borders. Message says what happened and what to do next; neither it nor Details
// ever holds a payload or a secret.
type Error struct {
	Code    Code
	Message string
	// Details carries the facts a program may want, in snake_case: field, limit, value, what, current, owner, remaining_ms, epoch,
	// expected, head, seq, outcome, run, tenant. Values are strings, numbers and booleans.
	Details map[string]any
	cause   error
}

// Error is the code and the message; details and cause are not in it.
func (e *Error) Error() string {
	if e.Message == "" {
		return string(e.Code)
	}
	return string(e.Code) + ": " + e.Message
}

// Is reports whether target is the sentinel of the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && t.Message == "" && t.Details == nil
}

// Unwrap is the cause, for logs of this process; it never crosses the wire.
func (e *Error) Unwrap() error { return e.cause }

// With adds one detail and answers a new error.
func (e *Error) With(name string, value any) *Error {
	c := *e
	c.Details = maps.Clone(e.Details)
	if c.Details == nil {
		c.Details = map[string]any{}
	}
	c.Details[name] = value
	return &c
}

// Because keeps cause for logs and answers a new error.
func (e *Error) Because(cause error) *Error {
	c := *e
	c.cause = cause
	return &c
}

// Errorf makes an error of that code.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// InvalidField says that a field's value can never be accepted.
func InvalidField(field, format string, args ...any) *Error {
	return Errorf(CodeInvalid, "%s: %s", field, fmt.Sprintf(format, args...)).With("field", field)
}

// NotBuilt refuses by name a field or verb whose role this build does not have.
func NotBuilt(field string) *Error {
	return InvalidField(field, "is not supported by this build; leave it out")
}

// OverLimit says that a field is over its limit, with both numbers.
func OverLimit(field string, limit, value int) *Error {
	return Errorf(CodeTooLarge, "%s: %d is over the limit of %d", field, value, limit).
		With("field", field).With("limit", limit).With("value", value)
}

// CodeOf is the code of err, or "" for nil and for foreign errors.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// AsError is err as an error of the closed set. A foreign error becomes unavailable without its text, which may hold anything.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Errorf(CodeUnavailable, "something failed inside; nothing is known to be done, try again").Because(err)
}
