package transport

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/push/target"
)

// Deadlines of push.md section 10.
const (
	dnsTimeout     = 5 * time.Second
	connectTimeout = 5 * time.Second
	tlsTimeout     = 5 * time.Second
	headerTimeout  = 10 * time.Second
)

// Settings are what a client is made of.
type Settings struct {
	Policy   *target.Policy
	Clock    clock.Clock
	Resolver target.Resolver // nil: the system's
	// IdlePerHost is how many idle connections of one partition are kept, which is how many requests go to one gate at once; 0 is 16. Idle is how many of all; 0 is 512.
	IdlePerHost int
	Idle        int
}

// Client makes requests. It is safe for concurrent use; Close ends it.
type Client struct {
	policy   atomic.Pointer[target.Policy]
	clock    clock.Clock
	resolver target.Resolver
	pool     *pool
	dial     func(ctx context.Context, dialer *net.Dialer, address string) (net.Conn, error)
}

// New makes a client. Its goroutine ends with Close.
func New(s Settings) *Client {
	if s.Resolver == nil {
		s.Resolver = net.DefaultResolver
	}
	if s.IdlePerHost == 0 {
		s.IdlePerHost = 16
	}
	if s.Idle == 0 {
		s.Idle = 512
	}
	c := &Client{
		clock: s.Clock, resolver: s.Resolver, pool: newPool(s.Clock, s.IdlePerHost, s.Idle),
		dial: func(ctx context.Context, dialer *net.Dialer, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, "tcp", address)
		},
	}
	c.policy.Store(s.Policy)
	return c
}

// SetPolicy judges all further requests by p. Connections that were opened under another policy serve the request they carry, and no other.
func (c *Client) SetPolicy(p *target.Policy) {
	c.policy.Store(p)
	c.pool.closeIdle()
}

// Close closes idle connections and waits for the client's goroutines. Requests that are being made go on, and their connections are closed behind them.
func (c *Client) Close() { c.pool.close() }

// Do makes one request, once. When ctx ends it is given up, which is nobody's failure: class own.
func (c *Client) Do(ctx context.Context, r Request) Attempt {
	r = r.filled()
	a := Attempt{Started: c.clock.Now()}
	all, cancel := clock.WithTimeout(ctx, c.clock, r.Timeout)
	defer cancel()
	a.Err = c.do(all, r, &a)
	a.Phases.Total = c.clock.Now().Sub(a.Started)
	switch {
	case a.Err == nil || a.Err.Class == rendezvous.ClassConfig:
	case ctx.Err() != nil:
		a.Err = Failed(rendezvous.ClassOwn, CodeCancelled, "the request was given up", context.Cause(ctx))
	case all.Err() != nil:
		a.Err = silent(CodeTimeout, "the request was not answered within "+r.Timeout.String(), context.Cause(all))
	}
	return a
}

func (c *Client) do(ctx context.Context, r Request, a *Attempt) *Error {
	policy := c.policy.Load()
	t, err := policy.Judge(r.Namespace, r.URL)
	if err != nil {
		return refused(err)
	}
	head, fault := r.head(t)
	if fault != nil {
		return fault
	}
	way := r.partition(t)
	if conn := c.pool.take(way, policy, r.Timeout); conn != nil {
		a.Reused, a.Address = true, conn.address
		fault = c.exchange(ctx, conn, head, r, a)
		if fault == nil || a.Written || ctx.Err() != nil {
			return fault
		}
		a.Reused = false // nothing of it was written: it may go by another connection
	}
	conn, fault := c.connect(ctx, policy, t, r, a)
	if fault != nil {
		return fault
	}
	conn.partition, conn.policy = way, policy
	return c.exchange(ctx, conn, head, r, a)
}

// refused makes an error of what the policy says.
func refused(err error) *Error {
	var r *target.Refusal
	if !errors.As(err, &r) {
		return nil
	}
	if reason, parks := r.Park(); parks {
		return Unusable(reason, string(r.Rule), r.Reason, err)
	}
	return Failed(rendezvous.ClassForbidden, string(r.Rule), r.Reason, err)
}
