package client

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
)

// Retry bounds how a call is tried again after unavailable, commit_unknown, rate_limited or a broken connection. Zero fields take the defaults.
type Retry struct {
	First   time.Duration // pause before the second try (50 ms); it doubles, and half of each pause is random
	Most    time.Duration // longest pause (5 s)
	Elapsed time.Duration // a try that would begin later than this after the first is not made (1 min); negative: for as long as the context lasts
	Tries   int           // most tries; 0: no limit; 1: no repetition
}

func (r Retry) withDefaults() Retry {
	if r.First <= 0 {
		r.First = 50 * time.Millisecond
	}
	if r.Most <= 0 {
		r.Most = 5 * time.Second
	}
	if r.Elapsed == 0 {
		r.Elapsed = time.Minute
	}
	return r
}

// pause before the n-th repetition (from 1), and not shorter than what the server asked for.
func (r Retry) pause(n int, asked time.Duration, jitter func() float64) time.Duration {
	d := float64(r.First) * math.Pow(2, float64(n-1))
	d = min(d, float64(r.Most))
	return max(asked, time.Duration(d/2+d/2*jitter()))
}

// retryDetail is where a transport leaves the server's Retry-After, in milliseconds.
const retryDetail = "retry_after_ms"

// Retryable reports whether the same call may succeed later: unavailable, commit_unknown, rate_limited. A client's own calls were tried again already.
func Retryable(err error) bool {
	return errors.Is(err, rendezvous.ErrUnavailable) || errors.Is(err, rendezvous.ErrCommitUnknown) || errors.Is(err, rendezvous.ErrRateLimited)
}

// retried makes one call of one or more tries. read says that the call changes nothing.
func retried[T any](ctx context.Context, o Options, read bool, try func(ctx context.Context) (T, error)) (T, error) {
	start := o.Clock.Now()
	unknown := false // an earlier try may have been done
	for n := 1; ; n++ {
		got, err := tryOnce(ctx, o, read, try)
		if err == nil || !Retryable(err) {
			return got, err
		}
		unknown = unknown || errors.Is(err, rendezvous.ErrCommitUnknown)
		pause := o.Retry.pause(n, askedPause(err), o.Jitter)
		late := o.Retry.Elapsed > 0 && o.Clock.Now().Sub(start)+pause > o.Retry.Elapsed
		if late || n == o.Retry.Tries || clock.Sleep(ctx, o.Clock, pause) != nil {
			return got, final(ctx, err, unknown)
		}
	}
}

// tryOnce bounds one try by the timeout.
func tryOnce[T any](ctx context.Context, o Options, read bool, try func(ctx context.Context) (T, error)) (T, error) {
	if ctx.Err() != nil {
		var none T
		return none, interrupted(ctx)
	}
	trying, cancel := clock.WithTimeout(ctx, o.Clock, o.Timeout)
	defer cancel()
	got, err := try(trying)
	if read && errors.Is(err, rendezvous.ErrCommitUnknown) {
		err = rendezvous.Errorf(rendezvous.CodeUnavailable, "%s", rendezvous.AsError(err).Message).Because(errors.Unwrap(err))
	}
	return got, err
}

func askedPause(err error) time.Duration {
	ms, _ := rendezvous.AsError(err).Details[retryDetail].(int64)
	return time.Duration(ms) * time.Millisecond
}

// final is the error of a call that is given up: commit_unknown if any try may have been done, and the context's end as its cause, if that was the end.
func final(ctx context.Context, err error, unknown bool) error {
	e := rendezvous.AsError(err)
	if unknown && e.Code == rendezvous.CodeUnavailable {
		e = rendezvous.Errorf(rendezvous.CodeCommitUnknown, "an earlier try may have been done, the last was not (%s); repeat the same call", e.Message).Because(e)
	}
	if ctx.Err() != nil {
		return e.Because(errors.Join(context.Cause(ctx), ctx.Err(), errors.Unwrap(e)))
	}
	return e
}

// interrupted is the error of a call whose context had ended before it was made.
func interrupted(ctx context.Context) error {
	return rendezvous.Errorf(rendezvous.CodeUnavailable, "the call's context has ended; nothing was sent").Because(errors.Join(context.Cause(ctx), ctx.Err()))
}

// lost is the error of a try that was sent and not answered.
func lost(cause error) error {
	return rendezvous.Errorf(rendezvous.CodeCommitUnknown, "the reply did not arrive; repeat the same call").Because(cause)
}

// unsent is the error of a try that reached nobody.
func unsent(cause error) error {
	return rendezvous.Errorf(rendezvous.CodeUnavailable, "nobody answered at the plane's address; is it up?").Because(cause)
}
