package rendezvous

import (
	"fmt"
	"slices"
	"strings"
)

// Key is a correlation key: events carry keys, waits listen on keys. Two keys are equal when namespace and value are, byte for byte (R4).
type Key struct {
	Namespace string `json:"namespace"`
	Value     string `json:"value"`
}

// String is namespace=value.
func (k Key) String() string { return k.Namespace + "=" + k.Value }

// Compare orders keys by namespace and value, by bytes.
func (k Key) Compare(o Key) int {
	if c := strings.Compare(k.Namespace, o.Namespace); c != 0 {
		return c
	}
	return strings.Compare(k.Value, o.Value)
}

// CheckKeys judges a list of keys and answers it as the set it is: repeats collapse, order is kept (R4, EV-19).
func CheckKeys(keys []Key) ([]Key, error) {
	var set []Key
	for i, k := range keys {
		for _, part := range [...]struct{ name, value string }{{"namespace", k.Namespace}, {"value", k.Value}} {
			if checkText(part.name, part.value, 1, MaxKeyPart) != nil { // the full name is made only where somebody reads it
				return nil, checkText(fmt.Sprintf("keys[%d].%s", i, part.name), part.value, 1, MaxKeyPart)
			}
		}
		if !slices.Contains(set, k) {
			if len(set) == MaxKeys {
				return nil, OverLimit("keys", MaxKeys, len(keys))
			}
			set = append(set, k)
		}
	}
	return set, nil
}

// SortedKeys is the set in byte order: what digests and comparisons use.
func SortedKeys(keys []Key) []Key {
	s := slices.Clone(keys)
	slices.SortFunc(s, Key.Compare)
	return slices.Compact(s)
}

// SameKeys reports whether two lists are one set.
func SameKeys(a, b []Key) bool { return slices.Equal(SortedKeys(a), SortedKeys(b)) }

// SharedKey is the first of a's keys that b has too (O5).
func SharedKey(a, b []Key) (Key, bool) {
	for _, k := range a {
		if slices.Contains(b, k) {
			return k, true
		}
	}
	return Key{}, false
}
