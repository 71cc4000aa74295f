package standardwebhooks

import (
	"crypto/ed25519"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Algorithm is a signature scheme by the version that its entries in the header begin with.
type Algorithm string

// The two schemes.
const (
	HMAC    Algorithm = "v1"  // HMAC-SHA256
	Ed25519 Algorithm = "v1a" // ed25519
)

// What the text of a key begins with.
const (
	SecretPrefix  = "whsec_" // HMAC secret
	PrivatePrefix = "whsk_"  // ed25519 private key
	PublicPrefix  = "whpk_"  // ed25519 public key
)

// How many bytes an HMAC secret that signs may have, and how many a generated one has.
const (
	MinSecret       = 24
	MaxSecret       = 64
	generatedSecret = 32
)

// ErrKey is in every error about a key. The error says what is wrong, and holds nothing of the key.
var ErrKey = errors.New("unusable key")

// SigningKey signs messages. The zero value is no key.
type SigningKey struct{ behind **signing }

// signing is behind two pointers: fmt reads unexported fields without asking their methods, and with a verb that does not fit it follows one pointer. So it
// has an address to show and no bytes, and reflect.DeepEqual still compares the keys.
type signing struct {
	text    string
	secret  []byte             // HMAC
	private ed25519.PrivateKey // Ed25519
}

func hide(s *signing) SigningKey { return SigningKey{&s} }

// key is what is behind, an empty one of no key.
func (k SigningKey) key() *signing {
	if k.behind == nil {
		return &signing{}
	}
	return *k.behind
}

// ParseSigningKey reads whsec_ or whsk_ text. Everything but exactly that text is refused (PU-77): another or no prefix, a doubled one, blanks, base64 that is
// unpadded, URL-safe or not in its one canonical form, another length, a public half that is not the seed's.
func ParseSigningKey(text string) (SigningKey, error) {
	switch {
	case strings.HasPrefix(text, SecretPrefix):
		secret, err := decode(SecretPrefix, text)
		if err != nil {
			return SigningKey{}, err
		}
		return NewHMACKey(secret)
	case strings.HasPrefix(text, PrivatePrefix):
		private, err := decode(PrivatePrefix, text)
		if err != nil {
			return SigningKey{}, err
		}
		return NewEd25519Key(private)
	case strings.HasPrefix(text, PublicPrefix):
		return SigningKey{}, fmt.Errorf("%w: a public key (%s) cannot sign; give the private one (%s)", ErrKey, PublicPrefix, PrivatePrefix)
	}
	return SigningKey{}, fmt.Errorf("%w: the text begins with neither %s nor %s", ErrKey, SecretPrefix, PrivatePrefix)
}

// NewHMACKey makes a key of 24..64 secret bytes, which it copies.
func NewHMACKey(secret []byte) (SigningKey, error) {
	if len(secret) < MinSecret || len(secret) > MaxSecret {
		return SigningKey{}, fmt.Errorf("%w: a secret of %d bytes, where %d..%d are asked", ErrKey, len(secret), MinSecret, MaxSecret)
	}
	return hide(&signing{text: encode(SecretPrefix, secret), secret: append([]byte(nil), secret...)}), nil
}

// NewEd25519Key makes a key of a seed (32 bytes), or of a seed and its public half (64 bytes), which it copies. Its text is the one of what was given.
func NewEd25519Key(private []byte) (SigningKey, error) {
	if len(private) != ed25519.SeedSize && len(private) != ed25519.PrivateKeySize {
		return SigningKey{}, fmt.Errorf("%w: an ed25519 key of %d bytes, where %d or %d are asked", ErrKey, len(private), ed25519.SeedSize, ed25519.PrivateKeySize)
	}
	whole := ed25519.NewKeyFromSeed(private[:ed25519.SeedSize])
	if len(private) == ed25519.PrivateKeySize && subtle.ConstantTimeCompare(whole, private) != 1 {
		return SigningKey{}, fmt.Errorf("%w: the public half is not that of the seed", ErrKey)
	}
	return hide(&signing{text: encode(PrivatePrefix, private), private: whole}), nil
}

// Generate makes a new key from random, which is crypto/rand.Reader outside of tests.
func Generate(algorithm Algorithm, random io.Reader) (SigningKey, error) {
	var size int
	switch algorithm {
	case HMAC:
		size = generatedSecret
	case Ed25519:
		size = ed25519.SeedSize
	default:
		return SigningKey{}, fmt.Errorf("%w: the algorithm is neither %s nor %s", ErrKey, HMAC, Ed25519)
	}
	bytes := make([]byte, size)
	if _, err := io.ReadFull(random, bytes); err != nil {
		return SigningKey{}, fmt.Errorf("reading random bytes for a key: %w", err)
	}
	if algorithm == HMAC {
		return NewHMACKey(bytes)
	}
	return NewEd25519Key(ed25519.NewKeyFromSeed(bytes))
}

// IsZero reports whether k is no key.
func (k SigningKey) IsZero() bool { return k.behind == nil }

// Algorithm is the scheme k signs by, "" of no key.
func (k SigningKey) Algorithm() Algorithm {
	switch key := k.key(); {
	case key.private != nil:
		return Ed25519
	case key.secret != nil:
		return HMAC
	}
	return ""
}

// Reveal is the secret text, as [ParseSigningKey] reads it; "" of no key.
func (k SigningKey) Reveal() string { return k.key().text }

// Public is the public text (whpk_), which is no secret; "" of an HMAC key, which has none.
func (k SigningKey) Public() string {
	if k.Algorithm() != Ed25519 {
		return ""
	}
	return encode(PublicPrefix, k.key().public())
}

func (s *signing) public() ed25519.PublicKey { return s.private.Public().(ed25519.PublicKey) }

// Equal reports whether both sign alike, in constant time. The 32-byte and the 64-byte text of one seed are equal.
func (k SigningKey) Equal(other SigningKey) bool {
	a, b := k.key(), other.key()
	return subtle.ConstantTimeCompare(a.secret, b.secret)&subtle.ConstantTimeCompare(a.private, b.private) == 1
}

// VerifyingKey is the key that verifies what k signs.
func (k SigningKey) VerifyingKey() VerifyingKey {
	switch k.Algorithm() {
	case HMAC:
		return verifier(verifying{secret: k.key().secret})
	case Ed25519:
		return verifier(verifying{public: k.key().public()})
	}
	return VerifyingKey{}
}

// VerifyingKey verifies messages. The zero value is no key.
type VerifyingKey struct{ behind **verifying }

type verifying struct {
	secret []byte
	public ed25519.PublicKey
}

func verifier(v verifying) VerifyingKey {
	behind := &v
	return VerifyingKey{&behind}
}

func (k VerifyingKey) key() *verifying {
	if k.behind == nil {
		return &verifying{}
	}
	return *k.behind
}

// ParseVerifyingKey reads a receiver's key: whsec_ or whpk_ text, or the base64 of an HMAC secret alone. It is laxer than [ParseSigningKey], since keys of
// other senders are verified with it: an HMAC secret has any length above none.
func ParseVerifyingKey(text string) (VerifyingKey, error) {
	switch {
	case strings.HasPrefix(text, PublicPrefix):
		public, err := decode(PublicPrefix, text)
		if err != nil {
			return VerifyingKey{}, err
		}
		if len(public) != ed25519.PublicKeySize {
			return VerifyingKey{}, fmt.Errorf("%w: a public key of %d bytes, where %d are asked", ErrKey, len(public), ed25519.PublicKeySize)
		}
		return verifier(verifying{public: public}), nil
	case strings.HasPrefix(text, PrivatePrefix):
		return VerifyingKey{}, fmt.Errorf("%w: a private key (%s) is the sender's; give the public one (%s)", ErrKey, PrivatePrefix, PublicPrefix)
	}
	secret, err := decode(SecretPrefix, SecretPrefix+strings.TrimPrefix(text, SecretPrefix))
	if err != nil {
		return VerifyingKey{}, err
	}
	if len(secret) == 0 {
		return VerifyingKey{}, fmt.Errorf("%w: it is empty", ErrKey)
	}
	return verifier(verifying{secret: secret}), nil
}

// Algorithm is the scheme k verifies, "" of no key.
func (k VerifyingKey) Algorithm() Algorithm {
	switch key := k.key(); {
	case key.public != nil:
		return Ed25519
	case key.secret != nil:
		return HMAC
	}
	return ""
}

// Verify reports whether one of the signatures, the bytes behind the commas of entries, is m's by this key. All are compared, each in a time that does not
// depend on where it differs or how long it is (PU-100).
func (k VerifyingKey) Verify(m Message, signatures ...[]byte) bool {
	matches := 0
	switch key := k.key(); k.Algorithm() {
	case HMAC:
		own := m.mac(key.secret)
		for _, signature := range signatures {
			matches |= same(own, signature)
		}
	case Ed25519:
		content := m.content()
		for _, signature := range signatures {
			if ed25519.Verify(key.public, content, signature) {
				matches = 1
			}
		}
	}
	return matches == 1
}

// same compares all of own with what stands in its place, whatever the length of other.
func same(own, other []byte) int {
	padded := make([]byte, len(own))
	copy(padded, other)
	return subtle.ConstantTimeCompare(own, padded) & subtle.ConstantTimeEq(int32(len(own)), int32(len(other)))
}

func encode(prefix string, b []byte) string { return prefix + base64.StdEncoding.EncodeToString(b) }

// decode reads the base64 behind prefix. What is read is written again and compared: the decoder passes over line breaks, and over bits at the end that
// belong to no byte.
func decode(prefix, text string) ([]byte, error) {
	rest := strings.TrimPrefix(text, prefix)
	b, err := base64.StdEncoding.DecodeString(rest)
	if err != nil || base64.StdEncoding.EncodeToString(b) != rest {
		return nil, fmt.Errorf("%w: what stands behind %s is not padded standard base64", ErrKey, prefix)
	}
	return b, nil
}
