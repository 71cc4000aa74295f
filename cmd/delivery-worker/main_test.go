package main

import (
	"testing"

	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

func TestMain(m *testing.M) { nodetest.Main(m, main) }

func TestWrongSettingsNameThemselves(t *testing.T) {
	nodetest.Refuses(t, map[string]string{
		"store": "", "nats": "RENDEZVOUS_STORE=memory:",
	})
}

func TestItServesUntilItIsTold(t *testing.T) { nodetest.Serves(t, "delivery-worker") }
