package transport

import (
	"bufio"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rendezvous-events/rendezvous/push/target"
)

// conn is a connection to a receiver. One request at a time has it; between requests the pool has it, and listens to it.
type conn struct {
	net.Conn // TLS or not
	counter  *counter
	reader   *bufio.Reader
	address  netip.AddrPort
	born     time.Time

	// What it may carry, and by which policy it was opened.
	partition partition
	policy    *target.Policy

	idleSince time.Time
	listening chan struct{} // closed when the listening ended
	alive     bool          // what it ended with; read behind listening
}

// counter counts what is written to the socket itself, below TLS.
type counter struct {
	net.Conn
	written atomic.Int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.written.Add(int64(n))
	return n, err
}

// past is a deadline that is over: what waits for the connection returns.
var past = time.Unix(1, 0)

// Close closes the socket. TLS is not told to say goodbye: that would wait for a receiver that does not read.
func (c *conn) Close() error { return c.counter.Conn.Close() }

// listen waits for the receiver to say something or hang up, neither of which it should: then gone is called. hush ends the listening.
func (c *conn) listen(listeners *sync.WaitGroup, gone func()) {
	c.listening = make(chan struct{})
	listeners.Go(func() {
		defer close(c.listening)
		_, err := c.reader.Peek(1)
		if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
			c.alive = true
			return
		}
		c.alive = false
		gone()
	})
}

// hush ends the listening and reports whether the connection can be used.
func (c *conn) hush() bool {
	_ = c.SetReadDeadline(past)
	<-c.listening
	return c.alive && c.SetReadDeadline(time.Time{}) == nil
}
