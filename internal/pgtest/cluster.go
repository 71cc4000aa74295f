package pgtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"github.com/jackc/pgx/v5"
)

const (
	superuser     = "rdv"
	adminDatabase = "postgres"
)

// Cluster is a private PostgreSQL server. Its methods are safe for concurrent use.
type Cluster struct {
	programs programs
	owner    account
	dir      string
	password string
	watchdog *watchdog

	mu      sync.Mutex
	port    int
	served  bool // the port is known to somebody and stays
	lives   int
	server  *server // nil while none runs
	stopped bool
}

// Start makes a cluster and answers when it takes connections. It takes a second or two, and a minute where PostgreSQL has to be installed first. ctx bounds
// the start alone; [Cluster.Stop] ends what was started.
func Start(ctx context.Context) (*Cluster, error) {
	found, err := thisMachine().findOrInstall(ctx)
	if err != nil {
		return nil, err
	}
	owner, err := findAccount()
	if err != nil {
		return nil, err
	}
	dir, err := owner.tempFolder()
	if err != nil {
		return nil, err
	}
	guard, err := startWatchdog(owner, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	c := &Cluster{programs: found, owner: owner, dir: dir, password: rand.Text(), watchdog: guard}
	if err := c.bear(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) bear(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.initialize(ctx); err != nil {
		return err
	}
	port, err := freePort()
	if err != nil {
		return err
	}
	c.port = port
	return c.launch(ctx)
}

// initialize makes the data folder. Connections need the password, since other accounts of the machine reach 127.0.0.1 too; it travels in clear, which costs no
// test the thousands of hash rounds of SCRAM and leaves the machine never.
func (c *Cluster) initialize(ctx context.Context) error {
	secret := filepath.Join(c.dir, "password")
	if err := c.write(secret, c.password); err != nil {
		return err
	}
	initdb := exec.CommandContext(ctx, c.programs.initdb, "-D", c.data(), "-E", "UTF8", "--locale=C",
		"-U", superuser, "--auth=password", "--pwfile", secret)
	var out bytes.Buffer
	initdb.Stdout, initdb.Stderr = &out, &out
	if err := c.runWatched(c.owner.own(initdb, c.dir)); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out.Bytes())
	}
	conf, err := os.OpenFile(filepath.Join(c.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("cannot configure a test cluster: %w", err)
	}
	_, err = conf.WriteString(settings)
	if err := errors.Join(err, conf.Close()); err != nil {
		return fmt.Errorf("cannot configure a test cluster: %w", err)
	}
	return nil
}

// runWatched runs a program that must not outlive the test process either: it would write into a folder that is being removed.
func (c *Cluster) runWatched(cmd *exec.Cmd) error {
	if err := c.startWatched(cmd); err != nil {
		return err
	}
	return errors.Join(cmd.Wait(), c.watchdog.watch(0))
}

func (c *Cluster) startWatched(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := c.watchdog.watch(cmd.Process.Pid); err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	return nil
}

// write leaves a file that only the server's account reads.
func (c *Cluster) write(file, text string) error {
	err := os.WriteFile(file, []byte(text), 0o600)
	if err == nil && c.owner.credential != nil {
		err = os.Chown(file, int(c.owner.credential.Uid), int(c.owner.credential.Gid))
	}
	if err != nil {
		return fmt.Errorf("cannot write for a test cluster: %w", err)
	}
	return nil
}

func (c *Cluster) data() string { return filepath.Join(c.dir, "data") }

// URL is how the superuser reaches the named database; `postgres` is always there. It stays the same over [Cluster.Kill] and [Cluster.Restart].
func (c *Cluster) URL(database string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.url(database)
}

func (c *Cluster) url(database string) string {
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword(superuser, c.password),
		Host:     "127.0.0.1:" + strconv.Itoa(c.port),
		Path:     "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// CreateDatabase makes an empty database; one of that name is an error.
func (c *Cluster) CreateDatabase(ctx context.Context, name string) error {
	return execute(ctx, c.URL(adminDatabase), "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
}

// DropDatabase removes a database, and ends the connections to it that are still going.
func (c *Cluster) DropDatabase(ctx context.Context, name string) error {
	return execute(ctx, c.URL(adminDatabase), "DROP DATABASE "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)")
}

// PID is the process id of the running postmaster, 0 while none runs.
func (c *Cluster) PID() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server == nil {
		return 0
	}
	return c.server.cmd.Process.Pid
}

// Kill ends the postmaster by SIGKILL, as a crash would, and answers when that process is gone. Its backends notice by themselves and end without
// finishing what they did. No server running is no error.
func (c *Cluster) Kill() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.end(syscall.SIGKILL)
}

// Restart starts the server again after [Cluster.Kill], on the same port and data, and answers when it has recovered and takes connections. One that
// still runs is shut down first (fast: sessions are cut, what was committed is kept).
func (c *Cluster) Restart(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return errors.New("the test cluster was stopped and its data is gone: start another")
	}
	if err := c.end(syscall.SIGINT); err != nil {
		return err
	}
	return c.launch(ctx)
}

// Stop ends the server and removes all it stored. It is idempotent and answers when nothing is left.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil
	}
	c.stopped = true
	// The folder goes at once, so nothing is worth an orderly checkpoint: SIGQUIT. The watchdog removes the folder; the second removal takes
	// what its account may not, the folder itself where the temporary folder is root's.
	return errors.Join(c.end(syscall.SIGQUIT), c.watchdog.end(), os.RemoveAll(c.dir))
}

func (c *Cluster) end(sig os.Signal) error {
	if c.server == nil {
		return nil
	}
	if err := c.server.signal(sig); err != nil {
		return err
	}
	c.server = nil
	return c.watchdog.watch(0)
}
