package node

import (
	"cmp"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/api"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/worker"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/push"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/sweep"
)

// Common are the settings of every process. Each flag has an environment variable: --nats-ack-wait is RENDEZVOUS_NATS_ACK_WAIT.
type Common struct {
	Store  string        `help:"Where the truth is kept: memory: (gone with the process), sqlite:DIR (one process) or postgres://user:password@host/database. Without one rendezvous up keeps it in the folder of --data." placeholder:"URL"`
	NATS   NATS          `embed:""`
	Admin  string        `help:"Address of /livez, /readyz and /metrics; empty: none." default:"127.0.0.1:7481" placeholder:"HOST:PORT"`
	Pprof  bool          `help:"Serve /debug/pprof on the admin address."`
	Log    string        `help:"Least level to log: debug, info, warn or error." default:"info" enum:"debug,info,warn,error"`
	JSON   bool          `name:"log-json" help:"Log as JSON lines."`
	Drain  time.Duration `help:"How long work under way may take to finish at the end." default:"20s"`
	Shards int           `help:"Slices of workflows; fixed when the store is created (1..1024)." default:"64"`
	Limit  int           `name:"event-limit" help:"Largest payload of an event, in bytes (at most 1048576)." default:"1048576"`
	// PushDestinations is a setting of every process: whoever writes the first record of a run registers it.
	PushDestinations string `name:"push-destinations" help:"Path to the file (JSON) of the operator's push destinations, the same for every process of the plane." placeholder:"PATH"`
}

// NATS are the settings of the way. A bound that is 0 takes its default.
type NATS struct {
	URL         string        `name:"nats" help:"URL of the NATS servers, comma separated." placeholder:"URL"`
	Context     string        `name:"nats-context" help:"NATS context with URL and credentials: a name the nats tool knows, or the path to its JSON file. The other settings win." placeholder:"NAME"`
	Prefix      string        `name:"nats-prefix" help:"First token of every subject and stream. A second plane needs a NATS account of its own all the same." default:"rdv"`
	Domain      string        `name:"nats-domain" help:"JetStream domain; empty: the default one." placeholder:"NAME"`
	Credentials string        `name:"nats-creds" help:"Path to a .creds file." placeholder:"PATH"`
	NKey        string        `name:"nats-nkey" help:"Path to an nkey seed file." placeholder:"PATH"`
	TLSCA       string        `name:"nats-tls-ca" help:"Path to the CA bundle (PEM)." placeholder:"PATH"`
	TLSCert     string        `name:"nats-tls-cert" help:"Path to the client's certificate (PEM)." placeholder:"PATH"`
	TLSKey      string        `name:"nats-tls-key" help:"Path to the client's key (PEM)." placeholder:"PATH"`
	Replicas    int           `name:"nats-replicas" help:"Replicas of every stream: 1, 3 or 5." default:"3"`
	AckWait     time.Duration `name:"nats-ack-wait" help:"How long a delivered message may stay unacknowledged." default:"30s"`
	InboxMax    int64         `name:"nats-inbox-max-bytes" help:"Bound of the stream INBOX when it is created; a full one refuses producers." default:"2147483648"`
	MatchMax    int64         `name:"nats-match-max-bytes" help:"Bound of the stream MATCH when it is created; what a full one refuses is found by the passes." default:"536870912"`
	MaxStore    int64         `name:"nats-max-store" help:"Bound of all streams of an embedded server together, in bytes." default:"8589934592"`
}

// Door are the settings of the API.
type Door struct {
	HTTP   string `name:"http" help:"Address of the API; empty: none." default:"127.0.0.1:7480" placeholder:"HOST:PORT"`
	Tokens string `help:"Path to the file of bearer tokens; without one the API listens on loopback only." placeholder:"PATH"`
	// PushPerRun is how many registrations of callers a run may have; 0 is 10.
	PushPerRun int `name:"push-per-run" help:"Push registrations of callers that a run may have (1 to 1000)." default:"10"`
}

const mostPushPerRun = 1000

