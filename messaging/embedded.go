package messaging

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	rendezvous "github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/internal/folderlock"
)

// startLooks times startLook bound how long the embedded server may take to open its stores.
const (
	startLook  = 100 * time.Millisecond
	startLooks = 1200
)

// Embedded is a whole NATS server with JetStream inside the process: development, tests, the edge. Streams live in StoreDir and survive
// restarts; with synchronous storage (the default) what it acknowledged survives kill -9. Safe for concurrent use.
type Embedded struct {
	cfg EmbeddedConfig
	log *slog.Logger

	mu     sync.Mutex
	server *server.Server   // nil while down
	lock   *folderlock.Lock // of StoreDir, while the server is up
}

// StartEmbedded opens the store and starts the server. A directory that cannot be used or a port that is taken is an error here.
func StartEmbedded(cfg Config, log *slog.Logger) (*Embedded, error) {
	if err := cfg.Embedded.validate(cfg); err != nil {
		return nil, err
	}
	e := &Embedded{cfg: cfg.Embedded, log: log}
	return e, e.Start()
}

// Start starts the server again after Shutdown; nothing when it runs. Clients that were connected in the process reconnect by themselves.
func (e *Embedded) Start() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server != nil {
		return nil
	}
	if err := os.MkdirAll(e.cfg.StoreDir, 0o700); err != nil {
		return rendezvous.InvalidField("data", "cannot be created; name a directory this user may write").Because(err)
	}
	lock, err := takeFolder(e.cfg.StoreDir)
	if err != nil {
		return err
	}
	s, err := e.newServer()
	if err != nil {
		return errors.Join(err, lock.Release())
	}
	e.server, e.lock = s, lock
	return nil
}

// lockFile is in the folder of the streams.
const lockFile = "lock"

// takeFolder keeps other servers out: two of them on the same files spoil the streams, and JetStream does not look.
func takeFolder(dir string) (*folderlock.Lock, error) {
	lock, owner, err := folderlock.Take(filepath.Join(dir, lockFile))
	switch {
	case err != nil:
		return nil, rendezvous.InvalidField("data", "its folder of NATS cannot be locked; name a directory this user may write").Because(err)
	case lock == nil:
		return nil, rendezvous.InvalidField("data", "its folder of NATS is in use by another process (%s); give another --data", owner)
	}
	return lock, nil
}

func (e *Embedded) newServer() (*server.Server, error) {
	opts, err := e.options()
	if err != nil {
		return nil, err
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, rendezvous.InvalidField("nats", "the embedded server refuses its options").Because(err)
	}
	bridge := &logBridge{log: e.log}
	s.SetLoggerV2(bridge, false, false, false)
	s.Start()
	if bridge.ready(s) {
		return s, nil
	}
	s.Shutdown()
	s.WaitForShutdown()
	return nil, rendezvous.Errorf(rendezvous.CodeUnavailable,
		"the embedded NATS server did not start; see that the folder of --data is writable and the address of --nats-listen free").
		Because(fmt.Errorf("server: %s", bridge.lastFatal()))
}

