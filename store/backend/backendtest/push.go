package backendtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

var pushCases = []backendCase{
	{"push rows come back as they went in, full and bare, and are written over", pushRows},
	{"what callers set of a push row is written only where it says so", pushSettings},
	{"a push row that is there is stale to insert, one that is not to change", stalePushes},
	{"a wake finds the idle registrations of its run that take its kinds, and says so", pushWakes},
	{"due registrations: neither idle nor parked nor leased nor gone, in order, by namespace and tenant", duePushes},
	{"a lease that has run out is due, and one that has not is not", lapsedPushes},
	{"due registrations are taken fairly, a gate has its places, and more is said", takenPushes},
	{"registrations by token, by claim and by what is left of them", pushesByLease},
	{"parked registrations by key and by instant, through a filter, page by page", parkedPushes},
	{"failing registrations, the longest first, without those that somebody sends for", agedPushes},
	{"attempt logs: by incarnation, by id, by age and by length", pushLogs},
	{"registrations and their logs go with their run", prunedPushes},
}

// push is a live registration of a flow's run, due now, not stored yet.
func (x *bench) push(w *backend.Workflow, id string) *backend.Push {
	x.Helper()
	at := x.now()
	return &backend.Push{
		Tenant: w.Tenant, RunID: w.RunID, ID: id, WorkflowID: w.ID, Namespace: rendezvous.RegistrationNamespace(id), Gate: "gate", Incarnation: 1, Version: 1, CreatedAt: at,
		Takes: 1, NextSeq: 1, State: rendezvous.PushLive, NextAttemptAt: at, Settings: backend.PushSettings{Registration: rendezvous.Registration{RunID: w.RunID, ID: id}},
	}
}

// pushed stores registrations.
func (x *bench) pushed(w *backend.Workflow, rows ...*backend.Push) {
	x.Helper()
	x.apply(&backend.Changes{NewPushes: rows}, w.Key())
}

// leased gives a registration a send lease.
func leased(p *backend.Push, token int64, until time.Time) *backend.Push {
	p.LeaseToken, p.LeaseOwner, p.LeaseRequest, p.LeaseUntil = token, "pod", "request", until
	return p
}

func parkedAt(p *backend.Push, at time.Time, reason rendezvous.ParkReason) *backend.Push {
	p.State, p.ParkedAt, p.Reason = rendezvous.PushParked, at, reason
	return p
}

// change writes locked registrations.
func (x *bench) change(w *backend.Workflow, rows ...*backend.Push) {
	x.Helper()
	x.update(func(tx backend.Tx) {
		got(tx.LockWorkflows(ctx, []backend.WorkflowKey{w.Key()}))(x)
		var keys []backend.PushKey
		for _, p := range rows {
			keys = append(keys, p.Key())
		}
		got(tx.LockPushes(ctx, keys))(x)
		if err := tx.Apply(ctx, &backend.Changes{Pushes: rows}); err != nil {
			x.Fatal(err)
		}
	})
}

func (x *bench) pushRow(k backend.PushKey) (row *backend.Push) {
	x.Helper()
	x.view(func(r backend.Reader) { row = got(r.Pushes(ctx, []backend.PushKey{k}))(x)[k] })
	return row
}

func pushIDs(rows []*backend.Push) []string {
	var ids []string
	for _, p := range rows {
		ids = append(ids, p.ID)
	}
	return ids
}

