package rendezvous

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// TimerClass says what a timer's coming due means (timers.md section 1). The class decides, not the id's text.
type TimerClass string

// The closed set of classes this build has; ticks of schedules are a second step.
const (
	TimerAuthor TimerClass = "author" // a run's own timer: TimerFired
	TimerWait   TimerClass = "wait"   // the deadline of a wait: WaitTimedOut, or the answer that came in time
	TimerRun    TimerClass = "run"    // the deadline of the whole run: RunTimedOut and the seal
)

// Known reports whether c is a class.
func (c TimerClass) Known() bool { return c == TimerAuthor || c == TimerWait || c == TimerRun }

// reservedTimer begins the ids that the plane mints.
const reservedTimer = "$"

// CheckTimerID judges an author's timer id: any id but those that the plane mints (TM-11).
func CheckTimerID(field, id string) error {
	if err := CheckID(field, id); err != nil {
		return err
	}
	if strings.HasPrefix(id, reservedTimer) {
		return InvalidField(field, "begins with %q, which the plane keeps for deadlines; choose another id", reservedTimer)
	}
	return nil
}

// WaitTimerID is the id of the timer of a wait's deadline.
func WaitTimerID(run, effect string) string { return "$wait/" + timerDigest(run, effect) }

// RunTimerID is the id of the timer of a run's deadline.
func RunTimerID(run string) string { return "$run/" + timerDigest(run, "") }

// timerDigest is 32 hex digits of run and effect.
func timerDigest(run, effect string) string {
	sum := sha256.Sum256([]byte(run + "\x00" + effect))
	return hex.EncodeToString(sum[:16])
}

// MaxTimerAfter is how far ahead of its append a timer or deadline given as a duration may lie: 100 years.
const MaxTimerAfter = 100 * 365 * 24 * time.Hour

// Resolve is the instant that a fire_at or an after, in microseconds, means at now; exactly one of the two is given (TM-14). Field names are for the errors.
func Resolve(atField string, at string, afterField string, after *int64, now time.Time) (time.Time, error) {
	switch {
	case at == "" && after == nil:
		return time.Time{}, InvalidField(atField, "is missing; give %s or %s", atField, afterField)
	case at != "" && after != nil:
		return time.Time{}, InvalidField(atField, "and %s are both given; give one", afterField)
	case at != "":
		t, err := ParseInstant(atField, at)
		if err != nil {
			return t, err
		}
		return DueInstant(t), CheckInstant(atField, DueInstant(t))
	}
	if err := CheckAfter(afterField, *after); err != nil {
		return time.Time{}, err
	}
	due := now.Add(time.Duration(*after) * time.Microsecond)
	return due, CheckInstant(afterField, due)
}

// CheckAfter judges a duration in microseconds: 0..100 years.
func CheckAfter(field string, micros int64) error {
	if micros < 0 {
		return InvalidField(field, "%d is negative; give 0 or more microseconds", micros)
	}
	if most := MaxTimerAfter.Microseconds(); micros > most {
		return InvalidField(field, "%d microseconds are more than %d, 100 years", micros, most).With("limit", most).With("value", micros)
	}
	return nil
}

// CheckDeadline judges a deadline given as an instant or a duration, and answers the instant as stores keep it: rounded up.
func CheckDeadline(at time.Time, after *time.Duration) (time.Time, error) {
	switch {
	case !at.IsZero() && after != nil:
		return at, InvalidField("deadline", "and deadline_after are both given; give one")
	case after != nil:
		return at, CheckAfter("deadline_after", Micros(*after))
	}
	return DueInstant(at), CheckInstant("deadline", DueInstant(at))
}

// Micros is d in microseconds, rounded up as all that is due.
func Micros(d time.Duration) int64 {
	n := d.Microseconds()
	if time.Duration(n)*time.Microsecond < d {
		n++
	}
	return n
}
