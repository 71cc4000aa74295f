package backendtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

var changeCases = []backendCase{
	{"an event that moved on is stale", eventMovedOn},
	{"a wait that moved on or went is stale", waitMovedOn},
	{"what is there already is stale", thereAlready},
	{"stale changes write nothing at all", staleWritesNothing},
	{"a function that fails after its changes writes nothing", failureWritesNothing},
	{"a call that was given up is unavailable and writes nothing", givenUp},
	{"a closed backend is unavailable", closedBackend},
	{"an answered wait: the record copies the payload before it is shed", payloadOf},
	{"an update leaves the payload alone", payloadStays},
	{"a mark that stands keeps its since and notices, the earlier notice wins", wokenStands},
	{"a mark made anew keeps only its since", wokenAnew},
	{"a mark that goes and comes in one transaction is new", wokenAgain},
	{"moved notices move", wokenMoved},
	{"numbers rise and are never given twice", numbersRise},
	{"writers of one workflow do not overlap", writersQueue},
}

func eventMovedOn(x *bench) {
	first := x.stored(acme, "e", key("1"))
	second := x.read(first)
	first.OfferFailures = 1
	x.apply(&backend.Changes{Events: []*backend.Event{first}})
	second.OfferFailures = 5
	x.stale("write over a newer row", &backend.Changes{Events: []*backend.Event{second}})
	eq(x, "failures", x.read(first).OfferFailures, 1)
	again := x.read(first)
	again.OfferFailures = 2
	x.apply(&backend.Changes{Events: []*backend.Event{again}})
	eq(x, "failures", x.read(first).OfferFailures, 2)
}

func waitMovedOn(x *bench) {
	w := x.flow(acme, "1")
	first := x.opened(w, "wait", key("1"))
	second, third := x.reread(first), x.reread(first)
	first.OpenSince = first.OpenSince.Add(time.Second)
	x.apply(&backend.Changes{Waits: []*backend.Wait{first}})
	x.stale("write over a newer row", &backend.Changes{Waits: []*backend.Wait{second}}, w.Key())
	x.stale("delete a newer row", &backend.Changes{GoneWaits: []*backend.Wait{third}}, w.Key())
	now := x.reread(first)
	x.apply(&backend.Changes{GoneWaits: []*backend.Wait{now}}, w.Key())
	x.stale("write over a row that went", &backend.Changes{Waits: []*backend.Wait{now}}, w.Key())
	x.stale("delete a row that went", &backend.Changes{GoneWaits: []*backend.Wait{now}}, w.Key())
}

func thereAlready(x *bench) {
	w := x.flow(acme, "1")
	at := x.now()
	_, again := newFlow(acme, "1", at)
	x.stale("workflow", &backend.Changes{NewWorkflows: again.NewWorkflows}, w.Key())
	x.stale("run", &backend.Changes{NewRuns: again.NewRuns}, w.Key())

	e := x.stored(acme, "e")
	twin := x.event(acme, "e")
	x.stale("event", &backend.Changes{NewEvents: []*backend.Event{twin}})
	wait := x.opened(w, "wait")
	other := x.wait(w, "wait")
	x.stale("wait", &backend.Changes{NewWaits: []*backend.Wait{other}}, w.Key())
	batch := &backend.Batch{Tenant: acme, RunID: "r1", ID: "b", Digest: []byte{1}, Outcome: []byte(`{}`)}
	x.apply(&backend.Changes{NewBatches: []*backend.Batch{batch}}, w.Key())
	x.stale("batch", &backend.Changes{NewBatches: []*backend.Batch{batch}}, w.Key())

	named := rendezvous.NameData{Name: "charge"}
	x.apply(&backend.Changes{Records: []*backend.Record{
		effect(w, 2, rendezvous.EffectStarted, "a", 1, named, at), effect(w, 3, rendezvous.EffectFailed, "a", 1, rendezvous.EffectFailedData{Code: "x"}, at),
		effect(w, 4, rendezvous.EffectStarted, "a", 2, named, at),
	}}, w.Key())
	x.stale("seq", &backend.Changes{Records: []*backend.Record{record(w, 4, rendezvous.Note, named, at)}}, w.Key())
	x.stale("opening", &backend.Changes{Records: []*backend.Record{effect(w, 5, rendezvous.EffectStarted, "a", 2, named, at)}}, w.Key())
	x.stale("opening by a wait", &backend.Changes{Records: []*backend.Record{
		effect(w, 5, rendezvous.WaitRegistered, "a", 2, rendezvous.WaitRegisteredData{Type: "paid"}, at),
	}}, w.Key())
	x.stale("closing", &backend.Changes{Records: []*backend.Record{effect(w, 5, rendezvous.EffectDone, "a", 1, struct{}{}, at)}}, w.Key())
	x.apply(&backend.Changes{Records: []*backend.Record{effect(w, 5, rendezvous.EffectDone, "a", 2, struct{}{}, at)}}, w.Key())
	eq(x, "the first event", x.read(e).Number, e.Number)
	eq(x, "the first wait", x.reread(wait).Number, wait.Number)

	foreign := x.event(globex, "e") // the same identity elsewhere is another event
	x.apply(&backend.Changes{NewEvents: []*backend.Event{foreign}})
}

