package node_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/push"
	"github.com/rendezvous-events/rendezvous/wire"
)

// hooks is a receiver that tells when each message came.
type hooks struct {
	*httptest.Server
	mu  sync.Mutex
	at  map[string]time.Time
	all []string
}

func newHooks(t *testing.T) *hooks {
	t.Helper()
	h := &hooks{at: map[string]time.Time{}}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		id := r.Header.Get("webhook-id")
		h.mu.Lock()
		h.all = append(h.all, id)
		if _, seen := h.at[id]; !seen {
			h.at[id] = time.Now()
		}
		h.mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hooks) config(poll time.Duration) func(*node.Config) {
	return func(c *node.Config) {
		c.Push.Poll = poll
		c.Destinations = []push.Destination{{
			Destination: rendezvous.Destination{Name: "audit", Events: []string{rendezvous.AllEvents}}, Registration: rendezvous.Registration{URL: h.URL + "/in"},
		}}
	}
}

func (h *hooks) came(id string) (time.Time, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, ok := h.at[id]
	return at, ok
}

func (h *hooks) await(t *testing.T, id string) time.Time {
	t.Helper()
	for end := time.Now().Add(nodetest.Patience); ; {
		if at, ok := h.came(id); ok {
			return at
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not come; there came %v", id, h.all)
		}
		_ = clock.Sleep(t.Context(), clock.System, nodetest.Look)
	}
}

// PU-49, PU-12: a run that is started, written to and ended is pushed to the operator's destination by notices, long before the poll; the process's end leaves
// no lease.
func TestNoticesLeadToPostsBeforeThePoll(t *testing.T) {
	h := newHooks(t)
	n := nodetest.Start(t, h.config(10*time.Minute))
	c, err := client.New(client.Options{Tenant: "acme", URL: "http://" + n.HTTP})
	must(t, err)
	defer c.Close()
	for _, run := range []string{"r-1", "r-2", "r-3"} {
		began := time.Now()
		_, err = c.StartRun(t.Context(), wire.StartRun{WorkflowID: "wf-" + run, RunID: run, Type: "order"})
		must(t, err)
		h.await(t, run+"/1/0")
		_, err = c.Conclude(t.Context(), wire.Conclude{RunID: run, ExpectedSeq: 1, BatchID: "end", Outcome: "completed"})
		must(t, err)
		h.await(t, run+"/2/0")
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %s", took)
		}
	}
	if got := strings.Join(h.all, " "); got != "r-1/1/0 r-1/2/0 r-2/1/0 r-2/2/0 r-3/1/0 r-3/2/0" {
		t.Errorf("received %s", got)
	}
}

// PU-49: with the streams gone everything is delivered by the poll, and nothing is lost.
func TestWithoutStreamsThePollDelivers(t *testing.T) {
	url, external := nodetest.Broker(t)
	h := newHooks(t)
	n := nodetest.Start(t, external, h.config(200*time.Millisecond))
	js, err := jetstream.New(nodetest.NATS(t, url))
	must(t, err)
	c, err := client.New(client.Options{Tenant: "acme", URL: "http://" + n.HTTP})
	must(t, err)
	defer c.Close()
	for _, run := range []string{"r-1", "r-2", "r-3"} {
		if err := js.DeleteStream(t.Context(), "rdv_PUSH"); err != nil && run == "r-1" {
			t.Fatal(err)
		}
		_, err = c.StartRun(t.Context(), wire.StartRun{WorkflowID: "wf-" + run, RunID: run, Type: "order"})
		must(t, err)
	}
	for _, run := range []string{"r-1", "r-2", "r-3"} {
		h.await(t, run+"/1/0")
	}
}

// push.md section 11: whatever a caller is granted, no push reaches what this process itself listens on, its broker among it.
func TestNoPushReachesThePlaneItself(t *testing.T) {
	h := newHooks(t)
	n := nodetest.Start(t, func(c *node.Config) {
		c.Targets = node.Targets{CallerHosts: []string{"127.0.0.1"}, DevLoopback: true}
		c.Admin, c.EmbeddedListen = ":0", "localhost:0"
	})
	_, admin, err := net.SplitHostPort(n.Admin)
	must(t, err)
	_, nats, err := net.SplitHostPort(strings.TrimPrefix(n.NATSURL, "nats://"))
	must(t, err)
	c, err := client.New(client.Options{Tenant: "acme", URL: "http://" + n.HTTP})
	must(t, err)
	defer c.Close()
	_, err = c.StartRun(t.Context(), wire.StartRun{WorkflowID: "wf", RunID: "r", Type: "order"})
	must(t, err)
	_, err = c.PutPush(t.Context(), wire.PutPush{RunID: "r", ID: "other", URL: h.URL, Events: []string{"*"}, NextSeq: 1})
	must(t, err)
	h.await(t, "r/1/0")
	for id, at := range map[string]string{"http": n.HTTP, "admin": "127.0.0.1:" + admin, "nats": "127.0.0.1:" + nats} {
		ref := wire.PushRef{RunID: "r", ID: id}
		_, err = c.PutPush(t.Context(), wire.PutPush{RunID: "r", ID: id, URL: "http://" + at + "/in", Events: []string{"*"}, NextSeq: 1})
		must(t, err)
		for end := time.Now().Add(nodetest.Patience); ; _ = clock.Sleep(t.Context(), clock.System, nodetest.Look) {
			tried, err := c.PushAttempts(t.Context(), wire.PushAttempts{PushRef: ref})
			must(t, err)
			if len(tried.Attempts) > 0 {
				if a := tried.Attempts[0]; a.Outcome != "config" || a.Code != "forbidden_literal" {
					t.Errorf("a push to %s of the plane itself came to %+v", id, a)
				}
				break
			}
			if time.Now().After(end) {
				t.Fatalf("no attempt at %s", id)
			}
		}
	}
}
