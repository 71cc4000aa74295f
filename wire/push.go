package wire

import (
	"encoding/json"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// Secret is a secret on its way into the plane, and back to whoever had it generated. Its JSON form alone shows it; whatever prints it shows the mask (PU-8).
type Secret struct{ rendezvous.Secret }

// SecretOf is the secret of that text; "" is none.
func SecretOf(text string) Secret { return Secret{rendezvous.NewSecret(text)} }

// MarshalJSON implements json.Marshaler.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.Reveal()) }

// UnmarshalJSON implements json.Unmarshaler.
func (s *Secret) UnmarshalJSON(b []byte) error {
	var text string
	err := json.Unmarshal(b, &text)
	*s = SecretOf(text)
	return err
}

// PutPush is the request of push.put, and without run_id, if_version and fields a registration of runs.start.
type PutPush struct {
	RunID          string                `json:"run_id,omitempty"`
	ID             string                `json:"id,omitempty"` // push- and the run's id where there is none
	URL            string                `json:"url,omitempty"`
	Token          Secret                `json:"token,omitzero"`
	Auth           *PushAuth             `json:"auth,omitempty"`
	Headers        []PushHeader          `json:"headers,omitempty"`
	TLS            *PushTLS              `json:"tls,omitempty"`
	Signing        []PushKey             `json:"signing,omitempty"` // newest first
	Projection     rendezvous.Projection `json:"projection,omitempty"`
	Events         []string              `json:"events,omitempty"`
	IncludePayload *bool                 `json:"include_payload,omitempty"`
	Follow         string                `json:"follow,omitempty"`
	RatePerMinute  int                   `json:"rate_per_minute,omitempty"`
	TimeoutMS      int64                 `json:"timeout_ms,omitempty"`
	MaxAttempts    int                   `json:"max_attempts,omitempty"`
	OnRejectLimit  int                   `json:"on_reject_limit,omitempty"`
	Handshake      string                `json:"handshake,omitempty"`
	Trace          *bool                 `json:"trace,omitempty"`
	NextSeq        int64                 `json:"next_seq,omitempty"`
	IfVersion      int64                 `json:"if_version,omitempty"`
	// Fields makes it a partial update of a held registration: these fields alone are taken, by their names here; all others, secrets too, stay (PU-9).
	Fields []string `json:"fields,omitempty"`
}

// PushAuth is how a registration authorizes itself: by scheme and credentials, by username and password, or by oauth2.
type PushAuth struct {
	Scheme      string      `json:"scheme,omitempty"`
	Credentials Secret      `json:"credentials,omitzero"`
	Username    string      `json:"username,omitempty"`
	Password    Secret      `json:"password,omitzero"`
	OAuth2      *PushOAuth2 `json:"oauth2,omitempty"`
}

// PushOAuth2 is where a token comes from, and for whom: client credentials.
type PushOAuth2 struct {
	TokenURL     string   `json:"token_url"`
	ClientID     string   `json:"client_id"`
	ClientSecret Secret   `json:"client_secret,omitzero"`
	Scopes       []string `json:"scopes,omitempty"`
}

// PushHeader is a header to send.
type PushHeader struct {
	Name  string `json:"name"`
	Value Secret `json:"value,omitzero"`
}

// PushTLS is a client's certificate with its key, and whom it trusts in place of the system's roots, in PEM.
type PushTLS struct {
	Certificate string `json:"certificate,omitempty"`
	Key         Secret `json:"key,omitzero"`
	CA          string `json:"ca,omitempty"`
}

// PushKey is a signing key, as whsec_ or whsk_ text.
type PushKey struct {
	Key       Secret `json:"key,omitzero"`
	ExpiresAt Time   `json:"expires_at,omitzero"`
}

// Domain is the registration as the domain has it. Its values are judged by [rendezvous.Registration.Check].
func (w PutPush) Domain() (rendezvous.Registration, error) {
	r := rendezvous.Registration{
		RunID: w.RunID, ID: w.ID, URL: w.URL, Token: w.Token.Secret, Projection: w.Projection, Events: w.Events, IncludePayload: w.IncludePayload, Follow: w.Follow,
		RatePerMinute: w.RatePerMinute, MaxAttempts: w.MaxAttempts, OnRejectLimit: w.OnRejectLimit, Handshake: w.Handshake, Trace: w.Trace,
	}
	least, most := rendezvous.MinPushTimeout.Milliseconds(), rendezvous.MaxPushTimeout.Milliseconds()
	if w.TimeoutMS != 0 && (w.TimeoutMS < least || w.TimeoutMS > most) {
		return r, rendezvous.InvalidField("timeout_ms", "%d is outside %d..%d", w.TimeoutMS, least, most).With("limit", most).With("value", w.TimeoutMS)
	}
	r.Timeout = time.Duration(w.TimeoutMS) * time.Millisecond
	if t := w.TLS; t != nil {
		r.TLS = rendezvous.PushTLS{Certificates: t.Certificate, Key: t.Key.Secret, Authorities: t.CA}
	}
	for _, h := range w.Headers {
		r.Headers = append(r.Headers, rendezvous.PushHeader{Name: h.Name, Value: h.Value.Secret})
	}
	for _, k := range w.Signing {
		r.Signing = append(r.Signing, rendezvous.SigningKey{Key: k.Key.Secret, ExpiresAt: k.ExpiresAt.Time})
	}
	var err error
	r.Auth, err = w.Auth.domain()
	return r, err
}

// domain is the auth by the kind of its fields. One that is given is never dropped as none.
func (a *PushAuth) domain() (rendezvous.PushAuth, error) {
	if a == nil {
		return rendezvous.PushAuth{}, nil
	}
	out := rendezvous.PushAuth{Scheme: a.Scheme, Credentials: a.Credentials.Secret, User: a.Username, Password: a.Password.Secret}
	if o := a.OAuth2; o != nil {
		out.TokenURL, out.ClientID, out.ClientSecret, out.Scopes = o.TokenURL, o.ClientID, o.ClientSecret.Secret, o.Scopes
	}
	switch {
	case a.OAuth2 != nil:
		out.Kind = rendezvous.AuthOAuth2
	case a.Username != "" || a.Password.Set():
		out.Kind = rendezvous.AuthBasic
	case a.Scheme != "" || a.Credentials.Set():
		out.Kind = rendezvous.AuthScheme
	default:
		return out, rendezvous.InvalidField("auth", "says nothing; give scheme and credentials, username and password, or oauth2, or leave it out")
	}
	return out, nil
}

// Push is a registration as anybody is shown it: its row, no secret (push.md section 1).
type Push struct {
	RunID      string                   `json:"run_id"`
	ID         string                   `json:"id"`
	WorkflowID string                   `json:"workflow_id"`
	Namespace  rendezvous.PushNamespace `json:"namespace"`
	Version    int64                    `json:"version"`
	CreatedAt  Time                     `json:"created_at"`

	URL      string                   `json:"url,omitempty"` // an operator's destination has its own in the configuration
	TokenSet bool                     `json:"token_set"`
	Auth     *rendezvous.PushAuthView `json:"auth,omitempty"`
	Headers  []string                 `json:"headers,omitempty"` // names
	Signing  []PushKeyView            `json:"signing,omitempty"`
	TLS      *PushTLSView             `json:"tls,omitempty"`
	*rendezvous.PushOptionsView

	State         rendezvous.PushState  `json:"state"`
	Cursor        rendezvous.Cursor     `json:"cursor"`
	Attempts      int                   `json:"attempts"` // failures in a row
	AttemptNo     int64                 `json:"attempt_no"`
	NextAttemptAt Time                  `json:"next_attempt_at,omitzero"` // live: due from then on
	FailingSince  Time                  `json:"failing_since,omitzero"`
	ParkedAt      Time                  `json:"parked_at,omitzero"`
	Reason        rendezvous.ParkReason `json:"reason,omitempty"`
	Error         string                `json:"error,omitempty"` // of the last failure
	SendingUntil  Time                  `json:"sending_until,omitzero"`
	Last          *PushAttempt          `json:"last,omitempty"`
	Corrupt       bool                  `json:"corrupt,omitempty"` // it does not decode: run_id and id are what is known
}

// PushKeyView is a signing key without its secret half.
type PushKeyView struct {
	KeyID     string `json:"key_id"`
	Algorithm string `json:"algorithm"`
	Public    string `json:"public,omitempty"` // of v1a
	CreatedAt Time   `json:"created_at"`
	ExpiresAt Time   `json:"expires_at,omitzero"`
}

// PushKeyViewOf is what is shown of a key.
func PushKeyViewOf(k rendezvous.SigningView) PushKeyView {
	return PushKeyView{KeyID: k.ID, Algorithm: k.Algorithm, Public: k.Public, CreatedAt: At(k.CreatedAt), ExpiresAt: At(k.ExpiresAt)}
}

// PushTLSView is whom a client certificate names and until when.
type PushTLSView struct {
	Subject   string `json:"subject,omitempty"`
	ExpiresAt Time   `json:"expires_at,omitzero"`
	CustomCA  bool   `json:"custom_ca"`
}

// PushPut is the reply of push.put: the row.
type PushPut struct {
	Push
	Created bool `json:"created"` // it is new, or still as it was made
}

// PushRef is the request of push.get and push.delete, and names the registration in others. Without an id it is the run's registration that has none of its own.
type PushRef struct {
	RunID string `json:"run_id"`
	ID    string `json:"id,omitempty"`
}

// ListPush is the request of push.list.
type ListPush struct {
	RunID string `json:"run_id"`
}

// Pushes is the reply of push.list, by the bytes of their ids, and of push.parked, by those of run and id.
type Pushes struct {
	Registrations []Push `json:"registrations"`
	NextCursor    string `json:"next_cursor,omitempty"`
}

// PushDeleted is the reply of push.delete.
type PushDeleted struct {
	Outcome string `json:"outcome"`           // deleted
	QuietAt Time   `json:"quiet_at,omitzero"` // nothing is in flight after it; absent: nothing is
}

// Outcomes of verbs of registrations.
const (
	OutcomeDeleted = "deleted"
	OutcomeParked  = "parked"
	OutcomeSkipped = "skipped"
)

// ParkPush is the request of push.park. The row says who and why in its error. Parking again is harmless, so op only has to be a name.
type ParkPush struct {
	PushRef
	Operator *rendezvous.Operator `json:"operator,omitempty"`
	Reason   string               `json:"reason,omitempty"`
	Op       string               `json:"op,omitempty"`
}

// PushParked is the reply of push.park.
type PushParked struct {
	Outcome string `json:"outcome"` // parked
}

// ParkedPushes is the request of push.parked.
type ParkedPushes struct {
	Filter PushFilter `json:"filter,omitzero"`
	Limit  int        `json:"limit,omitempty"`
	Cursor string     `json:"cursor,omitempty"`
}

// PushFilter chooses parked registrations; absent parts mean any.
type PushFilter struct {
	Reason rendezvous.ParkReason `json:"reason,omitempty"`
	Gate   string                `json:"gate,omitempty"` // scheme://host:port of a caller's URL, the id of an operator's destination
}

// UnparkPush is the request of push.unpark.
type UnparkPush struct {
	PushRef
	At       Time                 `json:"at,omitzero"` // now where it is absent
	Operator *rendezvous.Operator `json:"operator,omitempty"`
	Reason   string               `json:"reason,omitempty"`
	Op       string               `json:"op,omitempty"` // the same one again answers the same
}

// PushUnparked is the reply of push.unpark: false for one that is not parked, or not there.
type PushUnparked struct {
	Unparked bool `json:"unparked"`
}

// UnparkPushes is the request of push.unpark_many.
type UnparkPushes struct {
	Filter   PushFilter           `json:"filter,omitzero"`
	At       Time                 `json:"at,omitzero"`
	SpreadMS int64                `json:"spread_ms,omitempty"` // their instants lie evenly over so long behind at
	Limit    int                  `json:"limit,omitempty"`     // 100 where it is absent, at most 1,000
	Operator *rendezvous.Operator `json:"operator,omitempty"`
	Reason   string               `json:"reason,omitempty"`
}

// PushesUnparked is the reply of push.unpark_many.
type PushesUnparked struct {
	Count int  `json:"count"`
	More  bool `json:"more"` // more pass the filter
}

// SkipPush is the request of push.skip: past the record at the cursor of a parked registration.
type SkipPush struct {
	PushRef
	Seq      int64                `json:"seq"`
	Operator *rendezvous.Operator `json:"operator,omitempty"`
	Reason   string               `json:"reason,omitempty"`
	Op       string               `json:"op,omitempty"` // skipping the same record again answers the same, so it only has to be a name
}

// PushSkipped is the reply of push.skip.
type PushSkipped struct {
	Outcome string            `json:"outcome"` // skipped
	Cursor  rendezvous.Cursor `json:"cursor"`
}

// RotatePush is the request of push.rotate.
type RotatePush struct {
	PushRef
	Key       Secret `json:"key,omitzero"`        // generated where there is none
	Algorithm string `json:"algorithm,omitempty"` // of a generated one: v1, the default, or v1a
	GraceMS   *int64 `json:"grace_ms,omitempty"`  // how long the older keys go on: 0..7 days, 24 hours where it is absent
	Op        string `json:"op,omitempty"`        // the same one again answers the same key
}

// PushRotated is the reply of push.rotate.
type PushRotated struct {
	PushKeyView
	Key     Secret `json:"key,omitzero"` // of a generated one, here and in repetitions within 10 minutes, and nowhere else
	Version int64  `json:"version"`
	Again   bool   `json:"again,omitempty"`
}

// PushAttempts is the request of push.attempts.
type PushAttempts struct {
	PushRef
	Limit  int    `json:"limit,omitempty"`
	Cursor string `json:"cursor,omitempty"`
}

// PushAttemptList is the reply of push.attempts, newest first.
type PushAttemptList struct {
	Attempts   []PushAttempt `json:"attempts"`
	NextCursor string        `json:"next_cursor,omitempty"`
}

// PushAttempt is an entry of a registration's attempt log.
type PushAttempt struct {
	AttemptNo     int64                `json:"attempt_no"`
	Seq           int64                `json:"seq,omitempty"` // the message
	Index         int                  `json:"index,omitempty"`
	At            Time                 `json:"at"`
	Outcome       rendezvous.PushClass `json:"outcome"`
	Unknown       bool                 `json:"unknown,omitempty"` // whether the receiver took it is not known
	Status        int                  `json:"status,omitempty"`  // absent: it did not answer
	Code          string               `json:"code,omitempty"`
	Error         string               `json:"error,omitempty"`
	Address       string               `json:"address,omitempty"` // that was dialled; shown to operators, of operators' destinations
	Response      string               `json:"response,omitempty"`
	Phases        *PushPhases          `json:"phases,omitempty"`
	NextAttemptAt Time                 `json:"next_attempt_at,omitzero"`
	AdviceCapped  bool                 `json:"advice_capped,omitempty"`
	Worker        string               `json:"worker,omitempty"`
	Test          bool                 `json:"test,omitempty"`
	Actor         string               `json:"actor,omitempty"` // of a skip
	Reason        string               `json:"reason,omitempty"`
}

// PushPhases are the times of an attempt in milliseconds, rounded up; absent: there was no such phase.
type PushPhases struct {
	DNS       int64 `json:"dns_ms,omitempty"`
	Connect   int64 `json:"connect_ms,omitempty"`
	TLS       int64 `json:"tls_ms,omitempty"`
	FirstByte int64 `json:"first_byte_ms,omitempty"`
	Total     int64 `json:"total_ms"`
	Queued    int64 `json:"queued_ms,omitempty"` // apart: no part of the total
}

// PushAttemptOf is the wire form of an entry.
func PushAttemptOf(a rendezvous.PushAttempt) PushAttempt {
	w := PushAttempt{
		AttemptNo: a.No, Seq: a.Seq, Index: a.Index, At: At(a.At), Outcome: a.Class, Unknown: a.Unknown, Status: a.Status, Code: a.Code, Error: a.Error,
		Address: a.Address, Response: a.Response, NextAttemptAt: At(a.NextAttemptAt), AdviceCapped: a.AdviceCapped, Worker: a.Worker, Test: a.Test,
		Actor: a.Actor, Reason: a.Reason,
	}
	if p := a.Phases; p != (rendezvous.PushPhases{}) {
		w.Phases = &PushPhases{
			DNS: AfterMS(p.DNS), Connect: AfterMS(p.Connect), TLS: AfterMS(p.TLS), FirstByte: AfterMS(p.FirstByte), Total: AfterMS(p.Total), Queued: AfterMS(p.Queued),
		}
	}
	return w
}
