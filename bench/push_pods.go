package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/sink"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/open"
)

// pod is a push-worker that is a process of its own.
type pod struct {
	cmd   *exec.Cmd
	admin string
}

func (b *bench) pod(ctx context.Context, store string) (*pod, error) {
	cmd, out, err := spawn(ctx, store, b.node.NATSURL, pushWorker)
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &pod{cmd: cmd}
	if p.admin, _, err = ready(ctx, out, time.Now()); err != nil {
		p.kill()
	}
	return p, err
}

// kill ends it as a crash does; one that ended already is gone.
func (p *pod) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// drain has it go down in order.
func (p *pod) drain() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return p.cmd.Wait()
}

// flying, goroutines and descriptors are how many it has; 0 where that cannot be told.
func (p *pod) flying() int { return p.told("/metrics", "rendezvous_push_inflight") }

func (p *pod) goroutines() int {
	return p.told("/debug/pprof/goroutine?debug=1", "goroutine profile: total")
}

// told is the number at the end of the first line on a page of its admin address that begins so.
func (p *pod) told(page, begin string) (n int) {
	resp, err := http.Get(p.admin + page)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, begin) {
			n, _ = strconv.Atoi(line[strings.LastIndexByte(line, ' ')+1:])
			return n
		}
	}
	return 0
}

func (p *pod) descriptors() int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	return len(entries)
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// alone is an empty store of a scenario's own, and its handle that waits for no sync.
func (b *bench) alone(ctx context.Context, name string) (at string, s store.Store, err error) {
	if at, err = b.o.database(ctx, name); err != nil {
		return "", nil, err
	}
	u, err := url.Parse(at)
	if err != nil {
		return "", nil, err
	}
	query := u.Query()
	query.Set("synchronous_commit", "off")
	u.RawQuery = query.Encode()
	s, err = open.Open(ctx, u.String(), open.Options{Clock: clock.System, Shards: rendezvous.DefaultShards, Migrate: true})
	return at, s, err
}

// pushMemory measures a push-worker with all its places taken, by receivers that are slow or hostile, of small bodies and large ones.
func pushMemory(ctx context.Context, b *bench) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	at, s, err := b.alone(ctx, "push_memory")
	if err != nil {
		return err
	}
	defer s.Close()
	var posts atomic.Int64
	n, closing := b.o.hooks, make(chan struct{})
	to := make([]*sink.Sink, n)
	defer func() {
		close(closing)
		for _, r := range to {
			if r != nil {
				r.Close()
			}
		}
	}()
	for i := range to {
		if to[i], err = sink.Listen(func(w io.Writer, r sink.Request) error {
			posts.Add(1)
			return hostile(i, w, closing)
		}); err != nil {
			return err
		}
	}
	if err := sizes(ctx, s, n); err != nil {
		return err
	}
	if err := hooked(ctx, s, "memory", n, to); err != nil {
		return err
	}
	p, err := b.pod(ctx, at)
	if err != nil {
		return err
	}
	defer p.kill()
	began := time.Now()
	half := time.Duration(b.o.seconds) * time.Second / 2
	if b.o.short {
		half /= 2
	}
	if err := pause(ctx, half); err != nil {
		return err
	}
	flying, goroutines, descriptors, before := p.flying(), p.goroutines(), p.descriptors(), posts.Load()
	if err := pause(ctx, half); err != nil {
		return err
	}
	pid := p.cmd.Process.Pid
	fmt.Printf("  resident memory of a push-worker, %d slow receivers, %d in flight: at most %d MiB (of the budget of 256), now %d MiB, load average %s\n",
		n, max(flying, p.flying()), memory(pid, "VmHWM"), memory(pid, "VmRSS"), loadAverage())
	fmt.Printf("  %d attempts in %s: goroutines %d, descriptors %d; %d attempts before: %d and %d\n", posts.Load(), time.Since(began).Round(time.Second),
		p.goroutines(), p.descriptors(), posts.Load()-before, goroutines, descriptors)
	return nil
}

// hostile answers as one of ten kinds of receivers does, five of which are only slow.
func hostile(kind int, w io.Writer, closing <-chan struct{}) error {
	select {
	case <-time.After(200 * time.Millisecond):
	case <-closing:
		return errors.New("closing")
	}
	var answer string
	switch kind % 10 {
	case 5: // a long body, of which little is read
		answer = "HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n\r\n" + strings.Repeat("x", 1<<20)
	case 6: // one that never ends
		answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
	case 7: // a header section without end
		answer = "HTTP/1.1 200 OK\r\n" + strings.Repeat("X-Header: "+strings.Repeat("x", 1000)+"\r\n", 100)
	case 8: // a failure that tells a lot
		answer = "HTTP/1.1 500 No\r\nContent-Length: 16384\r\n\r\n" + strings.Repeat("x", 16<<10)
	case 9: // no answer
		<-closing
		return errors.New("closing")
	default:
		return sink.Accept(w, sink.Request{})
	}
	_, err := io.WriteString(w, answer)
	return err
}

