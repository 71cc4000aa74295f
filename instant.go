package rendezvous

import (
	"regexp"
	"strings"
	"time"
)

// Instants are UTC, whole microseconds, years 1..9999 (history.md section 1). The zero time.Time means none, so the one instant it is, the very start of
// year 1, is nobody's: one that is written down is kept as the microsecond behind it ([ParseInstant]).

// Instant rounds t down to the microsecond, for everything that is not due-like.
func Instant(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Round(0).Truncate(time.Microsecond)
}

// DueInstant rounds t up to the microsecond, for what is due: deadlines, expiries, next attempts.
func DueInstant(t time.Time) time.Time {
	down := Instant(t)
	if down.Before(t) {
		return down.Add(time.Microsecond)
	}
	return down
}

// CheckInstant refuses years outside 1..9999.
func CheckInstant(field string, t time.Time) error {
	if y := t.UTC().Year(); !t.IsZero() && (y < 1 || y > 9999) {
		return InvalidField(field, "year %d is outside 1..9999", y).With("limit", "years 1..9999").With("value", y)
	}
	return nil
}

// rfc3339 is the form of a time; that its numbers are those of a calendar and a clock is for time.Parse to judge, which is lenient in all else.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// ParseInstant reads a time as RFC 3339 writes it, and nothing else; the letters T and Z are in either case. A leap second is refused. The time is never
// the zero one: whoever wrote the very start of year 1 did not write nothing.
func ParseInstant(field, text string) (time.Time, error) {
	text = strings.ToUpper(text)
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || !rfc3339.MatchString(text) {
		return time.Time{}, InvalidField(field, "is not an RFC 3339 time, such as 2026-01-31T12:00:00Z")
	}
	t = finer(t.UTC(), text)
	if t.IsZero() {
		t = t.Add(time.Microsecond)
	}
	return t, CheckInstant(field, t)
}

// finer keeps of digits below the nanosecond, which time.Time has no room for, that there were some: for what rounds up ([DueInstant]).
func finer(t time.Time, text string) time.Time {
	const seconds, nanos = len("2006-01-02T15:04:05"), len(".000000000")
	fraction := text[seconds:]
	fraction = fraction[:strings.IndexAny(fraction, "Z+-")]
	if t.Nanosecond()%int(time.Microsecond) != 0 || len(fraction) <= nanos || strings.Trim(fraction[nanos:], "0") == "" {
		return t
	}
	return t.Add(1)
}

// FormatInstant is the wire form: RFC 3339 with microseconds, UTC.
func FormatInstant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00") }
