package target

import (
	"errors"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/rendezvous-events/rendezvous"
)

// MaxURL is how many bytes a URL may have.
const MaxURL = 2048

// Target is a URL that was read, in the parts a request is made of. It is made by [Policy.Judge] alone.
type Target struct {
	scheme    string // http or https
	host      host
	port      uint16
	request   string // path and query, byte for byte
	namespace rendezvous.PushNamespace
}

// Scheme is http or https.
func (t Target) Scheme() string { return t.scheme }

// Secure reports whether the target is spoken to by TLS.
func (t Target) Secure() bool { return t.scheme == "https" }

// Host is the canonical name or address, an IPv6 address without brackets: what a certificate has to be for, and what errors and logs may show.
func (t Target) Host() string { return t.host.name }

// Literal is the address, when the host is one.
func (t Target) Literal() (netip.Addr, bool) { return t.host.literal, t.host.literal.IsValid() }

// Port is the port, the scheme's own where the URL has none.
func (t Target) Port() uint16 { return t.port }

// Authority is the value of the Host header: the port only where it is not the scheme's own (push.md section 9).
func (t Target) Authority() string {
	if t.port == ownPort(t.scheme) {
		return t.host.text()
	}
	return t.host.text() + ":" + strconv.Itoa(int(t.port))
}

// Origin is scheme, host and port: the gate of a caller's registration, and as much of a URL as spans show.
func (t Target) Origin() string {
	return t.scheme + "://" + t.host.text() + ":" + strconv.Itoa(int(t.port))
}

// RequestTarget is path and query as they were registered, byte for byte; an empty path is "/". It may be a secret.
func (t Target) RequestTarget() string { return t.request }

// Namespace is whose rules it was judged by.
func (t Target) Namespace() rendezvous.PushNamespace { return t.namespace }

// String is the origin: a target that is printed shows neither path nor query.
func (t Target) String() string { return t.Origin() }

// GoString is the origin.
func (t Target) GoString() string { return t.Origin() }

func ownPort(scheme string) uint16 {
	if scheme == "http" {
		return 80
	}
	return 443
}

var (
	errTooLong   = errors.New("it is longer than 2048 bytes")
	errBytes     = errors.New("it has a blank, a control character, a backslash, or a letter in path or query that is not percent-encoded")
	errAbsolute  = errors.New("it does not begin with https:// (or http://) and a host")
	errUserinfo  = errors.New("it holds a user or password; give them as auth")
	errFragment  = errors.New("it has a fragment, which is never sent")
	errPort      = errors.New("its port is not a number")
	errAmbiguous = errors.New("readers of URLs would not agree on it")
)

// parse reads a URL strictly: what two readers might read differently is refused. The scheme is not judged beyond its being http or https.
func parse(text string) (Target, error) {
	if len(text) > MaxURL {
		return Target{}, errTooLong
	}
	scheme, rest, ok := strings.Cut(text, "://")
	scheme = strings.ToLower(scheme)
	if !ok || scheme != "http" && scheme != "https" {
		return Target{}, errAbsolute
	}
	if strings.Contains(rest, "#") {
		return Target{}, errFragment
	}
	authority, request := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, request = rest[:i], rest[i:]
	}
	if !plain(authority, true) || !plain(request, false) {
		return Target{}, errBytes
	}
	if strings.Contains(authority, "@") {
		return Target{}, errUserinfo
	}
	// The second reader: what it does not read as the same authority is nobody's.
	if u, err := url.Parse(text); err != nil || u.Host != authority {
		return Target{}, errAmbiguous
	}
	t := Target{scheme: scheme, request: request}
	if !strings.HasPrefix(request, "/") {
		t.request = "/" + request
	}
	var err error
	t.host, t.port, err = parseAuthority(authority, ownPort(scheme))
	return t, err
}

// plain reports whether all bytes may stand in a URL that is sent as it is.
func plain(text string, international bool) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c <= ' ', c == 0x7f, c == '\\', c >= 0x80 && !international:
			return false
		}
	}
	return true
}

func parseAuthority(authority string, own uint16) (host, uint16, error) {
	name, port, given := authority, "", false
	if i := strings.LastIndexByte(authority, ':'); i > strings.LastIndexByte(authority, ']') {
		name, port, given = authority[:i], authority[i+1:], true
	}
	if strings.ContainsAny(name, "%") || strings.Contains(name, ":") && !strings.HasPrefix(name, "[") {
		return host{}, 0, errName
	}
	h, err := parseHost(name)
	if err != nil || !given {
		return h, own, err
	}
	if port == "" || len(port) > 5 || strings.Trim(port, "0123456789") != "" || port[0] == '0' {
		return host{}, 0, errPort
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return host{}, 0, errPort
	}
	return h, uint16(n), nil
}
