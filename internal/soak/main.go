package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// options are the soak's settings.
type options struct {
	rounds   int
	duration time.Duration
	seed     uint64
	rate     int
	settle   time.Duration
	verbose  bool
	keep     bool
	race     bool
	embedded bool
	push     bool

	timers    int // armings
	timerRate int
	failOver  time.Duration
}

const (
	defaultRounds = 200
	defaultTimers = 20_000
)

func main() {
	if role := os.Getenv(roleVariable); role != "" {
		exit(play(role))
	}
	var o options
	flag.IntVar(&o.rounds, "rounds", 0, fmt.Sprintf("kill in so many rounds (%d, unless -duration is given), and until all timers are armed", defaultRounds))
	flag.DurationVar(&o.duration, "duration", 0, "kill for so long; with -rounds: until either is over")
	flag.Uint64Var(&o.seed, "seed", rand.Uint64N(1_000_000), "of what is killed when, and of the load; how things interleave is the machine's")
	flag.IntVar(&o.rate, "rate", 200, "events a second")
	flag.IntVar(&o.timers, "timers", defaultTimers, "timers and deadlines to arm")
	flag.IntVar(&o.timerRate, "timer-rate", 100, "timers and deadlines a second")
	flag.DurationVar(&o.settle, "settle", 3*time.Minute, "how long the passes may take to repair what is left at the end")
	flag.DurationVar(&o.failOver, "fail-over", failOver, "how long what is due may wait while nothing is done to the timer-workers or the database; more than the contract's where the machine has much else to do")
	flag.BoolVar(&o.verbose, "v", false, "tell every round, and what the clients log")
	flag.BoolVar(&o.keep, "keep", false, "keep the logs also when nothing was found")
	flag.BoolVar(&o.race, "race", false, "build the workers with the race detector; they are several times slower then")
	flag.BoolVar(&o.embedded, "embedded", false, "kill the one process of rendezvous up, on its embedded store and NATS server")
	flag.BoolVar(&o.push, "push", false, "unseat push-workers, and look what their receivers got")
	flag.Parse()
	if flag.NArg() > 0 || o.rounds < 0 || o.duration < 0 || o.rate < 1 || o.timers < 0 || o.timerRate < 1 || o.push && o.embedded {
		flag.Usage()
		os.Exit(2)
	}
	if o.push {
		o.timers = 0
	}
	if o.rounds == 0 && o.duration == 0 {
		o.rounds = defaultRounds
	}
	ctx, done := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer done()
	exit(run(ctx, o))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run soaks in a folder that stays only when something was found.
func run(ctx context.Context, o options) error {
	folder, err := os.MkdirTemp("", "rendezvous-soak-")
	if err != nil {
		return err
	}
	fmt.Printf("soak: seed %d, %d events/s, %d timers at %d/s, logs in %s\n", o.seed, o.rate, o.timers, o.timerRate, folder)
	started := time.Now()
	p, err := startPlane(ctx, folder, o)
	if err != nil {
		return fmt.Errorf("the plane does not start: %w", err)
	}
	fmt.Printf("soak: the plane is up after %s\n", time.Since(started).Round(100*time.Millisecond))
	s := newSoak(o, p)
	err = errors.Join(s.run(ctx), p.end())
	if err != nil {
		return fmt.Errorf("%w\nlogs: %s", err, filepath.Join(folder, "*.log"))
	}
	if o.keep {
		return nil
	}
	return os.RemoveAll(folder)
}
