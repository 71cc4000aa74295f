// Package client is the Go SDK: it puts and publishes events, calls every verb, and drives runs.
//
// # Calls
//
// A [Client] speaks to one tenant, over HTTP or NATS, with the same methods. Every error is a *rendezvous.Error: errors.Is(err, rendezvous.ErrConflict).
// A call that was not answered, or answered unavailable, commit_unknown or rate_limited, is made again with pauses, until [Retry] or the context ends it.
// That is safe: the ids that tell the plane "the same call" are minted before the first try (I17). What a call that was given up did is not known when
// its code is commit_unknown; whoever calls again then names the ids himself.
//
// # Driving runs
//
// An [Executor] takes the notices of a queue, leases the run, and calls the [Handler]. The plane decides who drives; the executor renews the lease,
// stops the handler when it is lost, and gives it up when there is nothing to do.
//
// A handler is written as if nothing ever waited or crashed. It runs from the top each time there is news, and what it has done already is in the run's
// history: Await answers the recorded answer, Do the recorded outcome. Where an answer is missing Await says ErrWaiting, and the handler returns it:
//
//	func order(ctx context.Context, run *client.Run) error {
//		var o Order
//		if err := run.Input().JSON(&o); err != nil {
//			return client.Failed("bad_input", "the order does not decode")
//		}
//		paid, err := run.Await(ctx, "payment", "payment.received", client.OnKey("order", o.ID))
//		if err != nil {
//			return err
//		}
//		if _, err := run.Do(ctx, "ship", "ship the parcel", func(ctx context.Context) (client.Payload, error) {
//			return ship(ctx, o, run.IdempotencyKey("ship"))
//		}); err != nil {
//			return err
//		}
//		return run.Complete(ctx, paid.Payload)
//	}
//
// It waits for time as it waits for events: Sleep arms a timer, and goes on when the timer has fired, days later and elsewhere if need be; Within gives an
// Await a deadline, after which it answers ErrTimedOut:
//
//	_, err := run.Await(ctx, "payment", "payment.received", client.OnKey("order", o.ID), client.Within(48*time.Hour))
//	switch {
//	case errors.Is(err, client.ErrTimedOut):
//		return run.Fail(ctx, "not_paid", "nobody paid within two days")
//	case err != nil:
//		return err
//	}
//	if err := run.Sleep(ctx, "returns", 14*24*time.Hour); err != nil {
//		return err
//	}
//
// A deadline of the whole run is its starter's: wire.StartRun has it. When it is over the run ends as timed_out, whoever drives it; its handler's context ends.
//
// Therefore a handler decides by its input, its answers and outcomes alone: what it reads elsewhere (a clock, a table, a random number) it reads in a Do.
// What it returns says how the run goes on:
//
//   - nil: the run is completed, without a result unless Complete was called.
//   - ErrWaiting, and what wraps it: it is suspended. It holds no lease and no memory, for days if need be.
//   - ErrCancelled: it is concluded as cancelled. Await says so when a cancel is requested; the handler may clean up first.
//   - a *Failure that is not Retryable: it is concluded as failed.
//   - any other error, and a panic: the lease is released and another driver goes on, from the history; a run that fails in a row waits longer each time.
//
// # What is not promised
//
// Do calls its function at least once: a driver can die, or be deposed while it believes in its lease, between the function and the journal. The function
// hands [Run.IdempotencyKey] on, or can bear to be repeated. A handler that ignores the end of its context cannot be stopped, only kept from writing.
package client
