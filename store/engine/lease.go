package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// AcquireLease implements [store.Leases].
func (t *tenant) AcquireLease(ctx context.Context, run, owner string, ttl time.Duration, acquireID string) (store.Lease, error) {
	if err := checkLeaseCall(run, owner); err != nil {
		return store.Lease{}, err
	}
	if err := rendezvous.CheckBatchID("acquire_id", acquireID); err != nil {
		return store.Lease{}, err
	}
	ttl, err := leaseTTL(ttl)
	if err != nil {
		return store.Lease{}, err
	}
	var lease store.Lease
	_, err = t.update(ctx, "acquire_lease", time.Time{}, func(ctx context.Context, u *unit) error {
		f, _, err := u.lockRun(ctx, t.name, run)
		if err != nil {
			return err
		}
		if err := u.acquire(f, owner, ttl, acquireID); err != nil {
			return err
		}
		lease, err = u.lease(ctx, f)
		return err
	})
	if err != nil {
		return store.Lease{}, err
	}
	return lease, nil
}

// acquire gives the lease of a free run to owner: one epoch more, woken cleared (RN-18). The owner's own acquire id, while that lease lives, is its
// retry and changes nothing (RN-20).
func (u *unit) acquire(f *flow, owner string, ttl time.Duration, acquireID string) error {
	switch {
	case leased(f.Workflow, u.now) && f.AcquireID == acquireID && f.LeaseOwner == owner:
		return nil
	case leased(f.Workflow, u.now):
		return leaseHeld(f.Workflow, u.now) // RN-19: also for the same owner
	case f.Status == rendezvous.StatusPaused:
		return paused(f)
	}
	if f.LeaseOwner != "" { // RN-22: taking over an abandoned lease is a reclaim too
		f.Reclaims++
		f.LeaseEnded = rendezvous.LeaseReclaimed
	}
	f.LeaseEpoch++
	f.LeaseOwner, f.AcquireID, f.LeaseExpires = owner, acquireID, u.now.Add(ttl)
	u.saveFlow(f)
	u.unwake(f)
	f.free = false
	return nil
}

// RenewLease implements [store.Leases].
func (t *tenant) RenewLease(ctx context.Context, run, owner string, epoch int64, ttl time.Duration) (store.Lease, error) {
	if err := checkLeaseCall(run, owner); err != nil {
		return store.Lease{}, err
	}
	if err := checkEpoch(epoch); err != nil {
		return store.Lease{}, err
	}
	ttl, err := leaseTTL(ttl)
	if err != nil {
		return store.Lease{}, err
	}
	var lease store.Lease
	_, err = t.update(ctx, "renew_lease", time.Time{}, func(ctx context.Context, u *unit) error {
		f, _, err := u.lockRun(ctx, t.name, run)
		if f != nil && f.RunID == run && rendezvous.CodeOf(err) == rendezvous.CodeSealed {
			return fenced(f.LeaseEpoch) // RN-56: the seal took the lease
		}
		if err != nil {
			return err
		}
		if err := u.renew(f, owner, epoch, ttl); err != nil {
			return err
		}
		lease, err = u.lease(ctx, f)
		return err
	})
	if err != nil {
		return store.Lease{}, err
	}
	return lease, nil
}

// renew extends a live lease of exactly this owner and epoch. It never shortens one: a renewal that was overtaken by a longer one changes nothing.
func (u *unit) renew(f *flow, owner string, epoch int64, ttl time.Duration) error {
	if !leased(f.Workflow, u.now) || f.LeaseOwner != owner || f.LeaseEpoch != epoch {
		return fenced(f.LeaseEpoch) // RN-25
	}
	if until := u.now.Add(ttl); until.After(f.LeaseExpires) {
		f.LeaseExpires = until
		u.saveFlow(f)
	}
	return nil
}

// freeLease ends the lease of f. Its epoch stays, and never is good again (RN-26).
func (u *unit) freeLease(f *flow, end rendezvous.LeaseEnd) {
	f.LeaseOwner, f.AcquireID, f.LeaseExpires, f.LeaseEnded = "", "", time.Time{}, end
	f.free = !f.Status.Terminal()
	u.saveFlow(f)
}

// lease is the lease as it stands, with what rides on every answer to an epoch.
func (u *unit) lease(ctx context.Context, f *flow) (store.Lease, error) {
	mail, err := u.mail(ctx, f)
	if err != nil {
		return store.Lease{}, err
	}
	return store.Lease{WorkflowID: f.ID, Epoch: f.LeaseEpoch, Head: f.Head, ExpiresAt: f.LeaseExpires, Mail: mail}, nil
}

// mail is what rides on every answer to an epoch: the pending requests, and how many parked answers the store holds for the run. Answers that this
// unit itself records are still counted: who records some takes them off.
func (u *unit) mail(ctx context.Context, f *flow) (store.Mail, error) {
	key := backend.RunKey{Tenant: f.Tenant, ID: f.RunID}
	parked, err := u.tx.ParkedOf(ctx, []backend.RunKey{key})
	if err != nil {
		return store.Mail{}, err
	}
	return store.Mail{Requests: requests(f.Workflow), Mail: parked[key]}, nil
}

// requests lists what is asked of the run's driver: a pause before a cancel.
func requests(w *backend.Workflow) []rendezvous.Request {
	var asked []rendezvous.Request
	for _, r := range []*rendezvous.Request{w.Pause, w.Cancel} {
		if r != nil {
			asked = append(asked, *r)
		}
	}
	return asked
}

// paused says that the run is not to be driven now.
func paused(f *flow) error {
	return conflict("paused", string(f.Status), "run %q is paused; resume it before somebody drives it", f.RunID).With("run", f.RunID)
}

func checkLeaseCall(run, owner string) error {
	if err := rendezvous.CheckID("run_id", run); err != nil {
		return err
	}
	return rendezvous.CheckID("owner", owner)
}

// checkEpoch judges an epoch that a verb cannot do without.
func checkEpoch(epoch int64) error {
	if epoch < 1 {
		return rendezvous.InvalidField("epoch", "%d is no epoch; give the one the lease was acquired with", epoch)
	}
	return nil
}

// leaseTTL resolves how long a lease is to live: never clamped (RN-27).
func leaseTTL(ttl time.Duration) (time.Duration, error) {
	if ttl < rendezvous.MinLease || ttl > rendezvous.MaxLease {
		return 0, rendezvous.InvalidField("ttl", "%s is outside %s..%s", ttl, rendezvous.MinLease, rendezvous.MaxLease).
			With("limit", rendezvous.MaxLease.String()).With("value", ttl.String())
	}
	return ttl.Truncate(time.Microsecond), nil
}
