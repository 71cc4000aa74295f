package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

const (
	sleepers  = "sleep" // queue of the runs that timers wake
	singles   = 50      // single timers a second
	perAppend = 500     // timers armed in one append
)

// timers measures single timers on an idle plane, how fast many are armed, and then very many that are due at one instant while events are delivered.
func timers(ctx context.Context, b *bench) error {
	ctx, cancel := context.WithTimeout(ctx, 4*patience)
	defer cancel()
	if err := b.single(ctx); err != nil {
		return err
	}
	if err := b.appended(ctx); err != nil {
		return err
	}
	return b.burst(ctx)
}

// single measures how late timers fire that are due one after the other.
func (b *bench) single(ctx context.Context) error {
	n := singles * b.o.seconds / 2
	if err := b.started(ctx, "single", sleepers, n); err != nil {
		return err
	}
	heard, err := b.hear("single", sleepers, rendezvous.CauseTimer, n)
	if err != nil {
		return err
	}
	defer heard.stop()
	first := instant(time.Second + time.Duration(n)*5*time.Millisecond) // armed by then
	due := func(i int) time.Time { return first.Add(time.Duration(i) * time.Second / singles) }
	if err := each(ctx, 16, n, func(ctx context.Context, i int) error {
		heard.expect(i, due(i))
		return b.arm(ctx, "single", i, due(i))
	}); err != nil {
		return err
	}
	if err := heard.await(ctx, n); err != nil {
		return err
	}
	late, err := b.fired(ctx, "single", n, due)
	if err != nil {
		return err
	}
	came := heard.between(first, due(n))
	fmt.Printf("  %d timers at %d/s, nothing else to do: recorded p50 %s p99 %s late, resume notice p50 %s p99 %s\n", n, singles, late.at(50), late.at(99), came.at(50), came.at(99))
	return nil
}

// appended arms timers of few runs, many in an append.
func (b *bench) appended(ctx context.Context) error {
	n := max(1, b.o.timers/5/perAppend)
	if err := b.started(ctx, "appended", sleepers, n); err != nil {
		return err
	}
	t, err := b.store.Tenant("bench")
	if err != nil {
		return err
	}
	far := rendezvous.FormatInstant(instant(24 * time.Hour))
	start := time.Now()
	if err := each(ctx, 4, n, func(ctx context.Context, i int) error {
		run, records := fmt.Sprintf("appended-run-%d", i), make([]rendezvous.Record, perAppend)
		for k := range records {
			records[k] = rendezvous.Record{
				RunID: run, Kind: rendezvous.TimerStarted, Data: rendezvous.EncodeData(rendezvous.TimerStartedData{TimerID: fmt.Sprint("sleep-", k), FireAt: far}),
			}
		}
		_, err := t.Append(ctx, store.Append{RunID: run, ExpectedSeq: 1, BatchID: "arm", Records: records}, time.Time{})
		return err
	}); err != nil {
		return err
	}
	report(fmt.Sprintf("timers armed, %d an append", perAppend), n*perAppend, time.Since(start))
	return nil
}

