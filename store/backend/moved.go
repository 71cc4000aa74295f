package backend

import (
	"bytes"

	"github.com/rendezvous-events/rendezvous"
)

// What most changes are, for backends that write less where less has changed.

// OnlyArrived reports whether nothing has happened to a new event but that it came and is live.
func (e *Event) OnlyArrived() bool {
	return e.State == rendezvous.EventLive && !e.Shed && e.ClaimRun == "" && e.ClaimEffect == "" && e.ClaimedAt.IsZero() &&
		e.Workflow == "" && e.Run == "" && e.Effect == "" && e.Seq == 0 && e.DeadReason == "" && e.DeadDetail == "" && e.DeadAt.IsZero() && !e.Erased &&
		e.OfferFailures == 0 && e.Take == 0 && e.TakeUntil.IsZero() && !e.TakeOpen && e.Takes == 0 && e.Requeues == 0 && !e.Purged && e.Op == "" && e.OpBy == nil
}

// OnlyAnswered reports whether all that happened to an event since it was read is that it was answered.
func (e *Event) OnlyAnswered(was *Event) bool {
	return e.State == rendezvous.EventConsumed && e.Shed && e.ClaimRun == "" && e.ClaimEffect == "" && e.ClaimedAt.IsZero() &&
		e.OfferFailures == 0 && e.TakeUntil.IsZero() && !e.TakeOpen && e.Takes == 0 &&
		was.Version == e.Version && bytes.Equal(was.Digest, e.Digest) && was.LiveSince.Equal(e.LiveSince) && was.ExpiresAt.Equal(e.ExpiresAt) &&
		was.Target == e.Target && was.DeadReason == e.DeadReason && was.DeadDetail == e.DeadDetail && was.DeadAt.Equal(e.DeadAt) &&
		was.Erased == e.Erased && was.Take == e.Take && was.Requeues == e.Requeues && was.Purged == e.Purged && was.Op == e.Op
}

// OnlyDied reports whether all that happened to an event since it was read is that it became a dead letter.
func (e *Event) OnlyDied(was *Event) bool {
	return e.Dead() && !e.Shed && e.ClaimRun == "" && e.ClaimEffect == "" && e.ClaimedAt.IsZero() && e.Seq == 0 &&
		e.OfferFailures == 0 && e.TakeUntil.IsZero() && !e.TakeOpen && e.Takes == 0 &&
		was.Version == e.Version && bytes.Equal(was.Digest, e.Digest) && was.LiveSince.Equal(e.LiveSince) && was.ExpiresAt.Equal(e.ExpiresAt) &&
		was.Target == e.Target && was.Erased == e.Erased && was.Take == e.Take && was.Requeues == e.Requeues && was.Op == e.Op
}

// OnlyBumped reports whether all that changed in a row since it was locked is what every append moves: head, last instant and counts. What hangs on pointers may
// have been changed behind them, so of a row that has any it is not said.
func (w Workflow) OnlyBumped(was Workflow) bool {
	if w.Pause != nil || w.Cancel != nil || w.PausedBy != nil || w.Corrupt != nil {
		return false
	}
	w.Head, w.UpdatedAt, w.OpenEffects, w.OpenWaits = was.Head, was.UpdatedAt, was.OpenEffects, was.OpenWaits
	w.LiveTimers, w.Registrations = was.LiveTimers, was.Registrations
	return was == w
}
