package main

import (
	"testing"

	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

func TestMain(m *testing.M) { nodetest.Main(m, main) }

func TestWrongSettingsNameThemselves(t *testing.T) {
	nodetest.Refuses(t, map[string]string{
		"store": "", "nats": "RENDEZVOUS_STORE=memory:", "shards": "RENDEZVOUS_STORE=memory: RENDEZVOUS_SHARDS=1025", "--log": "RENDEZVOUS_LOG=loud",
		"event-limit": "RENDEZVOUS_STORE=memory: RENDEZVOUS_EVENT_LIMIT=0", "drain": "RENDEZVOUS_STORE=memory: RENDEZVOUS_DRAIN=1h",
		"nats-ack-wait": "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_NATS_ACK_WAIT=1ns",
		"nats-replicas": "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_NATS_REPLICAS=2",
		"http":          "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_HTTP=0.0.0.0:80",
		"tokens":        "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 RENDEZVOUS_TOKENS=/nonexistent",
	})
}

func TestItServesUntilItIsTold(t *testing.T) {
	nodetest.Serves(t, "ingest", "RENDEZVOUS_HTTP=127.0.0.1:0")
}
