package target

import (
	"errors"
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// host is a canonical host: a name in lower-case ASCII without a trailing dot, or an address. Equal hosts are equal values.
type host struct {
	name    string
	literal netip.Addr // valid when the host is an address; then name is its text, without brackets
}

const (
	maxName  = 253
	maxLabel = 63
)

// uts46 maps names as UTS 46 does for lookups, non-transitional: ß stays itself. Which ASCII letters a name may have is judged on the result, since mapping makes
// ASCII of other letters.
var uts46 = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.CheckHyphens(false), idna.BidiRule())

var (
	errEmptyHost = errors.New("the host is empty")
	errBracket   = errors.New("what stands in brackets is not an IPv6 address")
	errName      = errors.New("the host is not a name of the DNS")
	errNumeric   = errors.New("the host ends in a number and is not a dotted quad")
)

// parseHost reads the host of a URL or a grant, without its port (PU-86, PU-87).
func parseHost(text string) (host, error) {
	if text == "" {
		return host{}, errEmptyHost
	}
	if inner, ok := strings.CutPrefix(text, "["); ok {
		inner, closed := strings.CutSuffix(inner, "]")
		address, err := netip.ParseAddr(inner)
		if !closed || err != nil || !address.Is6() || address.Zone() != "" {
			return host{}, errBracket
		}
		return literal(address), nil
	}
	name, err := uts46.ToASCII(text)
	if err != nil || !utf8.ValidString(text) {
		return host{}, errName
	}
	name = strings.TrimSuffix(name, ".")
	if numeric(name[strings.LastIndexByte(name, '.')+1:]) {
		address, err := netip.ParseAddr(name)
		if err != nil || !address.Is4() {
			return host{}, errNumeric
		}
		return literal(address), nil
	}
	if !validName(name) {
		return host{}, errName
	}
	return host{name: name}, nil
}

// literal is an address as host; ::ffff:0:0/96 is its IPv4.
func literal(address netip.Addr) host {
	address = address.Unmap()
	return host{name: address.String(), literal: address}
}

// numeric reports whether a name that ends in the label could be read as an address: decimal, octal or hex.
func numeric(label string) bool {
	if label == "" {
		return false
	}
	if digits, hex := strings.CutPrefix(label, "0x"); hex {
		return strings.Trim(digits, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// validName holds a name to the lengths of the DNS and to letters, digits, hyphens, and the underscores that names in private networks have.
func validName(name string) bool {
	if len(name) > maxName {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabel || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	return true
}

// loopbackName reports whether the host is localhost or below it: names that never leave the machine (RFC 6761).
func (h host) loopbackName() bool {
	return h.name == "localhost" || strings.HasSuffix(h.name, ".localhost")
}

// loopback reports whether the host can mean nothing but this machine.
func (h host) loopback() bool { return h.loopbackName() || h.literal.IsLoopback() }

// text is the host as it stands in a URL and in the Host header.
func (h host) text() string {
	if h.literal.Is6() {
		return "[" + h.name + "]"
	}
	return h.name
}
