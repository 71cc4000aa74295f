package pgtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"go.uber.org/goleak"
)

// roleVariable makes this test binary play another test process.
const roleVariable = "RDV_PGTEST_ROLE"

// roles are what that process does. Each prints what the test needs to know of it.
var roles = map[string]func() error{
	"cluster": holdCluster,
	"program": holdProgram,
}

func TestMain(m *testing.M) {
	role, ok := roles[os.Getenv(roleVariable)]
	if !ok {
		goleak.VerifyTestMain(WithCluster(m))
		return
	}
	if err := role(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// holdCluster starts a cluster, holds it until the standard input ends, and stops it in order.
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

// holdProgram runs a program that does not end, as one in the place of initdb.
func holdProgram() error {
	owner, err := findAccount()
	if err != nil {
		return err
	}
	dir, err := owner.tempFolder()
	if err != nil {
		return err
	}
	guard, err := startWatchdog(owner, dir)
	if err != nil {
		return err
	}
	c := &Cluster{owner: owner, dir: dir, watchdog: guard}
	program := owner.own(exec.Command("sleep", "1000"), dir)
	if err := c.startWatched(program); err != nil {
		return err
	}
	fmt.Println("none", dir, program.Process.Pid)
	return program.Wait()
}
