package push

import (
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/push/outcome"
	"github.com/rendezvous-events/rendezvous/push/project"
	"github.com/rendezvous-events/rendezvous/store"
)

// Bounds of a turn and of what is accepted but not acknowledged (push.md section 4).
const (
	turnRecords  = 64
	turnTime     = 5 * time.Second
	pageBytes    = 256 << 10
	unflushedFor = 100 * time.Millisecond
	leaseMargin  = 5 * time.Second // left behind a request, so that its end is settled in time
	unknownWait  = time.Minute     // until a record of a kind unknown to this build is looked at again
	lastWords    = 5 * time.Second // for settlements behind a drain that ran out of patience
)

// LeastLease is the shortest send lease: the longest request, and 10 s (PU-81).
const LeastLease = rendezvous.MaxPushTimeout + 10*time.Second

// Accepted says which acceptances the attempt log holds.
type Accepted string

// The closed set (push.log_accepted).
const (
	LogLast Accepted = "last" // none: the row keeps the last outcome
	LogAll  Accepted = "all"
)

// Config bounds the worker. The zero value takes the contract's numbers (push.md sections 4, 5, 7, 10).
type Config struct {
	Owner      string // an incarnation: never reused by a restart
	Version    string // of this build, for receivers
	Source     string // push.source, the beginning of every CloudEvent's source
	Namespaces []rendezvous.PushNamespace

	Poll  time.Duration // push.poll: the longest between two claims, 5 s
	Lease time.Duration // push.lease: 45 s
	Call  time.Duration // timeout of a store call: 5 s
	Drain time.Duration // push.drain: for requests under way when the worker stops, 20 s

	InFlight     int   // push.inflight: turns at once, 256
	GateInFlight int   // push.gate_inflight: of one gate, 16
	Unflushed    int   // push.unflushed: messages of a registration accepted and not acknowledged, 16
	Memory       int64 // push.memory: bytes of pages, bodies and responses, 128 MiB

	MaxBody     int           // push.max_body: 2 MiB
	LogBody     int           // push.log_body: bytes of a response in an entry of the attempt log, 1,024; negative: none
	LogAccepted Accepted      // push.log_accepted
	MaxAge      time.Duration // push.max_age: 72 h
	AdviceCap   time.Duration // push.advice_cap: 24 h
	LostLimit   int           // push.lost_limit: 5
}

// WithDefaults is c with the contract's numbers where it has none.
func (c Config) WithDefaults() Config {
	duration := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	number := func(n *int, v int) {
		if *n == 0 {
			*n = v
		}
	}
	duration(&c.Poll, 5*time.Second)
	duration(&c.Lease, store.DefaultPushLease)
	duration(&c.Call, 5*time.Second)
	duration(&c.Drain, 20*time.Second)
	duration(&c.MaxAge, outcome.DefaultMaxAge)
	duration(&c.AdviceCap, outcome.DefaultAdviceCap)
	number(&c.InFlight, 256)
	number(&c.GateInFlight, 16)
	number(&c.Unflushed, 16)
	number(&c.MaxBody, project.DefaultMaxBody)
	number(&c.LogBody, 1024)
	number(&c.LostLimit, store.DefaultPushLostLimit)
	if c.Memory == 0 {
		c.Memory = 128 << 20
	}
	if c.LogAccepted == "" {
		c.LogAccepted = LogLast
	}
	if len(c.Namespaces) == 0 {
		c.Namespaces = []rendezvous.PushNamespace{rendezvous.PushOperator, rendezvous.PushCaller}
	}
	return c
}

// Validate names the first wrong setting by its flag.
func (c Config) Validate() error {
	c = c.WithDefaults()
	for _, d := range [...]struct {
		name               string
		value, least, most time.Duration
	}{
		{"push-poll", c.Poll, 10 * time.Millisecond, 10 * time.Minute},
		{"push-lease", c.Lease, LeastLease, store.MaxPushLease},
		{"push-drain", c.Drain, time.Millisecond, 10 * time.Minute},
		{"push-max-age", c.MaxAge, time.Minute, 365 * 24 * time.Hour},
		{"push-advice-cap", c.AdviceCap, time.Second, 365 * 24 * time.Hour},
	} {
		if d.value < d.least || d.value > d.most {
			return rendezvous.InvalidField(d.name, "%s is outside %s..%s", d.value, d.least, d.most).With("limit", d.least.String()).With("value", d.value.String())
		}
	}
	for _, n := range [...]struct {
		name               string
		value, least, most int
	}{
		{"push-inflight", c.InFlight, 1, store.MaxPushClaim},
		{"push-gate-inflight", c.GateInFlight, 1, store.MaxPushClaim},
		{"push-unflushed", c.Unflushed, 1, 500},
		{"push-max-body", c.MaxBody, 1 << 10, 64 << 20},
		{"push-log-body", max(c.LogBody, 0), 0, rendezvous.MaxPushResponse},
		{"push-lost-limit", c.LostLimit, 1, 1000},
		{"push-memory", int(c.Memory), leastMemory, 64 << 30},
	} {
		if n.value < n.least || n.value > n.most {
			return rendezvous.InvalidField(n.name, "%d is outside %d..%d", n.value, n.least, n.most).With("limit", n.most).With("value", n.value)
		}
	}
	if c.LogAccepted != LogLast && c.LogAccepted != LogAll {
		return rendezvous.InvalidField("push-log-accepted", "is none of last, all")
	}
	return nil
}
