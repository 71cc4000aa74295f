package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// turn is a move being made: a workflow, and what its caller believes of it.
type turn struct {
	*game
	f        *lawFlow
	fix      *Fix
	run      string
	epoch    int64
	expected int64
}

// move is what came of it; n is what the verb wants sent.
func (w *turn) move(verb string, err error, want rendezvous.Code, n store.Notices) move {
	w.notices.Append(n)
	return move{fmt.Sprintf("%s of %s, epoch %d, expected %d", verb, w.run, w.epoch, w.expected), err, want}
}

// admits is checks 3 to 6.
func (w *turn) admits() rendezvous.Code {
	if c := w.law.admits(w.f, w.run, w.epoch); c != "" {
		return c
	}
	if w.expected != w.f.head() {
		return rendezvous.CodeConflict
	}
	return ""
}

func (w *turn) driven() bool { return w.epoch != 0 }

// key is one of few, so that waits and events of different runs meet.
func (w *turn) key() string { return fmt.Sprint(w.law.flows[0].id, "/", w.rnd.IntN(4)) }

// at is mostly the store's now, and sometimes another instant, as tests and imports pass them: no record is stamped with it.
func (w *turn) at() time.Time {
	return pick(w.rnd, now, now, now, w.law.now.Add(-time.Hour), w.law.now.Add(time.Hour))
}

func (w *turn) effect() string { return fmt.Sprint("e", w.rnd.IntN(5)) }

func (w *turn) waitKey() string { return fmt.Sprint("w", w.rnd.IntN(6)) }

// flow names the run in records.
func (w *turn) flow() *Flow { return &Flow{F: w.fix, WorkflowID: w.f.id, ID: w.run} }

// standing is mostly an effect of the run that stands like that, or else any.
func (w *turn) standing(any string, like func(a lawAttempt) bool) (effect string, attempt int) {
	var some []string
	for k, attempts := range w.f.run().effects {
		if like(attempts[len(attempts)-1]) {
			some = append(some, k)
		}
	}
	slices.Sort(some)
	effect = any
	if len(some) > 0 && w.rnd.IntN(5) > 0 {
		effect = pick(w.rnd, some...)
	}
	return effect, max(1, len(w.f.run().effects[effect]))
}

// some is a record of chance, mostly one that is in order, and the key of the wait it registers.
func (w *turn) some() (rec rendezvous.Record, key string) {
	r := w.flow()
	effect, wait := w.effect(), w.waitKey()
	open := func(a lawAttempt) bool { return !a.wait && a.closed == "" }
	attempt := 0
	switch w.rnd.IntN(9) {
	case 0, 1:
		effect, attempt = w.standing(effect, func(a lawAttempt) bool { return a.retryable })
		if len(w.f.run().effects[effect]) > 0 {
			attempt++
		}
		rec = r.Begun(effect)
	case 2, 3:
		effect, attempt = w.standing(effect, open)
		rec = r.Done(effect)
	case 4:
		effect, attempt = w.standing(effect, open)
		rec = r.Failed(effect, w.rnd.IntN(3) > 0)
	case 5:
		rec = r.Noted("n")
	case 6:
		key = w.key()
		rec = r.Waited(r.Wait(wait, "paid", K("key", key)))
	case 7:
		wait, attempt = w.standing(wait, func(a lawAttempt) bool { return a.wait && a.closed == "" })
		rec = r.Withdrawn(wait)
	default:
		if rec = r.Noted("n"); w.rnd.IntN(5) == 0 {
			rec = r.Answered(wait, rendezvous.Event{EventID: rendezvous.EventID{Source: "shop", ID: "another"}, Type: "paid"})
		}
		for _, of := range w.f.run().waits {
			if of.held != nil && w.rnd.IntN(8) > 0 {
				rec = r.Answered(of.effect, rendezvous.Event{EventID: of.held.id, Type: "paid"})
			}
		}
	}
	if rec.Kind.Phase() != rendezvous.PhaseNone {
		rec.Attempt = attempt
		if w.rnd.IntN(12) == 0 {
			rec.Attempt = 1 + w.rnd.IntN(3)
		}
	}
	if w.f.run().trial().order(w.f.pause, rec, key) != "" && w.rnd.IntN(5) > 0 {
		return r.Noted("n"), ""
	}
	return rec, key
}

