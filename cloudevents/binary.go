package cloudevents

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/rendezvous-events/rendezvous"
)

// decodeBinary reads an event from its ce- headers, percent-decoded on every transport, and the body.
func decodeBinary(header map[string][]string, body []byte) Message {
	var m Message
	attributes := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		attr, ok := strings.CutPrefix(strings.ToLower(name), "ce-")
		if !ok {
			continue
		}
		if err := headerAttribute(attributes, attr, header[name]); err != nil {
			m.Err = firstOf(m.Err, err)
		}
	}
	if ct := first(header, "content-type"); ct != "" {
		attributes["datacontenttype"] = ct
	}
	if _, ok := attributes["specversion"]; !ok { // mostly a whole event under a content type that does not say so
		m.Err = firstOf(m.Err, rendezvous.InvalidField("specversion", "no ce-specversion header; to send a whole CloudEvent in the body use content-type %s", Structured))
	}
	m.read(attributes)
	if len(body) > 0 || attributes["datacontenttype"] != "" {
		m.Event.Payload = append([]byte{}, body...)
	}
	return m
}

func headerAttribute(attributes map[string]string, attr string, values []string) error {
	if !goodName(attr) || attr == "data" || attr == "datacontenttype" {
		return rendezvous.InvalidField("ce-"+ShownName(attr), "is not a header of an event")
	}
	if _, twice := attributes[attr]; twice || len(values) != 1 {
		return rendezvous.InvalidField("ce-"+attr, "is given %d times; give it once", max(len(values), 2))
	}
	text, err := url.PathUnescape(values[0])
	if err != nil {
		return rendezvous.InvalidField("ce-"+attr, "has a bad percent-encoding")
	}
	attributes[attr] = text
	return nil
}
