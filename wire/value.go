package wire

import (
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/cloudevents"
)

// Time is an instant on the wire: RFC 3339 with microseconds, UTC. The zero Time is left out by omitzero.
type Time struct{ time.Time }

// At makes a wire time.
func At(t time.Time) Time { return Time{t} }

// IsZero serves omitzero.
func (t Time) IsZero() bool { return t.Time.IsZero() }

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(`"` + rendezvous.FormatInstant(t.Time) + `"`), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Time) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return rendezvous.InvalidField("time", "is not a string")
	}
	v, err := rendezvous.ParseInstant("time", s)
	t.Time = v
	return err
}

// AfterMS is how long until something is due, as requests tell it: in milliseconds, rounded up, since nothing is early.
func AfterMS(d time.Duration) int64 {
	ms := d.Milliseconds()
	if time.Duration(ms)*time.Millisecond < d {
		ms++
	}
	return ms
}

// Payload is bytes on the wire: JSON as it is, anything else in base64. A nil *Payload is none.
type Payload struct {
	Data        json.RawMessage `json:"data,omitempty"`
	Base64      *Base64         `json:"data_base64,omitempty"`
	ContentType string          `json:"content_type,omitempty"`
}

// Base64 is bytes as a base64 text, and as nothing else: encoding/json alone would also take a list of numbers.
type Base64 []byte

// UnmarshalJSON implements json.Unmarshaler.
func (b *Base64) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return rendezvous.InvalidField("data_base64", "is not a text")
	}
	v, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return rendezvous.InvalidField("data_base64", "is not base64 (RFC 4648, with + / and padding)")
	}
	*b = v
	return nil
}

// PayloadOf is the wire form of stored bytes; nil for none.
func PayloadOf(b []byte, contentType string) *Payload {
	if b == nil {
		return nil
	}
	p := &Payload{ContentType: contentType}
	if contentType != "" && cloudevents.IsJSON(contentType) && cloudevents.Verbatim(b) {
		p.Data = b
	} else {
		p.Base64 = (*Base64)(&b)
	}
	return p
}

// Bytes is what a payload holds: nil for none, and its content type. JSON without a content type is application/json.
func (p *Payload) Bytes() (b []byte, contentType string, err error) {
	switch {
	case p == nil:
		return nil, "", nil
	case p.Data != nil && p.Base64 != nil:
		return nil, "", rendezvous.InvalidField("data_base64", "stands beside data; give one of them")
	case p.Data == nil && p.Base64 == nil:
		return nil, "", rendezvous.InvalidField("data", "is missing, and data_base64 too; give one of them, or leave the payload out for none")
	case p.Base64 != nil:
		return append([]byte{}, *p.Base64...), p.ContentType, nil
	case p.Data != nil && p.ContentType == "":
		return p.Data, "application/json", nil
	}
	return p.Data, p.ContentType, nil
}

// Record is a history's record on the wire.
type Record struct {
	Seq        int64                `json:"seq,omitempty"`
	RunID      string               `json:"run_id,omitempty"`
	Kind       rendezvous.Kind      `json:"kind"`
	V          int                  `json:"v,omitempty"` // left out for 1
	Effect     string               `json:"effect,omitempty"`
	Attempt    int                  `json:"attempt,omitempty"` // left out for 1
	Data       json.RawMessage      `json:"data,omitempty"`
	Payload    *Payload             `json:"payload,omitempty"`
	Omitted    bool                 `json:"payload_omitted,omitempty"` // there is a payload of Size bytes, which the way of the reply does not carry
	Size       int                  `json:"payload_size,omitempty"`
	Source     string               `json:"source,omitempty"`
	Operator   *rendezvous.Operator `json:"operator,omitempty"`
	Batch      string               `json:"batch,omitempty"`
	Unknown    bool                 `json:"unknown,omitempty"`
	RecordedAt Time                 `json:"recorded_at,omitzero"`
}

// RecordOf is the wire form of a record.
func RecordOf(r rendezvous.Record) Record {
	w := Record{
		Seq: r.Seq, RunID: r.RunID, Kind: r.Kind, Effect: r.Effect, Data: r.Data, Payload: PayloadOf(r.Payload, r.ContentType), Source: r.Source,
		Operator: r.Operator, Batch: r.Batch, Unknown: r.Unknown, RecordedAt: At(r.RecordedAt),
	}
	if r.V != rendezvous.KindVersion {
		w.V = r.V
	}
	if r.Attempt > 1 {
		w.Attempt = r.Attempt
	}
	return w
}

// RecordsOf is the wire form of records, never null.
func RecordsOf(rs []rendezvous.Record) []Record {
	out := make([]Record, len(rs))
	for i, r := range rs {
		out[i] = RecordOf(r)
	}
	return out
}

// WithoutPayload is the record with its payload left out, marked so.
func (w Record) WithoutPayload() Record {
	if p := w.Payload; p != nil {
		w.Payload, w.Omitted, w.Size = nil, true, len(p.Data)
		if p.Base64 != nil {
			w.Size = len(*p.Base64)
		}
	}
	return w
}

// Domain is the record as the domain has it. One whose payload was left out is none (too_large).
func (w Record) Domain() (rendezvous.Record, error) {
	if w.Omitted || w.Size != 0 {
		return rendezvous.Record{}, rendezvous.Errorf(rendezvous.CodeTooLarge,
			"the payload of record %d, %d bytes, is over what a NATS message carries here; read it over HTTP, or raise max_payload of the NATS server", w.Seq, w.Size).
			With("seq", w.Seq).With("value", w.Size)
	}
	b, ct, err := w.Payload.Bytes()
	if err != nil {
		return rendezvous.Record{}, err
	}
	r := rendezvous.Record{
		Seq: w.Seq, RunID: w.RunID, Kind: w.Kind, V: w.V, Effect: w.Effect, Attempt: w.Attempt, Data: w.Data, Payload: b, ContentType: ct,
		Source: w.Source, Operator: w.Operator, Batch: w.Batch, Unknown: w.Unknown, RecordedAt: w.RecordedAt.Time,
	}
	if r.V == 0 {
		r.V = rendezvous.KindVersion
	}
	return r, nil
}

// Request is a pending pause or cancel on the wire.
type Request struct {
	Kind     rendezvous.RequestKind `json:"kind"`
	Operator *rendezvous.Operator   `json:"operator,omitempty"`
	Reason   string                 `json:"reason,omitempty"`
	At       Time                   `json:"at"`
}

// RequestsOf is the wire form of requests, never null.
func RequestsOf(rs []rendezvous.Request) []Request {
	out := make([]Request, len(rs))
	for i, r := range rs {
		out[i] = Request{Kind: r.Kind, Operator: r.Operator, Reason: r.Reason, At: At(r.At)}
	}
	return out
}
