package standardwebhooks

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// The three headers of a message, in the letter case they are sent in.
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
)

// Message is what is signed: the texts of the id and timestamp headers and the body's bytes, as they are on the wire.
type Message struct {
	ID        string
	Timestamp string
	Body      []byte
}

// NewMessage is the message of an attempt begun at that instant.
func NewMessage(id string, at time.Time, body []byte) Message {
	return Message{ID: id, Timestamp: strconv.FormatInt(at.Unix(), 10), Body: body}
}

// Sign is m's entry of the signature header by that key: version, comma, base64.
func (k SigningKey) Sign(m Message) string {
	algorithm := k.Algorithm()
	var signature []byte
	switch algorithm {
	case HMAC:
		signature = m.mac(k.key().secret)
	case Ed25519:
		signature = ed25519.Sign(k.key().private, m.content())
	default:
		panic("standardwebhooks: signing with no key")
	}
	return string(algorithm) + "," + base64.StdEncoding.EncodeToString(signature)
}

// Sign is the value of the signature header: an entry per key in the order of the keys, which is newest first, single spaces between. No keys give "", and then
// the header is not sent.
func Sign(keys []SigningKey, m Message) string {
	entries := make([]string, len(keys))
	for i, k := range keys {
		entries[i] = k.Sign(m)
	}
	return strings.Join(entries, " ")
}

func (m Message) head() []byte { return []byte(m.ID + "." + m.Timestamp + ".") }

func (m Message) content() []byte { return append(m.head(), m.Body...) }

func (m Message) mac(secret []byte) []byte { return mac(secret, m.head(), m.Body) }

// mac is HMAC-SHA256 over the parts, one behind the other.
func mac(secret []byte, parts ...[]byte) []byte {
	h := hmac.New(sha256.New, secret)
	for _, part := range parts {
		h.Write(part)
	}
	return h.Sum(nil)
}