func pushRows(x *bench) {
	w := x.flow(acme, "1")
	at := x.now()
	bare, full := x.push(w, "bare"), x.push(w, "full é\u2028")
	on, off := true, false
	secret := rendezvous.NewSecret
	full.Gate, full.Incarnation, full.Version, full.Takes = "https://example.org:443", 7, 3, backend.AllKinds
	full.Settings.Registration = rendezvous.Registration{
		RunID: w.RunID, ID: full.ID, URL: "https://example.org/a?b", Token: secret("t"), Projection: rendezvous.ProjectionA2A, Events: []string{"*"}, IncludePayload: &off,
		Auth: rendezvous.PushAuth{
			Kind: rendezvous.AuthOAuth2, Scheme: "s", Credentials: secret("c"), User: "u", Password: secret("p"), TokenURL: "https://example.org/t", ClientID: "i",
			ClientSecret: secret("cs"), Scopes: []string{"a", "b"},
		},
		Headers: []rendezvous.PushHeader{{Name: "X-A", Value: secret("v")}}, TLS: rendezvous.PushTLS{Certificates: "c", Key: secret("k"), Authorities: "a"},
		Signing: []rendezvous.SigningKey{{Key: secret("whsec_x"), ID: "k", Algorithm: "v1a", Public: "whpk_y", CreatedAt: at, ExpiresAt: at.Add(time.Hour)}},
		Follow:  rendezvous.FollowRun, Timeout: 1500 * time.Millisecond, MaxAttempts: 5, OnRejectLimit: 6, Handshake: rendezvous.HandshakeNone, Trace: &on,
	}
	full.Settings.Rotated = backend.PushRotated{Op: "op", KeyID: "k", Generated: true, At: at}
	full.NextSeq, full.NextIndex, full.Attempts, full.FailingSince, full.Rejects, full.AttemptNo, full.Lost = 9, 2, 3, at.Add(-time.Hour), 1, 77, 4
	full.Error, full.EndedToken, full.EndedAs, full.SettleID, full.SettleOutcome = "no\nanswer", 5, "retry", "s", []byte(`{"a":1}`)
	full.UnparkOp, full.Skipped, full.Logged = "op", 8, 2
	full.Last = &rendezvous.PushAttempt{No: 77, Seq: 9, Index: 2, At: at, Class: rendezvous.ClassSilent, Unknown: true, Status: 500, Phases: rendezvous.PushPhases{DNS: 5, Total: time.Second}}
	leased(full, 12, at.Add(time.Minute)).LeaseRevoked = true
	x.pushed(w, bare, full)
	x.view(func(r backend.Reader) {
		rows := got(r.Pushes(ctx, []backend.PushKey{bare.Key(), full.Key(), {Tenant: globex, RunID: w.RunID, ID: "bare"}}))(x)
		eq(x, "registrations", rows, map[backend.PushKey]*backend.Push{bare.Key(): bare, full.Key(): full})
		eq(x, "registrations of runs", got(r.PushesOf(ctx, []backend.RunKey{runKey(acme, w.RunID), runKey(globex, w.RunID)}))(x), []*backend.Push{bare, full})
	})
	idle := *bare
	idle.State = rendezvous.PushIdle
	parkedAt(full, at, rendezvous.ParkGone).FailingSince = time.Time{}
	x.change(w, &idle, full)
	eq(x, "a registration that rests", x.pushRow(bare.Key()), &idle)
	eq(x, "a parked one", x.pushRow(full.Key()), full)
}

func pushSettings(x *bench) {
	w := x.flow(acme, "1")
	p := x.push(w, "a")
	x.pushed(w, p)
	next := *p
	next.Gate, next.Takes, next.NextSeq = "other", 2, 5
	next.Settings.URL = "https://example.org"
	x.change(w, &next)
	kept := *p
	kept.NextSeq = 5
	eq(x, "without saying so", x.pushRow(p.Key()), &kept)
	next.Resettled = true
	x.change(w, &next)
	eq(x, "saying so", x.pushRow(p.Key()), &next)

	damaged := next
	damaged.Corrupt = rendezvous.ErrCorrupt
	damaged.NextSeq, damaged.Attempts, damaged.NextAttemptAt = 99, 9, p.NextAttemptAt.Add(time.Hour)
	leased(&damaged, 3, p.NextAttemptAt.Add(time.Minute))
	x.change(w, &damaged)
	want := next
	want.NextAttemptAt = damaged.NextAttemptAt
	eq(x, "one that does not decode: schedule and lease alone", x.pushRow(p.Key()), leased(&want, 3, damaged.LeaseUntil))
}

func stalePushes(x *bench) {
	w := x.flow(acme, "1")
	p := x.push(w, "a")
	x.pushed(w, p)
	x.stale("a second one", &backend.Changes{NewPushes: []*backend.Push{x.push(w, "a")}, Unwoken: []backend.WorkflowKey{w.Key()}}, w.Key())
	x.stale("an entry of a log, twice", func() *backend.Changes {
		e := entry(p, 1, p.CreatedAt)
		return &backend.Changes{PushLog: []*backend.PushLogEntry{e, e}}
	}())
	if rows := x.pushRow(p.Key()); rows == nil {
		x.Fatal("the row went")
	}
}

