package api

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/cloudevents"
)

// maxDepth is how deep a request may nest. What a reply wraps around a payload must stay readable for every JSON reader, and many stop at 10,000.
const maxDepth = 1000

// strict judges a JSON text that encoding/json has read into a value of type t, for what that package lets pass: names in another letter case, members
// given twice, halves of surrogate pairs (which would make two ids one), and nesting without end. Raw JSON inside is opaque but for its depth.
func strict(text []byte, t reflect.Type) error {
	w := walker{text: text}
	return w.value(t, 0)
}

// walker goes over a text that is known to be valid JSON, so it never looks beyond its end.
type walker struct {
	text []byte
	at   int
}

func (w *walker) blanks() byte {
	for {
		switch c := w.text[w.at]; c {
		case ' ', '\t', '\r', '\n':
			w.at++
		default:
			return c
		}
	}
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func (w *walker) value(t reflect.Type, depth int) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	opaque := reflect.PointerTo(t).Implements(unmarshaler)
	switch c := w.blanks(); {
	case c == '{' && t.Kind() == reflect.Struct && !opaque:
		return w.object(t, depth+1)
	case c == '[' && t.Kind() == reflect.Slice && !opaque:
		return w.array(t.Elem(), depth+1)
	case c == '"' && t.Kind() == reflect.String:
		if text := w.string(); cloudevents.LoneSurrogate(text) {
			return rendezvous.InvalidField("body", "has half of a surrogate pair in a text")
		}
		return nil
	}
	return w.skip(depth)
}

func (w *walker) object(t reflect.Type, depth int) error {
	fields := fieldsOf(t)
	seen := make([]string, 0, 8)
	w.at++
	for w.blanks() != '}' {
		name, err := memberName(w.string())
		if err != nil {
			return err
		}
		field, known := fields[name]
		if !known {
			return rendezvous.InvalidField(cloudevents.ShownName(name), "is not a field of this request")
		}
		for _, s := range seen {
			if s == name {
				return rendezvous.InvalidField(name, "is given twice")
			}
		}
		seen = append(seen, name)
		w.blanks()
		w.at++ // the colon
		if err := w.value(field, depth); err != nil {
			return err
		}
		if w.blanks() == ',' {
			w.at++
		}
	}
	w.at++
	return nil
}

func (w *walker) array(t reflect.Type, depth int) error {
	w.at++
	for w.blanks() != ']' {
		if err := w.value(t, depth); err != nil {
			return err
		}
		if w.blanks() == ',' {
			w.at++
		}
	}
	w.at++
	return nil
}

// string passes a string and answers it in its quotes.
func (w *walker) string() []byte {
	start := w.at
	for w.at++; w.text[w.at] != '"'; w.at++ {
		if w.text[w.at] == '\\' {
			w.at++
		}
	}
	w.at++
	return w.text[start:w.at]
}

// skip passes any value.
func (w *walker) skip(depth int) error {
	for open := 0; ; {
		switch w.blanks() {
		case '"':
			w.string()
		case '{', '[':
			if open++; depth+open > maxDepth {
				return rendezvous.InvalidField("body", "nests deeper than %d", maxDepth)
			}
			w.at++
		case '}', ']':
			open--
			w.at++
		case ',', ':':
			w.at++
		default:
			for w.at < len(w.text) && !bytes.ContainsRune([]byte(" \t\r\n,:]}"), rune(w.text[w.at])) {
				w.at++
			}
		}
		if open == 0 {
			return nil
		}
	}
}

func memberName(quoted []byte) (string, error) {
	if bytes.IndexByte(quoted, '\\') < 0 {
		return string(quoted[1 : len(quoted)-1]), nil
	}
	var name string
	if err := json.Unmarshal(quoted, &name); err != nil {
		return "", rendezvous.InvalidField("body", "is not JSON that this verb reads")
	}
	return name, nil
}

// known are the members of request types, by type.
var known sync.Map

// fieldsOf are the members that a request of struct type t has, by name.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if m, ok := known.Load(t); ok {
		return m.(map[string]reflect.Type)
	}
	m := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-", !f.IsExported():
		case name != "":
			m[name] = f.Type
		case !f.Anonymous:
			m[f.Name] = f.Type
		}
	}
	known.Store(t, m)
	return m
}
