package rendezvous

import (
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

// secretMask stands for every secret in every form that is printed, encoded or logged: it does not even tell how long the secret is.
const secretMask = "[secret]"

// Secret is a value that no answer, log, error, span or debug text shows (push.md section 1, PU-8). Text, Go, JSON and slog forms are one fixed mask; only
// Reveal tells it. The zero value is no secret.
type Secret struct {
	value *string // behind a pointer: whoever prints around the methods below prints an address
}

// NewSecret is the secret of that text; "" is none.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{value: &text}
}

// Reveal is the text itself: for those who send it, or keep it.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Set reports whether there is a secret.
func (s Secret) Set() bool { return s.value != nil }

// IsZero is the opposite of Set, for omitzero.
func (s Secret) IsZero() bool { return s.value == nil }

// Equal compares without telling by its time where two secrets differ.
func (s Secret) Equal(o Secret) bool {
	return subtle.ConstantTimeCompare([]byte(s.Reveal()), []byte(o.Reveal())) == 1
}

// String is the mask, "" where there is no secret.
func (s Secret) String() string {
	if s.value == nil {
		return ""
	}
	return secretMask
}

// GoString is the mask.
func (s Secret) GoString() string { return s.String() }

// Format writes the mask for every verb and flag.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText is the mask, which JSON writes too.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// LogValue is the mask.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
