package transport

import (
	"net/netip"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// Attempt is what a request came to. Either Err is set, or Status is final.
type Attempt struct {
	Started time.Time
	Phases  rendezvous.PushPhases // Queued is the caller's
	Err     *Error

	// Written says that at least one byte of the request went out: with an error the receiver may have taken it or not.
	Written bool
	Reused  bool           // the connection was there before
	Address netip.AddrPort // that was dialled, if any was: for operators' eyes only

	Status   int
	Header   textproto.MIMEHeader // of the answer
	Body     []byte               // as much of it as was read
	Complete bool                 // that is all of it
}

// Unknown reports whether the receiver may have taken the message though there is no answer.
func (a Attempt) Unknown() bool { return a.Err != nil && a.Written }

// Error says why there is no status. Its text shows neither path nor query nor an address, and is made for a log entry.
type Error struct {
	Class rendezvous.PushClass
	Code  string
	Text  string
	// Park is why the registration is parked at once; of class config only.
	Park  rendezvous.ParkReason
	cause error
}

// Codes of errors: what went wrong, in a word of a closed set.
const (
	CodeBadHeader      = "bad_header"
	CodeBadKey         = "bad_key"
	CodeDNS            = "dns"
	CodeDNSTimeout     = "dns_timeout"
	CodeConnect        = "connect"
	CodeConnectTimeout = "connect_timeout"
	CodeTLS            = "tls"
	CodeTLSTimeout     = "tls_timeout"
	CodeHeaderTimeout  = "header_timeout" // no byte of the answer in time
	CodeTimeout        = "timeout"        // of the request as a whole
	CodeDisconnected   = "disconnected"   // before the answer's header section was complete
	CodeMalformed      = "malformed_response"
	CodeHeaderTooLarge = "header_too_large"
	CodeCancelled      = "cancelled" // by whoever asked for the request
)

func (e *Error) Error() string { return e.Code + ": " + e.Text }

// Unwrap is the cause. Its text may hold addresses.
func (e *Error) Unwrap() error { return e.cause }

// Unusable says that a registration cannot be sent for as it is: it is parked at once, for that reason.
func Unusable(park rendezvous.ParkReason, code, text string, cause error) *Error {
	return &Error{Class: rendezvous.ClassConfig, Code: code, Park: park, Text: clean(text), cause: cause}
}

// Failed is an error of any other class.
func Failed(class rendezvous.PushClass, code, text string, cause error) *Error {
	return &Error{Class: class, Code: code, Text: clean(text), cause: cause}
}

func silent(code, text string, cause error) *Error {
	return Failed(rendezvous.ClassSilent, code, text, cause)
}

// clean is text as a log entry may hold it: one line of valid UTF-8, within the bound of an entry's error.
func clean(text string) string {
	text = strings.ToValidUTF8(text, "?")
	text = strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r <= 0x9f {
			return ' '
		}
		return r
	}, text)
	return cut(text, rendezvous.MaxPushError-maxCode)
}

// maxCode leaves room for a code in front.
const maxCode = 32

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}

// Text is the first n bytes of an answer's body as a log entry holds them: one line, with escapes as Go writes them, never more than an entry may hold.
func Text(body []byte, n int) string {
	quoted := strconv.Quote(string(body[:min(n, len(body))]))
	return cut(quoted[1:len(quoted)-1], rendezvous.MaxPushResponse)
}
