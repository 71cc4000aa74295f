package transport

import (
	"context"
	"net"
	"slices"
)

// Dial replaces how a judged address is dialled.
func (c *Client) Dial(dial func(ctx context.Context, dialer *net.Dialer, address string) (net.Conn, error)) {
	c.dial = dial
}

// Hung waits until every idle connection was seen to hang up, or say something.
func (c *Client) Hung() {
	c.pool.mu.Lock()
	idle := slices.Clone(c.pool.idle)
	c.pool.mu.Unlock()
	for _, conn := range idle {
		<-conn.listening
	}
}

// Idle is how many connections are idle.
func (c *Client) Idle() int {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	return len(c.pool.idle)
}
