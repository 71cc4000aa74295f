// Command rendezvous is the operator's tool: it serves a whole plane (up), and speaks every verb.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/internal/worker"
)

type cli struct {
	Up         upCmd         `cmd:"" help:"Serve a whole plane in this process: every role, embedded NATS."`
	Demo       demoCmd       `cmd:"" help:"Show events meeting waits, both ways round, time passing, and webhooks, on sample input; ends by itself."`
	Event      eventCmd      `cmd:"" help:"Put, look up and erase events."`
	Run        runCmd        `cmd:"" help:"Start runs, read them, end them."`
	Wait       waitCmd       `cmd:"" help:"Register, withdraw and list waits."`
	Timer      timerCmd      `cmd:"" help:"Arm, cancel and list timers."`
	Push       pushCmd       `cmd:"" help:"Register webhooks that follow runs, and see how they fare."`
	Shard      shardCmd      `cmd:"" help:"Who owns which shard."`
	Deadletter deadletterCmd `cmd:"" help:"See what nobody wanted, and give it another chance or drop it."`
	System     systemCmd     `cmd:"" help:"What the plane says of itself."`
	Top        topCmd        `cmd:"" help:"Watch the plane live: depths, ages, rates, passes, and what to look at."`
	Backup     backupCmd     `cmd:"" help:"Back up the embedded store, also while it is in use."`
	Migrate    migrateCmd    `cmd:"" help:"Bring a store's schema up to this build, or copy a store to another."`
	Doctor     doctorCmd     `cmd:"" help:"Check store, NATS and API, and say what is wrong."`
	Version    versionCmd    `cmd:"" help:"Show the version."`
	Completion completionCmd `cmd:"" help:"Print shell completion: bash, zsh or fish."`
}

func main() {
	var c cli
	k := kong.Must(&c, kong.Name("rendezvous"), kong.Description("Events meet the runs that wait for them, exactly once."),
		kong.DefaultEnvars("RENDEZVOUS"), kong.PostBuild(settingsOnly), kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"server": client.DefaultURL, "tenant": rendezvous.DefaultTenant}, kong.ValueFormatter(worker.Explain), kong.TypeMapper(reflect.TypeFor[time.Time](), kong.MapperFunc(instant)), kong.Exit(worker.Exit))
	parsed, err := k.Parse(arranged(os.Args[1:]))
	if err != nil {
		worker.Refuse(k, err)
	}
	ctx, done := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer done()
	parsed.BindTo(ctx, (*context.Context)(nil))
	if err := parsed.Run(k); err != nil {
		fmt.Fprintln(os.Stderr, "rendezvous:", err)
		os.Exit(worker.ExitCode(err))
	}
}

// instant reads a time of the command line.
func instant(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("time", &text); err != nil {
		return err
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return fmt.Errorf("%q is not an RFC 3339 time, such as 2026-01-31T12:00:00Z", text)
	}
	target.Set(reflect.ValueOf(t))
	return nil
}

// arranged has a command line as the parser wants it: common flags behind their command, and what is asked of any program as what this one calls it.
func arranged(args []string) []string {
	ahead := 0
	for ahead < len(args) {
		name, _, whole := strings.Cut(strings.TrimLeft(args[ahead], "-"), "=")
		if !strings.HasPrefix(args[ahead], "-") || !slices.Contains(reaching, name) && name != "t" && name != "o" {
			break
		}
		if ahead++; !whole {
			ahead = min(ahead+1, len(args)) // its value
		}
	}
	common, rest := args[:ahead], args[ahead:]
	switch {
	case len(rest) > 0 && rest[0] == "help":
		return append(slices.Clone(rest[1:]), "--help")
	case len(rest) > 0 && rest[0] == "--version":
		return []string{"version"}
	}
	end := slices.Index(rest, "--")
	if end < 0 {
		end = len(rest)
	}
	return slices.Concat(rest[:end], common, rest[end:])
}

// settingsOnly takes the environment variables away from flags that are no settings but say what one command is to do: --data names a folder in one command
// and a payload in another, and no variable of the environment may end a run.
func settingsOnly(k *kong.Kong) error {
	for _, command := range k.Model.Leaves(false) {
		for _, f := range command.Flags {
			if !processes[command.Name] && !slices.Contains(reaching, f.Name) {
				f.Envs, f.Tag.Envs = nil, nil
			}
		}
	}
	return nil
}

// processes are the commands all of whose flags are settings, reaching the settings of all others: how a plane is reached.
var (
	processes = map[string]bool{"up": true, "schema": true, "backup": true, "doctor": true}
	reaching  = []string{"server", "tenant", "token", "context", "output", "metrics"}
)

type versionCmd struct{}

func (versionCmd) Run() error {
	fmt.Println("rendezvous", worker.Version())
	return nil
}
