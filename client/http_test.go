package client_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/wire"
)

// stranger is what an error says of a server that is no HTTP door.
const stranger = "no Rendezvous API"

// A NATS server greets whoever connects: net/http may have hung up on it before the request is on its way.
func TestAServerThatSpeaksFirstIsNoPlane(t *testing.T) {
	l := ok(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	hungUp := make(chan struct{})
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, "INFO {}\r\n")
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
		close(hungUp)
	}()
	c := ok(client.New(client.Options{URL: "http://" + l.Addr().String(), Retry: client.Retry{Tries: 1}}))(t)
	defer c.Close()
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { <-hungUp }})
	_, err := c.GetRun(ctx, wire.WorkflowRef{WorkflowID: "w"})
	if !errors.Is(err, rendezvous.ErrUnavailable) || !strings.Contains(err.Error(), stranger) {
		t.Errorf("got %v, want that it is %s", err, stranger)
	}
}

// breaking is a connection that breaks with an error.
type breaking struct{ error }

// RoundTrip implements http.RoundTripper.
func (b breaking) RoundTrip(*http.Request) (*http.Response, error) { return nil, b.error }

// A plane that restarts closes the connections it had: that is a lost reply, and no other server.
func TestAConnectionThatAPeerClosedIsALostReply(t *testing.T) {
	reset := &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}
	for _, cause := range []error{
		errors.New("http: server closed idle connection"),
		fmt.Errorf("readLoopPeekFailLocked: %w", reset),
		errors.New("readLoopPeekFailLocked: unexpected EOF"), // TLS
		reset, io.EOF,
	} {
		c := ok(client.New(client.Options{URL: "http://127.0.0.1:1", HTTP: &http.Client{Transport: breaking{cause}}, Retry: client.Retry{Tries: 1}}))(t)
		_, err := c.StartRun(t.Context(), wire.StartRun{Type: "order"})
		c.Close()
		if !errors.Is(err, rendezvous.ErrCommitUnknown) || strings.Contains(err.Error(), stranger) {
			t.Errorf("%v: got %v, want a lost reply", cause, err)
		}
	}
}
