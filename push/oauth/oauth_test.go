package oauth_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/push/oauth"
	"github.com/rendezvous-events/rendezvous/push/target"
	"github.com/rendezvous-events/rendezvous/push/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// endpoint is a token endpoint that hands out t1, t2, …, or answers what it is told to.
type endpoint struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []*http.Request
	forms  []string
	answer func(w http.ResponseWriter, n int)
}

func serve(t *testing.T, answer func(w http.ResponseWriter, n int)) *endpoint {
	t.Helper()
	e := &endpoint{answer: answer}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		e.asked, e.forms = append(e.asked, r), append(e.forms, string(body))
		n := len(e.asked)
		e.mu.Unlock()
		e.answer(w, n)
	}))
	t.Cleanup(e.Close)
	return e
}

func good(w http.ResponseWriter, n int) {
	_, _ = fmt.Fprintf(w, `{"access_token":"t%d","token_type":"Bearer","expires_in":3600}`, n)
}

func (e *endpoint) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.asked)
}

func (e *endpoint) auth() rendezvous.PushAuth {
	return rendezvous.PushAuth{
		Kind: rendezvous.AuthOAuth2, TokenURL: e.URL + "/token?secret=path", ClientID: "the client", ClientSecret: rendezvous.NewSecret("s3cr3t:&"), Scopes: []string{"a", "b:c"},
	}
}

// key is an operator's registration, which reaches this machine.
var key = oauth.Key{Tenant: "acme", Run: "run-1", ID: rendezvous.OperatorRegistration("audit")}

func tokens(t *testing.T, c clock.Clock, s target.Settings) *oauth.Tokens {
	t.Helper()
	policy, err := target.New(s)
	if err != nil {
		t.Fatal(err)
	}
	client := transport.New(transport.Settings{Policy: policy, Clock: c})
	t.Cleanup(client.Close)
	return oauth.New(client, c, "1.2.3")
}

func bearer(t *testing.T, from *oauth.Tokens, key oauth.Key, auth rendezvous.PushAuth, want string) {
	t.Helper()
	got, fault := from.Bearer(t.Context(), key, auth)
	if fault != nil || got.Reveal() != want {
		t.Errorf("%q, %v, want %q", got.Reveal(), fault, want)
	}
}

func TestPU78TheRequestForAToken(t *testing.T) {
	e := serve(t, good)
	bearer(t, tokens(t, clock.System, target.Settings{}), key, e.auth(), "t1")
	r := e.asked[0]
	user, password, ok := r.BasicAuth()
	user, _ = url.QueryUnescape(user)
	password, _ = url.QueryUnescape(password)
	if !ok || user != "the client" || password != "s3cr3t:&" || r.Method != http.MethodPost || r.URL.String() != "/token?secret=path" || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" ||
		r.Header.Get("User-Agent") != "Rendezvous/1.2.3" || r.Header.Get("Accept-Encoding") != "identity" {
		t.Errorf("%+v", r)
	}
	form, err := url.ParseQuery(e.forms[0])
	if err != nil || form.Get("grant_type") != "client_credentials" || form.Get("scope") != "a b:c" || len(form) != 2 {
		t.Errorf("%s, %v", e.forms[0], err)
	}
}