// staleWritesNothing puts one stale row among good ones of every kind.
func staleWritesNothing(x *bench) {
	w := x.flow(acme, "1")
	at := x.now()
	moved := x.stored(acme, "moved", key("1"))
	old := x.read(moved)
	moved.OfferFailures = 1
	x.apply(&backend.Changes{Events: []*backend.Event{moved}})

	wait, gone := x.opened(w, "wait", key("1")), x.opened(w, "gone")
	e := x.stored(acme, "e", key("1"))
	claim(wait, e, at)
	other, changes := newFlow(acme, "2", at)
	changes.NewEvents = []*backend.Event{x.event(acme, "new", key("9"))}
	changes.NewWaits = []*backend.Wait{x.wait(w, "new", key("9"))}
	changes.NewBatches = []*backend.Batch{{Tenant: acme, RunID: "r1", ID: "b", Digest: []byte{1}, Outcome: []byte(`{}`)}}
	changes.Records = append(changes.Records, record(w, 2, rendezvous.Note, rendezvous.NameData{Name: "n"}, at))
	w.Head = 2
	changes.Workflows = []*backend.Workflow{w}
	changes.Events, changes.Waits, changes.GoneWaits = []*backend.Event{e, old}, []*backend.Wait{wait}, []*backend.Wait{gone}
	changes.Woken = []*backend.Woken{{Tenant: acme, WorkflowID: "w1", RunID: "r1", Queue: "default", Since: at, NextNoticeAt: at, Cause: rendezvous.CauseAnswered}}
	x.stale("one stale row among good ones", changes, w.Key())

	x.view(func(r backend.Reader) {
		flows := got(r.Workflows(ctx, []backend.WorkflowKey{w.Key(), other.Key()}))(x)
		if flows[other.Key()] != nil || flows[w.Key()].Head != 1 {
			x.Fatalf("a workflow row was written: %+v", flows)
		}
		eq(x, "records", len(got(r.History(ctx, w.Key(), 1, 0, 10, 1<<20))(x)), 1)
		eq(x, "waits", effectsOf(got(r.WaitsOf(ctx, []backend.RunKey{runKey(acme, "r1")}))(x)), []string{"wait", "gone"})
		live := got(r.LiveEvents(ctx, []backend.Lookup{look(acme, key("1")), look(acme, key("9"))}))(x)
		eq(x, "live events on the old key", idsOf(live[0]), []string{"moved", "e"})
		eq(x, "live events on the new key", idsOf(live[1]), nil)
		eq(x, "open waits", len(got(r.OpenWaits(ctx, []backend.Lookup{look(acme, key("1"))}))(x)[0]), 1)
		eq(x, "marks", len(got(r.Woken(ctx, []backend.WorkflowKey{w.Key()}))(x)), 0)
		eq(x, "batches", len(got(r.Batches(ctx, []backend.BatchKey{changes.NewBatches[0].Key()}))(x)), 0)
	})
}

func failureWritesNothing(x *bench) {
	e := x.event(acme, "e")
	broken := errors.New("broken")
	err := x.b.Update(ctx, "test", func(ctx context.Context, tx backend.Tx) error {
		if err := tx.Apply(ctx, &backend.Changes{NewEvents: []*backend.Event{e}}); err != nil {
			return err
		}
		return broken
	})
	if !errors.Is(err, broken) {
		x.Fatalf("got %v, want the function's own error", err)
	}
	x.apply(&backend.Changes{NewEvents: []*backend.Event{e}})
}

func givenUp(x *bench) {
	e := x.event(acme, "e")
	over, cancel := context.WithCancel(ctx)
	cancel()
	never := func() { x.Error("the function ran") }
	isCode(x, "update", x.b.Update(over, "test", func(context.Context, backend.Tx) error { never(); return nil }), rendezvous.CodeUnavailable)
	isCode(x, "view", x.b.View(over, "test", func(context.Context, backend.Reader) error { never(); return nil }), rendezvous.CodeUnavailable)
	isCode(x, "ping", x.b.Ping(over), rendezvous.CodeUnavailable)

	over, cancel = context.WithCancel(ctx)
	defer cancel()
	err := x.b.Update(over, "test", func(ctx context.Context, tx backend.Tx) error {
		cancel()
		return tx.Apply(ctx, &backend.Changes{NewEvents: []*backend.Event{e}})
	})
	isCode(x, "update given up in the middle", err, rendezvous.CodeUnavailable)
	x.apply(&backend.Changes{NewEvents: []*backend.Event{e}})
}