// Sweep are the settings of the passes.
type Sweep struct {
	Tick  time.Duration `name:"sweep-tick" help:"Interval of every pass but those over woken runs and late timers, and retention." default:"5s"`
	Woken time.Duration `name:"sweep-woken" help:"Interval of the passes over woken runs and late timers." default:"10s"`
	Pages int           `name:"sweep-pages" help:"Pages a saturated pass may work in one tick." default:"20"`
	Lease time.Duration `name:"sweep-lease" help:"How long a shard stays this pod's when it is not heard of any more (1s to 60s)." default:"3s"`
	// Window is how long an event without an expiry of its own may wait for somebody who wants it.
	Window time.Duration `name:"sweep-window" help:"How long an event without an expiry of its own waits for somebody who wants it; then it is a dead letter (at least 1s)." default:"1h"`
	// RetainDead is how long dead letters are kept.
	RetainDead time.Duration `name:"retain-dead" help:"How long a dead letter is kept; then it is purged: its payload and keys go, its identity stays. 0s keeps it for ever (else at least 1s)." default:"720h"`
	// RetainWorkflows is how long closed workflows are kept.
	RetainWorkflows time.Duration `name:"retain-workflows" help:"How long a closed workflow is kept with its history; then it is removed. 0s keeps it for ever (else at least 24h)." default:"0s"`
}

func (c *Config) sweeping() sweep.Config {
	s := c.Sweep
	return sweep.Config{
		Tick: s.Tick, Woken: s.Woken, Pages: s.Pages, Window: s.Window, PushMaxAge: c.PushMaxAge, RetainDead: orForever(s.RetainDead), RetainWorkflows: s.RetainWorkflows,
	}
}

// orForever reads a time of retention, of which 0 is for ever.
func orForever(d time.Duration) time.Duration {
	if d == 0 {
		return sweep.Forever
	}
	return d
}

// Config is a process.
type Config struct {
	Common
	Name     string // of the process, such as ingest
	Version  string
	Migrate  bool    // bring the store's schema up to this build first
	Ingest   *Door   // the role ingest, when not nil
	Delivery bool    // the role delivery
	Sweep    *Sweep  // the role sweep, when not nil
	Timers   *Timers // the role that fires timers, when not nil
	Push     *Push   // the role that delivers push registrations, when not nil
	Patience
	Targets Targets // where pushes may go: of ingest and of the push-worker
	// Destinations are further push destinations of the operator, beside those of the file.
	Destinations []push.Destination
	// EmbeddedDir is the folder of a NATS server in the process, run where NATS names neither URL nor context. EmbeddedListen is its listener, or "".
	EmbeddedDir, EmbeddedListen string
	Logger                      *slog.Logger // instead of the one that Log and JSON ask for
	// Wrap decorates the storage engine below its traces: so a test breaks the store. nil: nothing.
	Wrap func(backend.Backend) backend.Backend
	// StoreClock is the store's now, for tests: not with PostgreSQL, which has its own. nil: the system's.
	StoreClock clock.Clock

	tokens       *api.Tokens // of the role ingest
	destinations *push.Destinations
}

// Private is a whole plane in this process, in memory but for the streams in dir, on free ports of loopback, which logs nothing: what tests, the demo and benchmarks
// start from. All else is as the flags have it by default.
func Private(name, dir string) Config {
	way := messaging.DefaultConfig()
	return Config{
		Common: Common{
			Store: "memory:", NATS: NATS{Prefix: way.Prefix, AckWait: way.AckWait},
			Drain: 20 * time.Second, Shards: rendezvous.DefaultShards, Limit: rendezvous.MaxPayload,
		},
		Name: name, Version: worker.Version(), Migrate: true, Ingest: &Door{HTTP: "127.0.0.1:0"},
		Delivery: true, Sweep: &Sweep{Tick: 5 * time.Second, Woken: 10 * time.Second, Pages: 20, Window: time.Hour, RetainDead: 30 * 24 * time.Hour, Lease: store.DefaultShardTTL},
		Push: defaultPush(), Timers: &Timers{Lease: store.DefaultShardTTL, Page: 200}, EmbeddedDir: dir, EmbeddedListen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler),
	}
}

