package postgres_test

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"testing"
)

// cut is where a proxy cuts a connection.
type cut int

const (
	cutNothing      cut = iota
	cutBeforeCommit     // COMMIT never reaches the server
	cutAfterCommit      // the server answers COMMIT, the client never hears it
)

// proxy stands between a store and its database and cuts one connection where it is told to.
type proxy struct {
	listener net.Listener
	upstream string

	mu    sync.Mutex
	armed cut
	open  map[net.Conn]struct{}
	done  sync.WaitGroup
}

// startProxy starts a proxy for the database at address and answers the URL that leads through it; the test ends it.
func startProxy(tb testing.TB, address string) (*proxy, string) {
	tb.Helper()
	u, err := url.Parse(address)
	if err != nil {
		tb.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &proxy{listener: l, upstream: u.Host, open: map[net.Conn]struct{}{}}
	p.done.Go(p.accept)
	tb.Cleanup(func() {
		_ = l.Close()
		p.cutAll()
		p.done.Wait()
	})
	u.Host = l.Addr().String()
	return p, u.String()
}

// arm makes the next COMMIT be cut.
func (p *proxy) arm(c cut) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = c
}

// strike takes the armed cut.
func (p *proxy) strike() cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.armed
	p.armed = cutNothing
	return c
}

// cutAll cuts every connection now.
func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open {
		_ = c.Close()
	}
}

func (p *proxy) track(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[c] = struct{}{}
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.upstream)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.track(client)
		p.track(server)
		p.done.Go(func() { p.serve(client, server) })
	}
}

// commitMessage is how the driver says COMMIT.
var commitMessage = []byte("Q\x00\x00\x00\x0bcommit\x00")

// serve forwards both ways until either side ends or the cut comes.
func (p *proxy) serve(client, server net.Conn) {
	cutting := make(chan struct{})
	var back sync.WaitGroup
	back.Go(func() {
		defer client.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			select {
			case <-cutting:
				return // what the server says now is the answer to COMMIT
			default:
			}
			if n > 0 {
				if _, err := client.Write(buf[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	defer back.Wait()
	defer server.Close()
	defer client.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := client.Read(buf)
		if bytes.Contains(buf[:n], commitMessage) {
			switch p.strike() {
			case cutBeforeCommit:
				return
			case cutAfterCommit:
				close(cutting)
				_, _ = server.Write(buf[:n])
				back.Wait()
				return
			}
		}
		if n > 0 {
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
