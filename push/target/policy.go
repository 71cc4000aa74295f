package target

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/rendezvous-events/rendezvous"
)

// AnyPublic among the granted hosts grants every host, as long as it stands for public addresses.
const AnyPublic = "public"

// Settings are what a policy is made of, each under its name in the configuration.
type Settings struct {
	CallerHosts   []string         // push.caller_hosts: exact names, addresses (IPv6 in brackets), or AnyPublic; none: callers cannot register
	CallerPorts   []int            // push.caller.ports; none: 443 and 8443
	AllowNetworks []netip.Prefix   // push.caller.allow_networks: lifts the address table for callers, nothing else
	DevLoopback   bool             // push.dev_loopback: granted loopback hosts by plain http, on any port
	NAT64         bool             // push.nat64: 64:ff9b::/96 is judged by its embedded IPv4
	OperatorAllow []netip.Addr     // push.operator.allow: lifts the always row for operators, one address at a time
	Self          []netip.AddrPort // push.refuse_self: the plane's own listeners; an unspecified address stands for every address of its port
}

var defaultPorts = []int{443, 8443}

// Policy judges targets. It is safe for concurrent use and never changes.
type Policy struct {
	settings Settings
	public   bool // AnyPublic is granted
	granted  map[host]bool
}

// New makes a policy. A grant with a port, path, user or wildcard is an error that names it: it would not mean what it seems to.
func New(s Settings) (*Policy, error) {
	p := &Policy{settings: s, granted: map[host]bool{}}
	if len(s.CallerPorts) == 0 {
		p.settings.CallerPorts = defaultPorts
	}
	for _, port := range s.CallerPorts {
		if port < 1 || port > 65535 {
			return nil, fmt.Errorf("push.caller.ports: %d is outside 1..65535", port)
		}
	}
	for _, grant := range s.CallerHosts {
		if grant == AnyPublic {
			p.public = true
			continue
		}
		h, err := parseGrant(grant)
		if err != nil {
			return nil, fmt.Errorf("push.caller_hosts: %q: %w", grant, err)
		}
		p.granted[h] = true
	}
	for _, network := range s.AllowNetworks {
		if !network.IsValid() || network != network.Masked() || network.Addr().Is4In6() {
			return nil, fmt.Errorf("push.caller.allow_networks: %v is not a network: no bits behind its length, and IPv4 as IPv4", network)
		}
	}
	for _, address := range s.OperatorAllow {
		if !address.IsValid() || address.Zone() != "" || address.Is4In6() {
			return nil, fmt.Errorf("push.operator.allow: %v is not an address: no zone, and IPv4 as IPv4", address)
		}
	}
	return p, nil
}

var errGrant = errors.New("a grant is an exact host: no scheme, port, path, user or wildcard, and IPv6 in brackets")

func parseGrant(text string) (host, error) {
	if strings.ContainsAny(text, "/?#@*%\\ ") || strings.Contains(text, ":") && !strings.HasPrefix(text, "[") {
		return host{}, errGrant
	}
	return parseHost(text)
}

// Check judges the form of a URL, which is the same under every policy. The error is a *Refusal.
func Check(text string) error {
	if _, err := parse(text); err != nil {
		return malformed(err)
	}
	return nil
}

func malformed(err error) *Refusal {
	return &Refusal{Rule: MalformedURL, Reason: "the URL cannot be used: " + err.Error()}
}

// Judge reads a URL by the rules of a namespace. The error is a *Refusal.
func (p *Policy) Judge(namespace rendezvous.PushNamespace, text string) (Target, error) {
	t, err := parse(text)
	if err != nil {
		return Target{}, malformed(err)
	}
	t.namespace = namespace
	address, isLiteral := t.Literal()
	caller := namespace == rendezvous.PushCaller && !p.development(t.host)
	switch {
	case caller && !t.Secure():
		return Target{}, t.refuse(NotHTTPS, "is to be reached by https")
	case caller && len(p.granted) == 0 && !p.public:
		return Target{}, t.refuse(HostNotGranted, "is not granted: no host is; an operator grants some with push.caller_hosts")
	case isLiteral && !p.allows(t, address):
		return Target{}, t.refuse(ForbiddenLiteral, "is an address that nothing is posted to")
	case caller:
		if refused := p.judgeGrant(t); refused != nil {
			return Target{}, refused
		}
	}
	return t, nil
}

// judgeGrant judges host and port of a caller's URL.
func (p *Policy) judgeGrant(t Target) *Refusal {
	switch {
	case !p.granted[t.host] && !p.public:
		return t.refuse(HostNotGranted, "is not among the hosts that push.caller_hosts grants")
	case !slices.Contains(p.settings.CallerPorts, int(t.port)):
		return t.refuse(BadPort, fmt.Sprintf("is not to be reached by port %d: push.caller.ports has %v", t.port, p.settings.CallerPorts))
	}
	return nil
}

// development reports whether push.dev_loopback holds for a host: one that can only be this machine, and is granted by its own name (PU-93).
func (p *Policy) development(h host) bool {
	return p.settings.DevLoopback && h.loopback() && p.granted[h]
}

// allows reports whether the target may be at that address.
func (p *Policy) allows(t Target, address netip.Addr) bool {
	if address.Zone() != "" {
		return false
	}
	address = address.Unmap()
	if p.self(netip.AddrPortFrom(address, t.port)) {
		return false
	}
	if t.namespace == rendezvous.PushOperator {
		return !nobodys(address) || slices.Contains(p.settings.OperatorAllow, address)
	}
	switch {
	case nobodys(address):
		return false
	case p.development(t.host) && address.IsLoopback(), within(p.settings.AllowNetworks, address), public(address):
		return true
	case p.settings.NAT64 && nat64.Contains(address):
		inner := embedded(address)[0]
		return public(inner) || within(p.settings.AllowNetworks, inner)
	}
	return false
}

func (p *Policy) self(at netip.AddrPort) bool {
	return slices.ContainsFunc(p.settings.Self, func(own netip.AddrPort) bool {
		return own.Port() == at.Port() && (own.Addr().IsUnspecified() || own.Addr().Unmap() == at.Addr())
	})
}