// Validate names the first wrong setting.
func (c *Config) Validate() error {
	if c.Store == "" {
		return rendezvous.InvalidField("store", "is empty; give memory:, sqlite:DIR or postgres://…")
	}
	if c.Shards < 1 || c.Shards > 1024 {
		return rendezvous.InvalidField("shards", "%d is outside 1..1024", c.Shards)
	}
	if c.Limit < 1 || c.Limit > rendezvous.MaxPayload {
		return rendezvous.InvalidField("event-limit", "%d is outside 1..%d", c.Limit, rendezvous.MaxPayload)
	}
	if c.Drain < 0 || c.Drain > 10*time.Minute {
		return rendezvous.InvalidField("drain", "%s is outside 0s..10m", c.Drain)
	}
	if c.Sweep != nil {
		if err := c.Sweep.validate(); err != nil {
			return err
		}
	}
	if c.Timers != nil {
		if err := c.Timers.validate(); err != nil {
			return err
		}
	}
	if c.Push != nil {
		if err := c.Push.validate(); err != nil {
			return err
		}
		if err := c.pushing().Validate(); err != nil {
			return err
		}
	}
	if err := c.Patience.validate(); err != nil {
		return err
	}
	if _, err := c.Targets.Policy(); err != nil {
		return err
	}
	if c.Ingest != nil && (c.Ingest.PushPerRun < 0 || c.Ingest.PushPerRun > mostPushPerRun) {
		return rendezvous.InvalidField("push-per-run", "%d is outside 0..%d", c.Ingest.PushPerRun, mostPushPerRun).With("limit", mostPushPerRun).With("value", c.Ingest.PushPerRun)
	}
	if c.NATS.URL == "" && c.NATS.Context == "" && c.EmbeddedDir == "" {
		return rendezvous.InvalidField("nats", "is empty; give the URL of a NATS server, or nats-context")
	}
	return c.messaging().Validate()
}

func (s *Sweep) validate() error {
	for _, v := range [...]struct {
		name string
		d    time.Duration
	}{{"sweep-tick", s.Tick}, {"sweep-woken", s.Woken}} {
		if v.d < 10*time.Millisecond || v.d > 10*time.Minute {
			return rendezvous.InvalidField(v.name, "%s is outside 10ms..10m", v.d)
		}
	}
	if err := checkShardLease("sweep-lease", s.Lease); err != nil {
		return err
	}
	if s.Window < time.Second {
		return rendezvous.InvalidField("sweep-window", "%s is under 1s", s.Window)
	}
	if s.RetainDead != 0 && s.RetainDead < time.Second {
		return rendezvous.InvalidField("retain-dead", "%s is under 1s; 0s keeps dead letters for ever", s.RetainDead)
	}
	if s.RetainWorkflows != 0 && s.RetainWorkflows < 24*time.Hour {
		return rendezvous.InvalidField("retain-workflows", "%s is under 24h; 0s keeps closed workflows for ever", s.RetainWorkflows)
	}
	if s.Pages < 1 || s.Pages > 1000 {
		return rendezvous.InvalidField("sweep-pages", "%d is outside 1..1000", s.Pages)
	}
	return nil
}

// Messaging are the settings of a connection under that name, for events up to limit.
func (n NATS) Messaging(name string, limit int) messaging.Config {
	m := messaging.DefaultConfig()
	m.URL, m.Prefix, m.Name = n.URL, n.Prefix, name
	m.Context, m.Credentials, m.NKey, m.Domain = n.Context, n.Credentials, n.NKey, n.Domain
	m.TLSCA, m.TLSCert, m.TLSKey = n.TLSCA, n.TLSCert, n.TLSKey
	m.Replicas, m.AckWait, m.EventLimit = n.Replicas, n.AckWait, limit
	m.InboxMaxBytes = cmp.Or(n.InboxMax, m.InboxMaxBytes)
	m.MatchMaxBytes = cmp.Or(n.MatchMax, m.MatchMaxBytes)
	return m
}

func (c *Config) messaging() messaging.Config {
	m := c.NATS.Messaging("rendezvous "+c.Name, c.Limit)
	if m.IsEmbedded() {
		m.Replicas = 1
		m.Embedded.MaxStore = cmp.Or(c.NATS.MaxStore, m.Embedded.MaxStore)
		m.Embedded.StoreDir, m.Embedded.Listen = c.EmbeddedDir, c.EmbeddedListen
	}
	return m
}

// logger is the process's log.
func (c *Config) logger() *slog.Logger {
	if c.Logger != nil {
		return c.Logger
	}
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Log)) // an enum
	o := &slog.HandlerOptions{Level: level}
	if c.JSON {
		return slog.New(slog.NewJSONHandler(os.Stderr, o))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, o))
}

// tokens loads the tokens and refuses an open API outside loopback.
func (d *Door) tokens() (*api.Tokens, error) {
	t, err := api.LoadTokens(d.Tokens)
	if err != nil {
		return nil, err
	}
	if !t.Any() && d.HTTP != "" && !loopback(d.HTTP) {
		return nil, rendezvous.InvalidField("http", "%q is not a loopback address, and there are no tokens; give --tokens, or listen on 127.0.0.1", d.HTTP)
	}
	return t, nil
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
