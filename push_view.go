package rendezvous

import "time"

// RegistrationView is what anybody is shown of a registration: names and facts, no secret (push.md section 1).
type RegistrationView struct {
	RunID    string        `json:"run_id"`
	ID       string        `json:"id"`
	URL      string        `json:"url,omitempty"` // operators' destinations have theirs in the configuration
	TokenSet bool          `json:"token_set"`
	Auth     *PushAuthView `json:"auth,omitempty"`
	Headers  []string      `json:"headers,omitempty"` // names
	Signing  []SigningView `json:"signing,omitempty"`
	TLS      *PushTLSView  `json:"tls,omitempty"`
	PushOptionsView
}

// PushAuthView is the kind of auth and its scheme.
type PushAuthView struct {
	Kind   PushAuthKind `json:"kind"`
	Scheme string       `json:"scheme,omitempty"`
}

// SigningView is a key without its secret half.
type SigningView struct {
	ID        string    `json:"key_id"`
	Algorithm string    `json:"algorithm"`
	Public    string    `json:"public,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// PushTLSView is whom a client certificate names and until when.
type PushTLSView struct {
	Subject   string    `json:"subject,omitempty"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	CustomCA  bool      `json:"custom_ca"`
}

// PushOptionsView is what is sent, and how.
type PushOptionsView struct {
	Projection     Projection `json:"projection"`
	Events         []string   `json:"events"`
	IncludePayload bool       `json:"include_payload"`
	Follow         string     `json:"follow"`
	TimeoutMS      int64      `json:"timeout_ms"`
	MaxAttempts    int        `json:"max_attempts"`
	OnRejectLimit  int        `json:"on_reject_limit"`
	Trace          bool       `json:"trace"`
}

// View is the registration without its secrets.
func (r Registration) View() RegistrationView {
	v := RegistrationView{
		RunID: r.RunID, ID: r.ID, URL: r.URL, TokenSet: r.Token.Set(), TLS: r.TLS.view(),
		PushOptionsView: PushOptionsView{
			Projection: r.Projection, Events: r.Events, IncludePayload: r.IncludePayload != nil && *r.IncludePayload, Follow: r.Follow,
			TimeoutMS: r.Timeout.Milliseconds(), MaxAttempts: r.MaxAttempts, OnRejectLimit: r.OnRejectLimit, Trace: r.Trace != nil && *r.Trace,
		},
	}
	if r.Auth.Kind != AuthNone {
		v.Auth = &PushAuthView{Kind: r.Auth.Kind, Scheme: r.Auth.Scheme}
	}
	for _, h := range r.Headers {
		v.Headers = append(v.Headers, h.Name)
	}
	for _, k := range r.Signing {
		v.Signing = append(v.Signing, k.View())
	}
	return v
}

// View is the key without its secret half.
func (k SigningKey) View() SigningView {
	return SigningView{ID: k.ID, Algorithm: k.Algorithm, Public: k.Public, CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt}
}

func (t PushTLS) view() *PushTLSView {
	if t.Certificates == "" && t.Authorities == "" {
		return nil
	}
	v := &PushTLSView{CustomCA: t.Authorities != ""}
	if leaf, err := t.leaf(); err == nil && leaf != nil {
		v.Subject, v.ExpiresAt = leaf.Subject.String(), leaf.NotAfter.UTC()
	}
	return v
}
