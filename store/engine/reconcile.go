package engine

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// armedBy judges that the record at a.ArmedSeq arms exactly that timer at that instant, and answers the arming while nothing ended it, nil otherwise.
func (u *unit) armedBy(ctx context.Context, f *flow, timerID string, a store.Arming) (*backend.Timer, error) {
	key := backend.RecordKey{Tenant: f.Tenant, WorkflowID: f.ID, Seq: a.ArmedSeq}
	records, err := u.tx.RecordsAt(ctx, []backend.RecordKey{key})
	if err != nil {
		return nil, err
	}
	r, ok := records[key]
	t, err := u.armingOf(ctx, f, r)
	switch {
	case err != nil:
		return nil, err
	case !ok || t == nil || t.TimerID != timerID || !t.FireAt.Equal(a.FireAt):
		return nil, rendezvous.InvalidField("armed_seq", "record %d does not arm timer %q at %s", a.ArmedSeq, timerID, rendezvous.FormatInstant(a.FireAt)).
			With("value", a.ArmedSeq)
	case r.RunID != f.RunID:
		return nil, nil
	}
	live, err := u.liveArmings(ctx, f)
	if err != nil {
		return nil, err
	}
	if now := live[timerID]; now != nil && now.ArmedSeq == a.ArmedSeq {
		return now, nil
	}
	return nil, nil
}

// armingOf is what a record arms, nil for nothing.
func (u *unit) armingOf(ctx context.Context, f *flow, r rendezvous.Record) (*backend.Timer, error) {
	var id, at string
	switch r.Kind {
	case rendezvous.TimerStarted:
		var d rendezvous.TimerStartedData
		if err := rendezvous.DecodeData(r, &d); err != nil {
			return nil, err
		}
		id, at = d.TimerID, d.FireAt
	case rendezvous.WaitRegistered:
		var d rendezvous.WaitRegisteredData
		if err := rendezvous.DecodeData(r, &d); err != nil {
			return nil, err
		}
		id, at = rendezvous.WaitTimerID(r.RunID, r.Effect), d.Deadline
	case rendezvous.RunStarted:
		var d rendezvous.RunStartedData
		if err := rendezvous.DecodeData(r, &d); err != nil {
			return nil, err
		}
		id, at = rendezvous.RunTimerID(r.RunID), d.Deadline
	case rendezvous.RunReopened:
		key := backend.RunKey{Tenant: f.Tenant, ID: r.RunID}
		runs, err := u.tx.Runs(ctx, []backend.RunKey{key})
		if err != nil || runs[key] == nil {
			return nil, err
		}
		due, err := u.deadlineOf(ctx, f, runs[key])
		if err != nil || due.IsZero() {
			return nil, err
		}
		id, at = rendezvous.RunTimerID(r.RunID), rendezvous.FormatInstant(due)
	}
	if at == "" {
		return nil, nil
	}
	due, err := rendezvous.ParseInstant("fire_at", at)
	if err != nil {
		return nil, corruptInstant(r, err)
	}
	return &backend.Timer{TimerID: id, FireAt: due, ArmedSeq: r.Seq}, nil
}

