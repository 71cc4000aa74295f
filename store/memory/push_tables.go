package memory

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// pushTables are the rows of push registrations and their logs, and their indexes.
type pushTables struct {
	pushes    map[backend.PushKey]*backend.Push
	runPushes map[backend.RunKey]*sorted[backend.PushKey]
	ready     map[lane]*sorted[pushPlace]            // live and unleased, by next_attempt_at
	gates     map[lane]map[string]*sorted[pushPlace] // the same of each gate
	leased    *sorted[pushPlace]                     // live and leased, by lease_until
	parked    map[string]*sorted[pushPlace]          // by parked_at, of each tenant
	failing   map[string]*sorted[pushPlace]          // live ones, by failing_since, of each tenant
	gone      *sorted[pushPlace]                     // by lease_until
	long      *sorted[logged]                        // with a log, by its length
	tokens    map[int64]*backend.Push

	log    map[backend.PushKey]*sorted[*backend.PushLogEntry]
	oldLog *sorted[*backend.PushLogEntry] // not kept for good, by instant
}

type (
	lane struct { // due rows stand in
		namespace rendezvous.PushNamespace
		tenant    string
	}
	pushPlace struct {
		at  time.Time
		key backend.PushKey
	}
	logged struct {
		entries int
		key     backend.PushKey
	}
)

func comparePushes(a, b pushPlace) int { return cmp.Or(a.at.Compare(b.at), a.key.Compare(b.key)) }

func compareLogged(a, b logged) int {
	return cmp.Or(cmp.Compare(b.entries, a.entries), a.key.Compare(b.key))
}

func compareEntries(a, b *backend.PushLogEntry) int { return a.PushLogKey.Compare(b.PushLogKey) }

func compareOldEntries(a, b *backend.PushLogEntry) int {
	return cmp.Or(a.At.Compare(b.At), compareEntries(a, b))
}

func newPushTables() pushTables {
	return pushTables{
		pushes: map[backend.PushKey]*backend.Push{}, runPushes: map[backend.RunKey]*sorted[backend.PushKey]{},
		ready: map[lane]*sorted[pushPlace]{}, gates: map[lane]map[string]*sorted[pushPlace]{}, leased: newSorted(comparePushes),
		parked: map[string]*sorted[pushPlace]{}, failing: map[string]*sorted[pushPlace]{}, gone: newSorted(comparePushes), long: newSorted(compareLogged),
		tokens: map[int64]*backend.Push{}, log: map[backend.PushKey]*sorted[*backend.PushLogEntry]{}, oldLog: newSorted(compareOldEntries),
	}
}

// places are the sets that a row stands in, but for those of its gate, and where.
func (t *pushTables) places(p *backend.Push, each func(set *sorted[pushPlace], at time.Time)) {
	of := func(m map[string]*sorted[pushPlace]) *sorted[pushPlace] { return setOf(m, p.Tenant, comparePushes) }
	switch {
	case p.State == rendezvous.PushLive && p.LeaseToken == 0:
		each(setOf(t.ready, laneOf(p), comparePushes), p.NextAttemptAt)
	case p.State == rendezvous.PushLive:
		each(t.leased, p.LeaseUntil)
	case p.State == rendezvous.PushParked:
		each(of(t.parked), p.ParkedAt)
	case p.State == backend.PushGone:
		each(t.gone, p.LeaseUntil)
	}
	if p.State == rendezvous.PushLive && !p.FailingSince.IsZero() {
		each(of(t.failing), p.FailingSince)
	}
}

func laneOf(p *backend.Push) lane { return lane{p.Namespace, p.Tenant} }

// setOf is the set of m under k, made when it is not there.
func setOf[K comparable, T any](m map[K]*sorted[T], k K, compare func(a, b T) int) *sorted[T] {
	if m[k] == nil {
		m[k] = newSorted(compare)
	}
	return m[k]
}

// swept forgets an empty set.
func swept[K comparable, T any](m map[K]*sorted[T], k K) {
	if s := m[k]; s != nil && s.len() == 0 {
		delete(m, k)
	}
}

