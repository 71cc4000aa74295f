package transport_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/push/target"
	"github.com/rendezvous-events/rendezvous/push/transport"
)

// A connection that the receiver closed while it was idle, or spoke on unasked, is not used, and no request is lost to it.
func TestAConnectionThatHungUpWhileIdleIsNotUsed(t *testing.T) {
	trust := newAuthority(t)
	for name, script := range map[string]func(p *peer){
		"hangs up":             func(p *peer) { p.request(); p.say(ok204); p.Conn.Close() },
		"speaks without a cue": func(p *peer) { p.request(); p.say(ok204); p.say(ok204); p.gone() },
	} {
		for _, secured := range []bool{false, true} {
			var config *tls.Config
			if secured {
				config = trust.serve(t, "hooks.test")
			}
			r := receive(t, config, script)
			c := client(t, clock.System, inside(t, r.port()), known)
			request := operator(r.plain("/"))
			if secured {
				request = caller(r.secure("/"), trust)
			}
			for range 3 {
				if expectStatus(t, c.Do(t.Context(), request), 204); t.Failed() {
					t.Fatalf("%s, TLS %v", name, secured)
				}
				c.Hung()
			}
			if connections, heads := r.seen(); connections != 3 || len(heads) != 3 || c.Idle() != 0 {
				t.Errorf("%s, TLS %v: %d connections, %d requests, %d idle", name, secured, connections, len(heads), c.Idle())
			}
		}
	}
}

// The connection is kept exactly when its answer ended where it said it would.
func TestWhichConnectionsAreKept(t *testing.T) {
	for answer, kept := range map[string]bool{
		ok204: true,
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello":                                                            true,
		"HTTP/1.1 500 No\r\nContent-Length: 16384\r\n\r\n" + strings.Repeat("x", 16384):                                true,
		"HTTP/1.1 500 No\r\nContent-Length: 16385\r\n\r\n" + strings.Repeat("x", 16385):                                false,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n":                                 true,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nTrailer: x\r\n\r\n":               true,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n4001\r\n" + strings.Repeat("x", 16385) + "\r\n0\r\n\r\n": false,
		"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n":                                            false,
		"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n":                                         false,
		"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n":                                                                 false,
		"HTTP/1.1 101 Switching Protocols\r\n\r\n":                                                                     false,
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n":                                                       true,
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n":                                            true,
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nContent-Length: 1\r\n\r\n":                                            false,
		"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n":                                 true,
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("A: b\r\n", 20) + "\r\n":         false,
	} {
		r := receive(t, nil, always(answer))
		c := client(t, clock.System, inside(t), nil)
		a := c.Do(t.Context(), operator(r.plain("/")))
		if a.Err != nil || (c.Idle() == 1) != kept {
			t.Errorf("%.90q: %v, kept %v, want %v", answer, a.Err, c.Idle() == 1, kept)
		}
	}
}

func TestConnectionsCloseWhenIdleForAMinute(t *testing.T) {
	clk := newClock()
	closed := make(chan struct{})
	r := receive(t, nil, func(p *peer) { always(ok204)(p); close(closed) })
	c := client(t, clk, inside(t), nil)
	expectStatus(t, c.Do(t.Context(), operator(r.plain("/"))), 204)
	await(clk.made, time.Minute, 1) // the keeper's
	clk.Advance(time.Minute - 1)
	expectStatus(t, c.Do(t.Context(), operator(r.plain("/"))), 204)
	clk.Advance(time.Minute - 1) // the keeper looks, at the first instant, and waits for the second
	await(clk.made, 1, 1)
	if c.Idle() != 1 {
		t.Fatal("closed before it was idle for a minute")
	}
	clk.Advance(1)
	<-closed
	if connections, _ := r.seen(); connections != 1 {
		t.Errorf("%d connections", connections)
	}
}

