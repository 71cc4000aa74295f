package move_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

// world is a store with rows in every state there is, and what to look for in a copy of it.
type world struct {
	answered, free, leased   *storetest.Flow
	paid, held, alone, large rendezvous.Event
}

var kim = &rendezvous.Operator{Actor: "kim", Basis: rendezvous.BasisAuthenticated}

// odd is a text that every encoding has to keep.
const odd = `"quoted" \back {brace, ünïcode 漢 ' ]`

// fill fills a store through its verbs.
func fill(t *testing.T, h *storetest.Harness) *world {
	t.Helper()
	f, w := h.FixOf(t, "acme"), &world{}
	gone := f.Start().Continue()
	gone.Conclude(rendezvous.StatusCompleted)
	h.Prune(t, h.Now(t), 0) // its records stay
	h.Advance(time.Microsecond)
	w.answered = f.Start()
	w.answered.Waits("w", "paid", storetest.K("order", "1"))
	w.paid = storetest.EventOf("paid", storetest.K("order", "1"))
	f.Send(w.paid)

	w.free = f.StartAs(store.Start{WorkflowID: odd, RunID: storetest.ID("run"), Type: odd, Queue: "other", Input: []byte(`{"a":1}`)})
	w.free.Register(rendezvous.Wait{
		WaitID: w.free.WaitID("w"), Type: "paid", Keys: []rendezvous.Key{storetest.K("order", odd), storetest.K("z", "2"), storetest.K("a", "3")}, From: "shop",
		Trace: rendezvous.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b"},
	})
	w.free.AppendFree(w.free.Noted("n"))

	driver := f.Start().Drive()
	w.leased, w.held = driver.Flow, driver.Parked("w")
	driver.Append(driver.Begun("e"), driver.Failed("e", false), driver.Begun("open"))
	driver.Waits("unmet", "paid", storetest.K("open", "1"))
	call(t)(f.CancelRun(t.Context(), driver.ID, kim, odd, false, time.Time{}))
	call(t)(f.PauseRun(t.Context(), f.Start().Drive().ID, kim, "tea", time.Time{}))
	paused := f.Start()
	call(t)(f.PauseRun(t.Context(), paused.ID, kim, "tea", time.Time{}))
	f.Start().Continue().Continue().Conclude(rendezvous.StatusFailed)
	f.Start().Finish()
	call(t)(f.CancelRun(t.Context(), f.Start().ID, nil, "", true, time.Time{}))

	quarantine(t, h, f)
	endOf(t, f)
	events(t, f, w)
	events(t, h.FixOf(t, "globex"), &world{})
	timers(t, h, f)
	pushes(t, h, f)
	h.Advance(11 * time.Second)
	call(t)(h.Store.TakeWoken(t.Context(), 3))
	return w
}

// timers leaves timers of every class: ahead, due, parked and held, in shards that a pod owns.
func timers(t *testing.T, h *storetest.Harness, f *storetest.Fix) {
	t.Helper()
	pod, err := h.Store.PoolHandle(store.PoolTimer, odd+"/1")
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	for shard := range h.Store.Shards() {
		all = append(all, shard)
	}
	won, err := pod.AcquireOwnedShards(t.Context(), all, store.MaxShardTTL)
	if err != nil {
		t.Fatal(err)
	}
	var epochs []store.ShardEpoch
	for _, l := range won.Won {
		epochs = append(epochs, store.ShardEpoch{Shard: l.Shard, Epoch: l.Epoch})
	}
	call(t)(nil, pod.PublishShardOwner(t.Context(), 0, won.Won[0].Epoch, "10.0.0.1:4222"))
	due, far := time.Duration(0), 1000*time.Hour
	arm := func(run, id string, after *time.Duration, epoch int64) {
		t.Helper()
		call(t)(f.ArmTimer(t.Context(), store.Arm{
			RunID: run, TimerID: id, BatchID: "arm", After: after, Epoch: epoch, Trace: rendezvous.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b"},
		}, time.Time{}))
	}
	arm(f.Start().ID, odd, &far, 0)
	parked := f.Start().Drive()
	arm(parked.ID, "parked", &due, parked.Epoch)
	call(t)(pod.FireDueTimers(t.Context(), epochs, 0))
	h.Advance(time.Millisecond)
	held := f.Start()
	arm(held.ID, "held", &due, 0)
	call(t)(pod.ClaimDueTimers(t.Context(), epochs, 0, 0))
	f.Start().Register(rendezvous.Wait{WaitID: rendezvous.WaitID{RunID: held.ID, Effect: "w"}, Type: "paid", Keys: []rendezvous.Key{storetest.K("late", "1")}, DeadlineAfter: &far})
}