func TestPU78TokensAreKeptUntil30SecondsBeforeTheyExpire(t *testing.T) {
	e := serve(t, good)
	clk := clock.NewManual(time.Now())
	from := tokens(t, clk, target.Settings{})
	bearer(t, from, key, e.auth(), "t1")
	clk.Advance(3600*time.Second - 30*time.Second - 1)
	bearer(t, from, key, e.auth(), "t1")
	clk.Advance(1)
	bearer(t, from, key, e.auth(), "t2")
	bearer(t, from, key, e.auth(), "t2")
	if n := e.count(); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

func TestPU78ATokenIsDroppedOnceOnA401(t *testing.T) {
	e := serve(t, good)
	from := tokens(t, clock.System, target.Settings{})
	bearer(t, from, key, e.auth(), "t1")
	from.Heard(key, 500)
	from.Heard(key, 403)
	bearer(t, from, key, e.auth(), "t1")
	from.Heard(key, 401)
	bearer(t, from, key, e.auth(), "t2")
	for range 3 { // it is not the token
		from.Heard(key, 401)
		bearer(t, from, key, e.auth(), "t2")
	}
	from.Heard(key, 200)
	from.Heard(key, 401)
	bearer(t, from, key, e.auth(), "t3")
	from.Heard(oauth.Key{Tenant: "nobody"}, 401)
}

func TestPU78RegistrationsAndCredentialsHaveTheirOwnTokens(t *testing.T) {
	e := serve(t, good)
	from := tokens(t, clock.System, target.Settings{})
	bearer(t, from, key, e.auth(), "t1")
	for i, other := range []oauth.Key{{"other", key.Run, key.ID}, {key.Tenant, "run-2", key.ID}, {key.Tenant, key.Run, key.ID + "2"}} {
		bearer(t, from, other, e.auth(), fmt.Sprintf("t%d", i+2))
	}
	for i, change := range []func(a *rendezvous.PushAuth){
		func(a *rendezvous.PushAuth) { a.ClientSecret = rendezvous.NewSecret("new") }, func(a *rendezvous.PushAuth) { a.ClientID = "b" }, func(a *rendezvous.PushAuth) { a.Scopes = []string{"a b:c"} },
		func(a *rendezvous.PushAuth) { a.TokenURL += "x" },
	} {
		auth := e.auth()
		change(&auth)
		bearer(t, from, key, auth, fmt.Sprintf("t%d", i+5))
	}
}

func TestPU78WhatTheEndpointMaySay(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		kept time.Duration // how long the token serves
	}{
		"a number":            {`{"access_token":"t","token_type":"bearer","expires_in":60}`, 30 * time.Second},
		"a number in quotes":  {`{"access_token":"t","token_type":"BEARER","expires_in":"60"}`, 30 * time.Second},
		"no expiry":           {`{"access_token":"t"}`, 4*time.Minute + 30*time.Second},
		"an expiry of text":   {`{"access_token":"t","expires_in":"soon"}`, 4*time.Minute + 30*time.Second},
		"a negative expiry":   {`{"access_token":"t","expires_in":-1}`, 4*time.Minute + 30*time.Second},
		"an expiry for ever":  {`{"access_token":"t","expires_in":1e300}`, 24*time.Hour - 30*time.Second},
		"less than the grace": {`{"access_token":"t","expires_in":10}`, 0},
	} {
		e := serve(t, func(w http.ResponseWriter, _ int) { _, _ = io.WriteString(w, c.body) })
		clk := clock.NewManual(time.Now())
		from := tokens(t, clk, target.Settings{})
		bearer(t, from, key, e.auth(), "t")
		if c.kept > 0 {
			clk.Advance(c.kept - 1)
			if bearer(t, from, key, e.auth(), "t"); e.count() != 1 {
				t.Errorf("%s: not kept for %v", name, c.kept)
			}
			clk.Advance(1)
		}
		before := e.count()
		if bearer(t, from, key, e.auth(), "t"); e.count() != before+1 {
			t.Errorf("%s: kept for more than %v", name, c.kept)
		}
	}
}

func TestPU78WhenTheEndpointFails(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, n int)
		code   string
	}{
		"an error": {func(w http.ResponseWriter, _ int) { w.WriteHeader(500) }, oauth.CodeRefused},
		"bad client": {func(w http.ResponseWriter, _ int) {
			w.WriteHeader(401)
			_, _ = io.WriteString(w, `{"error":"invalid_client"}`)
		}, oauth.CodeRefused},
		"a redirect": {func(w http.ResponseWriter, _ int) { w.Header().Set("Location", "/else"); w.WriteHeader(302) }, oauth.CodeRefused},
		"no JSON":    {func(w http.ResponseWriter, _ int) { _, _ = io.WriteString(w, "access_token=t") }, oauth.CodeMalformed},
		"no token":   {func(w http.ResponseWriter, _ int) { _, _ = io.WriteString(w, `{}`) }, oauth.CodeMalformed},
		"another type": {func(w http.ResponseWriter, _ int) {
			_, _ = io.WriteString(w, `{"access_token":"t","token_type":"mac"}`)
		}, oauth.CodeMalformed},
		"a line break":   {func(w http.ResponseWriter, _ int) { _, _ = io.WriteString(w, `{"access_token":"t\r\nX: y"}`) }, oauth.CodeMalformed},
		"not only ASCII": {func(w http.ResponseWriter, _ int) { _, _ = io.WriteString(w, `{"access_token":"tü"}`) }, oauth.CodeMalformed},
		"over 64 KiB": {func(w http.ResponseWriter, _ int) {
			_, _ = io.WriteString(w, `{"access_token":"t","x":"`+strings.Repeat("x", 64<<10)+`"}`)
		}, oauth.CodeMalformed},
		"hung up": {func(http.ResponseWriter, int) { panic(http.ErrAbortHandler) }, transport.CodeDisconnected},
	} {
		e := serve(t, c.answer)
		from := tokens(t, clock.System, target.Settings{})
		for i := range 2 {
			got, fault := from.Bearer(t.Context(), key, e.auth())
			if fault == nil || fault.Class != rendezvous.ClassAuth || fault.Code != c.code || got.Set() || fault.Park != "" {
				t.Errorf("%s: %v, %+v", name, got, fault)
				continue
			}
			if shown := fault.Error(); strings.Contains(shown, "s3cr3t") || strings.Contains(shown, "path") {
				t.Errorf("%s: %s", name, shown)
			}
			if n := e.count(); n != i+1 {
				t.Errorf("%s: asked %d times for %d attempts", name, n, i+1)
			}
		}
	}
}

