// Package backendtest is the battery of the storage interface: what store/engine relies on, asked of a backend directly. store/storetest asks for the
// promises that rest on it.
package backendtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Run asks every question of backends that open makes: an empty one for each case, and a function that moves its now on. Run closes them.
func Run(t *testing.T, open func(t *testing.T) (b backend.Backend, advance func(d time.Duration))) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b, advance := open(t)
			t.Cleanup(func() {
				if err := b.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			})
			c.run(&bench{T: t, b: b, advance: advance})
		})
	}
}

type backendCase struct {
	name string
	run  func(x *bench)
}

var cases = concat(rowCases, changeCases, matchCases, dueCases, deadCases, retentionCases, listCases, nearCases, historyCases, timerCases, timerDueCases, shardCases, pushCases)

func concat(sets ...[]backendCase) []backendCase {
	var all []backendCase
	for _, s := range sets {
		all = append(all, s...)
	}
	return all
}

// bench is a backend under test, with rows a case can start from.
type bench struct {
	*testing.T
	b       backend.Backend
	advance func(d time.Duration)
}

var ctx = context.Background()

const acme, globex = "acme", "globex"

func (x *bench) now() time.Time {
	x.Helper()
	var now time.Time
	x.view(func(r backend.Reader) { now = r.Now() })
	return now
}

// view reads.
func (x *bench) view(fn func(r backend.Reader)) {
	x.Helper()
	err := x.b.View(ctx, "test", func(_ context.Context, r backend.Reader) error { fn(r); return nil })
	if err != nil {
		x.Fatalf("view: %v", err)
	}
}

// try applies changes under locks on the workflows they belong to.
func (x *bench) try(c *backend.Changes, locks ...backend.WorkflowKey) error {
	return x.b.Update(ctx, "test", func(ctx context.Context, tx backend.Tx) error {
		if len(locks) > 0 {
			if _, err := tx.LockWorkflows(ctx, locks); err != nil {
				return err
			}
		}
		return tx.Apply(ctx, c)
	})
}

// apply is try that has to succeed.
func (x *bench) apply(c *backend.Changes, locks ...backend.WorkflowKey) {
	x.Helper()
	if err := x.try(c, locks...); err != nil {
		x.Fatalf("apply: %v", err)
	}
}

// stale fails the test unless the changes are refused as stale.
func (x *bench) stale(what string, c *backend.Changes, locks ...backend.WorkflowKey) {
	x.Helper()
	if err := x.try(c, locks...); !errors.Is(err, backend.ErrStale) {
		x.Fatalf("%s: got %v, want ErrStale", what, err)
	}
}

// update runs a write transaction that has to succeed.
func (x *bench) update(fn func(tx backend.Tx)) {
	x.Helper()
	if err := x.b.Update(ctx, "test", func(_ context.Context, tx backend.Tx) error { fn(tx); return nil }); err != nil {
		x.Fatalf("update: %v", err)
	}
}

// got answers the value of a call that has to succeed.
func got[T any](v T, err error) func(x *bench) T {
	return func(x *bench) T {
		x.Helper()
		if err != nil {
			x.Fatal(err)
		}
		return v
	}
}

func got2[T, U any](v T, u U, err error) func(x *bench) (T, U) {
	return func(x *bench) (T, U) {
		x.Helper()
		if err != nil {
			x.Fatal(err)
		}
		return v, u
	}
}

// sameJSON compares bytes that hold JSON by what they say: a backend may keep it in a form of its own.
var sameJSON = cmp.FilterValues(func(a, b []byte) bool { return json.Valid(a) && json.Valid(b) }, cmp.Transformer("json", func(b []byte) any {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return string(b)
	}
	return v
}))

