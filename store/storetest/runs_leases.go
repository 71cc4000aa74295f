package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/engine"
)

// runsLeases is runs.md section 8, "Leases".
var runsLeases = []Case{
	{Name: "RN-18 the first lease has epoch 1, each next one exactly one more", Run: epochsRise},
	{Name: "RN-18 a revocation is an epoch of its own", Run: revocationRises},
	{Name: "RN-19 a live lease is held, also against its owner's other asking", Run: liveLeaseIsHeld},
	{Name: "RN-20 the same acquire id is a retry while its lease lives", Run: acquireAgain},
	{Name: "RN-21 of first acquirers at once exactly one gets epoch 1", Run: acquirersAtOnce},
	{Name: "RN-22 an expired lease is claimable, and its former owner is fenced everywhere", Run: formerOwner},
	{Name: "RN-22 a late owner may write while nobody took over, and may not renew", Run: lateOwner},
	{Name: "RN-23 an invented epoch is fenced", Run: inventedEpoch},
	{Name: "RN-24 without an epoch a live lease refuses, a free run accepts", Run: withoutEpoch},
	{Name: "RN-25 only the right pair renews, and never revives", Run: renewals},
	{Name: "RN-26 releasing twice is fine, and a released epoch cannot write", Run: releaseTwice},
	{Name: "RN-27 a ttl outside its bounds is refused and consumes no epoch", Run: ttlBounds},
	{Name: "RN-28 abandoned runs are expired owners only, oldest first, in complete pages", Run: abandonedRuns},
	{Name: "RN-29 a driver that works longer than its ttl keeps the lease by renewing", Run: longDriver},
	{Name: "RN-30 a pod's clock an hour off changes nothing", Run: podClockOff},
}

func epochsRise(t *testing.T, h *Harness) {
	f, g := h.FixOf(t, "acme"), h.FixOf(t, "globex")
	r := f.Start()
	other := g.StartAs(store.Start{WorkflowID: r.WorkflowID, RunID: r.ID, Type: "order"})
	eq(t, "epoch of a run nobody leased", r.Describe().LeaseEpoch, int64(0))
	want := int64(0)
	for _, end := range []struct {
		name string
		do   func(d *Driver)
	}{
		{"released", func(d *Driver) { d.Release() }},
		{"suspended", func(d *Driver) { eq(t, "suspend", d.Suspend().Outcome, store.SuspendSuspended) }},
		{"expired", func(*Driver) { h.Advance(leaseEnd) }},
		{"reclaimed", func(*Driver) { h.Advance(leaseEnd); eq(t, "reclaimed", len(h.SweepLeases(t)), 1) }},
		{"paused by request", func(d *Driver) { r.Pause(); d.Suspend(); r.Resume() }},
		{"paused by the driver", func(d *Driver) { d.Append(r.Paused()); r.Resume() }},
		{"ended by a continuation", func(d *Driver) {
			out := must(f.ContinueAsNew(ctx, store.Continuation{RunID: r.ID, Epoch: d.Epoch, ExpectedSeq: r.Head(), BatchID: ID("batch")}, now))(t, "continue")
			r = &Flow{F: f, WorkflowID: r.WorkflowID, ID: out.RunID}
			eq(t, "epoch over the next run", r.Describe().LeaseEpoch, d.Epoch)
			must(f.ReleaseLease(ctx, r.ID, d.Epoch))(t, "release the next run")
		}},
		{"the last one", func(d *Driver) { d.Release() }},
	} {
		d := r.Drive()
		want++
		eq(t, "epoch before it is "+end.name, d.Epoch, want)
		end.do(d)
		eq(t, "epoch after it is "+end.name, r.Describe().LeaseEpoch, want)
	}
	eq(t, "epoch in the other tenant", other.Drive().Epoch, int64(1))
	r.Conclude(rendezvous.StatusCompleted)
	eq(t, "epoch after the end", r.Describe().LeaseEpoch, want)
}

