package rendezvous_test

import (
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

func TestATimeIsReadAsRFC3339WritesItAndNothingElse(t *testing.T) {
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"2026-12-01T12:00:00Z":                      noon,
		"2026-12-01t12:00:00z":                      noon,
		"2026-12-01t12:00:00.5z":                    noon.Add(time.Second / 2),
		"2026-12-01T13:30:00+01:30":                 noon,
		"2026-12-01T12:00:00-00:00":                 noon,
		"2026-12-01T12:00:00.0000001Z":              noon.Add(100),
		"2026-12-01T12:00:00.00000000000001Z":       noon.Add(1), // there was something, for what rounds up
		"2026-12-01T12:00:00.00000099999999+00:00":  noon.Add(999),
		"2026-12-01T12:00:00.000000000000000-00:00": noon,
		"2026-12-01T14:00:00.0000000+02:00":         noon, // the offset is no part of the fraction
		"2026-12-01T17:45:00.1234+05:45":            noon.Add(123_400_000),
		"2026-12-01T17:30:00.12345+05:30":           noon.Add(123_450_000),
		"2026-12-01T13:20:00.00000000+01:20":        noon,
		"0001-01-01T00:00:00Z":                      time.Time{}.Add(time.Microsecond),
		"9999-12-31T23:59:59.999999Z":               time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
	} {
		if got, err := rendezvous.ParseInstant("at", text); err != nil || got != want {
			t.Errorf("%s is read as %s (%v), want %s", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "yesterday", "2026-12-01", "2026-12-01T12:00:00", "2026-12-01 12:00:00Z", "2026-12-01T12:00Z", "2026-12-01T1:00:00Z", "2026-12-01T12:00:00,5Z",
		"2026-12-01T12:00:00.Z", "2026-12-01T24:00:00Z", "2026-12-01T23:59:60Z", "2026-02-30T12:00:00Z", "2026-12-01T12:00:00+24:00", "2026-12-01T12:00:00+01:60",
		"2026-12-01T12:00:00+0100", "2026-12-01T12:00:00 Z", "2026-12-01T12:00:00Zz", "2026-12-01T12:00:00ZZ", "12026-12-01T12:00:00Z", "0001-01-01T00:00:00+00:01", "0000-12-31T23:59:59Z",
		"9999-12-31T23:59:59-00:01",
	} {
		if got, err := rendezvous.ParseInstant("at", text); rendezvous.CodeOf(err) != rendezvous.CodeInvalid {
			t.Errorf("%q is read as %s (%v), want invalid", text, got, err)
		}
	}
}
