package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Collect implements [store.Leases].
func (t *tenant) Collect(ctx context.Context, run string, epoch int64) (store.Collected, error) {
	if err := checkDrivenCall(run, epoch); err != nil {
		return store.Collected{}, err
	}
	var got store.Collected
	notices, err := t.update(ctx, "collect", time.Time{}, func(ctx context.Context, u *unit) error {
		f, err := u.lockDriven(ctx, t.name, run, epoch)
		if err != nil {
			return err
		}
		out, err := u.recordParked(ctx, f)
		if err != nil {
			return err
		}
		got = store.Collected{Records: plain(out.records), Head: f.Head, More: out.more}
		return nil
	})
	if err != nil {
		return store.Collected{}, err
	}
	got.Notices = notices
	return got, nil
}

// Suspend implements [store.Leases].
func (t *tenant) Suspend(ctx context.Context, run string, epoch, seenSeq int64, knowsCancel bool) (store.Suspended, error) {
	if err := checkDrivenCall(run, epoch); err != nil {
		return store.Suspended{}, err
	}
	if seenSeq < 0 {
		return store.Suspended{}, rendezvous.InvalidField("seen_seq", "%d is negative; give the seq of the last record you read", seenSeq)
	}
	var got store.Suspended
	notices, err := t.update(ctx, "suspend", time.Time{}, func(ctx context.Context, u *unit) error {
		f, _, err := u.lockRun(ctx, t.name, run)
		if err != nil {
			return err
		}
		got, err = u.suspend(ctx, f, epoch, seenSeq, knowsCancel)
		return err
	})
	if err != nil {
		return store.Suspended{}, err
	}
	got.Notices = notices
	return got, nil
}

// suspend gives the lease up, unless its holder has not seen everything. All of it is one transaction, so an event offered meanwhile is either among
// the records of Continue or finds the run free (RN-33).
func (u *unit) suspend(ctx context.Context, f *flow, epoch, seen int64, knowsCancel bool) (store.Suspended, error) {
	if f.LeaseOwner == "" && f.LeaseEpoch == epoch {
		return u.suspendedBefore(ctx, f, seen)
	}
	if err := u.checkLease(f, epoch); err != nil {
		return store.Suspended{}, err
	}
	if seen > f.Head {
		return store.Suspended{}, headConflict(seen, f.Head)
	}
	before := f.Head
	f.free = false // its driver is told here, even when the lease has run out
	out, err := u.recordNews(ctx, f)
	if err != nil {
		return store.Suspended{}, err
	}
	if f.Head > seen || (f.Cancel != nil && !knowsCancel) {
		return u.showNews(ctx, f, seen, before, out)
	}
	if f.Pause != nil {
		record := u.applyPause(f)
		return store.Suspended{Outcome: store.SuspendPaused, Seq: record.Seq, Head: f.Head}, nil
	}
	u.freeLease(f, rendezvous.LeaseSuspended)
	return store.Suspended{Outcome: store.SuspendSuspended, Head: f.Head}, nil
}

// suspendedBefore repeats the answer of a Suspend whose reply was lost: as long as nobody took the run since, it is the same (RN-58).
func (u *unit) suspendedBefore(ctx context.Context, f *flow, seen int64) (store.Suspended, error) {
	switch f.LeaseEnded {
	case rendezvous.LeaseSuspended:
		return store.Suspended{Outcome: store.SuspendSuspended, Head: f.Head}, nil
	case rendezvous.LeasePaused:
		seq, err := u.pauseAfter(ctx, f, seen)
		return store.Suspended{Outcome: store.SuspendPaused, Seq: seq, Head: f.Head}, err
	}
	return store.Suspended{}, fenced(f.LeaseEpoch)
}

// pauseAfter finds the RunPaused that ended a lease: the first one from seen on, within a page.
func (u *unit) pauseAfter(ctx context.Context, f *flow, seen int64) (int64, error) {
	records, err := u.tx.History(ctx, f.Key(), max(seen, 1), 0, rendezvous.DefaultHistory, rendezvous.MaxHistoryBytes)
	if err != nil {
		return 0, err
	}
	for _, r := range records {
		if r.Kind == rendezvous.RunPaused {
			return r.Seq, nil
		}
	}
	return 0, nil
}

