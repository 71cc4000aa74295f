package node_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

// refusedField starts a process that has to be refused, and answers which setting the refusal names.
func refusedField(t *testing.T, change ...func(*node.Config)) any {
	t.Helper()
	n, err := node.Start(t.Context(), nodetest.Config(t, change...))
	if err == nil {
		nodetest.Stop(t, n)
		t.Fatal("it starts")
	}
	var e *rendezvous.Error
	if !errors.As(err, &e) || e.Code != rendezvous.CodeInvalid {
		t.Fatalf("refused with %v", err)
	}
	return e.Details["field"]
}

// The default asks for a cluster. Beside a server alone a process says so and ends; it does not run on without streams.
func TestAServerAloneRefusesTheReplicasOfACluster(t *testing.T) {
	_, external := nodetest.Broker(t)
	if field := refusedField(t, external, func(c *node.Config) { c.NATS.Replicas = 3 }); field != "nats-replicas" {
		t.Errorf("the refusal names %v", field)
	}
}

// messaging.md section 5: credentials and server by the usual NATS contexts; the bounds are those that were asked for.
func TestAContextNamesTheServer(t *testing.T) {
	url, external := nodetest.Broker(t)
	path := filepath.Join(t.TempDir(), "plane.json")
	if err := os.WriteFile(path, []byte(`{"url":"`+url+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	nodetest.Start(t, external, func(c *node.Config) {
		c.NATS.URL, c.NATS.Context, c.NATS.InboxMax, c.NATS.MatchMax = "", path, 64<<20, 32<<20
	})
	js, err := jetstream.New(nodetest.NATS(t, url))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{"rdv_INBOX": 64 << 20, "rdv_MATCH": 32 << 20} {
		s, err := js.Stream(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.CachedInfo().Config.MaxBytes; got != want {
			t.Errorf("%s is bounded to %d, want %d", name, got, want)
		}
	}
}

// The JetStream of a domain is asked by the domain's name: one that is not there makes no streams in another.
func TestADomainNamesTheJetStream(t *testing.T) {
	for domain, want := range map[string]int{"edge": 6, "elsewhere": 0} {
		url, external := nodetest.Broker(t, func(o *natsd.Options) { o.JetStreamDomain = "edge" })
		nodetest.Start(t, external, func(c *node.Config) { c.NATS.Domain = domain })
		js, err := jetstream.New(nodetest.NATS(t, url))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for range js.StreamNames(t.Context()).Name() {
			found++
		}
		if found != want {
			t.Errorf("%s: %d streams, want %d", domain, found, want)
		}
	}
}

func TestWrongSettingsAreRefusedByName(t *testing.T) {
	for field, change := range map[string]func(*node.Config){
		"nats":                 func(c *node.Config) { c.EmbeddedDir = "" },
		"nats-context":         func(c *node.Config) { c.NATS.Context, c.NATS.Replicas = filepath.Join(t.TempDir(), "none.json"), 1 },
		"nats-inbox-max-bytes": func(c *node.Config) { c.NATS.InboxMax = 1 },
		"nats-match-max-bytes": func(c *node.Config) { c.NATS.MatchMax = -1 },
		"nats-max-store":       func(c *node.Config) { c.NATS.MaxStore = 1 << 20 },
		"nats-domain":          func(c *node.Config) { c.NATS.Domain = "a.b" },
		"http":                 func(c *node.Config) { c.Ingest.HTTP = "127.0.0.1:-1" },
		"admin":                func(c *node.Config) { c.Admin = "127.0.0.1:-1" },
		"nats-nkey":            func(c *node.Config) { c.NATS.NKey, c.NATS.Credentials = "a", "b" },
	} {
		if got := refusedField(t, change); got != field {
			t.Errorf("%s: the refusal names %v", field, got)
		}
	}
}

// What OpenTelemetry cannot export is told in the log like everything else, not on stderr beside it.
func TestOpenTelemetryReportsToTheLog(t *testing.T) {
	said := make(lines, 1000)
	nodetest.Start(t, func(c *node.Config) { c.Logger = slog.New(slog.NewTextHandler(said, nil)) })
	otel.Handle(errors.New("the collector is away"))
	for {
		select {
		case line := <-said:
			if strings.Contains(line, "the collector is away") {
				return
			}
		default:
			t.Fatal("the log does not say it")
		}
	}
}

// lines is a log that is read line by line.
type lines chan string

// Write implements io.Writer.
func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}
