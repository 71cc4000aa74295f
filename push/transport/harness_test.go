package transport_test

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/push/target"
	"github.com/rendezvous-events/rendezvous/push/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is a scripted receiver: it speaks raw bytes on a real socket.
type receiver struct {
	t        *testing.T
	listener net.Listener
	mu       sync.Mutex
	heads    []string // of the requests, as they came
	bodies   []string
	accepted int
	running  sync.WaitGroup
	conns    []net.Conn
}

// peer is one connection, seen by its receiver.
type peer struct {
	net.Conn
	*bufio.Reader
	of    *receiver
	index int // which connection, from 0
}

// receive serves every connection with script, which may end the connection by returning; config nil is plain.
func receive(t *testing.T, config *tls.Config, script func(p *peer)) *receiver {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{t: t, listener: listener}
	r.running.Go(func() {
		for {
			raw, err := listener.Accept()
			if err != nil {
				return
			}
			r.mu.Lock()
			p := &peer{Conn: raw, of: r, index: r.accepted}
			r.accepted++
			r.conns = append(r.conns, raw)
			r.mu.Unlock()
			if config != nil {
				p.Conn = tls.Server(raw, config)
			}
			p.Reader = bufio.NewReader(p.Conn)
			r.running.Go(func() {
				defer raw.Close()
				script(p)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		r.mu.Lock()
		for _, c := range r.conns {
			c.Close()
		}
		r.mu.Unlock()
		r.running.Wait()
	})
	return r
}

// Read and Write of the two embedded ones.
func (p *peer) Read(b []byte) (int, error) { return p.Reader.Read(b) }

// request reads one request; false when the connection ended before one.
func (p *peer) request() bool {
	var head strings.Builder
	length := 0
	for {
		line, err := p.ReadString('\n')
		if err != nil {
			return false
		}
		head.WriteString(line)
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "Content-Length: "); ok {
			length, _ = strconv.Atoi(n)
		}
		if line == "\r\n" {
			break
		}
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(p, body); err != nil {
		return false
	}
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	p.of.heads, p.of.bodies = append(p.of.heads, head.String()), append(p.of.bodies, string(body))
	return true
}

func (p *peer) say(text string) { _, _ = io.WriteString(p.Conn, text) }

// gone waits until the other side has hung up.
func (p *peer) gone() { _, _ = io.Copy(io.Discard, p.Reader) }

// always answers every request of a connection with the same bytes.
func always(answer string) func(p *peer) {
	return func(p *peer) {
		for p.request() {
			p.say(answer)
		}
	}
}

const ok204 = "HTTP/1.1 204 No Content\r\n\r\n"

func (r *receiver) port() int { return r.listener.Addr().(*net.TCPAddr).Port }

// plain is the URL by which an operator's destination reaches it.
func (r *receiver) plain(path string) string {
	return "http://127.0.0.1:" + strconv.Itoa(r.port()) + path
}

// secure is the URL by which a caller's registration reaches it, by the name hooks.test.
func (r *receiver) secure(path string) string {
	return "https://hooks.test:" + strconv.Itoa(r.port()) + path
}

func (r *receiver) seen() (connections int, heads []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepted, append([]string{}, r.heads...)
}

// watched is a manual clock that tells which timers are made and stopped, so that a test moves it when what it waits for is set.
type watched struct {
	*clock.Manual
	made, stopped chan time.Duration
}

func newClock() *watched {
	return &watched{Manual: clock.NewManual(time.Now()), made: make(chan time.Duration, 10_000), stopped: make(chan time.Duration, 10_000)}
}

func (w *watched) NewTimer(d time.Duration) clock.Timer {
	t := w.Manual.NewTimer(d)
	w.made <- d
	return watchedTimer{t, d, w}
}

type watchedTimer struct {
	clock.Timer
	d  time.Duration
	of *watched
}

func (t watchedTimer) Stop() bool {
	defer func() { t.of.stopped <- t.d }()
	return t.Timer.Stop()
}

// await waits until n timers of that length were made, or stopped.
func await(timers <-chan time.Duration, d time.Duration, n int) {
	for n > 0 {
		if <-timers == d {
			n--
		}
	}
}

// pass waits for a timer of that length and lets its time go by.
func (w *watched) pass(d time.Duration) {
	await(w.made, d, 1)
	w.Advance(d)
}

// dns is a scripted DNS.
type dns map[string][]string

func (d dns) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	texts, ok := d[strings.TrimSuffix(name, ".")]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: name, Server: "10.9.8.7:53", IsNotFound: true}
	}
	var found []netip.Addr
	for _, text := range texts {
		found = append(found, netip.MustParseAddr(text))
	}
	return found, nil
}

// inside lets callers reach this machine's test receivers by the names they are granted.
func inside(t *testing.T, ports ...int) *target.Policy {
	t.Helper()
	p, err := target.New(target.Settings{
		CallerHosts: []string{"hooks.test", "other.test"}, CallerPorts: append([]int{443}, ports...), AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var known = dns{"hooks.test": {"127.0.0.1"}, "other.test": {"127.0.0.1"}}

func client(t *testing.T, c clock.Clock, p *target.Policy, resolver target.Resolver) *transport.Client {
	t.Helper()
	client := transport.New(transport.Settings{Policy: p, Clock: c, Resolver: resolver})
	t.Cleanup(client.Close)
	return client
}

func operator(url string) transport.Request {
	return transport.Request{Namespace: rendezvous.PushOperator, URL: url, Body: []byte(`{"n":1}`), Timeout: 30 * time.Second}
}

func caller(url string, trust *authority) transport.Request {
	r := transport.Request{Namespace: rendezvous.PushCaller, URL: url, Body: []byte(`{"n":1}`), Timeout: 30 * time.Second}
	if trust != nil {
		r.TLS.Authorities = trust.pem
	}
	return r
}

// start makes a request in the background.
func start(t *testing.T, c *transport.Client, r transport.Request) <-chan transport.Attempt {
	t.Helper()
	done := make(chan transport.Attempt, 1)
	ctx := t.Context()
	go func() { done <- c.Do(ctx, r) }()
	return done
}

func expectError(t *testing.T, a transport.Attempt, class rendezvous.PushClass, code string, written bool) {
	t.Helper()
	if a.Err == nil || a.Err.Class != class || a.Err.Code != code || a.Written != written || a.Status != 0 {
		t.Errorf("%+v (%v), want %s %s, written %v", a, a.Err, class, code, written)
	}
}

func expectStatus(t *testing.T, a transport.Attempt, status int) {
	t.Helper()
	if a.Err != nil || a.Status != status || !a.Written {
		t.Errorf("%+v (%v), want status %d", a, a.Err, status)
	}
}

// authority signs certificates of tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue answers certificate and key, in PEM, for a name or an address.
func (a *authority) issue(t *testing.T, name string) (cert, key string) {
	t.Helper()
	own := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, own.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

// serve is a server's TLS for a name.
func (a *authority) serve(t *testing.T, name string) *tls.Config {
	t.Helper()
	cert, key := a.issue(t, name)
	pair, err := tls.X509KeyPair([]byte(cert), []byte(key))
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}}
}
