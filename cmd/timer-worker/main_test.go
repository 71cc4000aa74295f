package main

import (
	"fmt"
	"os"
	"testing"

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

// TM-56: the program starts loop, probe and reconcile, as its metrics tell: it owns shards, looks at them, and walks.
func TestItFiresUntilItIsTold(t *testing.T) {
	nodetest.Serving(t, "timer-worker", func(admin string) {
		nodetest.Shows(t, admin, `rendezvous_shard_owned\{[^}]*pool="timer"[^}]*\} 64`, `rendezvous_timer_probe_age_seconds(\{.*\})? ([0-4](\.\d+)?|\d.*e-\d+)`,
			`rendezvous_timer_walks_total(\{.*\})? [1-9]\d*`)
	})
}
