package api

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/push/target"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/wire"
)

// mostPushTime bounds the spread of an unparking, in milliseconds: a year.
const mostPushTime = 365 * 24 * 60 * 60 * 1000

// pushes are the verbs of registrations. All need the right push; those that reach over runs, to operators' destinations too, are the operator's.
func pushes() map[string]verb {
	return map[string]verb{
		"push.put":         pushing(handle(RoleProducer, putPush)),
		"push.get":         pushing(handle(RoleProducer, getPush)),
		"push.list":        pushing(handle(RoleProducer, listPush)),
		"push.delete":      pushing(handle(RoleProducer, deletePush)),
		"push.park":        pushing(handle(RoleProducer, parkPush)),
		"push.unpark":      pushing(handle(RoleProducer, unparkPush)),
		"push.skip":        pushing(handle(RoleProducer, skipPush)),
		"push.rotate":      pushing(handle(RoleProducer, rotatePush)),
		"push.attempts":    pushing(handle(RoleProducer, readAttempts)),
		"push.parked":      pushing(handle(RoleOperator, parkedPushes)),
		"push.unpark_many": pushing(handle(RoleOperator, unparkPushes)),
	}
}

// pushing is a verb that wants the right push too.
func pushing(v verb) verb {
	v.push = true
	return v
}

// offered is a registration as a caller gives it, its URLs judged by what a send would judge them by (push.md section 11).
func (c call) offered(w wire.PutPush) (store.PutPush, error) {
	r, err := w.Domain()
	if err != nil {
		return store.PutPush{}, err
	}
	p := store.PutPush{Registration: r, NextSeq: w.NextSeq, IfVersion: w.IfVersion, Fields: w.Fields}
	if w.Fields != nil {
		for _, f := range [...]struct {
			name  string
			given bool
		}{{"follow", w.Follow != ""}, {"rate_per_minute", w.RatePerMinute != 0}, {"handshake", w.Handshake != ""}, {"next_seq", w.NextSeq != 0}} {
			if f.given {
				return p, rendezvous.InvalidField(f.name, "is no field that can be updated; leave it out")
			}
		}
	}
	if takes(w.Fields, "url") {
		if p.Gate, err = c.judge("url", r.URL); err != nil {
			return p, err
		}
	}
	if takes(w.Fields, "auth") && r.Auth.Kind == rendezvous.AuthOAuth2 {
		_, err = c.judge("auth.oauth2.token_url", r.Auth.TokenURL)
	}
	return p, err
}

// takes reports whether an update is of that field: one without a list is of all.
func takes(fields []string, field string) bool {
	for _, f := range fields {
		if f == field {
			return true
		}
	}
	return fields == nil
}

// judge refuses a URL that nothing would be sent to (PU-85, PU-86, PU-87) and answers its origin. The error names the rule and the host, never path or query.
func (c call) judge(field, text string) (string, error) {
	if err := rendezvous.CheckPushURL(field, text); err != nil {
		return "", err
	}
	t, err := c.cfg.Targets.Judge(rendezvous.PushCaller, text)
	var refused *target.Refusal
	if errors.As(err, &refused) {
		return "", rendezvous.InvalidField(field, "%s", refused.Reason).With("rule", string(refused.Rule)).With("host", refused.Host)
	}
	return t.Origin(), err
}

// placed are the registrations of a start (PU-13).
func (c call) placed(list []wire.PutPush) ([]store.PutPush, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if err := c.caller.mayPush(); err != nil {
		return nil, err
	}
	out := make([]store.PutPush, len(list))
	for i, w := range list {
		p, err := c.offered(w)
		if err != nil {
			return nil, rendezvous.AsError(err).With("push", i)
		}
		out[i] = p
	}
	return out, nil
}

