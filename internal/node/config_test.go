package node_test

import (
	"errors"
	"testing"

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
	if field := refusedField(t, external, func(c *node.Config) { c.NATS.Replicas = 3 }); field != "nats.replicas" {
		t.Errorf("the refusal names %v", field)
	}
}
