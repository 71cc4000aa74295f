// Command bench measures the whole pipeline on this machine: request door → store → match → answered, waits first and events first, the time from an event's
// arrival to its resume notice at a steady rate, and timers: single ones, and very many that are due at one instant beside such events. It starts a PostgreSQL of
// its own (default fsync), or takes the embedded store, and an embedded NATS. With -startup it measures starts of a process on a store full of timers instead.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"

	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
	"github.com/rendezvous-events/rendezvous/store/open"
)

// options are the bench's settings.
type options struct {
	events  int
	callers int
	rate    int
	seconds int
	timers  int
	beside  int
	// The burst's timers are deadlines of waits.
	deadlines bool
	store     string
	verbose   bool
	profile   string
	only      string
	server    int // process id of the PostgreSQL of its own
}

func main() {
	o := options{}
	short := flag.Bool("short", false, "a tenth of the events, a twentieth of the timers")
	flag.IntVar(&o.events, "events", 100_000, "events of 256 bytes, one run and one wait each")
	flag.IntVar(&o.callers, "callers", 32, "concurrent callers of RegisterWait, events first")
	flag.IntVar(&o.rate, "rate", 1000, "events a second of the latency scenario")
	flag.IntVar(&o.seconds, "seconds", 20, "length of the latency scenario")
	flag.IntVar(&o.timers, "timers", 100_000, "timers due at one instant, of one run each")
	flag.IntVar(&o.beside, "beside", 200, "events a second that are delivered while they fire")
	flag.BoolVar(&o.deadlines, "deadlines", false, "these timers are deadlines of waits, not sleeps of runs")
	flag.StringVar(&o.store, "store", "", "a store URL instead of a PostgreSQL of its own (its tables are used as they are)")
	flag.BoolVar(&o.verbose, "v", false, "log what the plane logs")
	flag.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of this process to a file")
	flag.StringVar(&o.only, "only", "", "run one scenario: waits first, one at a time, events first, latency, timers or bare loop")
	startup := flag.Int("startup", -1, "measure instead how a timer-worker starts beside so many armed timers and as many finished runs")
	embedded := flag.Bool("embedded", false, "measure the embedded store, in a folder of its own")
	flag.Parse()
	if *short {
		o.events, o.timers, o.seconds = o.events/10, o.timers/20, o.seconds/4
	}
	if *embedded {
		o.store = "sqlite:"
	}
	ctx, done := signal.NotifyContext(context.Background(), os.Interrupt)
	defer done()
	var err error
	if store := os.Getenv(storeVariable); store != "" {
		err = serve(ctx, store, os.Getenv(natsVariable))
	} else if *startup >= 0 {
		err = startUps(ctx, o, *startup)
	} else {
		err = run(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	if o.store == "sqlite:" {
		dir, err := os.MkdirTemp("", "rendezvous-bench-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		o.store = "sqlite:" + dir
	} else if o.store == "" {
		cluster, err := pgtest.Start(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = cluster.Stop() }()
		if err := cluster.CreateDatabase(ctx, "bench"); err != nil {
			return err
		}
		o.store, o.server = cluster.URL("bench"), cluster.PID()
	}
	dir, err := os.MkdirTemp("", "rendezvous-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := header(dir); err != nil {
		return err
	}
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	b, err := start(ctx, o, dir)
	if err != nil {
		return err
	}
	defer b.stop()
	for _, scenario := range []struct {
		name string
		run  func(ctx context.Context, b *bench) error
	}{{"waits first", waitsFirst}, {"one at a time", oneAtATime}, {"events first", eventsFirst}, {"latency", latency}, {"timers", timers}, {"bare loop", bareLoop}} {
		if o.only != "" && o.only != scenario.name || scenario.name == "bare loop" && open.Kind(o.store) != "sqlite" {
			continue
		}
		fmt.Printf("%s\n", scenario.name)
		if err := scenario.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", scenario.name, err)
		}
		fmt.Printf("  resident memory of the process %d MiB\n", residentMiB())
	}
	return nil
}

// header says what the figures stand beside.
func header(dir string) error {
	sync, err := fsyncLatency(dir)
	if err == nil {
		fmt.Printf("%s, %d cores, load average %s, fsync of 8 KiB p50 %s p99 %s\n", runtime.Version(), runtime.NumCPU(), loadAverage(), sync.at(50), sync.at(99))
	}
	return err
}

// config is the plane under load.
func config(o options, dir string) node.Config {
	cfg := node.Private("bench", dir)
	cfg.Store = o.store
	if o.verbose {
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return cfg
}

// loadAverage is what the machine had to do in the last minute, beside which every figure stands; "unknown" where it does not say.
func loadAverage() string {
	raw, err := os.ReadFile("/proc/loadavg")
	if fields := strings.Fields(string(raw)); err == nil && len(fields) > 0 {
		return fields[0]
	}
	return "unknown"
}

// residentMiB is this process's resident memory, 0 where the machine does not say.
func residentMiB() int {
	raw, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(raw))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.Atoi(fields[1])
	return pages * os.Getpagesize() >> 20
}
