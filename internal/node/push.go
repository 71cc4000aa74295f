package node

import (
	"context"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/push"
	"github.com/rendezvous-events/rendezvous/push/oauth"
	"github.com/rendezvous-events/rendezvous/push/target"
	"github.com/rendezvous-events/rendezvous/push/transport"
	"github.com/rendezvous-events/rendezvous/shard"
)

// Targets say where pushes may go (push.md section 11): settings of whoever takes registrations, and of whoever delivers them.
type Targets struct {
	CallerHosts   []string `name:"push-caller-hosts" help:"Hosts that callers' registrations may name: exact names, addresses (IPv6 in brackets), or public for every host with public addresses. None: callers cannot register." placeholder:"HOST"`
	CallerPorts   []int    `name:"push-caller-ports" help:"Ports that they may name." default:"443,8443" placeholder:"PORT"`
	AllowNetworks []string `name:"push-caller-allow-networks" help:"Networks (CIDR) that they may reach though they are not public." placeholder:"CIDR"`
	DevLoopback   bool     `name:"push-dev-loopback" help:"For development: callers may name granted hosts of this machine, by plain http and on any port."`
	NAT64         bool     `name:"push-nat64" help:"Judge addresses of 64:ff9b::/96 by the IPv4 address in them."`
	OperatorAllow []string `name:"push-operator-allow" help:"Addresses that are refused to everybody, such as metadata services, and that operators' destinations may reach all the same." placeholder:"ADDRESS"`
	RefuseSelf    []string `name:"push-refuse-self" help:"Further listeners of the plane, which no push may reach; those of this process none ever may." placeholder:"ADDRESS:PORT"`
}

// Policy is what the settings come to; the error names the first wrong one.
func (t Targets) Policy() (*target.Policy, error) {
	s := target.Settings{CallerHosts: t.CallerHosts, CallerPorts: t.CallerPorts, DevLoopback: t.DevLoopback, NAT64: t.NAT64}
	var err error
	if s.AllowNetworks, err = parsed("push-caller-allow-networks", t.AllowNetworks, netip.ParsePrefix); err != nil {
		return nil, err
	}
	if s.OperatorAllow, err = parsed("push-operator-allow", t.OperatorAllow, netip.ParseAddr); err != nil {
		return nil, err
	}
	if s.Self, err = parsed("push-refuse-self", t.RefuseSelf, netip.ParseAddrPort); err != nil {
		return nil, err
	}
	p, err := target.New(s)
	if err != nil {
		return nil, rendezvous.InvalidField("push-caller-hosts", "%s", err)
	}
	return p, nil
}

func parsed[T any](field string, texts []string, parse func(string) (T, error)) ([]T, error) {
	var list []T
	for _, text := range texts {
		v, err := parse(text)
		if err != nil {
			return nil, rendezvous.InvalidField(field, "%q cannot be read: %s", text, err)
		}
		list = append(list, v)
	}
	return list, nil
}

// Push are the settings of the role that delivers registrations.
type Push struct {
	Source       string        `name:"push-source" help:"What the source of every CloudEvent that is pushed begins with; tenant and workflow follow." default:"rendezvous:"`
	Poll         time.Duration `name:"push-poll" help:"The longest between two looks for what is due." default:"5s"`
	Lease        time.Duration `name:"push-lease" help:"How long a registration stays this pod's when it is not heard of any more; at least 10s more than the longest request (40s to 1h)." default:"45s"`
	Drain        time.Duration `name:"push-drain" help:"How long requests under way may take to finish at the end." default:"20s"`
	InFlight     int           `name:"push-inflight" help:"Registrations that are worked at once." default:"256"`
	GateInFlight int           `name:"push-gate-inflight" help:"Of these to one host and port, or to one of the operator's destinations." default:"16"`
	Unflushed    int           `name:"push-unflushed" help:"Messages of a registration that may be accepted and not yet acknowledged: how many a crash repeats at most." default:"16"`
	Memory       int64         `name:"push-memory" help:"Bytes of histories, bodies and responses that are held at once." default:"134217728"`
	MaxBody      int           `name:"push-max-body" help:"Largest body, in bytes; a larger one goes without its payload, and with its size and digest." default:"2097152"`
	LogBody      int           `name:"push-log-body" help:"Bytes of a response that the attempt log keeps (0 to 16384)." default:"1024"`
	LogAccepted  push.Accepted `name:"push-log-accepted" help:"Acceptances that the attempt log keeps: last (in the registration alone) or all." default:"last" enum:"last,all"`
	AdviceCap    time.Duration `name:"push-advice-cap" help:"The longest Retry-After that is heard." default:"24h"`
	LostLimit    int           `name:"push-lost-limit" help:"Workers that may be lost over a registration, one after the other, before it is parked." default:"5"`
	Proxy        string        `name:"push-proxy" hidden:""`
	GateRate     string        `name:"push-gate-rate" hidden:""`
}