func (e *Embedded) options() (*server.Options, error) {
	host, port, err := e.cfg.hostPort()
	if err != nil {
		return nil, err
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return &server.Options{
		ServerName:             "rendezvous",
		Host:                   host,
		Port:                   port,
		DontListen:             e.cfg.Listen == "",
		NoSigs:                 true, // signals are the process's
		NoLog:                  false,
		JetStream:              true,
		StoreDir:               e.cfg.StoreDir,
		SyncAlways:             !e.cfg.NoSync,
		JetStreamMaxStore:      e.cfg.MaxStore,
		JetStreamMaxMemory:     64 << 20,
		MaxPayload:             EmbeddedMaxPayload,
		DisableShortFirstPing:  true,
		DisableJetStreamBanner: true,
	}, nil
}

// InProcessConn makes a connection without a socket. It fails while the server is down: nats.go then tries again.
func (e *Embedded) InProcessConn() (net.Conn, error) {
	s := e.running()
	if s == nil {
		return nil, rendezvous.Errorf(rendezvous.CodeUnavailable, "the embedded NATS server is down")
	}
	return s.InProcessConn()
}

// URL is where other processes on this machine connect; empty without a listener or while down.
func (e *Embedded) URL() string {
	s := e.running()
	if s == nil || e.cfg.Listen == "" {
		return ""
	}
	return s.ClientURL()
}

// Health is nil when every stream and consumer works. A full disk shows here first: publishers see only timeouts.
func (e *Embedded) Health() error {
	s := e.running()
	if s == nil {
		return rendezvous.Errorf(rendezvous.CodeUnavailable, "the embedded NATS server is down")
	}
	var h *server.HealthStatus
	for range healthLooks {
		if h = s.Healthz(&server.HealthzOptions{}); h.StatusCode == 0 || h.StatusCode == http.StatusOK {
			return nil
		}
	}
	return rendezvous.Errorf(rendezvous.CodeUnavailable, "the embedded NATS server is not well: %s", h.Error)
}

// healthLooks is how often a server is asked before it is unwell: it gives itself a millisecond to answer, which a busy machine may take from it.
const healthLooks = 5

// Deleting reports whether files of a stream, or of a consumer of it, are still there: asked when JetStream no longer knows it.
func (e *Embedded) Deleting(stream, consumer string) bool {
	dir := filepath.Join(e.cfg.StoreDir, "jetstream", "$G", "streams", stream)
	if consumer != "" {
		dir = filepath.Join(dir, "obs", consumer)
	}
	_, err := os.Stat(dir)
	return err == nil
}

// Shutdown stops the server and returns when it is down, or when ctx is done. Drain consumers and connections first ([Conn.Drain]): the
// server drains nobody without a listener. Idempotent.
func (e *Embedded) Shutdown(ctx context.Context) error {
	e.mu.Lock()
	s, lock := e.server, e.lock
	e.server, e.lock = nil, nil
	e.mu.Unlock()
	if s == nil {
		return nil
	}
	down := make(chan error, 1)
	go func() {
		s.Shutdown()
		s.WaitForShutdown()
		down <- lock.Release()
	}()
	select {
	case err := <-down:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *Embedded) running() *server.Server {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.server
}

// logBridge hands the server's log to slog and remembers the last fatal line, which says why a start failed.
type logBridge struct {
	log *slog.Logger

	mu    sync.Mutex
	fatal string
}

// ready waits until the server serves; false when it said that it cannot, which it says nowhere else.
func (b *logBridge) ready(s *server.Server) bool {
	for range startLooks {
		if s.ReadyForConnections(startLook) {
			return s.JetStreamEnabled()
		}
		if b.failed() {
			break
		}
	}
	return false
}

func (b *logBridge) failed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fatal != ""
}

func (b *logBridge) Noticef(format string, v ...any) { b.write(slog.LevelDebug, format, v) }
func (b *logBridge) Warnf(format string, v ...any)   { b.write(slog.LevelWarn, format, v) }
func (b *logBridge) Errorf(format string, v ...any)  { b.write(slog.LevelError, format, v) }
func (b *logBridge) Debugf(format string, v ...any)  { b.write(slog.LevelDebug, format, v) }
func (b *logBridge) Tracef(string, ...any)           {} // traces hold payloads

func (b *logBridge) Fatalf(format string, v ...any) {
	b.mu.Lock()
	b.fatal = fmt.Sprintf(format, v...)
	b.mu.Unlock()
	b.write(slog.LevelError, format, v)
}

func (b *logBridge) lastFatal() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fatal == "" {
		return "not ready in time"
	}
	return b.fatal
}

func (b *logBridge) write(level slog.Level, format string, v []any) {
	if b.log.Enabled(context.Background(), level) {
		b.log.Log(context.Background(), level, fmt.Sprintf(format, v...), "component", "nats-server")
	}
}
