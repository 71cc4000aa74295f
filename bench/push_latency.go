package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/internal/sink"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/wire"
)

// Records a second of the scenarios that measure how soon they are pushed, and the runs that they are written to.
const (
	noteRate = 300
	followed = 150
)

// notes are how many records fill a part of the bench's seconds; of a short run a quarter of it.
func (o options) notes(part int) int {
	if o.short {
		part *= 4
	}
	return max(1, noteRate*o.seconds/part)
}

// writer writes to the runs of a scenario, one record after the other in each.
type writer struct {
	b        *bench
	scenario string
	tenant   store.Tenant
	heads    [followed]struct {
		sync.Mutex
		seq int64
	}
}

// follow starts runs, each with a webhook at one of the receivers.
func (b *bench) follow(ctx context.Context, scenario string, to []*sink.Sink) (*writer, error) {
	t, err := b.store.Tenant("bench")
	if err != nil {
		return nil, err
	}
	w := &writer{b: b, scenario: scenario, tenant: t}
	for i := range w.heads {
		w.heads[i].seq = 1
	}
	if err := b.started(ctx, scenario, queue, followed); err != nil {
		return nil, err
	}
	return w, hooked(ctx, b.setup, scenario, followed, to)
}

// write writes n records, rate a second: by the API, whose notices tell the worker, or by the store's verb, so that nothing does.
func (w *writer) write(ctx context.Context, n int, told bool) error {
	start := time.Now()
	return each(ctx, 32, n, func(ctx context.Context, i int) error {
		time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / noteRate)))
		run := fmt.Sprintf("%s-run-%d", w.scenario, i%followed)
		head := &w.heads[i%followed]
		head.Lock()
		defer head.Unlock()
		batch := fmt.Sprint("note-", head.seq)
		var err error
		if told {
			var body []byte
			if body, err = json.Marshal(wire.Append{RunID: run, ExpectedSeq: head.seq, BatchID: batch, Records: []wire.Record{wire.RecordOf(note(run, aKiB))}}); err == nil {
				_, err = w.b.call(ctx, "bench", "runs.append", body)
			}
		} else {
			_, err = w.tenant.Append(ctx, store.Append{RunID: run, ExpectedSeq: head.seq, BatchID: batch, Records: []rendezvous.Record{note(run, aKiB)}}, time.Time{})
		}
		head.seq++
		return err
	})
}

// lags are the times that messages took from their records' instants, which are a little before their commits.
type lags struct {
	mu   sync.Mutex
	all  samples
	err  error
	news chan struct{} // of one place
}

func newLags() *lags { return &lags{news: make(chan struct{}, 1)} }

// note notes when a record's message had come so far.
func (l *lags) note(body []byte, at time.Time) {
	_, rest, _ := bytes.Cut(body, []byte(`"time":"`))
	text, _, _ := bytes.Cut(rest, []byte(`"`))
	recorded, err := time.Parse(time.RFC3339Nano, string(text))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all, l.err = append(l.all, at.Sub(recorded)), errors.Join(l.err, err)
	select {
	case l.news <- struct{}{}:
	default:
	}
}

// take waits for n of them and takes them away.
func (l *lags) take(ctx context.Context, n int) (samples, error) {
	for {
		l.mu.Lock()
		got, err := l.all, l.err
		if len(got) >= n || err != nil {
			l.all = nil
			l.mu.Unlock()
			return got, err
		}
		l.mu.Unlock()
		select {
		case <-l.news:
		case <-ctx.Done():
			return nil, fmt.Errorf("%d of %d messages came: %w", len(got), n, context.Cause(ctx))
		}
	}
}

// pushLatency measures from commits to the starts of requests, at a steady rate: of records that the worker is told of, and of such as it finds by its poll alone, as it
// does without NATS.
func pushLatency(ctx context.Context, b *bench) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p, err := b.apart(ctx, "push_latency")
	if err != nil {
		return err
	}
	defer p.stop()
	for _, way := range [...]struct {
		scenario, name string
		told           bool
	}{{"told", "notices", true}, {"silent", "the poll alone, every 5 s at least", false}} {
		l := newLags()
		to, closed, err := listen(receivers, func(w io.Writer, r sink.Request) error {
			l.note(r.Body, r.Began)
			return sink.Accept(w, r)
		})
		if err != nil {
			return err
		}
		defer closed()
		w, err := p.follow(ctx, way.scenario, to)
		if err != nil {
			return err
		}
		n := p.o.notes(2)
		if err := w.write(ctx, n, way.told); err != nil {
			return err
		}
		took, err := l.take(ctx, n)
		if err != nil {
			return err
		}
		fmt.Printf("  commit → start of the request at %d/s, by %s: p50 %s  p99 %s  (%d)\n", noteRate, way.name, took.at(50), took.at(99), len(took))
	}
	return nil
}
