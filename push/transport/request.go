package transport

import (
	"crypto/sha256"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/push/target"
)

// Request is one request to be made. It holds secrets and an application's payload: nothing here prints it.
type Request struct {
	Namespace rendezvous.PushNamespace // whose rules the URL is judged by
	URL       string
	Method    string // "" is POST
	Headers   []Header
	Body      []byte
	Timeout   time.Duration // of all of it
	TLS       rendezvous.PushTLS

	// How much of the answer's body is read, and for how long; zero is 16 KiB and 1 s.
	MaxBody  int
	BodyTime time.Duration
}

// Header is a header field, sent in its letter case and its place in the list. Host and Content-Length are the transport's own.
type Header struct{ Name, Value string }

// Format writes the name: values may be secrets.
func (h Header) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, h.Name) }

const (
	defaultMaxBody  = 16 << 10
	defaultBodyTime = time.Second
)

func (r Request) filled() Request {
	if r.Method == "" {
		r.Method = "POST"
	}
	if r.MaxBody == 0 {
		r.MaxBody = defaultMaxBody
	}
	if r.BodyTime == 0 {
		r.BodyTime = defaultBodyTime
	}
	return r
}

// head is the request up to its body. A header that would break out of its line, or take the place of one of the transport's own, is refused.
func (r Request) head(t target.Target) ([]byte, *Error) {
	b := make([]byte, 0, 1<<10)
	b = append(b, r.Method+" "+t.RequestTarget()+" HTTP/1.1\r\nHost: "+t.Authority()+"\r\n"...)
	for _, h := range r.Headers {
		if !validName(h.Name) || !validValue(h.Value) || own(h.Name) {
			return nil, Unusable(rendezvous.ParkBadHeader, CodeBadHeader, "a header cannot be sent as it is", nil)
		}
		b = append(append(append(append(b, h.Name...), ": "...), h.Value...), "\r\n"...)
	}
	b = append(b, "Content-Length: "...)
	b = strconv.AppendInt(b, int64(len(r.Body)), 10)
	return append(b, "\r\n\r\n"...), nil
}

func own(name string) bool {
	switch strings.ToLower(name) {
	case "host", "content-length", "transfer-encoding", "connection":
		return true
	}
	return false
}

func validName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}

func validValue(value string) bool {
	for i := range len(value) {
		if c := value[i]; c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// partition says which connections may carry a request: those opened for the same namespace, origin, client certificate and authorities (PU-83).
type partition struct {
	namespace rendezvous.PushNamespace
	origin    string
	tls       [sha256.Size]byte
}

func (r Request) partition(t target.Target) partition {
	p := partition{namespace: r.Namespace, origin: t.Origin()}
	if r.TLS.Certificates != "" || r.TLS.Authorities != "" {
		h := sha256.New()
		for _, text := range [...]string{r.TLS.Certificates, r.TLS.Key.Reveal(), r.TLS.Authorities} {
			_, _ = io.WriteString(h, strconv.Itoa(len(text))+":"+text)
		}
		p.tls = [sha256.Size]byte(h.Sum(nil))
	}
	return p
}
