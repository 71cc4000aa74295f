package nodetest

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/rendezvous-events/rendezvous/internal/node"
)

// Broker starts a NATS server of its own, for tests that restart nodes, run several, or give accounts permissions. Its address is answered, and the change of
// a configuration that uses it.
func Broker(t testing.TB, change ...func(*server.Options)) (url string, external func(*node.Config)) {
	t.Helper()
	url = Server(t, change...).ClientURL()
	return url, func(c *node.Config) { c.NATS.URL, c.NATS.Replicas, c.EmbeddedDir = url, 1, "" }
}

// Server is the server of [Broker], for tests that stop it.
func Server(t testing.TB, change ...func(*server.Options)) *server.Server {
	t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true, MaxPayload: 2 << 20}
	for _, c := range change {
		c(o)
	}
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatalf("make the NATS server: %v", err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(Patience) {
		t.Fatal("the NATS server does not start")
	}
	return s
}
