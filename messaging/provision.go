package messaging

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	rendezvous "github.com/rendezvous-events/rendezvous"
)

const (
	dedupWindow    = 2 * time.Minute
	resumeMaxAge   = time.Hour
	rejectedMaxAge = 30 * 24 * time.Hour
	advisoryMaxAge = 7 * 24 * time.Hour

	// maxDeliver is only a net: our own limits are in the store, and trouble with the infrastructure counts against nobody. At the longest
	// delay between tries it is a month.
	maxDeliver     = 100_000
	inboxInFlight  = 8192
	matchInFlight  = 4096
	adviceInFlight = 1024

	// rejectedExtra is what REJECTED adds to an INBOX message (reason, detail, id), so INBOX takes that much less than the server does.
	rejectedExtra = 4 << 10
)

// provisioner creates what is missing. It only ever creates: a stream or durable that exists stays as its operator or an older version
// made it, since widening a consumer's filter brings no older messages.
type provisioner struct {
	js         jetstream.JetStream
	cfg        Config
	names      Names
	log        *slog.Logger
	maxPayload func() int64
	settle     *settler
}

func (p *provisioner) run(ctx context.Context) error {
	if p.maxPayload() == 0 {
		return rendezvous.Errorf(rendezvous.CodeUnavailable, "no NATS server answered yet; it is tried again")
	}
	p.settle.pass()
	streams := 0
	consumers := consumers{js: p.js, log: p.log, settle: p.settle}
	defer func() {
		if streams+consumers.made > 0 {
			p.log.Info("NATS provisioned", "streams_created", streams, "consumers_created", consumers.made)
		}
	}()
	for _, s := range p.streams() {
		created, err := p.ensureStream(ctx, s)
		if err != nil {
			return err
		}
		if created {
			streams++
		}
	}
	for _, d := range p.durables() {
		if err := consumers.ensure(ctx, d.stream, d.config); err != nil {
			return err
		}
	}
	return nil
}

// streams are the table of messaging.md section 2, as far as it is built.
func (p *provisioner) streams() []jetstream.StreamConfig {
	n := p.names
	streams := []jetstream.StreamConfig{
		{
			Name: n.Inbox(), Subjects: []string{n.InboxSubject("*", ">")}, Retention: jetstream.WorkQueuePolicy,
			Discard: jetstream.DiscardNew, MaxBytes: p.cfg.InboxMaxBytes, MaxMsgSize: p.inboxMaxMessage(),
			Description: "events from producers; acknowledged after the commit and its notices",
		},
		{
			Name: n.Match(), Subjects: p.matchSubjects(), Retention: jetstream.WorkQueuePolicy,
			Discard: jetstream.DiscardNew, MaxBytes: p.cfg.MatchMaxBytes, Duplicates: dedupWindow,
			Description: "notices: an event or wait to offer",
		},
		{
			Name: n.Resume(), Subjects: []string{n.ResumeSubject("*", "*")}, Retention: jetstream.LimitsPolicy, MaxAge: resumeMaxAge,
			Description: "notices: a run nobody drives has news",
		},
		{
			Name: n.Push(), Subjects: p.pushSubjects(), Retention: jetstream.WorkQueuePolicy,
			Discard: jetstream.DiscardOld, MaxMsgsPerSubject: 1, Duplicates: dedupWindow,
			Description: "notices: records that a run's push registrations take; the last of each run",
		},
		{
			Name: n.Rejected(), Subjects: []string{n.RejectedSubject("*")}, Retention: jetstream.LimitsPolicy, MaxAge: rejectedMaxAge,
			Description: "what never became an event, as it came, with the reason",
		},
		{
			Name: n.Advisory(), Subjects: advisorySubjects(), Retention: jetstream.LimitsPolicy, MaxAge: advisoryMaxAge,
			Description: "messages given up by their consumer",
		},
	}
	for i := range streams {
		streams[i].Storage = jetstream.FileStorage
		streams[i].Replicas = p.cfg.Replicas
		// Notices may be lost with the machine: the store's passes find their rows (I11). So the embedded server, which syncs every write, need not
		// sync theirs nor their acknowledgements; INBOX and REJECTED stay synced.
		if p.cfg.IsEmbedded() && slices.Contains([]string{n.Match(), n.Resume(), n.Push()}, streams[i].Name) {
			streams[i].PersistMode = jetstream.AsyncPersistMode
		}
	}
	return streams
}

func (p *provisioner) matchSubjects() []string {
	subjects := make([]string, Partitions)
	for i := range subjects {
		subjects[i] = p.names.MatchSubject(i)
	}
	return subjects
}

func (p *provisioner) pushSubjects() []string {
	subjects := make([]string, Partitions)
	for i := range subjects {
		subjects[i] = p.names.PushSubjects(i)
	}
	return subjects
}

func advisorySubjects() []string {
	return []string{"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.>", "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.>"}
}

// inboxMaxMessage lets an event of the limit pass in every encoding the server can carry (base64 grows it by a third, a batch holds several).
func (p *provisioner) inboxMaxMessage() int32 {
	return int32(min(int64(2*p.cfg.EventLimit+Headroom), p.maxPayload()-rejectedExtra))
}

type durable struct {
	stream string
	config jetstream.ConsumerConfig
}