func revocationRises(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for what, end := range map[string]func(d *Driver) time.Duration{
		"a live lease": func(*Driver) time.Duration { return 0 }, "an abandoned lease": func(*Driver) time.Duration { return leaseEnd },
	} {
		r := f.Start()
		r.Drive().Release()
		d := r.Drive()
		h.Advance(end(d))
		r.Revoke()
		row := r.Describe()
		eq(t, "epoch after the revocation of "+what, row.LeaseEpoch, d.Epoch+1)
		eq(t, "owner after the revocation of "+what, row.LeaseOwner, "")
	}
}

func liveLeaseIsHeld(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.Drive()
	for left := lease; left > 0; left -= 9 * time.Second {
		for _, owner := range []string{ID("pod"), d.Owner} {
			r.unmoved("a live lease, asked for by "+owner, rendezvous.CodeLeaseHeld, func() error { _, err := r.Acquire(owner, ID("acquire")); return err },
				"owner", d.Owner, "remaining_ms", left.Milliseconds())
		}
		h.Advance(9 * time.Second)
	}
	h.Advance(-6*time.Second - time.Microsecond) // to its last microsecond
	_, err := r.Acquire(ID("pod"), ID("acquire"))
	code(t, "the last microsecond", err, rendezvous.CodeLeaseHeld)
	h.Advance(time.Microsecond)
	eq(t, "epoch of the next", must(r.Acquire(ID("pod"), ID("acquire")))(t, "acquire").Epoch, d.Epoch+1)
}

func acquireAgain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	owner, id := ID("pod"), ID("acquire")
	first := must(f.AcquireLease(ctx, r.ID, owner, 20*time.Second, id))(t, "acquire")
	eq(t, "the first answer", first, store.Lease{WorkflowID: r.WorkflowID, Epoch: 1, Head: 1, ExpiresAt: h.Now(t).Add(20 * time.Second)})
	before := r.Describe()
	h.Advance(5 * time.Second)
	again := must(f.AcquireLease(ctx, r.ID, owner, time.Minute, id))(t, "acquire again")
	eq(t, "the repeat", again, first)
	after := r.Describe()
	eq(t, "time left", after.LeaseRemaining, 15*time.Second)
	after.LeaseRemaining = before.LeaseRemaining
	eq(t, "the row", after, before)
	h.Advance(15 * time.Second)
	next := must(f.AcquireLease(ctx, r.ID, owner, 20*time.Second, id))(t, "acquire with the id of a lease that ran out")
	eq(t, "epoch and expiry", fmt.Sprint(next.Epoch, next.ExpiresAt), fmt.Sprint(2, h.Now(t).Add(20*time.Second)))
	must(f.ReleaseLease(ctx, r.ID, next.Epoch))(t, "release")
	eq(t, "epoch with the id of a released lease", must(f.AcquireLease(ctx, r.ID, owner, 20*time.Second, id))(t, "acquire").Epoch, int64(3))
}

func acquirersAtOnce(t *testing.T, h *Harness) {
	const pods = 4
	for round := range h.Rounds(t) {
		f := h.FixOf(t, [...]string{"acme", "globex"}[round%2])
		r := f.Start()
		var leases [pods]store.Lease
		var errs [pods]error
		var fns []func()
		for i := range pods {
			fns = append(fns, func() { leases[i], errs[i] = r.Acquire(fmt.Sprint("pod", i), ID("acquire")) })
		}
		Race(t, fns...)
		winner := slices.Index(errs[:], nil)
		if winner < 0 {
			t.Fatalf("nobody won: %v", errs)
		}
		eq(t, "epoch of the winner", leases[winner].Epoch, int64(1))
		for i, err := range errs {
			if i != winner {
				code(t, "a loser", err, rendezvous.CodeLeaseHeld, "owner", fmt.Sprint("pod", winner))
			}
		}
		row := r.Describe()
		eq(t, "owner", row.LeaseOwner, fmt.Sprint("pod", winner))
		eq(t, "epoch", row.LeaseEpoch, int64(1))
	}
}

