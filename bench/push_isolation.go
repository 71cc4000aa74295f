package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/rendezvous-events/rendezvous/internal/sink"
)

// badRuns have the registrations that get nowhere: ten each, at most.
const badRuns = 100

// rounds of each kind are interleaved, so that what else the machine does meets all of them.
const rounds = 5

// disturbance is what other registrations do while some are measured.
type disturbance struct {
	name  string
	share int // one in so many of the bench's registrations
	begin func(ctx context.Context) (urls []string, end func(), err error)
}

var disturbances = []disturbance{
	{"nothing", 0, func(context.Context) ([]string, func(), error) { return nil, func() {}, nil }},
	{"a receiver that hangs and one that answers 500", 5, hangAndFail},
	{"a dead host", 1, deadHost},
}

// pushIsolation measures from commits to 2xx at a steady rate while other registrations, of other receivers, get nowhere.
func pushIsolation(ctx context.Context, b *bench) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	p, err := b.apart(ctx, "push_isolation")
	if err != nil {
		return err
	}
	defer p.stop()
	l := newLags()
	to, closed, err := listen(receivers, func(w io.Writer, r sink.Request) error {
		err := sink.Accept(w, r)
		l.note(r.Body, time.Now())
		return err
	})
	if err != nil {
		return err
	}
	defer closed()
	w, err := p.follow(ctx, "good", to)
	if err != nil {
		return err
	}
	if err := p.started(ctx, "bad", queue, badRuns); err != nil {
		return err
	}
	if err := noted(ctx, p.setup, "bad", badRuns, 1); err != nil {
		return err
	}
	p99 := make([]samples, len(disturbances))
	for round := range rounds {
		for i, d := range disturbances {
			took, err := p.disturbed(ctx, d, round, func() (samples, error) {
				n := p.o.notes(rounds)
				if err := w.write(ctx, n, true); err != nil {
					return nil, err
				}
				return l.take(ctx, n)
			})
			if err != nil {
				return fmt.Errorf("beside %s: %w", d.name, err)
			}
			p99[i] = append(p99[i], took.at(99))
		}
	}
	for i, d := range disturbances {
		fmt.Printf("  commit → 2xx at %d/s beside %s (%d registrations): p99 %s, ratio %.2f\n", noteRate, d.name, d.hooks(b.o), p99[i].at(50),
			float64(p99[i].at(50))/float64(p99[0].at(50)))
	}
	return nil
}

// hooks are how many registrations it has; a short run has fewer, as they come and go by the API in every round.
func (d disturbance) hooks(o options) int {
	if d.share == 0 {
		return 0
	}
	most := 10 * badRuns
	if o.short {
		most = badRuns
	}
	return max(1, min(o.hooks, most)/d.share)
}

// disturbed measures while the disturbance's registrations are there; before it returns their requests are over.
func (b *bench) disturbed(ctx context.Context, d disturbance, round int, measure func() (samples, error)) (took samples, err error) {
	urls, end, err := d.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	hooks := d.hooks(b.o)
	all := func(verb string, more func(i int) string) error {
		return each(ctx, 32, hooks, func(ctx context.Context, i int) error {
			_, err := b.call(ctx, "bench", verb, fmt.Appendf(nil, `{"run_id":"bad-run-%d","id":"%d-%d-%d"%s}`, i%badRuns, hooks, round, i, more(i)))
			return err
		})
	}
	defer func() { err = errors.Join(err, all("push.delete", func(int) string { return "" })) }()
	if err := all("push.put", func(i int) string { return `,"events":["*"],"next_seq":2,"url":"` + urls[i%len(urls)] + `"` }); err != nil {
		return nil, err
	}
	return measure()
}

// hangAndFail are a receiver that takes requests and never answers, until the end, and one that answers 500.
func hangAndFail(context.Context) (urls []string, end func(), err error) {
	over := make(chan struct{})
	hangs, err := sink.Listen(func(io.Writer, sink.Request) error {
		<-over
		return errors.New("the round is over")
	})
	if err != nil {
		return nil, nil, err
	}
	fails, err := sink.Listen(func(w io.Writer, _ sink.Request) error {
		_, err := io.WriteString(w, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
		return err
	})
	end = sync.OnceFunc(func() {
		close(over)
		hangs.Close()
		if fails != nil {
			fails.Close()
		}
	})
	if err != nil {
		end()
		return nil, nil, err
	}
	return []string{hangs.URL(), fails.URL()}, end, nil
}

// deadHost is an address that neither takes connections nor refuses them: its queue of connections is full, and nobody accepts any.
func deadHost(ctx context.Context) (urls []string, end func(), err error) {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, err
	}
	var queued []net.Conn
	end = func() {
		_ = syscall.Close(socket)
		for _, conn := range queued {
			_ = conn.Close()
		}
	}
	address, err := unaccepting(socket)
	for err == nil {
		dialer := net.Dialer{Timeout: 100 * time.Millisecond}
		conn, refused := dialer.DialContext(ctx, "tcp", address)
		if refused != nil {
			return []string{"http://" + address + "/in"}, end, ctx.Err()
		}
		queued = append(queued, conn)
	}
	end()
	return nil, nil, err
}

// unaccepting has a socket listen on a free port of loopback, with the shortest queue.
func unaccepting(socket int) (address string, err error) {
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return "", err
	}
	if err := syscall.Listen(socket, 0); err != nil {
		return "", err
	}
	name, err := syscall.Getsockname(socket)
	if err != nil {
		return "", err
	}
	in, ok := name.(*syscall.SockaddrInet4)
	if !ok {
		return "", fmt.Errorf("the socket's address is a %T", name)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(in.Port)), nil
}
