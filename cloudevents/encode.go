package cloudevents

import (
	"bytes"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/rendezvous-events/rendezvous"
)

// Encode writes one event in the JSON format, so that [DecodeObject] reads the same event back, payload bit for bit. A key of namespace subject, if
// it is the first, becomes the subject.
func Encode(e rendezvous.Event, run string) ([]byte, error) {
	keys := e.Keys
	out := envelope{
		SpecVersion: "1.0", ID: e.ID, Source: e.Source, Type: e.Type, ContentType: e.ContentType, Run: run,
		Traceparent: e.Trace.Parent, Tracestate: e.Trace.State,
	}
	if len(keys) > 0 && keys[0].Namespace == "subject" {
		out.Subject, keys = keys[0].Value, keys[1:]
	}
	if len(keys) > 0 {
		out.Keys = FormatKeys(keys)
	}
	if !e.ExpiresAt.IsZero() {
		out.Expiry = e.ExpiresAt.UTC().Format(time.RFC3339Nano)
	}
	switch {
	case e.Payload == nil:
	case e.ContentType != "" && IsJSON(e.ContentType) && Verbatim(e.Payload):
		out.Data = e.Payload
	default:
		out.Base64 = &e.Payload
	}
	return rendezvous.EncodeJSON(out) // which escapes nothing for HTML: data stays the same text
}

// maxVerbatim is how deep JSON may nest that travels as a member of other JSON. Requests are refused beyond 1000, and many readers stop at 10,000; the rest is
// for what a request or reply wraps around a payload.
const maxVerbatim = 990

// Verbatim reports whether the bytes are JSON that survives being a member of a JSON object as they are, written without escaping for HTML. What does not
// travels in base64.
func Verbatim(b []byte) bool {
	var out bytes.Buffer
	out.Grow(len(b))
	return utf8.Valid(b) && json.Compact(&out, b) == nil && bytes.Equal(out.Bytes(), b) && Shallow(b)
}

// Shallow reports whether a valid JSON text nests no deeper than readers of the JSON around it bear.
func Shallow(text []byte) bool { return depth(text) <= maxVerbatim }

// depth is how deep a valid JSON text nests.
func depth(text []byte) (deepest int) {
	open := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			open++
			deepest = max(deepest, open)
		case '}', ']':
			open--
		}
	}
	return deepest
}

type envelope struct {
	SpecVersion string          `json:"specversion"`
	ID          string          `json:"id"`
	Source      string          `json:"source"`
	Type        string          `json:"type"`
	Subject     string          `json:"subject,omitempty"`
	Keys        string          `json:"rdvkeys,omitempty"`
	Run         string          `json:"rdvrun,omitempty"`
	Expiry      string          `json:"expirytime,omitempty"`
	ContentType string          `json:"datacontenttype,omitempty"`
	Traceparent string          `json:"traceparent,omitempty"`
	Tracestate  string          `json:"tracestate,omitempty"`
	Data        json.RawMessage `json:"data,omitempty"`
	Base64      *[]byte         `json:"data_base64,omitempty"`
}