func TestConnectionsCloseAtTenMinutes(t *testing.T) {
	clk := newClock()
	var closed sync.WaitGroup
	closed.Add(1)
	r := receive(t, nil, func(p *peer) {
		always(ok204)(p)
		if p.index == 0 {
			closed.Done()
		}
	})
	c := client(t, clk, inside(t), nil)
	request := operator(r.plain("/"))
	for range 20 { // every half a minute, up to 9:30, where a request of 30 s would still be in time, but not a moment later
		expectStatus(t, c.Do(t.Context(), request), 204)
		clk.Advance(30 * time.Second)
	}
	closed.Wait() // it was idle, and the minute was not over
	expectStatus(t, c.Do(t.Context(), request), 204)
	if connections, heads := r.seen(); connections != 2 || len(heads) != 21 {
		t.Errorf("%d connections for %d requests", connections, len(heads))
	}
}

// A request does not take a connection that would be older than ten minutes by its end.
func TestARequestIsOverBeforeItsConnectionIsTooOld(t *testing.T) {
	clk := newClock()
	r := receive(t, nil, always(ok204))
	c := client(t, clk, inside(t), nil)
	for range 19 {
		expectStatus(t, c.Do(t.Context(), operator(r.plain("/"))), 204)
		clk.Advance(31 * time.Second)
	}
	if connections, _ := r.seen(); connections != 1 {
		t.Fatalf("%d connections before", connections)
	}
	if a := c.Do(t.Context(), operator(r.plain("/"))); a.Err != nil || a.Reused {
		t.Errorf("at 9:49: %v, reused %v", a.Err, a.Reused)
	}
}

func TestIdleConnectionsAreBounded(t *testing.T) {
	r := receive(t, nil, always(ok204))
	other := receive(t, nil, always(ok204))
	c := transport.New(transport.Settings{Policy: inside(t), Clock: clock.System, IdlePerHost: 2, Idle: 3})
	t.Cleanup(c.Close)
	atOnce := func(r *receiver, n int) {
		var all sync.WaitGroup
		gate := make(chan struct{})
		c.Dial(func(ctx context.Context, d *net.Dialer, address string) (net.Conn, error) {
			conn, err := d.DialContext(ctx, "tcp", address)
			<-gate
			return conn, err
		})
		for range n {
			all.Go(func() { expectStatus(t, c.Do(t.Context(), operator(r.plain("/"))), 204) })
		}
		close(gate)
		all.Wait()
	}
	atOnce(r, 5)
	if n := c.Idle(); n > 2 {
		t.Errorf("%d idle of one host, 2 may be", n)
	}
	atOnce(other, 5)
	if n := c.Idle(); n > 3 {
		t.Errorf("%d idle, 3 may be", n)
	}
}

func TestAnotherPolicyClosesIdleConnections(t *testing.T) {
	during := make(chan struct{})
	r := receive(t, nil, func(p *peer) {
		for p.request() {
			if p.index == 1 {
				during <- struct{}{}
				<-during
			}
			p.say(ok204)
		}
	})
	c := client(t, clock.System, inside(t), nil)
	expectStatus(t, c.Do(t.Context(), operator(r.plain("/"))), 204)
	c.SetPolicy(inside(t))
	done := start(t, c, operator(r.plain("/")))
	<-during
	c.SetPolicy(inside(t)) // while a request is on its way: it is answered, and its connection serves no other
	during <- struct{}{}
	expectStatus(t, <-done, 204)
	if n := c.Idle(); n != 0 {
		t.Errorf("%d connections of the policy before are kept", n)
	}
	expectStatus(t, c.Do(t.Context(), operator(r.plain("/"))), 204)
	if connections, _ := r.seen(); connections != 3 {
		t.Errorf("%d connections, want one for each policy", connections)
	}
}

// A connection opened under operator rules never carries a caller's POST, nor the reverse, and hosts do not share one either.
func TestPU83ConnectionsAreNotSharedBetweenNamespaces(t *testing.T) {
	trust := newAuthority(t)
	r := receive(t, trust.serve(t, "hooks.test"), always(ok204))
	c := client(t, clock.System, inside(t, r.port()), known)
	asCaller := caller(r.secure("/"), trust)
	asOperator := asCaller
	asOperator.Namespace = rendezvous.PushOperator
	for range 2 {
		expectStatus(t, c.Do(t.Context(), asCaller), 204)
		expectStatus(t, c.Do(t.Context(), asOperator), 204)
	}
	if connections, heads := r.seen(); connections != 2 || len(heads) != 4 {
		t.Errorf("%d connections for %d requests, want 2", connections, len(heads))
	}
}