// wantFenced fails the test unless every verb under that epoch is fenced, naming the current one, and moves nothing.
func (r *Flow) wantFenced(what, owner string, epoch, current int64, wait string) {
	r.F.T.Helper()
	calls := slices.Concat(r.writes(epoch), r.withdrawals(epoch, wait), r.holderOnly(owner, epoch))
	for _, v := range calls {
		r.unmoved(v.name+" under "+what, rendezvous.CodeFenced, v.call, "epoch", current)
	}
	before := r.outlook()
	got := must(r.F.ReleaseLease(ctx, r.ID, epoch))(r.F.T, "release "+what)
	eq(r.F.T, "releasing "+what, got.Outcome, store.SuspendNotHeld)
	eq(r.F.T, "the workflow after releasing "+what, r.outlook(), before)
}

func formerOwner(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	former := r.Drive()
	former.Waits("w", "paid", K("order", "1"))
	h.Advance(leaseEnd)
	d := r.Drive()
	eq(t, "epoch of the next owner", d.Epoch, former.Epoch+1)
	parked := d.Parked("parked")
	r.wantFenced("a lease that another took over", former.Owner, former.Epoch, d.Epoch, "w")
	r.WantParked("parked", parked)
	d.Append(r.Noted("on"))
	row := r.Describe()
	eq(t, "owner and epoch", fmt.Sprint(row.LeaseOwner, row.LeaseEpoch), fmt.Sprint(d.Owner, d.Epoch))

	h.Advance(leaseEnd)
	eq(t, "reclaimed", h.SweepLeases(t)[0].Outcome, store.ReclaimReclaimed)
	r.wantFenced("a lease that was reclaimed", d.Owner, d.Epoch, d.Epoch, "w")
}

func lateOwner(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.Drive()
	h.Advance(leaseEnd)
	r.unmoved("renewing a lease that ran out", rendezvous.CodeFenced, r.holderOnly(d.Owner, d.Epoch)[0].call)
	d.Append(r.Noted("late"))
	d.Waits("w", "paid", K("order", "1"))
	stale := d.Batch(r.Noted("n"))
	e := EventOf("paid", K("order", "1"))
	eq(t, "delivered to a run whose lease ran out", len(f.Send(e).Made(store.OfferDelivered)), 1)
	_, err := f.Append(ctx, stale, now)
	code(t, "a late append that does not know of it", err, rendezvous.CodeConflict, "head", r.Head())
	eq(t, "what it has not seen", len(d.Suspend().Records), 1)
	eq(t, "suspended after all", d.Suspend().Outcome, store.SuspendSuspended)
	r.WantFree()
}

func inventedEpoch(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Waits("w", "paid", K("order", "1"))
	for _, epoch := range []int64{1, 2, 1 << 40} {
		r.wantFenced("an epoch on a run that nobody leased", "pod", epoch, 0, "w")
	}
	d := r.Drive()
	for _, epoch := range []int64{d.Epoch + 1, d.Epoch + 7, 1 << 40} {
		r.wantFenced("an epoch of the future", d.Owner, epoch, d.Epoch, "w")
	}
	d.Append(r.Noted("on"))
	d.Release()
	r.wantFenced("an epoch of the future of a free run", d.Owner, d.Epoch+1, d.Epoch, "w")
	for _, v := range append(r.writes(-1), r.holderOnly(d.Owner, -1)...) {
		if c := rendezvous.CodeOf(v.call()); c != rendezvous.CodeInvalid && c != rendezvous.CodeFenced {
			t.Fatalf("%s under a negative epoch: %s, want it refused", v.name, c)
		}
	}
	r.WantFree()
}