func closedBackend(x *bench) {
	if err := x.b.Ping(ctx); err != nil {
		x.Fatalf("ping: %v", err)
	}
	for range 2 {
		if err := x.b.Close(); err != nil {
			x.Fatalf("close: %v", err)
		}
	}
	isCode(x, "ping", x.b.Ping(ctx), rendezvous.CodeUnavailable)
	isCode(x, "update", x.b.Update(ctx, "test", func(context.Context, backend.Tx) error { return nil }), rendezvous.CodeUnavailable)
	isCode(x, "view", x.b.View(ctx, "test", func(context.Context, backend.Reader) error { return nil }), rendezvous.CodeUnavailable)
}

func payloadOf(x *bench) {
	w := x.flow(acme, "1")
	wait, e := x.parked(w, "wait")
	at := x.now()
	answer := effect(w, 2, rendezvous.WaitAnswered, "wait", 1, rendezvous.WaitAnsweredData{EventSource: e.Source, EventID: e.ID}, at)
	answer.Source, answer.PayloadOf = e.Source, e.Number
	e.State, e.ClaimRun, e.ClaimEffect, e.ClaimedAt, e.Shed = rendezvous.EventConsumed, "", "", time.Time{}, true
	e.Workflow, e.Run, e.Effect, e.Seq = w.ID, "r1", "wait", 2
	none := x.event(acme, "none")
	none.Payload, none.ContentType, none.Shed = nil, "", true
	none.State, none.Workflow, none.Run, none.Effect, none.Seq = rendezvous.EventConsumed, w.ID, "r1", "never stored", 3
	fresh := effect(w, 3, rendezvous.WaitAnswered, "never stored", 1, rendezvous.WaitAnsweredData{}, at)
	fresh.PayloadOf = none.Number
	x.apply(&backend.Changes{
		NewEvents: []*backend.Event{none}, Records: []*backend.Record{answer, fresh}, Events: []*backend.Event{e}, GoneWaits: []*backend.Wait{wait},
	}, w.Key())
	x.view(func(r backend.Reader) {
		records := got(r.History(ctx, w.Key(), 2, 0, 10, 1<<20))(x)
		eq(x, "payload of the answer", string(records[0].Payload), "payload of "+e.ID)
		eq(x, "content type of the answer", records[0].ContentType, "text/plain")
		if records[1].Payload != nil {
			x.Fatalf("an answer without payload came back with %q", records[1].Payload)
		}
	})
	e.Shed, e.HasPayload, e.PayloadSize = false, false, 0
	eq(x, "the consumed event", x.read(e), e)
}

func payloadStays(x *bench) {
	e := x.stored(acme, "e", key("1"))
	e.OfferFailures = 1
	x.apply(&backend.Changes{Events: []*backend.Event{e}})
	x.view(func(r backend.Reader) {
		row := got(r.EventsByNumber(ctx, []int64{e.Number}, true))(x)[e.Number]
		eq(x, "payload", string(row.Payload), "payload of e")
		eq(x, "content type", row.ContentType, "text/plain")
	})
}

func (x *bench) mark(w *backend.Workflow) *backend.Woken {
	x.Helper()
	var m *backend.Woken
	x.view(func(r backend.Reader) { m = got(r.Woken(ctx, []backend.WorkflowKey{w.Key()}))(x)[w.Key()] })
	return m
}

func newMark(w *backend.Workflow, cause rendezvous.Cause, seq int64, since, next time.Time) *backend.Woken {
	return &backend.Woken{
		Tenant: w.Tenant, WorkflowID: w.ID, RunID: w.RunID, Queue: w.Queue, Since: since, Cause: cause, Seq: seq, NextNoticeAt: next,
		Links: []rendezvous.Trace{{Parent: fmt.Sprintf("00-0af7651916cd43dd8448eb211c80319c-%016d-01", seq)}},
	}
}

func wokenStands(x *bench) {
	w := x.flow(acme, "1")
	at := x.now()
	first := newMark(w, rendezvous.CauseStarted, 1, at, at.Add(time.Minute))
	first.Notices = 3
	x.apply(&backend.Changes{Woken: []*backend.Woken{first}}, w.Key())
	eq(x, "mark", x.mark(w), first)
	later := newMark(w, rendezvous.CauseAnswered, 5, at.Add(time.Second), at.Add(time.Hour))
	x.apply(&backend.Changes{Woken: []*backend.Woken{later}}, w.Key())
	want := *later
	want.Since, want.Notices, want.NextNoticeAt = at, 3, at.Add(time.Minute)
	eq(x, "mark with later news", x.mark(w), &want)
	sooner := newMark(w, rendezvous.CauseAnswered, 6, at.Add(time.Second), at.Add(time.Second))
	x.apply(&backend.Changes{Woken: []*backend.Woken{sooner}}, w.Key())
	eq(x, "next notice", x.mark(w).NextNoticeAt, at.Add(time.Second))
}

