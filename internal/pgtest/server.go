package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rendezvous-events/rendezvous/clock"
)

const (
	startLimit = time.Minute // crash recovery included
	probeEvery = 20 * time.Millisecond
	retryAfter = 200 * time.Millisecond
)

// settings leaves every setting that durability rests on at its default. What stands here sizes a server for many small test databases:
// few checkpoints, room for the connections of several test packages, plans without the compile time of JIT.
const settings = `
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
shared_buffers = 128MB
max_wal_size = 4GB
checkpoint_timeout = 15min
jit = off
timezone = 'UTC'
`

// server is one life of the postmaster. A cluster that is killed and restarted has several.
type server struct {
	cmd    *exec.Cmd
	log    string
	exited chan struct{} // closed after the process was waited for
}

// launch starts postgres and answers when it takes connections. Whatever a killed predecessor still holds (shared memory, the port) is waited for; a port that
// somebody else took meanwhile is replaced while the cluster is new, that is, while nobody knows it.
func (c *Cluster) launch(ctx context.Context) error {
	ctx, cancel := clock.WithTimeout(ctx, clock.System, startLimit)
	defer cancel()
	for {
		srv, err := c.spawn()
		if err != nil {
			return err
		}
		err = c.awaitReady(ctx, srv)
		if err == nil {
			c.server, c.served = srv, true
			return nil
		}
		srv.kill()
		log := srv.readLog()
		if !passes(log) || ctx.Err() != nil {
			return fmt.Errorf("a test cluster does not start: %w; its log says:\n%s", err, log)
		}
		if !c.served {
			if c.port, err = freePort(); err != nil {
				return err
			}
		}
		if err := clock.Sleep(ctx, clock.System, retryAfter); err != nil {
			return err
		}
	}
}

// passes tells whether what stopped the server from starting ends by itself.
func passes(log string) bool {
	for _, sign := range []string{
		"Address already in use",
		"pre-existing shared memory block",
		"is another postmaster",
	} {
		if strings.Contains(log, sign) {
			return true
		}
	}
	return false
}

func (c *Cluster) spawn() (*server, error) {
	c.lives++
	log := filepath.Join(c.dir, "server-"+strconv.Itoa(c.lives)+".log")
	out, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("cannot open the log of a test cluster: %w", err)
	}
	defer out.Close()
	cmd := c.owner.own(exec.Command(c.programs.postgres, "-D", c.data(), "-p", strconv.Itoa(c.port)), c.dir)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", c.programs.postgres, err)
	}
	srv := &server{cmd: cmd, log: log, exited: make(chan struct{})}
	go func() {
		defer close(srv.exited)
		_ = cmd.Wait() // how it ended is in the log, and who ended it knows
	}()
	if err := c.watchdog.watch(cmd.Process.Pid); err != nil {
		srv.kill()
		return nil, err
	}
	return srv, nil
}

func (c *Cluster) awaitReady(ctx context.Context, srv *server) error {
	for {
		err := c.probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-srv.exited:
			return errors.New("the server ended while starting")
		default:
		}
		if clock.Sleep(ctx, clock.System, probeEvery) != nil {
			return fmt.Errorf("it takes no connection within %s: %w", startLimit, err)
		}
	}
}

func (c *Cluster) probe(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, c.url(adminDatabase))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// signal sends one signal and waits until the process is gone.
func (s *server) signal(sig os.Signal) error {
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot signal a test cluster: %w", err)
	}
	<-s.exited
	return nil
}

func (s *server) kill() {
	_ = s.signal(os.Kill) // the only refusal is that of a process which is gone
}

// readLog answers the end of what the server said.
func (s *server) readLog() string {
	log, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	if lines := bytes.SplitAfter(log, []byte("\n")); len(lines) > 30 {
		log = bytes.Join(lines[len(lines)-30:], nil)
	}
	return string(log)
}

// freePort picks below the range from which systems take the local ports of outgoing connections: while a killed server is down, no client
// anywhere on the machine can be given its port by accident.
func freePort() (int, error) {
	const low, high, tries = 15000, 30000, 100
	var err error
	for range tries {
		port := low + rand.IntN(high-low)
		var l net.Listener
		if l, err = net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d in %d tries: %w", low, high, tries, err)
}