func TestPU83ClientCertificatesAndAuthoritiesHaveTheirOwnConnections(t *testing.T) {
	trust, clients := newAuthority(t), newAuthority(t)
	config := trust.serve(t, "hooks.test")
	config.ClientAuth = tls.RequestClientCert
	var mu sync.Mutex
	presented := map[string]int{}
	r := receive(t, config, func(p *peer) {
		for p.request() {
			name := "none"
			if certs := p.Conn.(*tls.Conn).ConnectionState().PeerCertificates; len(certs) > 0 {
				name = certs[0].Subject.CommonName
			}
			mu.Lock()
			presented[name]++
			mu.Unlock()
			p.say(ok204)
		}
	})
	c := client(t, clock.System, inside(t, r.port()), known)
	requests := []transport.Request{caller(r.secure("/"), trust)}
	for _, name := range []string{"a", "b"} {
		cert, key := clients.issue(t, name)
		request := caller(r.secure("/"), trust)
		request.TLS.Certificates, request.TLS.Key = cert, rendezvous.NewSecret(key)
		requests = append(requests, request)
	}
	more := requests[0]
	more.TLS.Authorities += clients.pem
	requests = append(requests, more)
	for range 3 {
		for _, request := range requests {
			expectStatus(t, c.Do(t.Context(), request), 204)
		}
	}
	if connections, _ := r.seen(); connections != 4 || presented["none"] != 6 || presented["a"] != 3 || presented["b"] != 3 {
		t.Errorf("%d connections, presented %v", connections, presented)
	}
}

func TestPU83ACertificateThatMustBePresentedIs(t *testing.T) {
	trust, clients := newAuthority(t), newAuthority(t)
	config := trust.serve(t, "hooks.test")
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	config.ClientCAs.AddCert(clients.cert)
	r := receive(t, config, always(ok204))
	c := client(t, clock.System, inside(t, r.port()), known)
	request := caller(r.secure("/"), trust)
	if a := c.Do(t.Context(), request); a.Err == nil || a.Err.Class != rendezvous.ClassSilent {
		t.Errorf("without one: %+v", a)
	}
	cert, key := clients.issue(t, "the client")
	request.TLS.Certificates, request.TLS.Key = cert, rendezvous.NewSecret(key)
	expectStatus(t, c.Do(t.Context(), request), 204)
}

func TestPU83WhatTLSRefuses(t *testing.T) {
	trust, stranger := newAuthority(t), newAuthority(t)
	old := trust.serve(t, "hooks.test")
	old.MinVersion, old.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	minimal := trust.serve(t, "hooks.test")
	minimal.MaxVersion = tls.VersionTLS12
	for name, c := range map[string]struct {
		config *tls.Config
		trust  *authority
		good   bool
	}{
		"TLS 1.2":                     {minimal, trust, true},
		"TLS 1.1":                     {old, trust, false},
		"another name":                {trust.serve(t, "other.test"), trust, false},
		"an address":                  {trust.serve(t, "127.0.0.1"), trust, false},
		"signed by somebody":          {stranger.serve(t, "hooks.test"), trust, false},
		"not among the system's":      {trust.serve(t, "hooks.test"), nil, false},
		"its own authority in a CA":   {trust.serve(t, "hooks.test"), trust, true},
		"the bundle replaces the own": {trust.serve(t, "hooks.test"), stranger, false},
	} {
		r := receive(t, c.config, always(ok204))
		a := client(t, clock.System, inside(t, r.port()), known).Do(t.Context(), caller(r.secure("/"), c.trust))
		if c.good {
			expectStatus(t, a, 204)
			continue
		}
		expectError(t, a, rendezvous.ClassSilent, transport.CodeTLS, false)
		if _, heads := r.seen(); len(heads) > 0 {
			t.Errorf("%s: a request was sent", name)
		}
	}
	expired := newClock()
	r := receive(t, trust.serve(t, "hooks.test"), always(ok204))
	expired.Advance(2000 * time.Hour)
	expectError(t, client(t, expired, inside(t, r.port()), known).Do(t.Context(), caller(r.secure("/"), trust)), rendezvous.ClassSilent, transport.CodeTLS, false)
}

