package backend

import (
	"crypto/sha256"
	"encoding/json"

	"github.com/rendezvous-events/rendezvous"
)

// What columns of one row say together, for backends that decode rows (R9). Each answers the name of a column that contradicts the others, "" for none.

// Unsound judges a workflow's row.
func (w *Workflow) Unsound() string {
	switch {
	case w.LeaseOwner != "" && w.LeaseExpires.IsZero():
		return "lease_expires"
	case w.Status.Terminal() == w.ClosedAt.IsZero():
		return "closed_at"
	}
	return ""
}

// Unsound judges a run's row.
func (r *Run) Unsound() string {
	if r.SealedAt.IsZero() != (r.Outcome == "") {
		return "sealed_at"
	}
	return ""
}

// Unsound judges an event's row.
func (e *Event) Unsound() string {
	claimed, consumed := e.State == rendezvous.EventClaimed, e.State == rendezvous.EventConsumed
	switch e.State {
	case rendezvous.EventLive, rendezvous.EventClaimed, rendezvous.EventConsumed:
	case rendezvous.EventDead:
		if e.DeadReason == "" {
			return "dead_reason"
		}
	default:
		return "state"
	}
	switch {
	case claimed != (e.ClaimRun != ""), claimed != (e.ClaimEffect != ""), claimed == e.ClaimedAt.IsZero():
		return "claim_run"
	case consumed != (e.Seq > 0), consumed != (e.Workflow != ""), consumed != (e.Run != ""), consumed != (e.Effect != ""):
		return "seq"
	case (e.State == rendezvous.EventDead) == e.DeadAt.IsZero(), e.Purged && e.State != rendezvous.EventDead:
		return "dead_at"
	case (e.Op == "") != (e.OpBy == nil):
		return "op"
	case e.Erased != (e.Digest == nil), !e.Erased && len(e.Digest) != sha256.Size:
		return "digest"
	case e.Type == "":
		return "type"
	}
	return ""
}

// Unsound judges a wait's row; held is what its columns say of a held event, all of it zero for none.
func (w *Wait) Unsound(held HeldEvent) string {
	parked := held.Number != 0
	switch {
	case parked != (held.Source != ""), parked != (held.ID != ""), parked != (held.Claim > 0):
		return "held_number"
	case parked == w.ParkedAt.IsZero(), parked == w.NextAttemptAt.IsZero(), !parked && !w.QuarantinedAt.IsZero():
		return "parked_at"
	case w.Type == "":
		return "type"
	}
	return ""
}

// Unsound judges a timer's row.
func (t *Timer) Unsound() string {
	held, ready := t.Token != 0, t.DueAt
	if t.HeldUntil.After(ready) {
		ready = t.HeldUntil
	}
	switch {
	case !t.Class.Known():
		return "class"
	case (t.Class == rendezvous.TimerWait) != (t.Effect != ""):
		return "effect"
	case !t.ReadyAt.Equal(ready):
		return "ready_at"
	case held != (t.Holder != ""), held == t.HeldUntil.IsZero():
		return "token"
	}
	return ""
}

// Unsound judges a push registration's row.
func (p *Push) Unsound() string {
	parked, leased := p.State == rendezvous.PushParked, p.LeaseToken != 0
	switch p.State {
	case rendezvous.PushLive, rendezvous.PushIdle, rendezvous.PushParked, PushGone:
	default:
		return "state"
	}
	switch {
	case !p.Namespace.Known() || p.Namespace != rendezvous.RegistrationNamespace(p.ID):
		return "namespace"
	case p.NextSeq < 1:
		return "next_seq"
	case p.Version < 1, p.Incarnation < 1:
		return "version"
	case parked == p.ParkedAt.IsZero(), parked != (p.Reason != ""), parked && !p.Reason.Known():
		return "parked_at"
	case leased == p.LeaseUntil.IsZero(), leased != (p.LeaseOwner != ""), p.LeaseRevoked && !leased:
		return "lease_token"
	case p.State == PushGone && !(leased && p.LeaseRevoked):
		return "lease_revoked"
	}
	return ""
}

// Unsound judges the lease of a shard.
func (l *ShardLease) Unsound() string {
	switch {
	case l.Pool == "":
		return "pool"
	case l.Epoch < 1:
		return "epoch"
	case l.Owner != "" && l.ExpiresAt.IsZero():
		return "expires_at"
	}
	return ""
}

// UnsoundRecord judges a record of which Unknown is set already.
func UnsoundRecord(r rendezvous.Record) string {
	switch {
	case r.Kind == "":
		return "kind"
	case !json.Valid(r.Data):
		return "data"
	case !r.Unknown && (r.Effect != "") != (r.Kind.Phase() != rendezvous.PhaseNone):
		return "effect"
	}
	return ""
}

// Corrupt says which row does not decode and why; key is pairs of a name and a value. No value of the row but its key is told.
func Corrupt(what, why string, key ...any) error {
	err := rendezvous.Errorf(rendezvous.CodeCorrupt, "the stored %s does not decode (%s); look at its row, or restore it", what, why)
	for i := 0; i+1 < len(key); i += 2 {
		err = err.With(key[i].(string), key[i+1])
	}
	return err
}
