package receiver

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/standardwebhooks"
)

// Limits of a verifier.
const (
	MaxKeys          = 10
	DefaultTolerance = 5 * time.Minute
	MaxTolerance     = 24 * time.Hour
	// maxEntries is how many entries of a signature header are looked at, so that a stranger's header costs little. A sender has one for each of a few keys.
	maxEntries = 64
)

// What is wrong with a message. Each is a different fault: errors.Is tells them apart.
var (
	ErrHeader        = errors.New("a webhook header is missing, or not there once") // a *HeaderError, which says which
	ErrTimestamp     = errors.New("the webhook-timestamp is not a number of seconds")
	ErrTooOld        = errors.New("the message is too old")
	ErrTooNew        = errors.New("the message comes from too far in the future")
	ErrUnknownScheme = errors.New("the webhook-signature has no entry of a known scheme (v1, v1a)")
	ErrNoMatch       = errors.New("no signature is by a known key")
)

// HeaderError says which of the three headers does not stand once in the message.
type HeaderError struct {
	Header string // in lower case
	Times  int    // how often it is there with a value
}

func (e *HeaderError) Error() string {
	if e.Times == 0 {
		return e.Header + " is missing"
	}
	return fmt.Sprintf("%s is there %d times", e.Header, e.Times)
}

// Is makes every HeaderError an [ErrHeader].
func (e *HeaderError) Is(target error) bool { return target == ErrHeader }

// Message is what was verified.
type Message struct {
	ID        string    // the same each time the message comes
	Timestamp time.Time // when it was sent, to the second
	Key       int       // which of the verifier's keys it is signed with, from 0
	Body      []byte    // as it came
}

// Verifier verifies messages. It is safe for concurrent use.
type Verifier struct {
	keys      []standardwebhooks.VerifyingKey
	tolerance time.Duration
	clock     clock.Clock
}

// Option changes a verifier.
type Option func(*Verifier)

// Tolerance is how far a message's timestamp may lie from now, before or after, bound included: more than 0, at most [MaxTolerance]. Without it
// [DefaultTolerance].
func Tolerance(d time.Duration) Option { return func(v *Verifier) { v.tolerance = d } }

// Clock is where now comes from. Without it the machine's clock.
func Clock(c clock.Clock) Option { return func(v *Verifier) { v.clock = c } }

// New makes a verifier of 1..10 keys, each the text whsec_… or whpk_…, or the base64 of an HMAC secret alone.
func New(keys []string, options ...Option) (*Verifier, error) {
	if len(keys) < 1 || len(keys) > MaxKeys {
		return nil, fmt.Errorf("keys: %d are given, where 1..%d are asked", len(keys), MaxKeys)
	}
	v := &Verifier{tolerance: DefaultTolerance, clock: clock.System}
	for i, text := range keys {
		key, err := standardwebhooks.ParseVerifyingKey(text)
		if err != nil {
			return nil, fmt.Errorf("keys[%d]: %w", i, err)
		}
		v.keys = append(v.keys, key)
	}
	for _, option := range options {
		option(v)
	}
	if v.tolerance <= 0 || v.tolerance > MaxTolerance {
		return nil, fmt.Errorf("tolerance: %v is outside 1ns..%v", v.tolerance, MaxTolerance)
	}
	return v, nil
}

// Verify judges a message by its headers, whose names may be in any letter case, and its body, byte for byte as it came. The order is fixed: headers, timestamp,
// age, signature; the first fault is the error.
func (v *Verifier) Verify(headers map[string][]string, body []byte) (Message, error) {
	var texts [3]string
	for i, name := range [...]string{standardwebhooks.HeaderID, standardwebhooks.HeaderTimestamp, standardwebhooks.HeaderSignature} {
		text, err := once(headers, name)
		if err != nil {
			return Message{}, err
		}
		texts[i] = text
	}
	at, err := v.fresh(texts[1])
	if err != nil {
		return Message{}, err
	}
	key, err := v.signedBy(standardwebhooks.Message{ID: texts[0], Timestamp: texts[1], Body: body}, texts[2])
	if err != nil {
		return Message{}, err
	}
	return Message{ID: texts[0], Timestamp: at, Key: key, Body: body}, nil
}

// once answers the header's one value; an empty one is none.
func once(headers map[string][]string, name string) (string, error) {
	var values []string
	for given, of := range headers {
		if strings.EqualFold(given, name) {
			values = append(values, of...)
		}
	}
	values = slices.DeleteFunc(values, func(value string) bool { return value == "" })
	if len(values) != 1 {
		return "", &HeaderError{Header: name, Times: len(values)}
	}
	return values[0], nil
}

func (v *Verifier) fresh(timestamp string) (time.Time, error) {
	if strings.Trim(timestamp, "0123456789") != "" {
		return time.Time{}, ErrTimestamp
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return time.Time{}, ErrTimestamp
	}
	now := v.clock.Now()
	if seconds > now.Add(MaxTolerance+time.Second).Unix() { // and so maybe beyond what a time.Time holds
		return time.Time{}, ErrTooNew
	}
	at := time.Unix(seconds, 0).UTC()
	switch age := now.Sub(at); {
	case age > v.tolerance:
		return time.Time{}, ErrTooOld
	case age < -v.tolerance:
		return time.Time{}, ErrTooNew
	}
	return at, nil
}

// signedBy answers which key signed m. Every key is tried on every entry, whatever was found before.
func (v *Verifier) signedBy(m standardwebhooks.Message, header string) (int, error) {
	signatures, known := parseSignatures(header)
	if !known {
		return 0, ErrUnknownScheme
	}
	signer := -1
	for i, key := range v.keys {
		if key.Verify(m, signatures[key.Algorithm()]...) && signer < 0 {
			signer = i
		}
	}
	if signer < 0 {
		return 0, ErrNoMatch
	}
	return signer, nil
}

// parseSignatures sorts the entries of the header by scheme, and says whether one of them is of a known scheme. Entries without a comma or of another version
// are passed over; what is no base64 is of its scheme and can match nothing.
func parseSignatures(header string) (map[standardwebhooks.Algorithm][][]byte, bool) {
	of, known := map[standardwebhooks.Algorithm][][]byte{}, false
	entries := strings.Fields(header)
	for _, entry := range entries[:min(len(entries), maxEntries)] {
		version, text, ok := strings.Cut(entry, ",")
		algorithm := standardwebhooks.Algorithm(version)
		if !ok || algorithm != standardwebhooks.HMAC && algorithm != standardwebhooks.Ed25519 {
			continue
		}
		known = true
		if signature, err := base64.StdEncoding.DecodeString(text); err == nil {
			of[algorithm] = append(of[algorithm], signature)
		}
	}
	return of, known
}