// batch is 0..3 records of chance, and sometimes one that stands last. It never lets go of an event and registers a wait at once: whether the one meets
// the other in the same transaction is nobody's promise.
func (w *turn) batch() (records []rendezvous.Record, keys []string) {
	registers := w.rnd.IntN(2) == 0
	for range w.rnd.IntN(4) {
		rec, key := w.some()
		if rec.Kind == rendezvous.WaitRegistered && !registers || rec.Kind == rendezvous.WaitWithdrawn && registers {
			continue
		}
		records, keys = append(records, rec), append(keys, key)
	}
	r := w.flow()
	switch n := w.rnd.IntN(40); {
	case n < 2:
		records, keys = append(records, r.Paused()), append(keys, "")
	case n < 4, w.f.run().status == rendezvous.StatusPaused && n < 15:
		records, keys = append(records, r.Resumed()), append(keys, "")
	case n == 4:
		records, keys = append(records, pick(w.rnd, r.Completed(), r.FailedAs("x"), r.Cancelled())), append(keys, "")
	}
	return records, keys
}

func (w *turn) append() move {
	records, keys := w.batch()
	a := store.Append{RunID: w.run, Epoch: w.epoch, ExpectedSeq: w.expected, BatchID: ID("batch"), Records: records}
	out, err := w.fix.Append(ctx, a, w.at())
	want := w.admits()
	if want == "" {
		want = w.lands(records, keys)
	}
	if len(records) > 1 && want == rendezvous.CodeConflict && rendezvous.CodeOf(err) == rendezvous.CodeDuplicate {
		want = rendezvous.CodeDuplicate // which of two bad records is named first is nobody's promise
	}
	if err == nil && len(records) > 0 {
		w.again = append(w.again, func() error {
			got, err := w.fix.Append(ctx, a, now)
			if err == nil && (!got.Again || got.FirstSeq != out.FirstSeq || got.Head != out.Head) {
				return fmt.Errorf("the same batch again landed at %d..%d, again %v, first at %d..%d", got.FirstSeq, got.Head, got.Again, out.FirstSeq, out.Head)
			}
			return err
		})
	}
	what := "append"
	for _, rec := range records {
		what += fmt.Sprintf(" %s(%s %d)", rec.Kind, rec.Effect, rec.Attempt)
	}
	return w.move(what, err, want, out.Notices)
}

// lands judges a batch on a copy, and then does what its records do.
func (w *turn) lands(records []rendezvous.Record, keys []string) rendezvous.Code {
	f, r := w.f, w.f.run()
	trial := r.trial()
	for i, rec := range records {
		if c := trial.order(f.pause, rec, keys[i]); c != "" {
			return c
		}
		if s := rec.Kind.Status(); s != "" {
			trial.status = s
		}
	}
	for _, rec := range records {
		var d rendezvous.WaitAnsweredData
		if of := r.wait(rec.Effect); rec.Kind == rendezvous.WaitAnswered {
			if rendezvous.DecodeData(rec, &d) != nil || of == nil || of.held == nil || of.held.id != (rendezvous.EventID{Source: d.EventSource, ID: d.EventID}) {
				return rendezvous.CodeConflict
			}
		}
	}
	ends := len(records) > 0 && records[len(records)-1].Kind.Terminal()
	var waits []int
	for i, rec := range records {
		switch of := r.wait(rec.Effect); {
		case rec.Kind == rendezvous.WaitWithdrawn:
			w.law.withdraw(f, w.driven(), rec.Effect)
		case rec.Kind == rendezvous.WaitAnswered:
			w.law.answer(f, w.driven(), of, of.held)
			f.wake(w.law)
		case rec.Kind == rendezvous.RunPaused:
			w.law.paused(f, w.driven())
		default:
			_ = r.order(f.pause, rec, keys[i])
			attempt := 0
			if rec.Kind.Phase() != rendezvous.PhaseNone {
				attempt = max(rec.Attempt, 1)
			}
			w.law.record(f, w.driven(), rec.Kind, rec.Effect, attempt)
			if rec.Kind == rendezvous.RunResumed {
				f.wake(w.law)
			}
			if rec.Kind == rendezvous.WaitRegistered && !ends {
				waits = append(waits, i)
			}
		}
	}
	if ends {
		w.law.conclude(f, rendezvous.LeaseReleased)
	}
	for _, i := range waits {
		w.law.register(f, w.driven(), records[i].Effect, keys[i])
	}
	return ""
}