func wokenAnew(x *bench) {
	w := x.flow(acme, "1")
	at := x.now()
	first := newMark(w, rendezvous.CauseStarted, 1, at, at.Add(time.Second))
	first.Notices = 3
	x.apply(&backend.Changes{Woken: []*backend.Woken{first}}, w.Key())
	anew := newMark(w, rendezvous.CauseResumed, 7, at.Add(time.Second), at.Add(time.Hour))
	anew.Anew = true
	x.apply(&backend.Changes{Woken: []*backend.Woken{anew}}, w.Key())
	want := *anew
	want.Since, want.Anew = at, false
	eq(x, "mark made anew", x.mark(w), &want)
}

func wokenAgain(x *bench) {
	w := x.flow(acme, "1")
	at := x.now()
	first := newMark(w, rendezvous.CauseStarted, 1, at, at.Add(time.Second))
	first.Notices = 3
	x.apply(&backend.Changes{Woken: []*backend.Woken{first}}, w.Key())
	again := newMark(w, rendezvous.CauseReleased, 2, at.Add(time.Minute), at.Add(time.Hour))
	x.apply(&backend.Changes{Unwoken: []backend.WorkflowKey{w.Key()}, Woken: []*backend.Woken{again}}, w.Key())
	eq(x, "mark", x.mark(w), again)
	x.apply(&backend.Changes{Unwoken: []backend.WorkflowKey{w.Key(), flowKey(globex, "w1")}}, w.Key())
	eq(x, "mark after it went", x.mark(w), nil)
}

func wokenMoved(x *bench) {
	w := x.flow(acme, "1")
	at := x.now()
	x.apply(&backend.Changes{Woken: []*backend.Woken{newMark(w, rendezvous.CauseStarted, 1, at, at)}}, w.Key())
	x.update(func(tx backend.Tx) {
		rows, _, err := tx.DueWoken(ctx, nil, 10)
		if err != nil || len(rows) != 1 {
			x.Fatalf("due marks: %v, %v", rows, err)
		}
		rows[0].Notices, rows[0].NextNoticeAt = 4, at.Add(20*time.Second)
		if err := tx.Apply(ctx, &backend.Changes{MarkedWoken: rows}); err != nil {
			x.Fatal(err)
		}
	})
	eq(x, "notices", x.mark(w).Notices, 4)
	eq(x, "next notice", x.mark(w).NextNoticeAt, at.Add(20*time.Second))
}

func numbersRise(x *bench) {
	draws := []func(tx backend.Tx, n int) ([]int64, error){
		func(tx backend.Tx, n int) ([]int64, error) { return tx.NewEventNumbers(ctx, n) },
		func(tx backend.Tx, n int) ([]int64, error) { return tx.NewWaitNumbers(ctx, n) },
		func(tx backend.Tx, n int) ([]int64, error) { return tx.NewTakes(ctx, n) },
	}
	for _, draw := range draws {
		var all []int64
		for try := range 3 {
			err := x.b.Update(ctx, "test", func(_ context.Context, tx backend.Tx) error {
				all = append(all, got(draw(tx, 5))(x)...)
				if try == 1 {
					return backend.ErrRetry // undone, but its numbers are gone
				}
				return nil
			})
			if try == 1 != errors.Is(err, backend.ErrRetry) {
				x.Fatalf("try %d: %v", try, err)
			}
		}
		if len(all) != 15 || all[0] < 1 || !slices.IsSorted(all) || len(slices.Compact(all)) != 15 {
			x.Fatalf("numbers %v do not rise from 1 on", all)
		}
	}
}

// writersQueue lets many writers count up one row that each reads under its lock.
func writersQueue(x *bench) {
	w := x.flow(acme, "1")
	const writers, each = 8, 10
	var all sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		all.Go(func() {
			for range each {
				if err := x.count(w.Key()); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		x.Fatal(err)
	}
	x.view(func(r backend.Reader) {
		eq(x, "head", got(r.Workflows(ctx, []backend.WorkflowKey{w.Key()}))(x)[w.Key()].Head, int64(1+writers*each))
	})
}

func (x *bench) count(k backend.WorkflowKey) error {
	for {
		err := x.b.Update(ctx, "test", func(ctx context.Context, tx backend.Tx) error {
			rows, err := tx.LockWorkflows(ctx, []backend.WorkflowKey{k})
			if err != nil {
				return err
			}
			rows[k].Head++
			return tx.Apply(ctx, &backend.Changes{Workflows: []*backend.Workflow{rows[k]}})
		})
		if !errors.Is(err, backend.ErrRetry) {
			return err
		}
	}
}