func pushWakes(x *bench) {
	w, other := x.flow(acme, "1"), x.flow(acme, "2")
	takes, leaves, parked, elsewhere := x.push(w, "takes"), x.push(w, "leaves"), x.push(w, "parked"), x.push(other, "elsewhere")
	for _, p := range []*backend.Push{takes, leaves, elsewhere} {
		p.State = rendezvous.PushIdle
	}
	takes.Takes, leaves.Takes, elsewhere.Takes, parked.Takes = 1|4, 2, 4, 4
	x.pushed(w, takes, leaves, parkedAt(parked, x.now(), rendezvous.ParkByOperator))
	x.pushed(other, elsewhere)
	wake := func(w *backend.Workflow, kinds uint64, want bool) {
		x.Helper()
		at := x.now().Add(time.Second)
		wakes := []*backend.PushWake{{Run: runKey(globex, "r1"), Kinds: kinds, Now: at}, {Run: runKey(w.Tenant, w.RunID), Kinds: kinds, Now: at}}
		x.apply(&backend.Changes{Wakes: wakes}, w.Key())
		eq(x, "woke", []bool{wakes[0].Woke, wakes[1].Woke}, []bool{false, want})
	}
	state := func(p *backend.Push) rendezvous.PushState { x.Helper(); return x.pushRow(p.Key()).State }
	wake(w, 8, false)
	wake(w, 4, true)
	eq(x, "states", []rendezvous.PushState{state(takes), state(leaves), state(parked), state(elsewhere)},
		[]rendezvous.PushState{rendezvous.PushLive, rendezvous.PushIdle, rendezvous.PushParked, rendezvous.PushIdle})
	takes.State, takes.NextAttemptAt = rendezvous.PushLive, x.pushRow(takes.Key()).NextAttemptAt
	if !takes.NextAttemptAt.After(x.now()) {
		x.Error("a woken registration is due at the instant of before")
	}
	eq(x, "a woken row", x.pushRow(takes.Key()), takes)
	wake(w, 4, false)
	wake(w, backend.AllKinds, true)
	eq(x, "state after a terminal", state(leaves), rendezvous.PushLive)
}

func duePushes(x *bench) {
	w, foreign := x.flow(acme, "1"), x.flow(globex, "1")
	at := x.now()
	id := func(w *backend.Workflow, id string, due time.Duration) *backend.Push {
		p := x.push(w, id)
		p.NextAttemptAt = at.Add(due)
		return p
	}
	idle, gone, held, operator := id(w, "idle", 0), id(w, "gone", 0), id(w, "held", 0), id(w, "operator:a", -time.Hour)
	held.FailingSince = at
	idle.State, gone.State = rendezvous.PushIdle, backend.PushGone
	leased(gone, 1, at.Add(-time.Minute)).LeaseRevoked = true
	leased(held, 2, at.Add(time.Minute))
	x.pushed(w, id(w, "é", 0), id(w, "Z", 0), id(w, "a", 0), id(w, "late", 2*time.Second), id(w, "later", time.Hour), id(w, "early", -time.Second), idle, gone, held, operator,
		parkedAt(id(w, "parked", 0), at, rendezvous.ParkGone))
	x.pushed(foreign, id(foreign, "f", -time.Minute))
	x.view(func(r backend.Reader) {
		due := func(n rendezvous.PushNamespace, tenant string, at time.Time) backend.PushDue {
			return backend.PushDue{Namespace: n, Tenant: tenant, At: at}
		}
		of := func(d backend.PushDue, limit int) []string {
			x.Helper()
			return pushIDs(got(r.DuePushes(ctx, d, limit))(x))
		}
		count := func(d backend.PushDue, most int) int { x.Helper(); return got(r.CountDuePushes(ctx, d, most))(x) }
		next := func(d backend.PushDue) time.Time { x.Helper(); return got(r.NextPush(ctx, d))(x) }
		caller := due(rendezvous.PushCaller, acme, at)
		eq(x, "due", of(caller, 10), []string{"early", "Z", "a", "é"})
		eq(x, "a page", of(caller, 2), []string{"early", "Z"})
		eq(x, "due a microsecond before", of(due(rendezvous.PushCaller, acme, at.Add(-time.Microsecond)), 10), []string{"early"})
		eq(x, "due later", of(due(rendezvous.PushCaller, acme, at.Add(2*time.Second)), 10), []string{"early", "Z", "a", "é", "late"})
		eq(x, "due of operators", of(due(rendezvous.PushOperator, acme, at), 10), []string{"operator:a"})
		eq(x, "count", count(caller, 10), 4)
		eq(x, "count of all tenants", count(due(rendezvous.PushCaller, "", at), 10), 5)
		eq(x, "count up to a maximum", count(due(rendezvous.PushCaller, "", at), 3), 3)
		eq(x, "next", next(due(rendezvous.PushCaller, "", at)), at.Add(2*time.Second))
		eq(x, "next of a tenant that has none", next(due(rendezvous.PushCaller, globex, at)), time.Time{})
		eq(x, "next of operators", next(due(rendezvous.PushOperator, "", at)), time.Time{})
		runs := got(r.DuePushRuns(ctx, at, 10))(x)
		eq(x, "due runs", runs, []backend.DuePushRun{
			{Run: runKey(acme, "r1"), WorkflowID: "w1", Since: at.Add(-time.Hour), Rows: 5}, {Run: runKey(globex, "r1"), WorkflowID: "w1", Since: at.Add(-time.Minute), Rows: 1},
		})
		eq(x, "due runs before", len(got(r.DuePushRuns(ctx, at.Add(-time.Minute), 10))(x)), 2)
		eq(x, "due runs, one", len(got(r.DuePushRuns(ctx, at, 1))(x)), 1)
		d := got(r.Depths(ctx, 100))(x)
		eq(x, "depths", fmt.Sprint(d.DuePushes, d.FailingPushes, d.ParkedPushes, d.OldestDuePush.Equal(at.Add(-time.Hour))), "6 1 1 true")
	})
}