// showNews answers Continue: every record after seen, those of the history first and then those this unit records, as one page of a history read.
// The lease stays and its expiry is unchanged (RN-32).
func (u *unit) showNews(ctx context.Context, f *flow, seen, before int64, out parkedOutcome) (store.Suspended, error) {
	got := store.Suspended{Outcome: store.SuspendContinue, Head: f.Head, Requests: requests(f.Workflow), More: out.more}
	var size int
	if seen < before {
		stored, err := u.tx.History(ctx, f.Key(), seen+1, before, rendezvous.DefaultHistory, rendezvous.MaxHistoryBytes)
		if err != nil {
			return store.Suspended{}, err
		}
		if err := gapless(f.Key(), stored, seen+1); err != nil {
			return store.Suspended{}, err
		}
		got.Records = stored
		for _, r := range stored {
			size += recordBytes(r)
		}
		if len(stored) == 0 || stored[len(stored)-1].Seq < before {
			got.More = true
			return got, nil
		}
	}
	for _, r := range plain(out.records) {
		size += recordBytes(r)
		if len(got.Records) > 0 && (len(got.Records) == rendezvous.DefaultHistory || size > rendezvous.MaxHistoryBytes) {
			got.More = true
			break
		}
		got.Records = append(got.Records, r)
	}
	return got, nil
}

// ReleaseLease implements [store.Leases].
func (t *tenant) ReleaseLease(ctx context.Context, run string, epoch int64) (store.Suspended, error) {
	if err := checkDrivenCall(run, epoch); err != nil {
		return store.Suspended{}, err
	}
	var got store.Suspended
	notices, err := t.update(ctx, "release_lease", time.Time{}, func(ctx context.Context, u *unit) error {
		f, _, err := u.lockRun(ctx, t.name, run)
		if rendezvous.CodeOf(err) == rendezvous.CodeSealed {
			got = store.Suspended{Outcome: store.SuspendNotHeld, Head: f.Head}
			return nil
		}
		if err != nil {
			return err
		}
		if u.checkLease(f, epoch) != nil { // somebody else's lease is not touched (RN-22)
			got = store.Suspended{Outcome: store.SuspendNotHeld, Head: f.Head}
			return nil
		}
		f.free = true // answers carry their links to the mark
		out, err := u.recordNews(ctx, f)
		if err != nil {
			return err
		}
		if f.Pause != nil {
			out.records = append(out.records, u.applyPause(f))
		}
		u.freeLease(f, rendezvous.LeaseReleased)
		u.wake(f, rendezvous.CauseReleased, f.Head)
		got = store.Suspended{Outcome: store.SuspendReleased, Records: plain(out.records), Head: f.Head, More: out.more, Requests: requests(f.Workflow)}
		return nil
	})
	if err != nil {
		return store.Suspended{}, err
	}
	got.Notices = notices
	return got, nil
}

// applyPause writes the pause that was asked of the run's driver, in the asker's name.
func (u *unit) applyPause(f *flow) *backend.Record {
	return u.pause(f, f.Pause.Operator, f.Pause.Reason)
}

// lockDriven locks the workflow of a run for the driver that holds epoch. The run counts as driven even when the lease ran out and nobody took over:
// its driver is told in the answer, not by a notice.
func (u *unit) lockDriven(ctx context.Context, tenant, run string, epoch int64) (*flow, error) {
	f, _, err := u.lockRun(ctx, tenant, run)
	if err != nil {
		return nil, err
	}
	if err := u.checkLease(f, epoch); err != nil {
		return nil, err
	}
	f.free = false
	return f, nil
}

func checkDrivenCall(run string, epoch int64) error {
	if err := rendezvous.CheckID("run_id", run); err != nil {
		return err
	}
	return checkEpoch(epoch)
}

// plain is the records without their place in the store.
func plain(rows []*backend.Record) []rendezvous.Record {
	records := make([]rendezvous.Record, len(rows))
	for i, r := range rows {
		records[i] = r.Record
	}
	return records
}

// recordBytes is what a record adds to a page.
func recordBytes(r rendezvous.Record) int { return len(r.Data) + len(r.Payload) }
