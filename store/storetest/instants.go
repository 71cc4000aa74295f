package storetest

import (
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// instants are calls of every verb that takes the instant it is made at (R2).
var instants = map[string]func(f *Fix, r *Flow, e rendezvous.Event, at time.Time) error{
	"Buffer": func(f *Fix, _ *Flow, _ rendezvous.Event, at time.Time) error {
		_, err := f.Buffer(ctx, EventOf("x", K("o", "1")), at)
		return err
	},
	"BufferBatch": func(f *Fix, _ *Flow, _ rendezvous.Event, at time.Time) error {
		_, err := f.H.Store.BufferBatch(ctx, []store.BufferItem{{Tenant: f.Name(), Event: EventOf("x")}, {Tenant: f.Name(), Event: EventOf("x")}}, at)
		return err
	},
	"DeliverTo": func(f *Fix, r *Flow, _ rendezvous.Event, at time.Time) error {
		_, err := f.DeliverTo(ctx, r.ID, EventOf("x"), true, at)
		return err
	},
	"DeliverToBatch": func(f *Fix, r *Flow, _ rendezvous.Event, at time.Time) error {
		_, err := f.H.Store.DeliverToBatch(ctx, []store.DeliverItem{{Tenant: f.Name(), RunID: r.ID, Event: EventOf("x"), Keep: true}}, at)
		return err
	},
	"MatchWaiter": func(f *Fix, _ *Flow, e rendezvous.Event, at time.Time) error {
		_, err := f.MatchWaiter(ctx, e.EventID, at)
		return err
	},
	"ErasePayload": func(f *Fix, _ *Flow, e rendezvous.Event, at time.Time) error {
		_, err := f.ErasePayload(ctx, e.EventID, nil, at)
		return err
	},
	"OfferBatch": func(f *Fix, _ *Flow, e rendezvous.Event, at time.Time) error {
		_, err := f.H.Store.OfferBatch(ctx, f.Items(e), at)
		return err
	},
	"DeliverParked": func(f *Fix, r *Flow, _ rendezvous.Event, at time.Time) error {
		_, err := f.H.Store.DeliverParked(ctx, []store.WaitRef{{Tenant: f.Name(), WaitID: r.WaitID("w")}}, at)
		return err
	},
	"ParkWait": func(f *Fix, r *Flow, _ rendezvous.Event, at time.Time) error {
		_, err := f.H.Store.ParkWait(ctx, []store.ParkItem{{Tenant: f.Name(), WaitID: r.WaitID("w"), Cause: store.ParkLeased}}, at)
		return err
	},
	"RegisterWait": func(f *Fix, r *Flow, _ rendezvous.Event, at time.Time) error {
		_, err := f.RegisterWait(ctx, store.Registration{Wait: r.Wait("v", "y")}, at)
		return err
	},
	"RegisterBatch": func(f *Fix, r *Flow, _ rendezvous.Event, at time.Time) error {
		_, err := f.H.Store.RegisterBatch(ctx, []store.RegisterItem{{Tenant: f.Name(), Registration: store.Registration{Wait: r.Wait("v", "y")}}}, at)
		return err
	},
	"Subscribe": func(f *Fix, r *Flow, _ rendezvous.Event, at time.Time) error {
		_, err := f.Subscribe(ctx, store.Registration{Wait: r.Wait("v", "y")}, at)
		return err
	},
	"ClaimFor": func(f *Fix, r *Flow, _ rendezvous.Event, at time.Time) error {
		_, err := f.ClaimFor(ctx, r.WaitID("w"), at)
		return err
	},
	"Unsubscribe": func(f *Fix, r *Flow, _ rendezvous.Event, at time.Time) error {
		_, err := f.Unsubscribe(ctx, r.WaitID("w"), 0, "", at)
		return err
	},
	"UnsubscribeRun": func(f *Fix, r *Flow, _ rendezvous.Event, at time.Time) error {
		_, _, err := f.UnsubscribeRun(ctx, r.ID, 0, nil, at)
		return err
	},
	"StartRun": func(f *Fix, _ *Flow, _ rendezvous.Event, at time.Time) error {
		_, err := f.StartRun(ctx, store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "t"}, at)
		return err
	},
	"Append": func(f *Fix, r *Flow, _ rendezvous.Event, at time.Time) error {
		_, err := f.Append(ctx, store.Append{RunID: r.ID, ExpectedSeq: r.Head(), BatchID: ID("batch"), Records: recs(r.Noted("n"))}, at)
		return err
	},
	"Conclude": func(f *Fix, r *Flow, _ rendezvous.Event, at time.Time) error {
		_, err := f.Conclude(ctx, r.Conclusion(rendezvous.StatusCompleted), at)
		return err
	},
	"ContinueAsNew": func(f *Fix, r *Flow, _ rendezvous.Event, at time.Time) error {
		_, err := f.ContinueAsNew(ctx, store.Continuation{RunID: r.ID, ExpectedSeq: r.Head(), BatchID: ID("batch"), NextRun: ID("run")}, at)
		return err
	},
	"CancelRun": func(f *Fix, r *Flow, _ rendezvous.Event, at time.Time) error {
		_, err := f.CancelRun(ctx, r.ID, nil, "", true, at)
		return err
	},
	"PauseRun": func(f *Fix, r *Flow, _ rendezvous.Event, at time.Time) error {
		_, err := f.PauseRun(ctx, r.ID, nil, "", at)
		return err
	},
	"ResumeRun": func(f *Fix, r *Flow, _ rendezvous.Event, at time.Time) error {
		_, err := f.ResumeRun(ctx, r.ID, nil, "", at)
		return err
	},
}

// instantsOutside: what a row cannot be stamped with on every backend is refused before any backend sees it.
func instantsOutside(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Waits("w", "x", K("o", "1"))
	e := f.PutNew("x", K("o", "2"))
	depths, row := must(h.Store.Depths(ctx))(t, "depths"), r.Describe()
	start := time.Time{}
	for _, at := range []time.Time{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), start.Add(-1), time.Date(-5000, 1, 1, 0, 0, 0, 0, time.UTC), start.Add(5), start.Add(999)} {
		for verb, call := range instants {
			err := call(f, r, e, at)
			code(t, verb+" at "+at.String(), err, rendezvous.CodeInvalid, "field", "at")
			if d := rendezvous.AsError(err).Details; d["limit"] == nil || d["value"] == nil {
				t.Errorf("%s: details %v without limit or value", verb, d)
			}
		}
	}
	eq(t, "depths", must(h.Store.Depths(ctx))(t, "depths"), depths)
	eq(t, "the run", r.Describe(), row)
	first := EventOf("x", K("o", "3"))
	eq(t, "an event at the first instant", must(f.Buffer(ctx, first, start.Add(time.Microsecond)))(t, "buffer").Outcome, store.BufferNew)
	eq(t, "received at", f.Stored(first.EventID).ReceivedAt, start.Add(time.Microsecond))
	last := EventOf("x", K("o", "4"))
	end := time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
	must(f.Buffer(ctx, last, end.Add(999)))(t, "buffer")
	eq(t, "received at", f.Stored(last.EventID).ReceivedAt, end)
}
