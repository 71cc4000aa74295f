package transport

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"
)

// exchange writes a request and reads its answer on a connection, which it has for itself; behind it the connection is idle or closed.
func (c *Client) exchange(ctx context.Context, conn *conn, head []byte, r Request, a *Attempt) *Error {
	before := conn.counter.written.Load()
	// When ctx ends, whatever waits for the connection returns.
	released := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(past) })
	w := &writing{conn: conn, before: before, first: make(chan struct{}), done: make(chan struct{}), started: c.clock.Now()}
	go w.run(c, head, r.Body)

	reusable, fault := c.answer(ctx, conn, w, r, a)
	if fault != nil {
		conn.Close() // and the writer, if it still writes, returns
	}
	reusable = w.end() && reusable
	a.Written = conn.counter.written.Load() > before
	if reusable = released() && reusable; reusable { // otherwise its deadline is over
		c.pool.put(conn, c.policy.Load())
	} else {
		conn.Close()
	}
	return fault
}

// answer reads the header section and as much of the body as is asked for, and reports whether the connection could carry another request.
func (c *Client) answer(ctx context.Context, conn *conn, w *writing, r Request, a *Attempt) (bool, *Error) {
	_, err := conn.reader.Peek(1)
	switch ended := w.answered(); {
	case ended == late:
		return false, silent(CodeHeaderTimeout, "no answer began within "+headerTimeout.String(), err)
	case ended == unwritten:
		return false, silent(CodeDisconnected, "the connection took no byte of the request", err)
	case err != nil:
		return false, disconnected(err)
	}
	a.Phases.FirstByte = c.clock.Now().Sub(w.started)
	s, fault := readFinal(conn.reader)
	if fault != nil {
		return false, fault
	}
	a.Status, a.Header = s.status, s.header
	return c.readBody(ctx, conn, s, r, a) && s.keepsAlive() && conn.reader.Buffered() == 0, nil
}

func disconnected(err error) *Error {
	var failed *net.OpError
	text := "the connection ended before the answer did"
	if errors.As(err, &failed) {
		text += ": " + failed.Err.Error()
	}
	return silent(CodeDisconnected, text, err)
}

// writing is a request on its way. The answer may come before it is out, and need not wait for it.
type writing struct {
	conn    *conn
	before  int64 // what the connection's counter was at
	started time.Time
	state   atomic.Int32  // of the wait for the first byte: whoever moves it decides
	first   chan struct{} // closed when the wait is over
	done    chan struct{} // closed when run returns
	whole   bool          // all was written; read behind done
}

const (
	waiting   int32 = iota
	answered        // a byte came, or the connection ended
	late            // none came in time
	unwritten       // there was nothing to wait for
)

// run writes, and from then on waits for the first byte, or for its deadline.
func (w *writing) run(c *Client, head, body []byte) {
	defer close(w.done)
	w.whole = w.write(head, body)
	if !w.whole && w.conn.counter.written.Load() == w.before {
		w.giveUp(unwritten)
		return
	}
	timer := c.clock.NewTimer(headerTimeout)
	defer timer.Stop()
	select {
	case <-w.first:
	case <-timer.C():
		w.giveUp(late)
	}
}

// giveUp ends the wait for the first byte, unless it was over.
func (w *writing) giveUp(why int32) {
	if w.state.CompareAndSwap(waiting, why) {
		_ = w.conn.SetDeadline(past)
	}
}

// small is up to where a body is copied behind the head, so that both are one packet.
const small = 16 << 10

func (w *writing) write(head, body []byte) bool {
	if len(body) <= small {
		head, body = append(head, body...), nil
	}
	for _, part := range [...][]byte{head, body} {
		if len(part) == 0 {
			continue
		}
		if _, err := w.conn.Write(part); err != nil {
			return false
		}
	}
	return true
}

// answered ends the wait for the first byte and answers what ended it.
func (w *writing) answered() int32 {
	if w.state.CompareAndSwap(waiting, answered) {
		close(w.first)
	}
	return w.state.Load()
}

// end waits for the writer and reports whether all was written. A receiver that has answered may never read the rest: a write that still waits for it is ended.
func (w *writing) end() bool {
	w.answered()
	_ = w.conn.SetWriteDeadline(past)
	<-w.done
	return w.conn.SetWriteDeadline(time.Time{}) == nil && w.whole
}
