package timer_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/timer"
)

func once(t *testing.T, fired map[string][]time.Time, id string) bool {
	t.Helper()
	if len(fired[id]) > 1 {
		t.Fatalf("%s fired %d times", id, len(fired[id]))
	}
	return len(fired[id]) == 1
}

// TM-46: a hint brings an earlier timer forward, and where hints are lost a probe finds it.
func TestTM46AnEarlierTimerFiresOnTime(t *testing.T) {
	for _, hinted := range []bool{true, false} {
		t.Run(fmt.Sprintf("hinted=%t", hinted), func(t *testing.T) {
			p := newPlane(t)
			w := p.pod("a", nil, nil)
			w.own()
			run := p.run()
			p.arm(run, "later", time.Hour)
			p.until(p.clock, time.Millisecond, "the worker sleeps", func() bool { return w.Ready() == nil })
			n := p.arm(run, "sooner", 2*time.Second)
			if len(n.Timers) != 1 {
				t.Fatalf("an instant two seconds ahead is hinted of %d times", len(n.Timers))
			}
			due, slack := p.clock.Now().Add(2*time.Second), 5200*time.Millisecond
			if hinted {
				w.hints.give(n)
				slack = 50 * time.Millisecond
			}
			p.until(p.clock, 10*time.Millisecond, "the sooner fires", func() bool { return once(t, p.fired(run), "sooner") })
			if at := p.fired(run)["sooner"][0]; at.After(due.Add(slack)) {
				t.Errorf("it fired %s late", at.Sub(due))
			}
			if len(p.fired(run)["later"]) != 0 || w.sender.sent() != 1 {
				t.Errorf("the later fired, or %d resumes were sent", w.sender.sent())
			}
		})
	}
}

// TM-46: with the broker away the probe is a second.
func TestTM46WithoutABrokerTheProbeIsASecond(t *testing.T) {
	p := newPlane(t)
	w := p.pod("a", nil, nil)
	w.hints.connected.Store(false)
	w.own()
	run := p.run()
	p.until(p.clock, time.Millisecond, "the worker sleeps", func() bool { return w.Ready() == nil })
	p.arm(run, "t", 2*time.Second)
	due := p.clock.Now().Add(2 * time.Second)
	p.until(p.clock, 10*time.Millisecond, "it fires", func() bool { return once(t, p.fired(run), "t") })
	if at := p.fired(run)["t"][0]; at.After(due.Add(1200 * time.Millisecond)) {
		t.Errorf("it fired %s late", at.Sub(due))
	}
}

// TM-47, SH-20: many due at once fire once each, in pages of the limit.
func TestTM47AFloodFiresEachOnce(t *testing.T) {
	p := newPlane(t)
	var pages, most atomic.Int64
	w := p.pod("a", nil, func(s timer.Store) timer.Store { return counting{s, &pages, &most} })
	runs := make([]string, 40)
	for i := range runs {
		runs[i] = p.run()
		for k := range 50 {
			p.arm(runs[i], fmt.Sprintf("t%d", k), time.Second)
		}
	}
	p.clock.Advance(time.Second)
	w.own()
	p.until(p.clock, time.Millisecond, "all fire", func() bool {
		d, err := p.store.Depths(t.Context())
		must(t, err)
		return d.Timers == 0
	})
	for _, run := range runs {
		fired := p.fired(run)
		for k := range 50 {
			if id := fmt.Sprintf("t%d", k); !once(t, fired, id) {
				t.Errorf("%s of %s did not fire", id, run)
			}
		}
	}
	if pages.Load() < 10 || most.Load() > 200 {
		t.Errorf("%d pages, the largest of %d", pages.Load(), most.Load())
	}
}

type counting struct {
	timer.Store
	pages, most *atomic.Int64
}

func (c counting) FireDueTimers(ctx context.Context, shards []store.ShardEpoch, limit int) (store.FiredPage, error) {
	page, err := c.Store.FireDueTimers(ctx, shards, limit)
	c.pages.Add(1)
	c.most.Store(max(c.most.Load(), int64(len(page.Fires))))
	return page, err
}

