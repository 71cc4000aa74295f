package engine

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// PutPush implements [store.PushStore].
func (t *tenant) PutPush(ctx context.Context, p store.PutPush, at time.Time) (store.PushPut, error) {
	if err := checkPut(&p); err != nil {
		return store.PushPut{}, err
	}
	var out store.PushPut
	notices, err := t.update(ctx, "put_push", at, func(ctx context.Context, u *unit) (err error) {
		out, err = u.putPush(ctx, t.name, p)
		return err
	})
	if err != nil {
		return store.PushPut{}, err
	}
	out.Notices = notices
	return out, nil
}

// checkPut judges what needs nothing of the store, and names the registration.
func checkPut(p *store.PutPush) error {
	if err := rendezvous.CheckID("run_id", p.RunID); err != nil {
		return err
	}
	if p.ID == "" {
		p.ID = rendezvous.DefaultRegistrationID(p.RunID)
	}
	if err := rendezvous.CheckRegistrationID("id", p.ID); err != nil {
		return err
	}
	if err := rendezvous.CheckCallerRegistration("id", p.ID); err != nil {
		return err
	}
	if p.NextSeq < 0 {
		return rendezvous.InvalidField("next_seq", "%d is negative", p.NextSeq).With("value", p.NextSeq)
	}
	if p.IfVersion < 0 {
		return rendezvous.InvalidField("if_version", "%d is negative", p.IfVersion).With("value", p.IfVersion)
	}
	for _, f := range p.Fields {
		if !slices.Contains(store.PushFields[:], f) {
			return rendezvous.InvalidField("fields", "%.64q is no field that can be updated", f)
		}
	}
	if p.Gate != "" {
		return rendezvous.CheckID("gate", p.Gate)
	}
	return nil
}

func (u *unit) putPush(ctx context.Context, tenant string, p store.PutPush) (store.PushPut, error) {
	f, run, err := u.lockFlowOfRun(ctx, backend.RunKey{Tenant: tenant, ID: p.RunID})
	if err != nil {
		return store.PushPut{}, err
	}
	if f == nil {
		return store.PushPut{}, runNotFound(p.RunID)
	}
	held, gone, err := u.lockPush(ctx, backend.PushKey{Tenant: tenant, RunID: p.RunID, ID: p.ID})
	if err != nil {
		return store.PushPut{}, err
	}
	version := int64(0)
	if held != nil {
		version = held.Version
	}
	if p.IfVersion != 0 && p.IfVersion != version {
		return store.PushPut{}, conflict("version", version, "registration %q of run %q is at version %d, not %d; read it and decide again", p.ID, p.RunID, version, p.IfVersion).
			With("version", version)
	}
	if held == nil {
		return u.putNew(ctx, f, run, p, gone)
	}
	return u.putHeld(f, p, held)
}

// putHeld replaces a registration, or some of its fields. What is identical changes nothing (PU-18).
func (u *unit) putHeld(f *flow, p store.PutPush, held *backend.Push) (store.PushPut, error) {
	offered := p.Registration
	held.Settings.Signing = unexpired(held.Settings.Signing, u.now)
	if p.Fields != nil {
		offered = merged(held.Settings.Registration, offered, p.Fields)
	}
	offered, err := offered.Check(u.now)
	if err != nil {
		return store.PushPut{}, err
	}
	keepCreated(offered.Signing, held.Settings.Signing, u.now)
	next := backend.PushSettings{Registration: offered, Rotated: held.Settings.Rotated}
	if !bytes.Equal(backend.EncodePushSettings(next), backend.EncodePushSettings(held.Settings)) {
		if next.Projection != held.Settings.Projection {
			held.NextIndex = 0
		}
		if next.URL != held.Settings.URL || p.Gate != "" {
			held.Gate = gateFor(p.Gate, next.URL)
		}
		u.reset(held, next)
		u.noticePush(f.Workflow, held.RunID)
	}
	return store.PushPut{Push: storePush(held), Created: held.Version == 1}, nil
}

// unexpired is what of keys still signs: others are no part of a registration any more, and no fault of an update that does not name them.
func unexpired(keys []rendezvous.SigningKey, now time.Time) []rendezvous.SigningKey {
	return slices.DeleteFunc(slices.Clone(keys), func(k rendezvous.SigningKey) bool { return k.Expired(now) })
}

