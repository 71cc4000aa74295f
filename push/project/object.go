package project

import (
	"strconv"

	"github.com/rendezvous-events/rendezvous"
)

// object writes a JSON object member by member.
type object struct{ bytes []byte }

func (o *object) name(name string) {
	if len(o.bytes) == 0 {
		o.bytes = append(o.bytes, '{')
	} else {
		o.bytes = append(o.bytes, ',')
	}
	o.bytes = append(quoted(o.bytes, name), ':')
}

// text is a member, also where it is empty.
func (o *object) text(name, value string) {
	o.name(name)
	o.bytes = quoted(o.bytes, value)
}

// fact is a member where there is something to tell.
func (o *object) fact(name, value string) {
	if value != "" {
		o.text(name, value)
	}
}

func (o *object) number(name string, n int64) {
	o.name(name)
	o.bytes = strconv.AppendInt(o.bytes, n, 10)
}

// raw is a member whose value is JSON already, byte for byte.
func (o *object) raw(name string, value []byte) {
	o.name(name)
	o.bytes = append(o.bytes, value...)
}

// end is the object whole.
func (o *object) end() []byte {
	if len(o.bytes) == 0 {
		o.bytes = append(o.bytes, '{')
	}
	return append(o.bytes, '}')
}

func quoted(b []byte, text string) []byte {
	if plain(text) {
		return append(append(append(b, '"'), text...), '"')
	}
	raw, err := rendezvous.EncodeJSON(text)
	if err != nil {
		panic("project: encode a string: " + err.Error()) // strings encode
	}
	return append(b, raw...)
}

// plain reports whether a string stands in JSON as it is; nearly all do, and encoding each would be a good part of what a message costs.
func plain(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}
