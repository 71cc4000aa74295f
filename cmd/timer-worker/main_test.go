package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"testing"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
)

func TestMain(m *testing.M) {
	program := main
	if os.Getenv(asStubborn) != "" {
		program = func() {
			if err := beStubborn(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	nodetest.Main(pgtest.WithCluster(m), program)
}

func TestWrongSettingsNameThemselves(t *testing.T) {
	nodetest.Refuses(t, map[string]string{
		"store": "", "nats": "RENDEZVOUS_STORE=memory:",
		"timer-lease": "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_TIMER_LEASE=10ms",
		"timer-page":  "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_TIMER_PAGE=0",
	})
}

// What the program must do by itself: own shards, look at them, and walk to reconcile.
var runs = []*regexp.Regexp{
	regexp.MustCompile(`(?m)^rendezvous_shard_owned\{[^}]*pool="timer"[^}]*\} 64$`),
	regexp.MustCompile(`(?m)^rendezvous_timer_probe_age_seconds\{?[^\n]* [0-4]`),
	regexp.MustCompile(`(?m)^rendezvous_timer_walks_total\{?[^\n]* [1-9]`),
}

// TM-56: the program starts loop, probe and reconcile, as its metrics tell.
func TestItFiresUntilItIsTold(t *testing.T) {
	nodetest.Serving(t, "timer-worker", func(admin string) {
		for end := clock.System.Now().Add(nodetest.Patience); ; {
			page, missing := metrics(t, admin), ""
			for _, r := range runs {
				if !r.MatchString(page) {
					missing = r.String()
				}
			}
			if missing == "" {
				return
			}
			if clock.System.Now().After(end) {
				t.Fatalf("the metrics do not show %s", missing)
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
