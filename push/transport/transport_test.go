package transport_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/push/transport"
)

// PU-73: the request on the wire, byte for byte: the registered request target, the headers in their letter case and order, a length, and nothing else.
func TestPU73TheRequestByteForByte(t *testing.T) {
	r := receive(t, nil, always(ok204))
	request := operator(r.plain("/a/../b//%41|{}?x=%2F&y='&Z=a+b"))
	request.Headers = []transport.Header{{"Content-Type", "application/cloudevents+json"}, {"webhook-id", "run/1/0"}, {"X-lower-UPPER", "a  b"}, {"rendezvous-attempt", "1"}}
	expectStatus(t, client(t, clock.System, inside(t), nil).Do(t.Context(), request), 204)
	want := "POST /a/../b//%41|{}?x=%2F&y='&Z=a+b HTTP/1.1\r\nHost: 127.0.0.1:" + strconv.Itoa(r.port()) + "\r\nContent-Type: application/cloudevents+json\r\nwebhook-id: run/1/0\r\n" +
		"X-lower-UPPER: a  b\r\nrendezvous-attempt: 1\r\nContent-Length: 7\r\n\r\n"
	if _, heads := r.seen(); len(heads) != 1 || heads[0] != want || r.bodies[0] != `{"n":1}` {
		t.Errorf("%q %q, want %q", heads, r.bodies, want)
	}
}

// PU-73: a body of any size has a length and is never chunked.
func TestPU73BodiesOfAnySizeHaveALength(t *testing.T) {
	r := receive(t, nil, always(ok204))
	c := client(t, clock.System, inside(t), nil)
	for _, size := range []int{0, 1, 16 << 10, 16<<10 + 1, 2 << 20} {
		request := operator(r.plain(""))
		request.Body = []byte(strings.Repeat("x", size))
		expectStatus(t, c.Do(t.Context(), request), 204)
		_, heads := r.seen()
		if head := heads[len(heads)-1]; !strings.Contains(head, "\r\nContent-Length: "+strconv.Itoa(size)+"\r\n") || strings.Contains(head, "chunked") || len(r.bodies[len(heads)-1]) != size {
			t.Errorf("%d bytes: %q", size, head)
		}
	}
	if connections, _ := r.seen(); connections != 1 {
		t.Errorf("%d connections", connections)
	}
}

func TestPU73HeadersThatBreakOutAreRefusedBeforeAByteIsWritten(t *testing.T) {
	r := receive(t, nil, always(ok204))
	c := client(t, clock.System, inside(t), nil)
	for _, h := range []transport.Header{
		{"X", "a\r\nY: b"},
		{"X", "a\nb"},
		{"X", "a\x00"},
		{"X", "ü"},
		{"X\r\n", "a"},
		{"X:", "a"},
		{"", "a"},
		{"X Y", "a"},
		{"Host", "other"},
		{"content-length", "1"},
		{"Transfer-Encoding", "chunked"},
		{"CONNECTION", "close"},
	} {
		request := operator(r.plain("/"))
		request.Headers = []transport.Header{h}
		a := c.Do(t.Context(), request)
		expectError(t, a, rendezvous.ClassConfig, transport.CodeBadHeader, false)
		if a.Err.Park != rendezvous.ParkBadHeader {
			t.Errorf("parks %q", a.Err.Park)
		}
	}
	if connections, _ := r.seen(); connections != 0 {
		t.Errorf("%d connections", connections)
	}
	if shown := fmt.Sprintf("%v %+v %#v %s", []transport.Header{{"X", "s3cr3t"}}, transport.Header{"X", "s3cr3t"}, transport.Header{"X", "s3cr3t"}, transport.Header{"X", "s3cr3t"}); strings.Contains(shown, "s3cr3t") {
		t.Errorf("a header shows its value: %s", shown)
	}
}

func TestPU59RedirectsAreNotVisited(t *testing.T) {
	elsewhere := receive(t, nil, always(ok204))
	for _, status := range []int{300, 301, 302, 303, 304, 307, 308} {
		r := receive(t, nil, always(fmt.Sprintf("HTTP/1.1 %d Elsewhere\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", status, elsewhere.plain("/"))))
		c := client(t, clock.System, inside(t), nil)
		for range 2 {
			expectStatus(t, c.Do(t.Context(), operator(r.plain("/"))), status)
		}
		if connections, heads := r.seen(); connections != 1 || len(heads) != 2 {
			t.Errorf("%d: %d connections, %d requests", status, connections, len(heads))
		}
	}
	if connections, _ := elsewhere.seen(); connections != 0 {
		t.Errorf("the Location was contacted %d times", connections)
	}
}

