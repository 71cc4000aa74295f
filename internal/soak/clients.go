package main

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/rendezvous-events/rendezvous/client"
)

var tenants = []string{"acme", "globex", "initech-eu"}

const (
	tryTimeout     = 4 * time.Second
	driverPatience = 3 * time.Second
)

// access is how one tenant reaches the plane.
type access struct {
	tenant string
	http   *client.Client // verbs over HTTP, tried for ever
	nats   *client.Client // verbs over NATS, tried for ever
	driver *client.Client // verbs over HTTP, given up after a while, as a driver under a lease does
}

// clients reach a plane by all its doors.
func (p *plane) clients(log *slog.Logger) ([]*access, error) {
	spread := &spreading{hosts: p.doors, inner: &http.Transport{
		MaxIdleConnsPerHost: 256, DialContext: (&net.Dialer{Timeout: time.Second}).DialContext,
	}}
	var all []*access
	for _, tenant := range tenants {
		o := client.Options{
			Tenant: tenant, NATS: p.nats, Timeout: tryTimeout, Log: log,
			Retry: client.Retry{First: 20 * time.Millisecond, Most: 500 * time.Millisecond, Elapsed: -1},
		}
		overNATS, err := client.New(o)
		if err != nil {
			return nil, err
		}
		o.URL, o.HTTP = "http://"+p.doors[0], &http.Client{Transport: spread}
		overHTTP, err := client.New(o)
		if err != nil {
			return nil, err
		}
		o.Retry.Elapsed = driverPatience
		driver, err := client.New(o)
		if err != nil {
			return nil, err
		}
		all = append(all, &access{tenant: tenant, http: overHTTP, nats: overNATS, driver: driver})
	}
	return all, nil
}

func (a *access) close() {
	for _, c := range []*client.Client{a.http, a.nats, a.driver} {
		c.Close()
	}
}

// spreading sends requests to its hosts in turn, as a load balancer without health checks would.
type spreading struct {
	hosts []string
	inner http.RoundTripper
	turn  atomic.Uint64
}

// RoundTrip implements http.RoundTripper.
func (s *spreading) RoundTrip(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.URL.Host = s.hosts[int(s.turn.Add(1)%uint64(len(s.hosts)))]
	return s.inner.RoundTrip(out)
}

// quiet drops what clients log: that the plane is away is what is being done to it.
func quiet(verbose bool, to io.Writer) *slog.Logger {
	if verbose {
		return slog.New(slog.NewTextHandler(to, nil))
	}
	return slog.New(slog.NewTextHandler(io.Discard, nil))
}
