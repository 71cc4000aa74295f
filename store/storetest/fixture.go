package storetest

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// Fix is a tenant under test with what cases say most. Its own verbs fail the test when the store refuses; the tenant's, which take a context, leave
// errors to the case.
type Fix struct {
	store.Tenant
	T testing.TB
	H *Harness
}

// Fix is the tenant most cases use.
func (h *Harness) Fix(t testing.TB) *Fix { t.Helper(); return h.FixOf(t, "acme") }

// FixOf is any tenant.
func (h *Harness) FixOf(t testing.TB, tenant string) *Fix {
	t.Helper()
	return &Fix{Tenant: must(h.Store.Tenant(tenant))(t, "take the tenant's handle"), T: t, H: h}
}

// now is the zero time: the store's now, which is what workers pass (R2).
var now time.Time

var ids atomic.Int64

// ID is an id that nothing else has.
func ID(prefix string) string { return fmt.Sprintf("%s-%d", prefix, ids.Add(1)) }

// K is a key.
func K(namespace, value string) rendezvous.Key {
	return rendezvous.Key{Namespace: namespace, Value: value}
}

// EventOf makes an event of an identity of its own, from "shop", with a payload of its own. Cases change what they are about.
func EventOf(kind string, keys ...rendezvous.Key) rendezvous.Event {
	id := ID("event")
	return rendezvous.Event{
		EventID: rendezvous.EventID{Source: "shop", ID: id}, Type: kind, Keys: keys, ContentType: "application/json",
		Payload: fmt.Appendf(nil, `{"of":%q}`, id),
	}
}

// Put buffers an event.
func (f *Fix) Put(e rendezvous.Event) store.Buffered {
	f.T.Helper()
	return must(f.Buffer(ctx, e, now))(f.T, "buffer "+e.ID)
}

// PutNew makes an event, buffers it and offers nothing.
func (f *Fix) PutNew(kind string, keys ...rendezvous.Key) rendezvous.Event {
	f.T.Helper()
	e := EventOf(kind, keys...)
	eq(f.T, "outcome of a new event", f.Put(e).Outcome, store.BufferNew)
	return e
}

// Send buffers an event and offers it, as a producer and the delivery worker do.
func (f *Fix) Send(e rendezvous.Event) Delivery {
	f.T.Helper()
	return f.H.Offer(f.T, f.Put(e).Notices)
}

// Stored is what the store knows of an event, with its payload.
func (f *Fix) Stored(id rendezvous.EventID) store.StoredEvent {
	f.T.Helper()
	return must(f.LookupEvent(ctx, id, true))(f.T, "look up "+id.ID)
}

// WantState fails the test unless the event is in that state.
func (f *Fix) WantState(id rendezvous.EventID, want rendezvous.EventState) store.StoredEvent {
	f.T.Helper()
	stored := f.Stored(id)
	eq(f.T, "state of "+id.ID, stored.State, want)
	return stored
}

// WantDead fails the test unless the event is a dead letter of that reason.
func (f *Fix) WantDead(id rendezvous.EventID, want rendezvous.DeadReason) store.StoredEvent {
	f.T.Helper()
	stored := f.WantState(id, rendezvous.EventDead)
	eq(f.T, "reason of the death of "+id.ID, stored.Reason, want)
	return stored
}

// OfferEvent offers one event and answers its own outcome; what follows from it is not offered.
func (f *Fix) OfferEvent(id rendezvous.EventID) store.Offer {
	f.T.Helper()
	out := must(f.H.Store.OfferBatch(ctx, []store.OfferItem{{Tenant: f.Name(), Event: &id}}, now))(f.T, "offer "+id.ID)
	eq(f.T, "outcomes of one item", len(out.Items), 1)
	return out.Items[0]
}

// OfferWait offers one wait and answers its own outcome.
func (f *Fix) OfferWait(id rendezvous.WaitID) store.Offer {
	f.T.Helper()
	out := must(f.H.Store.OfferBatch(ctx, []store.OfferItem{{Tenant: f.Name(), Wait: &id}}, now))(f.T, "offer the wait "+id.Effect)
	eq(f.T, "outcomes of one item", len(out.Items), 1)
	return out.Items[0]
}

// Listed is the whole list of waits that pass the filter.
func (f *Fix) Listed(filter store.WaitFilter) []store.WaitRow {
	f.T.Helper()
	var rows []store.WaitRow
	for cursor := ""; ; {
		page := must(f.Waiting(ctx, filter, 0, cursor))(f.T, "list waits")
		rows = append(rows, page.Waits...)
		if cursor = page.NextCursor; cursor == "" {
			return rows
		}
	}
}

// Flow is a run under test.
type Flow struct {
	F          *Fix
	WorkflowID string
	ID         string
}

