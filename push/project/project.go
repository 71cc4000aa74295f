package project

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/rendezvous-events/rendezvous"
)

// Version is that of both projections: it rises when a record would make other bytes than before.
const Version = 1

// DefaultMaxBody is how many bytes a body may have where nothing else is set (push.max_body).
const DefaultMaxBody = 2 << 20

// ErrUnknown says that a record is of a kind or version this build does not know: newer ones make its messages, and it is not passed over.
var ErrUnknown = errors.New("a record of a kind that this build does not know")

// Options say how a record of a workflow's history is projected.
type Options struct {
	Tenant, Workflow string
	Projection       rendezvous.Projection
	Events           []string // kinds that are taken, or rendezvous.AllEvents
	IncludePayload   bool
	Erased           bool             // the record's payload was erased
	Source           string           // push.source
	MaxBody          int              // push.max_body; 0 is [DefaultMaxBody]
	Trace            rendezvous.Trace // the record's context, where the registration has trace on
}

// Message is one message of a record.
type Message struct {
	ID          string // see [MessageID]
	Index       int
	ContentType string
	Body        []byte
}

// Messages answers the messages of a record in their order; none for a record that is not taken, or means nothing in the projection: the cursor passes over it.
func Messages(r rendezvous.Record, o Options) ([]Message, error) {
	if r.Unknown || !r.Kind.Known() {
		return nil, ErrUnknown
	}
	if !Takes(o.Events, r.Kind) {
		return nil, nil
	}
	if o.MaxBody == 0 {
		o.MaxBody = DefaultMaxBody
	}
	f, err := factsOf(r)
	if err != nil {
		return nil, err
	}
	switch o.Projection {
	case rendezvous.ProjectionCloudEvents:
		return numbered(r, cloudEventType, func(int) []byte { return bounded(r, o, func(p payload) []byte { return cloudEvent(r, f, o, p) }) }), nil
	case rendezvous.ProjectionA2A:
		return a2a(r, f, o), nil
	}
	return nil, errors.New("the projection is none of cloudevents, a2a")
}

// Takes reports whether a registration of those events takes records of a kind.
func Takes(events []string, kind rendezvous.Kind) bool {
	return slices.Contains(events, string(kind)) || slices.Contains(events, rendezvous.AllEvents)
}

// MessageID is the id of a message: the same on every attempt, by every worker, in every registration. It has no dots (PU-79), since a signature puts dots around it.
func MessageID(run string, seq int64, index int) string {
	return escape(run, "") + "/" + strconv.FormatInt(seq, 10) + "/" + strconv.Itoa(index)
}

// escape percent-encodes every byte that is not a letter, a digit, one of "_~-" or one of more.
func escape(text, more string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		if c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.IndexByte("_~-", c) >= 0 || strings.IndexByte(more, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'%', hex[c>>4], hex[c&15]})
	}
	return b.String()
}

// numbered makes messages of bodies, each made by its index.
func numbered(r rendezvous.Record, contentType string, bodies ...func(index int) []byte) []Message {
	messages := make([]Message, len(bodies))
	for i, body := range bodies {
		messages[i] = Message{ID: MessageID(r.RunID, r.Seq, i), Index: i, ContentType: contentType, Body: body(i)}
	}
	return messages
}

// facts are what the projections tell of a record's own fields.
type facts struct {
	eventType, code, reason, nextRun string
}

func factsOf(r rendezvous.Record) (facts, error) {
	switch r.Kind {
	case rendezvous.RunFailed:
		var d rendezvous.RunFailedData
		err := rendezvous.DecodeData(r, &d)
		return facts{code: d.Code, reason: d.Reason}, err
	case rendezvous.EffectFailed:
		var d rendezvous.EffectFailedData
		err := rendezvous.DecodeData(r, &d)
		return facts{code: d.Code, reason: d.Reason}, err
	case rendezvous.RunCancelled, rendezvous.RunPaused, rendezvous.RunResumed, rendezvous.RunReopened, rendezvous.WaitWithdrawn, rendezvous.TimerCancelled:
		var d rendezvous.ReasonData // the others' reason is called the same
		err := rendezvous.DecodeData(r, &d)
		return facts{reason: d.Reason}, err
	case rendezvous.RunContinued:
		var d rendezvous.RunContinuedData
		err := rendezvous.DecodeData(r, &d)
		return facts{nextRun: d.NextRun}, err
	case rendezvous.WaitRegistered:
		var d rendezvous.WaitRegisteredData
		err := rendezvous.DecodeData(r, &d)
		return facts{eventType: d.Type}, err
	case rendezvous.WaitAnswered:
		var d rendezvous.WaitAnsweredData
		err := rendezvous.DecodeData(r, &d)
		return facts{eventType: d.EventType}, err
	}
	return facts{}, nil
}
