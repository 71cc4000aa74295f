package cloudevents

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rendezvous-events/rendezvous"
)

// Media types of the modes; anything else is binary mode.
const (
	Structured = "application/cloudevents+json"
	Batch      = "application/cloudevents-batch+json"
)

// Message is one decoded event.
type Message struct {
	Event rendezvous.Event
	Run   string // rdvrun: the one run the event is for, or ""
	// Raw is the event as it came in structured or batch mode, nil in binary mode.
	Raw []byte
	// Err says why the event is refused; Event then holds what could be read of its identity.
	Err error
}

// Decode reads a request or message: contentType and header choose the mode, structured winning over stray ce- headers. The error refuses the whole;
// otherwise there is one Message per event, in order. Header names match in any letter case.
func Decode(header map[string][]string, body []byte) ([]Message, error) {
	mode, _, _ := mime.ParseMediaType(first(header, "content-type"))
	switch mode {
	case Structured:
		m := DecodeObject(body)
		trace(&m, header)
		return []Message{m}, nil
	case Batch:
		return decodeBatch(header, body)
	}
	m := decodeBinary(header, body)
	trace(&m, header)
	return []Message{m}, nil
}

// first is the first value of a header in any letter case; of several spellings that of the least.
func first(header map[string][]string, name string) (value string) {
	least := ""
	for n, v := range header {
		if strings.EqualFold(n, name) && len(v) > 0 && (least == "" || n < least) {
			least, value = n, v[0]
		}
	}
	return value
}

// trace lets headers win over the extensions.
func trace(m *Message, header map[string][]string) {
	if p := first(header, "traceparent"); p != "" {
		m.Event.Trace = rendezvous.Trace{Parent: p, State: first(header, "tracestate")}
	}
}

func decodeBatch(header map[string][]string, body []byte) ([]Message, error) {
	if !utf8.Valid(body) {
		return nil, rendezvous.InvalidField("body", "is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('[') {
		return nil, rendezvous.InvalidField("body", "is not a JSON array of events")
	}
	var all []Message
	for dec.More() {
		if len(all) == rendezvous.MaxBatchItems {
			return nil, rendezvous.OverLimit("events", rendezvous.MaxBatchItems, len(all)+1)
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, rendezvous.InvalidField("body", "is not JSON from byte %d on", dec.InputOffset())
		}
		m := DecodeObject(raw)
		trace(&m, header)
		all = append(all, m)
	}
	if _, err := dec.Token(); err != nil {
		return nil, rendezvous.InvalidField("body", "ends inside the array")
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, rendezvous.InvalidField("body", "has something behind the array")
	}
	return all, nil
}

// DecodeObject reads one event in the JSON format.
func DecodeObject(raw []byte) Message {
	m := Message{Raw: raw}
	members, err := object(raw)
	if err != nil {
		m.Err = err
		return m
	}
	attributes := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if name == "data" || name == "data_base64" {
			continue
		}
		text, present, err := attribute(name, members[name])
		if err != nil {
			m.Err = firstOf(m.Err, err)
			continue
		}
		if present {
			attributes[name] = text
		}
	}
	m.read(attributes)
	if m.Err == nil {
		m.Err = m.data(members)
	}
	return m
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// object reads the members of one JSON object, each name once.
func object(raw []byte) (map[string]json.RawMessage, error) {
	if !utf8.Valid(raw) {
		return nil, rendezvous.InvalidField("event", "is not valid UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return nil, rendezvous.InvalidField("event", "is not a JSON object")
	}
	members := map[string]json.RawMessage{}
	for dec.More() {
		tok, err := dec.Token()
		name, ok := tok.(string)
		if err != nil || !ok {
			return nil, rendezvous.InvalidField("event", "is not JSON from byte %d on", dec.InputOffset())
		}
		if len(members) == maxMembers {
			return nil, rendezvous.OverLimit("event members", maxMembers, len(members)+1)
		}
		if _, twice := members[name]; twice {
			return nil, rendezvous.InvalidField(ShownName(name), "is given twice")
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, rendezvous.InvalidField("event", "is not JSON from byte %d on", dec.InputOffset())
		}
		members[name] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, rendezvous.InvalidField("event", "ends inside the object")
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, rendezvous.InvalidField("event", "has something behind the object")
	}
	return members, nil
}

// maxMembers bounds the attributes of one event.
const maxMembers = 128
