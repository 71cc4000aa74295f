// Package oauth gets the bearer tokens of registrations that authorize themselves by OAuth 2.0 client credentials (push.md section 9). Tokens are fetched through
// the guarded transport, by the rules of targets that hold for the registration, and kept in memory only.
package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/push/transport"
)

const (
	timeout = 10 * time.Second
	maxBody = 64 << 10
	// early is how long before its expiry a token is not used any more.
	early = 30 * time.Second
	// A token whose answer does not say how long it is good is kept for assumed; none is kept for more than longest.
	assumed = 5 * time.Minute
	longest = 24 * time.Hour
	// most is how many tokens are kept.
	most = 10_000
)

// Codes of errors of class auth, beside those of the transport.
const (
	CodeRefused   = "token_refused"   // the endpoint answered, and not with a token
	CodeMalformed = "token_malformed" // its answer is not what it should be
)

// Key names whose token it is: no two registrations share one.
type Key struct{ Tenant, Run, ID string }

// Tokens gets tokens and keeps them until 30 s before they expire. It is safe for concurrent use.
type Tokens struct {
	client  *transport.Client
	clock   clock.Clock
	version string
	mu      sync.Mutex
	kept    map[Key]token
}

type token struct {
	bearer  rendezvous.Secret // none: it was dropped
	auth    [sha256.Size]byte // for which credentials it was given
	expires time.Time
	// renewed: the one before was refused by the receiver. This one is then not dropped for that, until it was accepted once.
	renewed bool
}

// New makes Tokens. version is that of this build.
func New(client *transport.Client, c clock.Clock, version string) *Tokens {
	return &Tokens{client: client, clock: c, version: version, kept: map[Key]token{}}
}

// Bearer answers the token of a registration, a kept one or a new one. The error is of class auth where the endpoint failed; config, forbidden or own where
// it was not asked, or not to the end.
func (t *Tokens) Bearer(ctx context.Context, key Key, auth rendezvous.PushAuth) (rendezvous.Secret, *transport.Error) {
	digest := digestOf(auth)
	kept, ok := t.get(key, digest)
	if ok && kept.bearer.Set() {
		return kept.bearer, nil
	}
	bearer, expires, fault := t.fetch(ctx, rendezvous.RegistrationNamespace(key.ID), auth)
	if fault != nil {
		return rendezvous.Secret{}, fault
	}
	t.put(key, token{bearer: bearer, auth: digest, expires: expires, renewed: ok && kept.renewed})
	return bearer, nil
}

// Heard tells how the receiver answered a request with the registration's token. On a 401 the token is dropped, once: when the next one is refused as well, it is
// not the token.
func (t *Tokens) Heard(key Key, status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept, ok := t.kept[key]
	switch {
	case !ok:
	case status == 401 && !kept.renewed:
		kept.bearer, kept.renewed = rendezvous.Secret{}, true
		t.kept[key] = kept
	case status >= 200 && status <= 299 && kept.renewed:
		kept.renewed = false
		t.kept[key] = kept
	}
}

// get answers what is kept for those credentials: a token that is good, or none in place of one that was dropped.
func (t *Tokens) get(key Key, digest [sha256.Size]byte) (token, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept, ok := t.kept[key]
	if !ok || kept.auth != digest || !t.clock.Now().Before(kept.expires) {
		return token{}, false
	}
	return kept, true
}

func (t *Tokens) put(key Key, fresh token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, held := t.kept[key]; !held && len(t.kept) >= most {
		t.makeRoom()
	}
	t.kept[key] = fresh
}

// makeRoom forgets what has expired, and where that is not a tenth of all, any others: they are fetched again. So it is seldom called.
func (t *Tokens) makeRoom() {
	now := t.clock.Now()
	maps.DeleteFunc(t.kept, func(_ Key, kept token) bool { return !now.Before(kept.expires) })
	for key := range t.kept {
		if len(t.kept) <= most-most/10 {
			return
		}
		delete(t.kept, key)
	}
}

func digestOf(auth rendezvous.PushAuth) [sha256.Size]byte {
	var b strings.Builder
	for _, text := range append([]string{auth.TokenURL, auth.ClientID, auth.ClientSecret.Reveal()}, auth.Scopes...) {
		b.WriteString(strconv.Itoa(len(text)) + ":" + text)
	}
	return sha256.Sum256([]byte(b.String()))
}

// fetch asks the endpoint, and answers the token and until when it is used.
func (t *Tokens) fetch(ctx context.Context, namespace rendezvous.PushNamespace, auth rendezvous.PushAuth) (rendezvous.Secret, time.Time, *transport.Error) {
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(auth.Scopes) > 0 {
		form.Set("scope", strings.Join(auth.Scopes, " "))
	}
	basic := url.QueryEscape(auth.ClientID) + ":" + url.QueryEscape(auth.ClientSecret.Reveal())
	a := t.client.Do(ctx, transport.Request{
		Namespace: namespace, URL: auth.TokenURL, Timeout: timeout, Body: []byte(form.Encode()), MaxBody: maxBody, BodyTime: timeout,
		Headers: []transport.Header{
			{Name: "Content-Type", Value: "application/x-www-form-urlencoded"},
			{Name: "Accept", Value: "application/json"},
			{Name: "Accept-Encoding", Value: "identity"},
			{Name: "User-Agent", Value: "Rendezvous/" + t.version},
			{Name: "Authorization", Value: "Basic " + base64.StdEncoding.EncodeToString([]byte(basic))},
		},
	})
	if a.Err != nil {
		return rendezvous.Secret{}, time.Time{}, failed(a.Err)
	}
	if a.Status != 200 {
		return rendezvous.Secret{}, time.Time{}, refused(a.Status)
	}
	bearer, good, ok := read(a)
	if !ok {
		return rendezvous.Secret{}, time.Time{}, transport.Failed(rendezvous.ClassAuth, CodeMalformed, "the token endpoint's answer has no bearer token that can be sent", nil)
	}
	return bearer, t.clock.Now().Add(good - early), nil
}

// failed is an error of the request for a token as one of the attempt that needed it.
func failed(err *transport.Error) *transport.Error {
	if err.Class == rendezvous.ClassSilent {
		return transport.Failed(rendezvous.ClassAuth, err.Code, "the token endpoint: "+err.Text, err)
	}
	return err
}

func refused(status int) *transport.Error {
	return transport.Failed(rendezvous.ClassAuth, CodeRefused, "the token endpoint answered "+strconv.Itoa(status), nil)
}

// read reads the token and how long it is good.
func read(a transport.Attempt) (rendezvous.Secret, time.Duration, bool) {
	var answer struct {
		Token   string          `json:"access_token"`
		Type    string          `json:"token_type"`
		Expires json.RawMessage `json:"expires_in"`
	}
	if !a.Complete || json.Unmarshal(a.Body, &answer) != nil || answer.Token == "" || strings.Trim(answer.Token, bearerBytes) != "" ||
		answer.Type != "" && !strings.EqualFold(answer.Type, "bearer") {
		return rendezvous.Secret{}, 0, false
	}
	return rendezvous.NewSecret(answer.Token), lifetime(string(answer.Expires)), true
}

// bearerBytes is what a bearer token may be made of (RFC 6750).
const bearerBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="

// lifetime reads seconds, which some endpoints give in quotes.
func lifetime(text string) time.Duration {
	seconds, err := strconv.ParseFloat(strings.Trim(text, `"`), 64)
	if err != nil || !(seconds > 0) {
		return assumed
	}
	return time.Duration(min(seconds, longest.Seconds()) * float64(time.Second))
}
