package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// reclaimRecords is how many answers one transaction of ReclaimRun records before it leaves the other items to the next: each run may have up to
// rendezvous.MaxCollect of them.
const reclaimRecords = 1000

// ReclaimRun implements [store.Repairer].
func (e *Engine) ReclaimRun(ctx context.Context, items []store.ReclaimItem) ([]store.Reclaimed, error) {
	if len(items) > rendezvous.MaxBatchItems {
		return nil, rendezvous.OverLimit("items", rendezvous.MaxBatchItems, len(items))
	}
	out := make([]store.Reclaimed, len(items))
	var good []int
	for i, item := range items {
		if out[i].Err = checkReclaim(item); out[i].Err == nil {
			good = append(good, i)
		}
	}
	for len(good) > 0 {
		done, err := e.reclaimSome(ctx, items, good, out)
		if err != nil {
			return nil, err
		}
		good = good[done:]
	}
	return out, nil
}

func checkReclaim(item store.ReclaimItem) error {
	if err := rendezvous.CheckTenant(item.Tenant); err != nil {
		return err
	}
	if err := rendezvous.CheckID("workflow_id", item.WorkflowID); err != nil {
		return err
	}
	return checkEpoch(item.Epoch)
}

// reclaimSome works the first of the items named by which and answers how many. An item that spoils the transaction for the others is halved out and
// fails alone (R3).
func (e *Engine) reclaimSome(ctx context.Context, items []store.ReclaimItem, which []int, out []store.Reclaimed) (int, error) {
	var done []store.Reclaimed
	notices, err := e.update(ctx, "reclaim_run", time.Time{}, func(ctx context.Context, u *unit) (err error) {
		done, err = u.reclaim(ctx, items, which)
		return err
	})
	if err != nil && !itemsFault(err) {
		return 0, err
	}
	if err != nil && len(which) == 1 {
		out[which[0]] = store.Reclaimed{Err: err}
		return 1, nil
	}
	if err != nil {
		return e.reclaimSome(ctx, items, which[:len(which)/2], out)
	}
	for n, i := range which[:len(done)] {
		out[i] = done[n]
		if done[n].Outcome == store.ReclaimReclaimed {
			out[i].Notices = noticesOf(notices, backend.WorkflowKey{Tenant: items[i].Tenant, ID: items[i].WorkflowID})
			out[i].Resume, out[i].Push = len(out[i].Notices.Resume) > 0, len(out[i].Notices.Push) > 0
		}
	}
	return len(done), nil
}

// itemsFault reports whether an error comes from what is stored for one item, and not from the store as a whole, or from who asks.
func itemsFault(err error) bool {
	switch rendezvous.CodeOf(err) {
	case rendezvous.CodeUnavailable, rendezvous.CodeCommitUnknown, rendezvous.CodeFenced, "":
		return false
	}
	return true
}

// noticesOf is the part of a unit's notices that belongs to one workflow. A reclaim makes no others: it neither releases events nor opens waits.
func noticesOf(all store.Notices, key backend.WorkflowKey) store.Notices {
	var own store.Notices
	for _, r := range all.Resume {
		if r.Tenant == key.Tenant && r.WorkflowID == key.ID {
			own.Resume = append(own.Resume, r)
		}
	}
	for _, p := range all.Push {
		if p.Tenant == key.Tenant && p.WorkflowID == key.ID {
			own.Push = append(own.Push, p)
		}
	}
	return own
}

