package node_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/push"
	"github.com/rendezvous-events/rendezvous/wire"
)

var typeLine = regexp.MustCompile(`(?m)^# TYPE (rendezvous_\S+) (\S+)$`)

// docs/metrics.md and the page name the same metrics, of the same kinds, after a little traffic; each row's labels are those of its series.
func TestTheMetricsPageIsTheOneOfTheDocumentation(t *testing.T) {
	n := nodetest.Start(t, pushed(t))
	traffic(t, n)
	body := exported(t, n)
	kinds := map[string]string{}
	for _, m := range typeLine.FindAllStringSubmatch(body, -1) {
		kinds[m[1]] = m[2]
	}
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	must(t, err)
	documented := 0
	for _, line := range strings.Split(string(raw), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.Contains(cells[1], "`rendezvous_") {
			continue
		}
		documented++
		name := strings.Trim(cells[1], " `")
		if kind := strings.TrimSpace(cells[2]); kinds[name] != kind {
			t.Errorf("%s is documented as a %s and exported as %q", name, kind, kinds[name])
		}
		if want, got := labelsOf(cells[3]), seriesLabels(body, name); !slices.Equal(want, got) {
			t.Errorf("%s is documented with the labels %v and exported with %v", name, want, got)
		}
		delete(kinds, name)
	}
	if documented == 0 {
		t.Error("docs/metrics.md documents nothing")
	}
	for name := range kinds {
		t.Errorf("%s is exported and not in docs/metrics.md", name)
	}
	for _, text := range []string{"hush", "p-1", "run-1", "order-1"} {
		if strings.Contains(body, text) {
			t.Errorf("the page holds %s", text)
		}
	}
}

// pushed has a process push what its runs do to a receiver that fails first and then accepts.
func pushed(t *testing.T) func(*node.Config) {
	t.Helper()
	var n atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(map[bool]int{true: 500, false: 204}[n.Add(1) == 1])
	}))
	t.Cleanup(server.Close)
	return func(c *node.Config) {
		c.Destinations = []push.Destination{{
			Destination: rendezvous.Destination{Name: "audit", Events: []string{rendezvous.AllEvents}}, Registration: rendezvous.Registration{URL: server.URL},
		}}
	}
}

// exported is the metrics page once the sweeper has reported, and something was pushed.
func exported(t *testing.T, n *node.Node) string {
	t.Helper()
	for end := time.Now().Add(nodetest.Patience); ; _ = clock.Sleep(t.Context(), clock.System, nodetest.Look) {
		_, body := nodetest.Page(t, n.Admin, "/metrics")
		if strings.Contains(body, "rendezvous_depth{") && strings.Contains(body, "rendezvous_push_ack_lag_seconds_count") {
			return body
		}
		if time.Now().After(end) {
			t.Fatal("the first tick of the sweeper does not end, or nothing is pushed")
		}
	}
}

// labelsOf are the labels a cell of the table names.
func labelsOf(cell string) []string {
	var labels []string
	for _, l := range strings.Split(cell, ",") {
		if l = strings.Trim(l, " `"); l != "" {
			labels = append(labels, l)
		}
	}
	slices.Sort(labels)
	return labels
}

var label = regexp.MustCompile(`(\w+)="`)

// seriesLabels are the labels of the first series of a metric.
func seriesLabels(body, name string) []string {
	series := regexp.MustCompile(`(?m)^` + name + `(?:_bucket|_sum|_count)?\{([^}]*)\}`).FindStringSubmatch(body)
	if series == nil {
		return nil
	}
	var labels []string
	for _, m := range label.FindAllStringSubmatch(series[1], -1) {
		if m[1] != "le" {
			labels = append(labels, m[1])
		}
	}
	slices.Sort(labels)
	return labels
}

// traffic is an event that comes by either door, and a wait that one of them answers.
func traffic(t *testing.T, n *node.Node) {
	t.Helper()
	c, err := client.New(client.Options{Tenant: "acme", URL: "http://" + n.HTTP, NATSURL: n.NATSURL})
	must(t, err)
	defer c.Close()
	e := rendezvous.Event{
		EventID: rendezvous.EventID{Source: "urn:bank", ID: "p-1"}, Type: "paid", Keys: []rendezvous.Key{{Namespace: "order", Value: "1"}}, Payload: []byte("hush"),
		ContentType: "text/plain",
	}
	_, err = c.StartRun(t.Context(), wire.StartRun{WorkflowID: "order-1", RunID: "run-1", Type: "order"})
	must(t, err)
	_, err = c.RegisterWait(t.Context(), wire.RegisterWait{RunID: "run-1", Effect: "pay", Type: "paid", Keys: e.Keys})
	must(t, err)
	_, err = c.PutEvents(t.Context(), e)
	must(t, err)
	e.ID = "p-2"
	must(t, c.Publish(t.Context(), e))
	for end := time.Now().Add(nodetest.Patience); ; clock.Sleep(context.Background(), clock.System, 5*time.Millisecond) {
		first, err1 := c.GetEvent(t.Context(), rendezvous.EventID{Source: e.Source, ID: "p-1"}, false)
		_, err2 := c.GetEvent(t.Context(), e.EventID, false)
		if err1 == nil && err2 == nil && first.State == rendezvous.EventConsumed {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%v %v %+v", err1, err2, first)
		}
	}
	_, err = c.ArmTimer(t.Context(), wire.ArmTimer{RunID: "run-1", TimerID: "nap", AfterMS: new(int64(0))})
	must(t, err)
	for end := time.Now().Add(nodetest.Patience); ; clock.Sleep(context.Background(), clock.System, 5*time.Millisecond) {
		left, err := c.ListTimers(t.Context(), wire.ListTimers{RunID: "run-1"})
		must(t, err)
		if len(left.Timers) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%+v did not fire", left.Timers)
		}
	}
}

func TestHealthAndReadiness(t *testing.T) {
	n := nodetest.Start(t)
	for path, want := range map[string]int{"/livez": 200, "/readyz": 200, "/debug/pprof/": 404, "/": 404} {
		if status, body := nodetest.Page(t, n.Admin, path); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	n = nodetest.Start(t, func(c *node.Config) { c.Pprof = true })
	if status, _ := nodetest.Page(t, n.Admin, "/debug/pprof/"); status != 200 {
		t.Errorf("pprof when enabled: %d", status)
	}
}
