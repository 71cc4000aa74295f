package cloudevents

import (
	"bytes"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// ShownName is a member's name as an error may repeat it: cut where it is long.
func ShownName(name string) string {
	switch {
	case !utf8.ValidString(name):
		return "a member"
	case len(name) <= maxName:
		return name
	}
	end := maxName - len("…")
	for !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + "…"
}

// LoneSurrogate reports whether a valid JSON string in UTF-8, in its quotes, holds half of a surrogate pair: a reader would make one and the same character of
// each. Only an escape can be one.
func LoneSurrogate(quoted []byte) bool {
	return bytes.IndexByte(quoted, '\\') >= 0 && !jsontext.Value(quoted).IsValid()
}
