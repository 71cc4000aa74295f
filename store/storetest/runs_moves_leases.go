package storetest

import (
	"cmp"
	"fmt"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// The moves of drivers, and of who pauses them.

func (w *turn) acquire() move {
	f := w.f
	owner, id := pick(w.rnd, "pod/1", "pod/2", "pod/3"), ID("acquire")
	if f.owner != "" && w.rnd.IntN(4) == 0 {
		owner, id = f.owner, f.acquireID
	}
	ttl := pick(w.rnd, 5*time.Second, rendezvous.DefaultLease, time.Minute)
	got, err := w.fix.AcquireLease(ctx, w.run, owner, ttl, id)
	want := w.law.admits(f, w.run, f.epoch)
	switch {
	case want == rendezvous.CodeNotFound, want == rendezvous.CodeSealed:
	case f.live(w.law) && f.owner == owner && f.acquireID == id:
		want = ""
	case f.live(w.law):
		want = rendezvous.CodeLeaseHeld
	case f.run().status == rendezvous.StatusPaused:
		want = rendezvous.CodeConflict
	default:
		want = ""
		if f.owner != "" {
			f.reclaims++
		}
		f.epoch++
		f.owner, f.acquireID, f.expires, f.woken = owner, id, w.law.now.Add(ttl), markNo
	}
	if err == nil {
		eq(w.t, "the lease", fmt.Sprint(got.Epoch, got.Head, got.ExpiresAt, got.Mail.Mail), fmt.Sprint(f.epoch, f.head(), f.expires, w.mail()))
	}
	return w.move("acquire by "+owner, err, want, store.Notices{})
}

func (w *turn) mail() int {
	n := 0
	for _, of := range w.f.run().waits {
		if of.held != nil {
			n++
		}
	}
	return n
}

func (w *turn) renew() move {
	f := w.f
	owner, epoch := cmp.Or(f.owner, "pod/1"), max(w.epoch, 1)
	if w.rnd.IntN(5) == 0 {
		owner = "pod/9"
	}
	ttl := pick(w.rnd, 2*time.Second, rendezvous.DefaultLease)
	_, err := w.fix.RenewLease(ctx, w.run, owner, epoch, ttl)
	want := w.law.admits(f, w.run, epoch)
	switch {
	case want == rendezvous.CodeSealed && w.run == f.run().id:
		want = rendezvous.CodeFenced
	case want == rendezvous.CodeSealed, want == rendezvous.CodeNotFound:
	case !f.live(w.law) || f.owner != owner || f.epoch != epoch:
		want = rendezvous.CodeFenced
	default:
		want = ""
		if until := w.law.now.Add(ttl); until.After(f.expires) {
			f.expires = until
		}
	}
	return w.move("renew by "+owner, err, want, store.Notices{})
}

// tells marks a run whose driver was told of answers by its own verb, maybe beyond the end of its lease.
func (w *turn) tells(answers int) {
	if answers > 0 && !w.f.live(w.law) && w.f.woken == markNo {
		w.f.woken = markMaybe
	}
}

func (w *turn) collect() move {
	w.epoch = max(w.epoch, 1)
	got, err := w.fix.Collect(ctx, w.run, w.epoch)
	want := w.law.admits(w.f, w.run, w.epoch)
	if want == "" {
		n := w.law.parked(w.f, true)
		w.tells(n)
		eq(w.t, "records collected", len(got.Records), n)
	}
	return w.move("collect", err, want, got.Notices)
}

func (w *turn) suspend() move {
	f := w.f
	w.epoch = max(w.epoch, 1)
	seen := f.head()
	if w.rnd.IntN(4) == 0 {
		seen = w.rnd.Int64N(seen + 2)
	}
	knows := w.rnd.IntN(2) == 0
	got, err := w.fix.Suspend(ctx, w.run, w.epoch, seen, knows)
	want := w.law.admits(f, w.run, w.epoch)
	outcome := store.SuspendOutcome("")
	switch {
	case want == rendezvous.CodeFenced && f.owner == "" && f.epoch == w.epoch && f.ended == rendezvous.LeaseSuspended:
		want, outcome = "", store.SuspendSuspended
	case want == rendezvous.CodeFenced && f.owner == "" && f.epoch == w.epoch && f.ended == rendezvous.LeasePaused:
		want, outcome = "", store.SuspendPaused
	case want != "":
	case seen > f.head():
		want = rendezvous.CodeConflict
	default:
		w.tells(w.law.parked(f, true))
		switch {
		case f.head() > seen || f.cancel && !knows:
			outcome = store.SuspendContinue
			eq(w.t, "records shown", len(got.Records), int(f.head()-seen))
		case f.pause:
			w.law.paused(f, true)
			outcome = store.SuspendPaused
		default:
			f.free(rendezvous.LeaseSuspended)
			outcome = store.SuspendSuspended
		}
	}
	eq(w.t, "outcome of the suspend", got.Outcome, outcome)
	return w.move(fmt.Sprint("suspend having seen ", seen), err, want, got.Notices)
}

func (w *turn) release() move {
	f := w.f
	w.epoch = max(w.epoch, 1)
	got, err := w.fix.ReleaseLease(ctx, w.run, w.epoch)
	want := w.law.admits(f, w.run, w.epoch)
	outcome := store.SuspendNotHeld
	switch want {
	case rendezvous.CodeNotFound:
		outcome = ""
	case "":
		outcome = store.SuspendReleased
		w.law.parked(f, true)
		if f.pause {
			w.law.paused(f, true)
		}
		f.free(rendezvous.LeaseReleased)
		f.woken = markYes
	default:
		want = ""
	}
	eq(w.t, "outcome of the release", got.Outcome, outcome)
	return w.move("release", err, want, got.Notices)
}

func (w *turn) pause() move {
	f := w.f
	got, err := w.fix.PauseRun(ctx, w.run, kim, "lunch", now)
	want, outcome := w.law.admits(f, w.run, f.epoch), store.PausePaused
	switch {
	case want == rendezvous.CodeNotFound, want == rendezvous.CodeSealed:
		outcome = ""
	case f.run().status == rendezvous.StatusPaused:
		want, outcome = "", store.PauseAlreadyPaused
	case f.live(w.law):
		want, outcome = "", store.PauseRequested
		f.pause = true
	default:
		want = ""
		w.law.paused(f, false)
	}
	eq(w.t, "outcome of the pause", got.Outcome, outcome)
	return w.move("pause", err, want, got.Notices)
}

func (w *turn) resume() move {
	f := w.f
	got, err := w.fix.ResumeRun(ctx, w.run, kim, "back", now)
	want, outcome := w.law.admits(f, w.run, f.epoch), store.PauseNotPaused
	switch {
	case want == rendezvous.CodeNotFound, want == rendezvous.CodeSealed:
		outcome = ""
	case f.run().status == rendezvous.StatusPaused:
		want, outcome = "", store.PauseResumed
		w.law.record(f, false, rendezvous.RunResumed, "", 0)
		f.woken = markYes
	case f.pause:
		want, outcome = "", store.PauseTakenBack
		f.pause = false
	default:
		want = ""
	}
	eq(w.t, "outcome of the resume", got.Outcome, outcome)
	return w.move("resume", err, want, got.Notices)
}

// reclaim is the pass over all abandoned runs.
func (w *turn) reclaim() move {
	var n store.Notices
	for _, got := range w.h.SweepLeases(w.t) {
		n.Append(got.Notices)
	}
	for _, f := range w.law.flows {
		if f.owner == "" || f.live(w.law) {
			continue
		}
		w.law.parked(f, false)
		if f.pause {
			w.law.paused(f, false)
		}
		f.free(rendezvous.LeaseReclaimed)
		f.reclaims++
		f.woken = markYes
	}
	return w.move("reclaim", nil, "", n)
}
