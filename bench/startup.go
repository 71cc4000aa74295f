package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/store/open"
)

// A child of this program is told by the environment what it serves.
const (
	storeVariable = "RENDEZVOUS_BENCH_STORE"
	natsVariable  = "RENDEZVOUS_BENCH_NATS"
	roleVariable  = "RENDEZVOUS_BENCH_ROLE" // pushWorker, or else what starts are measured of
)

const pushWorker = "push-worker"

// watched is how long a process is looked at after its start: its walk that reconciles timers begins meanwhile.
const watched = 20 * time.Second

// startUps starts a timer-worker (on the embedded store a whole plane) in a process of its own, on an empty store and on one with n armed timers and as many finished
// runs: how long until it is ready, until the one due timer has fired, and how much memory it takes.
func startUps(ctx context.Context, o options, n int) error {
	if o.store != "" && o.store != "sqlite:" {
		return errors.New("-startup fills stores of its own: give no -store")
	}
	dir, err := os.MkdirTemp("", "rendezvous-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := header(dir); err != nil {
		return err
	}
	var cluster *pgtest.Cluster
	if o.store == "" {
		if cluster, err = pgtest.Start(ctx); err != nil {
			return err
		}
		defer func() { _ = cluster.Stop() }()
	}
	server := 0
	if cluster != nil {
		server = cluster.PID()
	}
	for _, size := range []int{0, n} {
		name := fmt.Sprint("bench_", size)
		store := "sqlite:" + filepath.Join(dir, name)
		if cluster != nil {
			if err := cluster.CreateDatabase(ctx, name); err != nil {
				return err
			}
			store = cluster.URL(name)
		}
		start := time.Now()
		if err := fill(ctx, store, size); err != nil {
			return err
		}
		fmt.Printf("a store with %d armed timers and %d finished runs (written in %s), load average %s\n", size, size, time.Since(start).Round(time.Second), loadAverage())
		if err := startUp(ctx, store, filepath.Join(dir, "nats-"+name), server); err != nil {
			return err
		}
	}
	return nil
}

// startUp measures one start; server is the process id of the store's PostgreSQL, 0 for none.
func startUp(ctx context.Context, store, dir string, server int) error {
	cfg := messaging.DefaultConfig()
	cfg.Embedded.StoreDir, cfg.Embedded.Listen = dir, "127.0.0.1:0"
	broker, err := messaging.StartEmbedded(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { _ = broker.Shutdown(context.WithoutCancel(ctx)) }()
	conn, err := nats.Connect(broker.URL())
	if err != nil {
		return err
	}
	defer conn.Close()
	fired := make(chan time.Time, 100)
	if _, err := conn.Subscribe("rdv.bench.resume."+sleepers, func(*nats.Msg) { fired <- time.Now() }); err != nil {
		return err
	}
	if err := conn.Flush(); err != nil {
		return err
	}
	child, out, err := spawn(ctx, store, broker.URL(), "")
	if err != nil {
		return err
	}
	start := time.Now()
	if err := child.Start(); err != nil {
		return err
	}
	defer func() { _ = child.Process.Kill(); _ = child.Wait() }() // one that ended is gone
	_, took, err := ready(ctx, out, start)
	if err != nil {
		return err
	}
	var first time.Duration
	select {
	case at := <-fired:
		first = at.Sub(start)
	case <-time.After(time.Minute):
		return errors.New("the due timer did not fire within a minute")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	pid := child.Process.Pid
	resident, own, theirs := memory(pid, "VmRSS"), processTime(pid), serverTime(server)
	select {
	case <-time.After(watched):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	fmt.Printf("  ready after %s, due timer fired after %s, resident memory then %d MiB\n", took.Round(time.Millisecond), first.Round(time.Millisecond), resident)
	fmt.Printf("  in the next %s: resident memory at most %d MiB, processor time %s, PostgreSQL's %s\n", watched, memory(pid, "VmHWM"), processTime(pid)-own, serverTime(server)-theirs)
	if err := child.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return child.Wait()
}

// spawn is this program once more, as a process that serves.
func spawn(ctx context.Context, store, broker, role string) (*exec.Cmd, io.Reader, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), storeVariable+"="+store, natsVariable+"="+broker, roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	return cmd, out, err
}

// serve is the life of the child: it tells its admin address when it has started.
func serve(ctx context.Context, store, broker, role string) error {
	cfg := config(options{store: store}, "")
	cfg.Admin, cfg.Pprof, cfg.EmbeddedDir, cfg.EmbeddedListen = "127.0.0.1:0", true, "", ""
	cfg.NATS.URL, cfg.NATS.Replicas = broker, 1
	if open.Kind(store) == "postgres" {
		cfg.Ingest, cfg.Delivery, cfg.Sweep = nil, false, nil
	}
	if role == pushWorker {
		cfg.Timers = nil
	}
	return node.Run(ctx, cfg, func(n *node.Node) { fmt.Println(n.Admin) })
}

// ready waits until the child says that it is ready, and answers its admin address and how long that took.
func ready(ctx context.Context, out io.Reader, start time.Time) (admin string, took time.Duration, err error) {
	if admin, err = bufio.NewReader(out).ReadString('\n'); err != nil {
		return "", 0, fmt.Errorf("the process ended: %w", err)
	}
	admin = "http://" + strings.TrimSpace(admin)
	for {
		resp, err := http.Get(admin + "/readyz")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return admin, time.Since(start), nil
			}
		}
		if time.Since(start) > time.Minute || ctx.Err() != nil {
			return "", 0, errors.Join(errors.New("the process is not ready within a minute"), err, context.Cause(ctx))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// memory is a figure of a process's memory in MiB, 0 where the machine does not say.
func memory(pid int, figure string) int {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, figure+":"); ok {
			kib, _ := strconv.Atoi(strings.Fields(rest)[0])
			return kib >> 10
		}
	}
	return 0
}
