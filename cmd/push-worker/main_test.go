package main

import (
	"io"
	"net/http"
	"regexp"
	"testing"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
)

func TestMain(m *testing.M) { nodetest.Main(pgtest.WithCluster(m), main) }

// PU-81, PU-6: what cannot work is refused at start-up, by name.
func TestWrongSettingsNameThemselves(t *testing.T) {
	const rest = "RENDEZVOUS_STORE=memory: RENDEZVOUS_NATS=nats://127.0.0.1:1 "
	nodetest.Refuses(t, map[string]string{
		"store": "", "nats": "RENDEZVOUS_STORE=memory:",
		"push-lease":                 rest + "RENDEZVOUS_PUSH_LEASE=39s",
		"push-poll":                  rest + "RENDEZVOUS_PUSH_POLL=-1s",
		"push-max-age":               rest + "RENDEZVOUS_PUSH_MAX_AGE=-1h",
		"push-inflight":              rest + "RENDEZVOUS_PUSH_INFLIGHT=-1",
		"push-caller-hosts":          rest + "RENDEZVOUS_PUSH_CALLER_HOSTS=*.example.org",
		"push-caller-allow-networks": rest + "RENDEZVOUS_PUSH_CALLER_ALLOW_NETWORKS=10.0.0.0",
		"push-operator-allow":        rest + "RENDEZVOUS_PUSH_OPERATOR_ALLOW=localhost",
		"push-refuse-self":           rest + "RENDEZVOUS_PUSH_REFUSE_SELF=127.0.0.1",
		"push-proxy":                 rest + "RENDEZVOUS_PUSH_PROXY=http://127.0.0.1:3128",
		"push-gate-rate":             rest + "RENDEZVOUS_PUSH_GATE_RATE=5",
		"push-destinations":          rest + "RENDEZVOUS_PUSH_DESTINATIONS=/nowhere/at/all.json",
	})
}

// looks is what the program must do by itself: claim what is due, though nothing tells it to.
var looks = regexp.MustCompile(`(?m)^rendezvous_push_claim_size_count\{?[^\n]* [1-9]`)

func TestItClaimsUntilItIsTold(t *testing.T) {
	nodetest.Serving(t, "push-worker", func(admin string) {
		for end := clock.System.Now().Add(nodetest.Patience); !looks.MatchString(metrics(t, admin)); {
			if clock.System.Now().After(end) {
				t.Fatal("the metrics do not show a claim")
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