// Start starts a run of type "order" on the default queue, with ids of its own.
func (f *Fix) Start() *Flow {
	f.T.Helper()
	return f.StartAs(store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order"})
}

// StartAs starts a run.
func (f *Fix) StartAs(s store.Start) *Flow {
	f.T.Helper()
	started := must(f.StartRun(ctx, s, now))(f.T, "start "+s.WorkflowID)
	return &Flow{F: f, WorkflowID: started.WorkflowID, ID: started.RunID}
}

// Wait makes a wait of the run.
func (r *Flow) Wait(effect, kind string, keys ...rendezvous.Key) rendezvous.Wait {
	return rendezvous.Wait{WaitID: rendezvous.WaitID{RunID: r.ID, Effect: effect}, Type: kind, Keys: keys}
}

// WaitID names a wait of the run.
func (r *Flow) WaitID(effect string) rendezvous.WaitID {
	return rendezvous.WaitID{RunID: r.ID, Effect: effect}
}

// Register registers a wait without a lease.
func (r *Flow) Register(w rendezvous.Wait) store.Registered {
	r.F.T.Helper()
	return must(r.F.RegisterWait(ctx, store.Registration{Wait: w}, now))(r.F.T, "register "+w.Effect)
}

// Waits registers a wait without a lease that nothing answers yet.
func (r *Flow) Waits(effect, kind string, keys ...rendezvous.Key) rendezvous.Wait {
	r.F.T.Helper()
	w := r.Wait(effect, kind, keys...)
	eq(r.F.T, "outcome of registering "+effect, r.Register(w).Outcome, store.RegisterWaiting)
	return w
}

// Rows are the run's rows of waits, by number.
func (r *Flow) Rows() []store.WaitRow {
	r.F.T.Helper()
	return r.F.Listed(store.WaitFilter{RunID: r.ID})
}

// Row is the run's row of a wait, nil when there is none.
func (r *Flow) Row(effect string) *store.WaitRow {
	r.F.T.Helper()
	for _, row := range r.Rows() {
		if row.Effect == effect {
			return &row
		}
	}
	return nil
}

// History is the workflow's history.
func (r *Flow) History() []rendezvous.Record {
	r.F.T.Helper()
	return must(r.F.ReadHistory(ctx, r.WorkflowID))(r.F.T, "read the history of "+r.WorkflowID)
}

// Head is the workflow's last seq.
func (r *Flow) Head() int64 {
	r.F.T.Helper()
	return must(r.F.ReadHistoryFrom(ctx, r.WorkflowID, rendezvous.MaxSeq, 1))(r.F.T, "read the head of "+r.WorkflowID).Head
}

// Kinds are the kinds of the workflow's history.
func (r *Flow) Kinds() []rendezvous.Kind {
	r.F.T.Helper()
	var kinds []rendezvous.Kind
	for _, rec := range r.History() {
		kinds = append(kinds, rec.Kind)
	}
	return kinds
}

// WantKinds fails the test unless the history has exactly those kinds, behind the run.started that begins it.
func (r *Flow) WantKinds(want ...rendezvous.Kind) {
	r.F.T.Helper()
	eq(r.F.T, "kinds of the history", r.Kinds(), append([]rendezvous.Kind{rendezvous.RunStarted}, want...))
}

// Answer is the record that answered a wait of the run, nil when there is none. More than one fails the test.
func (r *Flow) Answer(effect string) *rendezvous.Record {
	r.F.T.Helper()
	var found *rendezvous.Record
	for _, rec := range r.History() {
		if rec.Kind != rendezvous.WaitAnswered || rec.RunID != r.ID || rec.Effect != effect {
			continue
		}
		if found != nil {
			r.F.T.Fatalf("%s is answered at %d and again at %d", effect, found.Seq, rec.Seq)
		}
		found = &rec
	}
	return found
}

// WantAnswer fails the test unless exactly that event answered the wait, payload bit for bit.
func (r *Flow) WantAnswer(effect string, e rendezvous.Event) *rendezvous.Record {
	r.F.T.Helper()
	rec := r.Answer(effect)
	if rec == nil {
		r.F.T.Fatalf("nothing answered %s of %s; history: %v", effect, r.ID, r.Kinds())
	}
	WantAnswerOf(r.F.T, *rec, e)
	return rec
}

// WantAnswerOf fails the test unless the record holds that event, payload bit for bit.
func WantAnswerOf(t testing.TB, rec rendezvous.Record, e rendezvous.Event) {
	t.Helper()
	var data rendezvous.WaitAnsweredData
	done(t, "decode the answer", rendezvous.DecodeData(rec, &data))
	eq(t, "event of the answer", rendezvous.EventID{Source: data.EventSource, ID: data.EventID}, e.EventID)
	eq(t, "type of the answering event", data.EventType, e.Type)
	eq(t, "source of the answer", rec.Source, e.Source)
	eq(t, "content type of the answer", rec.ContentType, e.ContentType)
	SamePayload(t, rec.Payload, e.Payload)
}

// SamePayload fails the test unless two payloads are the same bytes, none and empty being two things.
func SamePayload(t testing.TB, got, want []byte) {
	t.Helper()
	if (got == nil) != (want == nil) || string(got) != string(want) {
		t.Fatalf("payload: got %d bytes (none: %v), want %d bytes (none: %v)", len(got), got == nil, len(want), want == nil)
	}
}

// Describe is the workflow's row.
func (r *Flow) Describe() store.Workflow {
	r.F.T.Helper()
	return must(r.F.DescribeWorkflow(ctx, store.WorkflowRef{WorkflowID: r.WorkflowID}))(r.F.T, "describe "+r.WorkflowID)
}

// Conclude ends the run without a lease.
func (r *Flow) Conclude(outcome rendezvous.Status) store.Concluded {
	r.F.T.Helper()
	return must(r.F.Tenant.Conclude(ctx, r.Conclusion(outcome), now))(r.F.T, "conclude "+r.ID)
}

// Conclusion makes the request that ends the run at its present head.
func (r *Flow) Conclusion(outcome rendezvous.Status) store.Conclusion {
	r.F.T.Helper()
	c := store.Conclusion{RunID: r.ID, ExpectedSeq: r.Head(), BatchID: ID("batch"), Outcome: outcome, Reason: "so be it"}
	switch outcome {
	case rendezvous.StatusFailed:
		c.Code = "broken"
	case rendezvous.StatusCompleted:
		c.Reason, c.Result = "", []byte(`"well"`)
	}
	return c
}
