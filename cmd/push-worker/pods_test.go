package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/open"
)

// migrated is a store that is brought up to date once.
var migrated = pgtest.NewTemplate(func(ctx context.Context, url string) error {
	s, err := open.Open(ctx, url, open.Options{Clock: clock.System, Migrate: true})
	if err != nil {
		return err
	}
	return s.Close()
})

const (
	runs    = 20
	records = 101 // of each run: its start and a hundred notes
	// unflushed is push.unflushed: what a registration may have accepted and not acknowledged when its worker dies.
	unflushed = 16
)

// plane is one store in PostgreSQL, a NATS server, and a receiver of what the runs record, for push-workers that are processes.
type plane struct {
	t      *testing.T
	url    string
	nats   string
	file   string
	conn   *pgx.Conn
	tenant store.Tenant

	mu    sync.Mutex
	first map[string][]string // of each run: messages in the order of their first coming
	times map[string]int
	at    map[int]chan struct{} // closed when so many have come
}

func newPlane(t *testing.T, at ...int) *plane {
	t.Helper()
	p := &plane{t: t, url: migrated.Database(t), first: map[string][]string{}, times: map[string]int{}, at: map[int]chan struct{}{}}
	for _, n := range append(at, runs*records) {
		p.at[n] = make(chan struct{})
	}
	p.nats, _ = nodetest.Broker(t)
	hooks := httptest.NewServer(http.HandlerFunc(p.receive))
	t.Cleanup(hooks.Close)
	destination := map[string]any{"name": "audit", "url": hooks.URL + "/in", "events": []string{"*"}}
	raw, err := json.Marshal(map[string]any{"destinations": []any{destination}})
	must(t, err)
	p.file = filepath.Join(t.TempDir(), "destinations.json")
	must(t, os.WriteFile(p.file, raw, 0o600))
	s, err := open.Open(t.Context(), p.url, open.Options{
		Clock: clock.System, Destinations: []rendezvous.Destination{{Name: "audit", Events: []string{rendezvous.AllEvents}}},
	})
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	p.tenant, err = s.Tenant("acme")
	must(t, err)
	p.conn, err = pgx.Connect(t.Context(), p.url)
	must(t, err)
	t.Cleanup(func() { _ = p.conn.Close(context.Background()) })
	for i := range runs {
		p.write(fmt.Sprint("run-", i))
	}
	return p
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// write starts a run and fills its history.
func (p *plane) write(run string) {
	p.t.Helper()
	_, err := p.tenant.StartRun(p.t.Context(), store.Start{WorkflowID: run, RunID: run, Type: "order"}, time.Time{})
	must(p.t, err)
	notes := make([]rendezvous.Record, records-1)
	for i := range notes {
		notes[i] = rendezvous.Record{RunID: run, Kind: rendezvous.Note, Data: rendezvous.EncodeData(rendezvous.NameData{Name: "n"})}
	}
	_, err = p.tenant.Append(p.t.Context(), store.Append{RunID: run, ExpectedSeq: 1, BatchID: "notes", Records: notes}, time.Time{})
	must(p.t, err)
}

func (p *plane) receive(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	came := p.note(r.Header.Get("webhook-id"))
	w.WriteHeader(http.StatusNoContent)
	_ = http.NewResponseController(w).Flush() // the 2xx is out before the process is told to die
	if came != nil {
		close(came)
	}
}

// note notes a message, and answers what is to be closed where so many have come.
func (p *plane) note(id string) (came chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.times[id]++; p.times[id] > 1 {
		return nil
	}
	run, _, _ := strings.Cut(id, "/")
	p.first[run] = append(p.first[run], id)
	return p.at[len(p.times)]
}

// pod starts a push-worker.
func (p *plane) pod() *nodetest.Pod {
	p.t.Helper()
	return nodetest.Spawn(p.t, "push-worker", "RENDEZVOUS_STORE="+p.url, "RENDEZVOUS_NATS="+p.nats, "RENDEZVOUS_PUSH_DESTINATIONS="+p.file, "RENDEZVOUS_PUSH_POLL=100ms")
}

// came waits until so many different messages have come.
func (p *plane) came(n int) {
	p.t.Helper()
	ctx, cancel := clock.WithTimeout(p.t.Context(), clock.System, nodetest.Patience)
	defer cancel()
	select {
	case <-p.at[n]:
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		p.t.Fatalf("%d of %d messages came", len(p.times), n)
	}
}

// leases counts send leases, and ends them all where it is asked to: as time would.
func (p *plane) leases(end bool) (n int) {
	p.t.Helper()
	must(p.t, p.conn.QueryRow(p.t.Context(), "SELECT count(*) FROM push_registrations WHERE lease_token <> 0").Scan(&n))
	if end {
		_, err := p.conn.Exec(p.t.Context(), "UPDATE push_registrations SET lease_until = rdv_now() - interval '1 second' WHERE lease_token <> 0")
		must(p.t, err)
	}
	return n
}

// check judges that each run's messages came whole and in order, and answers how often messages came again, by run.
func (p *plane) check() (again map[string]int) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	again = map[string]int{}
	for i := range runs {
		run := fmt.Sprint("run-", i)
		if len(p.first[run]) != records {
			p.t.Errorf("%s: %d messages, want %d", run, len(p.first[run]), records)
		}
		for i, id := range p.first[run] {
			if want := fmt.Sprintf("%s/%d/0", run, i+1); id != want {
				p.t.Fatalf("%s: %s came where %s had to", run, id, want)
			}
			again[run] += p.times[id] - 1
		}
	}
	return again
}

// PU-52: kill -9 in the middle of everything: each registration's messages come once more for what was not acknowledged, 16 of them at most, and none is lost.
func TestAKilledWorkerRepeatsFewAndLosesNone(t *testing.T) {
	p := newPlane(t, 500)
	dying := p.pod()
	p.came(500)
	dying.Kill()
	if n := p.leases(true); n == 0 {
		t.Error("it held no lease when it was killed")
	}
	pod := p.pod()
	p.came(runs * records)
	pod.Stop()
	all := 0
	for run, n := range p.check() {
		if all += n; n > unflushed {
			t.Errorf("%s: %d repeats", run, n)
		}
	}
	if n := p.leases(false); n != 0 {
		t.Errorf("%d leases are left behind the drain", n)
	}
	t.Logf("%d messages came again", all)
}

// PU-51: a restart in turn, each pod told to go down while the others deliver, repeats nothing and leaves no lease.
func TestARollingRestartRepeatsNothing(t *testing.T) {
	p := newPlane(t, 300, 900)
	first, second := p.pod(), p.pod()
	p.came(300)
	first.Stop()
	third := p.pod()
	p.came(900)
	second.Stop()
	p.came(runs * records)
	third.Stop()
	for run, n := range p.check() {
		if n != 0 {
			t.Errorf("%s: %d repeats", run, n)
		}
	}
	if n := p.leases(false); n != 0 {
		t.Errorf("%d leases are left", n)
	}
}
