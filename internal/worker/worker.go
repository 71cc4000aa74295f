// Package worker is what the workers' mains share: flags with environment variables, and exit codes.
package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/alecthomas/kong"

	"github.com/rendezvous-events/rendezvous"
)

// Exit codes of every command (api.md section 5).
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitConflict    = 4
	ExitUnavailable = 5
)

// Main parses settings (a pointer to a struct of flags), runs, and exits.
func Main(settings any, name, description string, run func(ctx context.Context, version string) error) {
	k := kong.Must(settings, kong.Name(name), kong.Description(description), kong.DefaultEnvars("RENDEZVOUS"), kong.ValueFormatter(Explain), kong.Exit(Exit))
	if _, err := k.Parse(os.Args[1:]); err != nil {
		Refuse(k, err)
	}
	if err := run(context.Background(), Version()); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(ExitCode(err))
	}
}

// Exit ends the process for the parser: wrong usage has the contract's code, whatever the parser thinks of it.
func Exit(code int) {
	if code != 0 {
		code = ExitUsage
	}
	os.Exit(code)
}

// ExitCode is the code that tells what an error was.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return ExitDone
	case errors.Is(err, rendezvous.ErrInvalid), errors.Is(err, rendezvous.ErrTooLarge):
		return ExitUsage
	case errors.Is(err, rendezvous.ErrNotFound):
		return ExitNotFound
	case errors.Is(err, rendezvous.ErrConflict), errors.Is(err, rendezvous.ErrDuplicate), errors.Is(err, rendezvous.ErrSealed),
		errors.Is(err, rendezvous.ErrLeaseHeld), errors.Is(err, rendezvous.ErrFenced):
		return ExitConflict
	case errors.Is(err, rendezvous.ErrUnavailable), errors.Is(err, rendezvous.ErrCommitUnknown):
		return ExitUnavailable
	}
	return ExitFailed
}

// Version is the module's version as it was built, or 0.1.0-dev.
func Version() string {
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" && b.Main.Version != "(devel)" {
		return b.Main.Version
	}
	return "0.1.0-dev"
}