func lapsedPushes(x *bench) {
	w := x.flow(acme, "1")
	at := x.now()
	lapsed, revoked, running, early := x.push(w, "lapsed"), x.push(w, "revoked"), x.push(w, "running"), x.push(w, "early")
	lapsed.NextAttemptAt = at.Add(-time.Hour)
	early.NextAttemptAt = at.Add(-time.Minute)
	leased(lapsed, 1, at)
	leased(revoked, 2, at.Add(-time.Second)).LeaseRevoked = true
	leased(running, 3, at.Add(time.Hour)) // further than a database's own clock runs on meanwhile
	x.pushed(w, lapsed, revoked, running, early)
	d := backend.PushDue{Namespace: rendezvous.PushCaller, Tenant: acme, At: at}
	x.view(func(r backend.Reader) {
		eq(x, "due", pushIDs(got(r.DuePushes(ctx, d, 10))(x)), []string{"lapsed", "early", "revoked"})
		eq(x, "count", got(r.CountDuePushes(ctx, d, 10))(x), 3)
	})
	x.update(func(tx backend.Tx) {
		for _, only := range [][]backend.RunKey{nil, {runKey(acme, w.RunID)}} {
			taken := got(tx.TakeDuePushes(ctx, backend.PushClaim{PushDue: d, Limit: 10, PerGate: 10, Only: only}))(x)
			eq(x, "taken", pushIDs(taken.Rows), []string{"lapsed", "early", "revoked"})
			eq(x, "more", taken.More, false)
			eq(x, "a row", taken.Rows[0], lapsed)
		}
		taken := got(tx.TakeDuePushes(ctx, backend.PushClaim{PushDue: d, Limit: 2, PerGate: 10}))(x)
		eq(x, "a page", pushIDs(taken.Rows), []string{"lapsed", "early"})
		eq(x, "more", []any{taken.More, len(taken.Crowded)}, []any{true, 0})
		taken = got(tx.TakeDuePushes(ctx, backend.PushClaim{PushDue: d, Limit: 2, PerGate: 10, Only: []backend.RunKey{runKey(globex, "r1")}}))(x)
		eq(x, "of another run", len(taken.Rows), 0)
	})
}