func withoutEpoch(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.Drive()
	d.Waits("w", "paid", K("order", "1"))
	for _, v := range append(r.writes(0), r.withdrawals(0, "w")...) {
		r.unmoved(v.name+" on a live lease", rendezvous.CodeLeaseHeld, v.call, "owner", d.Owner, "remaining_ms", lease.Milliseconds())
	}
	h.Advance(leaseEnd)
	eq(t, "head of an append once it ran out", r.AppendFree(r.Noted("n")).Head, int64(3))
	d = r.Drive()
	d.Release()
	eq(t, "head of an append on a free run", r.AppendFree(r.Noted("n")).Head, int64(4))
	r.unmoved("an append on a free run at a wrong head", rendezvous.CodeConflict, func() error {
		_, err := f.Append(ctx, store.Append{RunID: r.ID, ExpectedSeq: 3, BatchID: ID("batch"), Records: recs(r.Noted("n"))}, now)
		return err
	}, "expected", 3, "head", 4)
	for _, v := range append(r.withdrawals(0, "w"), r.writes(0)[5:]...) {
		done(t, v.name+" on a free run", v.call())
	}
}

func renewals(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.Drive()
	renew := func(owner string, epoch int64, ttl time.Duration) (store.Lease, error) {
		return f.RenewLease(ctx, r.ID, owner, epoch, ttl)
	}
	h.Advance(20 * time.Second)
	d.Parked("parked")
	r.AskCancel()
	got := must(renew(d.Owner, d.Epoch, 40*time.Second))(t, "renew")
	eq(t, "epoch, head, expiry and mail", fmt.Sprint(got.Epoch, got.Head, got.ExpiresAt, got.Mail.Mail), fmt.Sprint(d.Epoch, 2, h.Now(t).Add(40*time.Second), 1))
	eq(t, "requests", asked(got.Requests), []rendezvous.RequestKind{rendezvous.RequestCancel})
	eq(t, "time left", r.Describe().LeaseRemaining, 40*time.Second)
	shorter := must(renew(d.Owner, d.Epoch, 5*time.Second))(t, "renew for less") // it extends, and never shortens
	eq(t, "expiry", shorter.ExpiresAt, got.ExpiresAt)

	wrong := func(what string, owner string, epoch int64) {
		t.Helper()
		r.unmoved("renewal by "+what, rendezvous.CodeFenced, func() error { _, err := renew(owner, epoch, lease); return err }, "epoch", d.Epoch)
	}
	wrong("another owner", ID("pod"), d.Epoch)
	wrong("another epoch", d.Owner, d.Epoch+1)
	must(renew(d.Owner, d.Epoch, lease))(t, "renew after strangers tried")
	h.Advance(40 * time.Second)
	wrong("the owner of a lease that ran out", d.Owner, d.Epoch)
	eq(t, "reclaimed", len(h.SweepLeases(t)), 1)
	wrong("the owner of a reclaimed lease", d.Owner, d.Epoch)
	r.WantFree()
	d = r.Drive()
	d.Release()
	wrong("the owner of a released lease", d.Owner, d.Epoch)
	r.WantFree()
	rows, _, err := h.Store.AbandonedRuns(ctx, 0, "")
	done(t, "list abandoned runs", err)
	eq(t, "abandoned runs", rows, nil)
	eq(t, "owner of the next lease", r.Drive().Epoch, d.Epoch+1)
}

func releaseTwice(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	d := r.Drive()
	d.Waits("w", "paid", K("order", "1"))
	eq(t, "released", d.Release().Outcome, store.SuspendReleased)
	r.WantFree()
	before := r.outlook()
	eq(t, "released again", d.Release(), store.Suspended{Outcome: store.SuspendNotHeld, Head: 2})
	eq(t, "the workflow", r.outlook(), before)
	next := r.Drive() // at once
	r.wantFenced("a released lease that another followed", d.Owner, d.Epoch, next.Epoch, "w")
	next.Release()
	for _, v := range slices.Concat(r.writes(next.Epoch), r.withdrawals(next.Epoch, "w"), r.holderOnly(next.Owner, next.Epoch)) {
		r.unmoved(v.name+" under a released epoch", rendezvous.CodeFenced, v.call, "epoch", next.Epoch)
	}
	next = r.Drive()
	next.Conclude(rendezvous.StatusCompleted)
	eq(t, "released after the end", next.Release().Outcome, store.SuspendNotHeld)
}