func putPush(ctx context.Context, c call, req wire.PutPush) (wire.PushPut, error) {
	if err := c.owns(req.ID); err != nil {
		return wire.PushPut{}, err
	}
	p, err := c.offered(req)
	if err != nil {
		return wire.PushPut{}, err
	}
	got, err := c.tenant.PutPush(ctx, p, time.Time{})
	if err != nil {
		return wire.PushPut{}, err
	}
	c.try(ctx, got.Notices)
	return wire.PushPut{Push: c.pushOf(got.Push), Created: got.Created}, nil
}

// owns refuses a caller the ids of the operator's destinations (PU-5).
func (c call) owns(id string) error { return rendezvous.CheckCallerRegistration("id", id) }

// changes refuses who is no operator to change an operator's destination.
func (c call) changes(id string) error {
	if c.caller.Role >= RoleOperator {
		return nil
	}
	return c.owns(id)
}

// keyOf is the registration that a request names.
func keyOf(r wire.PushRef) store.PushKey {
	if r.ID == "" && r.RunID != "" {
		r.ID = rendezvous.DefaultRegistrationID(r.RunID)
	}
	return store.PushKey{RunID: r.RunID, ID: r.ID}
}

func getPush(ctx context.Context, c call, req wire.PushRef) (wire.Push, error) {
	key := keyOf(req)
	p, err := c.tenant.GetPush(ctx, key)
	if err == nil && p == nil {
		err = rendezvous.Errorf(rendezvous.CodeNotFound, "run %q has no registration %q; push.list shows those it has", key.RunID, key.ID).
			With("run", key.RunID).With("id", key.ID)
	}
	if err != nil {
		return wire.Push{}, err
	}
	return c.pushOf(*p), nil
}

func listPush(ctx context.Context, c call, req wire.ListPush) (wire.Pushes, error) {
	list, err := c.tenant.ListPush(ctx, req.RunID)
	return c.pushesOf(list, ""), err
}

func parkedPushes(ctx context.Context, c call, req wire.ParkedPushes) (wire.Pushes, error) {
	page, err := c.tenant.ParkedPushes(ctx, pushFilter(req.Filter), req.Limit, req.Cursor)
	return c.pushesOf(page.Pushes, page.NextCursor), err
}

func pushFilter(f wire.PushFilter) store.PushParkedFilter {
	return store.PushParkedFilter{Reason: f.Reason, Gate: f.Gate}
}

func (c call) pushesOf(list []store.Push, cursor string) wire.Pushes {
	out := wire.Pushes{Registrations: make([]wire.Push, len(list)), NextCursor: cursor}
	for i, p := range list {
		out.Registrations[i] = c.pushOf(p)
	}
	return out
}

// pushOf is a row as the caller is shown it: no secret is in it (PU-8).
func (c call) pushOf(p store.Push) wire.Push {
	w := wire.Push{
		RunID: p.RunID, ID: p.ID, WorkflowID: p.WorkflowID, Namespace: p.Namespace, Version: p.Version, CreatedAt: wire.At(p.CreatedAt), State: p.State,
		Cursor: p.Cursor, Attempts: p.Attempts, AttemptNo: p.AttemptNo, FailingSince: wire.At(p.FailingSince), ParkedAt: wire.At(p.ParkedAt), Reason: p.Reason,
		Error: p.Error, SendingUntil: wire.At(p.LeaseUntil), Corrupt: p.Corrupt != nil,
	}
	if p.State == rendezvous.PushLive {
		w.NextAttemptAt = wire.At(p.NextAttemptAt)
	}
	if p.Last != nil {
		last := c.attemptOf(*p.Last)
		w.Last = &last
	}
	if p.Namespace == rendezvous.PushOperator || w.Corrupt {
		return w
	}
	v := p.View()
	w.URL, w.TokenSet, w.Auth, w.Headers, w.PushOptionsView = v.URL, v.TokenSet, v.Auth, v.Headers, &v.PushOptionsView
	for _, k := range v.Signing {
		w.Signing = append(w.Signing, wire.PushKeyViewOf(k))
	}
	if v.TLS != nil {
		w.TLS = &wire.PushTLSView{Subject: v.TLS.Subject, ExpiresAt: wire.At(v.TLS.ExpiresAt), CustomCA: v.TLS.CustomCA}
	}
	return w
}

