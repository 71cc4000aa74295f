// Package sink is the cheapest receiver of webhooks there is: benchmarks have it on the same processors as what they measure. It understands what the transport
// sends and nothing else of HTTP.
package sink

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
)

// Request is what came. Its body is the next request's when the answer is given.
type Request struct {
	Began time.Time // when its first line was there
	Body  []byte
}

// Answer writes what is answered to a request. With an error the connection is closed.
type Answer func(w io.Writer, r Request) error

// Accept takes whatever comes.
func Accept(w io.Writer, _ Request) error {
	_, err := io.WriteString(w, "HTTP/1.1 204 No Content\r\n\r\n")
	return err
}

// Sink is a receiver. Close ends it.
type Sink struct {
	listener net.Listener
	answer   Answer
	serving  sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool // nil when it is closed
}

// Listen starts a receiver on a free port of loopback.
func Listen(answer Answer) (*Sink, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Sink{listener: l, answer: answer, conns: map[net.Conn]bool{}}
	s.serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if s.keep(conn) {
				s.serving.Go(func() { s.serve(conn) })
			}
		}
	})
	return s, nil
}

// URL is where it receives.
func (s *Sink) URL() string { return "http://" + s.listener.Addr().String() + "/in" }

// Close hangs up, and returns when all answers have.
func (s *Sink) Close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for conn := range s.conns {
		_ = conn.Close()
	}
	s.conns = nil
	s.mu.Unlock()
	s.serving.Wait()
}

func (s *Sink) keep(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		_ = conn.Close()
		return false
	}
	s.conns[conn] = true
	return true
}

func (s *Sink) serve(conn net.Conn) {
	defer func() {
		_ = conn.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, conn)
	}()
	var body []byte
	for in := bufio.NewReader(conn); ; {
		r, length, err := head(in)
		if err != nil {
			return
		}
		if cap(body) < length {
			body = make([]byte, length)
		}
		r.Body = body[:length]
		if _, err := io.ReadFull(in, r.Body); err != nil {
			return
		}
		if s.answer(conn, r) != nil {
			return
		}
	}
}

var contentLength = []byte("Content-Length: ")

// head reads a request up to its body, and how long that is.
func head(in *bufio.Reader) (r Request, length int, err error) {
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return r, 0, err
		}
		if r.Began.IsZero() {
			r.Began = clock.System.Now()
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			return r, length, nil
		}
		if text, ok := bytes.CutPrefix(line, contentLength); ok {
			if length, err = strconv.Atoi(string(text)); err != nil {
				return r, 0, err
			}
		}
	}
}
