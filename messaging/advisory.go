package messaging

import (
	"context"
	"encoding/json"
	"strings"
)

// Advisory is the server's word about a message that its consumer gave up. The row that the message spoke of is found by the passes.
type Advisory struct {
	Stream     string // as this plane names it: INBOX, MATCH, …; "" for a stream that is not the plane's
	Consumer   string
	Sequence   uint64 // of the message in its stream
	Deliveries uint64
	// Exhausted: it ran out of deliveries, which is nobody's decision. Otherwise its handler terminated it.
	Exhausted bool
}

// ConsumeAdvisory takes the server's words about given-up messages. All sweepers share one durable, so that each is counted once.
func (c *Conn) ConsumeAdvisory(opts ConsumeOptions, h func(ctx context.Context, batch []Advisory) []Outcome) (*Consumption, error) {
	return start(c.source(c.names.Advisory(), c.names.AdvisoryDurable()), opts, func(ctx context.Context, batch []Msg) []Outcome {
		words := make([]Advisory, len(batch))
		for i, m := range batch {
			words[i] = c.names.advisory(m)
		}
		return h(ctx, words)
	})
}

const exhausted = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES."

// advisory reads one. Stream and consumer stand in the subject, $JS.EVENT.ADVISORY.CONSUMER.<what>.<stream>.<consumer>, so a body that does not decode
// is counted all the same.
func (n Names) advisory(m Msg) Advisory {
	a := Advisory{Exhausted: strings.HasPrefix(m.Subject, exhausted)}
	if tokens := strings.SplitN(m.Subject, ".", 7); len(tokens) == 7 {
		a.Stream, a.Consumer = n.short(tokens[5]), tokens[6]
	}
	var body struct {
		Sequence   uint64 `json:"stream_seq"`
		Deliveries uint64 `json:"deliveries"`
	}
	if json.Unmarshal(m.Data, &body) == nil {
		a.Sequence, a.Deliveries = body.Sequence, body.Deliveries
	}
	return a
}

// short is a stream's name without the plane's prefix, "" for one that is not the plane's.
func (n Names) short(stream string) string {
	for _, own := range [...]string{n.Inbox(), n.Match(), n.Resume(), n.Rejected(), n.Advisory()} {
		if stream == own {
			return strings.TrimPrefix(own, n.prefix+"_")
		}
	}
	return ""
}