func ttlBounds(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	for _, ttl := range []time.Duration{time.Second, 2*time.Second - 1, 0, -1, -30 * time.Second, time.Hour + 1, 2 * time.Hour} {
		r.unmoved(fmt.Sprintf("a ttl of %s", ttl), rendezvous.CodeInvalid, func() error { _, err := f.AcquireLease(ctx, r.ID, "pod", ttl, "a"); return err }, "field", "ttl")
	}
	for i, ttl := range []time.Duration{2 * time.Second, time.Hour, rendezvous.DefaultLease} {
		d := r.DriveFor(ttl)
		eq(t, "epoch", d.Epoch, int64(i+1)) // none was consumed
		eq(t, "time left", r.Describe().LeaseRemaining, ttl)
		for _, bad := range []time.Duration{time.Second, 0, -time.Second, 2 * time.Hour} {
			r.unmoved(fmt.Sprintf("renewal for %s", bad), rendezvous.CodeInvalid, func() error { _, err := f.RenewLease(ctx, r.ID, d.Owner, d.Epoch, bad); return err }, "field", "ttl")
		}
		d.Release()
	}
}

func abandonedRuns(t *testing.T, h *Harness) {
	tenants := [...]*Fix{h.FixOf(t, "acme"), h.FixOf(t, "globex")}
	var want []store.AbandonedRun
	for i := range 24 {
		f := tenants[i%2]
		r := f.Start()
		d := r.DriveFor(time.Duration(2+(i*7)%5) * time.Second) // several run out at one instant
		want = append(want, store.AbandonedRun{
			Tenant: f.Name(), WorkflowRef: store.WorkflowRef{WorkflowID: r.WorkflowID, RunID: r.ID}, Owner: d.Owner, Epoch: d.Epoch,
			ExpiresAt: h.Now(t).Add(r.Describe().LeaseRemaining),
		})
	}
	slices.SortFunc(want, func(a, b store.AbandonedRun) int {
		return cmp.Or(a.ExpiresAt.Compare(b.ExpiresAt), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.WorkflowID, b.WorkflowID))
	})
	for _, f := range tenants { // none of these is ever listed
		f.Start()
		f.Start().DriveFor(time.Hour)
		f.Start().DriveFor(2 * time.Second).Release()
		f.Start().DriveFor(2 * time.Second).Suspend()
		f.Start().DriveFor(2 * time.Second).Conclude(rendezvous.StatusCompleted)
		paused := f.Start().DriveFor(2 * time.Second)
		paused.Append(paused.Paused())
	}
	list := func(limit int) []store.AbandonedRun {
		t.Helper()
		var all []store.AbandonedRun
		for cursor := ""; ; {
			rows, next, err := h.Store.AbandonedRuns(ctx, limit, cursor)
			done(t, "list abandoned runs", err)
			if limit > 0 && len(rows) > limit {
				t.Fatalf("%d rows of at most %d", len(rows), limit)
			}
			all = append(all, rows...)
			if cursor = next; cursor == "" {
				return all
			}
		}
	}
	eq(t, "abandoned while all live", list(0), nil)
	h.Advance(4 * time.Second)
	expired := slices.DeleteFunc(slices.Clone(want), func(a store.AbandonedRun) bool { return a.ExpiresAt.After(h.Now(t)) })
	if len(expired) == 0 || len(expired) == len(want) {
		t.Fatalf("%d of %d ran out: the scene is no good", len(expired), len(want))
	}
	eq(t, "abandoned at 4 s", list(0), expired)
	h.Advance(2 * time.Second)
	for _, limit := range []int{0, 1, 3, 24, 25} {
		eq(t, fmt.Sprintf("abandoned at 6 s, in pages of %d", limit), list(limit), want)
	}
	_, _, err := h.Store.AbandonedRuns(ctx, -1, "")
	code(t, "a negative limit", err, rendezvous.CodeInvalid)
	_, _, err = h.Store.AbandonedRuns(ctx, rendezvous.MaxList+1, "")
	code(t, "a limit over the most", err, rendezvous.CodeTooLarge, "limit", rendezvous.MaxList, "value", rendezvous.MaxList+1)
	eq(t, "reclaimed", len(h.SweepLeases(t)), len(want))
	eq(t, "abandoned after the sweep", list(0), nil)
}

