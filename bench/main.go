// Command bench measures the whole pipeline on this machine: request door → store → match → answered, waits first and events first, the time from an event's
// arrival to its resume notice at a steady rate, and timers: single ones, and very many that are due at one instant beside such events. It starts a PostgreSQL of
// its own (default fsync), or takes the embedded store, and an embedded NATS. With -startup it measures starts of a process on a store full of timers instead.
//
// The scenarios that begin with push measure the goals of docs/spec/push.md section 16, each on a plane and a store of its own, with the receivers on the same
// processors; -only push runs them all.
//
//	push throughput  accepted POSTs/s of signed bodies of 1 KiB from a backlog, to one receiver and to many; statements of the store and repeats
//	push isolation   commit to 2xx while others hang, fail or are dead: medians of interleaved rounds
//	push latency     commit to the start of the request, by notices and by the poll alone
//	push memory      a push-worker in a process of its own, whose receivers are slow or hostile (PostgreSQL only)
//	push restarts    what is sent twice when such workers are drained, and when one is killed (PostgreSQL only)
//	push claims      claims beside a million idle and a hundred thousand parked registrations
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
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
	pushed  int
	hooks   int
	idle    int
	short   bool
	// The burst's timers are deadlines of waits.
	deadlines bool
	store     string
	verbose   bool
	profile   string
	only      string
	server    int // process id of the PostgreSQL of its own
	dir       string
	// database makes a further store for a scenario that is to be alone in it; nil where there is none to be had.
	database func(ctx context.Context, name string) (url string, err error)
}

func main() {
	o := options{}
	flag.BoolVar(&o.short, "short", false, "a tenth of the events, a twentieth of the timers, a fortieth of the messages that are pushed")
	flag.IntVar(&o.events, "events", 100_000, "events of 256 bytes, one run and one wait each")
	flag.IntVar(&o.callers, "callers", 32, "concurrent callers of RegisterWait, events first")
	flag.IntVar(&o.rate, "rate", 1000, "events a second of the latency scenario")
	flag.IntVar(&o.seconds, "seconds", 20, "length of the latency scenario")
	flag.IntVar(&o.timers, "timers", 100_000, "timers due at one instant, of one run each")
	flag.IntVar(&o.beside, "beside", 200, "events a second that are delivered while they fire")
	flag.BoolVar(&o.deadlines, "deadlines", false, "these timers are deadlines of waits, not sleeps of runs")
	flag.IntVar(&o.pushed, "pushed", 200_000, "messages of the push scenarios, of 1 KiB each")
	flag.IntVar(&o.hooks, "hooks", 1000, "registrations that send them")
	flag.IntVar(&o.idle, "idle", 1_000_000, "idle registrations beside which claims are measured, and a tenth as many parked ones")
	flag.StringVar(&o.store, "store", "", "a store URL instead of a PostgreSQL of its own (its tables are used as they are)")
	flag.BoolVar(&o.verbose, "v", false, "log what the plane logs")
	flag.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of this process to a file")
	flag.StringVar(&o.only, "only", "", "run the scenarios that begin with this: waits first, one at a time, events first, latency, timers, bare loop, push")
	startup := flag.Int("startup", -1, "measure instead how a timer-worker starts beside so many armed timers and as many finished runs")
	embedded := flag.Bool("embedded", false, "measure the embedded store, in a folder of its own")
	flag.Parse()
	if o.short {
		o.events, o.timers, o.seconds = o.events/10, o.timers/20, o.seconds/4
		o.pushed, o.hooks, o.idle = o.pushed/40, o.hooks/5, o.idle/100
	}
	if *embedded {
		o.store = "sqlite:"
	}
	ctx, done := signal.NotifyContext(context.Background(), os.Interrupt)
	defer done()
	var err error
	if store := os.Getenv(storeVariable); store != "" {
		err = serve(ctx, store, os.Getenv(natsVariable), os.Getenv(roleVariable))
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
	var err error
	if o.dir, err = os.MkdirTemp("", "rendezvous-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(o.dir)
	closed, err := o.openStores(ctx)
	if err != nil {
		return err
	}
	defer closed()
	if err := header(o.dir); err != nil {
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
	b, err := start(ctx, o, filepath.Join(o.dir, "nats"))
	if err != nil {
		return err
	}
	defer b.stop()
	for _, s := range scenarios {
		if !strings.HasPrefix(s.name, o.only) || !s.fits(o) {
			continue
		}
		fmt.Printf("%s\n", s.name)
		if err := s.run(ctx, b); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Printf("  resident memory of the process %d MiB\n", residentMiB())
	}
	return nil
}

// openStores finds the store, and where further ones are made.
func (o *options) openStores(ctx context.Context) (closed func(), err error) {
	closed = func() {}
	switch o.store {
	case "sqlite:":
		o.database = func(_ context.Context, name string) (string, error) {
			return "sqlite:" + filepath.Join(o.dir, name), nil
		}
	case "":
		cluster, err := pgtest.Start(ctx)
		if err != nil {
			return closed, err
		}
		closed, o.server = func() { _ = cluster.Stop() }, cluster.PID()
		o.database = func(ctx context.Context, name string) (string, error) {
			return cluster.URL(name), cluster.CreateDatabase(ctx, name)
		}
	default:
		return closed, nil
	}
	if o.store, err = o.database(ctx, "bench"); err != nil {
		closed()
	}
	return closed, err
}

// scenario is one thing that is measured.
type scenario struct {
	name string
	on   string // the one kind of store it is for; "": any
	run  func(ctx context.Context, b *bench) error
}

var scenarios = []scenario{
	{"waits first", "", waitsFirst},
	{"one at a time", "", oneAtATime},
	{"events first", "", eventsFirst},
	{"latency", "", latency},
	{"timers", "", timers},
	{"bare loop", "sqlite", bareLoop},
	{"push throughput", "", pushThroughput},
	{"push isolation", "", pushIsolation},
	{"push latency", "", pushLatency},
	{"push memory", "postgres", pushMemory},
	{"push restarts", "postgres", pushRestarts},
	{"push claims", "", pushClaims},
}

// fits tells whether the scenario can be measured on the store: those of push need stores of their own.
func (s scenario) fits(o options) bool {
	return (s.on == "" || s.on == open.Kind(o.store)) && (o.database != nil || !strings.HasPrefix(s.name, "push"))
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
	cfg.Targets = node.Targets{CallerHosts: []string{"127.0.0.1"}, DevLoopback: true}
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
