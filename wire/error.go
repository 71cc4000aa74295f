package wire

import (
	"net/http"

	"github.com/rendezvous-events/rendezvous"
)

// ErrorBody is the body of every refused request.
type ErrorBody struct {
	Error Error `json:"error"`
}

// Error is an error of the closed set on the wire.
type Error struct {
	Code    rendezvous.Code `json:"code"`
	Message string          `json:"message"`
	Details map[string]any  `json:"details,omitempty"`
}

// ErrorOf is the wire form of err. An error outside the closed set becomes unavailable without its text, which may hold anything: the server logs it.
func ErrorOf(err error) *Error {
	if err == nil {
		return nil
	}
	e := rendezvous.AsError(err)
	return &Error{Code: e.Code, Message: e.Message, Details: e.Details}
}

// Domain is the error as the domain has it.
func (e *Error) Domain() error {
	if e == nil {
		return nil
	}
	return &rendezvous.Error{Code: e.Code, Message: e.Message, Details: e.Details}
}

// Status is the HTTP status of a code (api.md section 2).
func Status(code rendezvous.Code) int {
	switch code {
	case rendezvous.CodeInvalid:
		return http.StatusBadRequest
	case rendezvous.CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case rendezvous.CodeUnauthorized:
		return http.StatusUnauthorized
	case rendezvous.CodeNotFound:
		return http.StatusNotFound
	case rendezvous.CodeConflict, rendezvous.CodeDuplicate, rendezvous.CodeLeaseHeld, rendezvous.CodeFenced, rendezvous.CodeSealed:
		return http.StatusConflict
	case rendezvous.CodeRateLimited:
		return http.StatusTooManyRequests
	case rendezvous.CodeCorrupt:
		return http.StatusInternalServerError
	}
	return http.StatusServiceUnavailable
}
