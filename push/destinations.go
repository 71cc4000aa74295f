package push

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/push/target"
)

// Destination is a push destination of the operator: configuration, of which the store knows the name, the events and the types only.
type Destination struct {
	rendezvous.Destination
	Registration rendezvous.Registration // whose run and id are each row's own
}

// Destinations are the operator's push destinations as they are configured now. A reload replaces them all; it is safe for concurrent use.
type Destinations struct{ now atomic.Pointer[configured] }

type configured struct {
	known  []rendezvous.Destination
	byName map[string]rendezvous.Registration
}

// NewDestinations judges a list: any fault is an error that names the destination (PU-6).
func NewDestinations(list []Destination, now time.Time) (*Destinations, error) {
	d := &Destinations{}
	return d, d.Replace(list, now)
}

// Replace has another list hold from the next attempt on. On an error the old one stands.
func (d *Destinations) Replace(list []Destination, now time.Time) error {
	known := make([]rendezvous.Destination, len(list))
	for i, e := range list {
		known[i] = e.Destination
	}
	known, err := rendezvous.CheckDestinations(known)
	if err != nil {
		return err
	}
	byName := make(map[string]rendezvous.Registration, len(list))
	for _, e := range list {
		checked, err := e.check(now)
		if err != nil {
			fault := rendezvous.AsError(err)
			field, _ := fault.Details["field"].(string)
			return rendezvous.InvalidField("push-destinations", "%q: %s", e.Name, fault.Message).With("destination", e.Name).With("part", field)
		}
		byName[e.Name] = checked
	}
	d.now.Store(&configured{known, byName})
	return nil
}

// check judges what is sent for a destination, its URLs as a send judges their form: a typing error is not to park every run's registration.
func (d Destination) check(now time.Time) (rendezvous.Registration, error) {
	r := d.Registration
	r.RunID, r.ID, r.Events = "any", rendezvous.OperatorRegistration(d.Name), d.Events
	r, err := r.Check(now)
	if err != nil {
		return r, err
	}
	if err := target.Check(r.URL); err != nil {
		return r, rendezvous.InvalidField("url", "%s", err)
	}
	if r.Auth.Kind == rendezvous.AuthOAuth2 {
		if err := target.Check(r.Auth.TokenURL); err != nil {
			return r, rendezvous.InvalidField("auth.oauth2.token_url", "%s", err)
		}
	}
	return r, nil
}

// Known is what a store is told of them.
func (d *Destinations) Known() []rendezvous.Destination { return d.now.Load().known }

// Any reports whether there is one.
func (d *Destinations) Any() bool { return len(d.now.Load().known) > 0 }

// Lookup answers what is configured for the registration of that run and id; false where the destination is gone.
func (d *Destinations) Lookup(run, id string) (rendezvous.Registration, bool) {
	r, ok := d.now.Load().byName[strings.TrimPrefix(id, rendezvous.OperatorRegistration(""))]
	r.RunID, r.ID = run, id
	return r, ok
}

