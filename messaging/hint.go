package messaging

import (
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"

	rendezvous "github.com/rendezvous-events/rendezvous"
)

// Hints are core messages: nobody stores them and one that is lost costs one poll. They say that there is something to look at, and nothing else.

// TimerSubject says that an early instant was armed in a shard.
func (n Names) TimerSubject(shard int) string { return n.prefix + ".timer." + strconv.Itoa(shard) }

// ShardsSubject says that a pool's shards changed hands.
func (n Names) ShardsSubject(pool string) string { return n.prefix + ".note.shards." + pool }

// HintTimers tells the owners of those shards to look when their next timer is due. What cannot be sent is lost.
func (c *Conn) HintTimers(shards []int) error {
	var failed error
	for _, s := range shards {
		if err := c.hint(c.names.TimerSubject(s)); err != nil {
			failed = err
		}
	}
	return failed
}

// HintShards tells a pool's pods that shards changed hands.
func (c *Conn) HintShards(pool string) error { return c.hint(c.names.ShardsSubject(pool)) }

func (c *Conn) hint(subject string) error {
	if err := c.pub.Publish(subject, nil); err != nil {
		return rendezvous.Errorf(rendezvous.CodeUnavailable, "a hint on %s could not be sent", subject).Because(err)
	}
	return nil
}

// OnTimers calls look for every hint about a shard until stop is called. Calls come one after the other; look must not block.
func (c *Conn) OnTimers(shard int, look func()) (stop func(), err error) {
	return c.onHint(c.names.TimerSubject(shard), look)
}

// OnShards is OnTimers for changes of a pool's shards.
func (c *Conn) OnShards(pool string, look func()) (stop func(), err error) {
	return c.onHint(c.names.ShardsSubject(pool), look)
}

func (c *Conn) onHint(subject string, look func()) (func(), error) {
	sub, err := c.con.Subscribe(subject, func(*nats.Msg) { look() })
	if err != nil {
		return nil, rendezvous.Errorf(rendezvous.CodeUnavailable, "cannot listen on %s: the NATS connection is closed", subject).Because(err)
	}
	var once sync.Once
	return func() {
		once.Do(func() { _ = sub.Unsubscribe() }) // fails only when it is gone already
	}, nil
}
