package rendezvous

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"time"
)

// PushAuthKind says how a registration authorizes itself at its receiver.
type PushAuthKind string

// The closed set of kinds.
const (
	AuthNone   PushAuthKind = ""
	AuthScheme PushAuthKind = "scheme" // Authorization: scheme credentials
	AuthBasic  PushAuthKind = "basic"
	AuthOAuth2 PushAuthKind = "oauth2" // client credentials
)

// PushAuth is how a registration authorizes itself. Only the fields of its kind are set.
type PushAuth struct {
	Kind         PushAuthKind
	Scheme       string // an HTTP token
	Credentials  Secret
	User         string
	Password     Secret
	TokenURL     string
	ClientID     string
	ClientSecret Secret
	Scopes       []string
}

func (a PushAuth) check() error {
	own := PushAuth{Kind: a.Kind}
	var err error
	switch a.Kind {
	case AuthNone:
	case AuthScheme:
		own.Scheme, own.Credentials = a.Scheme, a.Credentials
		if !httpToken(a.Scheme) || len(a.Scheme) > MaxHeaderName {
			return InvalidField("auth.scheme", "is not an HTTP token of 1..%d bytes", MaxHeaderName)
		}
		err = checkCredentials("auth.credentials", a.Credentials.Reveal())
	case AuthBasic:
		own.User, own.Password = a.User, a.Password
		if strings.Contains(a.User, ":") {
			return InvalidField("auth.username", "has a colon, which basic cannot say")
		}
		if err = checkCredentials("auth.username", a.User); err == nil {
			err = checkCredentials("auth.password", a.Password.Reveal())
		}
	case AuthOAuth2:
		own.TokenURL, own.ClientID, own.ClientSecret, own.Scopes = a.TokenURL, a.ClientID, a.ClientSecret, a.Scopes
		err = a.checkOAuth2()
	default:
		return InvalidField("auth", "is none of scheme, basic, oauth2")
	}
	if err == nil && a.strangers(own) {
		return InvalidField("auth", "has fields of another kind than %s; give those of one kind", cmpText(string(a.Kind), "none"))
	}
	return err
}

// strangers reports whether a says more than own, which holds the fields of its kind.
func (a PushAuth) strangers(own PushAuth) bool {
	return a.Scheme != own.Scheme || a.User != own.User || a.TokenURL != own.TokenURL || a.ClientID != own.ClientID || len(a.Scopes) != len(own.Scopes) ||
		!a.Credentials.Equal(own.Credentials) || !a.Password.Equal(own.Password) || !a.ClientSecret.Equal(own.ClientSecret)
}

func cmpText(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func (a PushAuth) checkOAuth2() error {
	if err := CheckPushURL("auth.oauth2.token_url", a.TokenURL); err != nil {
		return err
	}
	if err := checkCredentials("auth.oauth2.client_id", a.ClientID); err != nil {
		return err
	}
	if err := checkCredentials("auth.oauth2.client_secret", a.ClientSecret.Reveal()); err != nil {
		return err
	}
	all := 0
	for _, s := range a.Scopes {
		all += len(s) + 1
		if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r < 0x21 || r > 0x7e || r == '"' || r == '\\' }) {
			return InvalidField("auth.oauth2.scopes", "a scope is 1 or more of 0x21..0x7e but for quote and backslash")
		}
	}
	if all > MaxCredentials {
		return InvalidField("auth.oauth2.scopes", "%d bytes are over the limit of %d", all, MaxCredentials).With("limit", MaxCredentials).With("value", all)
	}
	return nil
}

func (a PushAuth) size() int {
	n := len(a.Scheme) + len(a.Credentials.Reveal()) + len(a.User) + len(a.Password.Reveal()) + len(a.TokenURL) + len(a.ClientID) + len(a.ClientSecret.Reveal())
	for _, s := range a.Scopes {
		n += len(s)
	}
	return n
}

// checkCredentials judges what goes into a header: not blank, not over the limit, printable ASCII (PU-7). The value is not in the error.
func checkCredentials(field, s string) error {
	switch {
	case strings.TrimSpace(s) == "":
		return InvalidField(field, "is missing or blank; a registration without credentials has no auth")
	case len(s) > MaxCredentials:
		return InvalidField(field, "%d bytes are over the limit of %d", len(s), MaxCredentials).With("limit", MaxCredentials).With("value", len(s))
	case !printable(s, 0x20):
		return InvalidField(field, "has a byte outside 0x20..0x7e, which no header can carry")
	}
	return nil
}