// reset gives a row other settings: it starts anew from where it is, and who sends under the old ones stops (PU-32).
func (u *unit) reset(p *backend.Push, s backend.PushSettings) {
	p.Settings, p.Takes, p.Resettled = s, backend.TakenKinds(s.Events), true
	p.Version++
	forgive(p)
	unparked(p, u.now)
	u.revoke(p)
	u.savePush(p)
}

// keepCreated keeps since when keys are there that were there before, and stamps the others.
func keepCreated(keys, before []rendezvous.SigningKey, now time.Time) {
	for i := range keys {
		keys[i].CreatedAt = now
		for _, k := range before {
			if k.ID == keys[i].ID {
				keys[i].CreatedAt = k.CreatedAt
			}
		}
	}
}

// merged is the held registration with the named fields of the offered one (PU-9).
func merged(held, offered rendezvous.Registration, fields []string) rendezvous.Registration {
	for _, f := range fields {
		switch f {
		case "url":
			held.URL = offered.URL
		case "token":
			held.Token = offered.Token
		case "auth":
			held.Auth = offered.Auth
		case "headers":
			held.Headers = offered.Headers
		case "tls":
			held.TLS = offered.TLS
		case "signing":
			held.Signing = offered.Signing
		case "projection":
			held.Projection = offered.Projection
		case "events":
			held.Events = offered.Events
		case "include_payload":
			held.IncludePayload = offered.IncludePayload
		case "timeout_ms":
			held.Timeout = offered.Timeout
		case "max_attempts":
			held.MaxAttempts = offered.MaxAttempts
		case "on_reject_limit":
			held.OnRejectLimit = offered.OnRejectLimit
		case "trace":
			held.Trace = offered.Trace
		}
	}
	return held
}

// putNew makes a registration, or its next incarnation where one is gone whose lease still runs.
func (u *unit) putNew(ctx context.Context, f *flow, run *backend.Run, p store.PutPush, gone *backend.Push) (store.PushPut, error) {
	if p.Fields != nil {
		return store.PushPut{}, pushNotFound(store.PushKey{RunID: p.RunID, ID: p.ID})
	}
	own, err := u.tx.PushesOf(ctx, []backend.RunKey{run.Key()})
	if err != nil {
		return store.PushPut{}, err
	}
	callers := 0
	for _, o := range own {
		if o.State != backend.PushGone && rendezvous.RegistrationNamespace(o.ID) == rendezvous.PushCaller {
			callers++
		}
	}
	if callers >= u.engine.perRun {
		return store.PushPut{}, rendezvous.OverLimit("registrations", u.engine.perRun, callers+1).With("run", p.RunID)
	}
	row, err := u.newPush(f, run, p)
	if err != nil {
		return store.PushPut{}, err
	}
	u.addPush(f, row, gone)
	if row.State == rendezvous.PushLive {
		u.noticePush(f.Workflow, p.RunID)
	}
	return store.PushPut{Push: storePush(row), Created: true}, nil
}

// newPush is a new row of f's run: its cursor is where it is asked to begin, and it is due unless nothing is there (PU-14).
func (u *unit) newPush(f *flow, run *backend.Run, p store.PutPush) (*backend.Push, error) {
	r, err := p.Check(u.now)
	if err != nil {
		return nil, err
	}
	keepCreated(r.Signing, nil, u.now)
	next := p.NextSeq
	switch {
	case next > f.Head+1:
		return nil, checkCursor(rendezvous.Cursor{NextSeq: next}, f.Head)
	case next == 0 && !run.SealedAt.IsZero():
		next = run.LastSeq
	case next == 0:
		next = f.Head + 1
	}
	row := &backend.Push{
		Tenant: f.Tenant, RunID: r.RunID, ID: r.ID, WorkflowID: f.ID, Namespace: rendezvous.RegistrationNamespace(r.ID), Gate: gateFor(p.Gate, r.URL), Version: 1,
		CreatedAt: u.now, Takes: backend.TakenKinds(r.Events), Settings: backend.PushSettings{Registration: r}, NextSeq: max(next, run.FirstSeq),
	}
	u.rest(row, !run.SealedAt.IsZero(), f.Head)
	return row, nil
}

func gateFor(given, url string) string {
	if given != "" {
		return given
	}
	return gateOf(url)
}

