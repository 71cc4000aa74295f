package messaging

import (
	"context"

	"github.com/nats-io/nats.go/jetstream"
)

// ConsumeInbox takes producers' messages as they came: [Msg] with tenant, headers and body. The handler answers Ack after the commit and its
// notices, Retry when the store is away, Term after what cannot become an event has been put into REJECTED. A subject whose second token is
// not a tenant is handed over too, with an empty Tenant: it is to be rejected, not lost.
func (c *Conn) ConsumeInbox(opts ConsumeOptions, h func(ctx context.Context, batch []Msg) []Outcome) (*Consumption, error) {
	// One message of the largest size always fits a request.
	opts.Batch = opts.Batch.withDefaults()
	opts.Batch.Bytes = max(opts.Batch.Bytes, 2*(2*c.cfg.EventLimit+Headroom))
	return start(c.source(c.names.Inbox(), c.names.InboxDurable()), opts, func(ctx context.Context, batch []Msg) []Outcome {
		for i := range batch {
			if tenant, err := c.names.TenantOf(batch[i].Subject); err == nil {
				batch[i].Tenant = tenant
			}
		}
		return h(ctx, batch)
	})
}

// ConsumeMatch takes match notices from every partition into one handler. What does not decode is terminated and not handed over.
func (c *Conn) ConsumeMatch(opts ConsumeOptions, h func(ctx context.Context, batch []MatchNotice) []Outcome) (*Consumption, error) {
	durables := make([]string, Partitions)
	for i := range durables {
		durables[i] = c.names.MatchDurable(i)
	}
	return start(c.source(c.names.Match(), durables...), opts, typed(c.deps, c.names.Match(), decodeMatch, h))
}

// ConsumePush takes push notices from every partition into one handler. What does not decode is terminated and not handed over.
func (c *Conn) ConsumePush(opts ConsumeOptions, h func(ctx context.Context, batch []PushNotice) []Outcome) (*Consumption, error) {
	durables := make([]string, Partitions)
	for i := range durables {
		durables[i] = c.names.PushDurable(i)
	}
	return start(c.source(c.names.Push(), durables...), opts, typed(c.deps, c.names.Push(), decodePush, h))
}

func (c *Conn) source(stream string, durables ...string) source {
	return source{
		nc: c.con, api: apiPrefix(c.cfg.Domain), stream: stream, durables: durables, deps: c.deps,
		ensure: c.Provision, created: c.prov.settle.created,
	}
}

func apiPrefix(domain string) string {
	if domain == "" {
		return jetstream.DefaultAPIPrefix
	}
	return "$JS." + domain + ".API."
}
