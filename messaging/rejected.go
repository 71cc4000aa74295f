package messaging

import (
	"context"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	rendezvous "github.com/rendezvous-events/rendezvous"
)

// Headers REJECTED adds.
const (
	HeaderReason = "reason"
	HeaderDetail = "detail"
)

// unknownTenant is where REJECTED keeps what came on a subject without a tenant; no tenant can have that name.
const unknownTenant = "note"

// Rejected is something that never became an event.
type Rejected struct {
	// Message is what came. Its headers go along but for Nats-* ones, which would steer the broker.
	Message Msg
	// Body replaces the message's where one event of a batch is rejected alone; nil: the message's. Index is that event's place in the batch.
	Body  []byte
	Index int
	// ContentType replaces the header when Body does; empty: the message's.
	ContentType string
	// Reason is a code (invalid, too_large, conflict), Detail says more; neither holds a payload.
	Reason string
	Detail string
}

// RejectBatch puts messages into the REJECTED stream and returns when that is acknowledged. Sent again for a redelivered message one is stored once
// (within two minutes). The error is a [PublishError] naming which are not stored; those messages must not be acknowledged.
func (c *Conn) RejectBatch(ctx context.Context, rs []Rejected) error {
	out := make([]outgoing, len(rs))
	for i, r := range rs {
		out[i] = outgoing{at: i, stream: c.names.Rejected(), msg: c.rejectedMessage(r)}
	}
	return c.publish(ctx, out)
}

func (c *Conn) rejectedMessage(r Rejected) *nats.Msg {
	tenant, body, m := r.Message.Tenant, r.Body, r.Message
	if tenant == "" {
		tenant = unknownTenant
	}
	h := keptHeaders(m.Header)
	if body == nil {
		body = m.Data
	} else if r.ContentType != "" {
		for k := range h {
			if strings.EqualFold(k, "content-type") {
				delete(h, k)
			}
		}
		h["content-type"] = []string{r.ContentType}
	}
	h[HeaderReason] = []string{oneLine(r.Reason, 64)}
	h[HeaderDetail] = []string{oneLine(r.Detail, rendezvous.MaxReason)}
	h[nats.MsgIdHdr] = []string{intent("rejected", m.Stream, strconv.FormatUint(m.Sequence, 10), strconv.FormatInt(m.Stored.UnixNano(), 10),
		strconv.Itoa(r.Index), r.Reason)}
	h[nats.ExpectedStreamHdr] = []string{c.names.Rejected()}
	return &nats.Msg{Subject: c.names.RejectedSubject(tenant), Header: h, Data: body}
}

// keptHeaders are the headers a rejected message keeps.
func keptHeaders(h nats.Header) nats.Header {
	kept := make(nats.Header, len(h)+4)
	for k, v := range h {
		lower := strings.ToLower(k)
		if strings.HasPrefix(lower, "nats-") || lower == HeaderReason || lower == HeaderDetail {
			continue
		}
		kept[k] = v
	}
	return kept
}
