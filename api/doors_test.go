package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"go.uber.org/goleak"

	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/wire"
)

func TestMain(m *testing.M) {
	const server = "github.com/nats-io/nats-server/v2/server"
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction(server+".(*fileStore).flushStreamStateLoop"), // the server leaves these behind when it is shut down
		goleak.IgnoreAnyFunction(server+".(*msgBlock).flushLoop"),
		goleak.IgnoreAnyFunction(server+"/ats.Register.func1"),
	)
}

// reply is what a door answered: an HTTP status over either door, headers, and the body.
type reply struct {
	status int
	header map[string][]string
	body   []byte
}

// code is the error code of a refusal, "" of anything else.
func (r reply) code() string {
	var e wire.ErrorBody
	_ = json.Unmarshal(r.body, &e)
	return string(e.Error.Code)
}

// door is a way to the verbs.
type door interface {
	name() string
	call(t *testing.T, tenant, verb, body string) reply
}

// doors are both ways to the verbs of one node.
func doors(t *testing.T, n *node.Node) []door {
	t.Helper()
	return []door{newHTTPDoor(t, n, ""), natsDoor{nodetest.NATS(t, n.NATSURL)}}
}

type httpDoor struct {
	base, token string
	client      *http.Client
}

func newHTTPDoor(t *testing.T, n *node.Node, token string) httpDoor {
	d := httpDoor{base: "http://" + n.HTTP + "/v1/", token: token, client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(d.client.CloseIdleConnections)
	return d
}

func (httpDoor) name() string { return "http" }

func (d httpDoor) call(t *testing.T, tenant, verb, body string) reply {
	t.Helper()
	return d.post(t, tenant+"/"+verb, []byte(body), nil)
}

func (d httpDoor) post(t *testing.T, path string, body []byte, header http.Header) reply {
	t.Helper()
	return d.postTo(t, "", path, body, header)
}

// postTo posts to the server by another name than its address.
func (d httpDoor) postTo(t *testing.T, host, path string, body []byte, header http.Header) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), nodetest.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.base+path, bytes.NewReader(body))
	must(t, err)
	req.Host = host // "": its address
	for k, v := range header {
		req.Header[k] = v
	}
	if d.token != "" {
		req.Header.Set("Authorization", "Bearer "+d.token)
	}
	resp, err := d.client.Do(req)
	must(t, err)
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	must(t, err)
	if ct := resp.Header.Get("Content-Type"); ct != "application/json" {
		t.Errorf("%s: content type %q", path, ct)
	}
	return reply{resp.StatusCode, resp.Header, got}
}

type natsDoor struct{ nc *nats.Conn }

func (natsDoor) name() string { return "nats" }

func (d natsDoor) call(t *testing.T, tenant, verb, body string) reply {
	t.Helper()
	return d.request(t, "rdv."+tenant+".api."+verb, []byte(body))
}

func (d natsDoor) request(t *testing.T, subject string, body []byte) reply {
	t.Helper()
	m, err := d.nc.Request(subject, body, nodetest.Patience)
	if err != nil {
		t.Fatalf("request %s: %v", subject, err)
	}
	r := reply{http.StatusOK, m.Header, m.Data}
	if status := m.Header.Get(micro.ErrorCodeHeader); status != "" {
		if r.status, err = strconv.Atoi(status); err != nil {
			t.Errorf("%s: %s is %q, not a number", subject, micro.ErrorCodeHeader, status)
		}
		if m.Header.Get(micro.ErrorHeader) == "" {
			t.Errorf("%s: no %s beside the code", subject, micro.ErrorHeader)
		}
	}
	return r
}

// ok calls and expects success.
func ok(t *testing.T, d door, tenant, verb, body string) []byte {
	t.Helper()
	r := d.call(t, tenant, verb, body)
	if r.status != http.StatusOK {
		t.Fatalf("%s %s %s: status %d: %s", d.name(), verb, body, r.status, r.body)
	}
	return r.body
}

// refused calls and expects an error of that status and code.
func refused(t *testing.T, d door, tenant, verb, body string, status int, code string) reply {
	t.Helper()
	r := d.call(t, tenant, verb, body)
	checkRefused(t, r, status, code)
	return r
}

func checkRefused(t *testing.T, r reply, status int, code string) {
	t.Helper()
	if r.status != status || r.code() != code {
		t.Errorf("status %d code %q, want %d %q: %.300s", r.status, r.code(), status, code, r.body)
	}
	match(t, `{"error":{"code":"<text>","message":"<text>","details?":"<any>"}}`, r.body)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wrapWith is a decorator that puts a store behind failures.
func wrapWith(faults **fault.Backend) func(backend.Backend) backend.Backend {
	return func(b backend.Backend) backend.Backend {
		*faults = fault.Wrap(b)
		return *faults
	}
}
