package storetest

import (
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// push goes through the push store and the push queue once, end to end: push.md sections 1 to 3 and 8, in the words of their main roads.
var push = []Case{
	{Name: "PU-14 PU-27 PU-104 a registration is due where it begins, rests at the head, and wakes with what it takes", Run: pushWakes},
	{Name: "PU-18 PU-31 PU-32 a Put that changes something revokes the lease and keeps the cursor", Run: pushReplaced},
	{Name: "PU-34 a Put over a deleted id waits for the lease of the one before", Run: pushReborn},
	{Name: "PU-29 PU-30 a lost lease is counted and its holder fenced", Run: pushLost},
	{Name: "PU-12 PU-106 destinations are registered with each first record", Run: pushDestinations},
	{Name: "PU-13 a start carries registrations, or starts nothing", Run: pushStarted},
	{Name: "PU-37 PU-45 settlements log, count once, and complete", Run: pushSettled},
	{Name: "PU-75 keys are rotated", Run: pushRotated},
	{Name: "PU-84 logs are trimmed by count and age, skips stay", Run: pushTrimmed},
	{Name: "PU-66 the aged are parked, and runs due for long are told", Run: pushAged},
	{Name: "R9 a registration that does not decode is handed to nobody and hides nobody", Run: pushDamaged},
	{Name: "SW-29 a workflow with an unfinished registration stays", Run: pushRetained},
}

// Hook is a registration of the run, of an id and a host of its own.
func (r *Flow) Hook() rendezvous.Registration {
	id := ID("hook")
	return rendezvous.Registration{RunID: r.ID, ID: id, URL: "https://" + id + ".example.org/in"}
}

// PutHook puts a registration.
func (r *Flow) PutHook(p store.PutPush) store.PushPut {
	r.F.T.Helper()
	if p.RunID == "" {
		p.Registration = r.Hook()
	}
	return must(r.F.PutPush(ctx, p, now))(r.F.T, "put "+p.ID)
}

// Hooked is a registration as it is stored; nil where there is none.
func (f *Fix) Hooked(key store.PushKey) *store.Push {
	f.T.Helper()
	return must(f.GetPush(ctx, key))(f.T, "get "+key.ID)
}

// ClaimHooks claims what is due of callers.
func (h *Harness) ClaimHooks(t testing.TB, c store.ClaimPush) store.ClaimedPushes {
	t.Helper()
	if c.Namespace == "" {
		c.Namespace = rendezvous.PushCaller
	}
	if c.Owner == "" {
		c.Owner = "pod/1"
	}
	if c.Request == "" {
		c.Request = ID("claim")
	}
	return must(h.Store.ClaimPushes(ctx, c))(t, "claim registrations")
}

// SettleHook makes one settlement.
func (h *Harness) SettleHook(t testing.TB, c store.ClaimedPush, s store.PushSettlement) store.PushSettled {
	t.Helper()
	s.PushItem, s.Token = store.PushItem{Tenant: c.Tenant, PushKey: c.Key()}, c.Token
	if s.Name == "" {
		s.Name = ID("settle")
	}
	out := must(h.Store.SettlePushes(ctx, []store.PushSettlement{s}))(t, "settle "+c.ID)
	eq(t, "outcomes of one item", len(out), 1)
	return out[0]
}

func pushWakes(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	hook := r.Hook()
	hook.Events = []string{string(rendezvous.RunCompleted)}
	put := r.PutHook(store.PutPush{Registration: hook, NextSeq: 1})
	eq(t, "state", put.State, rendezvous.PushLive)
	eq(t, "notices of a due one", len(put.Notices.Push), 1)
	eq(t, "registrations counted", r.Describe().Registrations, 1)

	got := h.ClaimHooks(t, store.ClaimPush{})
	eq(t, "claimed", len(got.Pushes), 1)
	eq(t, "cursor", got.Pushes[0].NextSeq, int64(1))
	eq(t, "claimed again", len(h.ClaimHooks(t, store.ClaimPush{}).Pushes), 0)
	head := r.Head()
	out := h.SettleHook(t, got.Pushes[0], store.PushSettlement{
		Advance: &rendezvous.Cursor{NextSeq: head + 1}, Do: store.PushRelease, Why: store.ReleaseRest, Head: head,
	})
	done(t, "rest", out.Err)
	eq(t, "idle", out.Idle, true)
	eq(t, "state", f.Hooked(put.Key()).State, rendezvous.PushIdle)

	r.Waits("w", "paid", K("order", "1")) // a kind that it does not take
	eq(t, "state", f.Hooked(put.Key()).State, rendezvous.PushIdle)
	ended := must(f.Conclude(ctx, store.Conclusion{RunID: r.ID, ExpectedSeq: r.Head(), Outcome: rendezvous.StatusFailed, Code: "x"}, now))(t, "conclude")
	eq(t, "notices of the terminal", len(ended.Notices.Push), 1)
	eq(t, "due", len(must(f.DuePush(ctx, now, 0))(t, "due")), 1)
	got = h.ClaimHooks(t, store.ClaimPush{Only: []store.PushRun{{Tenant: f.Name(), RunID: r.ID}}})
	eq(t, "claimed of the run", len(got.Pushes), 1)
	out = h.SettleHook(t, got.Pushes[0], store.PushSettlement{Advance: &rendezvous.Cursor{NextSeq: r.Head() + 1}, Do: store.PushComplete})
	eq(t, "done", out.Done, true)
	eq(t, "gone", f.Hooked(put.Key()) == nil, true)
	eq(t, "registrations counted", r.Describe().Registrations, 0)
}

func pushReplaced(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	hook := r.Hook()
	hook.Token = rendezvous.NewSecret("t0ken")
	put := r.PutHook(store.PutPush{Registration: hook, NextSeq: 1})
	eq(t, "created", put.Created, true)
	c := h.ClaimHooks(t, store.ClaimPush{}).Pushes[0]
	same := r.PutHook(store.PutPush{Registration: hook, NextSeq: 5 - 4})
	eq(t, "version of an identical Put", same.Version, int64(1))
	eq(t, "renewed", must(h.Store.RenewPushes(ctx, []int64{c.Token}, time.Minute))(t, "renew")[0].State, store.PushLeaseHeld)
	hook.URL += "/2"
	changed := must(f.PutPush(ctx, store.PutPush{Registration: rendezvous.Registration{RunID: r.ID, ID: hook.ID, URL: hook.URL}, Fields: []string{"url"}}, now))(t, "update")
	eq(t, "version", changed.Version, int64(2))
	eq(t, "token kept", f.Hooked(put.Key()).Token.Reveal(), "t0ken")
	eq(t, "cursor", changed.NextSeq, int64(1))
	eq(t, "renewed", must(h.Store.RenewPushes(ctx, []int64{c.Token}, time.Minute))(t, "renew")[0].State, store.PushLeaseRevoked)
	eq(t, "claimed before the hand-in", len(h.ClaimHooks(t, store.ClaimPush{}).Pushes), 0)
	out := h.SettleHook(t, c, store.PushSettlement{Advance: &rendezvous.Cursor{NextSeq: 2}, Do: store.PushRetry, Error: "late"})
	code(t, "a late failure", out.Err, rendezvous.CodeFenced)
	eq(t, "how the token stood", out.State, store.PushLeaseRevoked)
	eq(t, "cursor of an acceptance", f.Hooked(put.Key()).NextSeq, int64(2))
	again := h.ClaimHooks(t, store.ClaimPush{})
	eq(t, "claimed after the hand-in", len(again.Pushes), 1)
	eq(t, "greater token", again.Pushes[0].Token > c.Token, true)
	eq(t, "url", again.Pushes[0].URL, hook.URL)
}

func pushReborn(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	hook := r.Hook()
	put := r.PutHook(store.PutPush{Registration: hook, NextSeq: 1})
	c := h.ClaimHooks(t, store.ClaimPush{Lease: 30 * time.Second}).Pushes[0]
	gone := must(f.DeletePush(ctx, put.Key()))(t, "delete")
	eq(t, "quiet at", gone.QuietAt, c.ExpiresAt)
	eq(t, "quiet at, again", must(f.DeletePush(ctx, put.Key()))(t, "delete").QuietAt, c.ExpiresAt)
	eq(t, "listed", len(must(f.ListPush(ctx, r.ID))(t, "list")), 0)
	eq(t, "registrations counted", r.Describe().Registrations, 0)
	r.PutHook(store.PutPush{Registration: hook, NextSeq: 1})
	eq(t, "claimed", len(h.ClaimHooks(t, store.ClaimPush{}).Pushes), 0)
	_, err := f.AdvancePush(ctx, put.Key(), c.Token, rendezvous.Cursor{NextSeq: 2})
	code(t, "a token of the one before", err, rendezvous.CodeNotFound)
	h.Advance(31 * time.Second)
	eq(t, "claimed later", len(h.ClaimHooks(t, store.ClaimPush{}).Pushes), 1)
	eq(t, "cursor", f.Hooked(put.Key()).NextSeq, int64(1))
}

func pushLost(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	put := r.PutHook(store.PutPush{NextSeq: 1})
	var last store.ClaimedPush
	for n := range 5 {
		got := h.ClaimHooks(t, store.ClaimPush{Lease: time.Second, LostLimit: 5})
		eq(t, "claimed", len(got.Pushes), 1)
		eq(t, "lost", got.Pushes[0].Lost, n)
		if n > 0 {
			code(t, "a retry under a lost lease", f.RetryPush(ctx, put.Key(), last.Token, now, "late"), rendezvous.CodeFenced)
		}
		last = got.Pushes[0]
		h.Advance(2 * time.Second)
	}
	got := h.ClaimHooks(t, store.ClaimPush{LostLimit: 5})
	eq(t, "handed out", len(got.Pushes), 0)
	eq(t, "parked", len(got.Parked), 1)
	p := f.Hooked(put.Key())
	eq(t, "reason", p.Reason, rendezvous.ParkWorkerLost)
	eq(t, "attempts", p.Attempts, 0)
	log := must(f.PushAttempts(ctx, put.Key(), 0, 0))(t, "attempts")
	eq(t, "logged", len(log.Attempts), 5)
	eq(t, "unknown", log.Attempts[0].Unknown, true)
	eq(t, "number", log.Attempts[0].No, int64(5))
	op := ID("op")
	for range 2 {
		eq(t, "unparked", must(f.UnparkPush(ctx, put.Key(), now, op))(t, "unpark"), true)
	}
	eq(t, "unparked by another", must(f.UnparkPush(ctx, put.Key(), now, ID("op")))(t, "unpark"), false)
	eq(t, "claimed", len(h.ClaimHooks(t, store.ClaimPush{}).Pushes), 1)
}

func pushDestinations(t *testing.T, h *Harness) {
	h.Destinations(t, rendezvous.Destination{Name: "audit", Events: []string{"*"}}, rendezvous.Destination{Name: "other", Types: []string{"invoice"}})
	f := h.Fix(t)
	r := f.Start()
	rows := must(f.ListPush(ctx, r.ID))(t, "list")
	eq(t, "rows", len(rows), 1)
	eq(t, "id", rows[0].ID, "operator:audit")
	eq(t, "cursor", rows[0].NextSeq, int64(1))
	next := must(f.ContinueAsNew(ctx, store.Continuation{RunID: r.ID, ExpectedSeq: r.Head(), BatchID: ID("batch")}, now))(t, "continue")
	rows = must(f.ListPush(ctx, next.RunID))(t, "list")
	eq(t, "rows of the next", len(rows), 1)
	eq(t, "cursor of the next", rows[0].NextSeq, next.Seq)
	eq(t, "due of callers", len(h.ClaimHooks(t, store.ClaimPush{}).Pushes), 0)
	got := h.ClaimHooks(t, store.ClaimPush{Namespace: rendezvous.PushOperator})
	eq(t, "due of operators", len(got.Pushes), 2)
	ended := must(f.Conclude(ctx, store.Conclusion{RunID: next.RunID, ExpectedSeq: next.Seq, Outcome: rendezvous.StatusFailed, Code: "x"}, now))(t, "conclude")
	for _, c := range got.Pushes {
		if c.RunID == next.RunID {
			out := h.SettleHook(t, c, store.PushSettlement{Advance: &rendezvous.Cursor{NextSeq: ended.Seq + 1}, Do: store.PushComplete})
			eq(t, "completed", out.Done, true)
		}
	}
	back := must(f.ReopenRun(ctx, store.Reopening{RunID: next.RunID, BatchID: ID("batch"), Operator: &rendezvous.Operator{Actor: "a", Basis: rendezvous.BasisAsserted}}, now))(t, "reopen")
	rows = must(f.ListPush(ctx, next.RunID))(t, "list")
	eq(t, "rows of the reopened", len(rows), 1)
	eq(t, "cursor of the reopened", rows[0].NextSeq, back.Seq)
}

func pushStarted(t *testing.T, h *Harness) {
	f := h.Fix(t)
	start := func(p ...store.PutPush) (store.Started, error) {
		return f.StartRun(ctx, store.Start{WorkflowID: "w-" + ID(""), RunID: ID("run"), Type: "order", Push: p}, now)
	}
	good := store.PutPush{Registration: rendezvous.Registration{URL: "https://example.org/x"}}
	naming, bad := good, good
	naming.RunID, bad.Auth = "r", rendezvous.PushAuth{Kind: rendezvous.AuthBasic}
	for _, p := range []store.PutPush{naming, bad} {
		_, err := start(good, p)
		code(t, "a start with a fault", err, rendezvous.CodeInvalid)
	}
	started := must(start(good))(t, "start")
	rows := must(f.ListPush(ctx, started.RunID))(t, "list")
	eq(t, "rows", len(rows), 1)
	eq(t, "id", rows[0].ID, "push-"+started.RunID)
	eq(t, "cursor", rows[0].NextSeq, int64(1))
	eq(t, "notices", len(started.Notices.Push), 1)
}

func pushSettled(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	put := r.PutHook(store.PutPush{NextSeq: 1})
	c := h.ClaimHooks(t, store.ClaimPush{}).Pushes[0]
	tried := store.PushSettlement{
		Name: ID("settle"), Do: store.PushRetry, At: h.Now(t).Add(time.Minute), Error: "500",
		Attempts: []rendezvous.PushAttempt{{Seq: 1, At: h.Now(t), Class: rendezvous.ClassRejected, Status: 400, Response: "no"}},
	}
	for range 2 { // again after a lost reply
		out := h.SettleHook(t, c, tried)
		done(t, "retry", out.Err)
	}
	p := f.Hooked(put.Key())
	eq(t, "attempts", p.Attempts, 1)
	eq(t, "rejects", p.Rejects, 1)
	eq(t, "attempt_no", p.AttemptNo, int64(1))
	eq(t, "last status", p.Last.Status, 400)
	eq(t, "due", p.NextAttemptAt, tried.At)
	eq(t, "claimed early", len(h.ClaimHooks(t, store.ClaimPush{}).Pushes), 0)
	eq(t, "next due", h.ClaimHooks(t, store.ClaimPush{}).NextDue, tried.At)
	eq(t, "logged", len(must(f.PushAttempts(ctx, put.Key(), 0, 0))(t, "attempts").Attempts), 1)
	h.Advance(time.Minute)
	c = h.ClaimHooks(t, store.ClaimPush{}).Pushes[0]
	out := h.SettleHook(t, c, store.PushSettlement{Do: store.PushComplete, Advance: &rendezvous.Cursor{NextSeq: 2}})
	code(t, "complete of a run that goes on", out.Err, rendezvous.CodeConflict)
	eq(t, "cursor", out.NextSeq, int64(2))
	far := h.SettleHook(t, c, store.PushSettlement{Do: store.PushKeep, Advance: &rendezvous.Cursor{NextSeq: 9}})
	code(t, "above the head", far.Err, rendezvous.CodeInvalid)
	many := make([]store.PushSettlement, 501)
	_, err := h.Store.SettlePushes(ctx, many)
	code(t, "501 items", err, rendezvous.CodeTooLarge)
}

func pushRotated(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	put := r.PutHook(store.PutPush{})
	eq(t, "state of one at head + 1", put.State, rendezvous.PushIdle)
	op := ID("op")
	first := must(f.RotatePush(ctx, store.PushRotation{PushKey: put.Key(), Op: op}))(t, "rotate")
	again := must(f.RotatePush(ctx, store.PushRotation{PushKey: put.Key(), Op: op}))(t, "rotate again")
	eq(t, "the same key", first.Key.Key.Equal(again.Key.Key) && first.Key.Key.Set(), true)
	h.Advance(11 * time.Minute)
	eq(t, "shown later", must(f.RotatePush(ctx, store.PushRotation{PushKey: put.Key(), Op: op}))(t, "rotate again").Key.Key.Set(), false)
	for range 4 {
		must(f.RotatePush(ctx, store.PushRotation{PushKey: put.Key(), Op: ID("op")}))(t, "rotate")
	}
	_, err := f.RotatePush(ctx, store.PushRotation{PushKey: put.Key(), Op: ID("op")})
	code(t, "a sixth key", err, rendezvous.CodeTooLarge)
	grace := time.Duration(0)
	must(f.RotatePush(ctx, store.PushRotation{PushKey: put.Key(), Op: ID("op"), Grace: &grace}))(t, "rotate without grace")
	eq(t, "keys", len(f.Hooked(put.Key()).Signing), 1)
}

func pushTrimmed(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	put := r.PutHook(store.PutPush{NextSeq: 1})
	for range 12 {
		must(f.LogPush(ctx, put.Key(), rendezvous.PushAttempt{ID: ID("entry"), Seq: 1, At: h.Now(t), Class: rendezvous.ClassFailed}))(t, "log")
	}
	done(t, "park", f.ParkPush(ctx, store.ParkPush{PushKey: put.Key(), Reason: rendezvous.ParkByOperator}))
	for range 2 {
		c := must(f.SkipPush(ctx, store.PushSkip{PushKey: put.Key(), Seq: 1, Actor: "ann", Reason: "no use"}))(t, "skip")
		eq(t, "cursor", c.NextSeq, int64(2))
	}
	trim := func(keep int, age time.Duration) int {
		n, more, err := h.Store.TrimPushLogs(ctx, keep, age, 0)
		done(t, "trim", err)
		eq(t, "more", more, false)
		return n
	}
	eq(t, "trimmed by count", trim(5, 0), 7)
	eq(t, "trimmed again", trim(5, 0), 0)
	log := must(f.PushAttempts(ctx, put.Key(), 0, 0))(t, "attempts")
	eq(t, "entries", len(log.Attempts), 6)
	eq(t, "the newest", log.Attempts[0].Actor, "ann")
	h.Advance(time.Hour)
	eq(t, "trimmed by age", trim(5, time.Hour), 5)
	eq(t, "entries", len(must(f.PushAttempts(ctx, put.Key(), 0, 0))(t, "attempts").Attempts), 1)
}

func pushAged(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	put := r.PutHook(store.PutPush{NextSeq: 1})
	done(t, "retry", f.RetryPush(ctx, put.Key(), 0, h.Now(t).Add(time.Minute), "no answer"))
	h.Advance(2 * time.Minute)
	runs, more, err := h.Store.DuePushRuns(ctx, h.Now(t).Add(-10*time.Second), 0)
	done(t, "due runs", err)
	eq(t, "due runs", len(runs), 1)
	eq(t, "run", runs[0].RunID, r.ID)
	eq(t, "more", more, false)
	parked, _, err := h.Store.ParkAgedPushes(ctx, time.Hour, 0)
	done(t, "park the aged", err)
	eq(t, "parked early", len(parked), 0)
	h.Advance(time.Hour)
	parked, _, err = h.Store.ParkAgedPushes(ctx, time.Hour, 0)
	done(t, "park the aged", err)
	eq(t, "parked", len(parked), 1)
	page := must(f.ParkedPushes(ctx, store.PushParkedFilter{Reason: rendezvous.ParkExpired}, 0, ""))(t, "parked")
	eq(t, "parked", len(page.Pushes), 1)
	eq(t, "error", page.Pushes[0].Error, "no answer")
	out := must(f.UnparkPushes(ctx, store.UnparkPushes{}))(t, "unpark many")
	eq(t, "unparked", out.Count, 1)
	eq(t, "due", must(f.DuePushIn(ctx, now, 0, rendezvous.PushOperator))(t, "due").Unserved, 1)
}

func pushDamaged(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	bad := r.PutHook(store.PutPush{NextSeq: 1})
	h.Advance(time.Second)
	good := r.PutHook(store.PutPush{NextSeq: 1})
	done(t, "damage", h.Damage.Push(f.Name(), r.ID, bad.ID))
	_, err := f.GetPush(ctx, bad.Key())
	code(t, "get", err, rendezvous.CodeCorrupt)
	rows := must(f.ListPush(ctx, r.ID))(t, "list")
	eq(t, "listed", len(rows), 2)
	for range 2 {
		got := h.ClaimHooks(t, store.ClaimPush{Limit: 1, Lease: time.Minute})
		for _, c := range got.Pushes {
			eq(t, "handed out", c.ID, good.ID)
		}
	}
	eq(t, "handed out to others", len(h.ClaimHooks(t, store.ClaimPush{}).Pushes), 0)
	code(t, "park", f.ParkPush(ctx, store.ParkPush{PushKey: bad.Key(), Reason: rendezvous.ParkByOperator}), rendezvous.CodeCorrupt)
	must(f.DeletePush(ctx, bad.Key()))(t, "delete")
	eq(t, "registrations counted", r.Describe().Registrations, 1)
}

func pushRetained(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	put := r.PutHook(store.PutPush{NextSeq: 1})
	must(f.Conclude(ctx, store.Conclusion{RunID: r.ID, ExpectedSeq: r.Head(), Outcome: rendezvous.StatusFailed, Code: "x"}, now))(t, "conclude")
	h.Advance(time.Hour)
	prune := func() store.Pruned { return must(h.Store.PruneWorkflows(ctx, h.Now(t), 0, ""))(t, "prune") }
	eq(t, "spared", len(prune().Spared), 1)
	done(t, "park", f.ParkPush(ctx, store.ParkPush{PushKey: put.Key(), Reason: rendezvous.ParkByOperator}))
	eq(t, "spared while it was parked for less than 30 days", len(prune().Spared), 1)
	h.Advance(30 * 24 * time.Hour)
	eq(t, "pruned", len(prune().Pruned), 1)
	eq(t, "gone", f.Hooked(put.Key()) == nil, true)
	eq(t, "attempts gone", len(must(f.PushAttempts(ctx, put.Key(), 0, 0))(t, "attempts").Attempts), 0)
}
