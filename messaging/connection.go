package messaging

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/jsm.go/natscontext"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/singleflight"

	rendezvous "github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
)

const (
	pingEvery      = 20 * time.Second
	pingsOut       = 2
	reconnectFirst = 50 * time.Millisecond
	reconnectMost  = 2 * time.Second
	dialTimeout    = 5 * time.Second
	drainTimeout   = 20 * time.Second
	apiTimeout     = 5 * time.Second
	publishWindow  = 256
)

// Deps is what a connection is given. Zero fields take production values.
type Deps struct {
	Log    *slog.Logger // slog.Default
	Clock  clock.Clock  // clock.System
	Jitter Jitter       // math/rand
	// InProcess, normally an [Embedded], replaces dialling. Required when the configuration is embedded.
	InProcess nats.InProcessConnProvider
}

func (d Deps) withDefaults() Deps {
	if d.Log == nil {
		d.Log = slog.Default()
	}
	if d.Clock == nil {
		d.Clock = clock.System
	}
	if d.Jitter == nil {
		d.Jitter = rand.Float64
	}
	return d
}

// Conn is a process's way to NATS: one connection to publish, one to consume, so that a slow consumer never holds up a notice. Both
// reconnect for ever. Safe for concurrent use.
type Conn struct {
	cfg   Config
	deps  Deps
	names Names

	pub, con         *nats.Conn
	pubDown, conDown chan struct{} // closed when the connection is
	js               jetstream.JetStream
	prov             *provisioner
	once             singleflight.Group

	failed    chan error
	drainOnce sync.Once
	drainErr  error
	drained   chan struct{}
	mu        sync.Mutex
	closing   bool
}

