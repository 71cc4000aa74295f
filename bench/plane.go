package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/open"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

// bench is a plane under load.
type bench struct {
	o     options
	node  *node.Node
	store store.Store // a second handle, to measure and to count
	setup store.Store // a third, to prepare: on PostgreSQL it waits for no sync
	http  *http.Client
	nats  *nats.Conn
	asked *storetest.Counting // what the node asks of its store
	once  sync.Once
}

func start(ctx context.Context, o options, dir string, change ...func(cfg *node.Config)) (*bench, error) {
	node.TuneMemory(o.store) // as a main does
	cfg := config(o, dir)
	for _, c := range change {
		c(&cfg)
	}
	b := &bench{o: o, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	var own backend.Backend
	cfg.Wrap = func(inner backend.Backend) backend.Backend {
		own, b.asked = inner, storetest.Count(inner)
		return b.asked
	}
	var err error
	if b.node, err = node.Start(ctx, cfg); err != nil {
		return nil, err
	}
	if err := b.connect(ctx, own); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

// connect opens what the bench has beside the node, whose store is own.
func (b *bench) connect(ctx context.Context, own backend.Backend) error {
	var err error
	if open.Kind(b.o.store) == "postgres" {
		if b.store, err = open.Open(ctx, b.o.store, open.Options{Clock: clock.System, Shards: 64}); err != nil {
			return err
		}
		var hasty *url.URL
		if hasty, err = url.Parse(b.o.store); err != nil {
			return errors.New("the store's URL cannot be read") // the error would quote it
		}
		query := hasty.Query()
		query.Set("synchronous_commit", "off")
		hasty.RawQuery = query.Encode()
		b.setup, err = open.Open(ctx, hasty.String(), open.Options{Clock: clock.System, Shards: 64})
	} else { // it belongs to one process and opens once
		b.store, err = engine.New(kept{own}, engine.Options{})
		b.setup = b.store
	}
	if err != nil {
		return err
	}
	b.nats, err = nats.Connect(b.node.NATSURL)
	return err
}

// kept is the node's store, which the node closes.
type kept struct{ backend.Backend }

// Close implements [backend.Backend].
func (kept) Close() error { return nil }

// stop ends what start started, all of it or a part. Idempotent.
func (b *bench) stop() {
	b.once.Do(b.end)
}

func (b *bench) end() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if b.nats != nil {
		b.nats.Close()
	}
	b.http.CloseIdleConnections()
	for _, s := range []store.Store{b.store, b.setup} {
		if s != nil {
			_ = s.Close()
		}
	}
	if b.node != nil {
		_ = b.node.Stop(ctx)
	}
}

// call posts one verb.
func (b *bench) call(ctx context.Context, tenant, verb string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+b.node.HTTP+"/v1/"+tenant+"/"+verb, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := b.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", verb, resp.Status, reply)
	}
	return reply, err
}

// payload fills an event of about 256 bytes.
const payload = `{"amount":1200,"currency":"EUR","note":"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789` +
	`012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456"}`

func event(scenario string, i int) json.RawMessage {
	return fmt.Appendf(nil, `{"specversion":"1.0","id":"%s-%d","source":"urn:bench","type":"payment.received","rdvkeys":"order=%s-%d","datacontenttype":"application/json","data":%s}`,
		scenario, i, scenario, i, payload)
}

// each runs fn for 0..n-1 from so many callers and answers the first error.
func each(ctx context.Context, callers, n int, fn func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := fn(ctx, i); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// putAll sends n events by the request door, a hundred a request from so many callers.
func (b *bench) putAll(ctx context.Context, scenario string, callers, n int) error {
	const batch = 100
	return each(ctx, callers, (n+batch-1)/batch, func(ctx context.Context, i int) error {
		var body bytes.Buffer
		body.WriteString(`{"events":[`)
		for k := i * batch; k < min(n, (i+1)*batch); k++ {
			if k > i*batch {
				body.WriteByte(',')
			}
			body.Write(event(scenario, k))
		}
		body.WriteString(`]}`)
		_, err := b.call(ctx, "bench", "events.put", body.Bytes())
		return err
	})
}

// queue is that of the runs that wait for events.
const queue = "bench"

// started starts n runs of a scenario, by the store's verb.
func (b *bench) started(ctx context.Context, scenario, queue string, n int) error {
	return startedIn(ctx, b.setup, scenario, queue, n)
}

func startedIn(ctx context.Context, s store.Store, scenario, queue string, n int) error {
	t, err := s.Tenant("bench")
	if err != nil {
		return err
	}
	return each(ctx, 32, n, func(ctx context.Context, i int) error {
		_, err := t.StartRun(ctx, store.Start{WorkflowID: fmt.Sprintf("%s-%d", scenario, i), RunID: fmt.Sprintf("%s-run-%d", scenario, i), Type: "order", Queue: queue}, time.Time{})
		return err
	})
}

// settled waits until no wait is open or parked. It asks for one of them, as a count of all would take the time that is measured.
func (b *bench) settled(ctx context.Context) error {
	t, err := b.store.Tenant("bench")
	if err != nil {
		return err
	}
	for {
		page, err := t.Waiting(ctx, store.WaitFilter{}, 1, "")
		if err != nil {
			return err
		}
		if len(page.Waits) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waits are left open: %w", context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}
