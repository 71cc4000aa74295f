package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/wire"
)

// maxReply bounds a reply's body. The largest are the answers of a collect, a suspend or an append, 16 MiB of payload (rendezvous.MaxCollectBytes) in
// base64, and a page of 10,000 records, whose ids come on top of the page's 4 MiB: up to 50 MiB if all of them are of the greatest length and escaped.
const maxReply = 64 << 20

// maxRequest is what the HTTP door takes, less the envelope.
const maxRequest = 30 << 20

var w3c = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})

// httpTransport sends POST <base>/v1/<tenant>/<verb>.
type httpTransport struct {
	base  string
	token string
	http  *http.Client
	own   bool // http is ours, and tells what it does
}

func newHTTPTransport(o Options) (*httpTransport, error) {
	u, err := url.Parse(o.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" {
		return nil, rendezvous.InvalidField("URL", "is not the base of an HTTP door, such as %s", DefaultURL)
	}
	t := &httpTransport{base: strings.TrimSuffix(o.URL, "/") + "/v1/", token: o.Token, http: o.HTTP}
	if t.own = t.http == nil; t.own {
		// Many calls go to one host: the default of two idle connections would dial for nearly each of them.
		t.http = &http.Client{Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 256, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second,
		}}
	}
	return t, nil
}

func (t *httpTransport) room() int { return maxRequest }

func (t *httpTransport) close() { t.http.CloseIdleConnections() }

func (t *httpTransport) call(ctx context.Context, tenant, verb string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.base+tenant+"/"+verb, bytes.NewReader(body))
	if err != nil {
		return nil, rendezvous.InvalidField("verb", "%q does not make a path", verb).Because(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if t.token != "" {
		req.Header.Set("Authorization", "Bearer "+t.token)
	}
	w3c.Inject(ctx, propagation.HeaderCarrier(req.Header))
	var connected atomic.Bool
	resp, err := t.http.Do(req.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})))
	if err != nil {
		return nil, httpFailure(err, t.own && !connected.Load())
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	switch {
	case err != nil:
		return nil, lost(err)
	case len(reply) > maxReply:
		return nil, rendezvous.OverLimit("reply", maxReply, len(reply))
	case resp.StatusCode != http.StatusOK:
		return nil, refusal(resp, reply)
	}
	return reply, nil
}

// httpFailure tells a request that was not sent from one whose reply is lost. dialing says that there was no connection to send it on.
func httpFailure(err error, dialing bool) error {
	var op *net.OpError
	if dialing || errors.As(err, &op) && op.Op == "dial" {
		return unsent(err)
	}
	// net/http has no other words for a server that speaks something else: as an answer, and before it was asked, which fails without an error. With one a peer
	// closed or reset the connection, as a plane does that restarts.
	if text := err.Error(); strings.Contains(text, "malformed HTTP") || strings.Contains(text, "readLoopPeekFailLocked: %!w(<nil>)") {
		return rendezvous.Errorf(rendezvous.CodeCommitUnknown, "what answers there is no Rendezvous API: it does not speak HTTP (is it the NATS port?); see that the URL is the API's").Because(err)
	}
	return lost(err)
}

// refusal is the error of a reply that is not 200, also of one that is not the plane's own: a proxy's, say.
func refusal(resp *http.Response, body []byte) error {
	e := errorIn(body)
	if e == nil {
		e = rendezvous.Errorf(codeOf(resp.StatusCode), "the HTTP door answered status %d without an error of this plane; is the URL right?", resp.StatusCode)
	}
	if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 && Retryable(e) {
		e = e.With(retryDetail, (time.Duration(min(s, 3600)) * time.Second).Milliseconds())
	}
	return e
}

// errorIn is the error a reply's body holds, nil if it holds none.
func errorIn(body []byte) *rendezvous.Error {
	var b wire.ErrorBody
	if json.Unmarshal(body, &b) != nil || b.Error.Code == "" {
		return nil
	}
	return rendezvous.AsError(b.Error.Domain())
}

// codeOf is the code for a status that came without one.
func codeOf(status int) rendezvous.Code {
	switch status {
	case http.StatusBadRequest, http.StatusMethodNotAllowed:
		return rendezvous.CodeInvalid
	case http.StatusUnauthorized, http.StatusForbidden:
		return rendezvous.CodeUnauthorized
	case http.StatusNotFound:
		return rendezvous.CodeNotFound
	case http.StatusConflict:
		return rendezvous.CodeConflict
	case http.StatusRequestEntityTooLarge:
		return rendezvous.CodeTooLarge
	case http.StatusTooManyRequests:
		return rendezvous.CodeRateLimited
	case http.StatusGatewayTimeout, http.StatusBadGateway:
		return rendezvous.CodeCommitUnknown // the door behind may have done it
	}
	if status >= http.StatusInternalServerError {
		return rendezvous.CodeUnavailable
	}
	return rendezvous.CodeInvalid
}
