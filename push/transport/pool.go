package transport

import (
	"slices"
	"sync"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/push/target"
)

const (
	maxIdleTime = time.Minute
	maxAge      = 10 * time.Minute
)

// pool keeps idle connections. All of them are in one list, the one idle for longest first: there are few hundred at most.
type pool struct {
	clock        clock.Clock
	perPartition int
	most         int
	mu           sync.Mutex
	idle         []*conn
	closed       bool
	planned      time.Time     // when the keeper looks next; zero: when it is woken
	wake         chan struct{} // of one place
	stop         chan struct{} // closed by close
	keeper       sync.WaitGroup
	listeners    sync.WaitGroup // of the idle connections
}

func newPool(c clock.Clock, perPartition, most int) *pool {
	p := &pool{clock: c, perPartition: perPartition, most: most, wake: make(chan struct{}, 1), stop: make(chan struct{})}
	p.keeper.Go(p.keep)
	return p
}

// take answers an idle connection for a request of that length, the one used last; nil when there is none. What is too old by then stays for the keeper.
func (p *pool) take(way partition, policy *target.Policy, timeout time.Duration) *conn {
	for {
		c := p.pick(way, policy, timeout)
		if c == nil || c.hush() {
			return c
		}
		c.Close()
	}
}

func (p *pool) pick(way partition, policy *target.Policy, timeout time.Duration) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	for i := len(p.idle) - 1; i >= 0; i-- {
		c := p.idle[i]
		if c.partition == way && c.policy == policy && p.expiry(c).After(now) && c.born.Add(maxAge).After(now.Add(timeout)) {
			p.idle = slices.Delete(p.idle, i, i+1)
			return c
		}
	}
	return nil
}

// put keeps a connection for later, as long as it was opened by the policy that holds now.
func (p *pool) put(c *conn, policy *target.Policy) {
	c.idleSince = p.clock.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || c.policy != policy || !p.expiry(c).After(c.idleSince) {
		c.Close()
		return
	}
	p.makeRoom(c.partition)
	p.idle = append(p.idle, c)
	c.listen(&p.listeners, func() { p.drop(c) })
	if expiry := p.expiry(c); p.planned.IsZero() || expiry.Before(p.planned) {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// makeRoom closes the connection that is idle for longest, of the partition or of all, where there are as many as may be.
func (p *pool) makeRoom(way partition) {
	first, n := -1, 0
	for i, c := range p.idle {
		if c.partition == way {
			if n++; first < 0 {
				first = i
			}
		}
	}
	switch {
	case n >= p.perPartition:
	case len(p.idle) >= p.most:
		first = 0
	default:
		return
	}
	p.idle[first].Close()
	p.idle = slices.Delete(p.idle, first, first+1)
}

func (p *pool) expiry(c *conn) time.Time {
	idle, old := c.idleSince.Add(maxIdleTime), c.born.Add(maxAge)
	if old.Before(idle) {
		return old
	}
	return idle
}

// drop forgets a connection that the receiver has closed.
func (p *pool) drop(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, c); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		c.Close()
	}
}

// keep closes what is idle for too long, or too old, at its instant.
func (p *pool) keep() {
	for {
		var due <-chan time.Time
		var timer clock.Timer
		if next := p.sweep(); !next.IsZero() {
			timer = p.clock.NewTimer(next.Sub(p.clock.Now()))
			due = timer.C()
		}
		select {
		case <-due:
		case <-p.wake:
		case <-p.stop:
		}
		if timer != nil {
			timer.Stop()
		}
		select {
		case <-p.stop:
			return
		default:
		}
	}
}

// sweep closes what has expired and answers when the next one does; zero when there is none.
func (p *pool) sweep() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	p.planned = time.Time{}
	p.idle = slices.DeleteFunc(p.idle, func(c *conn) bool {
		expiry := p.expiry(c)
		if !expiry.After(now) {
			c.Close()
			return true
		}
		if p.planned.IsZero() || expiry.Before(p.planned) {
			p.planned = expiry
		}
		return false
	})
	return p.planned
}

func (p *pool) closeIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		c.Close()
	}
	p.idle = nil
}

func (p *pool) close() {
	p.mu.Lock()
	first := !p.closed
	p.closed = true
	p.mu.Unlock()
	if first {
		close(p.stop)
	}
	p.closeIdle()
	p.keeper.Wait()
	p.listeners.Wait()
}
