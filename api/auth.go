package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"os"
	"slices"
	"strings"

	"github.com/rendezvous-events/rendezvous"
)

// Role is what a caller may do (api.md section 4). Each includes the ones before it, admin also all tenants.
type Role int

// The roles.
const (
	RoleNone     Role = iota // system.info of an open plane
	RoleProducer             // events.put, events.deliver
	RoleExecutor             // also runs, waits, timers
	RoleOperator             // all verbs
	RoleAdmin                // all tenants
)

var roles = map[string]Role{"producer": RoleProducer, "executor": RoleExecutor, "operator": RoleOperator, "admin": RoleAdmin}

// Caller is who calls: a token's holder, or anybody on an open door.
type Caller struct {
	Name    string
	Role    Role
	Tenants []string // admin: all
	Sources []string // events may be sent only for these; empty: any
	Basis   rendezvous.Basis
	Push    bool // the right to register webhooks; operators have it
}

// Open is the caller of a door without tokens: everybody on loopback, or whom the NATS account lets in.
func Open() Caller {
	return Caller{Name: "anonymous", Role: RoleAdmin, Basis: rendezvous.BasisConnected, Push: true}
}

func (c Caller) may(tenant string, need Role) error {
	if c.Role < RoleAdmin && !slices.Contains(c.Tenants, tenant) {
		return rendezvous.Errorf(rendezvous.CodeUnauthorized, "this token does not serve that tenant; use one that does")
	}
	if c.Role < need {
		return rendezvous.Errorf(rendezvous.CodeUnauthorized, "this token's role is too small for this verb; use an %s token", need)
	}
	return nil
}

// mayPush judges the right push (api.md section 4).
func (c Caller) mayPush() error {
	if !c.Push && c.Role < RoleOperator {
		return rendezvous.Errorf(rendezvous.CodeUnauthorized, "this token may not register webhooks; use one with the right push, or an operator token").With("right", "push")
	}
	return nil
}

// source judges that the caller may send events of that source.
func (c Caller) source(s string) error {
	if len(c.Sources) > 0 && !slices.Contains(c.Sources, s) {
		return rendezvous.Errorf(rendezvous.CodeUnauthorized, "this token may not send events of that source").With("field", "source")
	}
	return nil
}

// operator is the one a request names, or the caller where it names none. A caller known by its token is what the token says.
func (c Caller) operator(asked *rendezvous.Operator) *rendezvous.Operator {
	if c.Basis == rendezvous.BasisAuthenticated {
		return &rendezvous.Operator{Actor: c.Name, Basis: c.Basis}
	}
	if asked == nil {
		return &rendezvous.Operator{Actor: c.Name, Basis: c.Basis}
	}
	o := *asked
	switch o.Basis {
	case "", rendezvous.BasisAuthenticated, rendezvous.BasisConnected:
		o.Basis = rendezvous.BasisAsserted // nobody vouches for the name but the caller
	}
	return &o
}

// vouched is the operator a request may name and need not.
func (c Caller) vouched(asked *rendezvous.Operator) *rendezvous.Operator {
	if asked == nil {
		return nil
	}
	return c.operator(asked)
}

func (r Role) String() string {
	for name, v := range roles {
		if v == r {
			return name
		}
	}
	return "open"
}

// Tokens maps bearer tokens to callers. Only digests are kept.
type Tokens struct{ rows []tokenRow }

type tokenRow struct {
	digest [sha256.Size]byte
	caller Caller
}

// tokenFile is the form of a token file: {"tokens":[{"token":"…" or "sha256":"…","name":"…","role":"executor","tenants":["acme"],"sources":["urn:psp"],"push":true}]}.
type tokenFile struct {
	Tokens []struct {
		Token   string   `json:"token"`
		SHA256  string   `json:"sha256"`
		Name    string   `json:"name"`
		Role    string   `json:"role"`
		Tenants []string `json:"tenants"`
		Sources []string `json:"sources"`
		Push    bool     `json:"push"`
	} `json:"tokens"`
}

