package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// checkClaim judges a claim and fills in its defaults.
func checkClaim(c store.ClaimPush) (store.ClaimPush, error) {
	var err error
	if c.Limit, err = rendezvous.PageLimit(c.Limit, store.DefaultPushClaim, store.MaxPushClaim); err != nil {
		return c, err
	}
	if err := checkNamespace(c.Namespace); err != nil {
		return c, err
	}
	if err := rendezvous.CheckID("owner", c.Owner); err != nil {
		return c, err
	}
	if err := rendezvous.CheckBatchID("request", c.Request); err != nil {
		return c, err
	}
	if err := rendezvous.CheckInstant("at", c.At); err != nil {
		return c, err
	}
	if c.Lease, err = checkPushLease(c.Lease); err != nil {
		return c, err
	}
	for _, n := range [...]struct {
		name string
		n    *int
		def  int
	}{{"per_gate", &c.PerGate, store.DefaultPushPerGate}, {"lost_limit", &c.LostLimit, store.DefaultPushLostLimit}} {
		if *n.n < 0 {
			return c, rendezvous.InvalidField(n.name, "%d is negative", *n.n).With("value", *n.n)
		}
		if *n.n == 0 {
			*n.n = n.def
		}
	}
	if len(c.Room) > store.MaxPushClaim {
		return c, rendezvous.OverLimit("room", store.MaxPushClaim, len(c.Room))
	}
	if len(c.Only) > rendezvous.MaxBatchItems {
		return c, rendezvous.OverLimit("only", rendezvous.MaxBatchItems, len(c.Only))
	}
	for _, r := range c.Only {
		if err := rendezvous.CheckTenant(r.Tenant); err != nil {
			return c, err
		}
		if err := rendezvous.CheckID("only", r.RunID); err != nil {
			return c, err
		}
	}
	return c, nil
}

func checkPushLease(lease time.Duration) (time.Duration, error) {
	if lease == 0 {
		return store.DefaultPushLease, nil
	}
	if lease < store.MinPushLease || lease > store.MaxPushLease {
		return 0, rendezvous.InvalidField("lease", "%s is outside %s..%s", lease, store.MinPushLease, store.MaxPushLease).
			With("limit", store.MaxPushLease.String()).With("value", lease.String())
	}
	return lease, nil
}

// ClaimPushes implements [store.PushQueue].
func (e *Engine) ClaimPushes(ctx context.Context, c store.ClaimPush) (store.ClaimedPushes, error) {
	c, err := checkClaim(c)
	if err != nil {
		return store.ClaimedPushes{}, err
	}
	var out store.ClaimedPushes
	_, err = e.update(ctx, "claim_pushes", time.Time{}, func(ctx context.Context, u *unit) (err error) {
		out, err = u.claimPushes(ctx, c)
		return err
	})
	if err != nil {
		return store.ClaimedPushes{}, err
	}
	return out, nil
}

func (u *unit) claimPushes(ctx context.Context, c store.ClaimPush) (store.ClaimedPushes, error) {
	out := store.ClaimedPushes{Now: u.now}
	due := backend.PushDue{Namespace: c.Namespace, At: dueAt(c.At, u.now)}
	rows, err := u.tx.PushesOfClaim(ctx, c.Owner, c.Request)
	if err != nil {
		return out, err
	}
	for _, p := range rows { // a retry after a lost reply: the same rows and tokens
		if p.Corrupt == nil {
			out.Pushes = append(out.Pushes, claimed(p))
		}
	}
	if len(rows) == 0 {
		claim := backend.PushClaim{PushDue: due, Limit: c.Limit, PerGate: c.PerGate, Room: c.Room}
		if c.Only != nil {
			claim.Only = make([]backend.RunKey, len(c.Only))
			for i, r := range c.Only {
				claim.Only[i] = backend.RunKey{Tenant: r.Tenant, ID: r.RunID}
			}
			claim.Only = backend.SortedKeys(claim.Only)
		}
		taken, err := u.tx.TakeDuePushes(ctx, claim)
		if err != nil {
			return out, err
		}
		rows, out.Saturated, out.Crowded = taken.Rows, taken.More, taken.Crowded
		if err := u.leasePushes(ctx, c, rows, &out); err != nil {
			return out, err
		}
	}
	if c.Only != nil { // what else there is, the claims of all that is due tell
		return out, nil
	}
	if out.Unserved, out.UnservedCapped, err = unserved(ctx, u.tx, due); err != nil {
		return out, err
	}
	due.At = u.now
	out.NextDue, err = u.tx.NextPush(ctx, due)
	return out, err
}

