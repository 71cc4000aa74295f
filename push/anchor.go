package push

import "time"

// anchor ties the store's time to the clock's by one claim: what the store called now, and an instant of the clock shortly before it said so. Instants of the
// store that are made of it are never early, and instants of the clock never late; where the clock is monotonic a step of the wall clock moves neither (PU-53).
type anchor struct{ store, local time.Time }

// at is an instant of the clock in the store's time.
func (a anchor) at(local time.Time) time.Time { return a.store.Add(local.Sub(a.local)) }

// by is an instant of the store on the clock.
func (a anchor) by(at time.Time) time.Time { return a.local.Add(at.Sub(a.store)) }