// LoadTokens reads a token file. No path is no tokens.
func LoadTokens(path string) (*Tokens, error) {
	if path == "" {
		return &Tokens{}, nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, rendezvous.InvalidField("tokens", "the file cannot be read").Because(err)
	}
	return ParseTokens(raw)
}

// ParseTokens reads the JSON of a token file. No error repeats a token.
func ParseTokens(raw []byte) (*Tokens, error) {
	var f tokenFile
	if err := decode(raw, &f); err != nil {
		return nil, err
	}
	if len(f.Tokens) == 0 {
		return nil, rendezvous.InvalidField("tokens", "the file names none; leave the setting out to open the API on loopback")
	}
	t := &Tokens{}
	for i, row := range f.Tokens {
		digest, err := tokenDigest(row.Token, row.SHA256)
		if err != nil {
			return nil, rendezvous.InvalidField("tokens", "entry %d: %v", i+1, err)
		}
		c := Caller{Name: row.Name, Role: roles[row.Role], Tenants: row.Tenants, Sources: row.Sources, Basis: rendezvous.BasisAuthenticated, Push: row.Push}
		if c.Role == RoleNone {
			return nil, rendezvous.InvalidField("tokens", "entry %d: role %q is none of producer, executor, operator, admin", i+1, row.Role)
		}
		if err := rendezvous.CheckID("name", c.Name); err != nil {
			return nil, rendezvous.InvalidField("tokens", "entry %d: %v", i+1, err)
		}
		if c.Role != RoleAdmin && len(c.Tenants) == 0 {
			return nil, rendezvous.InvalidField("tokens", "entry %d: names no tenants", i+1)
		}
		if err := c.check(); err != nil {
			return nil, rendezvous.InvalidField("tokens", "entry %d: %v", i+1, err)
		}
		if slices.ContainsFunc(t.rows, func(r tokenRow) bool { return r.digest == digest }) {
			return nil, rendezvous.InvalidField("tokens", "entry %d: its token is another entry's too", i+1)
		}
		t.rows = append(t.rows, tokenRow{digest: digest, caller: c})
	}
	return t, nil
}

// check judges the tenants and sources of a token.
func (c Caller) check() error {
	for _, tenant := range c.Tenants {
		if err := rendezvous.CheckTenant(tenant); err != nil {
			return err
		}
	}
	for _, source := range c.Sources {
		if err := rendezvous.CheckID("sources", source); err != nil {
			return err
		}
	}
	return nil
}

func tokenDigest(token, hexDigest string) ([sha256.Size]byte, error) {
	var d [sha256.Size]byte
	switch {
	case (token == "") == (hexDigest == ""):
		return d, rendezvous.InvalidField("token", "give either token or sha256")
	case token != "" && len(token) < 16:
		return d, rendezvous.InvalidField("token", "is shorter than 16 bytes")
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return d, rendezvous.InvalidField("token", "has a blank, or something else that no Authorization header carries")
	case token != "":
		return sha256.Sum256([]byte(token)), nil
	}
	b, err := hex.DecodeString(hexDigest)
	if err != nil || len(b) != sha256.Size {
		return d, rendezvous.InvalidField("sha256", "is not 64 hex digits")
	}
	return [sha256.Size]byte(b), nil
}

// Any reports whether any token is configured.
func (t *Tokens) Any() bool { return t != nil && len(t.rows) > 0 }

// Caller is whom an Authorization header names.
func (t *Tokens) Caller(authorization string) (Caller, error) {
	if !t.Any() {
		return Open(), nil
	}
	scheme, token, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return Caller{}, rendezvous.Errorf(rendezvous.CodeUnauthorized, "send a bearer token in the Authorization header")
	}
	digest := sha256.Sum256([]byte(strings.TrimSpace(token)))
	for _, row := range t.rows {
		if subtle.ConstantTimeCompare(digest[:], row.digest[:]) == 1 {
			return row.caller, nil
		}
	}
	return Caller{}, rendezvous.Errorf(rendezvous.CodeUnauthorized, "this bearer token is not known here")
}