// Connect starts both connections and returns at once, also when no server answers: they keep trying (RetryOnFailedConnect). A server that
// answers and takes too small messages is refused here, or through Failed when it is met later. Errors: invalid.
func Connect(cfg Config, deps Deps) (*Conn, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.IsEmbedded() && deps.InProcess == nil {
		return nil, rendezvous.InvalidField("nats", "is empty and no embedded server was given; set it, or start one")
	}
	c := &Conn{
		cfg: cfg, deps: deps.withDefaults(), names: NamesOf(cfg.Prefix), failed: make(chan error, 1), drained: make(chan struct{}),
		pubDown: make(chan struct{}), conDown: make(chan struct{}),
	}
	if err := c.open(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *Conn) open() (err error) {
	// No buffering while down: a notice that cannot go now is reported now, and its row is found by a pass.
	if c.pub, err = c.dial("publish", c.pubDown, nats.ReconnectBufSize(-1)); err != nil {
		return err
	}
	if c.con, err = c.dial("consume", c.conDown); err != nil {
		return err
	}
	if c.js, err = newJetStream(c.pub, c.cfg.Domain, jetstream.WithPublishAsyncMaxPending(publishWindow),
		jetstream.WithPublishAsyncTimeout(c.cfg.PublishTimeout), jetstream.WithDefaultTimeout(apiTimeout)); err != nil {
		return err
	}
	c.prov = &provisioner{js: c.js, cfg: c.cfg, names: c.names, log: c.deps.Log, maxPayload: c.pub.MaxPayload, settle: newSettler(c.deps)}
	return c.checkPayload(c.pub)
}

func newJetStream(nc *nats.Conn, domain string, opts ...jetstream.JetStreamOpt) (jetstream.JetStream, error) {
	if domain != "" {
		return jetstream.NewWithDomain(nc, domain, opts...)
	}
	return jetstream.New(nc, opts...)
}

func (c *Conn) dial(role string, down chan struct{}, more ...nats.Option) (*nats.Conn, error) {
	url, opts, err := connectionOptions(c.cfg)
	if err != nil {
		return nil, err
	}
	log := c.deps.Log.With("connection", role)
	opts = append(opts,
		nats.Name(c.cfg.Name+" "+role),
		nats.MaxReconnects(-1),
		nats.RetryOnFailedConnect(true),
		nats.CustomReconnectDelay(func(n int) time.Duration {
			return backoff(uint64(max(n, 1)), reconnectFirst, reconnectMost, c.deps.Jitter)
		}),
		nats.Timeout(dialTimeout),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(pingsOut),
		nats.DrainTimeout(drainTimeout),
		nats.IgnoreAuthErrorAbort(), // credentials may be rotated while we wait
		nats.ConnectHandler(func(nc *nats.Conn) { c.met(nc, log, "connected") }),
		nats.ReconnectHandler(func(nc *nats.Conn) { c.met(nc, log, "reconnected") }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if !c.isClosing() {
				log.Warn("NATS connection lost; reconnecting", "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, s *nats.Subscription, err error) { logAsyncError(log, s, err) }),
		nats.ClosedHandler(func(nc *nats.Conn) { close(down); c.lost(role, nc) }),
	)
	if c.deps.InProcess != nil {
		opts = append(opts, nats.InProcessServer(c.deps.InProcess))
	}
	nc, err := nats.Connect(url, append(opts, more...)...)
	if err != nil {
		return nil, rendezvous.InvalidField("nats", "cannot connect with these settings").Because(err)
	}
	return nc, nil
}

// connectionOptions resolves the URL and the credentials: the context first, then the fields that are set.
func connectionOptions(cfg Config) (string, []nats.Option, error) {
	url, opts, err := contextOptions(cfg)
	if err != nil {
		return "", nil, err
	}
	if cfg.URL != "" {
		url = cfg.URL
	}
	if cfg.Credentials != "" {
		opts = append(opts, nats.UserCredentials(cfg.Credentials))
	}
	if cfg.NKey != "" {
		nkey, err := nats.NkeyOptionFromSeed(cfg.NKey)
		if err != nil {
			return "", nil, rendezvous.InvalidField("nats-nkey", "is not a file with an nkey seed").Because(err)
		}
		opts = append(opts, nkey)
	}
	if cfg.TLSCA != "" {
		opts = append(opts, nats.RootCAs(cfg.TLSCA))
	}
	if cfg.TLSCert != "" {
		opts = append(opts, nats.ClientCert(cfg.TLSCert, cfg.TLSKey))
	}
	return url, opts, nil
}

func contextOptions(cfg Config) (string, []nats.Option, error) {
	if cfg.Context == "" {
		return "", nil, nil
	}
	load := func() (*natscontext.Context, error) { return natscontext.New(cfg.Context, true) }
	if strings.ContainsRune(cfg.Context, os.PathSeparator) || strings.HasSuffix(cfg.Context, ".json") {
		load = func() (*natscontext.Context, error) { return natscontext.NewFromFile(cfg.Context) }
	}
	nctx, err := load()
	if err != nil {
		return "", nil, rendezvous.InvalidField("nats-context", "%q cannot be read; give a context's name or its file", cfg.Context).Because(err)
	}
	opts, err := nctx.NATSOptions()
	if err != nil {
		return "", nil, rendezvous.InvalidField("nats-context", "%q has settings that cannot be used", cfg.Context).Because(err)
	}
	return nctx.ServerURL(), opts, nil
}

func logAsyncError(log *slog.Logger, s *nats.Subscription, err error) {
	subject := ""
	if s != nil {
		subject = s.Subject
	}
	log.Warn("NATS reports an error", "error", err, "subject", subject)
}

// met runs at every connect and reconnect: another server may be behind the same URL.
func (c *Conn) met(nc *nats.Conn, log *slog.Logger, how string) {
	log.Info("NATS "+how, "server", nc.ConnectedServerName(), "version", nc.ConnectedServerVersion())
	if err := c.checkPayload(nc); err != nil {
		c.fail(err)
	}
}

// checkPayload refuses a server that could not carry an event of the limit, or the answer made of it.
func (c *Conn) checkPayload(nc *nats.Conn) error {
	need := int64(LeastMaxPayload(c.cfg.EventLimit))
	if !nc.IsConnected() || nc.MaxPayload() >= need {
		return nil
	}
	return rendezvous.InvalidField("event-limit", "is %d bytes, but the NATS server's max_payload is %d; raise that to %d (a payload in base64, and its envelope) or lower the limit",
		c.cfg.EventLimit, nc.MaxPayload(), need).With("limit", nc.MaxPayload()).With("value", need)
}

// lost runs when a connection is closed for good. Unless we closed it the process has to end: it would look alive and do nothing.
func (c *Conn) lost(role string, nc *nats.Conn) {
	if c.isClosing() {
		return
	}
	c.fail(rendezvous.Errorf(rendezvous.CodeUnavailable, "the NATS connection to %s was closed; restart the process", role).Because(nc.LastError()))
}

func (c *Conn) fail(err error) {
	select {
	case c.failed <- err:
	default: // the first reason is enough
	}
}

// Failed delivers the reason why this process cannot go on with NATS (a connection closed for good, a server that is refused). Whoever runs
// the process exits non-zero on it.
func (c *Conn) Failed() <-chan error { return c.failed }

// Names of the plane's subjects, streams and durables.
func (c *Conn) Names() Names { return c.names }

// PublishConn is the raw connection that publishes, for core subjects. Don't close or drain it.
func (c *Conn) PublishConn() *nats.Conn { return c.pub }

// ConsumeConn is the raw connection that consumes, for request/reply services and core subjects. Don't close or drain it.
func (c *Conn) ConsumeConn() *nats.Conn { return c.con }

// JetStream context of the publish connection, for inspection.
func (c *Conn) JetStream() jetstream.JetStream { return c.js }

// Connected reports whether both connections stand now. A process that can do its work without the broker stays ready when they do not.
func (c *Conn) Connected() bool { return c.pub.IsConnected() && c.con.IsConnected() }

// Provision creates the streams and durables that are missing and changes nothing that exists. Concurrent calls share one pass.
func (c *Conn) Provision(ctx context.Context) error {
	return shared(ctx, &c.once, "provision", func(ctx context.Context) error {
		ctx, cancel := whileConnected(ctx, c.pub)
		defer cancel()
		return c.prov.run(ctx)
	})
}

// shared runs f once for all concurrent callers, each of whom may leave early.
func shared(ctx context.Context, once *singleflight.Group, key string, f func(context.Context) error) error {
	done := once.DoChan(key, func() (any, error) { return nil, f(context.WithoutCancel(ctx)) })
	select {
	case r := <-done:
		return r.Err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// whileConnected is ctx that ends when the connection breaks: a request sent on it then is never answered, and nats.go waits on.
func whileConnected(ctx context.Context, nc *nats.Conn) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	status := nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	go func() {
		defer nc.RemoveStatusListener(status)
		select {
		case <-status:
			cancel(nats.ErrDisconnected)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// Drain ends the connections in order: consumers are expected to be stopped ([Consumption.Stop]); it drains the consume connection, waits for
// pending publishes, drains the publish connection, and returns when both are closed, or ctx is done. Idempotent.
func (c *Conn) Drain(ctx context.Context) error {
	c.drainOnce.Do(func() {
		defer close(c.drained)
		c.setClosing()
		c.drainErr = errors.Join(
			drain(ctx, c.con, c.conDown),
			c.awaitPublishes(ctx),
			drain(ctx, c.pub, c.pubDown),
		)
		c.Close()
	})
	<-c.drained
	return c.drainErr
}

// Close ends both connections at once. Use Drain to end them well.
func (c *Conn) Close() {
	c.setClosing()
	for _, nc := range []*nats.Conn{c.con, c.pub} {
		if nc != nil {
			nc.Close()
		}
	}
}

func (c *Conn) awaitPublishes(ctx context.Context) error {
	select {
	case <-c.js.PublishAsyncComplete():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func drain(ctx context.Context, nc *nats.Conn, down <-chan struct{}) error {
	// A connection that is not up has nothing to drain; nats.go then closes it and says so.
	if err := nc.Drain(); err != nil && !errors.Is(err, nats.ErrConnectionReconnecting) && !errors.Is(err, nats.ErrConnectionClosed) {
		return err
	}
	select {
	case <-down:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *Conn) setClosing() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
}

func (c *Conn) isClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing
}
