package client

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/messaging"
)

const (
	pingEvery      = 20 * time.Second
	pingsOut       = 2
	reconnectFirst = 50 * time.Millisecond
	reconnectMost  = 2 * time.Second
	envelope       = 4 << 10 // headers of a NATS message
)

// link is a NATS connection and the news that it broke: a request sent before is then never answered, and nats.go waits on.
type link struct {
	nc    *nats.Conn
	owned bool
	watch sync.WaitGroup
	stop  chan struct{}

	mu   sync.Mutex
	down context.CancelCauseFunc // ends up
	up   context.Context         // lasts as long as the connection stands
}

// newLink is nil when the options name no NATS.
func newLink(o Options) (*link, error) {
	l := &link{nc: o.NATS, stop: make(chan struct{})}
	if l.nc == nil && o.NATSURL == "" {
		return nil, nil
	}
	if l.nc == nil {
		nc, err := dial(o)
		if err != nil {
			return nil, rendezvous.InvalidField("NATSURL", "cannot be used with these options").Because(err)
		}
		l.nc, l.owned = nc, true
	}
	l.renew()
	status := l.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	l.watch.Go(func() { l.follow(status) })
	return l, nil
}

// dial connects for ever and does not wait: a plane that is down is unavailable, not a wrong option.
func dial(o Options) (*nats.Conn, error) {
	opts := append([]nats.Option{
		nats.Name("rendezvous client"),
		nats.MaxReconnects(-1),
		nats.RetryOnFailedConnect(true),
		nats.ReconnectBufSize(-1), // what cannot go now is tried again by the caller, not late by the library
		nats.CustomReconnectDelay(func(n int) time.Duration {
			return Retry{First: reconnectFirst, Most: reconnectMost}.pause(max(n, 1), 0, o.Jitter)
		}),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(pingsOut),
		nats.IgnoreAuthErrorAbort(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { o.Log.Warn("NATS reports an error", "error", err) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				o.Log.Warn("NATS connection lost; reconnecting", "error", err)
			}
		}),
	}, o.NATSOptions...)
	return nats.Connect(o.NATSURL, opts...)
}

func (l *link) renew() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.up, l.down = context.WithCancelCause(context.Background())
}

// follow ends the requests of a connection that broke.
func (l *link) follow(status chan nats.Status) {
	defer l.nc.RemoveStatusListener(status)
	for {
		select {
		case <-l.stop:
			l.down(nats.ErrConnectionClosed)
			return
		case _, open := <-status:
			l.down(nats.ErrDisconnected)
			if !open {
				return
			}
			l.renew()
		}
	}
}

// whileUp is ctx that ends when the connection breaks.
func (l *link) whileUp(ctx context.Context) (context.Context, func()) {
	l.mu.Lock()
	up := l.up
	l.mu.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	release := context.AfterFunc(up, func() { cancel(context.Cause(up)) })
	return ctx, func() { release(); cancel(context.Canceled) }
}

func (l *link) close() {
	if l == nil {
		return
	}
	close(l.stop)
	l.watch.Wait()
	if l.owned {
		l.nc.Close()
	}
}

// natsTransport requests <prefix>.<tenant>.api.<verb>.
type natsTransport struct {
	link   *link
	prefix string
}

func (t *natsTransport) close() {}

func (t *natsTransport) room() int { return int(max(t.link.nc.MaxPayload()-envelope, 0)) }

func (t *natsTransport) call(ctx context.Context, tenant, verb string, body []byte) ([]byte, error) {
	msg := &nats.Msg{Subject: t.prefix + "." + tenant + ".api." + verb, Header: nats.Header{}, Data: body}
	messaging.InjectTrace(ctx, msg.Header)
	ctx, done := t.link.whileUp(ctx)
	defer done()
	reply, err := t.link.nc.RequestMsgWithContext(ctx, msg)
	if err != nil {
		return nil, natsFailure(ctx, err, len(body))
	}
	if status := reply.Header.Get(micro.ErrorCodeHeader); status != "" {
		return nil, natsRefusal(status, reply.Data)
	}
	return reply.Data, nil
}

func natsFailure(ctx context.Context, err error, size int) error {
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, nats.ErrReconnectBufExceeded), errors.Is(err, nats.ErrConnectionReconnecting):
		return unsent(err)
	case errors.Is(err, nats.ErrMaxPayload):
		return rendezvous.Errorf(rendezvous.CodeTooLarge, "%d bytes are over what one NATS message carries; send less at once, or over HTTP", size).
			With("value", size).Because(err)
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrConnectionDraining):
		return unsent(err)
	}
	return lost(errors.Join(err, context.Cause(ctx)))
}

func natsRefusal(status string, body []byte) error {
	if e := errorIn(body); e != nil {
		return e
	}
	n, _ := strconv.Atoi(status)
	return rendezvous.Errorf(codeOf(n), "the NATS door answered status %q without an error of this plane", status)
}
