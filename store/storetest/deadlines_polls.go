package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// deadlinesPolls is timers.md section 5: a wait registered at or past its deadline is a poll.
var deadlinesPolls = []Case{
	{Name: "TM-40 EV-27 a buffered event answers a poll, and without one it times out at once", Run: polls},
	{Name: "TM-40 EV-27 a poll in an append, in a batch, under a lease", Run: pollsElsewhere},
	{Name: "TM-40 a poll whose event is contested ends behind the second look", Run: contestedPoll},
	{Name: "TM-40 a contested poll whose second look failed is ended by a page", Run: contestedPollBroken},
	{Name: "TM-40 subscribing past the deadline claims nothing, and a page ends it", Run: subscribedLate},
	{Name: "TM-40 a poll that failed left nothing", Run: pollBroken},
	{Name: "TM-40 a poll and the event it asks for at once: answered, or timed out and the event is live", Run: pollAtOnce},
}

func polls(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for what, before := range map[string]time.Duration{"now": 0, "a microsecond ago": time.Microsecond, "an hour ago": time.Hour, "ages ago": 200 * 365 * 24 * time.Hour} {
		r, key := f.Start(), K("order", ID("key"))
		w := r.Until(h.In(t, -before), "w", "paid", key)
		got := r.Register(w)
		eq(t, "with nothing there, "+what, fmt.Sprint(got.Outcome, got.Seq), fmt.Sprint(store.RegisterTimedOut, 3))
		r.WantTimedOut("w", w.Deadline)
		eq(t, "again", fmt.Sprint(r.Register(w).Outcome, r.Register(w).Seq), fmt.Sprint(store.RegisterTimedOut, 3))
		e := EventOf("paid", key)
		f.Send(e)
		later := f.PutNew("paid", key)
		f.WantLive(e, later)
		w.Effect = "v"
		got = r.Register(w)
		eq(t, "with two events there, "+what, fmt.Sprint(got.Outcome, got.Seq), fmt.Sprint(store.RegisterAnswered, 5))
		WantAnswerOf(t, *got.Answer, e)
		r.WantAnswered("v", e)
		f.WantLive(later)
		r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitTimedOut, rendezvous.WaitRegistered, rendezvous.WaitAnswered)
		eq(t, "counts", fmt.Sprint(r.Describe().OpenWaits, r.Describe().LiveTimers), "0 0")
	}
	// An event received this very microsecond is there.
	r, key := f.Start(), K("order", ID("key"))
	e := f.PutNew("paid", key)
	after := time.Duration(0)
	w := r.Wait("w", "paid", key)
	w.DeadlineAfter = &after
	eq(t, "a duration of nothing", r.Register(w).Outcome, store.RegisterAnswered)
	r.WantAnswered("w", e)
	w.Effect = "v"
	eq(t, "and with nothing there", r.Register(w).Outcome, store.RegisterTimedOut)
	r.WantTimedOut("v", h.Now(t))
	expired := EventOf("paid", key)
	expired.ExpiresAt = h.Now(t)
	f.Put(expired)
	w.Effect = "u"
	eq(t, "with an expired one there", r.Register(w).Outcome, store.RegisterTimedOut)
	h.noRows(t)
	eq(t, "woken by what its caller is told", h.marks(f) <= 8, true)

	// What counts is the instant of the call: an import's deadline may lie ahead of it.
	s, key := f.Start(), K("order", ID("key"))
	v := s.Until(h.In(t, -time.Minute), "w", "paid", key)
	got := must(f.RegisterWait(ctx, store.Registration{Wait: v}, h.In(t, -time.Hour)))(t, "import a wait")
	eq(t, "a deadline between the call's instant and now", got.Outcome, store.RegisterWaiting)
	one(t, "page", h.TimerPod(t).Fire(t), store.FireFired)
	s.WantTimedOut("w", v.Deadline)
}