func TestPU83AnUnusableCertificateParks(t *testing.T) {
	c := client(t, clock.System, inside(t), known)
	for _, own := range []rendezvous.PushTLS{
		{Certificates: "no PEM", Key: rendezvous.NewSecret("s3cr3t")}, {Authorities: "no PEM"},
	} {
		request := caller("https://hooks.test/", nil)
		request.TLS = own
		a := c.Do(t.Context(), request)
		expectError(t, a, rendezvous.ClassConfig, transport.CodeBadKey, false)
		if a.Err.Park != rendezvous.ParkBadKey || strings.Contains(a.Err.Error(), "s3cr3t") {
			t.Errorf("%v parks %q", a.Err, a.Err.Park)
		}
	}
}

// The certificate is asked for the registered name, though the dial goes to an address.
func TestTheServerNameIsTheRegisteredName(t *testing.T) {
	trust := newAuthority(t)
	config := trust.serve(t, "hooks.test")
	names := make(chan string, 1)
	config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) { names <- hello.ServerName; return nil, nil }
	r := receive(t, config, always(ok204))
	a := client(t, clock.System, inside(t, r.port()), known).Do(t.Context(), caller("https://HOOKS.test.:"+strconv.Itoa(r.port())+"/", trust))
	expectStatus(t, a, 204)
	if name := <-names; name != "hooks.test" {
		t.Errorf("asked for %q", name)
	}
	if _, heads := r.seen(); !strings.Contains(heads[0], "\r\nHost: hooks.test:"+strconv.Itoa(r.port())+"\r\n") {
		t.Errorf("%q", heads[0])
	}
}

func TestPU88NothingIsDialledForARefusedName(t *testing.T) {
	p, err := target.New(target.Settings{CallerHosts: []string{"public"}})
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, clock.System, p, dns{"loop.test": {"127.0.0.1"}, "mixed.test": {"8.8.8.8", "10.0.0.1"}})
	c.Dial(func(context.Context, *net.Dialer, string) (net.Conn, error) {
		t.Error("dialled")
		return nil, errors.New("no")
	})
	for _, url := range []string{"https://loop.test/", "https://mixed.test/"} {
		a := c.Do(t.Context(), caller(url, nil))
		expectError(t, a, rendezvous.ClassForbidden, string(target.ForbiddenAddress), false)
		if a.Err.Park != "" || strings.Contains(a.Err.Error(), "127.0.0.1") || strings.Contains(a.Err.Error(), "10.0.0.1") {
			t.Errorf("%v parks %q", a.Err, a.Err.Park)
		}
	}
}

// PU-89: public when it was judged, private when the socket connects.
func TestPU89TheSocketIsJudgedAgain(t *testing.T) {
	r := receive(t, nil, always(ok204))
	p, err := target.New(target.Settings{CallerHosts: []string{"hooks.test"}, CallerPorts: []int{r.port()}})
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, clock.System, p, dns{"hooks.test": {"8.8.8.8"}})
	c.Dial(func(ctx context.Context, d *net.Dialer, _ string) (net.Conn, error) {
		return d.DialContext(ctx, "tcp", r.listener.Addr().String())
	})
	expectError(t, c.Do(t.Context(), caller(r.secure("/"), nil)), rendezvous.ClassForbidden, string(target.ForbiddenAddress), false)
	if connections, _ := r.seen(); connections > 0 {
		t.Error("connected")
	}
}

