package target_test

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/push/target"
)

// The table of push.md section 11, written out again: first and last address of every range.
var (
	refusedIPv4 = [][2]string{
		{"0.0.0.0", "0.255.255.255"},
		{"10.0.0.0", "10.255.255.255"},
		{"100.64.0.0", "100.127.255.255"},
		{"127.0.0.0", "127.255.255.255"},
		{"169.254.0.0", "169.254.255.255"},
		{"172.16.0.0", "172.31.255.255"},
		{"192.0.0.0", "192.0.0.255"},
		{"192.0.2.0", "192.0.2.255"},
		{"192.31.196.0", "192.31.196.255"},
		{"192.52.193.0", "192.52.193.255"},
		{"192.88.99.0", "192.88.99.255"},
		{"192.168.0.0", "192.168.255.255"},
		{"192.175.48.0", "192.175.48.255"},
		{"198.18.0.0", "198.19.255.255"},
		{"198.51.100.0", "198.51.100.255"},
		{"203.0.113.0", "203.0.113.255"},
		{"224.0.0.0", "239.255.255.255"},
		{"240.0.0.0", "255.255.255.255"},
	}
	refusedIPv6 = [][2]string{
		{"::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}, // below 2000::/3
		{"2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"},
		{"2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"},
		{"2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
		{"2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff"},
		{"3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"},
		{"4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}, // above it
		// ISATAP, below one network
		{"2606:4700::5efe:0:0", "2606:4700::5efe:ffff:ffff"},
		{"2606:4700::200:5efe:0:0", "2606:4700::200:5efe:ffff:ffff"},
		// rows that lie in the others, named by the contract
		{"64:ff9b::", "64:ff9b::ffff:ffff"},
		{"64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"},
		{"100::", "100::ffff:ffff:ffff:ffff"},
		{"5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
		{"fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
		{"fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
		{"fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
		{"ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
	}
)

// Neighbours that the table does not hold, counted by hand so that the test does not only repeat its own table: everything else that is next to a range is in another.
var allowedNeighbours = []string{
	"1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255",
	"172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.1.255", "192.0.3.0", "192.31.195.255", "192.31.197.0", "192.52.192.255", "192.52.194.0", "192.88.98.255",
	"192.88.100.0", "192.167.255.255", "192.169.0.0", "192.175.47.255", "192.175.49.0", "198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0",
	"203.0.112.255", "203.0.114.0", "223.255.255.255",
	"2000::", "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:200::", "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::", "2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	"2003::", "2620:4f:7fff:ffff:ffff:ffff:ffff:ffff", "2620:4f:8001::", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::", "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
	"2606:4700::5efd:ffff:ffff", "2606:4700::5eff:0:0", "2606:4700::200:5efd:ffff:ffff", "2606:4700::200:5eff:0:0",
}

// judge answers by which rule a literal is refused, "" when it is not.
func judge(t *testing.T, p *target.Policy, namespace rendezvous.PushNamespace, address string) target.Rule {
	t.Helper()
	a := netip.MustParseAddr(address)
	if a.Is6() {
		address = "[" + address + "]"
	}
	_, err := p.Judge(namespace, "https://"+address+"/")
	return rule(t, err)
}

func TestPU90FirstAndLastOfEveryRangeAndItsNeighbours(t *testing.T) {
	p := policy(t, target.Settings{CallerHosts: []string{"public"}})
	var neighbours []string
	for _, table := range [][][2]string{refusedIPv4, refusedIPv6} {
		for _, row := range table {
			for _, address := range row {
				if got := judge(t, p, rendezvous.PushCaller, address); got != target.ForbiddenLiteral {
					t.Errorf("%s, an end of %v: %q", address, row, got)
				}
			}
			for _, next := range []netip.Addr{netip.MustParseAddr(row[0]).Prev(), netip.MustParseAddr(row[1]).Next()} {
				if !next.IsValid() || inTable(table, next) {
					continue
				}
				neighbours = append(neighbours, next.String())
				if got := judge(t, p, rendezvous.PushCaller, next.String()); got != "" {
					t.Errorf("%s, next to %v: %q", next, row, got)
				}
			}
		}
	}
	for _, want := range allowedNeighbours {
		if !slices.Contains(neighbours, want) {
			t.Errorf("%s was not looked at", want)
		}
	}
	slices.Sort(neighbours)
	if n := len(slices.Compact(neighbours)); n != len(allowedNeighbours) {
		t.Errorf("%d neighbours outside of every row, counted by hand %d: %v", n, len(allowedNeighbours), neighbours)
	}
}

func inTable(table [][2]string, a netip.Addr) bool {
	return slices.ContainsFunc(table, func(row [2]string) bool {
		return !a.Less(netip.MustParseAddr(row[0])) && !netip.MustParseAddr(row[1]).Less(a)
	})
}

// PU-90: the row that holds for operators too, with its neighbours.
func TestPU90TheRowForEverybody(t *testing.T) {
	p := policy(t, target.Settings{CallerHosts: []string{"public"}})
	for _, address := range []string{
		"0.0.0.0", "::", "224.0.0.0", "239.255.255.255", "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "255.255.255.255", "169.254.0.0", "169.254.169.254", "169.254.255.255",
		"fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fd00:ec2::254",
		"::ffff:169.254.169.254", "::169.254.169.254", "2002:a9fe:a9fe::1", "64:ff9b::169.254.169.254", "2001:0:a9fe:a9fe::1", "2001:0:808:808::5601:5601", "2606:4700::5efe:a9fe:a9fe", "fd00::200:5efe:a9fe:a9fe",
	} {
		for _, namespace := range []rendezvous.PushNamespace{rendezvous.PushCaller, rendezvous.PushOperator} {
			if got := judge(t, p, namespace, address); got != target.ForbiddenLiteral {
				t.Errorf("%s %s: %q", namespace, address, got)
			}
		}
	}
	for _, address := range []string{
		"0.0.0.1", "::1", "223.255.255.255", "240.0.0.0", "255.255.255.254", "169.253.255.255", "169.255.0.0", "fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fec0::",
		"feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fd00:ec2::253", "fd00:ec2::255", "10.0.0.1", "127.0.0.1", "192.168.0.1", "fd00::1",
	} {
		if got := judge(t, p, rendezvous.PushOperator, address); got != "" {
			t.Errorf("operator %s: %q", address, got)
		}
	}
}

func TestPU91AddressesInOtherForms(t *testing.T) {
	p := policy(t, target.Settings{CallerHosts: []string{"public"}, NAT64: true})
	for form, addresses := range map[string][]string{
		"mapped":     {"::ffff:127.0.0.1", "::ffff:169.254.169.254"},
		"compatible": {"::127.0.0.1", "::169.254.169.254"},
		"6to4":       {"2002:7f00:1::1", "2002:a9fe:a9fe::1"},
		"Teredo":     {"2001:0:808:808::80ff:fffe", "2001:0:808:808::5601:5601"},
		"NAT64":      {"64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b:1::127.0.0.1", "64:ff9b:1::169.254.169.254"},
		"ISATAP":     {"2606:4700::5efe:127.0.0.1", "2606:4700::5efe:169.254.169.254", "2606:4700::200:5efe:127.0.0.1", "2606:4700::200:5efe:169.254.169.254"},
	} {
		for _, address := range addresses {
			if got := judge(t, p, rendezvous.PushCaller, address); got != target.ForbiddenLiteral {
				t.Errorf("%s %s: %q", form, address, got)
			}
		}
	}
	mapped, err := p.Judge(rendezvous.PushCaller, "https://[::ffff:8.8.8.8]/hook")
	if err != nil {
		t.Fatal(err)
	}
	if address, ok := mapped.Literal(); !ok || address != netip.MustParseAddr("8.8.8.8") || mapped.Authority() != "8.8.8.8" {
		t.Errorf("[::ffff:8.8.8.8] is %v, %q", address, mapped.Authority())
	}
}

// PU-91: with push.nat64 the well-known prefix is what it embeds; without it, it is refused whole.
func TestPU91NAT64IsAnOption(t *testing.T) {
	off := policy(t, target.Settings{CallerHosts: []string{"public"}})
	on := policy(t, target.Settings{CallerHosts: []string{"public"}, NAT64: true})
	for address, want := range map[string][2]target.Rule{
		"64:ff9b::8.8.8.8":     {target.ForbiddenLiteral, ""},
		"64:ff9b::10.0.0.1":    {target.ForbiddenLiteral, target.ForbiddenLiteral},
		"64:ff9b:1::8.8.8.8":   {target.ForbiddenLiteral, target.ForbiddenLiteral},
		"64:ff9b::1:8.8.8.8":   {target.ForbiddenLiteral, target.ForbiddenLiteral},
		"2606:4700:4700::1111": {"", ""},
	} {
		if got := [2]target.Rule{judge(t, off, rendezvous.PushCaller, address), judge(t, on, rendezvous.PushCaller, address)}; got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
