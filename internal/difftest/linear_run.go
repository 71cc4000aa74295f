package difftest

import (
	"errors"
	"maps"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// runState is a run without waits on a clock that stands, as the law of its leases and batches has it.
type runState struct {
	head      int64
	sealed    bool
	owner     string // "" is free
	acquire   string
	epoch     int64
	suspended bool // how the last lease ended
	batches   map[string]landed
}

// landed is a batch's first outcome.
type landed struct{ first, head int64 }

// runLaw is runs.md sections 2 and 3 for a run that nothing answers, pauses or asks to cancel.
func runLaw(r runState, call Step, got any, err error) (bool, runState) {
	switch c := call.(type) {
	case AcquireLease:
		return r.acquires(c, got, err)
	case RenewLease:
		if r.sealed || r.owner == "" || r.owner != c.Owner || r.epoch != c.Epoch {
			return is(err, rendezvous.CodeFenced), r
		}
		return err == nil && got.(store.Lease).Head == r.head && got.(store.Lease).Epoch == r.epoch, r
	case Append:
		before, known := r.batches[c.Batch]
		if known {
			a, _ := got.(store.Appended)
			return err == nil && a.Again && a.FirstSeq == before.first && a.Head == before.head, r
		}
		if want := r.admits(c.Epoch, c.Expected); want != "" {
			return is(err, want) && r.tells(err), r
		}
		a, _ := got.(store.Appended)
		next := r.lands(c.Batch, int64(len(c.Records)))
		return err == nil && !a.Again && a.FirstSeq == r.head+1 && a.Head == next.head, next
	case Conclude:
		return r.concludes(c, got, err)
	case CancelRun:
		return r.cancels(got, err)
	case Suspend:
		return r.suspends(c, got, err)
	case ReleaseLease:
		s, _ := got.(store.Suspended)
		if r.sealed || r.owner == "" || r.epoch != c.Epoch {
			return err == nil && s.Outcome == store.SuspendNotHeld && s.Head == r.head, r
		}
		next := r
		next.owner, next.acquire, next.suspended = "", "", false
		return err == nil && s.Outcome == store.SuspendReleased && s.Head == r.head, next
	case ReadHistoryFrom:
		return err == nil && got.(store.HistoryPage).Head == r.head, r
	}
	return false, r
}

func is(err error, want rendezvous.Code) bool { return err != nil && rendezvous.CodeOf(err) == want }

// tells reports whether a conflict names the head as it is.
func (r runState) tells(err error) bool {
	var e *rendezvous.Error
	return !errors.As(err, &e) || e.Code != rendezvous.CodeConflict || e.Details["head"] == r.head
}

// admits is checks 4 to 6 of runs.md section 2.
func (r runState) admits(epoch, expected int64) rendezvous.Code {
	switch {
	case r.sealed:
		return rendezvous.CodeSealed
	case epoch == 0 && r.owner != "":
		return rendezvous.CodeLeaseHeld
	case epoch != 0 && (r.owner == "" || r.epoch != epoch):
		return rendezvous.CodeFenced
	case expected != r.head:
		return rendezvous.CodeConflict
	}
	return ""
}

// lands is the run behind a batch of so many records.
func (r runState) lands(batch string, records int64) runState {
	next := r
	next.batches = maps.Clone(r.batches)
	next.head += records
	next.batches[batch] = landed{r.head + 1, next.head}
	return next
}

func (r runState) acquires(c AcquireLease, got any, err error) (bool, runState) {
	switch {
	case r.sealed:
		return is(err, rendezvous.CodeSealed), r
	case r.owner == c.Owner && r.acquire == c.Acquire:
		return err == nil && got.(store.Lease).Epoch == r.epoch && got.(store.Lease).Head == r.head, r
	case r.owner != "":
		return is(err, rendezvous.CodeLeaseHeld), r
	}
	next := r
	next.owner, next.acquire, next.epoch = c.Owner, c.Acquire, r.epoch+1
	return err == nil && got.(store.Lease).Epoch == next.epoch && got.(store.Lease).Head == r.head, next
}

func (r runState) concludes(c Conclude, got any, err error) (bool, runState) {
	a, _ := got.(store.Concluded)
	if before, known := r.batches[c.Batch]; known {
		return err == nil && a.Again && a.Seq == before.first, r
	}
	if want := r.admits(c.Epoch, c.Expected); want != "" {
		return is(err, want) && r.tells(err), r
	}
	next := r.lands(c.Batch, 1)
	next.sealed, next.owner, next.acquire, next.suspended = true, "", "", false
	return err == nil && !a.Again && a.Seq == next.head, next
}

// cancels is a cancel that does not wait for the driver.
func (r runState) cancels(got any, err error) (bool, runState) {
	a, _ := got.(store.Cancelled)
	if r.sealed {
		return err == nil && a.Outcome == store.CancelClosed, r
	}
	next := r
	if r.owner != "" {
		next.epoch++
	}
	next.head++
	next.sealed, next.owner, next.acquire, next.suspended = true, "", "", false
	return err == nil && a.Outcome == store.CancelCancelled && a.Seq == next.head, next
}

func (r runState) suspends(c Suspend, got any, err error) (bool, runState) {
	s, _ := got.(store.Suspended)
	switch {
	case r.sealed:
		return is(err, rendezvous.CodeSealed), r
	case r.owner == "" && r.epoch == c.Epoch && r.suspended:
		return err == nil && s.Outcome == store.SuspendSuspended, r
	case r.owner == "" || r.epoch != c.Epoch:
		return is(err, rendezvous.CodeFenced), r
	case c.Seen > r.head:
		return is(err, rendezvous.CodeConflict) && r.tells(err), r
	case c.Seen < r.head:
		return err == nil && s.Outcome == store.SuspendContinue && int64(len(s.Records)) == r.head-c.Seen && s.Head == r.head, r
	}
	next := r
	next.owner, next.acquire, next.suspended = "", "", true
	return err == nil && s.Outcome == store.SuspendSuspended && s.Head == r.head, next
}
