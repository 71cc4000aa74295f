package rendezvous_test

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rendezvous-events/rendezvous"
)

// FuzzCanonicalJSON: what is accepted is JSON, is the canonical form of itself, and means what was sent, so that a digest is of the meaning.
func FuzzCanonicalJSON(f *testing.F) {
	for _, seed := range []string{`{"b":1,"a":[1e3,"\u0041",null]}`, `{"a":1,"a":2}`, `"\ud800"`, `{"n":1.00}`, ` [ ] `, `{}`, `{"a":{"z":1,"b":"<&>"}}`, "\"\xff\"", `1 2`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := rendezvous.CanonicalJSON(raw)
		if err != nil {
			return
		}
		if !json.Valid(got) || !utf8.Valid(got) {
			t.Fatalf("%q became %q", raw, got)
		}
		again, err := rendezvous.CanonicalJSON(got)
		if err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%q became %q, and that %q: %v", raw, got, again, err)
		}
		var was, is any
		if json.Unmarshal(raw, &was) != nil || json.Unmarshal(got, &is) != nil {
			return // a number that no float holds
		}
		a, errA := json.Marshal(was)
		b, errB := json.Marshal(is)
		if errA == nil && errB == nil && !bytes.Equal(a, b) {
			t.Fatalf("%q became %q, which means something else", raw, got)
		}
	})
}

// FuzzParseInstant: what is accepted is an instant of the years 1 to 9999 that is written and read back.
func FuzzParseInstant(f *testing.F) {
	for _, seed := range []string{
		"2026-11-29T08:00:00Z", "2026-11-29t08:00:00.123456789+05:30", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "2016-12-31T23:59:60Z",
		"2026-12-01T1:00:00Z", "2026-12-01T00:00:00,5Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", "",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := rendezvous.ParseInstant("at", text)
		if err != nil {
			if rendezvous.CodeOf(err) != rendezvous.CodeInvalid {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if got.IsZero() || got.Location() != time.UTC {
			t.Fatalf("%q is %v", text, got)
		}
		again, err := rendezvous.ParseInstant("at", got.Format(time.RFC3339Nano))
		if y := got.Year(); y >= 1 && y <= 9999 && (err != nil || !again.Equal(got)) {
			t.Fatalf("%q is %v, read back as %v: %v", text, got, again, err)
		}
	})
}
