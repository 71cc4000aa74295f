package target_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/push/target"
)

func policy(t *testing.T, s target.Settings) *target.Policy {
	t.Helper()
	p, err := target.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// rule is the rule of a refusal, "" of no error.
func rule(t *testing.T, err error) target.Rule {
	t.Helper()
	if err == nil {
		return ""
	}
	var refused *target.Refusal
	if !errors.As(err, &refused) {
		t.Fatalf("not a refusal: %v", err)
	}
	if reason, parks := refused.Park(); parks != reason.Known() || parks == (refused.Rule == target.ForbiddenAddress) {
		t.Errorf("%v parks %v as %q", err, parks, reason)
	}
	return refused.Rule
}

func judged(t *testing.T, p *target.Policy, namespace rendezvous.PushNamespace, url string) target.Target {
	t.Helper()
	got, err := p.Judge(namespace, url)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func expect(t *testing.T, p *target.Policy, namespace rendezvous.PushNamespace, urls map[string]target.Rule) {
	t.Helper()
	for url, want := range urls {
		_, err := p.Judge(namespace, url)
		if got := rule(t, err); got != want {
			t.Errorf("%s %s: %q, want %q (%v)", namespace, url, got, want, err)
		}
	}
}

// names is a scripted DNS; it counts what it is asked.
type names struct {
	addresses map[string][]string
	asked     []string
}

func (n *names) LookupNetIP(_ context.Context, network, name string) ([]netip.Addr, error) {
	n.asked = append(n.asked, network+" "+name)
	texts, ok := n.addresses[strings.TrimSuffix(name, ".")]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	var found []netip.Addr
	for _, text := range texts {
		found = append(found, netip.MustParseAddr(text))
	}
	return found, nil
}

func TestPU85OnlyTheGrantedHost(t *testing.T) {
	p := policy(t, target.Settings{CallerHosts: []string{"hooks.example.com"}})
	expect(t, p, rendezvous.PushCaller, map[string]target.Rule{
		"https://hooks.example.com/":              "",
		"https://hooks.example.com:8443/a?b=c":    "",
		"HTTPS://hooks.example.com":               "",
		"https://other.example.com/":              target.HostNotGranted,
		"https://hooks.example.com.evil.test/":    target.HostNotGranted,
		"https://evilhooks.example.com/":          target.HostNotGranted,
		"https://a.hooks.example.com/":            target.HostNotGranted,
		"https://example.com/":                    target.HostNotGranted,
		"https://93.184.216.34/":                  target.HostNotGranted,
		"https://evil.test/hooks.example.com":     target.HostNotGranted,
		"https://evil.test?hooks.example.com":     target.HostNotGranted,
		"https://evil.test/?u=@hooks.example.com": target.HostNotGranted,
	})
}

func TestPU85TheDefaultRefusesAndNamesTheSetting(t *testing.T) {
	p := policy(t, target.Settings{})
	for _, url := range []string{"https://hooks.example.com/secret?key=1", "https://10.0.0.1/secret", "https://[2606:4700::1]/secret"} {
		_, err := p.Judge(rendezvous.PushCaller, url)
		if rule(t, err) != target.HostNotGranted || !strings.Contains(err.Error(), "push.caller_hosts") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestPU85AnyHostWhenPublicIsGranted(t *testing.T) {
	p := policy(t, target.Settings{CallerHosts: []string{"public"}})
	expect(t, p, rendezvous.PushCaller, map[string]target.Rule{"https://anything.example/": "", "https://8.8.8.8/": "", "http://anything.example/": target.NotHTTPS})
}

// PU-85: grants that would not mean what they seem to stop the start.
func TestPU85GrantsAreExactHosts(t *testing.T) {
	for _, grant := range []string{
		"hooks.example.com:443", "https://hooks.example.com", "hooks.example.com/path", "user@hooks.example.com", "*.example.com", "*", "", " ", "hooks example", "a..b",
		"hooks.example.com?x", "hooks.example.com#x", "::1", "[::1]:443", "[::1", "1.2.3", "0x7f.1", "hooks%2eexample.com", ".", "xn--a",
	} {
		if _, err := target.New(target.Settings{CallerHosts: []string{"good.example", grant}}); err == nil || !strings.Contains(err.Error(), "push.caller_hosts") {
			t.Errorf("%q: %v", grant, err)
		}
	}
	for _, s := range []target.Settings{
		{CallerPorts: []int{0}},
		{CallerPorts: []int{443, 65536}},
		{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("10.0.0.1/8")}},
		{AllowNetworks: []netip.Prefix{netip.MustParsePrefix("::ffff:10.0.0.0/104")}},
		{OperatorAllow: []netip.Addr{netip.MustParseAddr("fe80::1%eth0")}},
		{OperatorAllow: []netip.Addr{{}}},
	} {
		if _, err := target.New(s); err == nil || !strings.Contains(err.Error(), "push.") {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestPU86InternationalNames(t *testing.T) {
	for _, grant := range []string{"bücher.example", "xn--bcher-kva.example", "BÜCHER.example.", "bu\u0308cher.example"} {
		p := policy(t, target.Settings{CallerHosts: []string{grant}})
		for _, url := range []string{
			"https://bücher.example/", "https://xn--bcher-kva.example/", "https://XN--BCHER-KVA.EXAMPLE/", "https://BÜCHER.Example./", "https://bücher。example/", "https://ｂücher.example/",
		} {
			got, err := p.Judge(rendezvous.PushCaller, url)
			if err != nil || got.Host() != "xn--bcher-kva.example" || got.Authority() != "xn--bcher-kva.example" {
				t.Errorf("grant %s, %s: %q, %v", grant, url, got.Host(), err)
			}
		}
	}
	// Non-transitional: ß is itself, and not ss.
	p := policy(t, target.Settings{CallerHosts: []string{"straße.example"}})
	expect(t, p, rendezvous.PushCaller, map[string]target.Rule{"https://straße.example/": "", "https://xn--strae-oqa.example/": "", "https://strasse.example/": target.HostNotGranted})
}

func TestPU87WhatIsWrongWithTheURL(t *testing.T) {
	p := policy(t, target.Settings{CallerHosts: []string{"hooks.example.com", "public"}})
	expect(t, p, rendezvous.PushCaller, map[string]target.Rule{
		"http://hooks.example.com/":                        target.NotHTTPS,
		"https://hooks.example.com:8080/":                  target.BadPort,
		"https://hooks.example.com:80/":                    target.BadPort,
		"https://hooks.example.com:444/":                   target.BadPort,
		"https://hooks.example.com:443/":                   "",
		"https://hooks.example.com:8443":                   "",
		"https://user@hooks.example.com/":                  target.MalformedURL,
		"https://user:pass@hooks.example.com/":             target.MalformedURL,
		"https://@hooks.example.com/":                      target.MalformedURL,
		"https://hooks.example.com\\@evil.test/":           target.MalformedURL,
		"https://hooks.example.com/#fragment":              target.MalformedURL,
		"https://hooks.example.com#":                       target.MalformedURL,
		"https://[fe80::1%25eth0]/":                        target.MalformedURL,
		"https://[fe80::1%eth0]/":                          target.MalformedURL,
		"https:///path":                                    target.MalformedURL,
		"https://:443/":                                    target.MalformedURL,
		"https://?x":                                       target.MalformedURL,
		"https://.":                                        target.MalformedURL,
		"https://hooks.example.com../":                     target.MalformedURL,
		"https://hooks..example.com/":                      target.MalformedURL,
		"https:hooks.example.com":                          target.MalformedURL,
		"/path":                                            target.MalformedURL,
		"":                                                 target.MalformedURL,
		"ftp://hooks.example.com/":                         target.MalformedURL,
		"https://hooks.example.com/a b":                    target.MalformedURL,
		" https://hooks.example.com/":                      target.MalformedURL,
		"https://hooks.example.com/\n":                     target.MalformedURL,
		"https://hooks.example.com/a\x00b":                 target.MalformedURL,
		"https://hooks.exam\tple.com/":                     target.MalformedURL,
		"https://hooks.example.com/ü":                      target.MalformedURL,
		"https://hooks.example.com/?ü":                     target.MalformedURL,
		"https://hooks.example.com/%zz":                    target.MalformedURL,
		"https://hooks%2eexample.com/":                     target.MalformedURL,
		"https://hooks.example.com:/":                      target.MalformedURL,
		"https://hooks.example.com:0443/":                  target.MalformedURL,
		"https://hooks.example.com:65536/":                 target.MalformedURL,
		"https://hooks.example.com:x/":                     target.MalformedURL,
		"https://hooks.example.com:-1/":                    target.MalformedURL,
		"https://hooks.example.com:443:443/":               target.MalformedURL,
		"https://0x7f.1/":                                  target.MalformedURL,
		"https://0177.0.0.1/":                              target.MalformedURL,
		"https://2130706433/":                              target.MalformedURL,
		"https://0x7f000001/":                              target.MalformedURL,
		"https://127.1/":                                   target.MalformedURL,
		"https://127.0.0.1.1/":                             target.MalformedURL,
		"https://127.0.0.0x1/":                             target.MalformedURL,
		"https://127.0.0.0X1/":                             target.MalformedURL,
		"https://a.b.0x/":                                  target.MalformedURL,
		"https://256.0.0.1/":                               target.MalformedURL,
		"https://evil.test.1/":                             target.MalformedURL,
		"https://[1.2.3.4]/":                               target.MalformedURL,
		"https://[::1/":                                    target.MalformedURL,
		"https://[::1]x/":                                  target.MalformedURL,
		"https://[v1.x]/":                                  target.MalformedURL,
		"https://2606:4700::1/":                            target.MalformedURL,
		"https://a!b.example/":                             target.MalformedURL,
		"https://evil.test℀hooks.example.com/":             target.MalformedURL, // maps to a/c
		"https://evil.test／hooks.example.com/":             target.MalformedURL, // maps to /
		"https://hooks.example.com？x":                      target.MalformedURL, // maps to ?
		"https://" + strings.Repeat("a", 64) + ".example/": target.MalformedURL,
		"https://" + strings.Repeat("a.", 126) + "ab/":     target.MalformedURL, // 254 bytes
		"https://" + strings.Repeat("a.", 126) + "a/":      "",
		"https://hooks.example.com/" + strings.Repeat("a", 2048-len("https://hooks.example.com/")): "",
		"https://hooks.example.com/" + strings.Repeat("a", 2049-len("https://hooks.example.com/")): target.MalformedURL,
		"https://hooks.example.com/\xff": target.MalformedURL,
		"https://hooks\xff.example.com/": target.MalformedURL,
		"https://127.0.0.1/":             target.ForbiddenLiteral,
		"https://127.0.0.1./":            target.ForbiddenLiteral,
		"https://１２７.0.0.1/":             target.ForbiddenLiteral,
		"https://my_service.example/":    "",
		"https://r3---sn-x.example/":     "",
		"https://1a.2b/":                 "",
	})
}

// PU-8: a refusal shows the host at most.
func TestPU8RefusalsShowTheHostAtMost(t *testing.T) {
	p := policy(t, target.Settings{CallerHosts: []string{"hooks.example.com"}})
	for _, url := range []string{
		"http://hooks.example.com/s3cr3t?s3cr3t", "https://other.example/s3cr3t?s3cr3t", "https://hooks.example.com:81/s3cr3t", "https://10.0.0.1/s3cr3t", "https://u:s3cr3t@hooks.example.com/",
		"https://hooks.example.com/s3cr3t#s3cr3t", "https://s3cr3t s/",
	} {
		_, err := p.Judge(rendezvous.PushCaller, url)
		if rule(t, err) == "" || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "s3cr3t") {
			t.Errorf("%s: %v", url, err)
		}
	}
	good := judged(t, p, rendezvous.PushCaller, "https://hooks.example.com/s3cr3t?s3cr3t")
	if shown := fmt.Sprintf("%v %+v %s %#v", good, good, good, good); strings.Contains(shown, "s3cr3t") {
		t.Errorf("a target shows its path: %s", shown)
	}
}

func TestPartsOfATarget(t *testing.T) {
	p := policy(t, target.Settings{CallerHosts: []string{"public"}})
	for url, want := range map[string][4]string{
		"https://Hooks.Example.com":                 {"/", "hooks.example.com", "https://hooks.example.com:443", "hooks.example.com"},
		"https://hooks.example.com?a=%2F|{}&b":      {"/?a=%2F|{}&b", "hooks.example.com", "https://hooks.example.com:443", "hooks.example.com"},
		"https://hooks.example.com:443/a/../b//%41": {"/a/../b//%41", "hooks.example.com", "https://hooks.example.com:443", "hooks.example.com"},
		"https://hooks.example.com.:8443/?":         {"/?", "hooks.example.com:8443", "https://hooks.example.com:8443", "hooks.example.com"},
		"https://[2606:4700:0::1]:8443/x":           {"/x", "[2606:4700::1]:8443", "https://[2606:4700::1]:8443", "2606:4700::1"},
		"https://[2606:4700::1]/x":                  {"/x", "[2606:4700::1]", "https://[2606:4700::1]:443", "2606:4700::1"},
	} {
		got := judged(t, p, rendezvous.PushCaller, url)
		if parts := [4]string{got.RequestTarget(), got.Authority(), got.Origin(), got.Host()}; parts != want || !got.Secure() || got.Scheme() != "https" || got.Namespace() != rendezvous.PushCaller {
			t.Errorf("%s: %q, want %q", url, parts, want)
		}
	}
	plain := judged(t, p, rendezvous.PushOperator, "http://receiver:80/x")
	if plain.Authority() != "receiver" || plain.Secure() || plain.Port() != 80 {
		t.Errorf("plain http: %q, port %d", plain.Authority(), plain.Port())
	}
}

func TestPU88OneRefusedAddressRefusesTheName(t *testing.T) {
	p := policy(t, target.Settings{CallerHosts: []string{"public"}})
	dns := &names{addresses: map[string][]string{
		"good.example": {"8.8.8.8", "2606:4700::1", "8.8.8.8"}, "loop.example": {"127.0.0.1"}, "mixed.example": {"8.8.8.8", "2606:4700::1", "10.0.0.1", "1.1.1.1"},
		"mapped.example": {"::ffff:8.8.4.4"}, "mappedbad.example": {"::ffff:10.0.0.1"}, "zone.example": {"fe80::1%eth0"}, "none.example": {},
	}}
	for name, want := range map[string][]string{"good.example": {"8.8.8.8", "2606:4700::1"}, "mapped.example": {"8.8.4.4"}} {
		got, err := p.Resolve(t.Context(), judged(t, p, rendezvous.PushCaller, "https://"+name+"/"), dns)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for name, address := range map[string]string{"loop.example": "127.0.0.1", "mixed.example": "10.0.0.1", "mappedbad.example": "::ffff:10.0.0.1", "zone.example": "fe80::1%eth0"} {
		got, err := p.Resolve(t.Context(), judged(t, p, rendezvous.PushCaller, "https://"+name+"/"), dns)
		var refused *target.Refusal
		if !errors.As(err, &refused) || refused.Rule != target.ForbiddenAddress || refused.Address != netip.MustParseAddr(address) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
			continue
		}
		if strings.Contains(err.Error(), address) {
			t.Errorf("%s: the refusal tells what is inside: %v", name, err)
		}
	}
	if _, err := p.Resolve(t.Context(), judged(t, p, rendezvous.PushCaller, "https://none.example/"), dns); !errors.Is(err, target.ErrNoAddress) {
		t.Errorf("an empty answer: %v", err)
	}
	var failed *net.DNSError
	if _, err := p.Resolve(t.Context(), judged(t, p, rendezvous.PushCaller, "https://unknown.example/"), dns); !errors.As(err, &failed) {
		t.Errorf("an unknown name: %v", err)
	}
}

func TestPU88NoMoreThan32Addresses(t *testing.T) {
	p := policy(t, target.Settings{CallerHosts: []string{"public"}})
	dns := &names{addresses: map[string][]string{}}
	for i := range 33 {
		dns.addresses["many.example"] = append(dns.addresses["many.example"], fmt.Sprintf("8.8.8.%d", i))
	}
	dns.addresses["enough.example"] = dns.addresses["many.example"][:32]
	if got, err := p.Resolve(t.Context(), judged(t, p, rendezvous.PushCaller, "https://enough.example/"), dns); err != nil || len(got) != 32 {
		t.Errorf("32 addresses: %d, %v", len(got), err)
	}
	if _, err := p.Resolve(t.Context(), judged(t, p, rendezvous.PushCaller, "https://many.example/"), dns); !errors.Is(err, target.ErrManyAddresses) {
		t.Errorf("33 addresses: %v", err)
	}
}

// PU-88, PU-89: the hook alone, whatever was judged before.
func TestPU88TheSocketHookAloneRefuses(t *testing.T) {
	p := policy(t, target.Settings{CallerHosts: []string{"public"}})
	caller := p.Control(judged(t, p, rendezvous.PushCaller, "https://hooks.example.com/"))
	operator := p.Control(judged(t, p, rendezvous.PushOperator, "https://hooks.example.com/"))
	for address, want := range map[string][2]target.Rule{
		"8.8.8.8:443":            {"", ""},
		"[2606:4700::1]:443":     {"", ""},
		"127.0.0.1:443":          {target.ForbiddenAddress, ""},
		"[::1]:443":              {target.ForbiddenAddress, ""},
		"[::ffff:127.0.0.1]:443": {target.ForbiddenAddress, ""},
		"10.0.0.1:443":           {target.ForbiddenAddress, ""},
		"169.254.169.254:443":    {target.ForbiddenAddress, target.ForbiddenAddress},
		"[fe80::1%eth0]:443":     {target.ForbiddenAddress, target.ForbiddenAddress},
		"8.8.8.8:22":             {target.ForbiddenAddress, target.ForbiddenAddress}, // not the port that was judged
		"hooks.example.com:443":  {target.ForbiddenAddress, target.ForbiddenAddress}, // not an address at all
	} {
		if got := [2]target.Rule{rule(t, caller("tcp", address, nil)), rule(t, operator("tcp", address, nil))}; got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	dialer := net.Dialer{Control: p.Control(judged(t, p, rendezvous.PushCaller, "https://hooks.example.com/"))}
	if _, err := dialer.DialContext(t.Context(), "tcp", "127.0.0.1:443"); rule(t, err) != target.ForbiddenAddress {
		t.Errorf("a dialer with the hook: %v", err)
	}
}

func TestPU92AddressesAreNotLookedUp(t *testing.T) {
	p := policy(t, target.Settings{CallerHosts: []string{"public"}})
	expect(t, p, rendezvous.PushCaller, map[string]target.Rule{"https://[fd00::1]/": target.ForbiddenLiteral, "https://[::1]/": target.ForbiddenLiteral, "https://[2606:4700::1]/": ""})
	exact := policy(t, target.Settings{CallerHosts: []string{"hooks.example.com"}})
	expect(t, exact, rendezvous.PushCaller, map[string]target.Rule{"https://[fd00::1]/": target.ForbiddenLiteral, "https://[2606:4700::1]/": target.HostNotGranted})
	granted := policy(t, target.Settings{CallerHosts: []string{"[2606:4700::1]", "[fd00::1]"}})
	expect(t, granted, rendezvous.PushCaller, map[string]target.Rule{"https://[2606:4700:0:0::1]/": "", "https://[fd00::1]/": target.ForbiddenLiteral})
	dns := &names{}
	for _, url := range []string{"https://[2606:4700::1]/", "https://8.8.8.8/"} {
		if got, err := p.Resolve(t.Context(), judged(t, p, rendezvous.PushCaller, url), dns); err != nil || len(got) != 1 || len(dns.asked) > 0 {
			t.Errorf("%s: %v, %v, asked %v", url, got, err, dns.asked)
		}
	}
}

func TestPU93DevLoopbackIsForGrantedLoopbackOnly(t *testing.T) {
	hosts := []string{"localhost", "app.localhost", "127.0.0.1", "[::1]", "hooks.example.com", "192.168.0.1"}
	on := policy(t, target.Settings{CallerHosts: hosts, DevLoopback: true})
	expect(t, on, rendezvous.PushCaller, map[string]target.Rule{
		"http://localhost:3000/": "", "https://localhost:3000/": "", "http://LOCALHOST./": "", "http://app.localhost:1/": "", "http://127.0.0.1:8080/": "", "http://[::1]:8080/": "",
		"http://other.localhost/": target.NotHTTPS, "https://other.localhost/": target.HostNotGranted,
		"http://127.0.0.2/": target.NotHTTPS, "https://127.0.0.2/": target.ForbiddenLiteral,
		"http://hooks.example.com/": target.NotHTTPS, "https://hooks.example.com:3000/": target.BadPort, "http://192.168.0.1/": target.NotHTTPS, "https://192.168.0.1/": target.ForbiddenLiteral,
		"http://notlocalhost/": target.NotHTTPS, "http://localhost.example.com/": target.NotHTTPS,
	})
	off := policy(t, target.Settings{CallerHosts: hosts})
	expect(t, off, rendezvous.PushCaller, map[string]target.Rule{
		"http://localhost:3000/": target.NotHTTPS, "https://localhost:3000/": target.BadPort, "https://127.0.0.1/": target.ForbiddenLiteral, "https://[::1]/": target.ForbiddenLiteral,
	})
	anybody := policy(t, target.Settings{CallerHosts: []string{"public"}, DevLoopback: true})
	expect(t, anybody, rendezvous.PushCaller, map[string]target.Rule{"http://localhost/": target.NotHTTPS, "http://127.0.0.1/": target.NotHTTPS, "https://127.0.0.1/": target.ForbiddenLiteral})

	dns := &names{addresses: map[string][]string{"localhost": {"8.8.8.8"}, "hooks.example.com": {"127.0.0.1"}}}
	for _, url := range []string{"http://localhost:3000/", "http://app.localhost:3000/"} {
		got, err := on.Resolve(t.Context(), judged(t, on, rendezvous.PushCaller, url), dns)
		if err != nil || fmt.Sprint(got) != "[127.0.0.1 ::1]" || len(dns.asked) > 0 {
			t.Errorf("%s: %v, %v, asked %v", url, got, err, dns.asked)
		}
	}
	if err := on.Control(judged(t, on, rendezvous.PushCaller, "http://localhost:3000/"))("tcp", "127.0.0.1:3000", nil); err != nil {
		t.Errorf("the hook: %v", err)
	}
	if _, err := on.Resolve(t.Context(), judged(t, on, rendezvous.PushCaller, "https://hooks.example.com/"), dns); rule(t, err) != target.ForbiddenAddress {
		t.Errorf("a granted public name that stands for loopback: %v", err)
	}
	if _, err := off.Resolve(t.Context(), judged(t, off, rendezvous.PushCaller, "https://localhost/"), dns); rule(t, err) != target.ForbiddenAddress {
		t.Errorf("localhost without the setting: %v", err)
	}
}

func TestPU94OperatorsAreExemptFromAllButTheLastRow(t *testing.T) {
	p := policy(t, target.Settings{})
	expect(t, p, rendezvous.PushOperator, map[string]target.Rule{
		"http://10.0.0.1:9000/x": "", "http://receiver:8080/": "", "http://127.0.0.1/": "", "https://anything.example:1/": "", "http://[fd00::1]/": "",
		"http://169.254.169.254/latest": target.ForbiddenLiteral, "http://[fd00:ec2::254]/": target.ForbiddenLiteral, "http://0.0.0.0/": target.ForbiddenLiteral,
		"http://user@10.0.0.1/": target.MalformedURL, "http://10.0.0.1/#x": target.MalformedURL, "gopher://10.0.0.1/": target.MalformedURL, "http://0x7f.1/": target.MalformedURL,
	})
	dns := &names{addresses: map[string][]string{"inside": {"10.0.0.1"}, "metadata": {"169.254.169.254"}}}
	if got, err := p.Resolve(t.Context(), judged(t, p, rendezvous.PushOperator, "http://inside/"), dns); err != nil || len(got) != 1 {
		t.Errorf("a private name: %v, %v", got, err)
	}
	if _, err := p.Resolve(t.Context(), judged(t, p, rendezvous.PushOperator, "http://metadata/"), dns); rule(t, err) != target.ForbiddenAddress {
		t.Errorf("a name of the metadata service: %v", err)
	}
	lifted := policy(t, target.Settings{CallerHosts: []string{"public"}, OperatorAllow: []netip.Addr{netip.MustParseAddr("169.254.10.1")}})
	expect(t, lifted, rendezvous.PushOperator, map[string]target.Rule{"http://169.254.10.1/": "", "http://169.254.10.2/": target.ForbiddenLiteral})
	expect(t, lifted, rendezvous.PushCaller, map[string]target.Rule{"https://169.254.10.1/": target.ForbiddenLiteral})
}

func TestPU94AllowNetworksLiftsTheTableOnly(t *testing.T) {
	p := policy(t, target.Settings{
		CallerHosts:   []string{"inside.example", "10.1.2.3", "169.254.169.254"},
		AllowNetworks: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fd00::/8")},
	})
	expect(t, p, rendezvous.PushCaller, map[string]target.Rule{
		"https://10.1.2.3/": "", "http://10.1.2.3/": target.NotHTTPS, "https://10.1.2.3:9000/": target.BadPort, "https://10.1.2.4/": target.HostNotGranted, "https://10.2.0.1/": target.ForbiddenLiteral,
		"https://169.254.169.254/": target.ForbiddenLiteral,
	})
	dns := &names{addresses: map[string][]string{"inside.example": {"10.1.0.1", "fd00::1"}}}
	inside := judged(t, p, rendezvous.PushCaller, "https://inside.example/")
	if got, err := p.Resolve(t.Context(), inside, dns); err != nil || len(got) != 2 {
		t.Errorf("allowed networks: %v, %v", got, err)
	}
	dns.addresses["inside.example"] = []string{"fd00:ec2::254"}
	if _, err := p.Resolve(t.Context(), inside, dns); rule(t, err) != target.ForbiddenAddress {
		t.Errorf("the metadata address in an allowed network: %v", err)
	}
}

// A caller's name is never completed from this machine's search list; an operator's is.
func TestCallersNamesAreLookedUpAsTheyStand(t *testing.T) {
	p := policy(t, target.Settings{CallerHosts: []string{"public"}})
	dns := &names{addresses: map[string][]string{"receiver": {"8.8.8.8"}}}
	for _, namespace := range []rendezvous.PushNamespace{rendezvous.PushCaller, rendezvous.PushOperator} {
		if _, err := p.Resolve(t.Context(), judged(t, p, namespace, "https://receiver/"), dns); err != nil {
			t.Error(err)
		}
	}
	if fmt.Sprint(dns.asked) != "[ip receiver. ip receiver]" {
		t.Errorf("asked %v", dns.asked)
	}
}

func TestThePlanesOwnListenersAreRefused(t *testing.T) {
	p := policy(t, target.Settings{CallerHosts: []string{"public"}, Self: []netip.AddrPort{netip.MustParseAddrPort("8.8.8.8:443"), netip.MustParseAddrPort("[::]:9000"), netip.MustParseAddrPort("[::ffff:10.0.0.1]:80")}})
	expect(t, p, rendezvous.PushCaller, map[string]target.Rule{"https://8.8.8.8/": target.ForbiddenLiteral, "https://8.8.8.8:8443/": "", "https://8.8.4.4/": ""})
	expect(t, p, rendezvous.PushOperator, map[string]target.Rule{
		"https://8.8.8.8/": target.ForbiddenLiteral, "http://127.0.0.1:9000/": target.ForbiddenLiteral, "http://[fd00::1]:9000/": target.ForbiddenLiteral, "http://127.0.0.1:9001/": "", "http://10.0.0.1/": target.ForbiddenLiteral,
	})
}

func FuzzJudge(f *testing.F) {
	for _, seed := range []string{"https://hooks.example.com/a?b", "https://[::1]:443", "https://bücher.example", "https://0x7f.1", "http://u@h#x", "https://ａ。ｂ"} {
		f.Add(seed)
	}
	p, err := target.New(target.Settings{CallerHosts: []string{"public"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, url string) {
		got, err := p.Judge(rendezvous.PushCaller, url)
		if rule(t, err) != "" {
			return
		}
		// What passes is canonical: read again from its own parts it is the same target.
		again, err := p.Judge(rendezvous.PushCaller, got.Origin()+got.RequestTarget())
		if err != nil || again != got {
			t.Errorf("%q: %#v, again %#v, %v", url, got, again, err)
		}
		if !strings.HasSuffix(url, strings.TrimPrefix(got.RequestTarget(), "/")) {
			t.Errorf("%q: request target %q", url, got.RequestTarget())
		}
	})
}