// Whatever number stands in a status line is the outcome; it is another's to say what it means.
func TestEveryStatusIsAnOutcome(t *testing.T) {
	for _, line := range []string{"HTTP/1.1 200 OK", "HTTP/1.0 200 OK", "HTTP/1.1 206", "HTTP/1.1 410 Gone", "HTTP/1.1 500 ", "HTTP/1.1 999 x", "HTTP/1.1 000 x", "HTTP/1.1 101 Switching"} {
		r := receive(t, nil, always(line+"\r\nContent-Length: 2\r\nRetry-After: 7\r\n\r\nhi"))
		a := client(t, clock.System, inside(t), nil).Do(t.Context(), operator(r.plain("/")))
		status, _ := strconv.Atoi(strings.Fields(line)[1])
		expectStatus(t, a, status)
		if a.Header.Get("Retry-After") != "7" || status != 101 && string(a.Body) != "hi" {
			t.Errorf("%s: %v %q", line, a.Header, a.Body)
		}
	}
}

func TestPU69WhatIsNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		script func(p *peer)
		code   string
	}{
		"closed at once":            {func(p *peer) { p.request() }, transport.CodeDisconnected},
		"closed in the status line": {func(p *peer) { p.request(); p.say("HTTP/1.1 200") }, transport.CodeDisconnected},
		"closed in the headers":     {func(p *peer) { p.request(); p.say("HTTP/1.1 200 OK\r\nA: b\r\n") }, transport.CodeDisconnected},
		"reset":                     {func(p *peer) { p.request(); _ = p.Conn.(*net.TCPConn).SetLinger(0) }, transport.CodeDisconnected},
		"not HTTP":                  {always("SSH-2.0-OpenSSH_9\r\n\r\n"), transport.CodeMalformed},
		"HTTP/2":                    {always("HTTP/2.0 200 OK\r\n\r\n"), transport.CodeMalformed},
		"HTTP/1.10":                 {always("HTTP/1.10 200 OK\r\n\r\n"), transport.CodeMalformed},
		"four digits":               {always("HTTP/1.1 2000 OK\r\n\r\n"), transport.CodeMalformed},
		"no digits":                 {always("HTTP/1.1 2x0 OK\r\n\r\n"), transport.CodeMalformed},
		"signed":                    {always("HTTP/1.1 +20 OK\r\n\r\n"), transport.CodeMalformed},
		"a bad header":              {always("HTTP/1.1 200 OK\r\nno colon\r\n\r\n"), transport.CodeMalformed},
		"a blank line first":        {always("\r\nHTTP/1.1 200 OK\r\n\r\n"), transport.CodeMalformed},
		"six informational":         {always(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 6) + ok204), transport.CodeMalformed},
		"a header section too large": {
			always("HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 32<<10-len("HTTP/1.1 200 OK\r\nA: \r\n\r\n")+1) + "\r\n\r\n"), transport.CodeHeaderTooLarge,
		},
		"a header line without end": {func(p *peer) { p.request(); p.say(strings.Repeat("x", 64<<10)); p.gone() }, transport.CodeHeaderTooLarge},
	} {
		r := receive(t, nil, c.script)
		a := client(t, clock.System, inside(t), nil).Do(t.Context(), operator(r.plain("/secret?secret")))
		expectError(t, a, rendezvous.ClassSilent, c.code, true)
		if connections, heads := r.seen(); connections != 1 || len(heads) != 1 {
			t.Errorf("%s: %d connections, %d requests", name, connections, len(heads))
		}
		if a.Err != nil && (strings.Contains(a.Err.Error(), "secret") || strings.Contains(a.Err.Error(), "127.0.0.1")) {
			t.Errorf("%s: %v", name, a.Err)
		}
	}
}