func (w *turn) register() move {
	f, r := w.f, w.f.run()
	effect, key := w.waitKey(), w.key()
	attempts := r.effects[effect]
	if n := len(attempts); n > 0 && w.rnd.IntN(3) > 0 {
		key = attempts[n-1].key // again
	}
	got, err := w.fix.RegisterWait(ctx, store.Registration{Wait: w.flow().Wait(effect, "paid", K("key", key)), Epoch: w.epoch}, now)
	want := w.law.admits(f, w.run, w.epoch)
	outcome := store.RegisterOutcome("")
	switch {
	case want != "":
	case len(attempts) == 0:
		rec := rendezvous.Record{Kind: rendezvous.WaitRegistered, Effect: effect}
		if want = r.order(f.pause, rec, key); want == "" {
			w.law.record(f, w.driven(), rendezvous.WaitRegistered, effect, 1)
			w.law.register(f, w.driven(), effect, key)
		}
	case attempts[0].key != key:
		want = rendezvous.CodeConflict
	default:
		if of := r.wait(effect); of != nil && of.held != nil {
			w.law.answer(f, w.driven(), of, of.held)
			f.wake(w.law)
		}
	}
	if want == "" {
		outcome = map[rendezvous.Kind]store.RegisterOutcome{
			"": store.RegisterWaiting, rendezvous.WaitAnswered: store.RegisterAnswered, rendezvous.WaitWithdrawn: store.RegisterWithdrawn,
		}[r.effects[effect][0].closed]
	}
	eq(w.t, "outcome of registering "+effect, got.Outcome, outcome)
	return w.move("register "+effect+" on "+key, err, want, got.Notices)
}

func (w *turn) withdraw() move {
	f, r := w.f, w.f.run()
	effect := w.waitKey()
	got, err := w.fix.Unsubscribe(ctx, rendezvous.WaitID{RunID: w.run, Effect: effect}, w.epoch, "", now)
	want := w.law.admits(f, w.run, w.epoch)
	attempts := r.effects[effect]
	if w.run == r.id && (f.sealed() || len(attempts) == 0 || attempts[0].closed != "") {
		want = "" // the history answers
	} else if want == rendezvous.CodeSealed { // an earlier run's
		want = ""
	} else if want == "" {
		w.law.withdraw(f, w.driven(), effect)
		if !w.driven() {
			f.wake(w.law)
		}
	}
	return w.move("withdraw "+effect, err, want, got.Notices)
}

func (w *turn) send() move {
	key := w.key()
	e := EventOf("paid", K("key", key))
	got, err := w.fix.Buffer(ctx, e, now)
	w.law.events = append(w.law.events, &lawEvent{id: e.EventID, tenant: w.f.tenant, key: key, state: rendezvous.EventLive})
	return w.move("event "+e.ID+" on "+key, err, "", got.Notices)
}

// deliver gives an event to the run alone, as a sender does that names it.
func (w *turn) deliver() move {
	f, key := w.f, w.key()
	e := EventOf("paid", K("key", key))
	got, err := w.fix.DeliverTo(ctx, w.run, e, false, now)
	n := got.Notices
	want := w.law.admits(f, w.run, f.epoch)
	if want != rendezvous.CodeNotFound && want != rendezvous.CodeSealed {
		want = ""
		open := slices.DeleteFunc(slices.Clone(f.run().waits), func(o *lawWait) bool { return o.key != key || o.held != nil })
		eq(w.t, "outcome of the delivery", got.Outcome == store.DeliveryMatched, len(open) > 0)
		if len(open) > 0 {
			of := &lawEvent{id: e.EventID, tenant: f.tenant, key: key, targeted: true}
			w.law.events = append(w.law.events, of)
			refs := []store.WaitRef{{Tenant: f.tenant, WaitID: rendezvous.WaitID{RunID: got.RunID, Effect: got.Effect}}}
			n.Append(must(w.h.Store.DeliverParked(ctx, refs, now))(w.t, "deliver what was claimed").Notices)
			w.law.claim(f, open[0], of)
		}
	}
	return w.move("event "+e.ID+" for the run on "+key, err, want, n)
}

