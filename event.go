package rendezvous

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
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
	if err := CheckInstant("expires_at", e.ExpiresAt); err != nil {
		return e, err
	}
	if err := e.MintedBy.Check("minted_by"); err != nil {
		return e, err
	}
	e.Keys, e.ExpiresAt, e.Trace = keys, DueInstant(e.ExpiresAt), e.Trace.Kept()
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
	h := sha256.New()
	hashText(h, e.Type)
	keys := SortedKeys(e.Keys)
	hashLength(h, len(keys))
	for _, k := range keys {
		hashText(h, k.Namespace)
		hashText(h, k.Value)
	}
	hashText(h, e.ContentType)
	if e.Payload == nil {
		hashLength(h, -1)
	} else {
		hashLength(h, len(e.Payload))
		h.Write(e.Payload)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func hashLength(h hash.Hash, n int) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}

func hashText(h hash.Hash, s string) {
	hashLength(h, len(s))
	h.Write([]byte(s))
}

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