// checkStartPush judges the registrations of a start of that run: they name no run, and each is another.
func checkStartPush(list []store.PutPush, run string, most int) ([]store.PutPush, error) {
	if len(list) > most {
		return nil, rendezvous.OverLimit("push", most, len(list))
	}
	out := slices.Clone(list)
	for i := range out {
		p := &out[i]
		switch {
		case p.RunID != "":
			return nil, placedPush(rendezvous.InvalidField("run_id", "is the starting run's; leave it out"), i)
		case p.Fields != nil:
			return nil, placedPush(rendezvous.InvalidField("fields", "is for a registration that is held; leave it out"), i)
		case p.IfVersion != 0:
			return nil, placedPush(rendezvous.InvalidField("if_version", "is for a registration that is held; leave it out"), i)
		}
		p.RunID = run
		if err := checkPut(p); err != nil {
			return nil, placedPush(err, i)
		}
		if slices.ContainsFunc(out[:i], func(o store.PutPush) bool { return o.ID == p.ID }) {
			return nil, placedPush(rendezvous.InvalidField("id", "is there twice"), i)
		}
	}
	return out, nil
}

// placedPush says which registration of a start an error is about.
func placedPush(err error, i int) error {
	var e *rendezvous.Error
	if errors.As(err, &e) {
		return e.With("push", i)
	}
	return err
}

// beginPush registers what a start asks for, at its RunStarted where no other record is named (PU-13).
func (u *unit) beginPush(f *flow, run *backend.Run, list []store.PutPush) error {
	for i, p := range list {
		if p.NextSeq == 0 {
			p.NextSeq = run.FirstSeq
		}
		row, err := u.newPush(f, run, p)
		if err != nil {
			return placedPush(err, i)
		}
		u.addPush(f, row, nil)
		if row.State == rendezvous.PushLive {
			u.noticePush(f.Workflow, run.ID)
		}
	}
	return nil
}

// addPush puts a new row among the changes; its incarnation is drawn when they are applied. gone is a deleted one under its key whose send lease still runs, nil
// for none: the new one takes its place, under the same wait.
func (u *unit) addPush(f *flow, row, gone *backend.Push) {
	f.Registrations++
	u.saveFlow(f)
	u.fresh = append(u.fresh, row)
	if gone == nil {
		u.first(row)
		u.ch.NewPushes = append(u.ch.NewPushes, row)
		return
	}
	row.LeaseToken, row.LeaseOwner, row.LeaseRequest, row.LeaseUntil = gone.LeaseToken, gone.LeaseOwner, gone.LeaseRequest, gone.LeaseUntil
	row.Resettled = true
	u.revoke(row)
	u.savePush(row)
}

// numberPushes draws the incarnations of new registrations, from the sequence of tokens: a token that is older than its registration is of one before.
func (u *unit) numberPushes(ctx context.Context) error {
	if len(u.fresh) == 0 {
		return nil
	}
	numbers, err := u.tx.NewTakes(ctx, len(u.fresh))
	if err != nil {
		return err
	}
	for i, p := range u.fresh {
		p.Incarnation = numbers[i]
	}
	return nil
}

// watch registers the operator's destinations with f's current run, but for those that are registered, with the cursor on record seq (PU-12, PU-106).
func (u *unit) watch(f *flow, seq int64, held map[string]*backend.Push) {
	for _, d := range u.engine.destinations {
		id := rendezvous.OperatorRegistration(d.Name)
		if len(d.Types) > 0 && !slices.Contains(d.Types, f.Type) || held[id] != nil && held[id].State != backend.PushGone {
			continue
		}
		row := &backend.Push{
			Tenant: f.Tenant, RunID: f.RunID, ID: id, WorkflowID: f.ID, Namespace: rendezvous.PushOperator, Gate: id, Version: 1, CreatedAt: u.now,
			Takes: backend.TakenKinds(d.Events), NextSeq: seq, State: rendezvous.PushLive, NextAttemptAt: u.now,
			Settings: backend.PushSettings{Registration: rendezvous.Registration{RunID: f.RunID, ID: id, Events: d.Events}},
		}
		u.addPush(f, row, held[id])
		u.noticePush(f.Workflow, f.RunID)
	}
}

// watchAgain registers them with a run that is reopened, if they were completed before.
func (u *unit) watchAgain(ctx context.Context, f *flow, seq int64) error {
	if len(u.engine.destinations) == 0 {
		return nil
	}
	keys := make([]backend.PushKey, len(u.engine.destinations))
	for i, d := range u.engine.destinations {
		keys[i] = backend.PushKey{Tenant: f.Tenant, RunID: f.RunID, ID: rendezvous.OperatorRegistration(d.Name)}
	}
	rows, err := u.tx.LockPushes(ctx, keys)
	held := map[string]*backend.Push{}
	for k, p := range rows {
		held[k.ID] = p
	}
	if err == nil {
		u.watch(f, seq, held)
	}
	return err
}
