package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

func withdrawnDeadline(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r, key := f.Start(), K("order", "1")
	r.WaitsUntil(h.In(t, time.Minute), "w", "paid", key)
	r.WaitsUntil(h.In(t, time.Minute), "v", "paid", key)
	must(f.Unsubscribe(ctx, r.WaitID("w"), 0, "no need", now))(t, "withdraw")
	r.WantTimers(rendezvous.WaitTimerID(r.ID, "v"))
	r.AppendFree(r.Withdrawn("v"))
	r.WantTimers()
	h.Advance(time.Hour)
	eq(t, "fires", len(p.Fire(t)), 0)
	eq(t, "closings", fmt.Sprint(len(r.closings("w")), len(r.closings("v"))), "1 1")
	// Overdue and not fired: it may still be withdrawn, once.
	r.WaitsUntil(h.In(t, time.Minute), "u", "paid", key)
	h.Advance(time.Hour)
	got := must(f.Unsubscribe(ctx, r.WaitID("u"), 0, "", now))(t, "withdraw an overdue one")
	eq(t, "withdrawn", got.Outcome, store.WithdrawWithdrawn)
	eq(t, "fires", len(p.Fire(t)), 0)
	// One registered and given up in one batch never had a row.
	seq := r.Head()
	after := int64(1_000_000)
	reg := r.Waited(r.Wait("x", "paid", key))
	reg.Data = rendezvous.EncodeData(rendezvous.WaitRegisteredData{Type: "paid", Keys: []rendezvous.Key{key}, DeadlineAfter: &after})
	r.AppendFree(reg, r.Withdrawn("x"))
	eq(t, "head", r.Head(), seq+2)
	r.WantTimers()
}

func deadlineDiffers(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	deadline := h.In(t, time.Minute)
	w := r.WaitsUntil(deadline, "w", "paid", K("order", "1"))
	again := func(change func(w *rendezvous.Wait)) error {
		other := w
		change(&other)
		_, err := f.RegisterWait(ctx, store.Registration{Wait: other}, now)
		return err
	}
	for what, change := range map[string]func(w *rendezvous.Wait){
		"a later deadline":    func(w *rendezvous.Wait) { w.Deadline = deadline.Add(time.Microsecond) },
		"an earlier deadline": func(w *rendezvous.Wait) { w.Deadline = deadline.Add(-time.Second) },
		"no deadline":         func(w *rendezvous.Wait) { w.Deadline = time.Time{} },
	} {
		r.refuses(what, rendezvous.CodeConflict, func() error { return again(change) }, "what", "deadline")
	}
	done(t, "the same, with nanoseconds", again(func(w *rendezvous.Wait) { w.Deadline = deadline.Add(-1) }))
	done(t, "the same in another zone", again(func(w *rendezvous.Wait) { w.Deadline = deadline.In(time.FixedZone("east", 3600)) }))
	none := r.Waits("none", "paid", K("order", "1"))
	none.Deadline = deadline
	r.refuses("a deadline where none was", rendezvous.CodeConflict, func() error {
		_, err := f.RegisterWait(ctx, store.Registration{Wait: none}, now)
		return err
	}, "what", "deadline")

	after := time.Hour
	v := r.Wait("v", "paid", K("order", "1"))
	v.DeadlineAfter = &after
	first := r.Register(v)
	eq(t, "register", first.Outcome, store.RegisterWaiting)
	want := h.In(t, after)
	eq(t, "deadline", r.WantOpen("v").Deadline, want)
	h.Advance(10 * time.Minute)
	got := r.Register(v) // a retry of the very same call
	eq(t, "again", fmt.Sprint(got.Outcome, got.Seq, got.Number), fmt.Sprint(first.Outcome, first.Seq, first.Number))
	eq(t, "deadline after the repeat", r.WantOpen("v").Deadline, want)
	v.Deadline, v.DeadlineAfter = want, nil
	done(t, "again by the instant it was resolved to", func() error { _, err := f.RegisterWait(ctx, store.Registration{Wait: v}, now); return err }())
	r.WantTimers(rendezvous.WaitTimerID(r.ID, "w"), rendezvous.WaitTimerID(r.ID, "v"))

	// In one batch twice, and in a batch of another size.
	x := r.Wait("x", "paid", K("order", "1"))
	x.DeadlineAfter = &after
	y := x
	y.Deadline, y.DeadlineAfter = h.In(t, time.Second), nil
	z := x
	z.DeadlineAfter = nil
	item := func(w rendezvous.Wait) store.RegisterItem {
		return store.RegisterItem{Tenant: f.Name(), Registration: store.Registration{Wait: w}}
	}
	out := must(h.Store.RegisterBatch(ctx, []store.RegisterItem{item(x), item(x)}, now))(t, "register twice")
	for i, o := range out {
		done(t, fmt.Sprint("item ", i), o.Err)
		eq(t, "seq of both", o.Seq, out[0].Seq)
	}
	eq(t, "deadline", r.WantOpen("x").Deadline, h.In(t, after))
	out = must(h.Store.RegisterBatch(ctx, []store.RegisterItem{item(y), item(z)}, now))(t, "register otherwise")
	code(t, "another instant", out[0].Err, rendezvous.CodeConflict, "what", "deadline")
	code(t, "none", out[1].Err, rendezvous.CodeConflict, "what", "deadline")
}