func (w *turn) conclude() move {
	f := w.f
	outcome := pick(w.rnd, rendezvous.StatusCompleted, rendezvous.StatusFailed, rendezvous.StatusCancelled)
	c := store.Conclusion{RunID: w.run, Epoch: w.epoch, ExpectedSeq: w.expected, BatchID: ID("batch"), Outcome: outcome}
	if outcome == rendezvous.StatusFailed {
		c.Code = "x"
	}
	got, err := w.fix.Conclude(ctx, c, w.at())
	want := w.admits()
	if want == "" {
		kind := map[rendezvous.Status]rendezvous.Kind{
			rendezvous.StatusCompleted: rendezvous.RunCompleted, rendezvous.StatusFailed: rendezvous.RunFailed, rendezvous.StatusCancelled: rendezvous.RunCancelled,
		}[outcome]
		eq(w.t, "waits retired", got.Retired.Waits, len(f.run().waits))
		w.law.record(f, w.driven(), kind, "", 0)
		w.law.conclude(f, rendezvous.LeaseReleased)
	}
	return w.move("conclude", err, want, got.Notices)
}

func (w *turn) continues() move {
	f := w.f
	c := store.Continuation{RunID: w.run, Epoch: w.epoch, ExpectedSeq: w.expected, BatchID: ID("batch"), NextRun: ID("run")}
	got, err := w.fix.ContinueAsNew(ctx, c, w.at())
	want := w.admits()
	switch {
	case want != "":
	case f.pause, f.run().status == rendezvous.StatusPaused, f.run().open(false) > 0:
		want = rendezvous.CodeConflict
	default:
		eq(w.t, "waits retired", got.Retired.Waits, len(f.run().waits))
		w.law.record(f, w.driven(), rendezvous.RunContinued, "", 0)
		f.run().retire()
		f.runs = append(f.runs, &lawRun{id: c.NextRun, effects: map[string][]lawAttempt{}})
		w.law.record(f, w.driven(), rendezvous.RunStarted, "", 0)
		f.woken = markNo
		f.wake(w.law)
	}
	return w.move("continue", err, want, got.Notices)
}

// ask asks for a cancel.
func (w *turn) ask() move {
	f := w.f
	got, err := w.fix.CancelRun(ctx, w.run, kim, "not wanted", false, now)
	want, outcome := w.law.admits(f, w.run, f.epoch), store.CancelRequested
	switch want {
	case rendezvous.CodeNotFound:
		outcome = ""
	case rendezvous.CodeSealed:
		want, outcome = "", store.CancelClosed
	default:
		want = ""
		if !f.cancel {
			f.cancel = true
			f.wake(w.law)
		}
	}
	eq(w.t, "outcome of asking for a cancel", got.Outcome, outcome)
	return w.move("ask for the cancel", err, want, got.Notices)
}

// revoke cancels now.
func (w *turn) revoke() move {
	f := w.f
	got, err := w.fix.CancelRun(ctx, w.run, kim, "not wanted", true, now)
	want, outcome := w.law.admits(f, w.run, f.epoch), store.CancelCancelled
	switch want {
	case rendezvous.CodeNotFound:
		outcome = ""
	case rendezvous.CodeSealed:
		want, outcome = "", store.CancelClosed
	default:
		want = ""
		if f.owner != "" {
			f.epoch++
		}
		w.law.record(f, false, rendezvous.RunCancelled, "", 0)
		w.law.conclude(f, rendezvous.LeaseRevoked)
	}
	eq(w.t, "outcome of a cancel now", got.Outcome, outcome)
	return w.move("cancel now", err, want, got.Notices)
}

// wait lets time go by, or sets the store's clock back a little.
func (w *turn) wait() move {
	d := pick(w.rnd, time.Microsecond, time.Second, time.Second, 7*time.Second, 40*time.Second, -2*time.Second)
	w.h.Advance(d)
	w.law.now = w.law.now.Add(d)
	return w.move(fmt.Sprint("wait ", d), nil, "", store.Notices{})
}

// repeat sends again a batch that landed.
func (w *turn) repeat() move {
	var err error
	if len(w.again) > 0 {
		err = pick(w.rnd, w.again...)()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return w.move("repeat a batch", nil, "", store.Notices{})
}
