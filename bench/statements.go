package main

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
)

// statements counts those that go to a PostgreSQL server by the way it offers, without TLS.
type statements struct {
	listener net.Listener
	server   string
	n        atomic.Int64
	conns    sync.WaitGroup
}

// countStatements offers a way to the server of a store.
func countStatements(store string) (*statements, error) {
	u, err := url.Parse(store)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &statements{listener: l, server: u.Host}
	s.conns.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Go(func() { s.carry(client) })
		}
	})
	return s, nil
}

// via is a store's URL that leads by this way.
func (s *statements) via(store string) (string, error) {
	u, err := url.Parse(store)
	if err != nil {
		return "", err
	}
	u.Host = s.listener.Addr().String()
	return u.String(), nil
}

// Close returns when all connections have ended: whoever has some ends them first.
func (s *statements) Close() {
	_ = s.listener.Close()
	s.conns.Wait()
}

func (s *statements) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", s.server)
	if err != nil {
		return
	}
	defer server.Close()
	s.conns.Go(func() {
		_, _ = io.Copy(client, server)
		_ = client.Close()
	})
	_ = s.count(bufio.NewReaderSize(client, 64<<10), server)
}

// count passes a client's messages on. The first has a length alone, the others a type before it, which the length does not count.
func (s *statements) count(from *bufio.Reader, to io.Writer) error {
	out := bufio.NewWriterSize(to, 64<<10)
	for before := 0; ; before = 1 {
		head, err := from.Peek(before + 4)
		if err != nil {
			return err
		}
		if before == 1 && (head[0] == 'E' || head[0] == 'Q') { // Execute, Query
			s.n.Add(1)
		}
		if _, err := io.CopyN(out, from, int64(before)+int64(binary.BigEndian.Uint32(head[before:]))); err != nil {
			return err
		}
		if from.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}