// attemptOf is an entry as the caller is shown it: addresses that were dialled are for operators.
func (c call) attemptOf(a rendezvous.PushAttempt) wire.PushAttempt {
	w := wire.PushAttemptOf(a)
	if c.caller.Role < RoleOperator {
		w.Address = ""
	}
	return w
}

func readAttempts(ctx context.Context, c call, req wire.PushAttempts) (wire.PushAttemptList, error) {
	before := int64(0)
	if req.Cursor != "" {
		var err error
		if before, err = strconv.ParseInt(req.Cursor, 10, 64); err != nil || before < 1 {
			return wire.PushAttemptList{}, rendezvous.InvalidField("cursor", "is none that an earlier page gave")
		}
	}
	page, err := c.tenant.PushAttempts(ctx, keyOf(req.PushRef), req.Limit, before)
	out := wire.PushAttemptList{Attempts: make([]wire.PushAttempt, len(page.Attempts))}
	for i, a := range page.Attempts {
		out.Attempts[i] = c.attemptOf(a)
	}
	if page.Before != 0 {
		out.NextCursor = strconv.FormatInt(page.Before, 10)
	}
	return out, err
}

func deletePush(ctx context.Context, c call, req wire.PushRef) (wire.PushDeleted, error) {
	if err := c.changes(req.ID); err != nil {
		return wire.PushDeleted{}, err
	}
	got, err := c.tenant.DeletePush(ctx, keyOf(req))
	if err != nil {
		return wire.PushDeleted{}, err
	}
	return wire.PushDeleted{Outcome: wire.OutcomeDeleted, QuietAt: wire.At(got.QuietAt)}, nil
}

// act is who does something to a registration, and why.
type act struct {
	wire.PushRef
	asked      *rendezvous.Operator
	reason, op string
}

// judged is who acts, of whom the row or the log is to tell. op may be left out where a repetition is harmless.
func (c call) judged(a act) (*rendezvous.Operator, error) {
	o := c.caller.operator(a.asked)
	return o, cmp.Or(c.changes(a.ID), o.Check("operator"), rendezvous.CheckReason("reason", a.reason), rendezvous.CheckBatchID("op", cmp.Or(a.op, "-")))
}

// note tells the log what somebody did to a registration where its row has no place for that.
func (c call) note(ctx context.Context, what string, o *rendezvous.Operator, reason string, more ...any) {
	c.cfg.Log.InfoContext(ctx, what, append(more, "tenant", c.tenant.Name(), "actor", o.Actor, "basis", o.Basis, "reason", reason)...)
}

func parkPush(ctx context.Context, c call, req wire.ParkPush) (wire.PushParked, error) {
	o, err := c.judged(act{req.PushRef, req.Operator, req.Reason, req.Op})
	if err != nil {
		return wire.PushParked{}, err
	}
	text := o.Actor
	if req.Reason != "" {
		text += ": " + req.Reason
	}
	if err := rendezvous.CheckReason("reason", text); err != nil {
		return wire.PushParked{}, err
	}
	err = c.tenant.ParkPush(ctx, store.ParkPush{PushKey: keyOf(req.PushRef), Reason: rendezvous.ParkByOperator, Error: text})
	return wire.PushParked{Outcome: wire.OutcomeParked}, err
}

