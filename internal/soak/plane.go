package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
	"github.com/rendezvous-events/rendezvous/store/open"
)

const (
	workers  = 2 // of each kind, but
	firing   = 4 // timer-workers
	skewMost = 3 * time.Second
	database = "soak"
	probing  = 2 * time.Second // one look at a health page
)

// skewVariable is clock.SkewVariable, which only the pods know: this program's clock is right.
const skewVariable = "RENDEZVOUS_CLOCK_SKEW"

// The plane's periods, shortened so that minutes show what otherwise takes an hour.
var shortened = []string{"--nats-ack-wait=2s", "--nats-replicas=1", "--drain=20s", "--log=info"}

// plane is everything that can be killed.
type plane struct {
	folder   string // logs, programs, the broker's files
	embedded bool   // one process is the plane, its store too
	push     bool   // it is there for its push-workers
	guard    *guard
	cluster  *pgtest.Cluster
	broker   *process
	workers  []*process // all but
	firers   []*process // the timer-workers
	pushers  []*process // and the push-workers, which are there in the push shape alone
	doors    []string   // addresses of the request door
	admins   map[string]string
	natsURL  string
	nats     *nats.Conn
	js       jetstream.JetStream
	http     *http.Client
	counters *counters

	copies int // of the embedded store, to be judged

	mu   sync.Mutex
	died []error
}

// startPlane brings everything up and answers when all of it works.
func startPlane(ctx context.Context, folder string, o options) (p *plane, err error) {
	p = &plane{folder: folder, embedded: o.embedded, push: o.push, admins: map[string]string{}, http: &http.Client{Timeout: probing}, counters: newCounters()}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.end())
		}
	}()
	if err := p.build(ctx, o.race); err != nil {
		return p, err
	}
	if p.guard, err = startGuard(); err != nil {
		return p, err
	}
	if err := p.startStore(ctx); err != nil {
		return p, err
	}
	if err := p.design(); err != nil {
		return p, err
	}
	for _, w := range p.processes() {
		if err := w.Start(); err != nil {
			return p, err
		}
	}
	if err := p.connect(); err != nil {
		return p, err
	}
	return p, p.up(ctx)
}

// connect makes the connection that the load and the chaos share. What the library has to say about a broker that is killed is no news.
func (p *plane) connect() (err error) {
	if p.nats, err = nats.Connect(p.natsURL, nats.Name("soak"), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true),
		nats.ReconnectWait(50*time.Millisecond), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})); err != nil {
		return err
	}
	p.js, err = jetstream.New(p.nats)
	return err
}