func TestPU69WhatIsStillAnAnswer(t *testing.T) {
	for name, answer := range map[string]string{
		"five informational":     "HTTP/1.1 100 Continue\r\n\r\n" + strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 4) + ok204[:13] + "No Content\r\n\r\n",
		"a full header section":  "HTTP/1.1 204 OK\r\nA: " + strings.Repeat("x", 32<<10-len("HTTP/1.1 204 OK\r\nA: \r\n\r\n")) + "\r\n\r\n",
		"bare line feeds":        "HTTP/1.1 204 OK\nA: b\n\n",
		"a body although 204":    "HTTP/1.1 204 OK\r\nContent-Length: 5\r\n\r\nhello",
		"lengths that differ":    "HTTP/1.1 204 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
		"a strange coding":       "HTTP/1.1 204 OK\r\nTransfer-Encoding: gzip, identity\r\n\r\nhello",
		"a header twice, folded": "HTTP/1.1 204 OK\r\nA: b\r\n c\r\nA: d\r\n\r\n",
	} {
		r := receive(t, nil, always(answer))
		a := client(t, clock.System, inside(t), nil).Do(t.Context(), operator(r.plain("/")))
		if expectStatus(t, a, 204); t.Failed() {
			t.Fatal(name)
		}
	}
	for name, rest := range map[string]string{
		"no length at all":     "\r\n\r\nhello",
		"a bad length":         "\r\nContent-Length: -1\r\n\r\nhello",
		"a length of words":    "\r\nContent-Length: five\r\n\r\nhello",
		"a short body":         "\r\nContent-Length: 50\r\n\r\nhello",
		"lengths that differ":  "\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
		"a strange coding":     "\r\nTransfer-Encoding: br\r\n\r\nhello",
		"a chunk that is none": "\r\nTransfer-Encoding: chunked\r\n\r\nhello",
		"a trailer cut off":    "\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n",
	} {
		r := receive(t, nil, func(p *peer) { p.request(); p.say("HTTP/1.1 200 OK" + rest) })
		if expectStatus(t, client(t, clock.System, inside(t), nil).Do(t.Context(), operator(r.plain("/"))), 200); t.Failed() {
			t.Fatal(name)
		}
	}
}

func TestPU69WhatFailsBeforeTheRequest(t *testing.T) {
	free := receive(t, nil, always(ok204))
	free.listener.Close()
	c := client(t, clock.System, inside(t), dns{"empty.test": {}, "many.test": slices.Repeat([]string{"8.8.8.8"}, 33)})
	for url, code := range map[string]string{
		free.plain("/secret"):         transport.CodeConnect,
		"http://unknown.test/secret":  transport.CodeDNS,
		"http://empty.test/secret":    transport.CodeDNS,
		"http://many.test/secret":     transport.CodeDNS,
		"https://unknown.test/secret": transport.CodeDNS,
	} {
		a := c.Do(t.Context(), operator(url))
		expectError(t, a, rendezvous.ClassSilent, code, false)
		if shown := a.Err.Error(); strings.Contains(shown, "secret") || strings.Contains(shown, "10.9.8.7") || code == transport.CodeConnect && strings.Contains(shown, strconv.Itoa(free.port())) {
			t.Errorf("%s: %s", url, shown)
		}
	}
}

// The addresses of a name are tried one after the other.
func TestTheNextAddressIsTried(t *testing.T) {
	r := receive(t, nil, always(ok204))
	c := client(t, clock.System, inside(t), dns{"two.test": {"127.0.0.2", "127.0.0.1"}})
	a := c.Do(t.Context(), operator("http://two.test:"+strconv.Itoa(r.port())+"/"))
	expectStatus(t, a, 204)
	if a.Address != netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(r.port())) {
		t.Errorf("dialled %v", a.Address)
	}
}

func TestPU70AnEndlessBodyIsReadForASecondOr16KiB(t *testing.T) {
	for name, framing := range map[string]string{"with a length": "Content-Length: 1000000000\r\n", "without": ""} {
		r := receive(t, nil, func(p *peer) {
			p.request()
			p.say("HTTP/1.1 200 OK\r\n" + framing + "\r\n")
			for {
				if _, err := p.Write([]byte(strings.Repeat("x", 1<<10))); err != nil {
					return
				}
			}
		})
		a := client(t, newClock(), inside(t), nil).Do(t.Context(), operator(r.plain("/")))
		expectStatus(t, a, 200)
		if len(a.Body) != 16<<10 || a.Complete {
			t.Errorf("%s: %d bytes, complete %v", name, len(a.Body), a.Complete)
		}
	}
	drip := newClock()
	r := receive(t, nil, func(p *peer) {
		p.request()
		p.say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ndrip")
		p.gone()
	})
	done := start(t, client(t, drip, inside(t), nil), operator(r.plain("/")))
	drip.pass(time.Second)
	a := <-done
	expectStatus(t, a, 200)
	if a.Phases.Total != time.Second || a.Complete {
		t.Errorf("a dripping body: %v, complete %v", a.Phases.Total, a.Complete)
	}
}

