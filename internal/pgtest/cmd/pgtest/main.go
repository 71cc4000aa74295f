// Command pgtest runs a command with a throw-away PostgreSQL cluster beside it:
//
//	go build -o bin/ ./internal/pgtest/cmd/pgtest && bin/pgtest -- go test ./...
//
// The command finds the cluster's administrator's URL in RDV_TEST_POSTGRES, so that all test packages share one cluster instead of starting one each. Its
// exit code becomes this command's, SIGINT and SIGTERM are passed on to it, and the cluster is gone afterwards. (Under go run, every failure is exit code 1.)
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/rendezvous-events/rendezvous/internal/pgtest"
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: pgtest -- command [argument ...]")
		os.Exit(2)
	}
	code, err := run(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(args []string) (code int, err error) {
	starting, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	cluster, err := pgtest.Start(starting)
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()

	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), pgtest.SharedVariable+"="+cluster.URL("postgres"))
	if err := cmd.Start(); err != nil {
		return 127, fmt.Errorf("cannot run %s: %w", args[0], err)
	}
	return await(cmd, signals)
}

// await passes signals on until the command ends. One that a signal ended answers 128 and its number, as shells do.
func await(cmd *exec.Cmd, signals <-chan os.Signal) (int, error) {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case sig := <-signals:
			if err := cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return 1, fmt.Errorf("cannot pass %s on: %w", sig, err)
			}
		case err := <-ended:
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				return 1, err
			}
			status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if ok && status.Signaled() {
				return 128 + int(status.Signal()), nil
			}
			return cmd.ProcessState.ExitCode(), nil
		}
	}
}
