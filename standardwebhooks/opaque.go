package standardwebhooks

import (
	"fmt"
	"io"
	"log/slog"
)

// Mask stands for a key wherever one is printed, logged or encoded.
const Mask = "[secret]"

var (
	_ fmt.Formatter  = SigningKey{}
	_ slog.LogValuer = SigningKey{}
	_ fmt.Formatter  = VerifyingKey{}
	_ slog.LogValuer = VerifyingKey{}
)

// Format writes the mask, whatever the verb.
func (SigningKey) Format(f fmt.State, _ rune) { mask(f) }

// String is the mask.
func (SigningKey) String() string { return Mask }

// MarshalText is the mask: keys go nowhere by an encoder that was handed too much. There is no way back.
func (SigningKey) MarshalText() ([]byte, error) { return []byte(Mask), nil }

// LogValue is the mask.
func (SigningKey) LogValue() slog.Value { return slog.StringValue(Mask) }

// Format writes the mask, whatever the verb.
func (VerifyingKey) Format(f fmt.State, _ rune) { mask(f) }

// String is the mask.
func (VerifyingKey) String() string { return Mask }

// MarshalText is the mask.
func (VerifyingKey) MarshalText() ([]byte, error) { return []byte(Mask), nil }

// LogValue is the mask.
func (VerifyingKey) LogValue() slog.Value { return slog.StringValue(Mask) }

func mask(w io.Writer) { _, _ = io.WriteString(w, Mask) }