func longDriver(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	const ttl = 6 * time.Second
	d := r.DriveFor(ttl)
	for range 15 {
		h.Advance(ttl / 3)
		must(f.RenewLease(ctx, r.ID, d.Owner, d.Epoch, ttl))(t, "renew")
		d.Append(r.Noted("working"))
		_, err := r.Acquire(ID("pod"), ID("acquire"))
		code(t, "another driver", err, rendezvous.CodeLeaseHeld, "owner", d.Owner, "remaining_ms", ttl.Milliseconds())
		eq(t, "reclaimed", h.SweepLeases(t), nil)
	}
	d.Conclude(rendezvous.StatusCompleted)
	eq(t, "epoch", r.Describe().LeaseEpoch, d.Epoch)
}

// offClock is a pod's clock that is off by that much.
type offClock struct {
	clock.Clock
	off time.Duration
}

func (c offClock) Now() time.Time { return c.Clock.Now().Add(c.off) }

// pod is the store as another process sees it whose clock is off.
func (h *Harness) pod(f *Fix, off time.Duration) *Fix {
	f.T.Helper()
	s := must(engine.New(h.Faults, engine.Options{Clock: offClock{clock.System, off}}))(f.T, "open the store in another pod")
	return &Fix{Tenant: must(s.Tenant(f.Name()))(f.T, "take the tenant's handle"), T: f.T, H: h}
}

func podClockOff(t *testing.T, h *Harness) {
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		f := h.Fix(t)
		pod := h.pod(f, off)
		r := f.Start()
		there := &Flow{F: pod, WorkflowID: r.WorkflowID, ID: r.ID}
		d := there.Drive()
		eq(t, "time left", r.Describe().LeaseRemaining, lease)
		eq(t, "time left, seen from the pod", there.Describe().LeaseRemaining, lease)
		h.Advance(20 * time.Second)
		got := must(pod.RenewLease(ctx, r.ID, d.Owner, d.Epoch, lease))(t, "renew")
		eq(t, "expiry", got.ExpiresAt, h.Now(t).Add(lease))
		d.Append(r.Noted("n"))
		eq(t, "recorded_at", r.History()[1].RecordedAt, h.Now(t))
		h.Advance(lease - time.Microsecond)
		for _, from := range []*Flow{r, there} {
			_, err := from.Acquire(ID("pod"), ID("acquire"))
			code(t, "in its last microsecond", err, rendezvous.CodeLeaseHeld, "owner", d.Owner)
		}
		h.Advance(time.Microsecond)
		for _, from := range []*Flow{r, there} {
			rows, _, err := h.Store.AbandonedRuns(ctx, 0, "")
			done(t, "list abandoned runs", err)
			eq(t, "abandoned", len(rows), 1)
			next := from.DriveFor(2 * time.Second)
			d.Epoch++
			eq(t, "epoch", next.Epoch, d.Epoch)
			h.Advance(2 * time.Second)
		}
		r.Drive().Release()
	}
}
