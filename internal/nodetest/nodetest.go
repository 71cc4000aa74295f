// Package nodetest starts whole processes for tests: every role, a store in memory and an embedded NATS server, unless the test says otherwise.
package nodetest

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/node"
)

// Patience is how long a test waits for what has to happen; only a failing test waits so long.
const Patience = 60 * time.Second

// Look is the pause between two looks at what has to happen.
const Look = 5 * time.Millisecond

// Start brings a node up on free ports of loopback and stops it when the test ends. Its log is shown when the test fails.
func Start(t testing.TB, change ...func(*node.Config)) *node.Node {
	t.Helper()
	n, err := node.Start(t.Context(), Config(t, change...))
	if err != nil {
		t.Fatalf("start the node: %v", err)
	}
	t.Cleanup(func() { Stop(t, n) })
	return n
}

// Config is the configuration that Start starts.
func Config(t testing.TB, change ...func(*node.Config)) node.Config {
	t.Helper()
	cfg := node.Private("test", t.TempDir())
	cfg.Version, cfg.Admin, cfg.Shards = "0.0.1", "127.0.0.1:0", 8
	cfg.Logger = slog.New(slog.NewTextHandler(newLog(t), &slog.HandlerOptions{Level: slog.LevelDebug}))
	for _, c := range change {
		c(&cfg)
	}
	return cfg
}

// Stop takes a node down and fails the test where that does not go in order.
func Stop(t testing.TB, n *node.Node) {
	t.Helper()
	ctx, cancel := clock.WithTimeout(context.Background(), clock.System, Patience)
	defer cancel()
	if err := n.Stop(ctx); err != nil {
		t.Errorf("stop the node: %v", err)
	}
}

// NATS connects to the server at url, such as a node's.
func NATS(t testing.TB, url string, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url, append([]nats.Option{nats.MaxReconnects(-1)}, opts...)...)
	if err != nil {
		t.Fatalf("connect to NATS: %v", err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// log gathers what a node logs and shows it when its test fails: a node may log until it is down, when the test's own log is closed.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func newLog(t testing.TB) *log {
	l := &log{}
	t.Cleanup(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if t.Failed() {
			t.Logf("the log:\n%s", l.text.Bytes())
		}
	})
	return l
}

// Write implements io.Writer.
func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// String is what was logged so far.
func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
