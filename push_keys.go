package rendezvous

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous/standardwebhooks"
)

// SigningKey is a key that signs messages. [Registration.Check] and [CheckSigningKey] fill in what its text says; the store when it was made.
type SigningKey struct {
	Key       Secret // whsec_ or whsk_ text
	ID        string // of what the key is: the same key has the same id
	Algorithm string // v1 or v1a
	Public    string // of v1a: whpk_ text
	CreatedAt time.Time
	ExpiresAt time.Time // zero: none
}

// Expired reports whether the key signs nothing any more.
func (k SigningKey) Expired(now time.Time) bool {
	return !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(now)
}

// CheckSigningKey judges a key's text (PU-77) and answers the key with what it says. The error holds nothing of it.
func CheckSigningKey(field string, k SigningKey) (SigningKey, error) {
	if !k.Key.Set() {
		return k, InvalidField(field, "is missing")
	}
	key, err := standardwebhooks.ParseSigningKey(k.Key.Reveal())
	if err != nil {
		return k, InvalidField(field, "%s", strings.TrimPrefix(err.Error(), standardwebhooks.ErrKey.Error()+": "))
	}
	k.Algorithm, k.Public, k.ExpiresAt = string(key.Algorithm()), key.Public(), DueInstant(k.ExpiresAt)
	what := k.Public
	if what == "" {
		what = key.Reveal()
	}
	sum := sha256.Sum256([]byte("push signing key\x00" + what))
	k.ID = "key-" + hex.EncodeToString(sum[:6])
	return k, nil
}

// checkSigning judges the keys of a registration and answers them with what their texts say.
func checkSigning(keys []SigningKey, now time.Time) ([]SigningKey, error) {
	if len(keys) > MaxSigningKeys {
		return keys, InvalidField("signing", "%d keys are over the limit of %d", len(keys), MaxSigningKeys).With("limit", MaxSigningKeys).With("value", len(keys))
	}
	var out []SigningKey
	for i, k := range keys {
		k, err := CheckSigningKey("signing", k)
		if err == nil {
			err = CheckInstant("signing", k.ExpiresAt)
		}
		if err == nil && k.Expired(now) {
			err = InvalidField("signing", "it has expired; leave it out")
		}
		for _, o := range out {
			if err == nil && o.ID == k.ID {
				err = InvalidField("signing", "it is there twice")
			}
		}
		if err != nil {
			return keys, numbered(err, "key", i)
		}
		out = append(out, k)
	}
	return out, nil
}

// numbered says which item of a list an error is about.
func numbered(err error, what string, i int) error {
	var e *Error
	if errors.As(err, &e) {
		return e.With(what, i)
	}
	return err
}
