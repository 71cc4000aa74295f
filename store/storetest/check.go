package storetest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rendezvous-events/rendezvous"
)

// must answers the value of a call that has to succeed: must(s.Ping(ctx))(t, "ping").
func must[T any](v T, err error) func(t testing.TB, what string) T {
	return func(t testing.TB, what string) T {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return v
	}
}

// done fails the test when a call that has to succeed did not.
func done(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// eq fails the test when got is not want; nil and empty slices are one.
func eq[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateErrors()); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// code fails the test unless err is of that code and its details say so: code(t, "append", err, rendezvous.CodeConflict, "head", 3). Numbers compare by
// value, whatever their type.
func code(t testing.TB, what string, err error, want rendezvous.Code, details ...any) {
	t.Helper()
	if got := rendezvous.CodeOf(err); got != want {
		t.Fatalf("%s: got %v, want code %s", what, err, want)
	}
	for i := 0; i+1 < len(details); i += 2 {
		got := detail(err, details[i].(string))
		if number(got) != number(details[i+1]) {
			t.Fatalf("%s: detail %v is %v, want %v (%v)", what, details[i], got, details[i+1], err)
		}
	}
}

// detail is one of err's details, nil when there is none of that name.
func detail(err error, name string) any {
	var e *rendezvous.Error
	if !errors.As(err, &e) {
		return nil
	}
	return e.Details[name]
}

// number makes integers one type, so that they compare.
func number(v any) any {
	switch n := v.(type) {
	case int:
		return int64(n)
	case int32:
		return int64(n)
	}
	return v
}
