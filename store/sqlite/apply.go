package sqlite

import (
	"context"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Apply implements [backend.Tx]. A record that copies an event's payload comes before that is shed, and marks that go before marks that come. What is not
// the row that was read any more, or is there already, is [backend.ErrStale]: the caller's error makes the savepoint go.
func (t *transaction) Apply(ctx context.Context, c *backend.Changes) error {
	if err := alive(ctx); err != nil {
		return err
	}
	w := writer{t: t}
	w.flows(c)
	for _, e := range c.NewEvents {
		w.insertEvent(e)
	}
	w.records(c)
	for _, e := range c.Events {
		w.updateEvent(e)
	}
	for _, x := range c.GoneWaits {
		w.deleteWait(x)
	}
	for _, x := range c.NewWaits {
		w.insertWait(x)
	}
	for _, x := range c.Waits {
		w.updateWait(x)
	}
	for _, b := range c.NewBatches {
		w.one(`INSERT INTO batches (tenant, run_id, batch_id, digest, first_seq, last_seq, outcome) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			b.Tenant, b.RunID, b.ID, some(b.Digest), b.FirstSeq, b.LastSeq, some(b.Outcome))
	}
	w.marks(c)
	w.timers(c)
	w.shards(c)
	w.pushes(c)
	w.prune(c)
	return w.err
}

// writer makes changes until the first that fails.
type writer struct {
	t   *transaction
	err error
}

// any makes a change of however many rows.
func (w *writer) any(sql string, args ...any) {
	if w.err == nil {
		_, w.err = w.t.exec(sql, args...)
	}
}

// one makes a change of exactly one row; a row that is not there as it was read is stale.
func (w *writer) one(sql string, args ...any) {
	if w.err != nil {
		return
	}
	n, err := w.t.exec(sql, args...)
	if w.err = err; err == nil && n != 1 {
		w.err = backend.ErrStale
	}
}

// some is b for a column that is never NULL.
func some(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

const (
	insertWorkflowSQL = `
INSERT INTO workflows (
	run_id, type, queue, status, head_seq, created_at, started_at, closed_at, updated_at, parent, failure_code, failure_reason, failed_effect,
	open_effects, open_waits, live_timers, registrations, reopened, lease_owner, lease_epoch, lease_expires, lease_ended, acquire_id, reclaims, pause_request, cancel_request,
	paused_actor, paused_basis, paused_at, tenant, workflow_id, shard)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	updateWorkflowSQL = `
UPDATE workflows SET
	run_id = ?, type = ?, queue = ?, status = ?, head_seq = ?, created_at = ?, started_at = ?, closed_at = ?, updated_at = ?, parent = ?,
	failure_code = ?, failure_reason = ?, failed_effect = ?, open_effects = ?, open_waits = ?, live_timers = ?, registrations = ?, reopened = ?, lease_owner = ?,
	lease_epoch = ?, lease_expires = ?, lease_ended = ?, acquire_id = ?, reclaims = ?, pause_request = ?, cancel_request = ?, paused_actor = ?, paused_basis = ?, paused_at = ?
WHERE tenant = ? AND workflow_id = ?`
	bumpWorkflowSQL = `
UPDATE workflows SET head_seq = ?, updated_at = ?, open_effects = ?, open_waits = ?, live_timers = ?, registrations = ? WHERE tenant = ? AND workflow_id = ?`
	insertRunSQL = `
INSERT INTO runs (
	tenant, run_id, workflow_id, previous_run, next_run, status, first_seq, last_seq, started_at, closed_at, sealed_at, outcome, start_digest, retired)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	updateRunSQL = `
UPDATE runs SET next_run = ?, status = ?, last_seq = ?, closed_at = ?, sealed_at = ?, outcome = ?, retired = ? WHERE tenant = ? AND run_id = ?`
)

func (w *writer) flows(c *backend.Changes) {
	for _, f := range c.NewWorkflows {
		w.unpruned(remnantOfFlowSQL, f.Tenant, f.ID)
		w.one(insertWorkflowSQL, append(flowArgs(f), f.Tenant, f.ID, f.Shard)...)
	}
	for _, r := range c.NewRuns {
		w.unpruned(remnantOfRunSQL, r.Tenant, r.ID)
		w.one(insertRunSQL, r.Tenant, r.ID, r.WorkflowID, r.PreviousRun, r.NextRun, string(r.Status), r.FirstSeq, r.LastSeq, r.StartedAt, r.ClosedAt,
			r.SealedAt, string(r.Outcome), r.StartDigest, r.Retired)
	}
	for _, f := range c.Workflows {
		if was, ok := w.t.locked[f.Key()]; ok && f.OnlyBumped(was) {
			w.one(bumpWorkflowSQL, f.Head, f.UpdatedAt, f.OpenEffects, f.OpenWaits, f.LiveTimers, f.Registrations, f.Tenant, f.ID)
		} else {
			w.one(updateWorkflowSQL, append(flowArgs(f), f.Tenant, f.ID)...)
		}
	}
	for _, r := range c.Runs {
		w.one(updateRunSQL, r.NextRun, string(r.Status), r.LastSeq, r.ClosedAt, r.SealedAt, string(r.Outcome), r.Retired, r.Tenant, r.ID)
	}
}

// flowArgs are the columns of workflows that can change, in the order of both statements.
func flowArgs(f *backend.Workflow) []any {
	actor, basis := operatorTexts(f.PausedBy)
	return []any{
		f.RunID, f.Type, f.Queue, string(f.Status), f.Head, f.CreatedAt, f.StartedAt, f.ClosedAt, f.UpdatedAt, f.Parent, f.FailureCode, f.FailureReason,
		f.FailedEffect, f.OpenEffects, f.OpenWaits, f.LiveTimers, f.Registrations, f.Reopened, f.LeaseOwner, f.LeaseEpoch, f.LeaseExpires, string(f.LeaseEnded), f.AcquireID,
		f.Reclaims, requestText(f.Pause), requestText(f.Cancel), actor, basis, f.PausedAt,
	}
}

const (
	insertRecordSQL = `
INSERT INTO history (
	tenant, workflow_id, seq, run_id, kind, v, effect, attempt, closes, data, source, operator_actor, operator_basis, recorded_at, batch_id, content_type,
	payload)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	// Payload and content type are copied from the stored event, before that sheds them (I6): no payload leaves the store. It is VALUES and not SELECT FROM
	// because a statement that might insert several rows keeps a journal of its own, whose end costs as much as the transaction is large.
	insertAnswerSQL = `
INSERT INTO history (
	tenant, workflow_id, seq, run_id, kind, v, effect, attempt, closes, data, source, operator_actor, operator_basis, recorded_at, batch_id, content_type,
	payload)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
	(SELECT e.content_type FROM events e WHERE e.number = ?16), (SELECT e.payload FROM events e WHERE e.number = ?16))`
)

func (w *writer) records(c *backend.Changes) {
	fresh := map[int64]*backend.Event{} // their payloads are at hand, and perhaps not stored
	for _, e := range c.NewEvents {
		fresh[e.Number] = e
	}
	for _, r := range c.Records {
		actor, basis := operatorTexts(r.Operator)
		args := []any{
			r.Tenant, r.WorkflowID, r.Seq, r.RunID, string(r.Kind), r.V, r.Effect, r.Attempt, r.Kind.Phase() == rendezvous.PhaseClose, string(r.Data),
			r.Source, actor, basis, r.RecordedAt, r.Batch,
		}
		if e := fresh[r.PayloadOf]; e != nil {
			w.one(insertRecordSQL, append(args, e.ContentType, e.Payload)...)
		} else if r.PayloadOf != 0 {
			w.one(insertAnswerSQL, append(args, r.PayloadOf)...)
		} else {
			w.one(insertRecordSQL, append(args, r.ContentType, r.Payload)...)
		}
	}
}

const (
	insertEventSQL = `
INSERT INTO events (
	live_since, expires_at, target, state, claim_run, claim_effect, claimed_at, workflow_id, run_id, effect, seq, dead_reason, dead_detail, dead_at,
	erased, offer_failures, take, take_until, take_open, takes, requeues, purged, op, op_actor, op_basis, digest, number, version, tenant, source, id, type, keys, received_at,
	minted_actor, minted_basis, trace_parent, trace_state, content_type, payload)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	// What nearly all are when they come: less than half of the values to bind.
	insertArrivedSQL = `
INSERT INTO events (
	live_since, expires_at, target, digest, number, tenant, source, id, type, keys, received_at, minted_actor, minted_basis, trace_parent, trace_state,
	content_type, payload, version, state, claim_run, claim_effect, workflow_id, run_id, effect, seq, dead_reason, dead_detail, erased, offer_failures, take,
	take_open, takes, requeues, purged, op, op_actor, op_basis)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 'live', '', '', '', '', '', 0, '', '', 0, 0, 0, 0, 0, 0, 0, '', '', '')`
	updateEventSQL = `
UPDATE events SET
	live_since = ?, expires_at = ?, target = ?, state = ?, claim_run = ?, claim_effect = ?, claimed_at = ?, workflow_id = ?, run_id = ?, effect = ?,
	seq = ?, dead_reason = ?, dead_detail = ?, dead_at = ?, erased = ?, offer_failures = ?, take = ?, take_until = ?, take_open = ?, takes = ?,
	requeues = ?, purged = ?, op = ?, op_actor = ?, op_basis = ?, digest = ?, payload = CASE WHEN ? THEN NULL ELSE payload END,
	keys = CASE WHEN ? THEN '[]' ELSE keys END, version = version + 1
WHERE number = ? AND version = ?`
	consumeEventSQL = `
UPDATE events SET
	version = version + 1, state = 'consumed', payload = NULL, workflow_id = ?, run_id = ?, effect = ?, seq = ?, claim_run = '', claim_effect = '',
	claimed_at = NULL, offer_failures = 0, take_until = NULL, take_open = 0, takes = 0
WHERE number = ? AND version = ?`
	retireEventSQL = `
UPDATE events SET
	version = version + 1, state = 'dead', dead_reason = ?, dead_detail = ?, dead_at = ?, claim_run = '', claim_effect = '', claimed_at = NULL,
	offer_failures = 0, take_until = NULL, take_open = 0, takes = 0
WHERE number = ? AND version = ?`
	updateCorruptEventSQL = `
UPDATE events SET
	state = ?, dead_reason = ?, dead_detail = ?, dead_at = ?, offer_failures = ?, take = ?, take_until = ?, take_open = ?, takes = ?,
	version = version + 1
WHERE number = ? AND version = ?`
	insertEventKeySQL  = `INSERT INTO event_keys (tenant, namespace, value, type, number, live_since, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?)`
	restoreEventKeySQL = insertEventKeySQL + ` ON CONFLICT DO NOTHING`
	deleteEventKeysSQL = `DELETE FROM event_keys WHERE number = ?`
	insertDeadKeySQL   = `INSERT INTO dead_keys (tenant, namespace, value, number) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`
	deleteDeadKeySQL   = `DELETE FROM dead_keys WHERE tenant = ? AND namespace = ? AND value = ? AND number = ?`
)

// eventArgs are the columns of events that can change, in the order of both statements.
func eventArgs(e *backend.Event) []any {
	actor, basis := operatorTexts(e.OpBy)
	return []any{
		e.LiveSince, e.ExpiresAt, e.Target, string(e.State), e.ClaimRun, e.ClaimEffect, e.ClaimedAt, e.Workflow, e.Run, e.Effect, e.Seq,
		string(e.DeadReason), e.DeadDetail, e.DeadAt, e.Erased, e.OfferFailures, e.Take, e.TakeUntil, e.TakeOpen, e.Takes, e.Requeues, e.Purged,
		e.Op, actor, basis, e.Digest,
	}
}

func (w *writer) insertEvent(e *backend.Event) {
	actor, basis := operatorTexts(e.Minted)
	if e.OnlyArrived() {
		w.one(insertArrivedSQL, e.LiveSince, e.ExpiresAt, e.Target, e.Digest, e.Number, e.Tenant, e.Source, e.ID, e.Type, keysText(e.Keys), e.ReceivedAt, actor, basis,
			e.Trace.Parent, e.Trace.State, e.ContentType, e.Payload)
		w.t.recent.add(e)
	} else {
		payload := e.Payload
		if e.Shed {
			payload = nil
		}
		w.one(insertEventSQL, append(eventArgs(e), e.Number, e.Tenant, e.Source, e.ID, e.Type, keysText(e.Keys), e.ReceivedAt, actor, basis, e.Trace.Parent,
			e.Trace.State, e.ContentType, payload)...)
	}
	if e.Live() {
		w.eventKeys(insertEventKeySQL, e)
	}
	if e.Dead() {
		w.deadKeys(insertDeadKeySQL, e.Tenant, e.Number, e.Keys)
	}
}

func (w *writer) eventKeys(sql string, e *backend.Event) {
	for _, k := range e.MatchKeys() {
		w.any(sql, e.Tenant, k.Namespace, k.Value, e.Type, e.Number, e.LiveSince, e.ExpiresAt)
	}
}

func (w *writer) deadKeys(sql, tenant string, number int64, keys []rendezvous.Key) {
	for _, k := range keys {
		w.any(sql, tenant, k.Namespace, k.Value, number)
	}
}

// updateEvent keeps the laws of key rows: a live event has its own and a dead letter its own, and nothing else has any.
func (w *writer) updateEvent(e *backend.Event) {
	w.t.recent.drop(e)
	was, ok := w.t.loaded[e.Number]
	if ok && e.Corrupt == nil && e.OnlyDied(&was) {
		w.one(retireEventSQL, string(e.DeadReason), e.DeadDetail, e.DeadAt, e.Number, e.Version)
	} else if ok && e.Corrupt == nil && e.OnlyAnswered(&was) {
		w.one(consumeEventSQL, e.Workflow, e.Run, e.Effect, e.Seq, e.Number, e.Version)
	} else if e.Corrupt != nil {
		w.one(updateCorruptEventSQL, string(e.State), string(e.DeadReason), e.DeadDetail, e.DeadAt, e.OfferFailures, e.Take, e.TakeUntil, e.TakeOpen,
			e.Takes, e.Number, e.Version)
	} else {
		w.one(updateEventSQL, append(eventArgs(e), e.Shed, e.Purged, e.Number, e.Version)...)
	}
	if e.Keyed && (!e.Live() || e.Rekey) {
		w.any(deleteEventKeysSQL, e.Number)
	}
	if e.Corrupt == nil && e.Live() && (!e.Keyed || e.Rekey) {
		w.eventKeys(restoreEventKeySQL, e) // a row left over by a hand is the very row that is to be there
	}
	switch {
	case e.Dead() && !e.Listed:
		w.deadKeys(insertDeadKeySQL, e.Tenant, e.Number, e.Keys)
	case !e.Dead() && e.Listed:
		w.deadKeys(deleteDeadKeySQL, e.Tenant, e.Number, e.Keys)
	}
}

const (
	insertWaitSQL = `
INSERT INTO waits (
	attempt, open_since, held_number, held_source, held_id, claim_number, parked_at, attempts, next_attempt_at, last_error, take, take_until,
	take_settled, quarantined_at, number, version, tenant, run_id, effect, workflow_id, shard, type, keys, from_source, trace_parent, trace_state, registered_at,
	deadline)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	updateWaitSQL = `
UPDATE waits SET
	attempt = ?, open_since = ?, held_number = ?, held_source = ?, held_id = ?, claim_number = ?, parked_at = ?, attempts = ?, next_attempt_at = ?,
	last_error = ?, take = ?, take_until = ?, take_settled = ?, quarantined_at = ?, version = version + 1
WHERE number = ? AND version = ?`
	updateCorruptWaitSQL = `
UPDATE waits SET
	attempts = ?, next_attempt_at = ?, last_error = ?, take = ?, take_until = ?, take_settled = ?, quarantined_at = ?, version = version + 1
WHERE number = ? AND version = ?`
	deleteWaitSQL     = `DELETE FROM waits WHERE number = ? AND version = ?`
	insertWaitKeySQL  = `INSERT INTO wait_keys (tenant, namespace, value, type, number, open_since) VALUES (?, ?, ?, ?, ?, ?)`
	restoreWaitKeySQL = insertWaitKeySQL + ` ON CONFLICT DO NOTHING`
	deleteWaitKeySQL  = `DELETE FROM wait_keys WHERE tenant = ? AND namespace = ? AND value = ? AND type = ? AND number = ?`
)

// waitArgs are the columns of waits that can change, in the order of both statements.
func waitArgs(x *backend.Wait) []any {
	args := []any{x.Attempt, x.OpenSince, nil, "", "", 0, x.ParkedAt}
	if x.Held != nil {
		args[2], args[3], args[4], args[5] = x.Held.Number, x.Held.Source, x.Held.ID, x.Held.Claim
	}
	return append(args, tryArgs(x)...)
}

// tryArgs are the columns that count tries and failures.
func tryArgs(x *backend.Wait) []any {
	return []any{x.Attempts, x.NextAttemptAt, x.LastError, x.Take, x.TakeUntil, x.TakeSettled, x.QuarantinedAt}
}

func (w *writer) insertWait(x *backend.Wait) {
	w.one(insertWaitSQL, append(waitArgs(x), x.Number, x.Tenant, x.RunID, x.Effect, x.WorkflowID, x.Shard, x.Type, keysText(x.Keys), x.From, x.Trace.Parent,
		x.Trace.State, x.RegisteredAt, x.Deadline)...)
	if x.Open() {
		w.waitKeys(insertWaitKeySQL, x)
	}
}

func (w *writer) waitKeys(sql string, x *backend.Wait) {
	for _, k := range x.Keys {
		w.any(sql, x.Tenant, k.Namespace, k.Value, x.Type, x.Number, x.OpenSince)
	}
}

func (w *writer) dropWaitKeys(x *backend.Wait) {
	for _, k := range x.Keys {
		w.any(deleteWaitKeySQL, x.Tenant, k.Namespace, k.Value, x.Type, x.Number)
	}
}

func (w *writer) deleteWait(x *backend.Wait) {
	w.one(deleteWaitSQL, x.Number, x.Version)
	if x.Keyed {
		w.dropWaitKeys(x)
	}
}

// updateWait keeps the law of key rows: an open wait has them and nothing else has.
func (w *writer) updateWait(x *backend.Wait) {
	if x.Corrupt != nil {
		w.one(updateCorruptWaitSQL, append(tryArgs(x), x.Number, x.Version)...)
		return
	}
	w.one(updateWaitSQL, append(waitArgs(x), x.Number, x.Version)...)
	switch {
	case x.Keyed && !x.Open():
		w.dropWaitKeys(x)
	case !x.Keyed && x.Open():
		w.waitKeys(restoreWaitKeySQL, x)
	}
}

// News of runs nobody drives. Where a mark stands, its age stays; unless the notices begin anew, they stay too and the earlier one wins.
const (
	insertMark = `
INSERT INTO woken (tenant, workflow_id, run_id, queue, since, cause, seq, notices, next_notice_at, links) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, workflow_id) DO UPDATE SET
	run_id = excluded.run_id, queue = excluded.queue, cause = excluded.cause, seq = excluded.seq, links = excluded.links,`
	insertMarkSQL     = insertMark + ` next_notice_at = min(next_notice_at, excluded.next_notice_at)`
	insertMarkAnewSQL = insertMark + ` notices = excluded.notices, next_notice_at = excluded.next_notice_at`
	moveMarkSQL       = `UPDATE woken SET notices = ?, next_notice_at = ? WHERE tenant = ? AND workflow_id = ?`
	deleteMarkSQL     = `DELETE FROM woken WHERE tenant = ? AND workflow_id = ?`
)

func (w *writer) marks(c *backend.Changes) {
	for _, k := range c.Unwoken {
		w.any(deleteMarkSQL, k.Tenant, k.ID)
	}
	for _, m := range c.Woken {
		sql := insertMarkSQL
		if m.Anew {
			sql = insertMarkAnewSQL
		}
		w.any(sql, m.Tenant, m.WorkflowID, m.RunID, m.Queue, m.Since, string(m.Cause), m.Seq, m.Notices, m.NextNoticeAt, linksText(m.Links))
	}
	for _, m := range c.MarkedWoken {
		w.any(moveMarkSQL, m.Notices, m.NextNoticeAt, m.Tenant, m.WorkflowID)
	}
}