func takenPushes(x *bench) {
	at := x.now()
	var flood []*backend.Push
	w, small := x.flow(acme, "1"), x.flow(globex, "1")
	for i := range 30 {
		p := x.push(w, fmt.Sprintf("p%02d", i))
		p.NextAttemptAt, p.Gate = at.Add(-time.Hour+time.Duration(i)*time.Second), "dead"
		flood = append(flood, p)
	}
	other, foreign := x.push(w, "other"), x.push(small, "foreign")
	other.Gate, foreign.Gate = "live", "dead"
	x.pushed(w, append(flood, other)...)
	x.pushed(small, foreign)
	take := func(limit, perGate int) (ids string, taken backend.PushesTaken) {
		x.update(func(tx backend.Tx) {
			claim := backend.PushClaim{PushDue: backend.PushDue{Namespace: rendezvous.PushCaller, At: tx.Now()}, Limit: limit, PerGate: perGate}
			taken = got(tx.TakeDuePushes(ctx, claim))(x)
		})
		return fmt.Sprint(pushIDs(taken.Rows)), taken
	}
	for _, c := range []struct {
		limit, perGate int
		ids            string
		crowded        string
	}{
		{4, 100, "[p00 p01 p02 foreign]", "[]"},
		{4, 2, "[p00 p01 other]", "[dead]"}, // the other tenant's is of the same gate, which is full
		{40, 3, "[p00 p01 p02 other]", "[dead]"},
		{1, 100, "[p00]", "[]"},
		{3, 2, "[p00 other foreign]", "[dead]"}, // as many as were asked for, and nothing is left but of that gate
		{2, 2, "[p00 foreign]", "[]"},           // the other gate's is left
	} {
		ids, taken := take(c.limit, c.perGate)
		what := fmt.Sprintf("%d of %d a gate", c.limit, c.perGate)
		eq(x, what, ids, c.ids)
		eq(x, what+": more, crowded", []any{taken.More, fmt.Sprint(taken.Crowded)}, []any{true, c.crowded})
	}
	ids, taken := take(40, 100)
	eq(x, "all", []any{len(ids) > 0, taken.More, len(taken.Crowded)}, []any{true, false, 0})
}

func pushesByLease(x *bench) {
	w := x.flow(acme, "1")
	at := x.now()
	a, b, revoked, gone := x.push(w, "a"), x.push(w, "b"), x.push(w, "revoked"), x.push(w, "gone")
	a.NextAttemptAt = at.Add(time.Second)
	leased(a, 11, at.Add(time.Hour))
	leased(b, 12, at.Add(time.Hour))
	leased(revoked, 13, at.Add(time.Hour)).LeaseRevoked = true
	leased(gone, 14, at).LeaseRevoked = true
	gone.State = backend.PushGone
	x.pushed(w, a, b, revoked, gone, x.push(w, "free"))
	x.update(func(tx backend.Tx) {
		rows := got(tx.PushesByToken(ctx, []int64{14, 11, 0, 99, 11, 13}))(x)
		slices.SortFunc(rows, func(a, b *backend.Push) int { return int(a.LeaseToken - b.LeaseToken) })
		eq(x, "by token", pushIDs(rows), []string{"a", "revoked", "gone"})
		eq(x, "by claim", pushIDs(got(tx.PushesOfClaim(ctx, "pod", "request"))(x)), []string{"b", "a"})
		eq(x, "by another claim", len(got(tx.PushesOfClaim(ctx, "pod", "other"))(x)), 0)
		eq(x, "gone", pushIDs(got(tx.GonePushes(ctx, 10))(x)), []string{"gone"})
		rows = got(tx.GonePushes(ctx, 10))(x)
		if err := tx.Apply(ctx, &backend.Changes{GonePushes: []backend.PushKey{rows[0].Key()}}); err != nil {
			x.Fatal(err)
		}
	})
	if x.pushRow(gone.Key()) != nil {
		x.Error("a row that was to go is there")
	}
}

