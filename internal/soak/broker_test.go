package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/wire"
)

// away is a plane in this process whose broker is a server of its own, to be taken away. The store's clock moves when the test says so.
type away struct {
	t      *testing.T
	clock  *clock.Manual
	broker *messaging.Embedded
	folder string
	node   *node.Node
	client *client.Client
	nats   *nats.Conn
	js     jetstream.JetStream

	mu      sync.Mutex
	notices []*nats.Msg // all that went out to MATCH
}

const brokerPatience = time.Minute // only a failing test waits so long

func startAway(t *testing.T) *away {
	t.Helper()
	a := &away{t: t, clock: clock.NewManual(clock.System.Now().UTC().Truncate(time.Second)), folder: t.TempDir()}
	at, err := address(map[int]bool{})
	a.must(err)
	way, quiet := messaging.DefaultConfig(), slog.New(slog.NewTextHandler(io.Discard, nil))
	way.Embedded = messaging.EmbeddedConfig{StoreDir: a.folder, Listen: at, MaxStore: messaging.DefaultMaxStore, NoSync: true}
	a.broker, err = messaging.StartEmbedded(way, quiet)
	a.must(err)
	t.Cleanup(func() { a.stopped(a.broker.Shutdown) })

	cfg := node.Private("test", "")
	cfg.EmbeddedDir, cfg.EmbeddedListen, cfg.NATS.URL, cfg.NATS.Replicas = "", "", "nats://"+at, 1
	cfg.NATS.AckWait, cfg.Admin, cfg.StoreClock = 2*time.Second, "127.0.0.1:0", a.clock
	cfg.Sweep.Tick, cfg.Sweep.Woken = 100*time.Millisecond, 100*time.Millisecond
	a.node, err = node.Start(t.Context(), cfg)
	a.must(err)
	t.Cleanup(func() { a.stopped(a.node.Stop) })
	a.client, err = client.New(client.Options{URL: "http://" + a.node.HTTP, NATSURL: cfg.NATS.URL, Log: quiet})
	a.must(err)
	t.Cleanup(a.client.Close)
	a.nats, err = nats.Connect(cfg.NATS.URL, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	a.must(err)
	t.Cleanup(a.nats.Close)
	a.js, err = jetstream.New(a.nats)
	a.must(err)
	return a
}

func (a *away) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *away) stopped(stop func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := stop(ctx); err != nil {
		a.t.Errorf("stopping: %v", err)
	}
}

// until looks again and again whether it holds, and moves the store's clock on by step between two looks.
func (a *away) until(what string, step time.Duration, holds func() bool) {
	a.t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(brokerPatience); !holds(); {
		if time.Now().After(end) {
			a.t.Fatalf("did not happen: %s", what)
		}
		a.clock.Advance(step)
		<-look.C
	}
}

// start starts a run of a queue.
func (a *away) start(run, queue string, input any) {
	a.t.Helper()
	_, err := a.client.StartRun(a.t.Context(), wire.StartRun{WorkflowID: run, RunID: run, Type: "soak", Queue: queue, Input: client.JSON(input).Wire()})
	a.must(err)
}

// await registers the run's wait, under a lease or without, and reports whether it was answered at once.
func (a *away) await(run string, epoch int64) bool {
	a.t.Helper()
	got, err := a.client.RegisterWait(a.t.Context(), wire.RegisterWait{RunID: run, Epoch: epoch, Effect: "w", Type: eventType, Keys: []rendezvous.Key{key(run)}})
	a.must(err)
	return got.Answered != nil
}

// lease is one whose holder is never heard of again.
func (a *away) lease(run string) int64 {
	a.t.Helper()
	ttl := int64(5000)
	l, err := a.client.AcquireLease(a.t.Context(), wire.AcquireLease{RunID: run, Owner: "dead", TTLMS: &ttl})
	a.must(err)
	return l.Epoch
}

