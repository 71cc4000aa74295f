package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/wire"
)

// A handler meets the whole answer, also where the reply had no room for its payload (decision 0007): the history has it.
func TestAnAnswerWithoutItsPayloadIsReadFromTheHistory(t *testing.T) {
	p := newPlane(t, settings{})
	var left atomic.Int32
	narrow := httptest.NewServer(leavesOut(t, p.door.URL, &left))
	t.Cleanup(narrow.Close)
	c := p.dial(false, func(o *client.Options) { o.URL = narrow.URL })
	ok(c.PutEvents(t.Context(), ok(client.NewEvent("urn:test", "paid", client.Text("the whole"), key("1")))(t)))(t)
	_, driven := p.execute(c, func(ctx context.Context, run *client.Run) error {
		a, err := run.Await(ctx, "pay", "paid", client.OnKey("order", "1"))
		if err != nil {
			return err
		}
		return run.Complete(ctx, a.Payload)
	})
	s := ok(c.StartRun(t.Context(), wire.StartRun{Type: "order"}))(t)
	until(t, driven, s.RunID, "concluded")
	records := ok(c.History(t.Context(), s.WorkflowID, 1))(t)
	eq(t, "the result", string(records[len(records)-1].Payload), "the whole")
	eq(t, "payloads left out", left.Load(), 1)
}

// leavesOut is a proxy to a plane that takes the payloads out of the answers of waits.register.
func leavesOut(t *testing.T, door string, left *atomic.Int32) http.Handler {
	to := ok(url.Parse(door))(t)
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			var got wire.Registered
			if path.Base(r.Request.URL.Path) != "waits.register" {
				return nil
			}
			if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
				return err
			}
			if got.Answered != nil {
				*got.Answered = got.Answered.WithoutPayload()
				left.Add(1)
			}
			body, err := json.Marshal(got)
			r.Body = io.NopCloser(bytes.NewReader(body))
			r.Header.Set("Content-Length", strconv.Itoa(len(body)))
			r.ContentLength = int64(len(body))
			return err
		},
	}
}

// A record whose payload was left out is never taken for one without a payload.
func TestARecordWithoutItsPayloadIsTooLarge(t *testing.T) {
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"records":[{"seq":1,"kind":"note","payload_omitted":true,"payload_size":0}],"head_seq":1,"more":false}`))
	}))
	defer door.Close()
	c := ok(client.New(client.Options{URL: door.URL}))(t)
	defer c.Close()
	if _, err := c.History(t.Context(), "w", 1); !errors.Is(err, rendezvous.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}