// sizes starts runs with records of many sizes: of most 1 KiB, of one in ten 64 KiB, and of one in fifty 1 MiB at most.
func sizes(ctx context.Context, s store.Store, n int) error {
	if err := startedIn(ctx, s, "memory", queue, n); err != nil {
		return err
	}
	t, err := s.Tenant("bench")
	if err != nil {
		return err
	}
	return each(ctx, 8, n, func(ctx context.Context, i int) error {
		run := fmt.Sprint("memory-run-", i)
		size, records := aKiB, make([]rendezvous.Record, 100)
		switch {
		case i%50 == 1:
			size, records = rendezvous.MaxPayload-1024, records[:4]
		case i%10 == 2:
			size, records = 64<<10, records[:20]
		}
		for k := range records {
			records[k] = note(run, size)
		}
		_, err := t.Append(ctx, store.Append{RunID: run, ExpectedSeq: 1, BatchID: "notes", Records: records}, time.Time{})
		return err
	})
}

// copies counts how often messages came.
type copies struct {
	mu    sync.Mutex
	times map[string]int // by id
}

func (c *copies) answer(w io.Writer, r sink.Request) error {
	_, rest, _ := bytes.Cut(r.Body, []byte(`"id":"`))
	id, _, _ := bytes.Cut(rest, []byte(`"`))
	c.mu.Lock()
	c.times[string(id)]++
	c.mu.Unlock()
	return sink.Accept(w, r)
}

// await waits until n different messages have come.
func (c *copies) await(ctx context.Context, n int) error {
	for {
		c.mu.Lock()
		got := len(c.times)
		c.mu.Unlock()
		if got >= n {
			return nil
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return fmt.Errorf("%d of %d messages came: %w", got, n, err)
		}
	}
}

// repeats are how many came again, and how many of one registration at most.
func (c *copies) repeats() (all, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := map[string]int{}
	for id, n := range c.times {
		run, _, _ := strings.Cut(id, "/")
		of[run] += n - 1
		all, most = all+n-1, max(most, of[run])
	}
	return all, most
}

// pushRestarts measures what is sent twice: while push-workers that push a backlog are drained one after the other, and when one of them is killed, whose leases have to
// run out first.
func pushRestarts(ctx context.Context, b *bench) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	at, s, err := b.alone(ctx, "push_restarts")
	if err != nil {
		return err
	}
	defer s.Close()
	c := &copies{times: map[string]int{}}
	to, closed, err := listen(receivers, c.answer)
	if err != nil {
		return err
	}
	defer closed()
	each := max(4, b.o.pushed/4/b.o.hooks)
	all := each * b.o.hooks
	if err := startedIn(ctx, s, "push", queue, b.o.hooks); err != nil {
		return err
	}
	if err := noted(ctx, s, "push", b.o.hooks, each); err != nil {
		return err
	}
	if err := hooked(ctx, s, "push", b.o.hooks, to); err != nil {
		return err
	}
	old, err := b.pod(ctx, at)
	if err != nil {
		return err
	}
	defer old.kill()
	if err := c.await(ctx, all/4); err != nil {
		return err
	}
	next, err := b.pod(ctx, at)
	if err != nil {
		return err
	}
	defer next.kill()
	if err := old.drain(); err != nil {
		return err
	}
	if b.o.short {
		err = c.await(ctx, all)
	} else {
		err = c.await(ctx, all/2)
	}
	repeats, _ := c.repeats()
	fmt.Printf("  a push-worker drained in the middle of %d messages: repeats %d\n", all, repeats)
	if err != nil || b.o.short {
		return err
	}
	next.kill()
	killed := time.Now()
	last, err := b.pod(ctx, at)
	if err != nil {
		return err
	}
	defer last.kill()
	if err := c.await(ctx, all); err != nil {
		return err
	}
	again, most := c.repeats()
	fmt.Printf("  one killed: repeats %d, of one registration at most %d; all was sent %s later, of which 45 s are its leases\n", again-repeats, most, time.Since(killed).Round(time.Second))
	return nil
}
