package client

import (
	"errors"
	"fmt"

	"github.com/rendezvous-events/rendezvous"
)

// What a handler meets and returns. None of them is a failure of the run.
var (
	// ErrWaiting: an answer is not there yet. The handler returns it (wrapped or not); the executor suspends the run, and calls the handler again from
	// the top when there is news.
	ErrWaiting = errors.New("client: the run waits; return this error from the handler")
	// ErrPausing is ErrWaiting for a run that somebody pauses: nothing new may be begun until it is resumed.
	ErrPausing = fmt.Errorf("client: a pause of the run is requested (%w)", ErrWaiting)
	// ErrStale is ErrWaiting for a decision made before the latest records were read: the handler is called again at once.
	ErrStale = fmt.Errorf("client: the history has grown since it was read (%w)", ErrWaiting)
	// ErrCancelled: a cancel of the run is requested. The handler cleans up, with Do if that is to be journaled, and returns it; the executor
	// concludes the run as cancelled.
	ErrCancelled = errors.New("client: a cancel of the run is requested; clean up and return this error from the handler")
)

// Failure is an end that no repetition betters, or, as Retryable, an attempt that may be made again.
//
// A function given to [Run.Do] returns one to have it journaled as the effect's outcome. A handler that returns one that is not Retryable fails its run
// with that code and reason; any other error of a handler is trouble, and the run is given to another driver.
type Failure struct {
	Code      string // a word for programs
	Reason    string // for people, at most 512 bytes, no payloads
	Retryable bool
}

// Error is the code and the reason.
func (f *Failure) Error() string { return f.Code + ": " + f.Reason }

// Is compares the code with a target of no reason, so that errors.Is(err, ErrTimedOut) holds for every failure of that code.
func (f *Failure) Is(target error) bool {
	t, ok := target.(*Failure)
	return ok && t.Code == f.Code && t.Reason == ""
}

// Failed is a Failure that no repetition betters.
func Failed(code, reason string) error { return &Failure{Code: code, Reason: reason} }

// Failures of waits and sleeps: errors.Is(err, ErrTimedOut).
var (
	ErrTimedOut       = &Failure{Code: "wait_timed_out"}
	ErrWithdrawn      = &Failure{Code: "wait_withdrawn"}
	ErrTimerCancelled = &Failure{Code: "timer_cancelled"}
)

var (
	errClosed    = errors.New("client: the client is closed")
	errStopping  = errors.New("client: the executor is stopping")
	errAbandoned = errors.New("client: the handler did not come back after its context ended")
	errExited    = errors.New("client: the handler ended its goroutine instead of returning")
	errRanOut    = rendezvous.Errorf(rendezvous.CodeFenced, "the lease ran out before it could be renewed; stop work on this run")
)

// panicked is a handler's panic.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string {
	return fmt.Sprintf("client: the handler panicked: %.256v", p.value)
}
