package sweep_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/sweep"
)

// hook registers a webhook of a started run, to which its first record is due.
func (p *plane) hook(run, id string) store.PushKey {
	p.t.Helper()
	_, err := p.tenant.PutPush(p.t.Context(), store.PutPush{
		Registration: rendezvous.Registration{RunID: run, ID: id, URL: "https://" + run + ".example.org/x", Events: []string{rendezvous.AllEvents}}, NextSeq: 1,
	}, time.Time{})
	must(p.t, err)
	return store.PushKey{RunID: run, ID: id}
}

func (p *plane) push(key store.PushKey) *store.Push {
	p.t.Helper()
	row, err := p.tenant.GetPush(p.t.Context(), key)
	must(p.t, err)
	return row
}

// PU-66, push.md section 8: the sweeper parks what has failed for longer than push.max_age, though no worker tries it any more; not sooner, and nothing else.
func TestRegistrationsThatFailForTooLongAreParked(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	failing, live := p.hook("run-1", "failing"), p.hook("run-1", "live")
	must(t, p.tenant.RetryPush(t.Context(), failing, 0, p.clock.Now().Add(365*day), "the receiver answered 500"))
	w := p.sweep(nil, sweep.Config{PushMaxAge: time.Hour})
	if got := pass(t, w.tick(time.Hour-time.Microsecond), sweep.PushUpkeep); got.Done != 0 || p.push(failing).State != rendezvous.PushLive {
		t.Errorf("too early: %+v %s", got, p.push(failing).State)
	}
	r := w.tick(time.Microsecond)
	got, row := pass(t, r, sweep.PushUpkeep), p.push(failing)
	if got.Done != 1 || row.State != rendezvous.PushParked || row.Reason != rendezvous.ParkExpired || row.NextSeq != 1 || row.Error != "the receiver answered 500" {
		t.Errorf("reported %+v; parked %+v", got, row)
	}
	if p.push(live).State != rendezvous.PushLive || !attends(r, "pushes_parked", "") {
		t.Errorf("%s, attention %+v", p.push(live).State, r.Attention)
	}
	done, err := p.tenant.UnparkPush(t.Context(), failing, time.Time{}, "op")
	must(t, err)
	if r := w.tick(time.Minute); !done || attends(r, "pushes_parked", "") || p.push(failing).State != rendezvous.PushLive {
		t.Errorf("unparked %t: attention %+v", done, r.Attention)
	}
}

// PU-84, push.md section 8: of an attempt log the newest 100 entries stay, and each for 7 days, whatever else fails.
func TestAttemptLogsAreTrimmed(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	key := p.hook("run-1", "a")
	for i := range 103 {
		_, err := p.tenant.LogPush(t.Context(), key, rendezvous.PushAttempt{ID: fmt.Sprint("e-", i), At: p.clock.Now(), Class: rendezvous.ClassFailed, Status: 500})
		must(t, err)
	}
	logged := func() int {
		t.Helper()
		page, err := p.tenant.PushAttempts(t.Context(), key, 1000, 0)
		must(t, err)
		return len(page.Attempts)
	}
	w := p.sweep(nil, sweep.Config{})
	aged := p.faults.Arm(fault.Failure{Verb: "park_aged_pushes", Point: fault.AtCall, Call: 1, Times: -1})
	if got := pass(t, w.tick(0), sweep.PushUpkeep); got.Err == nil || logged() != 100 {
		t.Errorf("%d entries, reported %+v", logged(), got)
	}
	aged.Disarm()
	if w.tick(7*day - time.Microsecond); logged() != 100 {
		t.Errorf("%d entries before their time", logged())
	}
	if w.tick(time.Microsecond); logged() != 0 {
		t.Errorf("%d entries after their time", logged())
	}
}

// PU-66, PU-49: what failed for too long is parked page by page; of what nobody sends for is told once a tick, behind the last page.
func TestManyThatFailForTooLongAreParkedInPages(t *testing.T) {
	p := newPlane(t)
	var keys []store.PushKey
	for _, run := range runs("run", 51) {
		p.start(run)
		for i := range 10 {
			key := p.hook(run, fmt.Sprint("h-", i))
			must(t, p.tenant.RetryPush(t.Context(), key, 0, p.clock.Now().Add(365*day), "the receiver answered 500"))
			keys = append(keys, key)
		}
	}
	p.start("late")
	p.hook("late", "a")
	p.sender.take()
	r := p.sweep(nil, sweep.Config{PushMaxAge: time.Minute}).tick(time.Minute)
	if got := pass(t, r, sweep.PushUpkeep); got.Done != len(keys) || got.Pages != 2 || got.Deferred != 1 || got.Saturated || got.Err != nil {
		t.Errorf("of %d reported %+v", len(keys), got)
	}
	if told := p.sender.take().Push; len(told) != 1 || told[0].RunID != "late" {
		t.Errorf("told of %+v", told)
	}
}

// PU-49, push.md section 8: of a run whose registrations have been due for more than 10 s the push-workers are told in every look, longest first; whoever reads the
// report sees for how long, and attention is raised after 5 min.
func TestRegistrationsThatNobodySendsForAreToldOf(t *testing.T) {
	p := newPlane(t)
	for _, run := range []string{"run-1", "run-2", "run-3"} {
		p.start(run)
	}
	p.hook("run-2", "a")
	p.clock.Advance(time.Second)
	p.hook("run-1", "a")
	p.hook("run-1", "b")
	w := p.sweep(nil, sweep.Config{})
	p.sender.take()
	told := func(r sweep.Report, want ...string) {
		t.Helper()
		var got []string
		for _, n := range p.sender.take().Push {
			if got = append(got, n.RunID); n.Tenant != "acme" || n.WorkflowID != "w-"+n.RunID || n.Head != 1 {
				t.Errorf("told of %+v", n)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("told of %v, want %v: %+v", got, want, pass(t, r, sweep.PushUpkeep))
		}
	}
	told(w.tick(9 * time.Second))
	told(w.tick(time.Microsecond), "run-2")
	for range 2 {
		r := w.tick(time.Second)
		told(r, "run-2", "run-1")
		if got := pass(t, r, sweep.PushUpkeep); got.Handed != 3 || got.Deferred != 3 || got.Oldest < 11*time.Second || got.Saturated || attends(r, "pushes_late", "") {
			t.Errorf("reported %+v, attention %+v", got, r.Attention)
		}
	}
	if r := w.tick(5 * time.Minute); !attends(r, "pushes_late", "") {
		t.Errorf("attention %+v", r.Attention)
	}
	d, err := p.store.Depths(t.Context())
	must(t, err)
	if d.DuePushes != 3 || d.FailingPushes != 0 || d.ParkedPushes != 0 || !d.OldestDuePush.Equal(p.push(store.PushKey{RunID: "run-2", ID: "a"}).NextAttemptAt) {
		t.Errorf("depths %+v", d)
	}
}
