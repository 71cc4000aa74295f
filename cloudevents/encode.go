package cloudevents

import (
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
	case e.ContentType != "" && IsJSON(e.ContentType) && plainJSON(e.Payload):
		out.Data = e.Payload
	default:
		out.Base64 = &e.Payload
	}
	return json.Marshal(out)
}

// plainJSON reports whether the bytes survive being a member of a JSON object as they are.
func plainJSON(b []byte) bool {
	if !utf8.Valid(b) || !json.Valid(b) {
		return false
	}
	same, err := json.Marshal(json.RawMessage(b))
	return err == nil && string(same) == string(b)
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