func pollsElsewhere(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r, a, b := f.Start(), K("order", ID("key")), K("order", ID("key"))
	e := f.PutNew("paid", a)
	d := r.Drive()
	past := h.In(t, -time.Second)
	rec := func(effect string, key rendezvous.Key) rendezvous.Record {
		rec := r.Waited(r.Wait(effect, "paid", key))
		rec.Data = rendezvous.EncodeData(rendezvous.WaitRegisteredData{Type: "paid", Keys: []rendezvous.Key{key}, Deadline: rendezvous.FormatInstant(past)})
		return rec
	}
	out := d.Append(rec("w", a), r.Noted("n"), rec("v", b), r.Noted("m"))
	eq(t, "answers", len(out.Answers), 1)
	WantAnswerOf(t, out.Answers[0].Record, e)
	eq(t, "head", out.Head, int64(1+4+2))
	r.WantAnswered("w", e)
	r.WantTimedOut("v", past)
	eq(t, "mail", out.Mail.Mail, 0)
	d.Append(r.Noted("the head is known"))
	d.Seen = d.Head()
	eq(t, "woken", h.marks(f), 0)

	e2 := f.PutNew("paid", a)
	items := []store.RegisterItem{}
	for i, key := range []rendezvous.Key{a, b, a} {
		w := r.Until(past, fmt.Sprint("x", i), "paid", key)
		items = append(items, store.RegisterItem{Tenant: f.Name(), Registration: store.Registration{Wait: w, Epoch: d.Epoch}})
	}
	got := must(h.Store.RegisterBatch(ctx, items, now))(t, "register a batch")
	for i, want := range []store.RegisterOutcome{store.RegisterAnswered, store.RegisterTimedOut, store.RegisterTimedOut} {
		done(t, "item", got[i].Err)
		eq(t, fmt.Sprint("outcome ", i), got[i].Outcome, want)
	}
	r.WantAnswered("x0", e2)
	_, err := f.RegisterWait(ctx, store.Registration{Wait: r.Until(past, "y", "paid", a)}, now)
	code(t, "a poll without the epoch", err, rendezvous.CodeLeaseHeld)
	d.Seen = d.Head()
	eq(t, "suspend", d.Suspend().Outcome, store.SuspendSuspended)
	h.noRows(t)
	// Polls leave their room to others: a thousand of them are no thousand waits.
	many := f.Start()
	for n := 0; n < 1500; n += 500 {
		items = items[:0]
		for i := range 500 {
			w := many.Until(past, fmt.Sprint("p", n+i), "paid", b)
			items = append(items, store.RegisterItem{Tenant: f.Name(), Registration: store.Registration{Wait: w}})
		}
		for _, o := range must(h.Store.RegisterBatch(ctx, items, now))(t, "register polls") {
			done(t, "a poll", o.Err)
			eq(t, "outcome", o.Outcome, store.RegisterTimedOut)
		}
	}
	eq(t, "counts", fmt.Sprint(many.Describe().OpenWaits, many.Describe().LiveTimers), "0 0")
}

// contest makes an older wait on a key, of another run, and n events on it that nobody offered.
func (f *Fix) contest(n int) (older *Flow, key rendezvous.Key, events []rendezvous.Event) {
	f.T.Helper()
	older, key = f.Start(), K("order", ID("key"))
	must(f.Subscribe(ctx, store.Registration{Wait: older.Wait("w", "paid", key)}, now))(f.T, "subscribe")
	for range n {
		events = append(events, f.PutNew("paid", key))
	}
	return older, key, events
}

func contestedPoll(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, leased := range []bool{false, true} {
		for _, n := range []int{2, 1} {
			older, key, events := f.contest(n)
			r := f.Start()
			epoch := int64(0)
			if leased {
				epoch = r.Drive().Epoch
			}
			w := r.Until(h.In(t, -time.Second), "w", "paid", key)
			got := must(f.RegisterWait(ctx, store.Registration{Wait: w, Epoch: epoch}, now))(t, "register")
			older.WantAnswered("w", events[0])
			if n == 2 {
				eq(t, "outcome", got.Outcome, store.RegisterAnswered)
				WantAnswerOf(t, *got.Answer, events[1])
				r.WantAnswered("w", events[1])
			} else {
				eq(t, "outcome", got.Outcome, store.RegisterTimedOut)
				rec := r.WantTimedOut("w", w.Deadline)
				eq(t, "seq", got.Seq, rec.Seq)
			}
			r.WantTimers()
			eq(t, "counts", fmt.Sprint(r.Describe().OpenWaits, r.Describe().LiveTimers), "0 0")
		}
	}
	// In an append: the second look's in the next transaction, and the answer's head tells of it.
	older, key, events := f.contest(1)
	r := f.Start()
	d := r.Drive()
	rec := r.Waited(r.Wait("w", "paid", key))
	rec.Data = rendezvous.EncodeData(rendezvous.WaitRegisteredData{Type: "paid", Keys: []rendezvous.Key{key}, Deadline: rendezvous.FormatInstant(h.In(t, -time.Second))})
	out := d.Append(rec)
	older.WantAnswered("w", events[0])
	r.WantTimedOut("w", h.In(t, -time.Second))
	eq(t, "head answered", out.Head, r.Head())
	d.Append(r.Noted("the head is known"))
	h.noRows(t)
	// Several contested ones in a batch, of one run and of others.
	older, key, events = f.contest(3)
	var items []store.RegisterItem
	var flows []*Flow
	for range 4 {
		r := f.Start()
		items = append(items, store.RegisterItem{Tenant: f.Name(), Registration: store.Registration{Wait: r.Until(h.In(t, -time.Second), "w", "paid", key)}})
		flows = append(flows, r)
	}
	got := must(h.Store.RegisterBatch(ctx, items, now))(t, "register")
	older.WantAnswered("w", events[0])
	for i, r := range flows {
		done(t, "item", got[i].Err)
		if i < 2 {
			eq(t, "outcome", got[i].Outcome, store.RegisterAnswered)
			r.WantAnswered("w", events[i+1])
		} else {
			eq(t, "outcome", got[i].Outcome, store.RegisterTimedOut)
			r.WantTimedOut("w", h.In(t, -time.Second))
		}
	}
	h.noRows(t)
}

