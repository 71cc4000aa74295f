package main

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"testing"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/sweep"
)

func TestMain(m *testing.M) { nodetest.Main(m, main) }

func TestWrongSettingsNameThemselves(t *testing.T) {
	nodetest.Refuses(t, map[string]string{
		"store": "", "nats": "RENDEZVOUS_STORE=memory:",
		"sweep-tick":       "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_SWEEP_TICK=1ns",
		"sweep-woken":      "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_SWEEP_WOKEN=1h",
		"sweep-window":     "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_SWEEP_WINDOW=0s",
		"retain-dead":      "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_RETAIN_DEAD=-1s",
		"retain-workflows": "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_RETAIN_WORKFLOWS=23h59m",
		"sweep-pages":      "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_SWEEP_PAGES=0",
	})
}

var worked = regexp.MustCompile(`(?m)^rendezvous_sweep_pages_total\{[^}]*pass="(\w+)"[^}]*\} [1-9]`)

// SW-33: the program runs every pass, as its metrics tell.
func TestItRunsEveryPassUntilItIsTold(t *testing.T) {
	nodetest.Serving(t, "sweeper", func(admin string) {
		want := slices.Sorted(slices.Values(sweep.Passes()))
		for end := clock.System.Now().Add(nodetest.Patience); ; {
			var ran []string
			for _, m := range worked.FindAllStringSubmatch(metrics(t, admin), -1) {
				ran = append(ran, m[1])
			}
			if slices.Sort(ran); slices.Equal(ran, want) {
				return
			}
			if clock.System.Now().After(end) {
				t.Fatalf("ran %v, want %v", ran, want)
			}
			_ = clock.Sleep(t.Context(), clock.System, nodetest.Look) // the context ends with the test
		}
	})
}

func metrics(t *testing.T, admin string) string {
	t.Helper()
	resp, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}
