package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/cloudevents"
	"github.com/rendezvous-events/rendezvous/wire"
)

const (
	source    = "urn:soak"
	eventType = "soak.step"
	namespace = "case"
	padding   = 160 // bytes of an event's payload beside its id

	confirmFirst = 20 * time.Millisecond
	confirmMost  = 400 * time.Millisecond
	resendAfter  = 2 * time.Second

	shareStream   = 0.5
	shareRepeat   = 0.04 // of the accepted events are sent once more, by the other door,
	shareConflict = 0.01 // and with other content
)

// event is one of a case: id is unique in its tenant, and its payload says so, so that a payload in a wrong answer shows.
func event(id string, keys ...rendezvous.Key) rendezvous.Event {
	payload, _ := json.Marshal(map[string]string{"id": id, "pad": strings.Repeat("x", padding)}) // two strings
	return rendezvous.Event{
		EventID: rendezvous.EventID{Source: source, ID: id}, Type: eventType, Keys: keys, ContentType: "application/json", Payload: payload,
	}
}

func key(value string) rendezvous.Key { return rendezvous.Key{Namespace: namespace, Value: value} }

// send gives an event to one of the doors and returns when the plane has accepted it; run addresses it, "" for broadcast. False: the plane refused an
// addressed event, or the load was cut off.
func (l *load) send(ctx context.Context, a *access, rng *rand.Rand, e rendezvous.Event, run string) bool {
	if l.pace.Wait(ctx) != nil {
		return false
	}
	first := rng.Float64() < shareStream
	if !l.through(ctx, a, rng, first, e, run) {
		return false
	}
	if rng.Float64() < shareRepeat && run == "" {
		l.through(ctx, a, rng, !first, e, run)
	}
	if rng.Float64() < shareConflict && run == "" {
		l.conflict(ctx, a, e)
	}
	return true
}

func (l *load) through(ctx context.Context, a *access, rng *rand.Rand, stream bool, e rendezvous.Event, run string) bool {
	if stream {
		return l.publish(ctx, a, rng, e, run)
	}
	return l.put(ctx, a, rng, e, run)
}

// put uses the request door, whose reply is the promise.
func (l *load) put(ctx context.Context, a *access, rng *rand.Rand, e rendezvous.Event, run string) bool {
	text, err := cloudevents.Encode(e, run)
	if err != nil {
		l.ledger.violation("event %s does not encode: %v", e.ID, err)
		return false
	}
	results, err := a.any(rng).PutEncoded(ctx, []json.RawMessage{text})
	switch {
	case ctx.Err() != nil:
		return false
	case err != nil || len(results) != 1:
		l.ledger.violation("events.put of %s/%s: %v", a.tenant, e.ID, err)
		return false
	}
	switch r := results[0]; {
	case r.Outcome == wire.Accepted:
		l.ledger.accepted(a.tenant, e.EventID, requestDoor)
	case r.Outcome == wire.Duplicate:
		l.ledger.count(&l.ledger.duplicates)
		l.ledger.accepted(a.tenant, e.EventID, requestDoor)
	case run != "" && r.Error != nil && (r.Error.Code == rendezvous.CodeNotFound || r.Error.Code == rendezvous.CodeSealed):
		return false // its run does not wait for it: nothing was stored
	default:
		l.ledger.violation("events.put of %s/%s: %s %+v", a.tenant, e.ID, r.Outcome, r.Error)
		return false
	}
	return true
}

// publish uses the stream door: what events.get does not know after a while is published again, for as long as it takes.
func (l *load) publish(ctx context.Context, a *access, rng *rand.Rand, e rendezvous.Event, run string) bool {
	var opts []client.PublishOption
	if run != "" {
		opts = append(opts, client.ForRun(run))
	}
	for n := 0; ; n++ {
		if err := a.http.Publish(ctx, e, opts...); err != nil {
			if ctx.Err() == nil {
				l.ledger.violation("publish of %s/%s: %v", a.tenant, e.ID, err)
			}
			return false
		}
		if n > 0 {
			l.ledger.count(&l.ledger.resent)
		}
		known, err := l.known(ctx, a, rng, e.EventID)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil:
			l.ledger.violation("events.get of %s/%s: %v", a.tenant, e.ID, err)
			return false
		case known:
			l.ledger.accepted(a.tenant, e.EventID, streamDoor)
			return true
		}
	}
}

// known asks until the event is known or the time to publish it again has come.
func (l *load) known(ctx context.Context, a *access, rng *rand.Rand, id rendezvous.EventID) (bool, error) {
	until := time.Now().Add(resendAfter)
	for look := confirmFirst; ; look = min(2*look, confirmMost) {
		if !pause(ctx, look) {
			return false, nil
		}
		_, err := a.any(rng).GetEvent(ctx, id, false)
		if !errors.Is(err, rendezvous.ErrNotFound) {
			return err == nil, err
		}
		if time.Now().After(until) {
			return false, nil
		}
	}
}

// conflict sends a known identity with other content, which no door may take (I2).
func (l *load) conflict(ctx context.Context, a *access, e rendezvous.Event) {
	e.Payload = fmt.Appendf(nil, `{"id":%q,"forged":true}`, e.ID)
	results, err := a.http.PutEvents(ctx, e)
	switch {
	case ctx.Err() != nil:
	case err != nil || len(results) != 1 || results[0].Outcome != wire.Conflict:
		l.ledger.violation("other content under the identity %s/%s: %+v %v", a.tenant, e.ID, results, err)
	default:
		l.ledger.count(&l.ledger.conflicts)
	}
}

// any is one of the ways to call verbs.
func (a *access) any(rng *rand.Rand) *client.Client {
	if rng.IntN(2) == 0 {
		return a.nats
	}
	return a.http
}