// TM-48, TM-55: the next owner fires what is due and what comes due, once each, and nothing of what had fired.
func TestTM48TheNextOwnerGoesOnFromTheRows(t *testing.T) {
	p := newPlane(t)
	first := p.pod("a", nil, nil)
	first.own()
	run := p.run()
	p.arm(run, "fired", time.Second)
	p.arm(run, "due", 90*time.Second)
	p.arm(run, "future", time.Hour)
	p.until(p.clock, 100*time.Millisecond, "the first fires", func() bool { return once(t, p.fired(run), "fired") })
	first.Quit(store.ShardNumbers(first.epochs)) // it is gone without a word: nobody released anything
	p.clock.Advance(2 * time.Minute)
	second := p.pod("b", nil, nil)
	second.own()
	if len(second.epochs) != p.store.Shards() || second.epochs[0].Epoch != 2 {
		t.Fatalf("it owns %d shards, the first under epoch %d", len(second.epochs), second.epochs[0].Epoch)
	}
	p.until(p.clock, 10*time.Millisecond, "the due one fires", func() bool { return once(t, p.fired(run), "due") })
	if len(p.fired(run)["future"]) != 0 {
		t.Fatal("the future one fired")
	}
	first.Adopt(first.epochs) // and the old owner wakes up: the fence keeps it out
	p.until(p.clock, 30*time.Second, "the future one fires", func() bool {
		_, err := second.handle.AcquireOwnedShards(t.Context(), store.ShardNumbers(second.epochs), store.MaxShardTTL)
		must(t, err)
		return once(t, p.fired(run), "future")
	})
	once(t, p.fired(run), "fired")
}

// TM-52: a call that hangs is given up after its time; the loop goes on without a restart.
func TestTM52AHungCallIsGivenUp(t *testing.T) {
	p := newPlane(t)
	var hang atomic.Bool
	w := p.pod("a", nil, func(s timer.Store) timer.Store { return hanging{s, &hang} })
	w.own()
	run := p.run()
	p.until(p.clock, time.Millisecond, "the worker sleeps", func() bool { return w.Ready() == nil })
	hang.Store(true)
	w.hints.give(p.arm(run, "t", time.Second))
	p.until(p.clock, 100*time.Millisecond, "the call hangs", func() bool { return !hang.Load() })
	p.until(p.clock, 100*time.Millisecond, "it fires all the same", func() bool { return once(t, p.fired(run), "t") })
}

// hanging hangs the next page, until it is given up.
type hanging struct {
	timer.Store
	hang *atomic.Bool
}

func (h hanging) FireDueTimers(ctx context.Context, shards []store.ShardEpoch, limit int) (store.FiredPage, error) {
	if h.hang.CompareAndSwap(true, false) {
		<-ctx.Done()
		return store.FiredPage{}, rendezvous.Errorf(rendezvous.CodeUnavailable, "%v", errHung)
	}
	return h.Store.FireDueTimers(ctx, shards, limit)
}

// TM-53: what comes due while the store is away fires once when it is back.
func TestTM53AnOutageOverTheDueInstants(t *testing.T) {
	p := newPlane(t)
	w := p.pod("a", nil, nil)
	w.own()
	run := p.run()
	for i := range 5 {
		w.hints.give(p.arm(run, fmt.Sprint(i), time.Duration(i+1)*5*time.Second))
	}
	var away []*fault.Armed
	for _, verb := range []string{"fire_due_timers", "next_due", "reconcile_timers"} {
		away = append(away, p.faults.Arm(fault.Failure{Verb: verb, Point: fault.AtCall, Call: 1, Times: -1}))
	}
	for range 300 {
		p.step(p.clock, 100*time.Millisecond)
	}
	if len(p.fired(run)) != 0 {
		t.Fatal("something fired while the store was away")
	}
	for _, a := range away {
		a.Disarm()
	}
	p.until(p.clock, 100*time.Millisecond, "all fire", func() bool { return len(p.fired(run)) == 5 })
	for i := range 5 {
		once(t, p.fired(run), fmt.Sprint(i))
	}
}

// TM-54: a pod's clock an hour off fires nothing early and nothing later.
func TestTM54APodsClockAnHourOff(t *testing.T) {
	for _, off := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			p := newPlane(t)
			own := clock.NewManual(p.clock.Now().Add(off))
			w := p.pod("a", own, nil)
			w.own()
			run := p.run()
			w.hints.give(p.arm(run, "t", 3*time.Second))
			due := p.clock.Now().Add(3 * time.Second)
			p.until(own, 10*time.Millisecond, "it fires", func() bool {
				p.clock.Advance(10 * time.Millisecond)
				return once(t, p.fired(run), "t")
			})
			if at := p.fired(run)["t"][0]; at.After(due.Add(100 * time.Millisecond)) {
				t.Errorf("it fired %s late", at.Sub(due))
			}
		})
	}
}
