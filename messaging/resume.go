package messaging

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	rendezvous "github.com/rendezvous-events/rendezvous"
)

// ResumeQueue names what an executor listens to.
type ResumeQueue struct {
	Tenant string
	Queue  string
	// Durable is the consumer all executors of the queue share; empty: [Names.ResumeDurable].
	Durable string
	// Prefix and Domain as in [Config]; empty: the defaults. AckWait likewise.
	Prefix  string
	Domain  string
	AckWait time.Duration
	// InFlight is how many notices may be out at executors, unacknowledged (1,000).
	InFlight int
}

func (q ResumeQueue) withDefaults() ResumeQueue {
	if q.Tenant == "" {
		q.Tenant = rendezvous.DefaultTenant
	}
	if q.Queue == "" {
		q.Queue = rendezvous.DefaultQueue
	}
	if q.Prefix == "" {
		q.Prefix = DefaultPrefix
	}
	if q.AckWait == 0 {
		q.AckWait = DefaultAckWait
	}
	if q.InFlight == 0 {
		q.InFlight = 1000
	}
	if q.Durable == "" {
		q.Durable = NamesOf(q.Prefix).ResumeDurable(q.Tenant, q.Queue)
	}
	return q
}

// ConsumeResume takes resume notices of one queue over any connection; executors need no more than that. It creates the shared durable when it
// is missing and waits, trying again, for the plane to make the stream. The connection stays the caller's: stop the consumption, then drain it.
// Executors that work long on one notice should acknowledge when they hold the run's lease: from then on the store remembers.
func ConsumeResume(nc *nats.Conn, q ResumeQueue, deps Deps, opts ConsumeOptions, h func(ctx context.Context, batch []ResumeNotice) []Outcome) (*Consumption, error) {
	q, deps = q.withDefaults(), deps.withDefaults()
	if err := checkTenantQueue(q.Tenant, q.Queue); err != nil {
		return nil, err
	}
	js, err := newJetStream(nc, q.Domain, jetstream.WithDefaultTimeout(apiTimeout))
	if err != nil {
		return nil, rendezvous.InvalidField("nats-domain", "cannot be used").Because(err)
	}
	names, settle := NamesOf(q.Prefix), newSettler(deps)
	consumers := consumers{js: js, log: deps.Log, settle: settle}
	want := durableConfig(q.Durable, names.ResumeSubject(q.Tenant, q.Queue), q.AckWait, q.InFlight)
	src := source{
		nc: nc, api: apiPrefix(q.Domain), stream: names.Resume(), durables: []string{q.Durable}, deps: deps,
		created: settle.created,
		ensure: func(ctx context.Context) error {
			ctx, cancel := whileConnected(ctx, nc)
			defer cancel()
			settle.pass()
			return consumers.ensure(ctx, names.Resume(), want)
		},
	}
	return start(src, opts, typed(deps, names.Resume(), decodeResume(q.Tenant, q.Queue), h))
}