// build compiles the real programs, once.
func (p *plane) build(ctx context.Context, race bool) error {
	const module = "github.com/rendezvous-events/rendezvous/cmd/"
	args := []string{"build", "-o", p.folder + string(filepath.Separator)}
	if race {
		args = append(args, "-race")
	}
	programs := []string{module + "ingest", module + "delivery-worker", module + "sweeper"}
	switch {
	case p.embedded:
		programs = []string{module + "rendezvous"}
	case p.push:
		programs = append(programs, module+"push-worker")
	default:
		programs = append(programs, module+"timer-worker")
	}
	if !p.embedded {
		args = append(args, "-tags=skewed") // see clock.SkewVariable
	}
	cmd := exec.CommandContext(ctx, "go", append(args, programs...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the workers: %w\n%s", err, out)
	}
	return nil
}

func (p *plane) startStore(ctx context.Context) (err error) {
	if p.cluster, err = pgtest.Start(ctx); err != nil || p.embedded { // then it only holds what is judged
		return err
	}
	if err := p.cluster.CreateDatabase(ctx, database); err != nil {
		return err
	}
	s, err := open.Open(ctx, p.cluster.URL(database), open.Options{Clock: clock.System, Migrate: true})
	if err != nil {
		return err
	}
	return s.Close()
}

// design says what processes there are and how they reach each other.
func (p *plane) design() error {
	taken := map[int]bool{}
	listen, err := address(taken)
	if err != nil {
		return err
	}
	p.natsURL = "nats://" + listen
	if p.embedded {
		return p.designOne(taken, listen)
	}
	p.broker = p.process("broker", func() (*exec.Cmd, error) {
		return self(roleBroker, folderVariable+"="+p.brokerFolder(), listenVariable+"="+listen)
	})
	p.broker.ready = func(context.Context) error {
		nc, err := nats.Connect(p.natsURL, nats.Name("soak probe"), nats.Timeout(probing))
		if err == nil {
			nc.Close()
		}
		return err
	}
	addresses := make([]string, 4*workers+firing)
	for i := range addresses {
		if addresses[i], err = address(taken); err != nil {
			return err
		}
	}
	p.doors = addresses[:workers]
	admins := addresses[workers:]
	worker := func(program string, n int, flags ...string) *process {
		w := p.worker(program, n, admins[0], flags...)
		admins = admins[1:]
		return w
	}
	var targets []string // of whoever takes registrations or delivers them
	if p.push {
		targets = []string{"--push-dev-loopback", "--push-caller-hosts=" + strings.Join(granted(), ",")}
	}
	for i, door := range p.doors {
		p.workers = append(p.workers, worker("ingest", i, append(targets, "--http="+door)...), worker("delivery-worker", i),
			worker("sweeper", i, "--sweep-tick=500ms", "--sweep-woken=1s"))
	}
	if p.push {
		for i := range workers {
			p.pushers = append(p.pushers, worker("push-worker", i, append(targets, "--push-lease="+pushLease.String(), "--push-poll=1s")...))
		}
		return nil
	}
	for i := range firing {
		p.firers = append(p.firers, worker("timer-worker", i))
	}
	return nil
}

// designOne is the plane of one process: rendezvous up.
func (p *plane) designOne(taken map[int]bool, listen string) error {
	api, err1 := address(taken)
	admin, err2 := address(taken)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	args := append([]string{
		"up", "--data=" + p.dataFolder(), "--nats-listen=" + listen, "--http=" + api, "--admin=" + admin, "--sweep-tick=500ms", "--sweep-woken=1s",
	}, shortened...)
	w := p.process("up", func() (*exec.Cmd, error) {
		cmd := exec.Command(filepath.Join(p.folder, "rendezvous"), args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return cmd, nil
	})
	w.ready = func(ctx context.Context) error { return p.page(ctx, admin, "/readyz", io.Discard) }
	p.workers, p.doors, p.admins[w.name] = []*process{w}, []string{api}, admin
	return nil
}

func (p *plane) dataFolder() string { return filepath.Join(p.folder, "data") }

// pods are its workers.
func (p *plane) pods() []*process { return slices.Concat(p.workers, p.firers, p.pushers) }

// processes are all of the plane, the broker first where it is one of its own.
func (p *plane) processes() []*process {
	all := p.pods()
	if p.broker != nil {
		all = slices.Insert(all, 0, p.broker)
	}
	return all
}

// worker is a pod of a program. In each of its lives its clock is off by another skew.
func (p *plane) worker(program string, n int, admin string, flags ...string) *process {
	name := fmt.Sprintf("%s-%d", program, n)
	args := append(append([]string{"--nats=" + p.natsURL, "--admin=" + admin}, shortened...), flags...)
	p.admins[name] = admin
	w := p.process(name, func() (*exec.Cmd, error) {
		cmd := exec.Command(filepath.Join(p.folder, program), args...)
		// By the environment, because a command line shows the password to the whole machine.
		cmd.Env = append(os.Environ(), "RENDEZVOUS_STORE="+p.cluster.URL(database), skewVariable+"="+(rand.N(2*skewMost)-skewMost).String())
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		return cmd, nil
	})
	w.ready = func(ctx context.Context) error { return p.page(ctx, admin, "/readyz", io.Discard) }
	return w
}

func (p *plane) process(name string, command func() (*exec.Cmd, error)) *process {
	return &process{name: name, log: filepath.Join(p.folder, name+".log"), command: command, guard: p.guard, died: p.unasked}
}

// brokerFolder is where streams are kept.
func (p *plane) brokerFolder() string {
	if p.embedded {
		return filepath.Join(p.dataFolder(), "nats")
	}
	return filepath.Join(p.folder, "jetstream")
}

// page reads a page of an admin address.
func (p *plane) page(ctx context.Context, admin, path string, into io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+path, nil)
	if err != nil {
		return err
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
		return fmt.Errorf("%s answers %s: %s", path, resp.Status, why)
	}
	_, err = io.Copy(into, resp.Body)
	return err
}

// unasked notes that a process ended by itself, which none may, and starts it again.
func (p *plane) unasked(name string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.died = append(p.died, fmt.Errorf("%s ended by itself: %v (see %s.log)", name, err, name))
	for _, w := range p.processes() {
		if w.name == name && len(p.died) < 20 {
			if err := w.Start(); err != nil {
				p.died = append(p.died, err)
			}
		}
	}
}

// up answers when everything works.
func (p *plane) up(ctx context.Context) error {
	for _, w := range p.processes() {
		if err := w.Up(ctx); err != nil {
			return err
		}
	}
	return nil
}

// stopWorkers ends the workers as an operator would.
func (p *plane) stopWorkers() error {
	workers := p.pods()
	errs := make([]error, len(workers))
	var all sync.WaitGroup
	for i, w := range workers {
		all.Go(func() { errs[i] = w.Stop() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// end takes down what is left; the errors tell what did not go well.
func (p *plane) end() error {
	var errs []error
	if p.nats != nil {
		p.nats.Close()
	}
	for _, w := range p.pods() {
		errs = append(errs, w.Kill())
	}
	if p.broker != nil {
		errs = append(errs, p.broker.Stop())
	}
	if p.cluster != nil {
		errs = append(errs, p.cluster.Stop())
	}
	if p.guard != nil {
		errs = append(errs, p.guard.end())
	}
	return errors.Join(errs...)
}
