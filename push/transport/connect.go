package transport

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/push/target"
)

// connect makes a connection for a request: a lookup, an address after the other, TLS.
func (c *Client) connect(ctx context.Context, policy *target.Policy, t target.Target, r Request, a *Attempt) (*conn, *Error) {
	config, fault := c.tlsConfig(t, r.TLS)
	if fault != nil {
		return nil, fault
	}
	addresses, fault := c.resolve(ctx, policy, t, a)
	if fault != nil {
		return nil, fault
	}
	raw, fault := c.dialOne(ctx, policy, t, addresses, a)
	if fault != nil {
		return nil, fault
	}
	made := &conn{Conn: raw, counter: raw, address: a.Address, born: c.clock.Now()}
	if t.Secure() {
		secured, fault := c.secure(ctx, raw, config, a)
		if fault != nil {
			raw.Close()
			return nil, fault
		}
		made.Conn = secured
	}
	made.reader = bufio.NewReader(made.Conn)
	return made, nil
}

func (c *Client) resolve(ctx context.Context, policy *target.Policy, t target.Target, a *Attempt) ([]netip.Addr, *Error) {
	started := c.clock.Now()
	defer func() { a.Phases.DNS = c.clock.Now().Sub(started) }()
	ctx, cancel := clock.WithTimeout(ctx, c.clock, dnsTimeout)
	defer cancel()
	addresses, err := policy.Resolve(ctx, t, c.resolver)
	var failed *net.DNSError
	switch {
	case err == nil:
		return addresses, nil
	case refused(err) != nil:
		return nil, refused(err)
	case errors.Is(err, target.ErrNoAddress), errors.Is(err, target.ErrManyAddresses):
		return nil, silent(CodeDNS, t.Host()+": "+err.Error(), err)
	case ctx.Err() != nil:
		return nil, silent(CodeDNSTimeout, t.Host()+" was not resolved within "+dnsTimeout.String(), err)
	case errors.As(err, &failed):
		return nil, silent(CodeDNS, t.Host()+": "+failed.Err, err) // and not which server said so
	}
	return nil, silent(CodeDNS, t.Host()+" was not resolved", err)
}

// dialOne tries the addresses in their order. Each has an equal share of the time that is left, so that one which does not answer leaves some to the others.
func (c *Client) dialOne(ctx context.Context, policy *target.Policy, t target.Target, addresses []netip.Addr, a *Attempt) (*counter, *Error) {
	started := c.clock.Now()
	defer func() { a.Phases.Connect = c.clock.Now().Sub(started) }()
	dialer := &net.Dialer{Control: policy.Control(t)}
	var last *Error
	for i, address := range addresses {
		left := connectTimeout - c.clock.Now().Sub(started)
		if left <= 0 {
			break
		}
		a.Address = netip.AddrPortFrom(address, t.Port())
		raw, fault := c.dialWithin(ctx, left/time.Duration(len(addresses)-i), dialer, t, a.Address)
		if fault == nil {
			return &counter{Conn: raw}, nil
		}
		if last = fault; fault.Class != rendezvous.ClassSilent {
			break
		}
	}
	return nil, last
}

func (c *Client) dialWithin(ctx context.Context, d time.Duration, dialer *net.Dialer, t target.Target, address netip.AddrPort) (net.Conn, *Error) {
	ctx, cancel := clock.WithTimeout(ctx, c.clock, d)
	defer cancel()
	raw, err := c.dial(ctx, dialer, address.String())
	var failed *net.OpError
	switch {
	case err == nil:
		return raw, nil
	case refused(err) != nil:
		return nil, refused(err)
	case ctx.Err() != nil:
		return nil, silent(CodeConnectTimeout, t.Host()+" took no connection within "+connectTimeout.String(), err)
	case errors.As(err, &failed):
		return nil, silent(CodeConnect, t.Host()+": "+failed.Err.Error(), err)
	}
	return nil, silent(CodeConnect, t.Host()+" took no connection", err)
}

// tlsConfig verifies chain and name, always (PU-83). A client certificate that cannot be used is a fault of the registration.
func (c *Client) tlsConfig(t target.Target, own rendezvous.PushTLS) (*tls.Config, *Error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.Host(), NextProtos: []string{"http/1.1"}, Time: c.clock.Now}
	unusable := func(what string, err error) *Error {
		return Unusable(rendezvous.ParkBadKey, CodeBadKey, what, err)
	}
	if own.Authorities != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(own.Authorities)) {
			return nil, unusable("the CA bundle has no certificate", nil)
		}
	}
	if own.Certificates != "" {
		pair, err := tls.X509KeyPair([]byte(own.Certificates), []byte(own.Key.Reveal()))
		if err != nil {
			return nil, unusable("the client certificate and its key cannot be used", err)
		}
		// Whatever authorities the receiver names: it is this certificate or none.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	return config, nil
}

func (c *Client) secure(ctx context.Context, raw net.Conn, config *tls.Config, a *Attempt) (net.Conn, *Error) {
	started := c.clock.Now()
	defer func() { a.Phases.TLS = c.clock.Now().Sub(started) }()
	ctx, cancel := clock.WithTimeout(ctx, c.clock, tlsTimeout)
	defer cancel()
	conn := tls.Client(raw, config)
	err := conn.HandshakeContext(ctx)
	var failed *net.OpError
	switch {
	case err == nil:
		return conn, nil
	case ctx.Err() != nil:
		return nil, silent(CodeTLSTimeout, config.ServerName+" did not finish the TLS handshake within "+tlsTimeout.String(), err)
	case errors.As(err, &failed):
		return nil, silent(CodeTLS, config.ServerName+": "+failed.Err.Error(), err)
	}
	return nil, silent(CodeTLS, config.ServerName+": "+err.Error(), err)
}