func parkedPushes(x *bench) {
	w, foreign := x.flow(acme, "1"), x.flow(globex, "1")
	at := x.now()
	var rows []*backend.Push
	for i, id := range []string{"e", "d", "c", "b", "a"} {
		p := parkedAt(x.push(w, id), at.Add(time.Duration(i/2)*time.Second), rendezvous.ParkGone)
		if i%2 == 1 {
			p.Reason, p.Gate = rendezvous.ParkExpired, "other"
		}
		rows = append(rows, p)
	}
	x.pushed(w, append(rows, x.push(w, "live"))...)
	x.pushed(foreign, parkedAt(x.push(foreign, "f"), at, rendezvous.ParkGone))
	x.view(func(r backend.Reader) {
		walk := func(f backend.PushFilter, limit, look int) (ids []string) {
			x.Helper()
			for after := (backend.PushKey{}); ; {
				page, next, err := r.ListParkedPushes(ctx, acme, f, after, backend.Span{Limit: limit, Look: look})
				ids = append(ids, pushIDs(got(page, err)(x))...)
				if after = next; next == (backend.PushKey{}) {
					return ids
				}
			}
		}
		longest := func(f backend.PushFilter, limit, look int) (ids []string) {
			x.Helper()
			for after := (backend.ParkedPushPosition{}); ; {
				page, next, err := r.LongestParkedPushes(ctx, acme, f, after, backend.Span{Limit: limit, Look: look})
				ids = append(ids, pushIDs(got(page, err)(x))...)
				if after = next; !next.Set {
					return ids
				}
			}
		}
		for _, limit := range []int{1, 2, 10} {
			for _, look := range []int{2, 3, 100} {
				eq(x, "by key", walk(backend.PushFilter{}, limit, look), []string{"a", "b", "c", "d", "e"})
				eq(x, "of a reason", walk(backend.PushFilter{Reason: rendezvous.ParkExpired}, limit, look), []string{"b", "d"})
				eq(x, "of a gate", walk(backend.PushFilter{Gate: "gate"}, limit, look), []string{"a", "c", "e"})
				eq(x, "the longest first", longest(backend.PushFilter{}, limit, look), []string{"d", "e", "b", "c", "a"})
				eq(x, "the longest of a reason", longest(backend.PushFilter{Reason: rendezvous.ParkExpired, Gate: "other"}, limit, look), []string{"d", "b"})
			}
		}
		page, _ := got2(r.ListParkedPushes(ctx, acme, backend.PushFilter{}, backend.PushKey{}, backend.Span{Limit: 1, Look: 9}))(x)
		eq(x, "a row", page, rows[4:])
	})
}

func agedPushes(x *bench) {
	w, foreign := x.flow(acme, "1"), x.flow(globex, "1")
	at := x.now()
	failing := func(w *backend.Workflow, id string, ago time.Duration) *backend.Push {
		p := x.push(w, id)
		p.FailingSince, p.Attempts = at.Add(-ago), 1
		return p
	}
	x.pushed(w, failing(w, "old", 4*time.Hour), failing(w, "older", 5*time.Hour), failing(w, "edge", time.Hour), failing(w, "young", 59*time.Minute),
		leased(failing(w, "sent", 9*time.Hour), 1, at.Add(time.Hour)), leased(failing(w, "lapsed", 3*time.Hour), 2, at), parkedAt(failing(w, "parked", 9*time.Hour), at, rendezvous.ParkGone))
	x.pushed(foreign, failing(foreign, "f", 2*time.Hour))
	x.update(func(tx backend.Tx) {
		take := func(limit int) (string, bool) {
			rows, more := got2(tx.TakeAgedPushes(ctx, at.Add(-time.Hour), limit))(x)
			return fmt.Sprint(pushIDs(rows)), more
		}
		ids, more := take(10)
		eq(x, "aged", ids, "[older old lapsed f edge]")
		eq(x, "more", more, false)
		ids, more = take(2)
		eq(x, "a page of two tenants", ids, "[older f]")
		eq(x, "more", more, true)
	})
}

// entry is an entry of a registration's log.
func entry(p *backend.Push, no int64, at time.Time) *backend.PushLogEntry {
	return &backend.PushLogEntry{
		PushLogKey: backend.PushLogKey{PushKey: p.Key(), Incarnation: p.Incarnation, No: no}, At: at,
		Attempt: rendezvous.PushAttempt{No: no, At: at, Class: rendezvous.ClassFailed, Error: "é\n", Response: "no"},
	}
}

