package cloudevents

import (
	"bytes"
	"unicode/utf8"
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

// LoneSurrogate reports whether a valid JSON string, in its quotes, holds half of a surrogate pair: a reader would make one and the same character of each.
func LoneSurrogate(quoted []byte) bool {
	for i := bytes.IndexByte(quoted, '\\'); i >= 0 && i < len(quoted); i++ {
		if quoted[i] != '\\' {
			continue
		}
		u, ok := unit(quoted[i:])
		switch {
		case !ok:
			i++ // another escape
		case u >= 0xdc00 && u < 0xe000:
			return true
		case u >= 0xd800 && u < 0xdc00:
			if low, ok := unit(quoted[i+6:]); !ok || low < 0xdc00 || low > 0xdfff {
				return true
			}
			i += 11
		default:
			i += 5
		}
	}
	return false
}

// unit is the UTF-16 unit that \uXXXX at the start of s means.
func unit(s []byte) (rune, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	var u rune
	for _, c := range s[2:6] {
		switch {
		case c >= '0' && c <= '9':
			u = u<<4 | rune(c-'0')
		default:
			u = u<<4 | rune(c|0x20-'a'+10)
		}
	}
	return u, true
}
