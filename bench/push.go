package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/sink"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/open"
)

// receivers are how many there are where the load of one of them is not what is measured: each is a host and port, and so a gate, of its own.
const receivers = 64

// apart is a plane on a store of its own.
func (b *bench) apart(ctx context.Context, name string, change ...func(cfg *node.Config)) (*bench, error) {
	o := b.o
	var err error
	if o.store, err = o.database(ctx, name); err != nil {
		return nil, err
	}
	return start(ctx, o, filepath.Join(o.dir, "nats-"+name), change...)
}

// hook is a registration that takes every record from the second on, signed, payloads and all.
func hook(run, id, url string) store.PutPush {
	key := rendezvous.NewSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	return store.PutPush{NextSeq: 2, Registration: rendezvous.Registration{
		RunID: run, ID: id, URL: url, Events: []string{rendezvous.AllEvents}, IncludePayload: new(true), Signing: []rendezvous.SigningKey{{Key: key}},
	}}
}

// note is a record with a payload of that many bytes of JSON.
func note(run string, size int) rendezvous.Record {
	return rendezvous.Record{
		RunID: run, Kind: rendezvous.Note, Data: rendezvous.EncodeData(rendezvous.NameData{Name: "n"}), ContentType: "application/json",
		Payload: []byte(`"` + strings.Repeat("x", size-2) + `"`),
	}
}

// aKiB is the payload of a record whose message has a body of about 1 KiB.
const aKiB = 600

// noted writes n notes to each of the runs of a scenario, which have nothing but their start.
func noted(ctx context.Context, s store.Store, scenario string, runs, n int) error {
	t, err := s.Tenant("bench")
	if err != nil {
		return err
	}
	return each(ctx, 8, runs, func(ctx context.Context, i int) error {
		run := fmt.Sprintf("%s-run-%d", scenario, i)
		for at := 0; at < n; {
			records := make([]rendezvous.Record, min(500, n-at))
			for k := range records {
				records[k] = note(run, aKiB)
			}
			if _, err := t.Append(ctx, store.Append{RunID: run, ExpectedSeq: int64(1 + at), BatchID: fmt.Sprint("notes-", at), Records: records}, time.Time{}); err != nil {
				return err
			}
			at += len(records)
		}
		return nil
	})
}

// hooked registers a webhook for each of the runs of a scenario, those of one receiver after those of another.
func hooked(ctx context.Context, s store.Store, scenario string, runs int, to []*sink.Sink) error {
	t, err := s.Tenant("bench")
	if err != nil {
		return err
	}
	return each(ctx, 32, runs, func(ctx context.Context, i int) error {
		_, err := t.PutPush(ctx, hook(fmt.Sprintf("%s-run-%d", scenario, i), "hook", to[i%len(to)].URL()), time.Time{})
		return err
	})
}

// listen starts n receivers that answer alike.
func listen(n int, answer sink.Answer) (list []*sink.Sink, closed func(), err error) {
	closed = func() {
		for _, s := range list {
			s.Close()
		}
	}
	for range n {
		s, err := sink.Listen(answer)
		if err != nil {
			closed()
			return nil, nil, err
		}
		list = append(list, s)
	}
	return list, closed, nil
}

// arrivals counts messages that are accepted.
type arrivals struct {
	expected int64
	got      atomic.Int64
	bytes    atomic.Int64
	began    []func() // called when the first came
	first    time.Time
	one      chan struct{} // closed behind that
	all      chan struct{} // closed when those expected were answered

	// Of a backlog, behind all: from the first to the last, and what was spent meanwhile.
	took         time.Duration
	used         usage
	transactions float64 // per message
}

func expecting(n int, began ...func()) *arrivals {
	return &arrivals{expected: int64(n), began: began, one: make(chan struct{}), all: make(chan struct{})}
}

func (a *arrivals) answer(w io.Writer, r sink.Request) error {
	a.bytes.Add(int64(len(r.Body)))
	n := a.got.Add(1)
	if n == 1 {
		a.first = r.Began
		for _, began := range a.began {
			began()
		}
		close(a.one)
	}
	err := sink.Accept(w, r)
	if n == a.expected {
		<-a.one
		a.took = time.Since(a.first)
		close(a.all)
	}
	return err
}

// await waits until all have come.
func (a *arrivals) await(ctx context.Context) error {
	select {
	case <-a.all:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d of %d messages came: %w", a.got.Load(), a.expected, context.Cause(ctx))
	}
}

// pushThroughput measures how fast a backlog is pushed, and what that asks of the store.
func pushThroughput(ctx context.Context, b *bench) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	for _, m := range [...]struct{ receivers, messages int }{{1, b.o.pushed / 4}, {receivers, b.o.pushed}} {
		p, err := b.apart(ctx, fmt.Sprint("push_throughput_", m.receivers), seldom)
		if err != nil {
			return err
		}
		a, err := p.backlog(ctx, m.receivers, m.messages)
		if err != nil {
			return err
		}
		report(fmt.Sprintf("accepted POSTs, %d registrations, receivers: %d", b.o.hooks, m.receivers), int(a.expected), a.took)
		p.spent("a POST", int(a.expected), a.used)
		fmt.Printf("  signed bodies of %d bytes; transactions per POST %.3f; repeats %d\n", a.bytes.Load()/a.got.Load(), a.transactions, a.got.Load()-a.expected)
	}
	if open.Kind(b.o.store) != "postgres" {
		return nil
	}
	counted, err := countStatements(b.o.store)
	if err != nil {
		return err
	}
	defer counted.Close()
	p, err := b.apart(ctx, "push_statements", seldom, func(cfg *node.Config) { cfg.Store, err = counted.via(cfg.Store) })
	if err != nil {
		return err
	}
	a, err := p.backlog(ctx, receivers, b.o.pushed/2, func() { counted.n.Store(0) })
	if err != nil {
		return err
	}
	fmt.Printf("  statements per POST %.3f, begin and commit among them, and those of all roles\n", float64(counted.n.Load())/float64(a.expected))
	return nil
}

// seldom has the worker look for what is due by itself once a second: nobody tells it of what is registered by the store's verb.
func seldom(cfg *node.Config) { cfg.Push.Poll = time.Second }

// backlog has the registrations push so many messages, and stops the plane, so that what came more than once has come.
func (b *bench) backlog(ctx context.Context, receivers, messages int, began ...func()) (*arrivals, error) {
	defer b.stop()
	each := max(1, messages/b.o.hooks)
	var before usage
	a := expecting(each*b.o.hooks, append(began, func() { before = b.cpu(); b.asked.Reset() })...)
	to, closed, err := listen(receivers, a.answer)
	if err != nil {
		return nil, err
	}
	defer closed()
	if err := b.started(ctx, "push", queue, b.o.hooks); err != nil {
		return nil, err
	}
	if err := noted(ctx, b.setup, "push", b.o.hooks, each); err != nil {
		return nil, err
	}
	if err := hooked(ctx, b.setup, "push", b.o.hooks, to); err != nil {
		return nil, err
	}
	if err := a.await(ctx); err != nil {
		return nil, err
	}
	used := b.cpu()
	a.used = usage{process: used.process - before.process, server: used.server - before.server}
	b.stop()
	counts := b.asked.Counts()
	a.transactions = float64(counts.Updates+counts.Views) / float64(a.expected)
	return a, nil
}
