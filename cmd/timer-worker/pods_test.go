package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/open"
)

const (
	tenant   = "acme"
	failOver = 5 * time.Second // shards.md section 5
)

// migrated is a store that is brought up to date once.
var migrated = pgtest.NewTemplate(func(ctx context.Context, url string) error {
	s, err := open.Open(ctx, url, open.Options{Clock: clock.System, Migrate: true})
	if err != nil {
		return err
	}
	return s.Close()
})

// plane is one store in PostgreSQL and a NATS server, for timer-workers that are processes. The test is its only client, which tells nobody of what it arms.
type plane struct {
	t      *testing.T
	url    string
	broker *server.Server
	store  store.Store
	tenant store.Tenant
	conn   *pgx.Conn
}

func newPlane(t *testing.T) *plane {
	t.Helper()
	p := &plane{t: t, url: migrated.Database(t), broker: nodetest.Server(t)}
	p.store = must[store.Store](t)(open.Open(t.Context(), p.url, open.Options{Clock: clock.System}))
	p.tenant = must[store.Tenant](t)(p.store.Tenant(tenant))
	p.conn = must[*pgx.Conn](t)(pgx.Connect(t.Context(), p.url))
	t.Cleanup(func() {
		_ = p.conn.Close(context.Background())
		_ = p.store.Close()
	})
	return p
}

// must fails the test on an error of a step that only prepares.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// pods starts so many timer-workers at once, and returns when they own all shards, in shares that differ by one at most.
func (p *plane) pods(n int) []*pod {
	p.t.Helper()
	pods := make([]*pod, n)
	for i := range pods {
		before := p.directory().Members
		pods[i] = &pod{Pod: nodetest.Spawn(p.t, "timer-worker", "RENDEZVOUS_STORE="+p.url, "RENDEZVOUS_NATS="+p.broker.ClientURL())}
		p.until("the pod joins", func() bool {
			for _, m := range p.directory().Members {
				if !slices.ContainsFunc(before, func(b store.Member) bool { return b.Incarnation == m.Incarnation }) {
					pods[i].incarnation = m.Incarnation
				}
			}
			return pods[i].incarnation != ""
		})
	}
	p.until("the pods own all shards", func() bool {
		d := p.directory()
		for _, pod := range pods {
			if held := len(owned(d, pod.incarnation)); held < p.store.Shards()/n || held > (p.store.Shards()+n-1)/n {
				return false
			}
		}
		return true
	})
	return pods
}

type pod struct {
	*nodetest.Pod
	incarnation string
}

func (p *plane) directory() store.Directory {
	p.t.Helper()
	return must[store.Directory](p.t)(p.store.ShardDirectory(p.t.Context(), store.PoolTimer))
}

// owned are the shards of a pod.
func owned(d store.Directory, incarnation string) (shards []int) {
	for _, l := range d.Shards {
		if l.Owner == incarnation && l.Remaining > 0 {
			shards = append(shards, l.Shard)
		}
	}
	return shards
}

// until looks until something holds.
func (p *plane) until(what string, holds func() bool) {
	p.t.Helper()
	for end := clock.System.Now().Add(nodetest.Patience); !holds(); {
		if clock.System.Now().After(end) {
			p.t.Fatalf("it does not come about that %s", what)
		}
		p.wait(10 * nodetest.Look)
	}
}

func (p *plane) wait(d time.Duration) { _ = clock.Sleep(p.t.Context(), clock.System, d) } // the context ends with the test

// run names the i-th run and workflow, which arm armed.
func run(i int) string { return fmt.Sprintf("run-%d", i) }

// start starts so many runs.
func (p *plane) start(runs int) {
	p.t.Helper()
	p.each(runs, func(i int) error {
		_, err := p.tenant.StartRun(p.t.Context(), store.Start{WorkflowID: run(i), RunID: run(i), Type: "nap"}, time.Time{})
		return err
	})
}

// arm arms a timer of every run: that of run i is due at(i).
func (p *plane) arm(runs int, timer string, at func(i int) time.Time) {
	p.t.Helper()
	p.each(runs, func(i int) error {
		_, err := p.tenant.ArmTimer(p.t.Context(), store.Arm{RunID: run(i), TimerID: timer, FireAt: at(i), BatchID: timer}, time.Time{})
		return err
	})
}

// each does something for each number below n, a few at once.
func (p *plane) each(n int, do func(i int) error) {
	p.t.Helper()
	const atOnce = 8
	var all sync.WaitGroup
	for first := range atOnce {
		all.Go(func() {
			for i := first; i < n; i += atOnce {
				if err := do(i); err != nil {
					p.t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if p.t.Failed() {
		p.t.FailNow()
	}
}

// fire is a TimerFired.
type fire struct {
	run        string
	due, fired time.Time
}

func (f fire) late() time.Duration { return f.fired.Sub(f.due) }

// fires waits until nothing is armed any more and answers what fired, the earliest first.
func (p *plane) fires() []fire {
	p.t.Helper()
	p.until("every timer fires", func() bool { return p.armed() == 0 })
	rows, err := p.conn.Query(p.t.Context(), `SELECT run_id, (data::jsonb ->> 'fire_at')::timestamptz, recorded_at FROM history WHERE kind = $1 ORDER BY recorded_at`, rendezvous.TimerFired)
	if err != nil {
		p.t.Fatal(err)
	}
	return must[[]fire](p.t)(pgx.CollectRows(rows, func(row pgx.CollectableRow) (f fire, err error) {
		err = row.Scan(&f.run, &f.due, &f.fired)
		return f, err
	}))
}

// armed counts the rows of timers.
func (p *plane) armed() (n int) {
	p.t.Helper()
	if err := p.conn.QueryRow(p.t.Context(), `SELECT count(*) FROM timers`).Scan(&n); err != nil {
		p.t.Fatal(err)
	}
	return n
}

// once checks that as many timers fired as were armed, each once and none early.
func once(t *testing.T, fires []fire, armed int) {
	t.Helper()
	seen := map[fire]bool{}
	for _, f := range fires {
		if key := (fire{run: f.run, due: f.due}); seen[key] {
			t.Errorf("the timer of %s due %s fired twice", f.run, f.due)
		} else {
			seen[key] = true
		}
		if f.late() < 0 {
			t.Errorf("the timer of %s fired %s early", f.run, -f.late())
		}
	}
	if len(seen) != armed {
		t.Errorf("%d of %d timers fired", len(seen), armed)
	}
}

// kill is kill -9.
func (p *pod) kill() {
	p.Signal(syscall.SIGKILL)
	_ = p.Wait() // killed is how it ended
}
