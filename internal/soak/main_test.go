package main

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/rendezvous-events/rendezvous/internal/pgtest"
)

// TestMain lets the test binary play the children's roles too.
func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		exit(play(role))
	}
	goleak.VerifyTestMain(pgtest.WithCluster(m))
}
