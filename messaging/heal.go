package messaging

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rendezvous-events/rendezvous/clock"
)

const (
	healFirst = 50 * time.Millisecond
	healMost  = 5 * time.Second
)

// tend keeps the feeds alive until ctx ends: it provisions and pulls again what is broken, for ever.
func (p *puller) tend(ctx context.Context) {
	status := p.src.nc.StatusChanged(nats.CONNECTED, nats.RECONNECTING)
	defer p.src.nc.RemoveStatusListener(status)
	tick := p.src.deps.Clock.NewTicker(pullHeartbeat)
	defer tick.Stop()
	p.heal(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.kick:
			p.heal(ctx)
		case _, open := <-status:
			if !open {
				status = nil // the connection is closed; only a stop is left
				continue
			}
			p.breakAll() // requests die with the connection they were sent on
			p.heal(ctx)
		case <-tick.C():
			if p.breakSilent() {
				p.heal(ctx)
			}
		}
	}
}

func (p *puller) breakAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.feeds {
		p.breakFeed(&p.feeds[i])
	}
}

// breakSilent breaks feeds whose request has brought neither message nor heartbeat for two periods: nobody holds it any more.
func (p *puller) breakSilent() (found bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.src.deps.Clock.Now()
	for i := range p.feeds {
		if f := &p.feeds[i]; f.pulling && now.Sub(f.seen) > 2*pullHeartbeat {
			p.src.deps.Log.Warn("heartbeats stay away; pulling again", "stream", p.src.stream, "consumer", f.name)
			p.breakFeed(f)
			found = true
		}
	}
	return found
}

// heal makes sure that stream and durables exist and pulls again from the broken ones. Without a connection it leaves that to the reconnect.
func (p *puller) heal(ctx context.Context) {
	for p.anyBroken() && p.src.nc.IsConnected() {
		if tries := p.countTry(); tries > 0 {
			if clock.Sleep(ctx, p.src.deps.Clock, backoff(tries, healFirst, healMost, p.src.deps.Jitter)) != nil {
				return
			}
		}
		known := p.breaks()
		if err := p.src.ensure(ctx); err != nil {
			if ctx.Err() != nil {
				return
			}
			if !p.src.nc.IsConnected() {
				return
			}
			p.src.deps.Log.Warn("cannot make sure of stream and consumers; trying again", "stream", p.src.stream, "error", err, "cause", errors.Unwrap(err))
			continue
		}
		p.pullBroken(known)
		p.gap()
		if ctx.Err() != nil {
			return
		}
	}
}

func (p *puller) anyBroken() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.feeds {
		if p.feeds[i].broken {
			return true
		}
	}
	return false
}

// countTry answers how many heals came before this one without a sign of life.
func (p *puller) countTry() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries++
	return p.tries - 1
}

func (p *puller) breaks() []uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := make([]uint64, len(p.feeds))
	for i := range p.feeds {
		n[i] = p.feeds[i].breaks
	}
	return n
}

// pullBroken asks again, now that ensure has seen to it that everything is there, and says what had to wait. What broke since (known is from
// before) stays broken: ensure may have seen it before it was deleted.
func (p *puller) pullBroken(known []uint64) {
	p.mu.Lock()
	for i := range p.feeds {
		if f := &p.feeds[i]; f.broken && f.breaks == known[i] {
			f.broken, f.born = false, p.src.created(p.src.stream, f.name)
			p.refill(i)
		}
	}
	late := p.late
	p.late = nil
	p.mu.Unlock()
	for _, v := range late {
		p.acknowledge(v.held, v.outcome)
	}
}

// verdictOn is an acknowledgement to be sent.
type verdictOn struct {
	held
	outcome Outcome
}

// acknowledge tells the broker, if the message's durable is still the one it came from. A new one of the same name counts from 1 again, and
// would take the word for one of its own messages: gone, before anybody saw it. While that is unknown the word waits.
func (p *puller) acknowledge(m held, o Outcome) {
	p.mu.Lock()
	f := p.feeds[m.from]
	unknown := f.broken || !p.src.nc.IsConnected()
	if unknown && !p.stopped {
		p.late = append(p.late, verdictOn{m, o})
	}
	p.mu.Unlock()
	if unknown || !f.born.Equal(m.born) {
		return
	}
	// What cannot be said comes again after AckWait, and is a no-op then.
	if err := p.src.nc.Publish(m.reply, o.acknowledgement(m.Delivered, p.src.deps.Jitter)); err != nil {
		p.src.deps.Log.Debug("acknowledgement not sent; the message comes again", "stream", p.src.stream, "outcome", o.String(), "error", err)
	}
}
