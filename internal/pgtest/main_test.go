package pgtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// roleVariable makes this test binary play another test process: it starts a cluster, prints its URL, folder and process id, and holds it until its standard
// input ends. Then it stops in order.
const roleVariable = "RDV_PGTEST_HOLDS_A_CLUSTER"

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == "" {
		goleak.VerifyTestMain(WithCluster(m))
		return
	}
	if err := holdCluster(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func holdCluster() error {
	c, err := Start(context.Background())
	if err != nil {
		return err
	}
	fmt.Println(c.URL(adminDatabase), c.dir, c.PID())
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	return c.Stop()
}
