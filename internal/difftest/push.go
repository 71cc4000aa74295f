package difftest

import (
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// destinations are what every store of a sequence is opened with.
var destinations = []rendezvous.Destination{{Name: "audit", Events: []string{rendezvous.AllEvents}, Types: []string{"Order"}}, {Name: "ends", Types: []string{"order"}}}

// Hook names a registration.
type Hook struct{ Tenant, Run, ID string }

func (h Hook) of(s *side) (store.Tenant, store.PushKey, error) {
	t, err := s.of(h.Tenant)
	return t, store.PushKey{RunID: s.id(h.Run), ID: h.ID}, err
}

// token is the n-th that the store handed out, 0 for none.
func (s *side) token(n int) int64 {
	switch {
	case n < 1:
		return int64(n)
	case n > len(s.tokens):
		return never
	}
	return s.tokens[n-1]
}

// PutPush is the verb.
type PutPush struct {
	Hook
	URL, Token, Projection string
	Events, Fields         []string
	Next, IfVersion        int64
}

func (p PutPush) ask(s *side) (any, error) {
	t, key, err := p.of(s)
	if err != nil {
		return nil, err
	}
	return t.PutPush(ctx, store.PutPush{
		Registration: rendezvous.Registration{
			RunID: key.RunID, ID: key.ID, URL: p.URL, Token: rendezvous.NewSecret(p.Token), Projection: rendezvous.Projection(p.Projection), Events: p.Events,
		},
		NextSeq: p.Next, IfVersion: p.IfVersion, Fields: p.Fields,
	}, time.Time{})
}

// ClaimPushes is the verb.
type ClaimPushes struct {
	Limit, PerGate int
	Namespace      string
	Owner, Request string
	Lease          time.Duration
	Only           []Only
}

// Only is a run of a claim.
type Only struct{ Tenant, Run string }

func (c ClaimPushes) ask(s *side) (any, error) {
	claim := store.ClaimPush{
		Limit: c.Limit, PerGate: c.PerGate, Namespace: rendezvous.PushNamespace(c.Namespace), Owner: c.Owner, Request: c.Request, Lease: c.Lease, LostLimit: 3,
	}
	for _, r := range c.Only {
		claim.Only = append(claim.Only, store.PushRun{Tenant: r.Tenant, RunID: s.id(r.Run)})
	}
	got, err := s.store.ClaimPushes(ctx, claim)
	for _, p := range got.Pushes {
		s.tokens = append(s.tokens, p.Token)
	}
	return got, err
}

func (c ClaimPushes) learn(w *World, got any) {
	for _, p := range got.(store.ClaimedPushes).Pushes {
		w.known.leases = append(w.known.leases, Hook{p.Tenant, w.role(p.RunID), p.ID})
		w.known.at(p.ExpiresAt)
	}
}

// RenewPushes is the verb.
type RenewPushes struct {
	Tokens []int
	Lease  time.Duration
}

func (r RenewPushes) ask(s *side) (any, error) {
	var tokens []int64
	for _, n := range r.Tokens {
		tokens = append(tokens, s.token(n))
	}
	return s.store.RenewPushes(ctx, tokens, r.Lease)
}

// Settlement is an item of SettlePushes.
type Settlement struct {
	Hook
	Token              int
	Name, Do, Why      string
	Seq                int64 // 0: nothing was accepted
	Index              int
	Class, Reason, Err string
	At                 time.Duration
	Head               int64
}

// SettlePushes is the verb.
type SettlePushes struct{ Items []Settlement }

func (p SettlePushes) ask(s *side) (any, error) {
	items := make([]store.PushSettlement, len(p.Items))
	for i, it := range p.Items {
		items[i] = store.PushSettlement{
			PushItem: store.PushItem{Tenant: it.Tenant, PushKey: store.PushKey{RunID: s.id(it.Run), ID: it.ID}}, Token: s.token(it.Token), Name: it.Name,
			Do: store.PushSettle(it.Do), Why: store.PushWhy(it.Why), At: at(it.At), Head: it.Head, Reason: rendezvous.ParkReason(it.Reason), Error: it.Err,
		}
		if it.Seq != 0 {
			items[i].Advance = &rendezvous.Cursor{NextSeq: it.Seq, NextIndex: it.Index}
		}
		if it.Class != "" {
			items[i].Attempts = []rendezvous.PushAttempt{{Seq: it.Seq, At: Base, Class: rendezvous.PushClass(it.Class), Status: 500, Response: it.Err}}
		}
	}
	return s.store.SettlePushes(ctx, items)
}

func (p SettlePushes) learn(w *World, _ any) {
	for _, it := range p.Items {
		w.known.at(at(it.At))
	}
}

// AdvancePush is the verb.
type AdvancePush struct {
	Hook
	Token int
	Seq   int64
	Index int
}

func (a AdvancePush) ask(s *side) (any, error) {
	t, key, err := a.of(s)
	if err != nil {
		return nil, err
	}
	return t.AdvancePush(ctx, key, s.token(a.Token), rendezvous.Cursor{NextSeq: a.Seq, NextIndex: a.Index})
}

// RetryPush is the verb.
type RetryPush struct {
	Hook
	Token int
	At    time.Duration
	Err   string
}

func (r RetryPush) ask(s *side) (any, error) {
	t, key, err := r.of(s)
	if err != nil {
		return nil, err
	}
	return nil, t.RetryPush(ctx, key, s.token(r.Token), at(r.At), r.Err)
}

// ParkPush is the verb.
type ParkPush struct {
	Hook
	Token  int
	Reason string
}

func (p ParkPush) ask(s *side) (any, error) {
	t, key, err := p.of(s)
	if err != nil {
		return nil, err
	}
	return nil, t.ParkPush(ctx, store.ParkPush{PushKey: key, Token: s.token(p.Token), Reason: rendezvous.ParkReason(p.Reason), Error: "e"})
}

// UnparkPush is the verb.
type UnparkPush struct {
	Hook
	At time.Duration
	Op string
}

func (u UnparkPush) ask(s *side) (any, error) {
	t, key, err := u.of(s)
	if err != nil {
		return nil, err
	}
	return t.UnparkPush(ctx, key, at(u.At), u.Op)
}

// UnparkPushes is the verb.
type UnparkPushes struct {
	Tenant, Reason string
	Spread         time.Duration
	Limit          int
}

func (u UnparkPushes) ask(s *side) (any, error) {
	t, err := s.of(u.Tenant)
	if err != nil {
		return nil, err
	}
	return t.UnparkPushes(ctx, store.UnparkPushes{PushParkedFilter: store.PushParkedFilter{Reason: rendezvous.ParkReason(u.Reason)}, Spread: u.Spread, Limit: u.Limit})
}

// SkipPush is the verb.
type SkipPush struct {
	Hook
	Seq   int64
	Actor string
}

func (k SkipPush) ask(s *side) (any, error) {
	t, key, err := k.of(s)
	if err != nil {
		return nil, err
	}
	return t.SkipPush(ctx, store.PushSkip{PushKey: key, Seq: k.Seq, Actor: k.Actor})
}

// CompletePush is the verb.
type CompletePush struct {
	Hook
	Token int
	Seq   int64
}

func (c CompletePush) ask(s *side) (any, error) {
	t, key, err := c.of(s)
	if err != nil {
		return nil, err
	}
	return nil, t.CompletePush(ctx, key, s.token(c.Token), c.Seq)
}

// DeletePush is the verb.
type DeletePush struct{ Hook }

func (x DeletePush) ask(s *side) (any, error) {
	t, key, err := x.of(s)
	if err != nil {
		return nil, err
	}
	return t.DeletePush(ctx, key)
}

// RotatePush is the verb, with a key of its own: a generated one is chance.
type RotatePush struct {
	Hook
	Key, Op string
	Grace   time.Duration
}

func (r RotatePush) ask(s *side) (any, error) {
	t, key, err := r.of(s)
	if err != nil {
		return nil, err
	}
	if r.Key == "" {
		r.Key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	}
	return t.RotatePush(ctx, store.PushRotation{PushKey: key, Key: rendezvous.NewSecret(r.Key), Op: r.Op, Grace: &r.Grace})
}

// LogPush is the verb.
type LogPush struct {
	Hook
	Entry string
}

func (l LogPush) ask(s *side) (any, error) {
	t, key, err := l.of(s)
	if err != nil {
		return nil, err
	}
	return t.LogPush(ctx, key, rendezvous.PushAttempt{ID: l.Entry, Seq: 1, At: Base, Class: rendezvous.ClassFailed})
}

// Upkeep is what the sweeper asks of push registrations: runs due for long, the aged, and logs.
type Upkeep struct{ Limit int }

func (u Upkeep) ask(s *side) (any, error) {
	now, err := s.plain.Now(ctx)
	if err != nil {
		return nil, err
	}
	runs, more, err := s.store.DuePushRuns(ctx, now.Add(-10*time.Second), u.Limit)
	if err != nil {
		return nil, err
	}
	parked, aged, err := s.store.ParkAgedPushes(ctx, 10*time.Minute, u.Limit)
	if err != nil {
		return nil, err
	}
	removed, long, err := s.store.TrimPushLogs(ctx, 3, time.Hour, u.Limit)
	return []any{runs, more, parked, aged, removed, long}, err
}

// Pushes is everything that can be read of a tenant's registrations.
type Pushes struct {
	Tenant string
	Limit  int
}

func (p Pushes) ask(s *side) (any, error) {
	t, err := s.of(p.Tenant)
	if err != nil {
		return nil, err
	}
	var all []any
	see := func(got any, err error) { all = append(all, got, rendezvous.CodeOf(err)) }
	see(t.DuePush(ctx, time.Time{}, p.Limit))
	see(t.DuePushIn(ctx, time.Time{}, p.Limit, rendezvous.PushCaller))
	see(t.ParkedPushes(ctx, store.PushParkedFilter{}, p.Limit, ""))
	for _, run := range append(append([]string{}, runs...), s.minted...) {
		rows, err := t.ListPush(ctx, run)
		see(rows, err)
		for _, row := range rows {
			see(t.PushAttempts(ctx, row.Key(), p.Limit, 0))
		}
	}
	return all, nil
}