// ReadDestinations reads the file of push.destinations: {"destinations": [...]}, each with a name, a url, and what push.put takes beside them. The keys that
// sign are signing_key and, while it is rotated out, rotation_key, the older one.
func ReadDestinations(path string) ([]Destination, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, rendezvous.InvalidField("push-destinations", "cannot be read: name a file of JSON").Because(err)
	}
	var file struct {
		Destinations []written `json:"destinations"`
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&file)
	if _, behind := decoder.Token(); err == nil && behind != io.EOF {
		err = errors.New("something stands behind it")
	}
	if err != nil {
		return nil, rendezvous.InvalidField("push-destinations", "is not JSON of the form {\"destinations\": [{\"name\", \"url\", …}]}: %s", shape(err))
	}
	list := make([]Destination, len(file.Destinations))
	for i, w := range file.Destinations {
		if list[i], err = w.destination(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// shape is what is wrong with a file, without what stands in it.
func shape(err error) string {
	var kind *json.UnmarshalTypeError
	switch {
	case strings.HasPrefix(err.Error(), "json: unknown field"):
		return strings.TrimPrefix(err.Error(), "json: ")
	case errors.As(err, &kind):
		return "the member " + kind.Field + " is of another type"
	}
	return "it does not decode"
}

// written is a destination as the file has it.
type written struct {
	Name  string   `json:"name"`
	Types []string `json:"types"`
	URL   string   `json:"url"`
	Token string   `json:"token"`
	Auth  struct {
		Scheme      string `json:"scheme"`
		Credentials string `json:"credentials"`
		Username    string `json:"username"`
		Password    string `json:"password"`
		OAuth2      *struct {
			TokenURL     string   `json:"token_url"`
			ClientID     string   `json:"client_id"`
			ClientSecret string   `json:"client_secret"`
			Scopes       []string `json:"scopes"`
		} `json:"oauth2"`
	} `json:"auth"`
	Headers []struct{ Name, Value string } `json:"headers"`
	TLS     struct{ Certificates, Key, Authorities string }
	// The key that signs, and the one that it replaced.
	SigningKey  string `json:"signing_key"`
	RotationKey string `json:"rotation_key"`

	Projection     string   `json:"projection"`
	Events         []string `json:"events"`
	IncludePayload *bool    `json:"include_payload"`
	Trace          *bool    `json:"trace"`
	TimeoutMS      int64    `json:"timeout_ms"`
	MaxAttempts    int      `json:"max_attempts"`
	OnRejectLimit  int      `json:"on_reject_limit"`
}

func (w written) destination() (Destination, error) {
	r := rendezvous.Registration{
		URL: w.URL, Token: rendezvous.NewSecret(w.Token), Auth: w.auth(), Projection: rendezvous.Projection(w.Projection), IncludePayload: w.IncludePayload,
		Trace: w.Trace, Timeout: time.Duration(w.TimeoutMS) * time.Millisecond, MaxAttempts: w.MaxAttempts, OnRejectLimit: w.OnRejectLimit,
		TLS: rendezvous.PushTLS{Certificates: w.TLS.Certificates, Key: rendezvous.NewSecret(w.TLS.Key), Authorities: w.TLS.Authorities},
	}
	for _, h := range w.Headers {
		r.Headers = append(r.Headers, rendezvous.PushHeader{Name: h.Name, Value: rendezvous.NewSecret(h.Value)})
	}
	if w.RotationKey != "" && w.SigningKey == "" {
		return Destination{}, rendezvous.InvalidField("push-destinations", "%q has a rotation_key and no signing_key", w.Name).With("destination", w.Name)
	}
	for _, key := range [...]string{w.SigningKey, w.RotationKey} {
		if key != "" {
			r.Signing = append(r.Signing, rendezvous.SigningKey{Key: rendezvous.NewSecret(key)})
		}
	}
	return Destination{Destination: rendezvous.Destination{Name: w.Name, Events: w.Events, Types: w.Types}, Registration: r}, nil
}

func (w written) auth() rendezvous.PushAuth {
	a := rendezvous.PushAuth{
		Scheme: w.Auth.Scheme, Credentials: rendezvous.NewSecret(w.Auth.Credentials), User: w.Auth.Username, Password: rendezvous.NewSecret(w.Auth.Password),
	}
	if o := w.Auth.OAuth2; o != nil {
		a.Kind, a.TokenURL, a.ClientID, a.ClientSecret, a.Scopes = rendezvous.AuthOAuth2, o.TokenURL, o.ClientID, rendezvous.NewSecret(o.ClientSecret), o.Scopes
	}
	switch {
	case a.Kind != rendezvous.AuthNone:
	case a.Scheme != "" || a.Credentials.Set():
		a.Kind = rendezvous.AuthScheme
	case a.User != "" || a.Password.Set():
		a.Kind = rendezvous.AuthBasic
	}
	return a
}