func (p *provisioner) durables() []durable {
	inbox := durableConfig(p.names.InboxDurable(), p.names.InboxSubject("*", ">"), p.cfg.AckWait, inboxInFlight)
	advice := durableConfig(p.names.AdvisoryDurable(), "", p.cfg.AckWait, adviceInFlight) // "": every subject of the stream
	durables := []durable{{p.names.Inbox(), inbox}, {p.names.Advisory(), advice}}
	for i := range Partitions {
		c := durableConfig(p.names.MatchDurable(i), p.names.MatchSubject(i), p.cfg.AckWait, matchInFlight)
		durables = append(durables, durable{p.names.Match(), c})
		c = durableConfig(p.names.PushDurable(i), p.names.PushSubjects(i), p.cfg.AckWait, matchInFlight)
		durables = append(durables, durable{p.names.Push(), c})
	}
	return durables
}

// durableConfig: explicit acknowledgement, no BackOff (it falsifies delayed NAKs), no InactiveThreshold.
func durableConfig(name, filter string, ackWait time.Duration, inFlight int) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable:       name,
		FilterSubject: filter,
		AckPolicy:     jetstream.AckExplicitPolicy,
		DeliverPolicy: jetstream.DeliverAllPolicy,
		AckWait:       ackWait,
		MaxDeliver:    maxDeliver,
		MaxAckPending: inFlight,
	}
}

func (p *provisioner) ensureStream(ctx context.Context, want jetstream.StreamConfig) (created bool, _ error) {
	have, err := p.js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		have, created, err = p.makeStream(ctx, want)
	}
	if err != nil {
		return false, streamError(want, err)
	}
	info := have.CachedInfo()
	p.settle.found(want.Name, "", info.Created)
	if got := info.Config.Subjects; !sameSet(got, want.Subjects) {
		p.log.Warn("stream has other subjects than this version would give it; left as it is", "stream", want.Name, "subjects", got)
	}
	return created, nil
}

func (p *provisioner) makeStream(ctx context.Context, want jetstream.StreamConfig) (_ jetstream.Stream, created bool, _ error) {
	missing := func() bool {
		_, err := p.js.Stream(ctx, want.Name)
		return errors.Is(err, jetstream.ErrStreamNotFound)
	}
	if err := p.settle.wait(ctx, want.Name, "", missing); err != nil {
		return nil, false, err
	}
	made, err := p.js.CreateStream(ctx, want)
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another worker was faster
		made, err = p.js.Stream(ctx, want.Name)
		return made, false, err
	}
	if err == nil {
		p.log.Debug("stream created", "stream", want.Name)
	}
	return made, err == nil, err
}

// consumers makes durables that are missing.
type consumers struct {
	js     jetstream.JetStream
	log    *slog.Logger
	settle *settler
	made   int // by this
}

func (c *consumers) ensure(ctx context.Context, stream string, want jetstream.ConsumerConfig) error {
	have, err := c.js.Consumer(ctx, stream, want.Durable)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		have, err = c.make(ctx, stream, want)
	}
	if err != nil {
		return provisionError("consumer", stream+"/"+want.Durable, err)
	}
	info := have.CachedInfo()
	c.settle.found(stream, want.Durable, info.Created)
	if got := info.Config.FilterSubject; got != want.FilterSubject {
		c.log.Warn("consumer has another filter than this version would give it; left as it is", "consumer", want.Durable, "filter", got)
	}
	return nil
}

func (c *consumers) make(ctx context.Context, stream string, want jetstream.ConsumerConfig) (jetstream.Consumer, error) {
	missing := func() bool {
		_, err := c.js.Consumer(ctx, stream, want.Durable)
		return errors.Is(err, jetstream.ErrConsumerNotFound)
	}
	if err := c.settle.wait(ctx, stream, want.Durable, missing); err != nil {
		return nil, err
	}
	made, err := c.js.CreateConsumer(ctx, stream, want)
	if errors.Is(err, jetstream.ErrConsumerExists) {
		return c.js.Consumer(ctx, stream, want.Durable)
	}
	if err == nil {
		c.made++
		c.log.Debug("consumer created", "stream", stream, "consumer", want.Durable)
	}
	return made, err
}

// JetStream's codes for what trying again does not mend.
const (
	subjectsOverlap jetstream.ErrorCode = 10065 // another stream takes one of the subjects
	noReplicas      jetstream.ErrorCode = 10074 // replicas > 1 not supported in non-clustered mode
)

func hasCode(err error, code jetstream.ErrorCode) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == code
}

func streamError(want jetstream.StreamConfig, err error) error {
	if hasCode(err, noReplicas) {
		return rendezvous.InvalidField("nats-replicas", "is %d, but the NATS server is alone and keeps 1; give 1, or connect to a cluster", want.Replicas).
			With("limit", 1).With("value", want.Replicas).Because(err)
	}
	return provisionError("stream", want.Name, err)
}

func provisionError(what, name string, err error) error {
	if hasCode(err, subjectsOverlap) {
		return rendezvous.Errorf(rendezvous.CodeConflict,
			"%s %s: another stream of this NATS account takes these subjects; give each plane an account of its own", what, name).Because(err)
	}
	return rendezvous.Errorf(rendezvous.CodeUnavailable, "%s %s cannot be created now; it is tried again", what, name).
		Because(fmt.Errorf("provision: %w", err))
}

func sameSet(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	in := make(map[string]bool, len(a))
	for _, s := range a {
		in[s] = true
	}
	for _, s := range b {
		if !in[s] {
			return false
		}
	}
	return true
}
