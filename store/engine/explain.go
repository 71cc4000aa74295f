package engine

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// ExplainEvent implements [store.Explainer].
func (t *tenant) ExplainEvent(ctx context.Context, id rendezvous.EventID) (store.Explanation, error) {
	if err := checkEventID(id); err != nil {
		return store.Explanation{}, err
	}
	return t.explain(ctx, "explain_event", func(ctx context.Context, x *explaining) (store.Explanation, error) {
		e, err := x.stored(ctx, id)
		if err != nil {
			return store.Explanation{}, err
		}
		out, err := x.event(ctx, e)
		if err != nil || !wanting(e, out.Verdict) {
			return out, err
		}
		out.NearMisses, out.Partial, err = x.nearWaits(ctx, e)
		return out, err
	})
}

// wanting reports whether near misses tell why an event met nobody; of one that nobody wanted in time they are asked most.
func wanting(e *backend.Event, v rendezvous.Verdict) bool {
	switch v {
	case rendezvous.VerdictNoWait, rendezvous.VerdictKept:
		return true
	case rendezvous.VerdictDead:
		return !e.Purged && (e.DeadReason == rendezvous.DeadUnclaimed || e.DeadReason == rendezvous.DeadExpired)
	}
	return false
}

// ExplainWait implements [store.Explainer].
func (t *tenant) ExplainWait(ctx context.Context, id rendezvous.WaitID) (store.Explanation, error) {
	if err := checkWaitID(id); err != nil {
		return store.Explanation{}, err
	}
	return t.explain(ctx, "explain_wait", func(ctx context.Context, x *explaining) (store.Explanation, error) {
		w, err := x.remains(ctx, id)
		if err != nil {
			return store.Explanation{}, err
		}
		out, err := x.wait(ctx, w)
		if err != nil || out.Verdict != rendezvous.VerdictNoEvent && out.Verdict != rendezvous.VerdictOverdue {
			return out, err
		}
		out.NearMisses, out.Partial, err = x.nearEvents(ctx, w)
		return out, err
	})
}

// ExplainPair implements [store.Explainer].
func (t *tenant) ExplainPair(ctx context.Context, event rendezvous.EventID, wait rendezvous.WaitID) (store.Explanation, error) {
	if err := checkEventID(event); err != nil {
		return store.Explanation{}, err
	}
	if err := checkWaitID(wait); err != nil {
		return store.Explanation{}, err
	}
	return t.explain(ctx, "explain_pair", func(ctx context.Context, x *explaining) (store.Explanation, error) {
		e, err := x.stored(ctx, event)
		if err != nil {
			return store.Explanation{}, err
		}
		w, err := x.remains(ctx, wait)
		switch {
		case err != nil:
			return store.Explanation{}, err
		case e == nil:
			return x.event(ctx, nil)
		case w.Wait == nil:
			return x.wait(ctx, w)
		}
		return x.pair(ctx, e, w)
	})
}

// explaining is one explanation: what it has read of one snapshot (SW-32).
type explaining struct {
	r      backend.Reader
	tenant string
	now    time.Time
	plan   *plan
}

func (t *tenant) explain(
	ctx context.Context, verb string, fn func(ctx context.Context, x *explaining) (store.Explanation, error),
) (out store.Explanation, err error) {
	err = t.view(ctx, verb, func(ctx context.Context, r backend.Reader) (err error) {
		x := &explaining{r: r, tenant: t.name, now: r.Now(), plan: &plan{x: newIndex(r, r.Now())}}
		out, err = fn(ctx, x)
		return err
	})
	if err != nil {
		return store.Explanation{}, err
	}
	return out, nil
}

// stored is the event's row, nil when it never was buffered.
func (x *explaining) stored(ctx context.Context, id rendezvous.EventID) (*backend.Event, error) {
	key := backend.EventKey{Tenant: x.tenant, Source: id.Source, ID: id.ID}
	rows, err := x.r.EventsByKey(ctx, []backend.EventKey{key}, false)
	if e := rows[key]; err == nil && e != nil {
		return e, e.Corrupt
	}
	return nil, err
}

// run is a run's row, nil when no run of that id was started.
func (x *explaining) run(ctx context.Context, id string) (*backend.Run, error) {
	key := backend.RunKey{Tenant: x.tenant, ID: id}
	rows, err := x.r.Runs(ctx, []backend.RunKey{key})
	return rows[key], err
}

// flow is a workflow's row, nil when there is none.
func (x *explaining) flow(ctx context.Context, id string) (*backend.Workflow, error) {
	key := backend.WorkflowKey{Tenant: x.tenant, ID: id}
	rows, err := x.r.Workflows(ctx, []backend.WorkflowKey{key})
	if f := rows[key]; err == nil && f != nil {
		return f, f.Corrupt
	}
	return nil, err
}

// standing is how a wait stands in the history.
func (x *explaining) standing(ctx context.Context, id rendezvous.WaitID) (standing, error) {
	records, err := x.effect(ctx, id)
	return standingOf(records), err
}

// effect is the records that open and close an effect.
func (x *explaining) effect(ctx context.Context, id rendezvous.WaitID) ([]rendezvous.Record, error) {
	key := backend.WaitKey{Tenant: x.tenant, RunID: id.RunID, Effect: id.Effect}
	effects, err := x.r.Effects(ctx, []backend.WaitKey{key})
	return effects[key], err
}

// runFacts is what an explanation says of a run.
func (x *explaining) runFacts(ctx context.Context, id string) (*store.RunFacts, error) {
	run, err := x.run(ctx, id)
	if err != nil {
		return nil, err
	}
	f := &store.RunFacts{RunID: id, State: rendezvous.RunStateUnknown}
	if run != nil {
		f.State, f.WorkflowID, f.Outcome, f.SealedAt = rendezvous.RunStateOpen, run.WorkflowID, run.Outcome, run.SealedAt
	}
	if run != nil && run.Status.Terminal() {
		f.State = rendezvous.RunStateSealed
	}
	return f, nil
}

func eventID(e *backend.Event) *rendezvous.EventID {
	return &rendezvous.EventID{Source: e.Source, ID: e.ID}
}

func waitID(w *backend.Wait) *rendezvous.WaitID {
	return &rendezvous.WaitID{RunID: w.RunID, Effect: w.Effect}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