// PU-85, PU-87: the token's URL is judged like the receiver's, by the rules of the registration's namespace.
func TestPU78TheTokenURLIsJudgedLikeAnyTarget(t *testing.T) {
	e := serve(t, good)
	callers := oauth.Key{Tenant: "acme", Run: "run-1", ID: "push-run-1"}
	for url, reason := range map[string]rendezvous.ParkReason{
		e.URL:                         rendezvous.ParkNotHTTPS,
		"https://127.0.0.1/token":     rendezvous.ParkForbiddenLiteral,
		"https://elsewhere.test/":     rendezvous.ParkHostNotGranted,
		"https://hooks.test/#x":       rendezvous.ParkMalformedURL,
		"https://hooks.test:81/token": rendezvous.ParkBadPort,
	} {
		auth := e.auth()
		auth.TokenURL = url
		if _, fault := tokens(t, clock.System, target.Settings{CallerHosts: []string{"hooks.test"}}).Bearer(t.Context(), callers, auth); fault == nil || fault.Class != rendezvous.ClassConfig || fault.Park != reason {
			t.Errorf("%s: %+v, want %s", url, fault, reason)
		}
	}
	if e.count() > 0 {
		t.Error("it was asked")
	}
	// A name that stands for what is refused is tried again later.
	auth := e.auth()
	auth.TokenURL = "https://localhost/token"
	if _, fault := tokens(t, clock.System, target.Settings{CallerHosts: []string{"public"}}).Bearer(t.Context(), callers, auth); fault == nil || fault.Class != rendezvous.ClassForbidden {
		t.Errorf("%+v", fault)
	}
}

func TestPU78AnEndpointHasTenSeconds(t *testing.T) {
	clk := newWatched()
	hold := make(chan struct{})
	e := serve(t, func(w http.ResponseWriter, n int) {
		_, _ = io.WriteString(w, `{"access_token":`)
		_ = http.NewResponseController(w).Flush()
		<-hold
	})
	from := tokens(t, clk, target.Settings{})
	done := make(chan *transport.Error, 1)
	go func() {
		_, fault := from.Bearer(context.Background(), key, e.auth())
		done <- fault
	}()
	clk.await(3) // of the whole, of the first byte, and of the body, in that order
	clk.Advance(10 * time.Second)
	if fault := <-done; fault == nil || fault.Class != rendezvous.ClassAuth {
		t.Errorf("%+v", fault)
	}
	close(hold)
}

func TestPU78GivingUpIsOurOwn(t *testing.T) {
	e := serve(t, good)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, fault := tokens(t, clock.System, target.Settings{}).Bearer(ctx, key, e.auth()); fault == nil || fault.Class != rendezvous.ClassOwn {
		t.Errorf("%+v", fault)
	}
}

// watched tells of every timer of ten seconds.
type watched struct {
	*clock.Manual
	made chan struct{}
}

func newWatched() *watched {
	return &watched{clock.NewManual(time.Now()), make(chan struct{}, 100)}
}

func (w *watched) NewTimer(d time.Duration) clock.Timer {
	t := w.Manual.NewTimer(d)
	if d == 10*time.Second {
		w.made <- struct{}{}
	}
	return t
}

func (w *watched) await(n int) {
	for range n {
		<-w.made
	}
}