// eq compares, nil and empty being one, and rows without what is a backend's own business.
func eq[T any](x *bench, what string, is, want T) {
	x.Helper()
	free := cmp.Options{
		cmpopts.IgnoreFields(backend.Event{}, "Version", "Keyed", "Listed"), cmpopts.IgnoreFields(backend.Wait{}, "Version", "Keyed"),
		cmpopts.IgnoreFields(backend.Push{}, "Resettled"),
		cmpopts.EquateEmpty(), sameJSON,
	}
	if diff := cmp.Diff(want, is, free); diff != "" {
		x.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

func flowKey(tenant, id string) backend.WorkflowKey {
	return backend.WorkflowKey{Tenant: tenant, ID: id}
}
func runKey(tenant, id string) backend.RunKey { return backend.RunKey{Tenant: tenant, ID: id} }

func key(value string) rendezvous.Key { return rendezvous.Key{Namespace: "order", Value: value} }

// flow is a running workflow "w<id>" with its run "r<id>" and its first record, as a start makes it.
func (x *bench) flow(tenant, id string) *backend.Workflow {
	x.Helper()
	w, changes := newFlow(tenant, id, x.now())
	x.apply(changes)
	return w
}

func newFlow(tenant, id string, at time.Time) (*backend.Workflow, *backend.Changes) {
	w := &backend.Workflow{
		Tenant: tenant, ID: "w" + id, Shard: rendezvous.Shard(tenant, "w"+id, rendezvous.DefaultShards), RunID: "r" + id, Type: "order", Queue: "default",
		Status: rendezvous.StatusRunning, Head: 1, CreatedAt: at, StartedAt: at, UpdatedAt: at,
	}
	r := &backend.Run{
		Tenant: tenant, ID: w.RunID, WorkflowID: w.ID, Status: rendezvous.StatusRunning, FirstSeq: 1, StartedAt: at, StartDigest: []byte("digest of " + id),
	}
	return w, &backend.Changes{
		NewWorkflows: []*backend.Workflow{w}, NewRuns: []*backend.Run{r},
		Records: []*backend.Record{record(w, 1, rendezvous.RunStarted, rendezvous.RunStartedData{Type: "order", Queue: "default"}, at)},
	}
}

func record(w *backend.Workflow, seq int64, kind rendezvous.Kind, data any, at time.Time) *backend.Record {
	return &backend.Record{Tenant: w.Tenant, WorkflowID: w.ID, Record: rendezvous.Record{
		Seq: seq, RunID: w.RunID, Kind: kind, V: rendezvous.KindVersion, Data: rendezvous.EncodeData(data), RecordedAt: at,
	}}
}

// effect is a record of an effect.
func effect(w *backend.Workflow, seq int64, kind rendezvous.Kind, name string, attempt int, data any, at time.Time) *backend.Record {
	r := record(w, seq, kind, data, at)
	r.Effect, r.Attempt = name, attempt
	return r
}

// event is a live event with a payload, not stored yet.
func (x *bench) event(tenant, id string, keys ...rendezvous.Key) *backend.Event {
	x.Helper()
	var number int64
	var now time.Time
	x.update(func(tx backend.Tx) { number, now = got(tx.NewEventNumbers(ctx, 1))(x)[0], tx.Now() })
	e := rendezvous.Event{Type: "paid", Keys: keys, ContentType: "text/plain", Payload: []byte("payload of " + id)}
	digest := e.Digest()
	return &backend.Event{
		Number: number, Tenant: tenant, Source: "shop", ID: id, Type: e.Type, Keys: keys, ContentType: e.ContentType, Payload: e.Payload, Digest: digest[:],
		ReceivedAt: now, LiveSince: now, State: rendezvous.EventLive,
	}
}

// stored is an event stored live.
func (x *bench) stored(tenant, id string, keys ...rendezvous.Key) *backend.Event {
	x.Helper()
	e := x.event(tenant, id, keys...)
	x.apply(&backend.Changes{NewEvents: []*backend.Event{e}})
	return x.read(e)
}

// read is an event's row without its payload.
func (x *bench) read(e *backend.Event) *backend.Event {
	x.Helper()
	var row *backend.Event
	x.view(func(r backend.Reader) { row = got(r.EventsByKey(ctx, []backend.EventKey{e.Key()}, false))(x)[e.Key()] })
	if row == nil {
		x.Fatalf("event %s is not there", e.ID)
	}
	return row
}

// wait is an open wait of a flow's run, not stored yet.
func (x *bench) wait(w *backend.Workflow, name string, keys ...rendezvous.Key) *backend.Wait {
	x.Helper()
	var number int64
	var now time.Time
	x.update(func(tx backend.Tx) { number, now = got(tx.NewWaitNumbers(ctx, 1))(x)[0], tx.Now() })
	return &backend.Wait{
		Number: number, Tenant: w.Tenant, RunID: w.RunID, Effect: name, WorkflowID: w.ID, Shard: w.Shard, Attempt: 1, Type: "paid", Keys: keys,
		RegisteredAt: now, OpenSince: now,
	}
}

// opened is a wait stored open.
func (x *bench) opened(w *backend.Workflow, name string, keys ...rendezvous.Key) *backend.Wait {
	x.Helper()
	row := x.wait(w, name, keys...)
	x.apply(&backend.Changes{NewWaits: []*backend.Wait{row}}, w.Key())
	return x.reread(row)
}

// reread is a wait's row.
func (x *bench) reread(w *backend.Wait) *backend.Wait {
	x.Helper()
	var row *backend.Wait
	x.view(func(r backend.Reader) { row = got(r.Waits(ctx, []backend.WaitKey{w.Key()}))(x)[w.Key()] })
	if row == nil {
		x.Fatalf("wait %s is not there", w.Effect)
	}
	return row
}

// claim ties e to w in both rows; the caller applies them.
func claim(w *backend.Wait, e *backend.Event, now time.Time) {
	e.State, e.ClaimRun, e.ClaimEffect, e.ClaimedAt = rendezvous.EventClaimed, w.RunID, w.Effect, now
	w.Held = &backend.HeldEvent{Number: e.Number, Source: e.Source, ID: e.ID, Claim: w.Number + 1}
	w.ParkedAt, w.NextAttemptAt = now, now.Add(2*time.Second)
}

// parked is a wait stored parked, with the event it holds.
func (x *bench) parked(w *backend.Workflow, name string) (*backend.Wait, *backend.Event) {
	x.Helper()
	wait := x.opened(w, name, key(name))
	e := x.stored(w.Tenant, fmt.Sprintf("%s-%s-%s", w.Tenant, w.ID, name), key(name))
	claim(wait, e, x.now())
	x.apply(&backend.Changes{Events: []*backend.Event{e}, Waits: []*backend.Wait{wait}}, w.Key())
	return x.reread(wait), x.read(e)
}

// lease puts a lease on a flow.
func (x *bench) lease(w *backend.Workflow, ttl time.Duration) {
	x.Helper()
	w.LeaseOwner, w.LeaseEpoch, w.LeaseExpires, w.AcquireID = "pod", w.LeaseEpoch+1, x.now().Add(ttl), "acquire"
	x.apply(&backend.Changes{Workflows: []*backend.Workflow{w}}, w.Key())
}

func effectsOf(rows []*backend.Wait) []string {
	var names []string
	for _, w := range rows {
		names = append(names, w.Effect)
	}
	return names
}

func idsOf(rows []*backend.Event) []string {
	var names []string
	for _, e := range rows {
		names = append(names, e.ID)
	}
	return names
}

func isCode(x *bench, what string, err error, want rendezvous.Code) {
	x.Helper()
	if rendezvous.CodeOf(err) != want {
		x.Fatalf("%s: got %v, want %s", what, err, want)
	}
}