// PU-67, PU-85..PU-87: what is wrong with a URL parks, by its rule, and nothing is looked up.
func TestPU67AURLThatMayNotBeUsedParksByItsRule(t *testing.T) {
	c := client(t, clock.System, inside(t), dns{})
	for url, reason := range map[string]rendezvous.ParkReason{
		"https://elsewhere.test/secret":  rendezvous.ParkHostNotGranted,
		"http://hooks.test/secret":       rendezvous.ParkNotHTTPS,
		"https://hooks.test:444/secret":  rendezvous.ParkBadPort,
		"https://[fd00::1]/secret":       rendezvous.ParkForbiddenLiteral,
		"https://hooks.test/#secret":     rendezvous.ParkMalformedURL,
		"https://u:secret@hooks.test/":   rendezvous.ParkMalformedURL,
		"https://169.254.169.254/secret": rendezvous.ParkForbiddenLiteral,
	} {
		a := c.Do(t.Context(), caller(url, nil))
		expectError(t, a, rendezvous.ClassConfig, string(reason), false)
		if a.Err.Park != reason || strings.Contains(a.Err.Error(), "secret") {
			t.Errorf("%s: %v parks %q", url, a.Err, a.Err.Park)
		}
	}
}

func TestPU92BracketedLoopbackIsDialledUnderDevLoopback(t *testing.T) {
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatalf("this machine has no IPv6 loopback, which the test is about: %v", err)
	}
	listener.Close()
	r := receive(t, nil, always(ok204))
	p, err := target.New(target.Settings{CallerHosts: []string{"[::1]", "127.0.0.1", "localhost"}, DevLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, clock.System, p, dns{})
	for _, host := range []string{"127.0.0.1", "localhost"} {
		expectStatus(t, c.Do(t.Context(), caller("http://"+host+":"+strconv.Itoa(r.port())+"/", nil)), 204)
	}
	a := c.Do(t.Context(), caller("http://[::1]:"+strconv.Itoa(r.port())+"/", nil))
	if a.Err == nil || a.Err.Class != rendezvous.ClassSilent || a.Address != netip.AddrPortFrom(netip.IPv6Loopback(), uint16(r.port())) {
		t.Errorf("[::1]: %+v, %v: it should be dialled, and nobody be there", a, a.Err)
	}
}

func TestPU94OperatorsDialPrivateAddressesAndCallersDoNot(t *testing.T) {
	gone := receive(t, nil, always(ok204))
	gone.listener.Close()
	p, err := target.New(target.Settings{CallerHosts: []string{"public"}, CallerPorts: []int{gone.port()}})
	if err != nil {
		t.Fatal(err)
	}
	c := client(t, clock.System, p, dns{})
	expectError(t, c.Do(t.Context(), operator(gone.plain("/"))), rendezvous.ClassSilent, transport.CodeConnect, false)
	expectError(t, c.Do(t.Context(), caller("https://127.0.0.1:"+strconv.Itoa(gone.port())+"/", nil)), rendezvous.ClassConfig, string(target.ForbiddenLiteral), false)
	for _, request := range []transport.Request{operator("http://169.254.169.254/latest"), caller("https://169.254.169.254:"+strconv.Itoa(gone.port())+"/", nil)} {
		expectError(t, c.Do(t.Context(), request), rendezvous.ClassConfig, string(target.ForbiddenLiteral), false)
	}
}

// The proxy settings of the environment mean nothing.
func TestPU82TheEnvironmentsProxyIsIgnored(t *testing.T) {
	proxy := receive(t, nil, always(ok204))
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, proxy.plain(""))
	}
	r := receive(t, nil, always(ok204))
	expectStatus(t, client(t, clock.System, inside(t), nil).Do(t.Context(), operator(r.plain("/"))), 204)
	if connections, _ := proxy.seen(); connections > 0 {
		t.Error("the proxy was asked")
	}
}

func TestPU84TextOfABodyIsOneLineAndBounded(t *testing.T) {
	for body, want := range map[string]string{
		"plain": "plain", "a\nb\x00\xff\"": `a\nb\x00\xff\"`, "größe": "größe", "": "", strings.Repeat("x", 2000): strings.Repeat("x", 1024),
	} {
		if got := transport.Text([]byte(body), 1024); got != want {
			t.Errorf("%.20q: %.40q", body, got)
		}
	}
	if got := transport.Text(make([]byte, 16<<10), 16<<10); len(got) > rendezvous.MaxPushResponse || len(got) < rendezvous.MaxPushResponse-4 {
		t.Errorf("%d bytes of escapes", len(got))
	}
}
