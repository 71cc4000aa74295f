package engine

import (
	"context"
	"math"
	"net/url"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// What a settlement made of a lease, for the repeat of a verb whose reply was lost.
const (
	endedRetry   = "retry"
	endedPark    = "park"
	endedRelease = "release"
	endedRevoked = "revoked" // handed in after it was revoked
	endedTool    = "tool"    // a call with token 0 after it had run out
)

// storePush is a row as callers see it.
func storePush(p *backend.Push) store.Push {
	out := store.Push{
		Tenant: p.Tenant, WorkflowID: p.WorkflowID, Registration: p.Settings.Registration, Namespace: p.Namespace, Gate: p.Gate, Version: p.Version,
		CreatedAt: p.CreatedAt, Cursor: cursorOf(p), State: p.State, NextAttemptAt: p.NextAttemptAt, Attempts: p.Attempts, FailingSince: p.FailingSince,
		Rejects: p.Rejects, AttemptNo: p.AttemptNo, Lost: p.Lost, Error: p.Error, ParkedAt: p.ParkedAt, Reason: p.Reason, LeaseUntil: p.LeaseUntil,
		Last: p.Last, Corrupt: p.Corrupt,
	}
	out.RunID, out.ID = p.RunID, p.ID
	if p.Corrupt != nil {
		out = store.Push{Tenant: p.Tenant, Registration: rendezvous.Registration{RunID: p.RunID, ID: p.ID}, Corrupt: p.Corrupt}
	}
	return out
}

// storePushes are rows as callers see them; those that are gone are left out.
func storePushes(rows []*backend.Push) []store.Push {
	out := make([]store.Push, 0, len(rows))
	for _, p := range rows {
		if p.State != backend.PushGone {
			out = append(out, storePush(p))
		}
	}
	return out
}

func cursorOf(p *backend.Push) rendezvous.Cursor {
	return rendezvous.Cursor{NextSeq: p.NextSeq, NextIndex: p.NextIndex}
}

func pushNotFound(key store.PushKey) error {
	return rendezvous.Errorf(rendezvous.CodeNotFound, "run %q has no push registration %q", key.RunID, key.ID).With("run", key.RunID).With("id", key.ID)
}

func checkPushKey(key store.PushKey) error {
	if err := rendezvous.CheckID("run_id", key.RunID); err != nil {
		return err
	}
	return rendezvous.CheckRegistrationID("id", key.ID)
}

func (t *tenant) pushKey(key store.PushKey) backend.PushKey {
	return backend.PushKey{Tenant: t.name, RunID: key.RunID, ID: key.ID}
}

// gateOf is the key of concurrency of a caller's URL: scheme, host and port, as far as the text of the URL says them alike.
func gateOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[scheme]
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return scheme + "://" + host + ":" + port
}

// holder reports whether a token is that of the row's send lease, which stands until somebody claims anew or it is revoked: that it ran out alone does not end it.
func holder(p *backend.Push, token int64) bool {
	return token != 0 && p.LeaseToken == token && !p.LeaseRevoked
}

// endLease frees the row of its lease and remembers how, for repeats.
func endLease(p *backend.Push, as string) {
	if p.LeaseToken != 0 {
		p.EndedToken, p.EndedAs = p.LeaseToken, as
	}
	p.LeaseToken, p.LeaseOwner, p.LeaseRequest, p.LeaseUntil, p.LeaseRevoked = 0, "", "", time.Time{}, false
}

// revoke ends the right to send under the row's lease; others wait until it is handed in or has expired.
func (u *unit) revoke(p *backend.Push) {
	if p.Leased(u.now) {
		p.LeaseRevoked = true
		return
	}
	endLease(p, endedRevoked)
}

// handIn ends the wait for a revoked lease: its holder came and learns of it. It reports whether the token was that one.
func handIn(p *backend.Push, token int64) bool {
	if token == 0 || p.LeaseToken != token || !p.LeaseRevoked {
		return false
	}
	endLease(p, endedRevoked)
	return true
}

// savePush puts a locked row among the changes.
func (u *unit) savePush(p *backend.Push) {
	if u.first(p) {
		u.ch.Pushes = append(u.ch.Pushes, p)
	}
}

// dropPush makes a locked row go. Its workflow is locked, unless it was gone for callers before.
func (u *unit) dropPush(f *flow, p *backend.Push) {
	if p.State != backend.PushGone {
		f.Registrations = max(0, f.Registrations-1)
		u.saveFlow(f)
	}
	for i, o := range u.ch.Pushes {
		if o == p {
			u.ch.Pushes = append(u.ch.Pushes[:i:i], u.ch.Pushes[i+1:]...)
			break
		}
	}
	u.first(p)
	u.ch.GonePushes = append(u.ch.GonePushes, p.Key())
	p.State, p.LeaseToken = backend.PushGone, 0 // for whoever comes to it in this unit
}

// lockPush locks one row; nil where there is none that callers see. What is locked of a deleted one is answered as gone.
func (u *unit) lockPush(ctx context.Context, key backend.PushKey) (p, gone *backend.Push, err error) {
	rows, err := u.tx.LockPushes(ctx, []backend.PushKey{key})
	if err != nil {
		return nil, nil, err
	}
	switch p = rows[key]; {
	case p == nil:
		return nil, nil, nil
	case p.Corrupt != nil:
		return nil, nil, p.Corrupt
	case p.State == backend.PushGone:
		return nil, p, nil
	}
	return p, nil, nil
}

