package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

// SH-2: a pod that is configured with another N than the store's does not start, and names both.
func TestSH2AnotherNumberOfShardsIsRefused(t *testing.T) {
	p := newPlane(t)
	cmd := nodetest.Command(t, []string{"RENDEZVOUS_STORE=" + p.url, "RENDEZVOUS_NATS=" + p.broker.ClientURL(), "RENDEZVOUS_SHARDS=32"})
	out, err := cmd.CombinedOutput()
	if text := string(out); err == nil || cmd.ProcessState.ExitCode() != 2 || !strings.Contains(text, "64") || !strings.Contains(text, "32") || !strings.Contains(text, "shards") {
		t.Errorf("%v, exit code %d, %s", err, cmd.ProcessState.ExitCode(), text)
	}
}

// SH-21, TM-55: kill -9 of one of three pods while timers come due in all shards: each fires once, and the first of the dead pod's within 5 s.
func TestSH21KillUnderLoad(t *testing.T) {
	const runs, every, kill = 300, 20 * time.Millisecond, 1500 * time.Millisecond
	p := newPlane(t)
	pods := p.pods(3)
	p.start(runs)
	start := clock.System.Now().Add(time.Second)
	p.arm(runs, "nap", func(i int) time.Time { return start.Add(time.Duration(i) * every) })
	p.wait(start.Add(kill).Sub(clock.System.Now()))
	orphaned := owned(p.directory(), pods[0].incarnation)
	pods[0].kill()
	killed := clock.System.Now()

	fires := p.fires()
	once(t, fires, runs)
	var dead []fire
	for _, f := range fires {
		if f.due.After(killed) && slices.Contains(orphaned, rendezvous.Shard(tenant, f.run, p.store.Shards())) {
			dead = append(dead, f)
		}
	}
	if len(dead) == 0 {
		t.Fatal("nothing was due in the dead pod's shards")
	}
	if took := dead[0].fired.Sub(killed); took > failOver {
		t.Errorf("the first timer in the dead pod's shards fired %s after its death", took)
	}
	if last := slices.MaxFunc(dead, func(a, b fire) int { return int(a.late() - b.late()) }); last.late() > failOver {
		t.Errorf("a timer in the dead pod's shards fired %s late", last.late())
	}
	t.Logf("%d shards orphaned, first fire after %s", len(orphaned), dead[0].fired.Sub(killed))
}

// SH-26: with NATS stopped every shard keeps its owner and epoch, and what is due fires within a probe of a second; nobody tells the pods of it.
func TestSH26WithoutNATSShardsKeepTheirOwnersAndTimersFire(t *testing.T) {
	const runs, every, late = 40, 100 * time.Millisecond, 3 * time.Second
	p := newPlane(t)
	p.pods(2)
	p.start(runs)
	before := p.directory()
	p.broker.Shutdown()
	p.broker.WaitForShutdown()
	start := clock.System.Now().Add(2 * time.Second) // by then the pods know
	p.arm(runs, "nap", func(i int) time.Time { return start.Add(time.Duration(i) * every) })
	fires := p.fires()
	once(t, fires, runs)
	for _, f := range fires {
		if f.late() > late {
			t.Errorf("the timer of %s fired %s late", f.run, f.late())
		}
	}
	after := p.directory()
	for s := range before.Shards {
		if b, a := before.Shards[s], after.Shards[s]; a.Owner != b.Owner || a.Epoch != b.Epoch || a.Remaining == 0 {
			t.Errorf("shard %d was %s's at epoch %d and is %s's at %d", s, b.Owner, b.Epoch, a.Owner, a.Epoch)
		}
	}
}

// SH-14, SH-20: of two processes that own one shard, the one whose lease was taken over records nothing, whatever it believes; that the other stands still just then
// changes nothing.
func TestTheLoserOfTwoOwnersIsFenced(t *testing.T) {
	got, fires := twoOwners(t)
	if got != string(rendezvous.CodeFenced) {
		t.Errorf("the loser got %s", got)
	}
	once(t, fires, runsOfTwo)
}

// The test above is worth something: without the fence the loser does record.
func TestWithoutTheFenceTheLoserFires(t *testing.T) {
	if got, _ := twoOwners(t, fenceless+"=1"); got != "fired" {
		t.Errorf("the loser got %s", got)
	}
}

const runsOfTwo = 20

// twoOwners lets a stubborn process own all shards, and a timer-worker take them over when its leases are over. While that one stands still timers come due, and the
// first, which never heard of it, fires them. Answered is what it got, and everything that fired, once the other has gone on.
func twoOwners(t *testing.T, env ...string) (loser string, fires []fire) {
	t.Helper()
	p := newPlane(t)
	p.start(runsOfTwo)
	stubborn := startStubborn(t, append([]string{"RENDEZVOUS_STORE=" + p.url}, env...)...)
	heir := p.pods(1)[0]
	heir.Signal(syscall.SIGSTOP)
	if shards := owned(p.directory(), heir.incarnation); len(shards) != p.store.Shards() {
		t.Fatalf("the heir holds %d shards when it stops", len(shards))
	}
	p.arm(runsOfTwo, "nap", func(int) time.Time { return clock.System.Now() })
	if loser = stubborn.fire(); loser == string(rendezvous.CodeFenced) && p.armed() != runsOfTwo {
		t.Errorf("%d of %d timers are armed after a page that was fenced", p.armed(), runsOfTwo)
	}
	heir.Signal(syscall.SIGCONT)
	return loser, p.fires()
}
