package sweep_test

import (
	"context"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/sweep"
)

const day = 24 * time.Hour

// dead is how many dead letters acme has.
func (p *plane) dead() int {
	p.t.Helper()
	c, err := p.tenant.CountDeadLetters(p.t.Context(), store.DeadFilter{}, 0, false)
	must(p.t, err)
	return c.Count
}

// SW-29: a dead letter is purged once it was dead for its time, not before; what does not decode is told and hides none behind it.
func TestDeadLettersArePurgedAfterTheirTime(t *testing.T) {
	p := newPlane(t)
	w := p.sweep(nil, sweep.Config{Window: time.Hour, RetainDead: day})
	bad := runs("bad", 200) // a whole page
	for _, run := range append(bad, "old", "raised") {
		p.buffer(run)
	}
	w.tick(time.Hour) // they die
	for _, run := range bad {
		must(t, p.damage.Event("acme", eventID(run)))
	}
	operator := rendezvous.Operator{Actor: "kim", Basis: rendezvous.BasisAsserted}
	_, err := p.tenant.RequeueDeadLetters(t.Context(), store.Selection{Events: []rendezvous.EventID{eventID("raised")}}, store.Requeue{}, operator, "op", time.Time{})
	must(t, err)
	p.buffer("young")
	w.tick(time.Hour)
	if got := pass(t, w.tick(day-time.Hour-time.Microsecond), sweep.Retention); got.Handed != 0 || p.dead() != 203 {
		t.Errorf("too early: %+v, %d letters", got, p.dead())
	}
	if got := pass(t, w.tick(time.Microsecond), sweep.Retention); got.Handed != 201 || got.Done != 1 || got.Failed != 200 || got.Saturated || got.Err != nil {
		t.Errorf("reported %+v", got)
	}
	if e, err := p.tenant.LookupEvent(t.Context(), eventID("old"), true); err != nil || !e.Purged || e.HasPayload || e.OpBy.Actor != store.Retention {
		t.Errorf("%+v %v", e, err)
	}
	if n := p.dead(); n != 202 {
		t.Errorf("%d letters are left", n)
	}
	w.tick(time.Hour)
	if n := p.dead(); n != 200 {
		t.Errorf("%d letters are left, of which 200 do not decode", n)
	}
}

// SW-29: a time for ever purges none, and asks the store for none.
func TestDeadLettersAreKeptForEverWhereAsked(t *testing.T) {
	p := newPlane(t)
	p.buffer("old")
	w := p.sweep(nil, sweep.Config{RetainDead: sweep.Forever})
	w.tick(time.Hour)
	if got := pass(t, w.tick(100*365*day), sweep.Retention); got.Handed != 0 || got.Err != nil || p.dead() != 1 {
		t.Errorf("reported %+v, %d letters", got, p.dead())
	}
}

// S7: what retention could not end in a tick it goes on with in the next, not ten minutes later; and the letters of many tenants share its pages (SW-29, S3).
func TestRetentionThatHasMoreToDoGoesOnInTheNextTick(t *testing.T) {
	p := newPlane(t)
	for _, run := range runs("event", 450) {
		p.buffer(run)
	}
	p.clock.Advance(time.Second)
	other, err := p.store.Tenant("globex")
	must(t, err)
	_, err = other.Buffer(t.Context(), rendezvous.Event{EventID: eventID("one"), Type: "t", Payload: []byte("1")}, time.Time{})
	must(t, err)
	p.sweep(nil, sweep.Config{Window: time.Second}).tick(time.Hour) // they die
	p.clock.Advance(2 * day)
	reports := make(chan sweep.Report, 100)
	w := p.sweep(nil, sweep.Config{Pages: 1, RetainDead: day, Reported: func(r sweep.Report) { reports <- r }})
	must(t, w.Start())
	var worked []int
	for range 3 {
		r := <-reports
		if got, due := r.Pass(sweep.Retention); due {
			worked = append(worked, got.Handed)
		}
		if e, err := other.LookupEvent(context.Background(), eventID("one"), false); err != nil || !e.Purged {
			t.Errorf("the other tenant's letter after %v: %+v %v", worked, e, err)
		}
		p.clock.Waiting(1)
		p.clock.Advance(8 * time.Second) // more than the longest a tick comes after the one before
	}
	if len(worked) != 3 || worked[0] != 200 || worked[1] != 200 || worked[2] != 51 {
		t.Errorf("worked %v in three ticks", worked)
	}
}