// unparkPush gives a parked registration another series of attempts, and has them begin without waiting for the poll.
func unparkPush(ctx context.Context, c call, req wire.UnparkPush) (wire.PushUnparked, error) {
	o, err := c.judged(act{req.PushRef, req.Operator, req.Reason, req.Op})
	if err != nil {
		return wire.PushUnparked{}, err
	}
	key := keyOf(req.PushRef)
	done, err := c.tenant.UnparkPush(ctx, key, req.At.Time, req.Op)
	if err != nil || !done {
		return wire.PushUnparked{}, err
	}
	c.note(ctx, "registration unparked", o, req.Reason, "run", key.RunID, "id", key.ID)
	if req.At.IsZero() {
		if p, err := c.tenant.GetPush(ctx, key); err == nil && p != nil { // a notice that is not sent costs a poll
			c.try(ctx, store.Notices{Push: []store.PushRef{{
				Tenant: c.tenant.Name(), WorkflowRef: store.WorkflowRef{WorkflowID: p.WorkflowID, RunID: p.RunID}, Head: p.NextSeq,
			}}})
		}
	}
	return wire.PushUnparked{Unparked: true}, nil
}

func unparkPushes(ctx context.Context, c call, req wire.UnparkPushes) (wire.PushesUnparked, error) {
	o, err := c.judged(act{asked: req.Operator, reason: req.Reason})
	if err != nil {
		return wire.PushesUnparked{}, err
	}
	if req.SpreadMS < 0 || req.SpreadMS > mostPushTime {
		return wire.PushesUnparked{}, rendezvous.InvalidField("spread_ms", "%d is outside 0..%d", req.SpreadMS, int64(mostPushTime)).
			With("limit", int64(mostPushTime)).With("value", req.SpreadMS)
	}
	got, err := c.tenant.UnparkPushes(ctx, store.UnparkPushes{
		PushParkedFilter: pushFilter(req.Filter), At: req.At.Time, Spread: time.Duration(req.SpreadMS) * time.Millisecond, Limit: req.Limit,
	})
	if err != nil {
		return wire.PushesUnparked{}, err
	}
	c.note(ctx, "registrations unparked", o, req.Reason, "count", got.Count)
	return wire.PushesUnparked{Count: got.Count, More: got.More}, nil
}

func skipPush(ctx context.Context, c call, req wire.SkipPush) (wire.PushSkipped, error) {
	o, err := c.judged(act{req.PushRef, req.Operator, req.Reason, req.Op})
	if err != nil {
		return wire.PushSkipped{}, err
	}
	cursor, err := c.tenant.SkipPush(ctx, store.PushSkip{PushKey: keyOf(req.PushRef), Seq: req.Seq, Actor: o.Actor, Reason: req.Reason})
	return wire.PushSkipped{Outcome: wire.OutcomeSkipped, Cursor: cursor}, err
}

func rotatePush(ctx context.Context, c call, req wire.RotatePush) (wire.PushRotated, error) {
	if err := c.changes(req.ID); err != nil {
		return wire.PushRotated{}, err
	}
	r := store.PushRotation{PushKey: keyOf(req.PushRef), Key: req.Key.Secret, Algorithm: req.Algorithm, Op: req.Op}
	if ms := req.GraceMS; ms != nil {
		if *ms < 0 || *ms > store.MaxPushGrace.Milliseconds() {
			return wire.PushRotated{}, rendezvous.InvalidField("grace_ms", "%d is outside 0..%d", *ms, store.MaxPushGrace.Milliseconds()).
				With("limit", store.MaxPushGrace.Milliseconds()).With("value", *ms)
		}
		grace := time.Duration(*ms) * time.Millisecond
		r.Grace = &grace
	}
	if r.Key.Set() && r.Algorithm != "" {
		return wire.PushRotated{}, rendezvous.InvalidField("algorithm", "is for a key that is generated; a given one says its own")
	}
	got, err := c.tenant.RotatePush(ctx, r)
	if err != nil {
		return wire.PushRotated{}, err
	}
	return wire.PushRotated{PushKeyView: wire.PushKeyViewOf(got.Key.View()), Key: wire.Secret{Secret: got.Key.Key}, Version: got.Version, Again: got.Again}, nil
}