// liveArmings is what the history of f's current run says is armed, by timer id. It is read by index, whatever the history's length.
func (u *unit) liveArmings(ctx context.Context, f *flow) (map[string]*backend.Timer, error) {
	run := backend.RunKey{Tenant: f.Tenant, ID: f.RunID}
	live := map[string]*backend.Timer{}
	add := func(r rendezvous.Record, class rendezvous.TimerClass) error {
		t, err := u.armingOf(ctx, f, r)
		if t != nil {
			t.Class, t.Effect = class, r.Effect
			live[t.TimerID] = t
		}
		return err
	}
	outstanding, err := u.tx.OutstandingTimers(ctx, run, rendezvous.MaxTimersPerRun)
	if err != nil {
		return nil, err
	}
	for _, r := range outstanding {
		if r.Seq > f.Reopened { // a reopening arms anew what was outstanding before it
			if err := add(r, rendezvous.TimerAuthor); err != nil {
				return nil, err
			}
		}
	}
	waits, err := u.tx.WaitsOf(ctx, []backend.RunKey{run})
	if err != nil {
		return nil, err
	}
	var keys []backend.WaitKey
	for _, w := range waits {
		if w.Corrupt != nil {
			return nil, w.Corrupt
		}
		if !w.Deadline.IsZero() {
			keys = append(keys, w.Key())
		}
	}
	if len(keys) > 0 {
		effects, err := u.tx.Effects(ctx, keys)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			if s := standingOf(effects[key]); s.opened != nil && s.closed == nil {
				if err := add(*s.opened, rendezvous.TimerWait); err != nil {
					return nil, err
				}
			}
		}
	}
	runs, err := u.tx.Runs(ctx, []backend.RunKey{run})
	if err != nil || runs[run] == nil {
		return nil, cmp.Or(err, error(backend.ErrStale))
	}
	due, err := u.deadlineOf(ctx, f, runs[run])
	if err == nil && !due.IsZero() {
		t := &backend.Timer{TimerID: rendezvous.RunTimerID(f.RunID), Class: rendezvous.TimerRun, FireAt: due, ArmedSeq: max(f.Reopened, runs[run].FirstSeq)}
		live[t.TimerID] = t
	}
	return live, err
}

// Bounds of a page of ReconcileTimers, in workflows.
const (
	defaultReconciled = 500
	mostReconciled    = 5000
)

// ReconcileTimers implements [store.TimerQueue].
func (h *poolHandle) ReconcileTimers(
	ctx context.Context, shards []store.ShardEpoch, deep bool, after *store.WorkflowPosition, limit int,
) (store.Reconciled, error) {
	limit, err := rendezvous.PageLimit(limit, defaultReconciled, mostReconciled)
	if err != nil {
		return store.Reconciled{}, err
	}
	if err := h.timerPool(); err != nil {
		return store.Reconciled{}, err
	}
	var passed []store.ShardEpoch
	lost, _, err := h.fenced(ctx, "reconcile_timers", shards, func(_ context.Context, _ *unit, own []store.ShardEpoch) error {
		passed = own
		return nil
	})
	out := store.Reconciled{Lost: lost}
	if err != nil {
		return out, err
	}
	heads, suspects, err := h.suspects(ctx, numbersOf(passed), deep, after, limit)
	if err != nil {
		return out, err
	}
	out.Looked = len(heads)
	if len(heads) == limit {
		last := heads[limit-1]
		out.Next = &store.WorkflowPosition{Shard: last.Shard, Tenant: last.Key.Tenant, WorkflowID: last.Key.ID}
	}
	for _, key := range suspects {
		var one store.TimerRepairs
		_, notices, err := h.fenced(ctx, "reconcile_timers", passed, func(ctx context.Context, u *unit, _ []store.ShardEpoch) (err error) {
			one, err = u.reconcile(ctx, key)
			return err
		})
		if err != nil && !itemsFault(err) {
			return out, err
		}
		if err != nil {
			out.Repairs.Unreadable++ // it stops neither the pass nor a start-up
			continue
		}
		out.Repairs.Missing += one.Missing
		out.Repairs.Orphan += one.Orphan
		out.Repairs.Count += one.Count
		out.Notices.Append(notices)
	}
	return out, nil
}

