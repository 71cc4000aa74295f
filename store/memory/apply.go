package memory

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// transaction is one turn with the right to change.
type transaction struct {
	reader
	locked     map[backend.WorkflowKey]struct{}
	shardLocks map[backend.ShardKey]backend.ShardLock
	timerLocks map[backend.TimerKey]struct{}
	pushLocks  map[backend.PushKey]struct{}
	changes    *backend.Changes
	mark       *string // of a copy, to be set; nil for none
}

// Apply implements [backend.Tx]: it judges all changes and keeps them for the commit, so that nothing ever has to be undone.
func (t *transaction) Apply(ctx context.Context, c *backend.Changes) error {
	if err := alive(ctx); err != nil {
		return err
	}
	if t.changes != nil {
		return misuse("applies twice")
	}
	if err := t.checkLocks(c); err != nil {
		return err
	}
	if t.stale(c) {
		return backend.ErrStale
	}
	t.wakes(c)
	t.changes = c
	return nil
}

// checkLocks: what belongs to a workflow is written only under its row's lock, or with the row itself (R7). A take, a hold or a failed attempt leaves
// a wait's claim as it is and needs none.
func (t *transaction) checkLocks(c *backend.Changes) error {
	held := make(map[backend.WorkflowKey]struct{}, len(t.locked)+len(c.NewWorkflows))
	for k := range t.locked {
		held[k] = struct{}{}
	}
	for _, w := range c.NewWorkflows {
		held[w.Key()] = struct{}{}
	}
	var need []backend.WorkflowKey
	for _, w := range c.Workflows {
		need = append(need, w.Key())
	}
	for _, r := range slices.Concat(c.NewRuns, c.Runs) {
		need = append(need, backend.WorkflowKey{Tenant: r.Tenant, ID: r.WorkflowID})
	}
	for _, r := range c.Records {
		need = append(need, backend.WorkflowKey{Tenant: r.Tenant, ID: r.WorkflowID})
	}
	for _, w := range slices.Concat(c.NewWaits, c.GoneWaits) {
		need = append(need, t.flowOf(w))
	}
	for _, w := range c.Waits {
		if t.moves(w) {
			need = append(need, t.flowOf(w))
		}
	}
	for _, x := range c.Timers {
		need = append(need, flowOfTimer(x.Key()))
	}
	for _, k := range c.GoneTimers {
		need = append(need, flowOfTimer(k))
	}
	need = append(need, c.GoneWorkflows...)
	for _, k := range need {
		if _, ok := held[k]; !ok {
			return misuse(fmt.Sprintf("changes what belongs to workflow %q of tenant %q without its lock", k.ID, k.Tenant))
		}
	}
	if err := t.checkPushLocks(c, held); err != nil {
		return err
	}
	return t.checkTimerLocks(c)
}

// moves reports whether a wait is claimed for, reopened, or given another event.
func (t *transaction) moves(w *backend.Wait) bool {
	old := t.waitsByNum[w.Number]
	if old == nil || w.Corrupt != nil {
		return false // stale, or only its failures are written
	}
	return (old.Held == nil) != (w.Held == nil) || old.Held != nil && *old.Held != *w.Held
}

// flowOf is the workflow of a wait; one that does not decode says only which wait it is.
func (t *transaction) flowOf(w *backend.Wait) backend.WorkflowKey {
	if old := t.waitsByNum[w.Number]; old != nil && w.WorkflowID == "" {
		w = old
	}
	return backend.WorkflowKey{Tenant: w.Tenant, ID: w.WorkflowID}
}

// stale reports whether something to insert is there already, or something to change moved on.
func (t *transaction) stale(c *backend.Changes) bool {
	return taken(t.workflows, c.NewWorkflows) || taken(t.runs, c.NewRuns) || taken(t.events, c.NewEvents) || taken(t.waits, c.NewWaits) ||
		taken(t.batches, c.NewBatches) || t.recorded(c.Records) || absent(t.workflows, c.Workflows) || absent(t.runs, c.Runs) ||
		moved(t.events, c.Events, eventVersion) || moved(t.waits, c.Waits, waitVersion) || moved(t.waits, c.GoneWaits, waitVersion) ||
		taken(t.leases, c.NewShardLeases) || absent(t.leases, c.ShardLeases) ||
		t.stalePushes(c) || t.pruned(c)
}