func pushLogs(x *bench) {
	w := x.flow(acme, "1")
	at := x.now()
	p, before := x.push(w, "a"), x.push(w, "a")
	p.Incarnation, p.Logged = 7, 3
	x.pushed(w, p)
	named, skip := entry(p, 2, at.Add(time.Second)), entry(p, 3, at)
	named.EntryID, skip.Kept = "e", true
	first := entry(p, 1, at.Add(2*time.Second))
	old := entry(before, 9, at.Add(-time.Hour))
	x.apply(&backend.Changes{PushLog: []*backend.PushLogEntry{first, named, skip, old}})
	nos := func(rows []*backend.PushLogEntry) (nos []int64) {
		for _, e := range rows {
			nos = append(nos, e.No)
		}
		return nos
	}
	x.view(func(r backend.Reader) {
		eq(x, "latest", got(r.PushLog(ctx, p.Key(), 0, 0, 10))(x), []*backend.PushLogEntry{skip, named, first})
		eq(x, "a page", nos(got(r.PushLog(ctx, p.Key(), 7, 3, 1))(x)), []int64{2})
		eq(x, "the one before", nos(got(r.PushLog(ctx, p.Key(), 1, 0, 10))(x)), []int64{9})
		eq(x, "by id", got(r.PushLogged(ctx, p.Key(), 7, "e"))(x), named)
		eq(x, "by id, of another", got(r.PushLogged(ctx, p.Key(), 1, "e"))(x), nil)
		eq(x, "of nobody", len(got(r.PushLog(ctx, backend.PushKey{Tenant: globex, RunID: w.RunID, ID: "a"}, 0, 0, 10))(x)), 0)
	})
	x.update(func(tx backend.Tx) {
		eq(x, "old", got(tx.OldPushLog(ctx, at.Add(time.Second), 10))(x), []backend.PushLogKey{old.PushLogKey, named.PushLogKey})
		eq(x, "the oldest", got(tx.OldPushLog(ctx, at.Add(time.Hour), 1))(x), []backend.PushLogKey{old.PushLogKey})
		eq(x, "long", pushIDs(got(tx.LongPushLogs(ctx, 2, 10))(x)), []string{"a"})
		eq(x, "not long", len(got(tx.LongPushLogs(ctx, 3, 10))(x)), 0)
		eq(x, "first ones", got(tx.OldestPushLog(ctx, p.Key(), 7, 5))(x), []backend.PushLogKey{first.PushLogKey, named.PushLogKey})
		eq(x, "the first one", got(tx.OldestPushLog(ctx, p.Key(), 7, 1))(x), []backend.PushLogKey{first.PushLogKey})
		if err := tx.Apply(ctx, &backend.Changes{GonePushLog: []backend.PushLogKey{named.PushLogKey, old.PushLogKey, {PushKey: p.Key(), Incarnation: 7, No: 99}}}); err != nil {
			x.Fatal(err)
		}
	})
	x.view(func(r backend.Reader) {
		eq(x, "left", nos(got(r.PushLog(ctx, p.Key(), 0, 0, 10))(x)), []int64{3, 1})
	})
}

func prunedPushes(x *bench) {
	w, other := x.flow(acme, "1"), x.flow(acme, "2")
	p, stays := x.push(w, "a"), x.push(other, "a")
	x.pushed(w, p)
	x.pushed(other, stays)
	x.apply(&backend.Changes{PushLog: []*backend.PushLogEntry{entry(p, 1, p.CreatedAt), entry(stays, 1, p.CreatedAt)}})
	x.apply(&backend.Changes{
		GoneWorkflows: []backend.WorkflowKey{w.Key()}, GoneRuns: []backend.RunKey{runKey(acme, w.RunID)},
		Remnants: []*backend.Remnant{{Tenant: acme, RunID: w.RunID, WorkflowID: w.ID, LastSeq: 9}},
	}, w.Key())
	x.view(func(r backend.Reader) {
		eq(x, "of the pruned", len(got(r.PushesOf(ctx, []backend.RunKey{runKey(acme, w.RunID)}))(x))+len(got(r.PushLog(ctx, p.Key(), 0, 0, 10))(x)), 0)
		eq(x, "of the other", len(got(r.PushesOf(ctx, []backend.RunKey{runKey(acme, other.RunID)}))(x))+len(got(r.PushLog(ctx, stays.Key(), 0, 0, 10))(x)), 2)
	})
}
