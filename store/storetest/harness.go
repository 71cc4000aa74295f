package storetest

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// Harness is one empty store under test.
type Harness struct {
	// Store is under test. Reopen replaces it.
	Store store.Store
	// Advance moves the store's now on.
	Advance func(d time.Duration)
	// Faults fail the store's transactions, by the engine's names of its verbs.
	Faults *fault.Backend
	// Counting counts what the store asks of its backend.
	Counting *Counting
	// Damage makes rows what no verb makes of them.
	Damage Damage

	options Options
	backend backend.Backend // as opened, below all layers
}

// Options say how a harness is assembled.
type Options struct {
	Advance func(d time.Duration)
	Damage  Damage
	// Layers wrap the backend, the first innermost: the decorators that production puts there.
	Layers []func(backend.Backend) backend.Backend
	// Decorate wraps the store as production does; nil leaves it bare.
	Decorate func(store.Store) store.Store
	// Reopen opens again, after Close, what the backend stored; nil for a backend that keeps nothing: the cases that need it are skipped, loudly.
	Reopen func(t *testing.T) backend.Backend
	Engine engine.Options
	// Fewer divides the rounds of races, where a battery repeats what another one proves; 0 and 1 are all of them.
	Fewer int
}

// Assemble makes a harness of an empty backend, which it closes at the end of the test.
func Assemble(t *testing.T, b backend.Backend, o Options) *Harness {
	t.Helper()
	h := &Harness{Advance: o.Advance, Damage: o.Damage, options: o}
	h.mount(t, b)
	t.Cleanup(func() {
		if err := h.Store.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return h
}

func (h *Harness) mount(t *testing.T, b backend.Backend) {
	t.Helper()
	h.backend = b
	for _, layer := range h.options.Layers {
		b = layer(b)
	}
	h.Counting = Count(b)
	h.Faults = fault.Wrap(h.Counting)
	s, err := engine.New(h.Faults, h.options.Engine)
	if err != nil {
		t.Fatalf("make a store of the backend: %v", err)
	}
	h.Store = s
	if h.options.Decorate != nil {
		h.Store = h.options.Decorate(s)
	}
}

// Reopen closes the store and opens what it kept.
func (h *Harness) Reopen(t *testing.T) {
	t.Helper()
	if err := h.Store.Close(); err != nil {
		t.Fatalf("close the store: %v", err)
	}
	h.mount(t, h.options.Reopen(t))
}

// Destinations has the store opened with those push destinations of the operator, over what it has stored.
func (h *Harness) Destinations(t *testing.T, list ...rendezvous.Destination) {
	t.Helper()
	h.options.Engine.Destinations = list
	h.mount(t, h.backend)
}

// Now is the store's now.
func (h *Harness) Now(t testing.TB) time.Time {
	t.Helper()
	return must(h.Store.Now(ctx))(t, "ask the store's now")
}

// Rows is all that the store has stored, a page of rows a line.
func (h *Harness) Rows(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	enc := json.NewEncoder(&all)
	done(t, "read all rows", h.backend.View(ctx, "test", func(ctx context.Context, r backend.Reader) error {
		for _, kind := range backend.Kinds {
			for at := (backend.Position{}); ; {
				p, err := r.(backend.Source).Scan(ctx, kind, at, 500, 1<<24)
				if err != nil {
					return err
				}
				if p.Rows == 0 {
					break
				}
				if err := enc.Encode(p); err != nil {
					return err
				}
				at = p.Last
			}
		}
		return nil
	}))
	return all.String()
}

// Damage changes stored rows as a broken disk, a careless hand or a restored backup would. Each names what it cannot find in its error.
type Damage interface {
	// Minter leaves half of the pair that says who minted an event (EV-14).
	Minter(tenant string, id rendezvous.EventID) error
	// Event makes an event's row undecodable; it stays in the match index if it is live.
	Event(tenant string, id rendezvous.EventID) error
	// Wait makes a wait's row undecodable.
	Wait(tenant string, id rendezvous.WaitID) error
	// Timer makes a timer's row undecodable; its instants and its shard stay.
	Timer(tenant, workflowID, timerID string) error
	// KeepTimer remembers a timer's row; restore puts it back as it was, over what is there then, as a restored backup would.
	KeepTimer(tenant, workflowID, timerID string) (restore func() error, err error)
	// StrayTimer makes a timer's row name another workflow.
	StrayTimer(tenant, workflowID, timerID, to string) error
	// Push makes a registration's row undecodable; its place among what is due stays.
	Push(tenant, run, id string) error
	// Lease makes the owner or the epoch of a workflow's row undecodable.
	Lease(tenant, workflowID string) error
	// Record makes a record undecodable.
	Record(tenant, workflowID string, seq int64) error
	// Rewrite gives a record the kind, version and data that another build wrote.
	Rewrite(tenant, workflowID string, seq int64, kind rendezvous.Kind, v int, data string) error
	// Link makes a run say that it follows another.
	Link(tenant, run, previous string) error
	// LoseWait removes a wait's row and its key rows; history and event stay.
	LoseWait(tenant string, id rendezvous.WaitID) error
	// Keep remembers a wait's row and that of the event it holds, if it does; restore puts both back as they were, over what is there then, as a
	// restored backup would.
	Keep(tenant string, id rendezvous.WaitID) (restore func() error, err error)
}

// Case is one promise.
type Case struct {
	// Name is the promise with its number: "EV-1 one pair twice is one event".
	Name string
	Run  func(t *testing.T, h *Harness)
	// Durable cases close and reopen the store.
	Durable bool
}

// role is a file of cases.
type role struct {
	name  string
	cases []Case
}

// Run proves every promise on stores that open makes: a new, empty one for each case.
func Run(t *testing.T, open func(t *testing.T) *Harness) {
	for _, r := range roles {
		t.Run(r.name, func(t *testing.T) {
			for _, c := range r.cases {
				t.Run(c.Name, func(t *testing.T) {
					h := open(t)
					if c.Durable && h.options.Reopen == nil {
						t.Skip("NOT DURABLE: this backend keeps nothing, so nothing can be said of what it keeps")
					}
					c.Run(t, h)
				})
			}
		})
	}
}

// ctx is what cases call with; those that cancel make their own.
var ctx = context.Background()

// Rounds is how often a race is run: RDV_ROUNDS, or 20.
func Rounds(t testing.TB) int {
	text := os.Getenv("RDV_ROUNDS")
	if text == "" {
		return 20
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 1 {
		t.Fatalf("RDV_ROUNDS is %q, want a number from 1", text)
	}
	return n
}

// Rounds is how often a race is run on this harness.
func (h *Harness) Rounds(t testing.TB) int {
	t.Helper()
	return max(Rounds(t)/max(h.options.Fewer, 1), 2)
}

// Race runs functions at once, in an order of chance, and waits for all. They must not call t.FailNow: what they find goes into variables of their own.
func Race(t testing.TB, fns ...func()) {
	t.Helper()
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for _, i := range rand.Perm(len(fns)) {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			for range rand.N(len(fns)) { // the runtime starts what was made ready last first
				runtime.Gosched()
			}
			fns[i]()
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}