// put sends events by the request door, which takes each.
func (a *away) put(want string, ids ...string) {
	a.t.Helper()
	events := make([]rendezvous.Event, len(ids))
	for i, id := range ids {
		events[i] = event(id, key(id))
	}
	results, err := a.client.PutEvents(a.t.Context(), events...)
	a.must(err)
	for _, r := range results {
		if r.Outcome != want {
			a.t.Fatalf("put: %+v", r)
		}
	}
}

// answers counts the answers in a run's history.
func (a *away) answers(run string) (n int) {
	a.t.Helper()
	records, err := a.client.History(a.t.Context(), run, 1)
	a.must(err)
	for _, r := range records {
		if r.Kind == rendezvous.WaitAnswered {
			n++
		}
	}
	return n
}

func (a *away) allAnswered(runs []string) func() bool {
	return func() bool { return !slices.ContainsFunc(runs, func(run string) bool { return a.answers(run) == 0 }) }
}

// once fails the test unless each run was answered once, by its own event.
func (a *away) once(runs []string, id func(run string) string) {
	a.t.Helper()
	for _, run := range runs {
		e, err := a.client.GetEvent(a.t.Context(), rendezvous.EventID{Source: source, ID: id(run)}, false)
		a.must(err)
		if n := a.answers(run); n != 1 || e.State != rendezvous.EventConsumed || e.RunID != run {
			a.t.Errorf("%s has %d answers, its event is %s by %s", run, n, e.State, e.RunID)
		}
	}
}

var sweepRows = regexp.MustCompile(`(?m)^rendezvous_sweep_rows_total\{[^}]*outcome="done"[^}]*pass="(\w+)"[^}]*\} (\d+)$`)

// repaired is how many rows the metrics say each pass has done.
func (a *away) repaired() map[string]int {
	a.t.Helper()
	resp, err := http.Get("http://" + a.node.Admin + "/metrics")
	a.must(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	a.must(err)
	done := map[string]int{}
	for _, m := range sweepRows.FindAllStringSubmatch(string(body), -1) {
		done[m[1]], err = strconv.Atoi(m[2])
		a.must(err)
	}
	return done
}

// saysRepaired waits until the metrics say that a pass has done so many rows.
func (a *away) saysRepaired(pass string, least int) {
	a.t.Helper()
	a.until(fmt.Sprintf("%d rows done by %s", least, pass), 0, func() bool { return a.repaired()[pass] >= least })
}

// wipe takes the broker away together with all that it had: streams, messages, consumers.
func (a *away) wipe() {
	a.t.Helper()
	a.must(a.broker.Shutdown(a.t.Context()))
	a.must(os.RemoveAll(a.folder))
}

func named(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", prefix, i)
	}
	return names
}

func own(run string) string { return run }