func checkPushToken(token Secret) error {
	s := token.Reveal()
	switch {
	case len(s) > MaxPushToken:
		return InvalidField("token", "%d bytes are over the limit of %d", len(s), MaxPushToken).With("limit", MaxPushToken).With("value", len(s))
	case !printable(s, 0x21):
		return InvalidField("token", "has a byte outside 0x21..0x7e")
	}
	return nil
}

// printable reports whether s has bytes of least..0x7e only.
func printable(s string, least byte) bool {
	for i := range len(s) {
		if s[i] < least || s[i] > 0x7e {
			return false
		}
	}
	return true
}

// httpToken reports whether s is a token of HTTP: 1 or more of its bytes.
func httpToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// PushHeader is a header that a registration adds, in the letter case given.
type PushHeader struct {
	Name  string
	Value Secret
}

// Headers that a registration may not set (push.md section 9): names, and what names begin with. All in lower case.
var (
	reservedHeaders = []string{
		"host", "transfer-encoding", "te", "trailer", "connection", "keep-alive", "upgrade", "expect", "accept-encoding", "user-agent", "authorization", "cookie",
		"set-cookie", "date", "via", "forwarded", "origin", "referer", "traceparent", "tracestate", "baggage", "idempotency-key", "x-idempotency-key",
	}
	reservedBeginnings = []string{"content-", "x-forwarded-", "proxy-", "sec-", "webhook-", "svix-", "rendezvous-", "ce-", "a2a-", "x-a2a-"}
)

// ReservedHeader reports whether a header of that name, in any letter case, is the plane's own to set.
func ReservedHeader(name string) bool {
	lower := strings.ToLower(name)
	for _, r := range reservedHeaders {
		if lower == r {
			return true
		}
	}
	for _, b := range reservedBeginnings {
		if strings.HasPrefix(lower, b) {
			return true
		}
	}
	return false
}

func checkPushHeaders(list []PushHeader) error {
	if len(list) > MaxPushHeaders {
		return InvalidField("headers", "%d are over the limit of %d", len(list), MaxPushHeaders).With("limit", MaxPushHeaders).With("value", len(list))
	}
	seen := map[string]bool{}
	for i, h := range list {
		value := h.Value.Reveal()
		switch lower := strings.ToLower(h.Name); {
		case !httpToken(h.Name) || len(h.Name) > MaxHeaderName:
			return InvalidField("headers", "the name of number %d is not an HTTP token of 1..%d bytes", i+1, MaxHeaderName)
		case ReservedHeader(h.Name):
			return InvalidField("headers", "number %d has a name that is reserved", i+1)
		case seen[lower]:
			return InvalidField("headers", "number %d has a name that another has, letter case aside", i+1)
		case value == "" || len(value) > MaxHeaderValue:
			return InvalidField("headers", "the value of number %d is not of 1..%d bytes", i+1, MaxHeaderValue).With("limit", MaxHeaderValue).With("value", len(value))
		case !printable(value, 0x20) || strings.TrimSpace(value) != value:
			return InvalidField("headers", "the value of number %d has a byte outside 0x20..0x7e, or a blank at an edge", i+1)
		default:
			seen[lower] = true
		}
	}
	return nil
}

// PushTLS is what a registration shows its receiver, and whom it trusts there, in PEM.
type PushTLS struct {
	Certificates string // the client's chain, its own certificate first; with Key, or neither
	Key          Secret
	Authorities  string // in place of the system's roots; "" is those
}

// check refuses what a handshake could not use: a chain without its key, a key of another certificate, one that has expired, authorities that are none.
func (t PushTLS) check(now time.Time) error {
	if t.Authorities != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(t.Authorities)) {
		return InvalidField("tls.ca", "has no certificate in PEM")
	}
	if (t.Certificates == "") != !t.Key.Set() {
		return InvalidField("tls", "a certificate goes with its key; give both or neither")
	}
	if t.Certificates == "" {
		return nil
	}
	leaf, err := t.leaf()
	switch {
	case err != nil:
		return InvalidField("tls", "certificate and key are not PEM, or do not belong together")
	case now.After(leaf.NotAfter):
		return InvalidField("tls.certificate", "expired at %s", FormatInstant(leaf.NotAfter)).With("value", FormatInstant(leaf.NotAfter))
	}
	return nil
}

// leaf is the client's own certificate; nil without one.
func (t PushTLS) leaf() (*x509.Certificate, error) {
	if t.Certificates == "" {
		return nil, nil
	}
	pair, err := tls.X509KeyPair([]byte(t.Certificates), []byte(t.Key.Reveal()))
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(pair.Certificate[0])
}