// burst arms timers that are all due at one instant, and has events delivered at a steady rate from a while before it until all have fired. The waits that get none
// by then stay open.
func (b *bench) burst(ctx context.Context) error {
	n, rate, quiet := b.o.timers, b.o.beside, time.Duration(b.o.seconds)*time.Second/2
	expected := quiet + 5*time.Second + time.Duration(n)*time.Second/2000
	events := rate * int(expected/time.Second)
	start := time.Now()
	if _, err := b.waiting(ctx, "beside", events); err != nil {
		return err
	}
	pace := time.Since(start) / time.Duration(events)
	answered, err := b.hear("beside", queue, rendezvous.CauseAnswered, events)
	if err != nil {
		return err
	}
	defer answered.stop()
	woken, err := b.hear("burst", sleepers, b.cause(), n)
	if err != nil {
		return err
	}
	defer woken.stop()
	due, err := b.armed(ctx, n, pace, quiet)
	if err != nil {
		return err
	}
	time.Sleep(time.Until(due.Add(-quiet)))
	while, fired := context.WithCancel(ctx)
	defer fired()
	sent, failed := 0, make(chan error, 1)
	go func() {
		var err error
		sent, err = b.steady(ctx, while, answered, "beside", rate, events)
		failed <- err
	}()
	time.Sleep(time.Until(due))
	before := b.cpu()
	err = woken.await(ctx, n)
	last := time.Since(due)
	b.per("a timer, with the events beside", n, before)
	fired()
	if err := firstOf(<-failed, err, answered.await(ctx, sent)); err != nil {
		return err
	}
	late, err := b.fired(ctx, "burst", n, func(int) time.Time { return due })
	if err != nil {
		return err
	}
	all := late.at(100)
	report("timers due at one instant, each recorded once", n, all)
	report("the same, to the last resume notice", n, last)
	calm, during := answered.between(due.Add(-quiet), due), answered.between(due, due.Add(all))
	fmt.Printf("  event → resume notice at %d/s: before p50 %s p99 %s (%d), while they fired p50 %s p99 %s (%d); ratio of p99 %.1f\n", rate,
		calm.at(50), calm.at(99), len(calm), during.at(50), during.at(99), len(during), float64(during.at(99))/float64(calm.at(99)))
	return nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// armed starts n runs with a timer each: a sleep, recorded with the start, or the deadline of a wait, in batches. All are due at the instant that is answered, at least
// that long after the last was armed; pace is what a run and a wait took a moment ago.
func (b *bench) armed(ctx context.Context, n int, pace, before time.Duration) (time.Time, error) {
	due := instant(3*pace*time.Duration(n) + before + 2*time.Second)
	var err error
	if b.o.deadlines {
		err = b.started(ctx, "burst", sleepers, n)
		start := time.Now()
		if err == nil {
			err = b.registered(ctx, "burst", n, func(w *rendezvous.Wait) { w.Deadline = due })
		}
		report("deadlines armed with their waits, in batches of 500", n, time.Since(start))
	} else {
		err = b.sleeping(ctx, "burst", n, due)
	}
	if err == nil && time.Until(due) < before {
		err = fmt.Errorf("the timers were armed %s too late for %s of quiet before they are due", before-time.Until(due), before)
	}
	return due, err
}

// sleeping starts n runs of a scenario that sleep until due.
func (b *bench) sleeping(ctx context.Context, scenario string, n int, due time.Time) error {
	t, err := b.setup.Tenant("bench")
	if err != nil {
		return err
	}
	records := []rendezvous.Record{
		{Kind: rendezvous.RunStarted, Data: rendezvous.EncodeData(rendezvous.RunStartedData{Type: "order", Queue: sleepers})},
		{Kind: rendezvous.TimerStarted, Data: rendezvous.EncodeData(rendezvous.TimerStartedData{TimerID: "sleep", FireAt: rendezvous.FormatInstant(due)})},
	}
	return each(ctx, 32, n, func(ctx context.Context, i int) error {
		run, own := fmt.Sprintf("%s-run-%d", scenario, i), slices.Clone(records)
		for k := range own {
			own[k].RunID = run
		}
		_, err := t.Append(ctx, store.Append{WorkflowID: fmt.Sprintf("%s-%d", scenario, i), RunID: run, BatchID: "start", Records: own}, time.Time{})
		return err
	})
}

// cause is that of the burst's resume notices.
func (b *bench) cause() rendezvous.Cause {
	if b.o.deadlines {
		return rendezvous.CauseTimedOut
	}
	return rendezvous.CauseTimer
}

// arm arms a timer of a scenario's run by the verb.
func (b *bench) arm(ctx context.Context, scenario string, i int, due time.Time) error {
	body := fmt.Appendf(nil, `{"run_id":"%s-run-%d","timer_id":"sleep","batch_id":"arm","fire_at":"%s"}`, scenario, i, rendezvous.FormatInstant(due))
	_, err := b.call(ctx, "bench", "timers.arm", body)
	return err
}

// fired reads the histories of a scenario's runs: each has one record that its timer fired, at its instant and not before it. It answers how late each was recorded.
func (b *bench) fired(ctx context.Context, scenario string, n int, due func(i int) time.Time) (samples, error) {
	t, err := b.store.Tenant("bench")
	if err != nil {
		return nil, err
	}
	late := make(samples, n)
	return late, each(ctx, 32, n, func(ctx context.Context, i int) error {
		records, err := t.ReadHistory(ctx, fmt.Sprintf("%s-%d", scenario, i))
		if err != nil {
			return err
		}
		fires := 0
		for _, r := range records {
			if r.Kind != rendezvous.TimerFired && r.Kind != rendezvous.WaitTimedOut {
				continue
			}
			fires++
			if late[i] = r.RecordedAt.Sub(due(i)); late[i] < 0 || !bytes.Contains(r.Data, []byte(rendezvous.FormatInstant(due(i)))) {
				return fmt.Errorf("the timer of %s-%d, due at %s, fired as %s at %s", scenario, i, due(i), r.Data, r.RecordedAt)
			}
		}
		if fires != 1 {
			return fmt.Errorf("the timer of %s-%d fired %d times", scenario, i, fires)
		}
		return nil
	})
}

// instant is that far from now, in whole microseconds, as instants are recorded.
func instant(ahead time.Duration) time.Time { return time.Now().Add(ahead).Truncate(time.Microsecond) }
