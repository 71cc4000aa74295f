package api

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/cloudevents"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/wire"
)

// table is every verb of this build. Verbs of the contract that are not here answer not_found, naming themselves.
func (s *Service) table() map[string]verb {
	register := handle(RoleExecutor, registerWait)
	verbs := map[string]verb{
		"events.put":     handle(RoleProducer, putEvents),
		"events.deliver": handle(RoleProducer, deliverEvent),
		"events.get":     handle(RoleExecutor, getEvent),
		"events.explain": handle(RoleExecutor, explainEvent),
		"events.erase":   handle(RoleOperator, eraseEvent),

		"runs.start":    handle(RoleExecutor, startRun),
		"runs.get":      handle(RoleExecutor, getRun),
		"runs.list":     handle(RoleExecutor, listRuns),
		"runs.count":    handle(RoleExecutor, countRuns),
		"runs.chain":    handle(RoleExecutor, chainOfRuns),
		"runs.history":  handle(RoleExecutor, readHistory),
		"runs.acquire":  handle(RoleExecutor, acquireLease),
		"runs.renew":    handle(RoleExecutor, renewLease),
		"runs.release":  handle(RoleExecutor, releaseLease),
		"runs.collect":  handle(RoleExecutor, collect),
		"runs.append":   handle(RoleExecutor, appendRecords),
		"runs.await":    register,
		"runs.conclude": handle(RoleExecutor, conclude),
		"runs.cancel":   handle(RoleExecutor, cancelRun),
		"runs.pause":    handle(RoleExecutor, pauseRun),
		"runs.resume":   handle(RoleExecutor, resumeRun),
		"runs.reopen":   handle(RoleExecutor, reopenRun),

		"waits.register": register,
		"waits.list":     handle(RoleExecutor, listWaits),
		"waits.explain":  handle(RoleExecutor, explainWait),
		"waits.withdraw": handle(RoleExecutor, withdrawWait),
		"waits.retry":    handle(RoleExecutor, retryWait),

		"timers.arm":    handle(RoleExecutor, armTimer),
		"timers.cancel": handle(RoleExecutor, cancelTimer),
		"timers.list":   handle(RoleExecutor, listTimers),

		"shards.list": handle(RoleOperator, listShards),

		"deadletters.list":    handle(RoleOperator, listLetters),
		"deadletters.count":   handle(RoleOperator, countLetters),
		"deadletters.requeue": handle(RoleOperator, requeueLetters),
		"deadletters.purge":   handle(RoleOperator, purgeLetters),

		"system.info":  handle(RoleNone, systemInfo),
		"system.check": handle(RoleExecutor, systemCheck),
	}
	maps.Copy(verbs, pushes())
	return verbs
}

func putEvents(ctx context.Context, c call, req wire.PutEvents) (wire.PutResults, error) {
	if len(req.Events) == 0 {
		return wire.PutResults{}, rendezvous.InvalidField("events", "is empty; give 1..%d", rendezvous.MaxBatchItems)
	}
	if len(req.Events) > rendezvous.MaxBatchItems {
		return wire.PutResults{}, rendezvous.OverLimit("events", rendezvous.MaxBatchItems, len(req.Events))
	}
	messages := make([]cloudevents.Message, len(req.Events))
	for i, raw := range req.Events {
		messages[i] = cloudevents.DecodeObject(raw)
	}
	return c.put(ctx, messages)
}

// fate is what became of one event.
type fate struct {
	outcome string
	state   rendezvous.EventState
	err     error
}

// put takes decoded events in, all handed in before the first is waited for and numbered in their order, one result each. Only trouble of the plane
// refuses the whole: then what was stored of it is a duplicate when it is sent again.
func (c call) put(ctx context.Context, messages []cloudevents.Message) (wire.PutResults, error) {
	results := make([]wire.PutResult, len(messages))
	var trouble error
	for i, f := range c.hand(ctx, messages) {
		r, err := resultOf(messages[i], f.outcome, f.state, f.err)
		results[i], trouble = r, cmp.Or(trouble, err)
	}
	if trouble != nil {
		return wire.PutResults{}, trouble
	}
	return wire.PutResults{Results: results}, nil
}

// hand hands all in and waits for their fates. Where an identity stands twice and may go two ways, its second event is handed in when the first is decided;
// trouble of the plane ends it there, as what comes behind must not go before.
func (c call) hand(ctx context.Context, messages []cloudevents.Message) []fate {
	fates := make([]fate, 0, len(messages))
	for _, round := range cloudevents.Rounds(messages) {
		fates = append(fates, c.handRound(ctx, round)...)
		if i := slices.IndexFunc(fates, func(f fate) bool { return isTrouble(f.err) }); i >= 0 {
			return append(fates, slices.Repeat([]fate{{err: fates[i].err}}, len(messages)-len(fates))...)
		}
	}
	return fates
}

// handRound hands all in at once.
func (c call) handRound(ctx context.Context, messages []cloudevents.Message) []fate {
	fates := make([]fate, len(messages))
	var events []rendezvous.Event
	var place []int // of events among the messages
	targeted := map[int]func() (store.Delivery, error){}
	for i, m := range messages {
		switch err := c.admit(m); {
		case err != nil:
			fates[i].err = err
		case m.Run != "":
			targeted[i] = c.cfg.Door.HandTo(ctx, c.tenant.Name(), m.Run, m.Event, false)
		default:
			events, place = append(events, m.Event), append(place, i)
		}
	}
	buffered, errs := c.cfg.Door.HandAll(ctx, c.tenant.Name(), events)()
	for k, i := range place {
		fates[i] = fate{wire.Accepted, "", errs[k]}
		if buffered[k].Outcome == store.BufferDuplicate {
			fates[i].outcome, fates[i].state = wire.Duplicate, buffered[k].State
		}
	}
	for i, wait := range targeted {
		fates[i] = fateOf(messages[i].Run, wait)
	}
	return fates
}

