package sweep_test

import (
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/sweep"
)

// arm arms a timer of run that far ahead, and answers its shard.
func (p *plane) arm(run string, ahead time.Duration) (shard int) {
	p.t.Helper()
	_, err := p.tenant.ArmTimer(p.t.Context(), store.Arm{RunID: run, TimerID: "t", After: &ahead, BatchID: "arm"}, time.Time{})
	must(p.t, err)
	return rendezvous.Shard("acme", "w-"+run, p.store.Shards())
}

// sweep.md section 2, late: of a timer that has been due for more than 10 s its shard's owner is told, in each look and whatever became of the last hint; it is
// counted, and not fired. Attention is raised when it has been due for more than 5 min.
func TestATimerThatNobodyFiresIsToldOf(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	shard := p.arm("run-1", time.Second)
	due := p.clock.Now().Add(time.Second)
	p.start("run-2")
	p.arm("run-2", time.Hour)
	w := p.sweep(nil, sweep.Config{})
	p.sender.take()
	told := func(r sweep.Report) int {
		t.Helper()
		hints := p.sender.take().Timers
		if got := pass(t, r, sweep.Late); got.Handed != len(hints) || got.Done != len(hints) || got.Failed != 0 || got.Err != nil {
			t.Errorf("told of %d shards, reported %+v", len(hints), got)
		}
		for _, h := range hints {
			if h.Shard != shard || !h.FireAt.Equal(due) {
				t.Errorf("told of %+v", h)
			}
		}
		return len(hints)
	}
	if n := told(w.tick(11 * time.Second)); n > 0 {
		t.Errorf("10 s after it was due it is told of")
	}
	for i := range 3 {
		r := w.tick(time.Microsecond)
		if n := told(r); n != 1 {
			t.Errorf("look %d: told of %d times", i, n)
		}
		if got := pass(t, r, sweep.Late); got.Oldest <= 10*time.Second || got.Oldest > 11*time.Second {
			t.Errorf("the oldest is due for %s", got.Oldest)
		}
		if attends(r, "timers_late", "") {
			t.Errorf("attention %+v", r.Attention)
		}
	}
	if r := w.tick(5 * time.Minute); told(r) != 1 || !attends(r, "timers_late", "") {
		t.Errorf("attention %+v", r.Attention)
	}
	d, err := p.store.Depths(t.Context())
	must(t, err)
	if d.Timers != 2 || d.DueTimers != 1 {
		t.Errorf("of two timers, one due and not fired, there are %d and %d", d.Timers, d.DueTimers)
	}
}

// Of shards that are another's, and of none, a sweeper tells nothing.
func TestOnlyTheOwnerTellsOfTimersThatNobodyFires(t *testing.T) {
	p := newPlane(t)
	p.start("run-1")
	shard := p.arm("run-1", 0)
	p.clock.Advance(time.Minute)
	p.sender.take()
	for _, c := range []struct{ owned, want int }{{shard, 1}, {(shard + 1) % p.store.Shards(), 0}} {
		w := p.sweep(p.seen(c.owned), sweep.Config{})
		r := w.tick(0)
		if got := len(p.sender.take().Timers); got != c.want || pass(t, r, sweep.Late).Handed != c.want {
			t.Errorf("told %d times by the owner of %d: %+v", got, c.owned, pass(t, r, sweep.Late))
		}
	}
}