func contestedPollBroken(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	for call := 1; call < 40; call++ {
		older, key, events := f.contest(1)
		r := f.Start()
		w := r.Until(h.In(t, -time.Second), "w", "paid", key)
		armed := h.Faults.Arm(fault.Failure{Verb: "second_look", Point: fault.AtCall, Call: call, Times: -1})
		got := must(f.RegisterWait(ctx, store.Registration{Wait: w}, now))(t, "register, the second look failing")
		struck := armed.Struck()
		armed.Disarm()
		if got.Outcome == store.RegisterWaiting {
			eq(t, "its row, found by a page", len(r.Timers()), 1)
			for rounds := 0; len(r.Timers()) > 0; rounds++ { // what a worker does
				for _, x := range p.Page(t, 0).Fires {
					if x.Outcome == store.FireContested {
						f.OfferWait(rendezvous.WaitID{RunID: x.RunID, Effect: x.Effect})
					}
				}
				h.Advance(25 * time.Millisecond)
				if rounds > 5 {
					t.Fatal("a contested poll never ends")
				}
			}
		}
		older.WantAnswered("w", events[0])
		r.WantTimedOut("w", w.Deadline)
		r.WantTimers()
		if struck == 0 {
			if call < 3 {
				t.Fatalf("the second look has %d steps: it is called otherwise", call)
			}
			return
		}
	}
	t.Fatal("the second look never ends")
}

func subscribedLate(t *testing.T, h *Harness) {
	f := h.Fix(t)
	p := h.TimerPod(t)
	r, key := f.Start(), K("order", ID("key"))
	e := f.PutNew("paid", key)
	w := r.Until(h.In(t, -time.Second), "w", "paid", key)
	got := must(f.Subscribe(ctx, store.Registration{Wait: w}, now))(t, "subscribe")
	eq(t, "closed", got.Closed, "")
	eq(t, "notice of its timer", len(got.Notices.Timers), 1)
	r.WantClaim("w", e, false)
	one(t, "page", p.Fire(t), store.FireAnswered)
	r.WantAnswered("w", e)
	w.Effect = "v"
	must(f.Subscribe(ctx, store.Registration{Wait: w}, now))(t, "subscribe")
	r.WantNothing("v")
	h.Advance(time.Second)
	late := f.PutNew("paid", key)
	one(t, "page", p.Fire(t), store.FireFired)
	r.WantTimedOut("v", w.Deadline)
	f.WantLive(late)
	h.noRows(t)
}

func pollBroken(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, there := range []bool{false, true} {
		h.Break(t, "register_wait", func() (func() error, func(error, bool)) {
			r, key := f.Start(), K("order", ID("key"))
			var e rendezvous.Event
			if there {
				e = f.PutNew("paid", key)
			}
			w := r.Until(h.In(t, -time.Second), "w", "paid", key)
			return func() error { _, err := f.RegisterWait(ctx, store.Registration{Wait: w}, now); return err }, func(_ error, committed bool) {
				if !committed {
					r.WantKinds()
					r.WantTimers()
				}
				got := r.Register(w)
				if there {
					eq(t, "again", got.Outcome, store.RegisterAnswered)
					r.WantAnswered("w", e)
				} else {
					eq(t, "again", got.Outcome, store.RegisterTimedOut)
					r.WantTimedOut("w", w.Deadline)
				}
				eq(t, "records", len(r.Kinds()), 3)
			}
		})
	}
}

func pollAtOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for range h.Rounds(t) {
		r, key := f.Start(), K("order", ID("key"))
		e := EventOf("paid", key)
		w := r.Until(h.Now(t), "w", "paid", key)
		var got store.Registered
		var errs [2]error
		Race(t,
			func() { got, errs[0] = f.RegisterWait(ctx, store.Registration{Wait: w}, now) },
			func() {
				var b store.Buffered
				if b, errs[1] = f.Buffer(ctx, e, now); errs[1] == nil {
					_, errs[1] = h.Store.OfferBatch(ctx, offersOf(b.Notices), now)
				}
			},
		)
		done(t, "poll", errs[0])
		done(t, "send", errs[1])
		switch got.Outcome {
		case store.RegisterAnswered:
			r.WantAnswered("w", e)
		case store.RegisterTimedOut:
			r.WantTimedOut("w", w.Deadline)
			f.WantLive(e)
		default:
			t.Fatalf("a poll that is %s", got.Outcome)
		}
		r.WantTimers()
	}
}
