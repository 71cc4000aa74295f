package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/rendezvous-events/rendezvous/internal/pgtest"
)

// TestMain lets the test binary play the children's roles too. The server leaves the store of a stream running that is deleted while it is being made.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		exit(play(role))
	}
	const server = "github.com/nats-io/nats-server/v2/server"
	goleak.VerifyTestMain(pgtest.WithCluster(m),
		goleak.IgnoreAnyFunction(server+".(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreAnyFunction(server+".(*msgBlock).flushLoop"),
		goleak.IgnoreAnyFunction(server+"/ats.Register.func1"),
	)
}