// lockFlowOfRun locks the workflow of a run, whatever it has come to; nil where the run is not known.
func (u *unit) lockFlowOfRun(ctx context.Context, key backend.RunKey) (*flow, *backend.Run, error) {
	f, run, err := u.lockRun(ctx, key.Tenant, key.ID)
	switch code := rendezvous.CodeOf(err); {
	case err == nil, code == rendezvous.CodeSealed && f != nil:
		return f, run, nil
	case code == rendezvous.CodeNotFound:
		return nil, nil, nil
	}
	return nil, nil, err
}

// rest makes a row idle where nothing is left for it, else due now; head is the workflow's, which is locked (push.md section 2). A sealed run's rows never rest.
func (u *unit) rest(p *backend.Push, sealed bool, head int64) (idle bool) {
	p.State, p.NextAttemptAt = rendezvous.PushLive, u.now
	if !sealed && p.NextSeq > head {
		p.State = rendezvous.PushIdle
	}
	return p.State == rendezvous.PushIdle
}

// moveCursor moves a row's cursor to the greater of its own and c (PU-17).
func moveCursor(p *backend.Push, c rendezvous.Cursor) (moved bool) {
	if c.Compare(cursorOf(p)) <= 0 {
		return false
	}
	p.NextSeq, p.NextIndex, p.Rejects = c.NextSeq, c.NextIndex, 0
	return true
}

// checkCursor judges a cursor against the head of its history.
func checkCursor(c rendezvous.Cursor, head int64) error {
	switch {
	case c.NextSeq < 1 || c.NextIndex < 0:
		return rendezvous.InvalidField("next_seq", "(%d, %d) is no place in a history", c.NextSeq, c.NextIndex).With("value", c.NextSeq)
	case c.NextSeq > head+1, c.NextSeq == head+1 && c.NextIndex > 0:
		return rendezvous.InvalidField("next_seq", "%d is above the head (%d) + 1", c.NextSeq, head).With("limit", head+1).With("value", c.NextSeq)
	}
	return nil
}

// forgive clears what failures have counted: an acceptance came in.
func forgive(p *backend.Push) {
	p.Attempts, p.Rejects, p.Lost, p.FailingSince, p.Error = 0, 0, 0, time.Time{}, ""
}

// charge counts a failure.
func (u *unit) charge(p *backend.Push, text string) {
	if p.Attempts < math.MaxInt32 {
		p.Attempts++
	}
	if p.FailingSince.IsZero() {
		p.FailingSince = u.now
	}
	p.Error, p.Lost = text, 0
}

// unparked makes a row live and due at an instant.
func unparked(p *backend.Push, at time.Time) {
	p.State, p.NextAttemptAt, p.ParkedAt, p.Reason = rendezvous.PushLive, at, time.Time{}, ""
}

// park parks a row; of one that is parked only reason and error change.
func (u *unit) park(p *backend.Push, reason rendezvous.ParkReason, text string) {
	if p.State != rendezvous.PushParked {
		p.State, p.ParkedAt = rendezvous.PushParked, u.now
	}
	p.Reason, p.Error = reason, text
}

// enter adds an entry to a row's log, with the next number.
func (u *unit) enter(p *backend.Push, a rendezvous.PushAttempt, kept bool) int64 {
	p.AttemptNo++
	a.No = p.AttemptNo
	if !kept {
		p.Logged++
	}
	u.ch.PushLog = append(u.ch.PushLog, &backend.PushLogEntry{
		PushLogKey: backend.PushLogKey{PushKey: p.Key(), Incarnation: p.Incarnation, No: a.No}, EntryID: a.ID, At: u.now, Kept: kept, Attempt: a,
	})
	return a.No
}

// noticePush asks for a PUSH notice of a run.
func (u *unit) noticePush(f *backend.Workflow, run string) {
	u.notices.Push = append(u.notices.Push, store.PushRef{Tenant: f.Tenant, WorkflowRef: store.WorkflowRef{WorkflowID: f.ID, RunID: run}, Head: f.Head})
}

// wakes lists, behind all records of this unit, which registrations they may wake: none where the workflow counts none (push.md section 2).
func (u *unit) wakes() {
	if len(u.ch.Records) == 0 {
		return
	}
	of := map[backend.RunKey]*backend.PushWake{}
	for _, r := range u.ch.Records {
		f := u.flows[backend.WorkflowKey{Tenant: r.Tenant, ID: r.WorkflowID}]
		if f == nil || !f.watched || r.Kind == rendezvous.RunStarted { // nobody rests in a run that begins
			continue
		}
		key := backend.RunKey{Tenant: r.Tenant, ID: r.RunID}
		w := of[key]
		if w == nil {
			w = &backend.PushWake{Run: key, Now: u.now}
			of[key] = w
			u.ch.Wakes = append(u.ch.Wakes, w)
			u.woken = append(u.woken, f)
		}
		w.Kinds |= backend.KindBits(r.Kind)
		if r.Kind.Terminal() {
			w.Kinds = backend.AllKinds
		}
	}
}

// noticeWoken asks for the notices of the runs whose registrations were woken, when the changes are applied.
func (u *unit) noticeWoken() {
	for i, w := range u.ch.Wakes {
		if w.Woke {
			u.noticePush(u.woken[i].Workflow, w.Run.ID)
		}
	}
	for i, n := range u.notices.Push { // a record of this unit may have come behind the one that asked
		if f := u.flows[backend.WorkflowKey{Tenant: n.Tenant, ID: n.WorkflowID}]; f != nil {
			u.notices.Push[i].Head = f.Head
		}
	}
	if len(u.notices.Push) > 1 {
		u.notices.Push = distinct(u.notices.Push)
	}
}