// concluded starts a run and ends it.
func (p *plane) concluded(run string) {
	p.t.Helper()
	p.start(run)
	_, err := p.tenant.Conclude(p.t.Context(), store.Conclusion{RunID: run, ExpectedSeq: 1, BatchID: "end", Outcome: rendezvous.StatusCompleted}, time.Time{})
	must(p.t, err)
}

func (p *plane) known(run string) bool {
	p.t.Helper()
	_, err := p.tenant.DescribeWorkflow(p.t.Context(), store.WorkflowRef{WorkflowID: "w-" + run})
	if err != nil && rendezvous.CodeOf(err) != rendezvous.CodeNotFound && rendezvous.CodeOf(err) != rendezvous.CodeCorrupt {
		p.t.Fatal(err)
	}
	return rendezvous.CodeOf(err) != rendezvous.CodeNotFound
}

// SW-29: closed workflows go after their time, whole and in one tick, however many; open and younger ones stay, and a page of what does not decode hides nobody.
func TestClosedWorkflowsArePrunedAfterTheirTime(t *testing.T) {
	p := newPlane(t)
	bad, old := runs("bad", 200), runs("old", 450)
	for _, run := range append(bad, old...) {
		p.concluded(run)
	}
	for _, run := range bad {
		must(t, p.damage.Lease("acme", "w-"+run))
	}
	p.start("open")
	p.clock.Advance(time.Hour)
	p.concluded("young")
	w := p.sweep(nil, sweep.Config{RetainWorkflows: 30 * day})
	if got := pass(t, w.tick(30*day-time.Hour-time.Microsecond), sweep.Retention); got.Handed != 0 || !p.known("old-0") {
		t.Errorf("too early: %+v", got)
	}
	got := pass(t, w.tick(time.Microsecond), sweep.Retention)
	if got.Handed != 650 || got.Done != 450 || got.Failed != 200 || got.Saturated || got.Err != nil {
		t.Errorf("reported %+v", got)
	}
	for run, want := range map[string]bool{"old-0": false, "old-449": false, "bad-0": true, "young": true, "open": true} {
		if p.known(run) != want {
			t.Errorf("%s is known: %v", run, !want)
		}
	}
	if page, err := p.store.PruneRecords(t.Context(), 0); err != nil || page.Removed > 0 {
		t.Errorf("left %+v %v", page, err)
	}
	p.start("old-0") // its ids are free
}

// SW-29: what a crash left between two pages is finished by the next tick, also where workflows are kept for ever now; and none is pruned then.
func TestAPruningThatWasCutOffIsFinished(t *testing.T) {
	p := newPlane(t)
	for _, run := range runs("run", 5) {
		p.concluded(run)
	}
	w := p.sweep(nil, sweep.Config{RetainWorkflows: day, Pages: 2})
	armed := p.faults.Arm(fault.Failure{Verb: "prune_records", Point: fault.AtCall, Call: 1, Skip: 1, Times: -1})
	first := pass(t, w.tick(2*day), sweep.Retention)
	armed.Disarm()
	if armed.Struck() == 0 || p.known("run-0") {
		t.Fatalf("struck %d times, reported %+v", armed.Struck(), first)
	}
	if left, err := p.store.PruneRecords(t.Context(), 1); err != nil || left.Removed != 1 || !left.More {
		t.Fatalf("left %+v %v", left, err)
	}
	p.concluded("kept")
	forever := p.sweep(nil, sweep.Config{})
	if got := pass(t, forever.tick(100*day), sweep.Retention); got.Err != nil || got.Handed != 0 {
		t.Errorf("reported %+v", got)
	}
	p.start("run-0")
	if !p.known("kept") {
		t.Error("a workflow that is kept for ever is gone")
	}
}