func deadlineBounds(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	minute := time.Minute
	over := rendezvous.MaxTimerAfter + time.Microsecond
	for what, change := range map[string]func(w *rendezvous.Wait){
		"both":                          func(w *rendezvous.Wait) { w.Deadline, w.DeadlineAfter = h.In(t, time.Hour), &minute },
		"a negative duration":           func(w *rendezvous.Wait) { w.DeadlineAfter = ptr(-time.Microsecond) },
		"over 100 years":                func(w *rendezvous.Wait) { w.DeadlineAfter = &over },
		"the longest duration there is": func(w *rendezvous.Wait) { w.DeadlineAfter = ptr(time.Duration(1<<63 - 1)) },
		"year 10000":                    func(w *rendezvous.Wait) { w.Deadline = endOfTime.Add(1) },
		"year 0":                        func(w *rendezvous.Wait) { w.Deadline = time.Time{}.Add(-time.Second) },
	} {
		w := r.Wait("w", "paid", K("order", "1"))
		change(&w)
		for verb, call := range map[string]func() error{
			"RegisterWait": func() error { _, err := f.RegisterWait(ctx, store.Registration{Wait: w}, now); return err },
			"Subscribe":    func() error { _, err := f.Subscribe(ctx, store.Registration{Wait: w}, now); return err },
			"RegisterBatch": func() error {
				out, err := h.Store.RegisterBatch(ctx, []store.RegisterItem{{Tenant: f.Name(), Registration: store.Registration{Wait: w}}}, now)
				done(t, "register a batch", err)
				return out[0].Err
			},
		} {
			r.refuses(what+" by "+verb, rendezvous.CodeInvalid, call)
		}
	}
	for what, data := range map[string]string{
		"both": `"deadline":"2031-01-01T00:00:00Z","deadline_after":1`, "a negative duration": `"deadline_after":-1`, "more than 64 bits": `"deadline_after":9223372036854775808`,
		"64 bits": `"deadline_after":9223372036854775807`, "no time": `"deadline":"soon"`, "a number": `"deadline":5`,
	} {
		rec := r.record(rendezvous.WaitRegistered, "w", nil)
		rec.Data = []byte(`{"type":"paid","keys":[],` + data + `}`)
		r.refuses("a record with "+what, rendezvous.CodeInvalid, func() error { return r.tryFree(r.Noted("n"), rec) })
	}
	last := r.WaitsUntil(endOfTime, "last", "paid", K("order", "1"))
	eq(t, "the end of time", r.WantOpen("last").Deadline, last.Deadline)
	w := r.Until(h.In(t, time.Minute).Add(1), "nano", "paid", K("order", "1"))
	r.Register(w)
	eq(t, "nanoseconds round up", r.WantOpen("nano").Deadline, h.In(t, time.Minute+time.Microsecond))
	rec := r.record(rendezvous.WaitRegistered, "after", nil)
	rec.Data = []byte(`{"type":"paid","keys":[],"deadline_after":60000000,"mood":"good"}`)
	head := r.AppendFree(rec).Head
	eq(t, "data of a duration", string(r.History()[head-1].Data),
		fmt.Sprintf(`{"deadline":%q,"keys":[],"mood":"good","type":"paid"}`, rendezvous.FormatInstant(h.In(t, time.Minute))))
	eq(t, "row", r.WantOpen("after").Deadline, h.In(t, time.Minute))
}

func timedOutReopened(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r, key := f.Start(), K("order", "1")
	w := r.WaitsUntil(h.In(t, time.Minute), "w", "paid", key)
	v := r.WaitsUntil(h.In(t, 2*time.Minute), "v", "paid", K("order", "2"))
	in := f.PutNew("paid", K("order", "2"))
	h.Advance(time.Minute)
	p.Fire(t)
	rec := r.WantTimedOut("w", w.Deadline)
	h.Advance(time.Hour)
	h.Reopen(t)
	f = h.Fix(t)
	r = &Flow{F: f, WorkflowID: r.WorkflowID, ID: r.ID}
	e := EventOf("paid", key)
	f.Send(e)
	d := r.Drive()
	got := d.Register(w)
	eq(t, "replay of the wait", fmt.Sprint(got.Outcome, got.Seq), fmt.Sprint(store.RegisterTimedOut, rec.Seq))
	f.WantLive(e)
	d.Release() // and with it what was due while nobody ran
	r.WantAnswered("v", in)
	eq(t, "replay of the other", r.Register(v).Outcome, store.RegisterAnswered)
	h.Reopen(t)
	r.F = h.Fix(t)
	eq(t, "replay once more", r.Register(w).Seq, rec.Seq)
	h.noRows(t)
}

func lostWaitDeadline(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r, key := f.Start(), K("order", "1")
	w := r.WaitsUntil(h.In(t, time.Minute), "w", "paid", key)
	done(t, "lose the wait", h.Damage.LoseWait(f.Name(), r.WaitID("w")))
	got := r.Register(w)
	eq(t, "registering again", fmt.Sprint(got.Outcome, got.Seq), fmt.Sprint(store.RegisterWaiting, 2))
	eq(t, "deadline", r.WantOpen("w").Deadline, w.Deadline)
	r.WantTimers(rendezvous.WaitTimerID(r.ID, "w"))
	done(t, "lose it again", h.Damage.LoseWait(f.Name(), r.WaitID("w")))
	h.Advance(time.Hour)
	one(t, "a deadline without its wait", p.Page(t, 0).Fires, store.FireDropped)
	eq(t, "head", r.Head(), int64(2))
	after := time.Hour
	w.Deadline, w.DeadlineAfter = time.Time{}, &after
	r.Register(w) // its deadline is what was recorded, and over
	one(t, "page", p.Page(t, 0).Fires, store.FireFired)
	r.WantTimedOut("w", h.In(t, time.Minute-time.Hour))
	r.WantTimers()
}
