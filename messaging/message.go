package messaging

import (
	"time"

	"github.com/nats-io/nats.go"

	rendezvous "github.com/rendezvous-events/rendezvous"
)

// Msg is one received message.
type Msg struct {
	Subject string
	// Tenant is the subject's second token; empty when that is no tenant's name.
	Tenant string
	Header nats.Header
	Data   []byte
	// Stream and Sequence are the message's place in its stream; Stored is when the broker took it.
	Stream   string
	Sequence uint64
	Stored   time.Time
	// Delivered counts deliveries, from 1. Pending is how many more wait behind it for this consumer.
	Delivered uint64
	Pending   uint64

	reply string // where its acknowledgement goes
}

// Trace is the trace context the message carries.
func (m Msg) Trace() rendezvous.Trace { return TraceOf(m.Header) }

func (m Msg) size() int { return len(m.Data) + len(m.Subject) + headerSize(m.Header) }

func headerSize(h nats.Header) int {
	n := 0
	for k, vs := range h {
		for _, v := range vs {
			n += len(k) + len(v) + 4
		}
	}
	return n
}

// received reads what JetStream says about a message and which durable it came from; false for what is not a message (statuses have no
// acknowledgement subject).
func received(m *nats.Msg) (Msg, string, bool) {
	meta, err := m.Metadata()
	if err != nil {
		return Msg{}, "", false
	}
	return Msg{
		Subject: m.Subject, Header: m.Header, Data: m.Data, Stream: meta.Stream, Sequence: meta.Sequence.Stream,
		Stored: meta.Timestamp.UTC(), Delivered: meta.NumDelivered, Pending: meta.NumPending, reply: m.Reply,
	}, meta.Consumer, true
}
