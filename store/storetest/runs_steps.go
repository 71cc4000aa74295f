package storetest

import (
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// What the cases of runs and leases say most.

// Who asks.
var (
	kim = &rendezvous.Operator{Actor: "kim", Basis: rendezvous.BasisAuthenticated}
	lee = &rendezvous.Operator{Actor: "lee", Basis: rendezvous.BasisAsserted}
)

// outlook is all of a workflow that anybody can see.
type outlook struct {
	Records []rendezvous.Record
	Row     store.Workflow
	Waits   []store.WaitRow
	Chain   []store.RunSummary
}

func (r *Flow) outlook() outlook {
	r.F.T.Helper()
	return outlook{
		Records: r.History(), Row: r.Describe(), Waits: r.Rows(),
		Chain: must(r.F.ReadRunChain(ctx, r.WorkflowID, 0, 0))(r.F.T, "read the chain of "+r.WorkflowID),
	}
}

// unmoved fails the test unless the call was refused as the code says and nothing of the workflow moved by it.
func (r *Flow) unmoved(what string, want rendezvous.Code, call func() error, details ...any) {
	r.F.T.Helper()
	before := r.outlook()
	code(r.F.T, what, call(), want, details...)
	eq(r.F.T, "the workflow after "+what, r.outlook(), before)
}

// named is a call with its name.
type named struct {
	name string
	call func() error
}

// writes are the verbs that write for a run at its present head under an epoch, 0 for none.
func (r *Flow) writes(epoch int64) []named {
	head := r.Head()
	return []named{
		{"Append", func() error {
			a := store.Append{RunID: r.ID, Epoch: epoch, ExpectedSeq: head, BatchID: ID("batch"), Records: recs(r.Noted("n"))}
			_, err := r.F.Append(ctx, a, now)
			return err
		}},
		{"Append of nothing", func() error {
			_, err := r.F.Append(ctx, store.Append{RunID: r.ID, Epoch: epoch, ExpectedSeq: head, BatchID: ID("batch")}, now)
			return err
		}},
		{"Append of a terminal", func() error {
			a := store.Append{RunID: r.ID, Epoch: epoch, ExpectedSeq: head, BatchID: ID("batch"), Records: recs(r.Completed())}
			_, err := r.F.Append(ctx, a, now)
			return err
		}},
		{"Conclude", func() error {
			c := store.Conclusion{RunID: r.ID, Epoch: epoch, ExpectedSeq: head, BatchID: ID("batch"), Outcome: rendezvous.StatusCompleted}
			_, err := r.F.Conclude(ctx, c, now)
			return err
		}},
		{"ContinueAsNew", func() error {
			_, err := r.F.ContinueAsNew(ctx, store.Continuation{RunID: r.ID, Epoch: epoch, ExpectedSeq: head, BatchID: ID("batch")}, now)
			return err
		}},
		{"RegisterWait", func() error {
			_, err := r.F.RegisterWait(ctx, store.Registration{Wait: r.Wait(ID("effect"), "paid", K("order", r.ID)), Epoch: epoch}, now)
			return err
		}},
		{"Subscribe", func() error {
			_, err := r.F.Subscribe(ctx, store.Registration{Wait: r.Wait(ID("effect"), "paid", K("order", r.ID)), Epoch: epoch}, now)
			return err
		}},
		{"RegisterBatch", func() error {
			item := store.RegisterItem{Tenant: r.F.Name(), Registration: store.Registration{Wait: r.Wait(ID("effect"), "paid"), Epoch: epoch}}
			out, err := r.F.H.Store.RegisterBatch(ctx, []store.RegisterItem{item}, now)
			if err != nil {
				return err
			}
			return out[0].Err
		}},
	}
}

// withdrawals are the verbs that give up waits of a run under an epoch, 0 for none; wait is one of them, open. They answer after the end, too.
func (r *Flow) withdrawals(epoch int64, wait string) []named {
	return []named{
		{"Unsubscribe", func() error { _, err := r.F.Unsubscribe(ctx, r.WaitID(wait), epoch, "", now); return err }},
		{"UnsubscribeRun", func() error { _, _, err := r.F.UnsubscribeRun(ctx, r.ID, epoch, nil, now); return err }},
	}
}

// holderOnly are the verbs that only the holder of a lease may call.
func (r *Flow) holderOnly(owner string, epoch int64) []named {
	head := r.Head()
	return []named{
		{"RenewLease", func() error { _, err := r.F.RenewLease(ctx, r.ID, owner, epoch, rendezvous.DefaultLease); return err }},
		{"Collect", func() error { _, err := r.F.Collect(ctx, r.ID, epoch); return err }},
		{"Suspend", func() error { _, err := r.F.Tenant.Suspend(ctx, r.ID, epoch, head, true); return err }},
	}
}

// asked are the requests that wait for a driver, by kind.
func asked(all []rendezvous.Request) []rendezvous.RequestKind {
	var kinds []rendezvous.RequestKind
	for _, r := range all {
		kinds = append(kinds, r.Kind)
	}
	return kinds
}

// Acquire asks for the run's lease for 30 s, as an owner of that name.
func (r *Flow) Acquire(owner, acquireID string) (store.Lease, error) {
	return r.F.AcquireLease(ctx, r.ID, owner, rendezvous.DefaultLease, acquireID)
}

// WantFree fails the test unless somebody can drive the run now: nobody's lease stands on it, and it is neither paused nor ended.
func (r *Flow) WantFree() {
	r.F.T.Helper()
	row := r.Describe()
	eq(r.F.T, "owner of a free run", row.LeaseOwner, "")
	eq(r.F.T, "time left of no lease", row.LeaseRemaining, 0)
	eq(r.F.T, "status of a free run", row.Status, rendezvous.StatusRunning)
}

// Pause asks for a pause in kim's name.
func (r *Flow) Pause() store.Paused {
	r.F.T.Helper()
	return must(r.F.PauseRun(ctx, r.ID, kim, "lunch", now))(r.F.T, "pause "+r.ID)
}

// Resume asks for the end of a pause in kim's name.
func (r *Flow) Resume() store.Paused {
	r.F.T.Helper()
	return must(r.F.ResumeRun(ctx, r.ID, kim, "back", now))(r.F.T, "resume "+r.ID)
}

// AskCancel asks a driver to cancel the run, in kim's name.
func (r *Flow) AskCancel() store.Cancelled {
	r.F.T.Helper()
	return must(r.F.CancelRun(ctx, r.ID, kim, "not wanted", false, now))(r.F.T, "ask for the cancel of "+r.ID)
}

// Revoke cancels the run now, in kim's name.
func (r *Flow) Revoke() store.Cancelled {
	r.F.T.Helper()
	return must(r.F.CancelRun(ctx, r.ID, kim, "not wanted", true, now))(r.F.T, "cancel "+r.ID)
}

// Parked registers a wait under the driver's epoch and sends its event, which the lease parks.
func (d *Driver) Parked(effect string) rendezvous.Event {
	d.F.T.Helper()
	key := K("parked", d.ID+"/"+effect)
	d.Waits(effect, "paid", key)
	e := EventOf("paid", key)
	eq(d.F.T, "offers parked by the lease", len(d.F.Send(e).Made(store.OfferParked)), 1)
	return e
}

// Finish drives the run to its end as another executor would: it takes the lease, reads the history, and completes.
func (r *Flow) Finish() *Driver {
	r.F.T.Helper()
	d := r.Drive()
	d.Conclude(rendezvous.StatusCompleted)
	return d
}

// resumeOf is the RESUME notice for that run among notices; none, or two, fail the test.
func (r *Flow) resumeOf(all []store.ResumeRef) store.ResumeRef {
	r.F.T.Helper()
	all = slices.DeleteFunc(slices.Clone(all), func(n store.ResumeRef) bool { return n.RunID != r.ID || n.Tenant != r.F.Name() })
	eq(r.F.T, "RESUME notices for "+r.ID, len(all), 1)
	return all[0]
}

// wantNotice fails the test unless exactly one RESUME notice for the run is among notices, with that cause and seq, complete.
func (r *Flow) wantNotice(all []store.ResumeRef, cause rendezvous.Cause, seq int64) {
	r.F.T.Helper()
	got := r.resumeOf(all)
	want := store.ResumeRef{
		Tenant: r.F.Name(), Queue: r.Describe().Queue, WorkflowID: r.WorkflowID, RunID: r.ID, Seq: seq, Cause: cause, Notices: got.Notices, Links: got.Links,
	}
	eq(r.F.T, "RESUME notice", got, want)
}

// marks is how many runs of the store are woken and not driven yet.
func (h *Harness) marks(f *Fix) int {
	f.T.Helper()
	return must(h.Store.Depths(ctx))(f.T, "count what is live").Woken
}

// wantNoNotice fails the test if a RESUME notice for any run of the store is due now.
func (h *Harness) wantNoNotice(f *Fix, what string) {
	f.T.Helper()
	eq(f.T, "notices due "+what, h.SweepWoken(f.T), nil)
}

// lease is how long the cases' leases last, and a moment more ends them.
const (
	lease    = rendezvous.DefaultLease
	leaseEnd = lease + time.Microsecond
)
