package shard_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// SH-17: a pod that joins takes all over in one order: acquire, and of each shard subscribe, publish, believe; then one extension for the round, then the work.
func TestPublishingComesBeforeExtendingForEveryShardOfTheRound(t *testing.T) {
	w := newWorld(t, 4)
	p := w.join(1)[0]
	if len(workflowsSeen(t, p)) != 0 {
		t.Error("a pod that only starts sees something")
	}
	w.turns()
	var around []string // the steps of all
	of := map[string][]string{}
	for i, l := range p.log {
		switch word, shard, _ := strings.Cut(l, " "); word {
		case "subscribe", "publish", "believe":
			if slices.ContainsFunc(p.log[:i], func(before string) bool { return strings.HasPrefix(before, "extend") }) {
				t.Errorf("%s comes behind the extension", l)
			}
			of[shard] = append(of[shard], word)
		default:
			around = append(around, word)
		}
	}
	if want := []string{"renew", "acquire", "extend", "adopt"}; !slices.Equal(around, want) {
		t.Errorf("the first round was %q, want %q", around, want)
	}
	for _, s := range acquired(p.log) {
		if want := []string{"subscribe", "publish", "believe"}; !slices.Equal(of[s], want) {
			t.Errorf("shard %s was taken over by %q, want %q", s, of[s], want)
		}
	}
	if len(of) != 4 {
		t.Errorf("%d of 4 shards were taken over", len(of))
	}
	for _, l := range w.directory().Shards {
		if l.Owner != p.name || !l.Serving || l.Address != "host of pod1" {
			t.Errorf("the directory says %+v", l)
		}
	}
}

// acquired are the shards of the last acquire, in the store's order.
func acquired(log []string) []string {
	for _, l := range slices.Backward(log) {
		if list, ok := strings.CutPrefix(l, "acquire "); ok {
			shards := strings.Fields(strings.Trim(list, "[]"))
			slices.Sort(shards)
			return shards
		}
	}
	return nil
}

func workflowsSeen(t *testing.T, p *pod) []store.WorkflowPosition {
	t.Helper()
	seen, err := p.handle.ListWorkflowIDs(t.Context(), store.Scope{}, nil, 0)
	must(t, err)
	return seen
}

// SH-18: what fails a step is dropped alone, before anything of it is seen, and free for others again.
func TestAShardThatFailsAStepIsDroppedAlone(t *testing.T) {
	w := newWorld(t, 4)
	w.start(4)
	p := w.join(1)[0]
	refused := errors.New("no consumer can be made")
	p.refuse = func(s int) error {
		if s == 1 {
			return refused
		}
		return nil
	}
	w.faults.Arm(fault.Failure{Verb: "publish_shard", Point: fault.BeforeCommit}) // of whichever comes first
	w.turns()
	working := p.working()
	if len(working) != 2 || slices.Contains(working, 1) {
		t.Errorf("works on %v", working)
	}
	for _, seen := range workflowsSeen(t, p) {
		if !slices.Contains(working, seen.Shard) {
			t.Errorf("sees workflow %s of shard %d", seen.WorkflowID, seen.Shard)
		}
	}
	for s := range 4 {
		if slices.Contains(working, s) {
			continue
		}
		if l := w.directory().Shards[s]; l.Owner != "" || l.Epoch != 1 {
			t.Errorf("shard %d, which was dropped, is %+v", s, l)
		}
	}
	p.refuse = nil
	w.until(4*time.Second, "that it takes what it had dropped", func() bool { return len(p.working()) == 4 })
}

// Shards are published some at once: on a slow database a pod takes over in one round what another left, and gives nothing back for want of time.
func TestShardsArePublishedSomeAtOnce(t *testing.T) {
	w := newWorld(t, 16)
	p := w.join(1)[0]
	both := make(chan struct{})
	p.slow = func() { // each waits for another
		select {
		case both <- struct{}{}:
		case <-both:
		case <-time.After(10 * time.Second):
			t.Error("one is published alone")
		}
	}
	w.turns()
	if n := len(p.working()); n != 16 {
		t.Errorf("works on %d shards", n)
	}
}

// start puts a workflow into every shard.
func (w *world) start(shards int) {
	w.t.Helper()
	tenant, err := w.store.Tenant("acme")
	must(w.t, err)
	seen := map[int]bool{}
	for i := 0; len(seen) < shards; i++ {
		id := fmt.Sprint("w", i)
		if s := rendezvous.Shard("acme", id, shards); !seen[s] {
			seen[s] = true
			_, err := tenant.StartRun(w.t.Context(), store.Start{WorkflowID: id, RunID: "r" + id, Type: "t"}, time.Time{})
			must(w.t, err)
		}
	}
}

// SH-18, SH-19: a pod that slept between its acquire and its publish was deposed meanwhile. In the right order it never sees a workflow of a shard that is another's; with
// extending first both enumerate it.
func TestOnlyTheRightOrderKeepsADeposedPodFromSeeing(t *testing.T) {
	for _, reversed := range []bool{false, true} {
		t.Run(fmt.Sprint("reversed ", reversed), func(t *testing.T) {
			w := newWorld(t, 1)
			w.start(1)
			slow, quick := w.join(1)[0], w.joinAs("quick")
			if reversed {
				slow.Reverse()
			}
			doubled := false
			w.faults.Arm(fault.Failure{Verb: "publish_shard", Point: fault.AtCall, Call: 1, Do: func(context.Context) error {
				w.faults.Disarm()
				return nil
			}})
			slow.refuse = func(int) error { // it sleeps, and the other takes over
				w.clock.Advance(3 * time.Second)
				quick.Turn(t.Context())
				quick.Turn(t.Context())
				if len(quick.working()) != 1 {
					t.Error("the other does not take over")
				}
				doubled = len(workflowsSeen(t, slow)) == 1 && len(workflowsSeen(t, quick)) == 1
				return nil
			}
			slow.Turn(t.Context())
			if doubled != reversed {
				t.Errorf("both see the workflow: %v", doubled)
			}
			if len(slow.work) != 0 {
				t.Error("the deposed pod works")
			}
		})
	}
}

// A reply that is lost leaves a shard that is this pod's and that it does not know of: the next round asks again.
func TestAnAcquisitionWhoseReplyWasLostIsFoundAgain(t *testing.T) {
	w := newWorld(t, 4)
	p := w.join(1)[0]
	w.faults.Arm(fault.Failure{Verb: "acquire_shards", Point: fault.AfterCommit})
	w.turns()
	if len(p.working()) != 0 || w.directory().Shards[0].Owner != p.name {
		t.Fatalf("works on %v, the directory says %+v", p.working(), w.directory().Shards[0])
	}
	w.until(time.Second, "that it works on all", func() bool { return len(p.working()) == 4 })
	for s, epoch := range p.work {
		if epoch != 1 {
			t.Errorf("epoch %d of shard %d", epoch, s)
		}
	}
}

// A write that was refused ends the belief. If the lease was good after all, the shard is taken anew, within a round.
func TestAShardThatIsDoubtedIsTakenAnew(t *testing.T) {
	w := newWorld(t, 4)
	p := w.join(1)[0]
	w.turns()
	if err := p.handle.PublishShardOwner(t.Context(), 2, 99, ""); !errors.Is(err, rendezvous.ErrFenced) {
		t.Fatal(err)
	}
	p.Fenced(1)
	w.run(200 * time.Millisecond)
	if got := p.working(); !slices.Equal(got, []int{0, 1, 2, 3}) || p.work[2] != 2 || p.work[1] != 1 {
		t.Errorf("works on %v, with epochs %v", got, p.work)
	}
}
