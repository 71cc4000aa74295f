package project

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"mime"
	"strings"
	"unicode/utf8"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/cloudevents"
)

// payload is how a record's payload is told of.
type payload int

const (
	none    payload = iota // there is none, or it was not asked for
	carried                // it is in the message
	omitted                // it would be too large: its size and digest are
	erased                 // it was, and is no more
)

func payloadOf(r rendezvous.Record, o Options) payload {
	switch {
	case !o.IncludePayload:
		return none
	case o.Erased:
		return erased
	case r.Payload == nil:
		return none
	}
	return carried
}

// bounded is a body with its payload, or, where that is over the bound, without: nothing is cut.
func bounded(r rendezvous.Record, o Options, body func(p payload) []byte) []byte {
	p := payloadOf(r, o)
	if p == carried && len(r.Payload) > o.MaxBody {
		p = omitted
	}
	b := body(p)
	if p == carried && len(b) > o.MaxBody {
		return body(omitted)
	}
	return b
}

// announce tells of a payload that is not carried.
func announce(out *object, r rendezvous.Record, p payload) {
	switch p {
	case omitted:
		digest := sha256.Sum256(r.Payload)
		out.number("payload_size", int64(len(r.Payload)))
		out.text("payload_sha256", hex.EncodeToString(digest[:]))
	case erased:
		out.raw("payload_erased", []byte("true"))
	}
}

// isJSON reports whether a payload is JSON that stands in other JSON byte for byte.
func isJSON(r rendezvous.Record) bool {
	return r.ContentType != "" && cloudevents.IsJSON(r.ContentType) && utf8.Valid(r.Payload) && json.Valid(r.Payload) && cloudevents.Shallow(r.Payload)
}

// isText reports whether a payload is text in the encoding of JSON.
func isText(r rendezvous.Record) bool {
	kind, parameters, err := mime.ParseMediaType(r.ContentType)
	charset := strings.ToLower(parameters["charset"])
	return err == nil && strings.HasPrefix(kind, "text/") && (charset == "" || charset == "utf-8" || charset == "us-ascii") && utf8.Valid(r.Payload)
}

func base64Of(r rendezvous.Record) string { return base64.StdEncoding.EncodeToString(r.Payload) }
