package cloudevents

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rendezvous-events/rendezvous"
)

// attribute reads one context attribute of the JSON format as text. null is absent.
func attribute(name string, value json.RawMessage) (text string, present bool, err error) {
	if !goodName(name) {
		return "", false, rendezvous.InvalidField(ShownName(name), "is not an attribute name: 1..%d lower-case letters and digits", maxName)
	}
	value = bytes.TrimSpace(value)
	switch {
	case bytes.Equal(value, []byte("null")):
		return "", false, nil
	case value[0] == '"':
		if text, err = jsonText(name, value); err != nil {
			return "", false, err
		}
		return text, true, nil
	case value[0] == '{' || value[0] == '[':
		return "", false, rendezvous.InvalidField(name, "is an object or array; an attribute is a string, a boolean or an integer")
	case textual(name):
		return "", false, rendezvous.InvalidField(name, "is not a string")
	}
	return string(value), true, nil
}

// maxName bounds an attribute's name, in bytes: names stand in errors, REJECTED and logs. CloudEvents asks for 20 at most.
const maxName = 64

func goodName(name string) bool {
	if len(name) > maxName {
		return false
	}
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// textual names the attributes that the contract reads as text: no number or boolean will do.
func textual(name string) bool {
	switch name {
	case "specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "rdvkeys", "rdvrun", "expirytime", "traceparent", "tracestate":
		return true
	}
	return false
}

// jsonText unquotes a JSON string and refuses lone surrogates, which would silently become one and the same character.
func jsonText(name string, value json.RawMessage) (string, error) {
	var s string
	if err := json.Unmarshal(value, &s); err != nil {
		return "", rendezvous.InvalidField(name, "is not a JSON string")
	}
	if strings.ContainsRune(s, utf8.RuneError) && LoneSurrogate(value) {
		return "", rendezvous.InvalidField(name, "has half of a surrogate pair")
	}
	return s, nil
}

// read fills the event from its attributes. The first fault, in a fixed order, is the message's error.
func (m *Message) read(a map[string]string) {
	e := &m.Event
	e.Source, e.ID, e.Type = a["source"], a["id"], a["type"]
	e.ContentType = a["datacontenttype"]
	e.Trace = rendezvous.Trace{Parent: a["traceparent"], State: a["tracestate"]}
	m.Run = a["rdvrun"]
	m.Err = firstOf(m.Err, m.check(a))
}

func (m *Message) check(a map[string]string) error {
	if v, ok := a["specversion"]; !ok || v != "1.0" {
		return rendezvous.InvalidField("specversion", "is not 1.0, the only version this plane speaks")
	}
	for _, name := range [...]string{"id", "source", "type"} {
		if err := rendezvous.CheckID(name, a[name]); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if value := a[name]; !utf8.ValidString(value) || strings.ContainsFunc(value, control) {
			return rendezvous.InvalidField(name, "is not valid UTF-8 without control characters")
		}
	}
	if t, ok := a["time"]; ok {
		if _, err := rendezvous.ParseInstant("time", t); err != nil {
			return err
		}
	}
	if run, ok := a["rdvrun"]; ok {
		if err := rendezvous.CheckID("rdvrun", run); err != nil {
			return err
		}
	}
	if t, ok := a["expirytime"]; ok {
		at, err := rendezvous.ParseInstant("expirytime", t)
		if err != nil {
			return err
		}
		m.Event.ExpiresAt = rendezvous.DueInstant(at)
	}
	return m.keys(a)
}

func control(r rune) bool { return r < 0x20 || (r >= 0x7f && r <= 0x9f) }

// keys reads subject and rdvkeys, in that order.
func (m *Message) keys(a map[string]string) error {
	var keys []rendezvous.Key
	if s, ok := a["subject"]; ok {
		keys = append(keys, rendezvous.Key{Namespace: "subject", Value: s})
	}
	if list, ok := a["rdvkeys"]; ok {
		more, err := ParseKeys("rdvkeys", list)
		if err != nil {
			return err
		}
		keys = append(keys, more...)
	}
	set, err := rendezvous.CheckKeys(keys)
	m.Event.Keys = set
	return err
}

// ParseKeys reads keys as rdvkeys writes them: namespace=value, commas between, "%", "," and "=" percent-encoded.
func ParseKeys(field, list string) ([]rendezvous.Key, error) {
	if list == "" {
		return nil, rendezvous.InvalidField(field, "is empty; write namespace=value, or leave it out")
	}
	parts := strings.SplitN(list, ",", maxListed+1)
	if len(parts) > maxListed {
		return nil, rendezvous.OverLimit(field, rendezvous.MaxKeys, strings.Count(list, ",")+1)
	}
	keys := make([]rendezvous.Key, 0, len(parts))
	for i, part := range parts {
		name, value, ok := strings.Cut(part, "=")
		if !ok || strings.Contains(value, "=") {
			return nil, rendezvous.InvalidField(field, "entry %d is not namespace=value", i+1)
		}
		n, err1 := url.PathUnescape(name)
		v, err2 := url.PathUnescape(value)
		if err1 != nil || err2 != nil {
			return nil, rendezvous.InvalidField(field, "entry %d has a bad percent-encoding", i+1)
		}
		keys = append(keys, rendezvous.Key{Namespace: n, Value: v})
	}
	return rendezvous.CheckKeys(keys)
}

// maxListed bounds the entries of rdvkeys before repeats collapse.
const maxListed = 256

// FormatKeys writes keys as [ParseKeys] reads them.
func FormatKeys(keys []rendezvous.Key) string {
	escape := strings.NewReplacer("%", "%25", ",", "%2C", "=", "%3D")
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = escape.Replace(k.Namespace) + "=" + escape.Replace(k.Value)
	}
	return strings.Join(parts, ",")
}

// data fills the payload of the JSON format: none, bytes, text, or the JSON value as it was written.
func (m *Message) data(members map[string]json.RawMessage) error {
	data, isData := members["data"]
	encoded, isEncoded := members["data_base64"]
	switch {
	case isData && isEncoded:
		return rendezvous.InvalidField("data_base64", "stands beside data; give one of them")
	case isEncoded:
		text, err := jsonText("data_base64", bytes.TrimSpace(encoded))
		if err != nil {
			return err
		}
		if m.Event.Payload, err = base64.StdEncoding.DecodeString(text); err != nil {
			return rendezvous.InvalidField("data_base64", "is not base64")
		}
		if m.Event.Payload == nil {
			m.Event.Payload = []byte{}
		}
	case isData:
		return m.jsonData(bytes.TrimSpace(data))
	}
	return nil
}

func (m *Message) jsonData(data []byte) error {
	if m.Event.ContentType == "" {
		m.Event.ContentType = "application/json"
	}
	if data[0] == '"' && !IsJSON(m.Event.ContentType) {
		text, err := jsonText("data", data)
		m.Event.Payload = append([]byte{}, text...)
		return err
	}
	m.Event.Payload = append([]byte{}, data...)
	return nil
}

// IsJSON reports whether a content type says JSON.
func IsJSON(contentType string) bool {
	base, _, _ := strings.Cut(contentType, ";")
	base = strings.ToLower(strings.TrimSpace(base))
	return base == "" || base == "application/json" || base == "text/json" || strings.HasSuffix(base, "+json")
}