// Patience is how long registrations may fail: a setting of push-workers, and of sweepers, which look where no worker tries any more.
type Patience struct {
	PushMaxAge time.Duration `name:"push-max-age" help:"How long a registration may fail before it is parked." default:"72h"`
}

func (p Patience) validate() error { return push.Config{MaxAge: p.PushMaxAge}.Validate() }

// defaultPush is the role as its flags have it by default.
func defaultPush() *Push {
	return &Push{Source: "rendezvous:", LogBody: 1024}
}

func (c *Config) pushing() push.Config {
	p := c.Push
	cfg := push.Config{
		Source: p.Source, Poll: p.Poll, Lease: p.Lease, Drain: p.Drain, InFlight: p.InFlight, GateInFlight: p.GateInFlight, Unflushed: p.Unflushed, Memory: p.Memory,
		MaxBody: p.MaxBody, LogBody: p.LogBody, LogAccepted: p.LogAccepted, MaxAge: c.PushMaxAge, AdviceCap: p.AdviceCap, LostLimit: p.LostLimit,
	}
	if cfg.LogBody == 0 {
		cfg.LogBody = -1
	}
	return cfg
}

func (p *Push) validate() error {
	for _, unbuilt := range [...]struct{ name, value string }{{"push-proxy", p.Proxy}, {"push-gate-rate", p.GateRate}} {
		if unbuilt.value != "" {
			return rendezvous.InvalidField(unbuilt.name, "is not built; leave it out")
		}
	}
	if p.LogBody < 0 {
		return rendezvous.InvalidField("push-log-body", "%d is outside 0..%d", p.LogBody, rendezvous.MaxPushResponse)
	}
	if p.Source == "" {
		return rendezvous.InvalidField("push-source", "is empty; give the beginning of a URI")
	}
	return nil
}

// readDestinations reads what the operator configured, beside what a test gave. Every process is told of them: whoever writes a run's first record registers it.
func (c *Config) readDestinations() (err error) {
	list := c.Destinations
	if c.PushDestinations != "" {
		read, err := push.ReadDestinations(c.PushDestinations)
		if err != nil {
			return err
		}
		list = append(list[:len(list):len(list)], read...)
	}
	c.destinations, err = push.NewDestinations(list, clock.System.Now())
	return err
}

// listeners are where this process itself listens: no push may reach them (push.md section 11), whatever else of the plane listens elsewhere.
func (n *Node) listeners() (list []string, err error) {
	for _, at := range []string{n.HTTP, n.Admin, strings.TrimPrefix(n.NATSURL, "nats://")} {
		host, port, err := net.SplitHostPort(at)
		if err != nil {
			continue // it does not listen
		}
		addresses, err := addressesOf(host)
		if err != nil {
			return nil, err
		}
		for _, a := range addresses {
			list = append(list, net.JoinHostPort(a, port))
		}
	}
	return list, nil
}

// addressesOf are the addresses on which a listener of this machine is reached: of an unspecified one all that the machine has.
func addressesOf(host string) (list []string, err error) {
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil: // localhost
		return []string{"127.0.0.1", "::1"}, nil
	case !ip.IsUnspecified():
		return []string{ip.String()}, nil
	}
	own, err := net.InterfaceAddrs()
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			list = append(list, p.Addr().WithZone("").String())
		}
	}
	return list, err
}

// startPush starts the worker that delivers registrations.
func (n *Node) startPush(ctx context.Context) error {
	if n.cfg.Push == nil {
		return nil
	}
	targets := n.cfg.Targets
	own, err := n.listeners()
	if err != nil {
		return err
	}
	targets.RefuseSelf = slices.Concat(targets.RefuseSelf, own)
	policy, err := targets.Policy()
	if err != nil {
		return err
	}
	if targets.DevLoopback {
		n.log.WarnContext(ctx, "push-dev-loopback is on: callers' registrations may reach this machine by plain http")
	}
	cfg := n.cfg.pushing().WithDefaults()
	cfg.Owner, cfg.Version = shard.Incarnation(memberName(n.cfg.Name)), n.cfg.Version
	client := transport.New(transport.Settings{Policy: policy, Clock: clock.System, IdlePerHost: cfg.GateInFlight, Idle: 2 * cfg.InFlight})
	n.began("push connections", func(context.Context) error { client.Close(); return nil })
	worker, err := push.New(n.store, n.conn, push.Deps{
		Poster: client, Tokens: oauth.New(client, clock.System, n.cfg.Version), Destinations: n.cfg.destinations, Random: rand.Float64, Clock: clock.System, Log: n.log,
		Tracer: n.telemetry.Tracer, Meter: n.telemetry.Meter,
	}, cfg)
	if err != nil {
		return err
	}
	n.began("push-worker", worker.Stop)
	n.ready = append(n.ready, func(context.Context) error { return worker.Ready() })
	return worker.Start()
}