func (t *pushTables) linkPush(p *backend.Push) {
	t.pushes[p.Key()] = p
	setOf(t.runPushes, p.Key().Run(), backend.PushKey.Compare).insert(p.Key())
	t.places(p, func(set *sorted[pushPlace], at time.Time) { set.insert(pushPlace{at, p.Key()}) })
	if p.State == rendezvous.PushLive && p.LeaseToken == 0 {
		if t.gates[laneOf(p)] == nil {
			t.gates[laneOf(p)] = map[string]*sorted[pushPlace]{}
		}
		setOf(t.gates[laneOf(p)], p.Gate, comparePushes).insert(pushPlace{p.NextAttemptAt, p.Key()})
	}
	if p.LeaseToken != 0 {
		t.tokens[p.LeaseToken] = p
	}
	if p.Logged > 0 {
		t.long.insert(logged{p.Logged, p.Key()})
	}
}

func (t *pushTables) unlinkPush(p *backend.Push) {
	delete(t.pushes, p.Key())
	t.runPushes[p.Key().Run()].remove(p.Key())
	swept(t.runPushes, p.Key().Run())
	t.places(p, func(set *sorted[pushPlace], at time.Time) { set.remove(pushPlace{at, p.Key()}) })
	swept(t.ready, laneOf(p))
	swept(t.parked, p.Tenant)
	swept(t.failing, p.Tenant)
	if gates := t.gates[laneOf(p)]; gates[p.Gate] != nil {
		gates[p.Gate].remove(pushPlace{p.NextAttemptAt, p.Key()})
		if swept(gates, p.Gate); len(gates) == 0 {
			delete(t.gates, laneOf(p))
		}
	}
	delete(t.tokens, p.LeaseToken)
	t.long.remove(logged{p.Logged, p.Key()})
}

func (t *pushTables) linkEntry(e *backend.PushLogEntry) {
	setOf(t.log, e.PushKey, compareEntries).insert(e)
	if !e.Kept {
		t.oldLog.insert(e)
	}
}

// entry is the stored entry of that key, nil for none.
func (t *pushTables) entry(k backend.PushLogKey) *backend.PushLogEntry {
	own := t.log[k.PushKey]
	if own == nil {
		return nil
	}
	if chunk, at, found := own.find(&backend.PushLogEntry{PushLogKey: k}); found {
		return own.chunks[chunk][at]
	}
	return nil
}

func (t *pushTables) unlinkEntry(k backend.PushLogKey) {
	e := t.entry(k)
	if e == nil {
		return
	}
	t.log[k.PushKey].remove(e)
	swept(t.log, k.PushKey)
	t.oldLog.remove(e)
}

// copyPush is p deep enough; of a row that does not decode, what it still tells.
func copyPush(p *backend.Push) *backend.Push {
	if p.Corrupt != nil {
		return &backend.Push{
			Tenant: p.Tenant, RunID: p.RunID, ID: p.ID, WorkflowID: p.WorkflowID, Namespace: p.Namespace, Gate: p.Gate, State: p.State,
			NextAttemptAt: p.NextAttemptAt, FailingSince: p.FailingSince, ParkedAt: p.ParkedAt, LeaseToken: p.LeaseToken, LeaseOwner: p.LeaseOwner,
			LeaseRequest: p.LeaseRequest, LeaseUntil: p.LeaseUntil, LeaseRevoked: p.LeaseRevoked, Corrupt: p.Corrupt,
		}
	}
	c := *p
	c.Resettled = false
	r := &c.Settings.Registration
	r.Headers, r.Signing, r.Events = slices.Clone(r.Headers), slices.Clone(r.Signing), slices.Clone(r.Events)
	r.Auth.Scopes, r.IncludePayload, r.Trace = slices.Clone(r.Auth.Scopes), copied(r.IncludePayload), copied(r.Trace)
	c.SettleOutcome = bytes.Clone(p.SettleOutcome)
	c.Last = copied(p.Last)
	return &c
}