// suspects are the live workflows of a page, and those of them whose rows are not as many as the count says; all of them where deep.
func (h *poolHandle) suspects(
	ctx context.Context, shards []int, deep bool, after *store.WorkflowPosition, limit int,
) (heads []backend.WorkflowHead, suspects []backend.WorkflowKey, err error) {
	var at backend.HeadPosition
	if after != nil {
		at = backend.HeadPosition{Set: true, Shard: after.Shard, Key: backend.WorkflowKey{Tenant: after.Tenant, ID: after.WorkflowID}}
	}
	err = h.view(ctx, "reconcile_timers", func(ctx context.Context, r backend.Reader) error {
		heads, suspects = nil, nil
		for _, status := range [...]rendezvous.Status{rendezvous.StatusRunning, rendezvous.StatusPaused} {
			page, err := r.Heads(ctx, backend.Owned{Shards: shards}, status, at, limit)
			if err != nil {
				return err
			}
			heads = append(heads, page...)
		}
		slices.SortFunc(heads, func(a, b backend.WorkflowHead) int {
			return cmp.Or(cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Key.Tenant, b.Key.Tenant), cmp.Compare(a.Key.ID, b.Key.ID))
		})
		heads = heads[:min(limit, len(heads))]
		keys := make([]backend.WorkflowKey, len(heads))
		for i, w := range heads {
			keys[i] = w.Key
		}
		if deep || len(keys) == 0 {
			suspects = keys
			return nil
		}
		flows, err := r.Workflows(ctx, keys)
		if err != nil {
			return err
		}
		count, err := countTimers(ctx, r, keys, flows)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if f := flows[key]; f != nil && (f.Corrupt != nil || f.LiveTimers != count[key]) {
				suspects = append(suspects, key)
			}
		}
		return nil
	})
	return heads, suspects, err
}

// mostCounted is how many timers are read at once to be counted.
const mostCounted = 5000

// countTimers counts the rows of workflows, in parts of about as many as mostCounted: a run may have a thousand and more.
func countTimers(
	ctx context.Context, r backend.Reader, keys []backend.WorkflowKey, flows map[backend.WorkflowKey]*backend.Workflow,
) (map[backend.WorkflowKey]int, error) {
	count := map[backend.WorkflowKey]int{}
	for len(keys) > 0 {
		n := 0
		for expected := 0; n < len(keys) && expected < mostCounted; n++ {
			if f := flows[keys[n]]; f != nil {
				expected += f.LiveTimers
			}
		}
		rows, err := r.TimersOf(ctx, keys[:n], time.Time{})
		if err != nil {
			return nil, err
		}
		for _, t := range rows {
			count[backend.WorkflowKey{Tenant: t.Tenant, ID: t.WorkflowID}]++
		}
		keys = keys[n:]
	}
	return count, nil
}

// reconcile makes a workflow's timer rows and their count what its history says.
func (u *unit) reconcile(ctx context.Context, key backend.WorkflowKey) (store.TimerRepairs, error) {
	var did store.TimerRepairs
	if err := u.lock(ctx, []backend.WorkflowKey{key}); err != nil {
		return did, err
	}
	f := u.flows[key]
	if f == nil || f.Corrupt == nil && f.Status.Terminal() {
		return did, nil
	}
	if f.Corrupt != nil {
		return did, f.Corrupt
	}
	live, err := u.liveArmings(ctx, f)
	if err != nil {
		return did, err
	}
	rows, err := u.tx.TimersOf(ctx, []backend.WorkflowKey{key}, time.Time{})
	if err != nil {
		return did, err
	}
	there := map[string]struct{}{}
	for _, t := range rows {
		want := live[t.TimerID]
		switch {
		case want != nil && t.Corrupt == nil && t.RunID == f.RunID && t.ArmedSeq == want.ArmedSeq && t.FireAt.Equal(want.FireAt):
			there[t.TimerID] = struct{}{}
		case want == nil:
			u.dropTimer(t.Key())
			did.Orphan++
		}
	}
	for id, t := range live {
		if _, ok := there[id]; !ok {
			u.writeTimer(f, *t)
			did.Missing++
		}
	}
	if f.LiveTimers != len(live) {
		f.LiveTimers = len(live)
		u.saveFlow(f)
		did.Count++
	}
	return did, nil
}
