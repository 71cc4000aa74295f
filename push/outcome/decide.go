package outcome

import (
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// Defaults of the settings that are not a registration's.
const (
	DefaultMaxAge    = 72 * time.Hour // push.max_age
	DefaultAdviceCap = 24 * time.Hour // push.advice_cap
)

// Limits bound how often and how long a message is tried.
type Limits struct {
	MaxAttempts   int
	OnRejectLimit int
	MaxAge        time.Duration
}

// State is what a registration's row says before the attempt's outcome is counted.
type State struct {
	Attempts     int       // charged failures in a row
	Rejects      int       // of them, rejections in a row of the message that was sent
	FailingSince time.Time // zero: the last outcome was an acceptance
}

// Result is what an attempt came to.
type Result struct {
	Class  rendezvous.PushClass
	At     time.Time             // when it was known
	Park   rendezvous.ParkReason // of class config: why the registration is parked
	Advice Advice                // of an answer that was neither an acceptance nor 410
}

// Action is what is done with a registration.
type Action int

// The four actions.
const (
	Advance Action = iota // past the message
	Retry                 // at Decision.Next; one more failure is counted
	Park                  // for Decision.Reason; one more failure is counted
	Release               // until Decision.Next; nothing is counted
)

// Decision is what follows from an attempt.
type Decision struct {
	Action  Action
	Next    time.Time // of Retry and Release; whole milliseconds from the instant of the result
	Reason  rendezvous.ParkReason
	Rejects int // rejections of this message in a row, now
}

// Random gives numbers uniform in [0, 1).
type Random func() float64

const (
	widest   = time.Hour
	shortest = 100 * time.Millisecond
)

// Decide applies the contract's tables. It draws from random once for a wait, and once more where there was advice, so that the same source gives the same schedule.
func Decide(s State, r Result, limits Limits, random Random) Decision {
	switch {
	case r.Class == rendezvous.ClassAccepted:
		return Decision{Action: Advance}
	case !Charged(r.Class):
		return Decision{Action: Release, Next: next(r.At, ceil(time.Second+scale(random(), 4*time.Second))), Rejects: s.Rejects}
	}
	rejects := 0
	if r.Class == rendezvous.ClassRejected {
		rejects = add(s.Rejects)
	}
	if reason := park(s, r, limits, rejects); reason != "" {
		return Decision{Action: Park, Reason: reason, Rejects: rejects}
	}
	return Decision{Action: Retry, Next: next(r.At, wait(add(s.Attempts), r, random)), Rejects: rejects}
}

// park is why a registration is parked with this failure, "" when it is tried again.
func park(s State, r Result, limits Limits, rejects int) rendezvous.ParkReason {
	switch {
	case r.Class == rendezvous.ClassGone:
		return rendezvous.ParkGone
	case r.Class == rendezvous.ClassConfig:
		return r.Park
	case r.Class == rendezvous.ClassRejected && rejects >= limits.OnRejectLimit:
		return rendezvous.ParkRejected
	case add(s.Attempts) >= limits.MaxAttempts && r.Class == rendezvous.ClassFault:
		return rendezvous.ParkFault
	case add(s.Attempts) >= limits.MaxAttempts:
		return rendezvous.ParkExhausted
	case !s.FailingSince.IsZero() && r.At.Sub(s.FailingSince) > limits.MaxAge:
		return rendezvous.ParkExpired
	}
	return ""
}

// wait is how long the n-th failure in a row is waited out: full jitter, never less than the class's floor or than the receiver asked for (PU-61, PU-63).
func wait(n int, r Result, random Random) time.Duration {
	d := max(Backoff(n, random()), floor(r.Class))
	if r.Advice.Wait > 0 {
		d = max(d, r.Advice.Wait+scale(random(), min(r.Advice.Wait/10, 30*time.Second)))
	}
	return ceil(d)
}

// Backoff is the wait behind the n-th failure in a row by itself: between 100 ms and a window of 1 s that doubles up to 1 h, as u says, which is in [0, 1).
func Backoff(n int, u float64) time.Duration {
	window := widest
	if n < 13 { // 2^12 s is more than an hour
		window = min(time.Second<<max(n-1, 0), widest)
	}
	return shortest + scale(u, window-shortest)
}

func scale(u float64, d time.Duration) time.Duration { return time.Duration(u * float64(d)) }

// next is a wait behind an instant, as the store keeps it: so what is logged is what is stored.
func next(at time.Time, wait time.Duration) time.Time { return rendezvous.DueInstant(at.Add(wait)) }

// most is where counts stop.
const most = 1<<31 - 1

func add(n int) int { return min(n, most-1) + 1 }
