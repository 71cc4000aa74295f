package rendezvous

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"time"
)

// EventID is an event's identity in its tenant: the pair, never joined to one text (I2).
type EventID struct {
	Source string `json:"source"`
	ID     string `json:"id"`
}

// Event is what a producer sends.
type Event struct {
	EventID
	Type        string
	Keys        []Key
	ContentType string
	Payload     []byte    // nil is none; empty and non-nil is empty: two different things
	ExpiresAt   time.Time // zero: none
	Trace       Trace
	MintedBy    *Operator // only from the plane itself
}

// ReservedType and ReservedSource begin what only the plane may send (EV-11).
const (
	ReservedType   = "rendezvous."
	ReservedSource = "rendezvous:"
)

// Check judges an event against every limit and answers it with its keys as a set and its expiry in whole microseconds (EV-9).
// maxPayload is the configured event limit, at most [MaxPayload]; 0 means [MaxPayload].
func (e Event) Check(maxPayload int) (Event, error) {
	for _, f := range [...]struct{ name, value string }{{"source", e.Source}, {"id", e.ID}, {"type", e.Type}} {
		if err := CheckID(f.name, f.value); err != nil {
			return e, err
		}
	}
	keys, err := CheckKeys(e.Keys)
	if err != nil {
		return e, err
	}
	if err := CheckContentType(e.ContentType); err != nil {
		return e, err
	}
	if maxPayload <= 0 {
		maxPayload = MaxPayload
	}
	if len(e.Payload) > maxPayload {
		return e, OverLimit("payload", maxPayload, len(e.Payload))
	}
	expires := DueInstant(e.ExpiresAt)
	if err := CheckInstant("expires_at", expires); err != nil {
		return e, err
	}
	if err := e.MintedBy.Check("minted_by"); err != nil {
		return e, err
	}
	e.Keys, e.ExpiresAt, e.Trace = keys, expires, e.Trace.Kept()
	return e, nil
}

// CheckOutside refuses what only the plane itself may send (EV-11).
func (e Event) CheckOutside() error {
	if strings.HasPrefix(e.Type, ReservedType) {
		return InvalidField("type", "types beginning %q are the plane's own", ReservedType)
	}
	if strings.HasPrefix(e.Source, ReservedSource) {
		return InvalidField("source", "sources beginning %q are the plane's own", ReservedSource)
	}
	if e.MintedBy != nil {
		return InvalidField("minted_by", "only the plane itself mints events")
	}
	return nil
}

// Digest is SHA-256 over type, key set, content type and payload: what makes a second arrival the same event (EV-3, EV-4).
// Every part is length-prefixed, so no two events read alike; none and empty payload differ.
func (e Event) Digest() [sha256.Size]byte {
	keys := SortedKeys(e.Keys)
	size := len(e.Type) + len(e.ContentType) + 4*8
	for _, k := range keys {
		size += len(k.Namespace) + len(k.Value) + 2*8
	}
	b := make([]byte, 0, size+min(len(e.Payload), smallPayload))
	b = appendText(b, e.Type)
	b = appendLength(b, len(keys))
	for _, k := range keys {
		b = appendText(appendText(b, k.Namespace), k.Value)
	}
	b = appendText(b, e.ContentType)
	if e.Payload == nil {
		return sha256.Sum256(appendLength(b, -1))
	}
	b = appendLength(b, len(e.Payload))
	if len(e.Payload) <= smallPayload {
		return sha256.Sum256(append(b, e.Payload...))
	}
	h := sha256.New()
	h.Write(b)
	h.Write(e.Payload)
	return [sha256.Size]byte(h.Sum(nil))
}

// smallPayload is up to where copying a payload is cheaper than a hash on the heap.
const smallPayload = 4 << 10

func appendLength(b []byte, n int) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) }

func appendText(b []byte, s string) []byte { return append(appendLength(b, len(s)), s...) }

// EventState is where an event is in its life.
type EventState string

// The closed set of states (events.md section 2).
const (
	EventLive     EventState = "live"
	EventClaimed  EventState = "claimed"
	EventConsumed EventState = "consumed"
	EventDead     EventState = "dead"
)

// DeadReason says why an event ended unanswered.
type DeadReason string

// The closed set of reasons (events.md section 2).
const (
	DeadUnclaimed          DeadReason = "unclaimed"
	DeadExpired            DeadReason = "expired"
	DeadErased             DeadReason = "erased"
	DeadAddresseeConcluded DeadReason = "addressee_concluded"
	DeadWaitWithdrawn      DeadReason = "wait_withdrawn"
	DeadUndeliverable      DeadReason = "undeliverable"
)

// DeadReasons is all of them.
var DeadReasons = [...]DeadReason{DeadUnclaimed, DeadExpired, DeadErased, DeadAddresseeConcluded, DeadWaitWithdrawn, DeadUndeliverable}
