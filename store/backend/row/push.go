package row

import (
	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Push reads a push registration. Of a row that does not decode, what could be read stays: its schedule and lease are needed to put it off.
func Push(c *Columns) *backend.Push {
	p := &backend.Push{
		Tenant: c.Text(), RunID: c.Text(), ID: c.Text(), WorkflowID: c.Text(), Namespace: rendezvous.PushNamespace(c.Text()), Gate: c.Text(),
		Incarnation: c.Count(), Version: c.Count(), CreatedAt: c.Instant(), Takes: uint64(c.Count()),
	}
	var err error
	p.Settings, err = backend.DecodePushSettings(c.Bytes(), p.RunID, p.ID)
	c.ok(err == nil)
	p.NextSeq, p.NextIndex, p.State, p.NextAttemptAt = c.Count(), c.Tally(), rendezvous.PushState(c.Text()), c.Instant()
	p.Attempts, p.FailingSince, p.Rejects, p.AttemptNo, p.Lost = c.Tally(), c.InstantOrNone(), c.Tally(), c.Count(), c.Tally()
	p.Error, p.ParkedAt, p.Reason = c.Text(), c.InstantOrNone(), rendezvous.ParkReason(c.Text())
	p.LeaseToken, p.LeaseOwner, p.LeaseRequest, p.LeaseUntil, p.LeaseRevoked = c.Count(), c.Text(), c.Text(), c.InstantOrNone(), c.Boolean()
	p.EndedToken, p.EndedAs, p.SettleID, p.SettleOutcome = c.Count(), c.Text(), c.Text(), c.Bytes()
	p.UnparkOp, p.Skipped, p.Logged = c.Text(), c.Count(), c.Tally()
	p.Last, err = backend.DecodePushAttempt(c.Bytes())
	c.ok(err == nil)
	c.Judge(p.Unsound())
	p.Corrupt = c.Corrupt("push registration", "tenant", p.Tenant, "run", p.RunID, "id", p.ID)
	return p
}

// ParkedPush reads where a parked row stands: its keys and since when.
func ParkedPush(c *Columns) (*backend.Push, error) {
	p := &backend.Push{Tenant: c.Text(), RunID: c.Text(), ID: c.Text(), ParkedAt: c.Instant()}
	return p, c.Corrupt("push registration", "tenant", p.Tenant, "run", p.RunID, "id", p.ID)
}

// PushLogEntry reads an entry of an attempt log.
func PushLogEntry(c *Columns) (*backend.PushLogEntry, error) {
	e := &backend.PushLogEntry{PushLogKey: PushLogKey(c), EntryID: c.Text(), At: c.Instant(), Kept: c.Boolean()}
	a, err := backend.DecodePushAttempt(c.Bytes())
	if c.ok(err == nil && a != nil) {
		e.Attempt = *a
	}
	return e, c.Corrupt("entry of an attempt log", "tenant", e.Tenant, "run", e.RunID, "id", e.ID, "attempt_no", e.No)
}

// PushLogKey reads the key of such an entry.
func PushLogKey(c *Columns) backend.PushLogKey {
	return backend.PushLogKey{
		PushKey: backend.PushKey{Tenant: c.Text(), RunID: c.Text(), ID: c.Text()}, Incarnation: c.Count(), No: c.Count(),
	}
}
