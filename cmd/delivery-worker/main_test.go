package main

import (
	"testing"

	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

func TestMain(m *testing.M) { nodetest.Main(m, main) }

func TestWrongSettingsNameThemselves(t *testing.T) {
	nodetest.Refuses(t, map[string]string{
		"store": "", "nats": "RENDEZVOUS_STORE=memory:",
		"sweep-tick":  "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_SWEEP_TICK=1ns",
		"sweep-woken": "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_SWEEP_WOKEN=1h",
		"sweep-pages": "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_SWEEP_PAGES=0",
	})
}

func TestItServesUntilItIsTold(t *testing.T) { nodetest.Serves(t, "delivery-worker") }
