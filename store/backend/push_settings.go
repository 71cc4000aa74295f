package backend

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// storedPush is what callers set as it is stored: secrets in clear, which the domain's own forms never show.
type storedPush struct {
	URL            string         `json:"url,omitempty"`
	Token          string         `json:"token,omitempty"`
	Auth           *storedAuth    `json:"auth,omitempty"`
	Headers        [][2]string    `json:"headers,omitempty"`
	Certificates   string         `json:"certificates,omitempty"`
	TLSKey         string         `json:"tls_key,omitempty"`
	Authorities    string         `json:"authorities,omitempty"`
	Signing        []storedKey    `json:"signing,omitempty"`
	Projection     string         `json:"projection,omitempty"`
	Events         []string       `json:"events,omitempty"`
	IncludePayload *bool          `json:"include_payload,omitempty"`
	Follow         string         `json:"follow,omitempty"`
	TimeoutMS      int64          `json:"timeout_ms,omitempty"`
	MaxAttempts    int            `json:"max_attempts,omitempty"`
	OnRejectLimit  int            `json:"on_reject_limit,omitempty"`
	Handshake      string         `json:"handshake,omitempty"`
	Trace          *bool          `json:"trace,omitempty"`
	Rotated        *storedRotated `json:"rotated,omitempty"`
}

type storedAuth struct {
	Kind         string   `json:"kind"`
	Scheme       string   `json:"scheme,omitempty"`
	Credentials  string   `json:"credentials,omitempty"`
	User         string   `json:"user,omitempty"`
	Password     string   `json:"password,omitempty"`
	TokenURL     string   `json:"token_url,omitempty"`
	ClientID     string   `json:"client_id,omitempty"`
	ClientSecret string   `json:"client_secret,omitempty"`
	Scopes       []string `json:"scopes,omitempty"`
}

type storedKey struct {
	Key       string    `json:"key"`
	ID        string    `json:"id"`
	Algorithm string    `json:"algorithm"`
	Public    string    `json:"public,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

type storedRotated struct {
	Op        string    `json:"op"`
	KeyID     string    `json:"key_id"`
	Generated bool      `json:"generated,omitempty"`
	At        time.Time `json:"at"`
}

// EncodePushSettings is s as it is stored. Equal settings have equal bytes.
func EncodePushSettings(s PushSettings) []byte {
	auth := s.Auth
	w := storedPush{
		URL: s.URL, Token: s.Token.Reveal(), Certificates: s.TLS.Certificates, TLSKey: s.TLS.Key.Reveal(), Authorities: s.TLS.Authorities,
		Projection: string(s.Projection), Events: s.Events, IncludePayload: s.IncludePayload, Follow: s.Follow, TimeoutMS: s.Timeout.Milliseconds(),
		MaxAttempts: s.MaxAttempts, OnRejectLimit: s.OnRejectLimit, Handshake: s.Handshake, Trace: s.Trace,
	}
	if auth.Kind != rendezvous.AuthNone {
		w.Auth = &storedAuth{
			Kind: string(auth.Kind), Scheme: auth.Scheme, Credentials: auth.Credentials.Reveal(), User: auth.User, Password: auth.Password.Reveal(),
			TokenURL: auth.TokenURL, ClientID: auth.ClientID, ClientSecret: auth.ClientSecret.Reveal(), Scopes: auth.Scopes,
		}
	}
	for _, h := range s.Headers {
		w.Headers = append(w.Headers, [2]string{h.Name, h.Value.Reveal()})
	}
	for _, k := range s.Signing {
		w.Signing = append(w.Signing, storedKey{k.Key.Reveal(), k.ID, k.Algorithm, k.Public, k.CreatedAt, k.ExpiresAt})
	}
	if s.Rotated.Op != "" {
		r := storedRotated(s.Rotated)
		w.Rotated = &r
	}
	raw, err := json.Marshal(w)
	if err != nil {
		panic("backend: encode the settings of a registration") // texts and instants always encode; no error that could quote one
	}
	return raw
}

// errSettings says that settings do not decode, and nothing of them.
var errSettings = errors.New("the settings of a registration do not decode")

// DecodePushSettings reads what EncodePushSettings made.
func DecodePushSettings(raw []byte, run, id string) (PushSettings, error) {
	var w storedPush
	if json.Unmarshal(raw, &w) != nil {
		return PushSettings{}, errSettings
	}
	s := PushSettings{Registration: rendezvous.Registration{
		RunID: run, ID: id, URL: w.URL, Token: rendezvous.NewSecret(w.Token),
		TLS:        rendezvous.PushTLS{Certificates: w.Certificates, Key: rendezvous.NewSecret(w.TLSKey), Authorities: w.Authorities},
		Projection: rendezvous.Projection(w.Projection), Events: w.Events, IncludePayload: w.IncludePayload, Follow: w.Follow,
		Timeout: time.Duration(w.TimeoutMS) * time.Millisecond, MaxAttempts: w.MaxAttempts, OnRejectLimit: w.OnRejectLimit, Handshake: w.Handshake, Trace: w.Trace,
	}}
	if a := w.Auth; a != nil {
		s.Auth = rendezvous.PushAuth{
			Kind: rendezvous.PushAuthKind(a.Kind), Scheme: a.Scheme, Credentials: rendezvous.NewSecret(a.Credentials), User: a.User,
			Password: rendezvous.NewSecret(a.Password), TokenURL: a.TokenURL, ClientID: a.ClientID, ClientSecret: rendezvous.NewSecret(a.ClientSecret), Scopes: a.Scopes,
		}
	}
	for _, h := range w.Headers {
		s.Headers = append(s.Headers, rendezvous.PushHeader{Name: h[0], Value: rendezvous.NewSecret(h[1])})
	}
	for _, k := range w.Signing {
		s.Signing = append(s.Signing, rendezvous.SigningKey{
			Key: rendezvous.NewSecret(k.Key), ID: k.ID, Algorithm: k.Algorithm, Public: k.Public, CreatedAt: k.CreatedAt.UTC(), ExpiresAt: k.ExpiresAt.UTC(),
		})
	}
	if w.Rotated != nil {
		s.Rotated = PushRotated(*w.Rotated)
	}
	return s, nil
}

// EncodePushAttempt is an attempt as it is stored, nil for none.
func EncodePushAttempt(a *rendezvous.PushAttempt) []byte {
	if a == nil {
		return nil
	}
	raw, err := json.Marshal(a)
	if err != nil {
		panic("backend: encode an attempt: " + err.Error()) // texts, numbers and instants always encode
	}
	return raw
}

// DecodePushAttempt reads what EncodePushAttempt made.
func DecodePushAttempt(raw []byte) (*rendezvous.PushAttempt, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var a rendezvous.PushAttempt
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, err
	}
	if !a.Class.Known() {
		return nil, errors.New("unknown class")
	}
	a.At, a.NextAttemptAt = a.At.UTC(), a.NextAttemptAt.UTC()
	return &a, nil
}