// pushes leaves push registrations in every state, with everything a caller can set, and their logs.
func pushes(t *testing.T, h *storetest.Harness, f *storetest.Fix) {
	t.Helper()
	r := f.Start()
	secret := rendezvous.NewSecret
	put := func(id string, next int64) store.PushKey {
		t.Helper()
		on := true
		p, err := f.PutPush(t.Context(), store.PutPush{NextSeq: next, Registration: rendezvous.Registration{
			RunID: r.ID, ID: id, URL: "https://example.org/" + id, Token: secret("t0ken"), Projection: rendezvous.ProjectionA2A, Events: []string{"*"},
			Auth:    rendezvous.PushAuth{Kind: rendezvous.AuthOAuth2, TokenURL: "https://example.org/t", ClientID: "c", ClientSecret: secret("s"), Scopes: []string{"a", "b"}},
			Headers: []rendezvous.PushHeader{{Name: "X-A", Value: secret("a")}}, Signing: []rendezvous.SigningKey{{Key: secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")}},
			Trace: &on, Timeout: time.Second, MaxAttempts: 3, OnRejectLimit: 2,
		}}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		return p.Key()
	}
	put("idle-"+odd[:8], 0)
	parked, sent, deleted := put("parked", 1), put("sent", 1), put("deleted", 1)
	call(t)(f.LogPush(t.Context(), parked, rendezvous.PushAttempt{ID: "entry", At: h.Now(t), Class: rendezvous.ClassFailed, Status: 500, Error: odd, Response: odd}))
	call(t)(nil, f.RetryPush(t.Context(), parked, 0, h.Now(t), odd))
	call(t)(nil, f.ParkPush(t.Context(), store.ParkPush{PushKey: parked, Reason: rendezvous.ParkByOperator, Error: odd}))
	call(t)(f.SkipPush(t.Context(), store.PushSkip{PushKey: parked, Seq: 1, Actor: "kim", Reason: odd}))
	call(t)(f.RotatePush(t.Context(), store.PushRotation{PushKey: sent, Op: "op"}))
	got, err := h.Store.ClaimPushes(t.Context(), store.ClaimPush{Namespace: rendezvous.PushCaller, Owner: "pod/1", Request: "1", Lease: time.Hour})
	if err != nil || len(got.Pushes) != 2 {
		t.Fatalf("%d claimed, %v", len(got.Pushes), err)
	}
	call(t)(f.DeletePush(t.Context(), deleted))
	for _, c := range got.Pushes {
		if c.ID == sent.ID {
			call(t)(h.Store.SettlePushes(t.Context(), []store.PushSettlement{{
				PushItem: store.PushItem{Tenant: f.Name(), PushKey: sent}, Token: c.Token, Name: "s", Do: store.PushKeep, Advance: &rendezvous.Cursor{NextSeq: 1, NextIndex: 1},
				Attempts: []rendezvous.PushAttempt{{Seq: 1, At: h.Now(t), Class: rendezvous.ClassAccepted, Status: 200}},
			}}))
		}
	}
}

// call fails the test where a verb does.
func call(t *testing.T) func(_ any, err error) {
	return func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// quarantine leaves a wait quarantined and one that failed once.
func quarantine(t *testing.T, h *storetest.Harness, f *storetest.Fix) {
	t.Helper()
	parked := f.Start().Drive()
	parked.Parked("stuck")
	for range rendezvous.QuarantineAfter {
		fail(t, h, parked.Flow, "stuck")
	}
	again := f.Start().Drive()
	again.Parked("again")
	fail(t, h, again.Flow, "again")
}

// fail has the delivery of a parked wait fail.
func fail(t *testing.T, h *storetest.Harness, r *storetest.Flow, effect string) {
	t.Helper()
	call(t)(h.Store.ParkWait(t.Context(), []store.ParkItem{{
		Tenant: r.F.Name(), WaitID: r.WaitID(effect), Cause: store.ParkFailed, RetryIn: time.Second, Error: odd,
	}}, time.Time{}))
}

// endOf ends a run that events are aimed at and kept for.
func endOf(t *testing.T, f *storetest.Fix) {
	t.Helper()
	d := f.Start().Drive()
	d.Parked("held")
	d.Waits("aimed", "paid", storetest.K("aimed", d.ID))
	call(t)(f.DeliverTo(t.Context(), d.ID, storetest.EventOf("paid"), false, time.Time{}))
	call(t)(f.DeliverTo(t.Context(), d.ID, storetest.EventOf("refunded"), true, time.Time{}))
	d.Conclude(rendezvous.StatusCompleted)
}

// events leaves events that nobody waits for: with and without keys and payloads, targeted, large, minted, erased.
func events(t *testing.T, f *storetest.Fix, w *world) {
	t.Helper()
	w.alone = f.PutNew("shipped", storetest.K("parcel", "1"), storetest.K("parcel", odd))
	f.PutNew("shipped")
	call(t)(f.DeliverTo(t.Context(), f.Start().ID, storetest.EventOf("refunded"), true, time.Time{}))
	w.large = storetest.EventOf("large", storetest.K("size", "1"))
	w.large.Payload = bytes.Repeat([]byte{0, 1, 0xff, '"'}, rendezvous.MaxPayload/4)
	f.Put(w.large)
	for _, payload := range [][]byte{nil, {}} {
		e := storetest.EventOf("bare")
		e.Payload, e.ContentType, e.ExpiresAt, e.MintedBy = payload, "text/plain", f.H.Now(t).Add(time.Hour), kim
		e.Source = "rendezvous:operator"
		f.Put(e)
	}
	letters(t, f)
	call(t)(f.ErasePayload(t.Context(), f.PutNew("secret", storetest.K("a", "b")).EventID, kim, time.Time{}))
}

// letters leaves letters in every state: retired, requeued, purged.
func letters(t *testing.T, f *storetest.Fix) {
	t.Helper()
	retired, back, gone := storetest.EventOf("lost", storetest.K("lost", "1"), storetest.K("lost", odd)), storetest.EventOf("lost"), storetest.EventOf("lost", storetest.K("a", "b"))
	for _, e := range []*rendezvous.Event{&retired, &back, &gone} {
		e.ExpiresAt = f.H.Now(t).Add(-time.Second)
		f.Put(*e)
	}
	call(t)(f.SweepUnclaimed(t.Context(), time.Time{}, time.Time{}, odd, 0))
	requeue := store.Requeue{ExpiresAt: f.H.Now(t).Add(time.Hour)}
	call(t)(f.RequeueDeadLetters(t.Context(), store.Selection{Events: []rendezvous.EventID{back.EventID}}, requeue, *kim, odd, time.Time{}))
	f.PurgeAll(gone.EventID)
}

// wantEverything fails the test unless the store has rows in every state, so that a copy of it proves something.
func wantEverything(t *testing.T, b backend.Backend) {
	t.Helper()
	seen := map[string]bool{}
	note := func(what string, is bool) {
		if is {
			seen[what] = true
		}
	}
	for _, p := range pages(t, b) {
		for _, w := range p.NewWorkflows {
			note("leased", w.LeaseOwner != "")
			note("pause requested", w.Pause != nil)
			note("cancel requested", w.Cancel != nil)
			note("paused", w.PausedBy != nil)
			note("workflow "+string(w.Status), true)
		}
		for _, r := range p.NewRuns {
			note("run "+string(r.Status), true)
			note("retired", len(r.Retired) > 0)
		}
		for _, r := range p.Records {
			note("operator", r.Operator != nil)
			note("record with payload", r.Payload != nil)
		}
		for _, e := range p.NewEvents {
			note("event "+string(e.State), true)
			note("erased", e.Erased)
			note("listed", e.Dead() && len(e.Keys) > 0)
			note("requeued", e.Live() && e.Requeues > 0 && e.OpBy != nil)
			note("purged", e.Purged)
			note("targeted", e.Target != "" && e.Live())
			note("minted", e.Minted != nil)
			note("no payload", e.Live() && e.Payload == nil)
			note("empty payload", e.Live() && e.Payload != nil && len(e.Payload) == 0)
			note("large payload", len(e.Payload) == rendezvous.MaxPayload)
		}
		for _, w := range p.NewWaits {
			note("open wait", w.Open())
			note("parked wait", !w.Open() && w.QuarantinedAt.IsZero())
			note("failed wait", w.LastError != "" && w.QuarantinedAt.IsZero())
			note("quarantined wait", !w.QuarantinedAt.IsZero())
			note("traced wait", w.Trace.Parent != "")
		}
		for _, x := range p.Timers {
			note(string(x.Class)+" timer", true)
			note("parked timer", x.Parks > 0)
			note("held timer", x.Token > 0)
			note("traced timer", x.Trace.State != "")
		}
		for _, x := range p.NewPushes {
			note("push "+string(x.State), true)
			note("settled push", x.SettleID != "" && x.Last != nil && x.NextIndex == 1)
			note("rotated push", x.Settings.Rotated.Op != "" && x.Settings.Signing[0].Key.Reveal() != "")
			note("push with secrets", x.Settings.Token.Reveal() == "t0ken" && x.Settings.Auth.ClientSecret.Reveal() == "s" && x.Settings.Headers[0].Value.Reveal() == "a")
		}
		for _, e := range p.PushLog {
			note("entry of a log", !e.Kept && e.EntryID != "")
			note("skip", e.Kept && e.Attempt.Actor == "kim")
		}
		note("shard", len(p.NewShardLeases) > 0)
		note("batch", len(p.NewBatches) > 0)
		for _, m := range p.Woken {
			note("mark noticed", m.Notices > 0)
		}
	}
	for _, what := range strings.Split("leased,pause requested,cancel requested,paused,workflow running,workflow completed,workflow failed,workflow cancelled,"+
		"workflow paused,run continued_as_new,retired,operator,record with payload,event live,event claimed,event consumed,event dead,erased,listed,requeued,purged,targeted,minted,"+
		"no payload,empty payload,large payload,open wait,parked wait,failed wait,quarantined wait,traced wait,batch,mark noticed,"+
		"author timer,wait timer,parked timer,held timer,traced timer,shard,push live,push idle,push parked,push gone,settled push,rotated push,push with secrets,"+
		"entry of a log,skip", ",") {
		if !seen[what] {
			t.Errorf("the store to copy has no %s", what)
		}
	}
}