func TestPU70NothingIsInflated(t *testing.T) {
	var packed strings.Builder
	w := gzip.NewWriter(&packed)
	_, _ = w.Write([]byte(strings.Repeat("a", 1<<20)))
	_ = w.Close()
	r := receive(t, nil, always(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", packed.Len(), packed.String())))
	a := client(t, clock.System, inside(t), nil).Do(t.Context(), operator(r.plain("/")))
	expectStatus(t, a, 200)
	if string(a.Body) != packed.String() || !a.Complete {
		t.Errorf("%d bytes, want %d as they came", len(a.Body), packed.Len())
	}
	if _, heads := r.seen(); strings.Contains(strings.ToLower(heads[0]), "encoding") {
		t.Errorf("asked for an encoding: %q", heads[0])
	}
}

// A receiver that answers before it has read the request is heard, and the rest of the request is not waited for.
func TestAnEarlyAnswerIsHeard(t *testing.T) {
	for _, answer := range []string{"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"} {
		over := make(chan struct{})
		r := receive(t, nil, func(p *peer) {
			_, _ = p.ReadString('\n')
			p.say(answer)
			<-over // and reads nothing more
		})
		request := operator(r.plain("/"))
		request.Body = make([]byte, 32<<20)
		expectStatus(t, client(t, clock.System, inside(t), nil).Do(t.Context(), request), 413)
		close(over)
	}
}

func TestPU81SlowDNSEndsAtItsDeadline(t *testing.T) {
	clk := newClock()
	done := start(t, client(t, clk, inside(t), slowDNS{}), caller("https://hooks.test/", nil))
	clk.pass(5 * time.Second)
	a := <-done
	expectError(t, a, rendezvous.ClassSilent, transport.CodeDNSTimeout, false)
	if a.Phases.DNS != 5*time.Second || a.Phases.Total != 5*time.Second {
		t.Errorf("%+v", a.Phases)
	}
}

type slowDNS struct{}

func (slowDNS) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestPU81ASlowDialEndsAtItsDeadline(t *testing.T) {
	clk := newClock()
	c := client(t, clk, inside(t), dns{"hooks.test": {"127.0.0.1", "127.0.0.2"}})
	dialled := make(chan string, 2)
	c.Dial(func(ctx context.Context, _ *net.Dialer, address string) (net.Conn, error) {
		dialled <- address
		<-ctx.Done()
		return nil, ctx.Err()
	})
	done := start(t, c, caller("https://hooks.test/", nil))
	// Two addresses have half of the time each.
	for range 2 {
		clk.pass(2500 * time.Millisecond)
	}
	a := <-done
	expectError(t, a, rendezvous.ClassSilent, transport.CodeConnectTimeout, false)
	if a.Phases.Connect != 5*time.Second || a.Phases.DNS != 0 || <-dialled != "127.0.0.1:443" || <-dialled != "127.0.0.2:443" {
		t.Errorf("%+v", a.Phases)
	}
}

func TestPU81SlowTLSEndsAtItsDeadline(t *testing.T) {
	clk := newClock()
	r := receive(t, nil, func(p *peer) { p.gone() }) // it takes the greeting and says nothing
	done := start(t, client(t, clk, inside(t, r.port()), known), caller(r.secure("/"), nil))
	await(clk.made, 5*time.Second, 2) // of the lookup and the dial
	clk.pass(5 * time.Second)
	a := <-done
	expectError(t, a, rendezvous.ClassSilent, transport.CodeTLSTimeout, false)
	if a.Phases.TLS != 5*time.Second {
		t.Errorf("%+v", a.Phases)
	}
}

func TestPU81ASlowFirstByteEndsAtItsDeadline(t *testing.T) {
	clk := newClock()
	r := receive(t, nil, func(p *peer) { p.request(); p.gone() })
	done := start(t, client(t, clk, inside(t), nil), operator(r.plain("/")))
	clk.pass(10 * time.Second)
	a := <-done
	expectError(t, a, rendezvous.ClassSilent, transport.CodeHeaderTimeout, true)
	if a.Phases.Total != 10*time.Second || a.Phases.FirstByte != 0 {
		t.Errorf("%+v", a.Phases)
	}
}

// PU-81: headers that drip have until the end of the whole request, since their first byte was in time.
func TestPU81DrippingHeadersEndWithTheWhole(t *testing.T) {
	clk := newClock()
	r := receive(t, nil, func(p *peer) { p.request(); p.say("HTTP/1.1 2"); p.gone() })
	request := operator(r.plain("/"))
	request.Timeout = 17 * time.Second
	done := start(t, client(t, clk, inside(t), nil), request)
	await(clk.stopped, 10*time.Second, 1) // the first byte has come
	clk.Advance(17 * time.Second)
	a := <-done
	expectError(t, a, rendezvous.ClassSilent, transport.CodeTimeout, true)
	if a.Phases.Total != 17*time.Second {
		t.Errorf("%+v", a.Phases)
	}
}

// PU-81: phases that are each in time still end with the whole.
func TestPU81TheWholeNeverExceedsTheTimeout(t *testing.T) {
	clk := newClock()
	c := client(t, clk, inside(t), dnsAfter{clk, 4 * time.Second})
	dialling := make(chan struct{})
	c.Dial(func(ctx context.Context, _ *net.Dialer, _ string) (net.Conn, error) {
		close(dialling)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	request := caller("https://hooks.test/", nil)
	request.Timeout = 6 * time.Second
	done := start(t, c, request)
	clk.pass(4 * time.Second)
	<-dialling
	clk.Advance(2 * time.Second)
	a := <-done
	expectError(t, a, rendezvous.ClassSilent, transport.CodeTimeout, false)
	if p := a.Phases; p.DNS != 4*time.Second || p.Connect != 2*time.Second || p.Total != 6*time.Second {
		t.Errorf("%+v", p)
	}
}

type dnsAfter struct {
	clock clock.Clock
	d     time.Duration
}

func (d dnsAfter) LookupNetIP(ctx context.Context, network, name string) ([]netip.Addr, error) {
	if err := clock.Sleep(ctx, d.clock, d.d); err != nil {
		return nil, err
	}
	return known.LookupNetIP(ctx, network, name)
}

// A request that its owner gives up is nobody's failure; whether it was taken is unknown once it was written.
func TestARequestThatIsGivenUpIsOurOwn(t *testing.T) {
	sent := make(chan struct{})
	r := receive(t, nil, func(p *peer) { p.request(); close(sent); p.gone() })
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan transport.Attempt)
	c := client(t, clock.System, inside(t), nil)
	go func() { done <- c.Do(ctx, operator(r.plain("/"))) }()
	<-sent
	why := errors.New("the lease ended")
	cancel(why)
	a := <-done
	expectError(t, a, rendezvous.ClassOwn, transport.CodeCancelled, true)
	if !errors.Is(a.Err, why) {
		t.Errorf("%v", errors.Unwrap(a.Err))
	}
	a = c.Do(ctx, operator(r.plain("/")))
	expectError(t, a, rendezvous.ClassOwn, transport.CodeCancelled, false)
}

func TestPU69ARequestIsNeverSentTwice(t *testing.T) {
	r := receive(t, nil, func(p *peer) {
		p.request()
		if p.index == 0 {
			p.say(ok204)
			p.request() // the second on the kept connection: taken, and never answered
		}
	})
	c := client(t, clock.System, inside(t), nil)
	expectStatus(t, c.Do(t.Context(), operator(r.plain("/1"))), 204)
	a := c.Do(t.Context(), operator(r.plain("/2")))
	expectError(t, a, rendezvous.ClassSilent, transport.CodeDisconnected, true)
	if connections, heads := r.seen(); connections != 1 || len(heads) != 2 || !a.Reused || !a.Unknown() {
		t.Errorf("%d connections, %d requests, reused %v", connections, len(heads), a.Reused)
	}
}

func TestARequestMovesToAFreshConnectionWhileNothingOfItIsWritten(t *testing.T) {
	r := receive(t, nil, always(ok204))
	c := client(t, clock.System, inside(t), nil)
	var first *breakable
	c.Dial(func(ctx context.Context, d *net.Dialer, address string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, "tcp", address)
		if first == nil {
			first = &breakable{Conn: conn}
			return first, err
		}
		return conn, err
	})
	expectStatus(t, c.Do(t.Context(), operator(r.plain("/1"))), 204)
	if n := c.Idle(); n != 1 {
		t.Fatalf("%d idle connections", n)
	}
	first.broken.Store(true)
	a := c.Do(t.Context(), operator(r.plain("/2")))
	expectStatus(t, a, 204)
	if connections, heads := r.seen(); connections != 2 || len(heads) != 2 || a.Reused {
		t.Errorf("%d connections, %d requests, reused %v", connections, len(heads), a.Reused)
	}
}

// breakable is a connection whose writes can be made to fail before a byte is out.
type breakable struct {
	net.Conn
	broken atomic.Bool
}

func (b *breakable) Write(p []byte) (int, error) {
	if b.broken.Load() {
		return 0, syscall.EPIPE
	}
	return b.Conn.Write(p)
}
