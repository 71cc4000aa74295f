package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// A cursor is unpadded URL-safe base64 of version byte ‖ 8-byte fingerprint ‖ position. It needs no server state and does not expire: the row it was
// made from may be gone. The fingerprint ties it to the verb, the tenant and the filter it began with (history.md section 8).
const (
	cursorVersion     = 1
	cursorFingerprint = 8
	maxCursor         = 16 << 10 // characters: far above what any position of two ids needs
)

// encodeCursor makes the cursor behind position, which is the last row of a page. filter must be in one form for one meaning: sets sorted, repeats
// collapsed, absent parts empty. "" is the tenant of plane-wide lists.
func encodeCursor(verb, tenant string, filter, position any) string {
	raw := append([]byte{cursorVersion}, fingerprint(verb, tenant, filter)...)
	raw = append(raw, mustJSON(position)...)
	return base64.RawURLEncoding.EncodeToString(raw)
}

// position is where a page is to go on: a pointer to what was encoded.
type position interface {
	// sound reports whether a row can be there: nothing else reaches the storage.
	sound() bool
}

// decodeCursor reads into at where a page is to go on. The empty cursor is the beginning and leaves at alone. A cursor of another verb, tenant or filter,
// or one that encodeCursor did not make of a position, is invalid (HI-37).
func decodeCursor(cursor, verb, tenant string, filter any, at position) error {
	if cursor == "" {
		return nil
	}
	malformed := rendezvous.InvalidField("cursor", "malformed cursor; give one that a page answered, or none to start")
	if len(cursor) > maxCursor {
		return malformed
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) <= 1+cursorFingerprint || raw[0] != cursorVersion {
		return malformed
	}
	if !bytes.Equal(raw[1:1+cursorFingerprint], fingerprint(verb, tenant, filter)) {
		return rendezvous.InvalidField("cursor", "cursor belongs to another query; start over without one")
	}
	text := raw[1+cursorFingerprint:]
	if json.Unmarshal(text, at) != nil {
		return malformed
	}
	if again, err := json.Marshal(at); err != nil || !bytes.Equal(again, text) || !at.sound() {
		return malformed
	}
	return nil
}

// soundAt reports whether an instant of a position is one that a row can have; that of a damaged row may be none.
func soundAt(t time.Time) bool {
	return rendezvous.CheckInstant("cursor", t) == nil && rendezvous.Instant(t).Equal(t)
}

func fingerprint(verb, tenant string, filter any) []byte {
	canonical, err := rendezvous.CanonicalJSON(mustJSON([]any{verb, tenant, filter}))
	if err != nil {
		panic("engine: canonical cursor filter: " + err.Error()) // what json.Marshal made is canonical
	}
	sum := sha256.Sum256(canonical)
	return sum[:cursorFingerprint]
}

// mustJSON encodes plain structs of this package and of the contract, which always encode.
func mustJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("engine: encode: " + err.Error())
	}
	return raw
}
