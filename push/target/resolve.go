package target

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"syscall"

	"github.com/rendezvous-events/rendezvous"
)

// MaxAddresses is how many addresses, A and AAAA together, a name may have.
const MaxAddresses = 32

// Resolver looks names up. *net.Resolver is one; network is "ip".
type Resolver interface {
	LookupNetIP(ctx context.Context, network, name string) ([]netip.Addr, error)
}

// What a lookup can come to besides addresses, a refusal and the resolver's own error.
var (
	ErrNoAddress     = errors.New("the name has no address")
	ErrManyAddresses = errors.New("the name has more than 32 addresses")
)

var loopbackAddresses = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}

// Resolve answers the addresses a target may be dialled at, in the resolver's order. Only these are dialled: a second lookup could say something else. One address
// that is refused refuses the name (PU-88). An address is not looked up, nor is localhost, which is this machine whatever a server says (RFC 6761). A caller's
// name is looked up as it stands, never below a search domain of this machine.
func (p *Policy) Resolve(ctx context.Context, t Target, resolver Resolver) ([]netip.Addr, error) {
	found, err := lookup(ctx, t, resolver)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, ErrNoAddress
	case len(found) > MaxAddresses:
		return nil, ErrManyAddresses
	}
	addresses := make([]netip.Addr, 0, len(found))
	for _, address := range found {
		if !p.allows(t, address) {
			return nil, t.refuseAddress(address)
		}
		if address = address.Unmap(); !slices.Contains(addresses, address) {
			addresses = append(addresses, address)
		}
	}
	return addresses, nil
}

func lookup(ctx context.Context, t Target, resolver Resolver) ([]netip.Addr, error) {
	if address, ok := t.Literal(); ok {
		return []netip.Addr{address}, nil
	}
	if t.host.loopbackName() {
		return loopbackAddresses, nil
	}
	name := t.Host()
	if t.namespace == rendezvous.PushCaller {
		name += "."
	}
	return resolver.LookupNetIP(ctx, "ip", name)
}

func (t Target) refuseAddress(address netip.Addr) *Refusal {
	refused := t.refuse(ForbiddenAddress, "stands for an address that nothing is posted to")
	refused.Address = address
	return refused
}

// Control judges the address of a socket before it connects, as a net.Dialer's Control: the last word, whatever was looked up and judged before.
func (p *Policy) Control(t Target) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return t.refuse(ForbiddenAddress, "was to be dialled at what is no address")
		}
		if at.Port() != t.port || !p.allows(t, at.Addr()) {
			return t.refuseAddress(at.Addr())
		}
		return nil
	}
}
