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

// SH-17: a pod that joins takes all over in one order: acquire, subscribe, publish, believe; then one extension for the round, then the work.
func TestPublishingComesBeforeExtendingForEveryShardOfTheRound(t *testing.T) {
	w := newWorld(t, 4)
	p := w.join(1)[0]
	if len(workflowsSeen(t, p)) != 0 {
		t.Error("a pod that only starts sees something")
	}
	w.turns()
	want := []string{"renew false", "acquire"}
	for _, s := range acquired(p.log) {
		want = append(want, "subscribe "+s, "publish "+s, "believe "+s)
	}
	want = append(want, "extend", "adopt 4")
	got := slices.Clone(p.log)
	for i, l := range got {
		if word, _, _ := strings.Cut(l, " "); word == "acquire" || word == "extend" {
			got[i] = word
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the first round was\n%q, want\n%q", got, want)
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
	w.faults.Arm(fault.Failure{Verb: "publish_shard", Point: fault.BeforeCommit}) // of shard 0, the first
	w.turns()
	if got := p.working(); !slices.Equal(got, []int{2, 3}) {
		t.Errorf("works on %v", got)
	}
	for _, seen := range workflowsSeen(t, p) {
		if seen.Shard < 2 {
			t.Errorf("sees workflow %s of shard %d", seen.WorkflowID, seen.Shard)
		}
	}
	for _, s := range []int{0, 1} {
		if l := w.directory().Shards[s]; l.Owner != "" || l.Epoch != 1 {
			t.Errorf("shard %d, which was dropped, is %+v", s, l)
		}
	}
	p.refuse = nil
	w.until(4*time.Second, "that it takes what it had dropped", func() bool { return len(p.working()) == 4 })
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