// reclaim ends the leases that are still exactly as they were seen, as many as the bound of a transaction allows, and at least one. Its reads are
// set-based, however many runs there are.
func (u *unit) reclaim(ctx context.Context, items []store.ReclaimItem, which []int) ([]store.Reclaimed, error) {
	keys := make([]backend.WorkflowKey, len(which))
	for n, i := range which {
		keys[n] = backend.WorkflowKey{Tenant: items[i].Tenant, ID: items[i].WorkflowID}
	}
	if err := u.lock(ctx, keys); err != nil {
		return nil, err
	}
	mail, err := u.mailOf(ctx, keys)
	if err != nil {
		return nil, err
	}
	done := make([]store.Reclaimed, 0, len(which))
	ending := map[backend.WorkflowKey]int{} // place in done
	var withMail []*flow
	records := 0
	for n, i := range which {
		f := u.flows[keys[n]]
		r := u.judgeReclaim(f, items[i])
		if _, twice := ending[keys[n]]; twice {
			r.Outcome = store.ReclaimChanged // the item before it ended the lease
		}
		if r.Outcome == store.ReclaimReclaimed {
			expected := min(mail[backend.RunKey{Tenant: f.Tenant, ID: f.RunID}]+f.LiveTimers, rendezvous.MaxCollect)
			if records += expected; n > 0 && records > reclaimRecords {
				break
			}
			if expected > 0 {
				withMail = append(withMail, f)
			}
			ending[keys[n]] = n
		}
		done = append(done, r)
	}
	var recorded map[backend.WorkflowKey]*parkedOutcome
	if len(withMail) > 0 {
		if recorded, err = u.recordNewsOf(ctx, withMail); err != nil {
			return nil, err
		}
	}
	for _, key := range keys[:len(done)] { // in input order: records and marks do not depend on a map's
		if n, ok := ending[key]; ok {
			u.endAbandoned(u.flows[key], &done[n], recorded[key].count())
			delete(ending, key)
		}
	}
	return done, nil
}

// mailOf counts the parked answers of the current runs of locked workflows, in one read.
func (u *unit) mailOf(ctx context.Context, keys []backend.WorkflowKey) (map[backend.RunKey]int, error) {
	var runs []backend.RunKey
	for _, k := range keys {
		if f := u.flows[k]; f != nil && f.Corrupt == nil {
			runs = append(runs, backend.RunKey{Tenant: f.Tenant, ID: f.RunID})
		}
	}
	if len(runs) == 0 {
		return nil, nil
	}
	return u.tx.ParkedOf(ctx, runs)
}

// judgeReclaim says what is to become of an item whose workflow is locked; f is nil for one that does not exist.
func (u *unit) judgeReclaim(f *flow, item store.ReclaimItem) store.Reclaimed {
	switch {
	case f == nil:
		return store.Reclaimed{Outcome: store.ReclaimChanged}
	case f.Corrupt != nil:
		return store.Reclaimed{Err: f.Corrupt}
	case f.Status.Terminal():
		return store.Reclaimed{Outcome: store.ReclaimClosed}
	case f.LeaseOwner == "" || leased(f.Workflow, u.now) || f.LeaseEpoch != item.Epoch || !f.LeaseExpires.Equal(item.ExpiresAt):
		return store.Reclaimed{Outcome: store.ReclaimChanged}
	}
	return store.Reclaimed{Outcome: store.ReclaimReclaimed}
}

// endAbandoned ends an abandoned lease whose parked answers are recorded, and wakes the run: at once after the first reclaim in a row, later and later
// after the next, so that a run that kills its drivers does not spin (RN-38, RN-60).
func (u *unit) endAbandoned(f *flow, got *store.Reclaimed, records int) {
	got.Records = records
	if f.Pause != nil {
		u.applyPause(f)
		got.Paused = true
	}
	u.freeLease(f, rendezvous.LeaseReclaimed)
	f.Reclaims++
	got.Reclaims = f.Reclaims
	next := resumeRetry
	if f.Reclaims > 1 {
		next = reclaimPause(f.Reclaims)
	}
	u.mark(f, rendezvous.CauseLeaseExpired, f.Head, next)
	f.notify = f.Reclaims == 1
}

// reclaimPause is how long after the n-th reclaim in a row the first notice goes out, from the second on.
func reclaimPause(n int) time.Duration { return doubled(time.Second, n-1, maxResumeRetry) }
