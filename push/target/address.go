package target

import (
	"net/netip"
	"slices"
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// The address table of push.md section 11: what is no receiver on the public network.
var (
	refusedIPv4 = prefixes(
		"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24",
		"192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	)
	globalIPv6  = netip.MustParsePrefix("2000::/3") // all outside is refused
	refusedIPv6 = prefixes("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "2620:4f:8000::/48")

	// always is refused to everybody, callers and operators.
	always = prefixes("0.0.0.0/32", "::/128", "224.0.0.0/4", "ff00::/8", "255.255.255.255/32", "169.254.0.0/16", "fe80::/10", "fd00:ec2::254/128")

	nat64      = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour  = netip.MustParsePrefix("2002::/16")
	teredo     = netip.MustParsePrefix("2001::/32")
	compatible = netip.MustParsePrefix("::/96")
)

func within(list []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// public reports whether the table lets an address through. The address is unmapped.
func public(a netip.Addr) bool {
	if a.Is4() {
		return !within(refusedIPv4, a)
	}
	return globalIPv6.Contains(a) && !within(refusedIPv6, a) && !isatap(a)
}

// isatap reports whether the interface id is that of an IPv4 address in a tunnel: 0:5efe or 200:5efe.
func isatap(a netip.Addr) bool {
	b := a.As16()
	return (b[8] == 0 || b[8] == 2) && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}

// embedded answers the IPv4 addresses that a gateway or tunnel might make of an IPv6 address.
func embedded(a netip.Addr) []netip.Addr {
	if a.Is4() {
		return nil
	}
	b := a.As16()
	at := func(i int) netip.Addr { return netip.AddrFrom4([4]byte(b[i : i+4])) }
	switch {
	case nat64.Contains(a), compatible.Contains(a), isatap(a):
		return []netip.Addr{at(12)}
	case sixToFour.Contains(a):
		return []netip.Addr{at(2)}
	case teredo.Contains(a):
		return []netip.Addr{at(4), netip.AddrFrom4([4]byte{^b[12], ^b[13], ^b[14], ^b[15]})}
	}
	return nil
}

// nobodys reports whether an address is in the row that holds for operators too, in any form.
func nobodys(a netip.Addr) bool {
	return within(always, a) || slices.ContainsFunc(embedded(a), func(inner netip.Addr) bool { return within(always, inner) })
}
