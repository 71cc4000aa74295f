package client

import (
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/wire"
)

// Where `rendezvous up` listens unless told otherwise.
const (
	DefaultURL     = "http://127.0.0.1:7480"
	DefaultNATSURL = "nats://127.0.0.1:4222"
)

// Scope is the name of the client's instrumentation.
const Scope = "github.com/rendezvous-events/rendezvous/client"

const defaultTimeout = 10 * time.Second

// Options say how the plane is reached. The zero value calls [DefaultURL] as the default tenant.
type Options struct {
	// Tenant all calls are for; empty: default.
	Tenant string

	// URL is the base of the HTTP door, e.g. http://127.0.0.1:7480. When it is set, verbs go over HTTP; otherwise, with NATS or NATSURL, over NATS.
	URL string
	// Token is the bearer token of the HTTP door; empty: none is sent.
	Token string
	// HTTP makes the requests; nil: a client of its own.
	HTTP *http.Client

	// NATS is a connection to use; it stays the caller's. NATSURL makes one that Close ends. The stream door (Publish) and executors need one of
	// them, also when verbs go over HTTP.
	NATS        *nats.Conn
	NATSURL     string
	NATSOptions []nats.Option // for NATSURL: credentials, TLS
	// Prefix of the plane's subjects (rdv) and its JetStream domain (none).
	Prefix string
	Domain string

	// Timeout bounds one try of a call (10 s); Retry says how often and how long it is tried.
	Timeout time.Duration
	Retry   Retry

	Clock  clock.Clock    // clock.System
	Log    *slog.Logger   // slog.Default
	Tracer trace.Tracer   // that of otel's global provider
	Jitter func() float64 // math/rand: a number in [0, 1)
}

func (o Options) withDefaults() Options {
	if o.Tenant == "" {
		o.Tenant = rendezvous.DefaultTenant
	}
	if o.URL == "" && o.NATS == nil && o.NATSURL == "" {
		o.URL = DefaultURL
	}
	if o.Prefix == "" {
		o.Prefix = messaging.DefaultPrefix
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	o.Retry = o.Retry.withDefaults()
	if o.Clock == nil {
		o.Clock = clock.System
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Tracer == nil {
		o.Tracer = otel.Tracer(Scope)
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	return o
}

// Client calls the plane for one tenant. Safe for concurrent use; make it with [New] and end it with Close.
type Client struct {
	opts   Options
	names  messaging.Names
	verbs  transport
	link   *link // nil without NATS
	inbox  func() (publisher, error)
	life   context.Context // ends with Close
	end    context.CancelCauseFunc
	closed sync.Once
}

// transport carries one try of a verb: the reply's body, or an error of the closed set. A reply that may have been lost is commit_unknown.
type transport interface {
	call(ctx context.Context, tenant, verb string, body []byte) ([]byte, error)
	// room is how many bytes a request may have, 0 for no limit worth knowing.
	room() int
	close()
}

// New makes a client. It dials nothing but NATSURL, and that without waiting. Errors: invalid, naming the option.
func New(o Options) (*Client, error) {
	o = o.withDefaults()
	if err := rendezvous.CheckTenant(o.Tenant); err != nil {
		return nil, err
	}
	c := &Client{opts: o, names: messaging.NamesOf(o.Prefix)}
	c.life, c.end = context.WithCancelCause(context.Background())
	var err error
	if c.link, err = newLink(o); err != nil {
		return nil, err
	}
	if o.URL == "" {
		c.verbs = &natsTransport{link: c.link, prefix: o.Prefix}
	} else if c.verbs, err = newHTTPTransport(o); err != nil {
		c.link.close()
		return nil, err
	}
	c.inbox = sync.OnceValues(c.openInbox)
	return c, nil
}

// Close ends what New made. Calls under way fail as unavailable. Idempotent.
func (c *Client) Close() {
	c.closed.Do(func() {
		c.end(errClosed)
		c.verbs.close()
		c.link.close()
	})
}

// living is ctx that ends with the client, too.
func (c *Client) living(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	release := context.AfterFunc(c.life, func() { cancel(errClosed) })
	return ctx, func() { release(); cancel(context.Canceled) }
}

// Tenant all calls are for.
func (c *Client) Tenant() string { return c.opts.Tenant }

// NATS is the connection the client uses, nil without one.
func (c *Client) NATS() *nats.Conn {
	if c.link == nil {
		return nil
	}
	return c.link.nc
}

// Call calls any verb: request and reply are the JSON of docs/spec/api.md. It tries again as [Retry] says, which is safe as long as the request carries
// the contract's token (run ids, batch_id, acquire_id): where a request of package wire lacks it, it is minted. The error is a *rendezvous.Error.
func (c *Client) Call(ctx context.Context, verb string, request, reply any) error {
	ctx, done := c.living(ctx)
	defer done()
	body, err := rendezvous.EncodeJSON(withTokens(verb, request))
	if err != nil {
		return rendezvous.InvalidField("request", "does not encode as JSON").Because(err)
	}
	ctx, span := c.opts.Tracer.Start(ctx, verb, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("rpc.system.name", "rendezvous"), attribute.String("rpc.method", verb), attribute.String("rendezvous.tenant", c.opts.Tenant)))
	defer span.End()
	o := c.opts
	if h, ok := request.(wire.ReadHistory); ok {
		o.Timeout += time.Duration(min(max(h.WaitMS, 0), mostWait.Milliseconds())) * time.Millisecond
	}
	raw, err := retried(ctx, o, reads[verb], func(ctx context.Context) ([]byte, error) {
		return c.verbs.call(ctx, c.opts.Tenant, verb, body)
	})
	if err == nil && reply != nil {
		if bad := json.Unmarshal(raw, reply); bad != nil {
			err = undecoded(verb, bad)
		}
	}
	if err != nil {
		span.SetStatus(codes.Error, string(rendezvous.CodeOf(err)))
	}
	return err
}

// mostWait is the longest that a long poll may last.
const mostWait = 30 * time.Second

// reads are the verbs that change nothing: their lost replies are unavailable, not commit_unknown.
var reads = map[string]bool{
	"events.explain": true, "waits.explain": true,
	"events.get": true, "runs.get": true, "runs.list": true, "runs.count": true, "runs.chain": true, "runs.history": true, "waits.list": true,
	"timers.list": true, "shards.list": true,
	"push.get": true, "push.list": true, "push.parked": true, "push.attempts": true,
	"deadletters.list": true, "deadletters.count": true, "system.info": true, "system.check": true,
}

// undecoded is the error of a reply that is none of this plane's. It does not name the URL, which may hold a password.
func undecoded(verb string, cause error) error {
	code := rendezvous.CodeCommitUnknown
	if reads[verb] {
		code = rendezvous.CodeUnavailable
	}
	return rendezvous.Errorf(code, "the reply of %s does not decode; is the client's URL that of a plane's API?", verb).Because(cause)
}

// call is Call with a typed reply.
func call[Rep any](ctx context.Context, c *Client, verb string, request any) (Rep, error) {
	var reply Rep
	err := c.Call(ctx, verb, request, &reply)
	return reply, err
}
