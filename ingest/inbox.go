package ingest

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/cloudevents"
	"github.com/rendezvous-events/rendezvous/messaging"
)

// Stream is what the worker needs of the messaging.
type Stream interface {
	ConsumeInbox(opts messaging.ConsumeOptions, h func(ctx context.Context, batch []messaging.Msg) []messaging.Outcome) (*messaging.Consumption, error)
	RejectBatch(ctx context.Context, rs []messaging.Rejected) error
}

// Inbox takes producers' messages from the stream through the door. Make it with [NewInbox].
type Inbox struct {
	door   *Door
	stream Stream
	log    *slog.Logger
	pull   *messaging.Consumption
}

// NewInbox makes the stream door; Start begins to pull.
func NewInbox(d *Door, s Stream, log *slog.Logger) *Inbox {
	return &Inbox{door: d, stream: s, log: log}
}

// Start begins to pull and returns.
func (in *Inbox) Start() error {
	pull, err := in.stream.ConsumeInbox(messaging.ConsumeOptions{Batch: messaging.Batch{Concurrency: 2}}, in.handle)
	in.pull = pull
	return err
}

// Stop ends the pull and lets batches under way finish; see [messaging.Consumption.Stop].
func (in *Inbox) Stop(ctx context.Context) error {
	if in.pull == nil {
		return nil
	}
	return in.pull.Stop(ctx)
}

// arrival is one message and what becomes of it.
type arrival struct {
	msg      messaging.Msg
	rejected []messaging.Rejected // what of it never becomes an event
	waits    []*notices
	again    error // something about the plane failed: the whole message comes again, what was stored of it is a duplicate then
	all      bool  // the message as a whole is rejected
}

// handle works a batch: every event through the door, the rejected to their stream, and then one outcome per message.
func (in *Inbox) handle(ctx context.Context, batch []messaging.Msg) []messaging.Outcome {
	arrivals := make([]arrival, len(batch))
	var wg sync.WaitGroup
	for i := range batch {
		arrivals[i].msg = batch[i]
		wg.Go(func() { in.take(ctx, &arrivals[i]) })
	}
	wg.Wait()
	in.reject(ctx, arrivals)
	out := make([]messaging.Outcome, len(batch))
	for i := range arrivals {
		out[i] = arrivals[i].outcome(ctx)
	}
	in.report(ctx, arrivals)
	return out
}

// report logs in one line what comes again.
func (in *Inbox) report(ctx context.Context, arrivals []arrival) {
	n := 0
	var first error
	for _, a := range arrivals {
		if a.again != nil {
			n++
			first = cmp.Or(first, a.again)
		}
	}
	if n > 0 {
		in.log.WarnContext(ctx, "messages come again", "messages", n, "of", len(arrivals), "error", first)
	}
}

func (a *arrival) outcome(ctx context.Context) messaging.Outcome {
	for _, n := range a.waits {
		if err := n.Wait(ctx); err != nil { // acknowledged only after its notices: else it comes again and is offered again
			a.again = err
		}
	}
	switch {
	case a.again != nil:
		return messaging.Retry(0)
	case a.all:
		return messaging.Term("rejected: " + a.rejected[0].Reason)
	}
	return messaging.Ack()
}

// take decodes one message and puts its events through the door: all are handed in before the first is waited for.
func (in *Inbox) take(ctx context.Context, a *arrival) {
	if a.msg.Tenant == "" {
		a.refuse(rendezvous.InvalidField("subject", "its second token is no tenant"), nil, 0)
		a.all = true
		return
	}
	events, err := cloudevents.Decode(a.msg.Header, a.msg.Data)
	if err == nil && len(events) == 0 {
		err = rendezvous.InvalidField("body", "holds no event")
	}
	if err != nil {
		a.refuse(err, nil, 0)
		a.all = true
		return
	}
	for i, f := range in.hand(ctx, a.msg.Tenant, events) {
		switch {
		case f.err == nil:
			a.waits = append(a.waits, f.noticed)
		case Final(f.err):
			a.refuse(f.err, events[i].Raw, i)
		default:
			a.again = f.err
		}
	}
	a.all = len(a.rejected) == len(events)
}

// fate is what became of one event.
type fate struct {
	noticed *notices
	err     error
}

// hand hands all events of a message in, each to the run it names, kept until that asks for it, or to whoever waits; then it waits for their fates. Where an
// identity stands twice and may go two ways, its second event is handed in when the first is decided, and not at all where the message comes again.
func (in *Inbox) hand(ctx context.Context, tenant string, messages []cloudevents.Message) []fate {
	fates := make([]fate, 0, len(messages))
	for _, round := range cloudevents.Rounds(messages) {
		fates = append(fates, in.handRound(ctx, tenant, round)...)
		if i := slices.IndexFunc(fates, func(f fate) bool { return f.err != nil && !Final(f.err) }); i >= 0 {
			return append(fates, slices.Repeat([]fate{{err: fates[i].err}}, len(messages)-len(fates))...)
		}
	}
	return fates
}

// handRound hands all in at once.
func (in *Inbox) handRound(ctx context.Context, tenant string, messages []cloudevents.Message) []fate {
	fates := make([]fate, len(messages))
	var events []rendezvous.Event
	var place []int // of events among the messages
	targeted := map[int]func() (delivered, error){}
	for i, m := range messages {
		err := m.Err
		if err == nil {
			err = m.Event.CheckOutside()
		}
		switch {
		case err != nil:
			fates[i].err = err
		case m.Run != "":
			targeted[i] = in.door.handTo(ctx, tenant, m.Run, m.Event, true, byStream)
		default:
			events, place = append(events, m.Event), append(place, i)
		}
	}
	got, errs := in.door.handAll(ctx, tenant, events, byStream)()
	for k, i := range place {
		fates[i] = fate{got[k].noticed, errs[k]}
	}
	for i, wait := range targeted {
		v, err := wait()
		fates[i] = fate{v.noticed, err}
	}
	return fates
}

// refuse notes that the event of that place, or the whole message where raw is nil, never becomes one.
func (a *arrival) refuse(err error, raw []byte, place int) {
	e := rendezvous.AsError(err)
	r := messaging.Rejected{Message: a.msg, Reason: string(e.Code), Detail: e.Message, Index: place}
	if raw != nil {
		r.Body, r.ContentType = raw, cloudevents.Structured
	}
	a.rejected = append(a.rejected, r)
}

// reject puts what never becomes an event into its stream; a message whose rejection is not stored comes again.
func (in *Inbox) reject(ctx context.Context, arrivals []arrival) {
	var all []messaging.Rejected
	var owner []int
	for i, a := range arrivals {
		for _, r := range a.rejected {
			all, owner = append(all, r), append(owner, i)
		}
	}
	if len(all) == 0 {
		return
	}
	err := in.stream.RejectBatch(ctx, all)
	var failed *messaging.PublishError
	switch {
	case errors.As(err, &failed):
		for _, i := range failed.Failed {
			arrivals[owner[i]].again = err
		}
	case err != nil:
		for _, i := range owner {
			arrivals[i].again = err
		}
	}
	for i, r := range all {
		if arrivals[owner[i]].again == nil {
			in.door.metrics.count(ctx, r.Message.Tenant, "rejected")
			in.log.InfoContext(ctx, "message rejected", "tenant", r.Message.Tenant, "stream_seq", r.Message.Sequence, "reason", r.Reason, "detail", r.Detail)
		}
	}
}
