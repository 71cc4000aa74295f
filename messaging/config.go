package messaging

import (
	"encoding/base64"
	"net"
	"strconv"
	"strings"
	"time"

	rendezvous "github.com/rendezvous-events/rendezvous"
)

// Defaults and fixed numbers of messaging.md.
const (
	DefaultPrefix         = "rdv"
	DefaultAckWait        = 30 * time.Second
	DefaultInboxMaxBytes  = 2 << 30
	DefaultMatchMaxBytes  = 512 << 20
	DefaultMaxStore       = 8 << 30
	DefaultPublishTimeout = 5 * time.Second

	// EmbeddedMaxPayload is the embedded server's max_payload in bytes.
	EmbeddedMaxPayload = 8 << 20
	// Headroom is what a server's max_payload must leave beside a record's payload and data: headers and envelope, in bytes.
	Headroom = 64 << 10

	maxPrefix = 32
)

// Config says how NATS is used. Start from [DefaultConfig]; every process of one plane uses the same prefix.
type Config struct {
	// URL of the NATS servers, comma separated. Empty: the embedded server (see [Embedded]), or the URL of Context.
	URL string
	// Prefix is the first token of every subject and of every stream's name: 1..32 of A-Z a-z 0-9 _ -.
	Prefix string
	// Name of the connections as operators see it at the server, e.g. "rendezvous ingest".
	Name string

	// Context is a NATS context (a name known to the nats CLI, or a path to its JSON file). It brings a URL and credentials; the fields here win.
	Context string
	// Credentials is a path to a .creds file (JWT and seed). NKey is a path to a seed file. At most one of them. A token, or user and password, stand in the
	// URL or the context.
	Credentials string
	NKey        string
	// TLSCA, TLSCert, TLSKey are paths to PEM files; cert and key go together.
	TLSCA   string
	TLSCert string
	TLSKey  string
	// Domain is the JetStream domain, empty for the default.
	Domain string

	// Replicas of every stream: 1, 3 or 5. Embedded: always 1.
	Replicas int
	// AckWait is how long a delivered message may stay unacknowledged before it comes again.
	AckWait time.Duration
	// EventLimit is the largest event payload in bytes, at most rendezvous.MaxPayload. A server whose max_payload is under [LeastMaxPayload] of it is refused.
	EventLimit int
	// InboxMaxBytes and MatchMaxBytes bound those streams; when they are full, publishers are refused (nothing old is dropped).
	InboxMaxBytes int64
	MatchMaxBytes int64
	// PublishTimeout bounds one Publish, its repetitions included.
	PublishTimeout time.Duration

	Embedded EmbeddedConfig
}

// EmbeddedConfig is the server that runs inside the process.
type EmbeddedConfig struct {
	// StoreDir holds the streams; it is created. Required.
	StoreDir string
	// Listen is host:port on a loopback address; port 0 takes a free one. Empty: no listener, only this process connects.
	Listen string
	// MaxStore bounds all streams together, in bytes.
	MaxStore int64
	// NoSync turns fsync after every write off. The default is synchronous: what the broker acknowledged survives kill -9 and power loss.
	NoSync bool
}

// DefaultConfig is the configuration with every default of messaging.md; embedded, so StoreDir is still to be set (or URL).
func DefaultConfig() Config {
	return Config{
		Prefix:         DefaultPrefix,
		Name:           "rendezvous",
		Replicas:       1,
		AckWait:        DefaultAckWait,
		EventLimit:     rendezvous.MaxPayload,
		InboxMaxBytes:  DefaultInboxMaxBytes,
		MatchMaxBytes:  DefaultMatchMaxBytes,
		PublishTimeout: DefaultPublishTimeout,
		Embedded:       EmbeddedConfig{MaxStore: DefaultMaxStore},
	}
}

// LeastMaxPayload is the least max_payload of a server that carries events of eventLimit bytes: coming in, and in the replies that hold the records made of
// them, where bytes that are no JSON are in base64, a third longer, beside the record's own data.
func LeastMaxPayload(eventLimit int) int {
	return base64.StdEncoding.EncodedLen(eventLimit) + rendezvous.MaxRecordData + Headroom
}

// IsEmbedded reports whether the configuration means the server inside the process.
func (c Config) IsEmbedded() bool { return c.URL == "" && c.Context == "" }

