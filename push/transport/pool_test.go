package transport

import (
	"bufio"
	"net"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
)

// A connection whose receiver hangs up in the moment it is taken is not handed out; the next one is.
func TestAConnectionThatHangsUpWhileItIsTakenIsNotHandedOut(t *testing.T) {
	p := newPool(clock.System, 16, 16)
	defer p.close()
	idle := func() (own *conn, peer net.Conn) {
		near, far := net.Pipe()
		c := &conn{Conn: near, counter: &counter{Conn: near}, reader: bufio.NewReader(near), born: clock.System.Now(), idleSince: clock.System.Now()}
		c.listen(&p.listeners, func() {}) // and so it stays among the idle ones, as it does when it is taken before it is dropped
		p.mu.Lock()
		p.idle = append(p.idle, c)
		p.mu.Unlock()
		return c, far
	}
	good, goodPeer := idle()
	defer goodPeer.Close()
	dead, deadPeer := idle()
	deadPeer.Close()
	<-dead.listening
	taken := p.take(partition{}, nil, time.Second)
	if taken != good {
		t.Fatalf("took the dead one %v, nothing %v", taken == dead, taken == nil)
	}
	// It can be read from: the listening has left no deadline.
	go func() { _, _ = goodPeer.Write([]byte("x")) }()
	if b, err := taken.reader.ReadByte(); b != 'x' || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	taken.Close()
}
