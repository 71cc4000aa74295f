package client

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/wire"
)

// Payload is bytes with their content type. The zero Payload is none; Data that is empty and not nil is an empty one: two different things.
type Payload struct {
	Data        []byte
	ContentType string
	err         error // of JSON, told when the payload is used
}

// JSON is v as a JSON payload. What does not encode is reported by the call the payload is given to (invalid).
func JSON(v any) Payload {
	b, err := rendezvous.EncodeJSON(v)
	if err != nil {
		b = []byte{} // a payload still, not none
	}
	return Payload{Data: b, ContentType: "application/json", err: err}
}

// Text is s as a text/plain payload.
func Text(s string) Payload {
	return Payload{Data: []byte(s), ContentType: "text/plain; charset=utf-8"}
}

// JSON decodes the payload into v. Errors: invalid.
func (p Payload) JSON(v any) error {
	if err := json.Unmarshal(p.Data, v); err != nil {
		return rendezvous.InvalidField("payload", "is not the JSON that is read from it").Because(err)
	}
	return nil
}

// IsNone reports whether there is no payload.
func (p Payload) IsNone() bool { return p.Data == nil }

func (p Payload) check() error {
	if p.err != nil {
		return rendezvous.InvalidField("payload", "does not encode as JSON").Because(p.err)
	}
	return nil
}

// Wire is the payload as requests carry it; nil for none. A request with one that did not encode is refused by the client (invalid).
func (p Payload) Wire() *wire.Payload {
	if p.err != nil {
		return &wire.Payload{Data: json.RawMessage(p.err.Error())} // no JSON, so the request does not encode either
	}
	return wire.PayloadOf(p.Data, p.ContentType)
}

// payloadOf is the payload of a record.
func payloadOf(r rendezvous.Record) Payload {
	return Payload{Data: r.Payload, ContentType: r.ContentType}
}

// NewEvent makes an event with an id of its own (UUIDv7). An event that may be sent again needs an id the producer can name again: set it. A payload that did
// not encode is invalid.
func NewEvent(source, eventType string, p Payload, keys ...rendezvous.Key) (rendezvous.Event, error) {
	return rendezvous.Event{
		EventID: rendezvous.EventID{Source: source, ID: NewID()}, Type: eventType, Keys: keys, Payload: p.Data, ContentType: p.ContentType,
	}, p.check()
}

// NewID mints an id: a UUIDv7. Ids are minted before a request is sent, so that its repetition says the same (I17).
func NewID() string {
	id, err := uuid.NewV7()
	if err != nil {
		panic("client: no randomness for an id: " + err.Error())
	}
	return id.String()
}

// minted is id, or a new one where there is none.
func minted(id string) string {
	if id == "" {
		return NewID()
	}
	return id
}