// Validate names the first wrong field and its right range (code invalid).
func (c Config) Validate() error {
	for _, check := range []func(Config) error{validPrefix, validAccess, validLimits, validServer} {
		if err := check(c); err != nil {
			return err
		}
	}
	return nil
}

func validPrefix(c Config) error {
	if c.Prefix == "" || len(c.Prefix) > maxPrefix {
		return rendezvous.InvalidField("nats-prefix", "has %d bytes; give 1..%d of A-Z a-z 0-9 _ -", len(c.Prefix), maxPrefix)
	}
	if !isToken(c.Prefix) {
		return rendezvous.InvalidField("nats-prefix", "%q has a byte outside A-Z a-z 0-9 _ -; it is one token of every subject", c.Prefix)
	}
	return nil
}

func validAccess(c Config) error {
	if c.Credentials != "" && c.NKey != "" {
		return rendezvous.InvalidField("nats-nkey", "is given beside nats-creds; give one of them")
	}
	if strings.ContainsAny(c.Domain, " \t\r\n.*>") {
		return rendezvous.InvalidField("nats-domain", "%q is no name of a JetStream domain; give one without dots, blanks, * and >", c.Domain)
	}
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return rendezvous.InvalidField("nats-tls-cert", "and nats-tls-key go together; give both or none")
	}
	return nil
}

func validLimits(c Config) error {
	switch {
	case c.Replicas != 1 && c.Replicas != 3 && c.Replicas != 5:
		return rendezvous.InvalidField("nats-replicas", "is %d; give 1, 3 or 5", c.Replicas)
	case c.AckWait < 10*time.Millisecond || c.AckWait > time.Hour:
		return rendezvous.InvalidField("nats-ack-wait", "is %v; give 10ms..1h", c.AckWait)
	case c.EventLimit < 1 || c.EventLimit > rendezvous.MaxPayload:
		return rendezvous.InvalidField("event-limit", "is %d bytes; give 1..%d", c.EventLimit, rendezvous.MaxPayload)
	case c.InboxMaxBytes < 1<<20:
		return rendezvous.InvalidField("nats-inbox-max-bytes", "is %d; give at least %d", c.InboxMaxBytes, 1<<20)
	case c.MatchMaxBytes < 1<<20:
		return rendezvous.InvalidField("nats-match-max-bytes", "is %d; give at least %d", c.MatchMaxBytes, 1<<20)
	case c.PublishTimeout < 10*time.Millisecond || c.PublishTimeout > 5*time.Minute:
		return rendezvous.InvalidField("nats-publish-timeout", "is %v; give 10ms..5m", c.PublishTimeout)
	}
	return nil
}

func validServer(c Config) error {
	if !c.IsEmbedded() {
		return nil
	}
	if c.Replicas != 1 {
		return rendezvous.InvalidField("nats-replicas", "is %d, but the embedded server is one; give 1, or set nats", c.Replicas)
	}
	return c.Embedded.validate(c)
}

func (e EmbeddedConfig) validate(c Config) error {
	if e.StoreDir == "" {
		return rendezvous.InvalidField("data", "is empty; name the directory of the embedded server, or set nats")
	}
	if need := c.InboxMaxBytes + c.MatchMaxBytes; e.MaxStore < need {
		return rendezvous.InvalidField("nats-max-store", "is %d bytes, under nats-inbox-max-bytes + nats-match-max-bytes = %d; raise it", e.MaxStore, need)
	}
	_, _, err := e.hostPort()
	return err
}

// hostPort splits Listen; port 0 there means any free port. No listener is "", 0.
func (e EmbeddedConfig) hostPort() (string, int, error) {
	if e.Listen == "" {
		return "", 0, nil
	}
	host, p, err := net.SplitHostPort(e.Listen)
	if err != nil {
		return "", 0, rendezvous.InvalidField("nats-listen", "%q is not host:port", e.Listen)
	}
	port, err := strconv.Atoi(p)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, rendezvous.InvalidField("nats-listen", "port %q is not 0..65535", p)
	}
	// The embedded server asks nobody for credentials, so it must not be reachable from elsewhere.
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", 0, rendezvous.InvalidField("nats-listen", "%q is not a loopback address; for other machines run a NATS server and set nats", host)
	}
	return host, port, nil
}

func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return s != ""
}