type keyed[K comparable] interface{ Key() K }

// taken reports whether one of the rows is there already, or twice among them.
func taken[K comparable, V keyed[K]](rows map[K]V, fresh []V) bool {
	seen := make(map[K]struct{}, len(fresh))
	for _, row := range fresh {
		_, before := rows[row.Key()]
		_, twice := seen[row.Key()]
		if before || twice {
			return true
		}
		seen[row.Key()] = struct{}{}
	}
	return false
}

func absent[K comparable, V keyed[K]](rows map[K]V, changed []V) bool {
	return slices.ContainsFunc(changed, func(row V) bool { _, ok := rows[row.Key()]; return !ok })
}

func eventVersion(e *backend.Event) [2]int64 { return [2]int64{e.Number, e.Version} }
func waitVersion(w *backend.Wait) [2]int64   { return [2]int64{w.Number, w.Version} }

// moved reports whether one of the rows is no longer what was read.
func moved[K comparable, V keyed[K]](rows map[K]V, changed []V, version func(V) [2]int64) bool {
	return slices.ContainsFunc(changed, func(row V) bool {
		now, ok := rows[row.Key()]
		return !ok || version(now) != version(row)
	})
}

// recorded reports whether a seq, or an effect's opening or closing, is there already or twice among the records.
func (t *transaction) recorded(records []*backend.Record) bool {
	type place struct {
		flow backend.WorkflowKey
		seq  int64
	}
	type turn struct {
		effect  backend.WaitKey
		attempt int
		phase   rendezvous.Phase
	}
	places, turns := map[place]struct{}{}, map[turn]struct{}{}
	for _, r := range records {
		flow := backend.WorkflowKey{Tenant: r.Tenant, ID: r.WorkflowID}
		if _, twice := places[place{flow, r.Seq}]; twice || t.histories[flow].has(r.Seq) {
			return true
		}
		places[place{flow, r.Seq}] = struct{}{}
		if r.Kind.Phase() == rendezvous.PhaseNone {
			continue
		}
		effect := effectOf(r)
		if _, twice := turns[turn{effect, r.Attempt, r.Kind.Phase()}]; twice {
			return true
		}
		turns[turn{effect, r.Attempt, r.Kind.Phase()}] = struct{}{}
		if slices.ContainsFunc(t.effects[effect], func(o *record) bool { return o.Attempt == r.Attempt && o.Kind.Phase() == r.Kind.Phase() }) {
			return true
		}
	}
	return false
}

func effectOf(r *backend.Record) backend.WaitKey {
	return backend.WaitKey{Tenant: r.Tenant, RunID: r.RunID, Effect: r.Effect}
}

func (h *history) has(seq int64) bool {
	if h == nil {
		return false
	}
	i := h.find(seq)
	return i < len(h.records) && h.records[i].Seq == seq
}

// commit carries out what Apply judged. Records come before events are shed, and marks that go before marks that come.
func (t *transaction) commit() {
	if t.mark != nil {
		t.copying = *t.mark
	}
	c := t.changes
	if c == nil {
		return
	}
	for _, w := range c.NewWorkflows {
		t.linkWorkflow(copyWorkflow(w))
	}
	for _, r := range c.NewRuns {
		t.linkRun(copyRun(r))
	}
	for _, b := range c.NewBatches {
		t.batches[b.Key()] = copyBatch(b)
	}
	for _, e := range c.NewEvents {
		fresh := copyEvent(e, true)
		fresh.Version = 1
		t.linkEvent(fresh)
	}
	for _, r := range c.Records {
		t.write(r)
	}
	for _, e := range c.NewEvents {
		if e.Shed {
			t.events[e.Key()].Payload = nil
		}
	}
	for _, w := range c.Workflows {
		t.changeWorkflow(w)
	}
	for _, r := range c.Runs {
		t.unlinkRun(t.runs[r.Key()])
		t.linkRun(copyRun(r))
	}
	for _, e := range c.Events {
		t.changeEvent(e)
	}
	for _, w := range c.GoneWaits {
		t.unlinkWait(t.waits[w.Key()])
	}
	for _, w := range c.NewWaits {
		fresh := copyWait(w)
		fresh.Version = 1
		t.linkWait(fresh)
	}
	for _, w := range c.Waits {
		t.changeWait(w)
	}
	t.commitMarks(c)
	t.changeTimers(c)
	t.changeShards(c)
	t.changePushes(c)
	t.prune(c)
}

