package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// patience bounds a scenario.
const patience = 5 * time.Minute

// waitsFirst registers every wait, then sends the events and counts until all are answered.
func waitsFirst(ctx context.Context, b *bench) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	n := b.o.events
	took, err := b.waiting(ctx, "wf", n)
	if err != nil {
		return err
	}
	report("waits registered, in batches of 500", n, took)
	before := b.cpu()
	start := time.Now()
	if err := b.putAll(ctx, "wf", 16, n); err != nil {
		return err
	}
	report("events accepted by the request door", n, time.Since(start))
	if err := b.settled(ctx); err != nil {
		return err
	}
	report("whole pipeline, first put to last answer", n, time.Since(start))
	b.per("an event", n, before)
	return nil
}

// waiting starts n runs, each with a wait, and tells how long the waits took.
func (b *bench) waiting(ctx context.Context, scenario string, n int) (time.Duration, error) {
	if err := b.started(ctx, scenario, queue, n); err != nil {
		return 0, err
	}
	start := time.Now()
	err := b.registered(ctx, scenario, n, func(*rendezvous.Wait) {})
	return time.Since(start), err
}

// registered registers a wait of each of n runs, in batches.
func (b *bench) registered(ctx context.Context, scenario string, n int, change func(w *rendezvous.Wait)) error {
	const batch = 500
	return each(ctx, 2, (n+batch-1)/batch, func(ctx context.Context, i int) error {
		items := make([]store.RegisterItem, 0, batch)
		for k := i * batch; k < min(n, (i+1)*batch); k++ {
			w := rendezvous.Wait{
				WaitID: rendezvous.WaitID{RunID: fmt.Sprintf("%s-run-%d", scenario, k), Effect: "pay"}, Type: "payment.received",
				Keys: []rendezvous.Key{{Namespace: "order", Value: fmt.Sprintf("%s-%d", scenario, k)}},
			}
			change(&w)
			items = append(items, store.RegisterItem{Tenant: "bench", Registration: store.Registration{Wait: w}})
		}
		got, err := b.store.RegisterBatch(ctx, items, time.Time{})
		for _, g := range got {
			if g.Err != nil {
				return g.Err
			}
		}
		return err
	})
}

// oneAtATime sends one event a request to waits that are there.
func oneAtATime(ctx context.Context, b *bench) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	n := b.o.events / 10
	if _, err := b.waiting(ctx, "one", n); err != nil {
		return err
	}
	start := time.Now()
	if err := each(ctx, b.o.callers, n, func(ctx context.Context, i int) error {
		_, err := b.call(ctx, "bench", "events.put", fmt.Appendf(nil, `{"events":[%s]}`, event("one", i)))
		return err
	}); err != nil {
		return err
	}
	if err := b.settled(ctx); err != nil {
		return err
	}
	report(fmt.Sprintf("one event a request, %d callers, to the last answer", b.o.callers), n, time.Since(start))
	return nil
}

// eventsFirst buffers every event, then registers the waits one by one from concurrent callers: each is answered in its call.
func eventsFirst(ctx context.Context, b *bench) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	n := b.o.events
	if err := b.started(ctx, "ef", queue, n); err != nil {
		return err
	}
	if err := b.putAll(ctx, "ef", 16, n); err != nil {
		return err
	}
	before := b.cpu()
	start := time.Now()
	if err := each(ctx, b.o.callers, n, func(ctx context.Context, i int) error {
		body := fmt.Appendf(nil, `{"run_id":"ef-run-%d","effect":"pay","type":"payment.received","keys":[{"namespace":"order","value":"ef-%d"}]}`, i, i)
		reply, err := b.call(ctx, "bench", "waits.register", body)
		if err != nil {
			return err
		}
		var r struct {
			Answered json.RawMessage `json:"answered"`
		}
		if err := json.Unmarshal(reply, &r); err != nil || r.Answered == nil {
			return fmt.Errorf("wait %d was not answered: %s", i, reply)
		}
		return nil
	}); err != nil {
		return err
	}
	report(fmt.Sprintf("waits registered and answered from %d callers", b.o.callers), n, time.Since(start))
	b.per("an event", n, before)
	return nil
}

// latency sends events at a steady rate and measures from the request to the resume notice.
func latency(ctx context.Context, b *bench) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	n := b.o.rate * b.o.seconds
	if err := b.started(ctx, "la", queue, n); err != nil {
		return err
	}
	heard, err := b.hear("la", queue, rendezvous.CauseAnswered, n)
	if err != nil {
		return err
	}
	defer heard.stop()
	if err := each(ctx, 16, n, func(ctx context.Context, i int) error {
		body := fmt.Appendf(nil, `{"run_id":"la-run-%d","effect":"pay","type":"payment.received","keys":[{"namespace":"order","value":"la-%d"}]}`, i, i)
		_, err := b.call(ctx, "bench", "waits.register", body)
		return err
	}); err != nil {
		return err
	}
	start := time.Now()
	if _, err := b.steady(ctx, ctx, heard, "la", b.o.rate, n); err != nil {
		return err
	}
	if err := heard.await(ctx, n); err != nil {
		return err
	}
	took := heard.between(start, time.Now())
	fmt.Printf("  arrival → resume notice at %d/s over %s: p50 %s  p99 %s\n", b.o.rate, time.Since(start).Round(time.Second), took.at(50), took.at(99))
	return nil
}

// steady sends one event a request to runs that wait, rate a second, until all n are sent or while ends, and tells how many were. What it sends late counts as sent
// when it was to be.
func (b *bench) steady(ctx, while context.Context, heard *notices, scenario string, rate, n int) (sent int, err error) {
	var count atomic.Int64
	start := time.Now()
	err = each(ctx, 64, n, func(ctx context.Context, i int) error {
		due := start.Add(time.Duration(i) * time.Second / time.Duration(rate))
		select {
		case <-time.After(time.Until(due)):
		case <-while.Done():
		}
		if while.Err() != nil {
			return nil
		}
		heard.expect(i, due)
		count.Add(1)
		_, err := b.call(ctx, "bench", "events.put", fmt.Appendf(nil, `{"events":[%s]}`, event(scenario, i)))
		return err
	})
	return int(count.Load()), err
}

func report(what string, n int, took time.Duration) {
	fmt.Printf("  %-52s %7d in %6.2fs  %8.0f/s\n", what, n, took.Seconds(), float64(n)/took.Seconds())
}