// SW-19, SW-20, I11: the broker is taken away with all its streams and consumers, and events keep coming in by the request door. Waits that were open, waits that hold an
// event under a dead driver's lease and runs that nobody drives are all completed, each once, most of them without any broker; the metrics say by which pass.
// When it is back, empty, executors hear of every run.
func TestABrokerThatIsAwayAndComesBackEmptyLosesNothing(t *testing.T) {
	const n = 40
	a := startAway(t)
	apart, parked, late, mail, driven := named("apart", n), named("parked", n), named("late", n), named("mail", n), named("driven", n)
	for _, run := range apart {
		a.start(run, queueIdle, nil)
		a.await(run, 0)
	}
	for _, run := range slices.Concat(parked, mail) {
		a.start(run, queueIdle, nil)
		a.await(run, a.lease(run))
	}
	a.put("accepted", mail...)
	a.until("the events of leased runs are held", 0, func() bool {
		return !slices.ContainsFunc(mail, func(run string) bool {
			e, err := a.client.GetEvent(t.Context(), rendezvous.EventID{Source: source, ID: run}, false)
			return err != nil || e.State != rendezvous.EventClaimed
		})
	})

	a.wipe()
	for _, run := range late {
		a.put("accepted", run)
		a.start(run, queueIdle, nil)
		if !a.await(run, 0) {
			t.Errorf("%s: its event was there and did not answer it", run)
		}
	}
	a.put("accepted", slices.Concat(apart, parked)...)
	for _, run := range driven {
		a.start(run, queueDriven, input{Case: run, Steps: 1, Runs: 1})
		a.put("accepted", run+"/0/0")
	}
	a.until("every wait that was open is answered, by the passes", 100*time.Millisecond, a.allAnswered(slices.Concat(apart, late, parked, mail)))
	a.saysRepaired("unmet", n)    // those apart, and those parked were at least claimed
	a.saysRepaired("leases", 2*n) // every dead driver's

	executor, err := a.client.NewExecutor(client.ExecutorOptions{Queue: queueDriven, Handler: handle, Lease: 30 * time.Second, Log: slog.New(slog.DiscardHandler)})
	a.must(err)
	before := a.repaired()["woken"]
	a.must(a.broker.Start())
	a.must(executor.Start())
	t.Cleanup(func() { a.stopped(executor.Stop) })
	a.until("executors complete every run they were never told of", 100*time.Millisecond, func() bool {
		return !slices.ContainsFunc(driven, func(run string) bool {
			w, err := a.client.GetRun(t.Context(), wire.WorkflowRef{RunID: run})
			return err != nil || w.Status != rendezvous.StatusCompleted
		})
	})
	a.saysRepaired("woken", before+1)
	a.once(slices.Concat(apart, parked, late, mail), own)
	a.once(driven, func(run string) string { return run + "/0/0" })
}

// SW-19, I11: every consumer is deleted, and every notice there ever was comes twice more, in any order, some about what is over and some about what is still open: each
// wait is answered once.
func TestNoticesTwiceAndShuffledToLostConsumersAnswerOnce(t *testing.T) {
	const n = 60
	a := startAway(t)
	sub, err := a.nats.Subscribe("rdv.match.*", func(m *nats.Msg) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.notices = append(a.notices, m)
	})
	a.must(err)
	a.must(a.nats.Flush())
	early, open, leased := named("early", n), named("open", n), named("leased", n)
	for _, run := range slices.Concat(early, open) {
		a.start(run, queueIdle, nil)
	}
	for _, run := range early {
		a.await(run, 0)
	}
	for _, run := range leased {
		a.start(run, queueIdle, nil)
		a.await(run, a.lease(run))
	}
	a.put("accepted", slices.Concat(early, open, leased)...)
	a.until("the waits that were there first are answered", 0, a.allAnswered(early))
	a.until("every event was noticed", 0, func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.notices) >= 3*n
	})
	a.must(sub.Unsubscribe())

	deleteConsumers(t.Context(), a.js, "rdv_MATCH")
	deleteConsumers(t.Context(), a.js, "rdv_INBOX")
	a.mu.Lock()
	again := slices.Concat(a.notices, a.notices)
	a.mu.Unlock()
	rand.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
	var work sync.WaitGroup
	work.Go(func() {
		for _, m := range again { // without an id: none is taken for a repeat
			if _, err := a.js.PublishMsg(t.Context(), &nats.Msg{Subject: m.Subject, Data: m.Data}); err != nil {
				t.Errorf("publish a notice again: %v", err)
				return
			}
		}
	})
	work.Go(func() { a.put("duplicate", slices.Concat(leased, early, open)...) })
	for _, run := range open { // meanwhile
		a.await(run, 0)
	}
	work.Wait()
	a.until("every wait is answered", 200*time.Millisecond, a.allAnswered(slices.Concat(early, open, leased)))
	a.until("every notice is done with", 0, func() bool {
		s, err := a.js.Stream(t.Context(), "rdv_MATCH")
		return err == nil && s.CachedInfo().State.Msgs == 0
	})
	a.once(slices.Concat(early, open, leased), own)
}
