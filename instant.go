package rendezvous

import "time"

// Instants are UTC, whole microseconds, years 1..9999 (history.md section 1). The zero time.Time means none.

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
		return InvalidField(field, "year %d is outside 1..9999", y)
	}
	return nil
}

// FormatInstant is the wire form: RFC 3339 with microseconds, UTC.
func FormatInstant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00") }
