package backendtest

import (
	"fmt"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

var retentionCases = []backendCase{
	{"old letters: those that lists show, by the time of their death, behind a position", oldLetters},
	{"a page of old letters is fair by tenant and says when more was due", oldLettersFair},
	{"closed workflows by the time they closed, behind a position", closedFlows},
	{"a pruned run leaves remnants, which hold its ids until its records and batches are gone", remnants},
}

func (x *bench) oldLetters(before time.Time, after backend.LetterPosition, limit int) (ids []string, more bool) {
	x.Helper()
	x.update(func(tx backend.Tx) {
		rows, m, err := tx.OldLetters(ctx, before, after, limit)
		if err != nil {
			x.Fatal(err)
		}
		ids, more = idsOf(rows), m
	})
	return ids, more
}

func oldLetters(x *bench) {
	begin := x.now()
	x.stored(acme, "live", key("1"))
	first := x.letter(acme, "first", rendezvous.DeadUnclaimed, key("1"))
	x.purged(x.letter(acme, "purged", rendezvous.DeadUnclaimed))
	raised := x.letter(acme, "raised", rendezvous.DeadUnclaimed)
	raised.State, raised.DeadAt = rendezvous.EventLive, time.Time{}
	x.apply(&backend.Changes{Events: []*backend.Event{raised}})
	x.letter(globex, "second", rendezvous.DeadErased)
	x.advance(time.Second)
	x.letter(acme, "third", rendezvous.DeadExpired)
	x.letter(acme, "fourth", rendezvous.DeadExpired)

	ids, more := x.oldLetters(begin.Add(-time.Microsecond), backend.LetterPosition{}, 10)
	eq(x, "old too early", ids, nil)
	eq(x, "more", more, false)
	ids, _ = x.oldLetters(begin, backend.LetterPosition{}, 10)
	eq(x, "old at the bound", ids, []string{"first", "second"})
	ids, more = x.oldLetters(x.now(), backend.LetterPosition{}, 10)
	eq(x, "old", ids, []string{"first", "second", "third", "fourth"})
	eq(x, "more", more, false)
	ids, _ = x.oldLetters(x.now(), backend.LetterPosition{Set: true, At: first.DeadAt, Number: first.Number}, 10)
	eq(x, "behind the first", ids, []string{"second", "third", "fourth"})
	x.purged(first)
	ids, more = x.oldLetters(x.now(), backend.LetterPosition{}, 2)
	eq(x, "a page", ids, []string{"second", "third"})
	eq(x, "more", more, true)
}

func oldLettersFair(x *bench) {
	for i := range 8 {
		x.letter(acme, fmt.Sprint("many", i), rendezvous.DeadUnclaimed)
	}
	x.advance(time.Second)
	x.letter(globex, "one", rendezvous.DeadUnclaimed)
	ids, more := x.oldLetters(x.now(), backend.LetterPosition{}, 4)
	eq(x, "page", ids, []string{"many0", "many1", "many2", "one"})
	eq(x, "more", more, true)
	ids, more = x.oldLetters(x.now(), backend.LetterPosition{}, 9)
	eq(x, "whole page", len(ids), 9)
	eq(x, "more", more, false)
}

func (x *bench) closedFlows(before time.Time, after backend.ClosedPosition, limit int) (names []string) {
	x.Helper()
	x.view(func(r backend.Reader) {
		for _, w := range got(r.Closed(ctx, before, after, limit))(x) {
			names = append(names, w.Tenant+"/"+w.ID)
		}
	})
	return names
}

func (x *bench) close(w *backend.Workflow) {
	x.Helper()
	w.Status, w.ClosedAt = rendezvous.StatusCompleted, x.now()
	x.apply(&backend.Changes{Workflows: []*backend.Workflow{w}}, w.Key())
}

func closedFlows(x *bench) {
	begin := x.now()
	second, first, later, again := x.flow(globex, "1"), x.flow(acme, "2"), x.flow(acme, "1"), x.flow(acme, "3")
	x.flow(acme, "open")
	for _, w := range []*backend.Workflow{second, first, again} {
		x.close(w)
	}
	again.Status, again.ClosedAt = rendezvous.StatusRunning, time.Time{}
	x.apply(&backend.Changes{Workflows: []*backend.Workflow{again}}, again.Key())
	x.advance(time.Second)
	x.close(later)
	eq(x, "too early", x.closedFlows(begin.Add(-time.Microsecond), backend.ClosedPosition{}, 10), nil)
	eq(x, "at the bound", x.closedFlows(begin, backend.ClosedPosition{}, 10), []string{"acme/w2", "globex/w1"})
	eq(x, "all", x.closedFlows(x.now(), backend.ClosedPosition{}, 10), []string{"acme/w2", "globex/w1", "acme/w1"})
	eq(x, "a page", x.closedFlows(x.now(), backend.ClosedPosition{}, 1), []string{"acme/w2"})
	eq(x, "behind the first", x.closedFlows(x.now(), backend.ClosedPosition{Set: true, Closed: begin, Key: first.Key()}, 10), []string{"globex/w1", "acme/w1"})
	x.apply(&backend.Changes{GoneWorkflows: []backend.WorkflowKey{second.Key()}}, second.Key())
	eq(x, "without what is gone", x.closedFlows(x.now(), backend.ClosedPosition{}, 10), []string{"acme/w2", "acme/w1"})
	x.stale("a workflow that is gone", &backend.Changes{GoneWorkflows: []backend.WorkflowKey{second.Key()}}, second.Key())
	x.stale("a run that is not there", &backend.Changes{GoneRuns: []backend.RunKey{{Tenant: acme, ID: "none"}}}, first.Key())
}

// left is a page of remnants: its runs, and how many records and batches they have.
func (x *bench) left(limit int) (page backend.Remnants) {
	x.Helper()
	x.update(func(tx backend.Tx) { page = got(tx.Remnants(ctx, limit))(x) })
	return page
}

func remnants(x *bench) {
	w, other, at := x.flow(acme, "1"), x.flow(acme, "2"), x.now()
	named := rendezvous.NameData{Name: "n"}
	x.apply(&backend.Changes{
		Records: []*backend.Record{
			effect(w, 2, rendezvous.EffectStarted, "a", 1, named, at), effect(w, 3, rendezvous.EffectFailed, "a", 1, rendezvous.EffectFailedData{Code: "x"}, at),
			effect(w, 4, rendezvous.EffectStarted, "b", 1, named, at), record(w, 5, rendezvous.Note, named, at), record(other, 2, rendezvous.Note, named, at),
		},
		NewBatches: []*backend.Batch{
			{Tenant: acme, RunID: "r1", ID: "b1", Digest: []byte{1}, Outcome: []byte(`{}`)}, {Tenant: acme, RunID: "r2", ID: "b1", Digest: []byte{1}, Outcome: []byte(`{}`)},
		},
	}, w.Key(), other.Key())
	eq(x, "remnants before", x.left(10), backend.Remnants{})
	of := func(flow, run string) *backend.Remnant {
		var found *backend.Remnant
		x.view(func(r backend.Reader) {
			found = got(r.RemnantOf(ctx, backend.WorkflowKey{Tenant: acme, ID: flow}, backend.RunKey{Tenant: acme, ID: run}))(x)
		})
		return found
	}
	rest := &backend.Remnant{Tenant: acme, RunID: "r1", WorkflowID: "w1", LastSeq: 1 << 62}
	run := backend.RunKey{Tenant: acme, ID: "r1"}
	x.apply(&backend.Changes{GoneWorkflows: []backend.WorkflowKey{w.Key()}, GoneRuns: []backend.RunKey{run}, Remnants: []*backend.Remnant{rest}}, w.Key())
	x.view(func(r backend.Reader) {
		eq(x, "workflows", len(got(r.Workflows(ctx, []backend.WorkflowKey{w.Key()}))(x)), 0)
		eq(x, "runs", len(got(r.Runs(ctx, []backend.RunKey{run}))(x)), 0)
		eq(x, "chain", len(got(r.RunsOf(ctx, w.Key(), 0, 10))(x)), 0)
		eq(x, "count", got(r.CountWorkflows(ctx, acme, backend.WorkflowFilter{}, 10))(x), 1)
	})
	eq(x, "remnant of the workflow", of("w1", ""), rest)
	eq(x, "remnant of the run", of("", "r1"), rest)
	eq(x, "remnant of another", of("w2", "r2"), nil)
	_, same := newFlow(acme, "1", at)
	x.stale("the same workflow", same)
	_, sameRun := newFlow(acme, "3", at)
	sameRun.NewRuns[0].ID, sameRun.NewWorkflows[0].RunID = "r1", "r1"
	x.stale("the same run of another workflow", sameRun)

	page := x.left(2)
	eq(x, "a page", []any{len(page.Runs), len(page.Records), len(page.Batches), page.More}, []any{1, 2, 0, true})
	x.apply(&backend.Changes{GoneRecords: page.Records})
	page = x.left(4)
	eq(x, "the next", []any{len(page.Records), len(page.Batches), page.More}, []any{3, 1, false})
	x.apply(&backend.Changes{GoneRecords: page.Records, GoneBatches: page.Batches, GoneRemnants: []backend.RunKey{run}})
	eq(x, "remnants behind", x.left(10), backend.Remnants{})
	x.view(func(r backend.Reader) {
		records, bytes, err := r.HistorySize(ctx, w.Key())
		eq(x, "history", []any{records, bytes, err}, []any{int64(0), int64(0), nil})
		records, _, _ = r.HistorySize(ctx, other.Key())
		eq(x, "the other's history", records, int64(2))
		eq(x, "effects", len(got(r.Effects(ctx, []backend.WaitKey{{Tenant: acme, RunID: "r1", Effect: "a"}}))(x)), 0)
		eq(x, "open effects", len(got(r.OpenEffects(ctx, run, 10))(x)), 0)
		eq(x, "names", len(got(r.EffectNames(ctx, run, 10))(x)), 0)
		eq(x, "last failure", got(r.LastFailure(ctx, run))(x), "")
		eq(x, "batches", len(got(r.Batches(ctx, []backend.BatchKey{{Tenant: acme, RunID: "r1", ID: "b1"}, {Tenant: acme, RunID: "r2", ID: "b1"}}))(x)), 1)
	})
	x.apply(same)
}