// write adds a record, with a copy of the payload it takes from an event.
func (t *transaction) write(r *backend.Record) {
	rec := &record{Record: copyRecord(r.Record)}
	if e := t.eventsByNum[r.PayloadOf]; e != nil {
		rec.Payload, rec.ContentType = bytes.Clone(e.Payload), e.ContentType
	}
	key := backend.WorkflowKey{Tenant: r.Tenant, ID: r.WorkflowID}
	h := t.histories[key]
	if h == nil {
		h = &history{}
		t.histories[key] = h
	}
	h.records = slices.Insert(h.records, h.find(rec.Seq), rec)
	h.bytes += int64(len(rec.Data) + len(rec.Payload))
	if r.Kind.Phase() != rendezvous.PhaseNone {
		t.linkEffect(effectOf(r), rec)
	}
	t.linkTimerRecord(r.Tenant, rec)
}

// changeWorkflow writes a workflow's row. Most appends leave its places in the indexes alone.
func (t *transaction) changeWorkflow(w *backend.Workflow) {
	old, next := t.workflows[w.Key()], copyWorkflow(w)
	if old.StartedAt.Equal(next.StartedAt) && old.LeaseOwner == next.LeaseOwner && old.LeaseExpires.Equal(next.LeaseExpires) &&
		old.Status == next.Status && old.ClosedAt.Equal(next.ClosedAt) && old.Corrupt == nil && next.Corrupt == nil {
		t.workflows[w.Key()] = next
		return
	}
	t.unlinkWorkflow(old)
	t.linkWorkflow(next)
}

// changeEvent writes an event's row; what was not read with it, its payload and content type, stays. Of a row that does not decode only where it
// stands and what counts its failures is written.
func (t *transaction) changeEvent(e *backend.Event) {
	old := t.events[e.Key()]
	t.unlinkEvent(old)
	next := *old
	if e.Corrupt == nil {
		next = *copyEvent(e, false)
		next.ContentType, next.Payload = old.ContentType, old.Payload
	} else {
		next.State, next.DeadReason, next.DeadDetail, next.DeadAt = e.State, e.DeadReason, e.DeadDetail, e.DeadAt
		next.OfferFailures, next.Take, next.TakeUntil, next.TakeOpen, next.Takes = e.OfferFailures, e.Take, e.TakeUntil, e.TakeOpen, e.Takes
	}
	if next.Version = old.Version + 1; e.Shed {
		next.Payload = nil
	}
	if e.Purged {
		next.Keys = nil
	}
	t.linkEvent(&next)
}

// changeWait writes a wait's row; of one that does not decode only what counts its failures.
func (t *transaction) changeWait(w *backend.Wait) {
	old := t.waits[w.Key()]
	t.unlinkWait(old)
	next := *old
	if w.Corrupt == nil {
		next = *copyWait(w)
	} else {
		next.Attempts, next.NextAttemptAt, next.LastError, next.QuarantinedAt = w.Attempts, w.NextAttemptAt, w.LastError, w.QuarantinedAt
		next.Take, next.TakeUntil, next.TakeSettled = w.Take, w.TakeUntil, w.TakeSettled
	}
	next.Version = old.Version + 1
	t.linkWait(&next)
}

func (t *transaction) commitMarks(c *backend.Changes) {
	for _, k := range c.Unwoken {
		t.unlinkMark(t.woken[k])
		delete(t.woken, k)
	}
	for _, m := range c.Woken {
		next, old := copyWoken(m), t.woken[m.Key()]
		if old != nil {
			next.Since = old.Since
			if !m.Anew {
				next.Notices = old.Notices
				if old.NextNoticeAt.Before(next.NextNoticeAt) {
					next.NextNoticeAt = old.NextNoticeAt
				}
			}
			t.unlinkMark(old)
		}
		t.linkMark(next)
	}
	for _, m := range c.MarkedWoken {
		if old := t.woken[m.Key()]; old != nil {
			t.unlinkMark(old)
			old.Notices, old.NextNoticeAt = m.Notices, m.NextNoticeAt
			t.linkMark(old)
		}
	}
}