func claimed(p *backend.Push) store.ClaimedPush {
	return store.ClaimedPush{Push: storePush(p), Token: p.LeaseToken, ExpiresAt: p.LeaseUntil}
}

// leasePushes gives locked due rows their leases. Tokens are drawn under the rows' locks, so that a row's tokens rise.
func (u *unit) leasePushes(ctx context.Context, c store.ClaimPush, rows []*backend.Push, out *store.ClaimedPushes) error {
	if len(rows) == 0 {
		return nil
	}
	tokens, err := u.tx.NewTakes(ctx, len(rows))
	if err != nil {
		return err
	}
	for i, p := range rows {
		if p.Corrupt == nil && u.losePush(p, c.LostLimit) {
			out.Lost++
		}
		if u.savePush(p); p.State == rendezvous.PushParked {
			out.Parked = append(out.Parked, store.PushItem{Tenant: p.Tenant, PushKey: store.PushKey{RunID: p.RunID, ID: p.ID}})
			continue
		}
		p.LeaseToken, p.LeaseOwner, p.LeaseRequest, p.LeaseRevoked = tokens[i], c.Owner, c.Request, false
		p.LeaseUntil = rendezvous.DueInstant(u.now.Add(c.Lease))
		if p.Corrupt == nil { // else it is handed to nobody, and out of the way of the others while its lease lasts
			out.Pushes = append(out.Pushes, claimed(p))
		}
	}
	return nil
}

// losePush ends a lease that ran out unsettled: a lost worker, that may or may not have sent. At the limit the row parks (PU-29). It reports whether there was one.
func (u *unit) losePush(p *backend.Push, limit int) bool {
	if p.LeaseToken == 0 || p.LeaseRevoked {
		endLease(p, endedRevoked)
		return false
	}
	owner := p.LeaseOwner
	endLease(p, endedTool)
	p.Lost++
	u.enter(p, rendezvous.PushAttempt{
		Seq: p.NextSeq, Index: p.NextIndex, At: u.now, Class: rendezvous.ClassOwn, Unknown: true, Code: string(rendezvous.ParkWorkerLost), Worker: owner,
	}, false)
	if p.Lost >= limit {
		u.park(p, rendezvous.ParkWorkerLost, "the workers that sent for it were lost, again and again")
	}
	return true
}

// RenewPushes implements [store.PushQueue].
func (e *Engine) RenewPushes(ctx context.Context, tokens []int64, lease time.Duration) ([]store.PushLease, error) {
	lease, err := checkPushLease(lease)
	if err != nil {
		return nil, err
	}
	if len(tokens) > store.MaxPushClaim {
		return nil, rendezvous.OverLimit("tokens", store.MaxPushClaim, len(tokens))
	}
	if len(tokens) == 0 {
		return nil, nil
	}
	out := make([]store.PushLease, len(tokens))
	_, err = e.update(ctx, "renew_pushes", time.Time{}, func(ctx context.Context, u *unit) error {
		rows, err := u.tx.PushesByToken(ctx, tokens)
		by := map[int64]*backend.Push{}
		for _, p := range rows {
			by[p.LeaseToken] = p
		}
		for i, token := range tokens {
			out[i] = u.renewPush(by[token], token, lease)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (u *unit) renewPush(p *backend.Push, token int64, lease time.Duration) store.PushLease {
	out := store.PushLease{Token: token, State: store.PushLeaseHeld}
	switch {
	case p == nil || token == 0 || p.Corrupt != nil:
		out.State = store.PushLeaseFenced
		return out
	case p.LeaseRevoked:
		out.State = store.PushLeaseRevoked
		return out
	}
	if end := rendezvous.DueInstant(u.now.Add(lease)); end.After(p.LeaseUntil) {
		p.LeaseUntil = end
		u.savePush(p)
	}
	out.ExpiresAt = p.LeaseUntil
	return out
}