// fateOf is the fate of an event that names its run.
func fateOf(run string, wait func() (store.Delivery, error)) fate {
	d, err := wait()
	switch {
	case err != nil:
		return fate{err: err}
	case d.Outcome == store.DeliveryDuplicate, d.Outcome == store.DeliveryKept, d.Again:
		return fate{outcome: wire.Duplicate, state: d.State}
	case d.Outcome == store.DeliveryNotWaiting:
		return fate{err: rendezvous.Errorf(rendezvous.CodeNotFound, "run %q waits for nothing this event answers (%s); nothing was stored", run, d.Why).With("why", d.Why)}
	}
	return fate{outcome: wire.Accepted}
}

// resultOf is one event's result. Its own faults are in it; the error is trouble of the plane.
func resultOf(m cloudevents.Message, outcome string, state rendezvous.EventState, err error) (wire.PutResult, error) {
	r := wire.PutResult{Source: m.Event.Source, ID: m.Event.ID}
	switch {
	case isTrouble(err):
		return r, err
	case err == nil:
		r.Outcome, r.State = outcome, state
	case rendezvous.CodeOf(err) == rendezvous.CodeConflict:
		r.Outcome, r.Error = wire.Conflict, wire.ErrorOf(err)
	default:
		r.Outcome, r.Error = wire.Rejected, wire.ErrorOf(err)
	}
	return r, nil
}

// isTrouble reports whether an error says nothing about its event, only that the plane did not take it, or may have.
func isTrouble(err error) bool {
	switch rendezvous.CodeOf(err) {
	case "", rendezvous.CodeUnavailable, rendezvous.CodeCommitUnknown:
		return err != nil
	}
	return false
}

// admit judges what a door judges: what could be read, the plane's own names, the caller's sources.
func (c call) admit(m cloudevents.Message) error {
	if m.Err != nil {
		return m.Err
	}
	if err := m.Event.CheckOutside(); err != nil {
		return err
	}
	return c.caller.source(m.Event.Source)
}

func deliverEvent(ctx context.Context, c call, req wire.DeliverEvent) (wire.Delivered, error) {
	m := cloudevents.DecodeObject(req.Event)
	if err := c.admit(m); err != nil {
		return wire.Delivered{}, err
	}
	if err := rendezvous.CheckID("run_id", req.RunID); err != nil {
		return wire.Delivered{}, err
	}
	if m.Run != "" && m.Run != req.RunID {
		return wire.Delivered{}, rendezvous.InvalidField("event.rdvrun", "names another run than run_id")
	}
	return c.deliver(ctx, req.RunID, m.Event)
}

func (c call) deliver(ctx context.Context, run string, e rendezvous.Event) (wire.Delivered, error) {
	d, err := c.cfg.Door.HandTo(ctx, c.tenant.Name(), run, e, false)()
	if err != nil {
		return wire.Delivered{}, err
	}
	if d.Outcome == store.DeliveryKept { // it is stored for this run since the stream door kept it: known, as any other that stands somewhere
		d.Outcome = store.DeliveryDuplicate
	}
	return wire.Delivered{Outcome: string(d.Outcome), Effect: d.Effect, Again: d.Again, State: d.State, RunID: d.RunID, Seq: d.Seq, Why: d.Why}, nil
}

func getEvent(ctx context.Context, c call, req wire.GetEvent) (wire.Event, error) {
	if err := checkEventID(req.Source, req.ID); err != nil {
		return wire.Event{}, err
	}
	e, err := c.tenant.LookupEvent(ctx, rendezvous.EventID{Source: req.Source, ID: req.ID}, req.IncludeData)
	if err != nil {
		return wire.Event{}, err
	}
	out := wire.Event{
		Source: e.Source, ID: e.ID, Type: e.Type, State: e.State, Number: e.Number, Keys: orEmpty(e.Keys), Target: e.Target, WorkflowID: e.WorkflowID,
		RunID: e.RunID, Effect: e.Effect, Seq: e.Seq, Reason: e.Reason, Detail: e.Detail, Requeues: e.Requeues, MintedBy: e.MintedBy,
		OfferFailures: e.OfferFailures, ReceivedAt: wire.At(e.ReceivedAt), LiveSince: wire.At(e.LiveSince), ExpiresAt: wire.At(e.ExpiresAt),
		ClaimedAt: wire.At(e.ClaimedAt), DeadAt: wire.At(e.DeadAt), Erased: e.Erased,
	}
	if req.IncludeData && e.HasPayload {
		out.Payload = wire.PayloadOf(e.Payload, e.ContentType)
	}
	return out, nil
}

func eraseEvent(ctx context.Context, c call, req wire.EraseEvent) (wire.Erased, error) {
	if err := checkEventID(req.Source, req.ID); err != nil {
		return wire.Erased{}, err
	}
	e, err := c.tenant.ErasePayload(ctx, rendezvous.EventID{Source: req.Source, ID: req.ID}, c.caller.operator(req.Operator), time.Time{})
	if err != nil {
		return wire.Erased{}, err
	}
	c.try(ctx, e.Notices)
	out := wire.Erased{Existed: e.Existed, Was: e.Was, Reopened: e.Reopened}
	if e.Journaled != nil {
		out.Journaled = &wire.Journaled{WorkflowID: e.Journaled.WorkflowID, Seq: e.Journaled.Seq}
	}
	return out, nil
}

func checkEventID(source, id string) error {
	if err := rendezvous.CheckID("source", source); err != nil {
		return err
	}
	return rendezvous.CheckID("id", id)
}

// orEmpty makes a list that encodes as [] where there is nothing.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
