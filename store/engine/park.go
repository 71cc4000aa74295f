package engine

import (
	"context"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// parkedOutcome is what recordParked did: the records in order, and whether its bounds left parked waits for the next call.
type parkedOutcome struct {
	records []*backend.Record
	more    bool
}

// recordParked records the parked answers of f's current run.
func (u *unit) recordParked(ctx context.Context, f *flow, withPayload bool) (parkedOutcome, error) {
	return parkedOutcome{}, unavailable("not yet")
}
