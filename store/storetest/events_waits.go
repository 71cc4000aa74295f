package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// eventsWaits are the cases of registering (EV-18..EV-26). Deadlines are in deadlines_waits.go.
var eventsWaits = []Case{
	{Name: "EV-18 registering twice is one record and one row", Run: registeringTwice},
	{Name: "EV-18 registering twice in one batch is one record and one row", Run: registeringTwiceAtOnce},
	{Name: "EV-19 the same effect with other values is a conflict", Run: registeringOtherwise},
	{Name: "EV-19 malformed keys and a 17th are refused, 16 are not", Run: registeringBadKeys},
	{Name: "EV-20 an event that was first answers the registration", Run: answeredAtOnce},
	{Name: "EV-21 an answered effect gets no row", Run: subscribingAnswered},
	{Name: "EV-22 a wait whose row was lost is registered again", Run: lostRow},
	{Name: "EV-23 a registration repeated after a lost reply is answered", Run: lostReplyOfRegistering},
	{Name: "EV-24 a wait without keys is reached by targeted events alone", Run: keylessWait},
	{Name: "EV-25 a wait with three keys is one wait", Run: threeKeys},
	{Name: "EV-26 whom the store does not let wait", Run: refusedRegistrations},
	{Name: "EV-26 a run has a thousand waits at most", Run: thousandWaits},
}

// registrars register a wait in each way there is, without a lease.
var registrars = []struct {
	name string
	do   func(r *Flow, w rendezvous.Wait, at time.Time) (number, seq int64, err error)
}{
	{"RegisterWait", func(r *Flow, w rendezvous.Wait, at time.Time) (int64, int64, error) {
		out, err := r.F.RegisterWait(ctx, store.Registration{Wait: w}, at)
		return out.Number, out.Seq, err
	}},
	{"Subscribe", func(r *Flow, w rendezvous.Wait, at time.Time) (int64, int64, error) {
		out, err := r.F.Subscribe(ctx, store.Registration{Wait: w}, at)
		return out.Number, out.Seq, err
	}},
	{"RegisterBatch", func(r *Flow, w rendezvous.Wait, at time.Time) (int64, int64, error) {
		items := []store.RegisterItem{{Tenant: r.F.Name(), Registration: store.Registration{Wait: w}}}
		out, err := r.F.H.Store.RegisterBatch(ctx, items, at)
		if err != nil {
			return 0, 0, err
		}
		return out[0].Number, out[0].Seq, out[0].Err
	}},
}

func registeringTwice(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, first := range registrars {
		for _, second := range registrars {
			r := f.Start()
			w := r.Wait("w", "paid", K("order", r.ID), K("customer", "9"))
			at := h.Now(t).Add(-time.Hour)
			number, seq, err := first.do(r, w, at)
			done(t, first.name, err)
			before := r.WantOpen("w")
			eq(t, "registered_at of the row", before.RegisteredAt, at)
			eq(t, "number of the row", before.Number, number)

			h.Advance(time.Minute)
			w.Keys = []rendezvous.Key{w.Keys[1], w.Keys[0], w.Keys[1]} // the same set
			again, seqAgain, err := second.do(r, w, now)
			done(t, first.name+", then "+second.name, err)
			eq(t, "number of "+second.name+" after "+first.name, again, number)
			eq(t, "seq of "+second.name+" after "+first.name, seqAgain, seq)
			eq(t, "rows of the run", r.Rows(), []store.WaitRow{before})
			r.WantKinds(rendezvous.WaitRegistered)
		}
	}
}

func registeringTwiceAtOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	item := store.RegisterItem{Tenant: f.Name(), Registration: store.Registration{Wait: r.Wait("w", "paid", K("order", "1"))}}
	other := item
	other.Type = "refunded"
	out := must(h.Store.RegisterBatch(ctx, []store.RegisterItem{item, item, other}, now))(t, "register a batch")
	eq(t, "outcomes", len(out), 3)
	for i, o := range out[:2] {
		done(t, fmt.Sprintf("item %d", i), o.Err)
		eq(t, "outcome", o.Outcome, store.RegisterWaiting)
	}
	eq(t, "number of the repeat", out[1].Number, out[0].Number)
	eq(t, "seq of the repeat", out[1].Seq, out[0].Seq)
	code(t, "the repeat with another type", out[2].Err, rendezvous.CodeConflict)
	eq(t, "rows of the run", len(r.Rows()), 1)
	r.WantKinds(rendezvous.WaitRegistered)

	for range h.Rounds(t) {
		r := f.Start()
		w := r.Wait("w", "paid", K("order", r.ID), K("customer", "9"))
		var number, seq [4]int64
		var errs [4]error
		var racers []func()
		for i := range number {
			by := registrars[i%len(registrars)]
			racers = append(racers, func() { number[i], seq[i], errs[i] = by.do(r, w, now) })
		}
		Race(t, racers...)
		for i := range number {
			done(t, "register at once with others", errs[i])
			eq(t, "number", number[i], number[0])
			eq(t, "seq", seq[i], seq[0])
		}
		eq(t, "rows of the run", len(r.Rows()), 1)
		r.WantKinds(rendezvous.WaitRegistered)
	}
}

func registeringOtherwise(t *testing.T, h *Harness) {
	f := h.Fix(t)
	changes := map[string]func(w *rendezvous.Wait){
		"type": func(w *rendezvous.Wait) { w.Type = "refunded" },
		"keys": func(w *rendezvous.Wait) { w.Keys = w.Keys[:1] },
		"from": func(w *rendezvous.Wait) { w.From = "" },
	}
	for what, change := range changes {
		for _, by := range registrars {
			r := f.Start()
			w := r.Wait("w", "paid", K("order", r.ID), K("customer", r.ID))
			w.From = "shop"
			r.Register(w)
			other := w
			change(&other)
			r.refuses(by.name+" with other "+what, rendezvous.CodeConflict, func() error { _, _, err := by.do(r, other, now); return err }, "what", what)
			e := EventOf("paid", K("customer", r.ID))
			f.Send(e)
			r.WantAnswered("w", e) // the first stands
			r.refuses(by.name+" with other "+what+" after the answer", rendezvous.CodeConflict,
				func() error { _, _, err := by.do(r, other, now); return err }, "what", what)
		}
	}
	r := f.Start()
	r.AppendFree(r.Begun("charge"))
	for _, by := range registrars {
		r.refuses(by.name+" under the key of an effect", rendezvous.CodeDuplicate, func() error { _, _, err := by.do(r, r.Wait("charge", "paid"), now); return err })
	}
	r.Waits("w", "paid")
	w := r.Wait("w", "paid", K("order", "1"))
	r.refuses("keys for a wait without", rendezvous.CodeConflict, func() error { _, _, err := registrars[0].do(r, w, now); return err }, "what", "keys")
}

func registeringBadKeys(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	keys := func(n int) []rendezvous.Key {
		all := make([]rendezvous.Key, n)
		for i := range all {
			all[i] = K("order", fmt.Sprint(i))
		}
		return all
	}
	bad := []struct {
		what string
		keys []rendezvous.Key
		code rendezvous.Code
	}{
		{"17 keys", keys(17), rendezvous.CodeTooLarge},
		{"a key without a namespace", append(keys(1), K("", "1")), rendezvous.CodeInvalid},
		{"a key without a value", append(keys(1), K("order", "")), rendezvous.CodeInvalid},
		{"a namespace of 257 bytes", append(keys(1), K(strings.Repeat("n", 257), "1")), rendezvous.CodeTooLarge},
		{"a value of 257 bytes", append(keys(1), K("order", strings.Repeat("v", 257))), rendezvous.CodeTooLarge},
		{"a value with a NUL", append(keys(1), K("order", "a\x00b")), rendezvous.CodeInvalid},
		{"a value that is not UTF-8", append(keys(1), K("order", "\xff\xfe")), rendezvous.CodeInvalid},
	}
	for _, b := range bad {
		for _, by := range registrars {
			r.refuses(by.name+" with "+b.what, b.code, func() error { _, _, err := by.do(r, r.Wait("w", "paid", b.keys...), now); return err })
		}
	}
	longest := K(strings.Repeat("n", 256), strings.Repeat("ü", 128))
	most := append(append(keys(15), longest), keys(15)...) // a set of 16
	r.Waits("w", "paid", most...)
	eq(t, "keys of the row", rendezvous.SortedKeys(r.WantOpen("w").Keys), rendezvous.SortedKeys(most))
	e := EventOf("paid", longest)
	f.Send(e)
	r.WantAnswered("w", e)
}

func answeredAtOnce(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		for _, leased := range []bool{false, true} {
			r := f.Start()
			e := f.PutNew("paid", K("order", "4711"), K("customer", "9"))
			reg := store.Registration{Wait: r.Wait("w", "paid", K("invoice", "7"), K("customer", "9"))}
			if leased {
				reg.Epoch = r.Drive().Epoch
			}
			out := must(f.RegisterWait(ctx, reg, now))(t, "register")
			eq(t, "outcome", out.Outcome, store.RegisterAnswered)
			WantAnswerOf(t, *out.Answer, e)
			rec := r.WantAnswered("w", e)
			eq(t, "record handed out", *out.Answer, *rec)
			eq(t, "seq handed out", out.Seq, rec.Seq)
			r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered)
			again := must(f.RegisterWait(ctx, reg, now))(t, "register again")
			eq(t, "outcome of the repeat", again.Outcome, store.RegisterAnswered)
			eq(t, "record handed out again", *again.Answer, *rec)
			r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered)
		}
		r := f.Start()
		e := f.PutNew("paid", K("order", "4712"))
		d := r.Drive()
		out := d.Append(r.Noted("before"), r.Waited(r.Wait("w", "paid", K("order", "4712"))), r.Noted("behind"))
		r.WantKinds(rendezvous.Note, rendezvous.WaitRegistered, rendezvous.Note, rendezvous.WaitAnswered) // behind the batch's records
		rec := r.WantAnswered("w", e)
		eq(t, "answers of the append", out.Answers, []store.Answer{{Effect: "w", Seq: rec.Seq, Record: *rec}})
		eq(t, "head of the append", out.Head, rec.Seq)
	}
}

func subscribingAnswered(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	w := r.Waits("w", "paid", K("order", "1"))
	e := EventOf("paid", K("order", "1"))
	f.Send(e)
	seq := r.WantAnswered("w", e).Seq
	out := must(f.Subscribe(ctx, store.Registration{Wait: w}, now))(t, "subscribe the answered effect")
	eq(t, "how the effect was closed", out.Closed, rendezvous.ClosedAnswered)
	eq(t, "record that closed it", out.Seq, seq)
	eq(t, "rows", r.Rows(), nil)
	next := EventOf("paid", K("order", "1"))
	eq(t, "offers of the next event", len(f.Send(next).Made(store.OfferNoWaiter)), 1)
	f.WantLive(next)
	r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered)

	free := f.Start() // it does not claim
	free.Subscribes("w", "paid", K("order", "1"))
	free.WantOpen("w")
	f.WantLive(next)
	free.WantClaim("w", next, false)

	gone := r.Waits("gone", "paid", K("order", "2"))
	withdrawn := must(f.Unsubscribe(ctx, gone.WaitID, 0, "", now))(t, "withdraw")
	out = must(f.Subscribe(ctx, store.Registration{Wait: gone}, now))(t, "subscribe the withdrawn effect")
	eq(t, "how the effect was closed", out.Closed, rendezvous.ClosedWithdrawn)
	eq(t, "record that closed it", out.Seq, withdrawn.Seq)
	eq(t, "rows", r.Rows(), nil)
}

func lostRow(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		for _, by := range registrars {
			r := f.Start()
			w := r.Waits("w", "paid", K("order", r.ID), K("customer", r.ID))
			seq, before := r.Head(), r.WantOpen("w")
			done(t, "damage", h.Damage.LoseWait(f.Name(), w.WaitID))
			h.Advance(time.Minute)
			eq(t, "rows after the loss", r.Rows(), nil)
			_, seqAgain, err := by.do(r, w, now)
			done(t, by.name+" after the loss", err)
			eq(t, "seq after the loss", seqAgain, seq)
			row := r.WantOpen("w")
			eq(t, "registered_at of the new row", row.RegisteredAt, before.RegisteredAt)
			eq(t, "keys of the new row", rendezvous.SortedKeys(row.Keys), rendezvous.SortedKeys(w.Keys))
			r.WantKinds(rendezvous.WaitRegistered)
			e := EventOf("paid", K("customer", r.ID))
			f.Send(e)
			r.WantAnswered("w", e)
			r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered)
		}
		r := f.Start() // an event that came while there was no row
		w := r.Waits("w", "paid", K("order", r.ID))
		done(t, "damage", h.Damage.LoseWait(f.Name(), w.WaitID))
		e := EventOf("paid", K("order", r.ID))
		eq(t, "offers meanwhile", len(f.Send(e).Made(store.OfferNoWaiter)), 1)
		eq(t, "outcome of registering again", r.Register(w).Outcome, store.RegisterAnswered)
		r.WantAnswered("w", e)
	}
}

func lostReplyOfRegistering(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for _, offered := range []bool{false, true} {
		for _, point := range []fault.Point{fault.AfterCommit, fault.BeforeCommit} {
			r := f.Start()
			reg := store.Registration{Wait: r.Wait("w", "paid", K("order", r.ID)), Epoch: r.Drive().Epoch}
			h.Faults.Arm(fault.Failure{Verb: "register_wait", Point: point})
			_, err := f.RegisterWait(ctx, reg, now)
			want := map[fault.Point]rendezvous.Code{fault.AfterCommit: rendezvous.CodeCommitUnknown, fault.BeforeCommit: rendezvous.CodeUnavailable}
			code(t, "register with a failure "+string(point), err, want[point])
			e := EventOf("paid", K("order", r.ID))
			if buffered := f.Put(e); offered {
				h.Offer(t, buffered.Notices)
			}
			again := must(f.RegisterWait(ctx, reg, now))(t, "register again")
			eq(t, "outcome of the repeat", again.Outcome, store.RegisterAnswered)
			WantAnswerOf(t, *again.Answer, e)
			r.WantAnswered("w", e)
			r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered)
		}
	}
	h.Break(t, "register_wait", func() (func() error, func(error, bool)) { // an event is there: both records or none
		r := f.Start()
		e := f.PutNew("paid", K("order", r.ID))
		reg := store.Registration{Wait: r.Wait("w", "paid", K("order", r.ID))}
		return func() error { _, err := f.RegisterWait(ctx, reg, now); return err }, func(err error, committed bool) {
			if !committed {
				r.WantKinds()
				eq(t, "rows", r.Rows(), nil)
				f.WantLive(e)
			}
			eq(t, "outcome of the repeat", r.Register(reg.Wait).Outcome, store.RegisterAnswered)
			r.WantAnswered("w", e)
			r.WantKinds(rendezvous.WaitRegistered, rendezvous.WaitAnswered)
		}
	})
}

func keylessWait(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Waits("w", "paid")
	row := r.WantOpen("w")
	eq(t, "keys of the row", row.Keys, nil)
	eq(t, "waits listed", f.Listed(store.WaitFilter{Type: "paid"}), []store.WaitRow{row})
	with, without := EventOf("paid", K("order", "1")), EventOf("paid")
	for _, e := range []rendezvous.Event{with, without} {
		eq(t, "offers of "+e.ID, len(f.Send(e).Made(store.OfferNoWaiter)), 1)
		eq(t, "match of "+e.ID, f.Match(e.EventID).Outcome, store.MatchNoWaiter)
	}
	eq(t, "offer of the wait", f.OfferWait(row.WaitID).Outcome, store.OfferNoEvent)
	r.WantNothing("w")
	eq(t, "outcome of registering again", r.Register(row.Wait).Outcome, store.RegisterWaiting)
	r.WantOpen("w")

	for i, keys := range [][]rendezvous.Key{{K("order", "1")}, nil} {
		effect := fmt.Sprint("targeted", i)
		other := f.Start()
		other.Waits(effect, "paid")
		e := EventOf("paid", keys...)
		other.Targeted(effect, e)
		other.Redelivered(effect)
		rec := other.WantAnswered(effect, e)
		var data rendezvous.WaitAnsweredData
		done(t, "decode the answer", rendezvous.DecodeData(*rec, &data))
		eq(t, "key that met", data.Key, nil)
		eq(t, "answer is targeted", data.Targeted, true)
	}
	r.WantOpen("w")
	eq(t, "waits retired with the run", r.Conclude(rendezvous.StatusCompleted).Retired.Waits, 1)
	f.WantLive(with, without)
}

func threeKeys(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		keys := []rendezvous.Key{K("order", "1"), K("customer", "2"), K("invoice", "3")}
		for i, met := range keys {
			r := f.Start()
			w := r.Wait("w", "paid", keys...)
			w.From = "shop"
			eq(t, "outcome", r.Register(w).Outcome, store.RegisterWaiting)
			row := r.WantOpen("w")
			eq(t, "waits listed", f.Listed(store.WaitFilter{}), []store.WaitRow{row})
			for _, k := range keys {
				eq(t, "waits listed under "+k.String(), f.Listed(store.WaitFilter{Key: &k}), []store.WaitRow{row})
			}
			no := K("order", "2")
			eq(t, "waits listed under another key", f.Listed(store.WaitFilter{Key: &no}), nil)

			e := f.PutNew("paid", K("other", "1"), met, K("order", "no"))
			got := f.Matched(e, r, "w")
			eq(t, "keys of the wait returned", rendezvous.SortedKeys(got.Keys), rendezvous.SortedKeys(keys)) // O5
			eq(t, "from of the wait returned", got.From, "shop")
			eq(t, "number of the wait returned", got.Number, row.Number)
			eq(t, "waits listed while parked", len(f.Listed(store.WaitFilter{Key: &keys[(i+1)%3]})), 1)
			r.Redelivered("w")
			wantMetBy(t, r.WantAnswered("w", e), met)
		}
		r := f.Start() // the record says which key met: the first of the wait's that the event has
		r.Waits("w", "paid", keys...)
		e := EventOf("paid", keys[2], keys[1])
		f.Send(e)
		wantMetBy(t, r.WantAnswered("w", e), keys[1])
	}
}

func wantMetBy(t testing.TB, rec *rendezvous.Record, key rendezvous.Key) {
	t.Helper()
	var data rendezvous.WaitAnsweredData
	done(t, "decode the answer", rendezvous.DecodeData(*rec, &data))
	eq(t, "key that met", data.Key, &key)
	eq(t, "answer is targeted", data.Targeted, false)
}

func refusedRegistrations(t *testing.T, h *Harness) {
	f, other := h.Fix(t), h.FixOf(t, "globex")
	unknown := &Flow{F: f, ID: ID("run"), WorkflowID: ID("workflow")}
	elsewhere := &Flow{F: f, ID: other.Start().ID, WorkflowID: ID("workflow")} // another tenant's run is unknown here
	sealed := f.Start()
	sealed.Conclude(rendezvous.StatusCompleted)
	continued := f.Start()
	next := continued.Continue()
	paused := f.Start()
	must(f.PauseRun(ctx, paused.ID, nil, "wait", now))(t, "pause")
	leased := f.Start()
	leased.Drive()
	f.PutNew("paid", K("order", "1")) // it answers none of them
	bad := []struct {
		what    string
		r       *Flow
		code    rendezvous.Code
		details []any
	}{
		{"an unknown run", unknown, rendezvous.CodeNotFound, nil},
		{"another tenant's run", elsewhere, rendezvous.CodeNotFound, nil},
		{"a sealed run", sealed, rendezvous.CodeSealed, []any{"outcome", "completed"}},
		{"an earlier run", continued, rendezvous.CodeSealed, []any{"outcome", "continued_as_new", "current_run", next.ID}},
		{"a paused run", paused, rendezvous.CodeConflict, nil},
		{"a leased run without epoch", leased, rendezvous.CodeLeaseHeld, nil},
	}
	var items []store.RegisterItem
	for _, b := range bad {
		w := b.r.Wait("w", "paid", K("order", "1"))
		for _, by := range registrars {
			b.r.refuses(by.name+" for "+b.what, b.code, func() error { _, _, err := by.do(b.r, w, now); return err }, b.details...)
		}
		items = append(items, store.RegisterItem{Tenant: f.Name(), Registration: store.Registration{Wait: w}})
	}
	stale := store.Registration{Wait: leased.Wait("w", "paid", K("order", "1")), Epoch: 7}
	leased.refuses("a leased run with an invented epoch", rendezvous.CodeFenced, func() error { _, err := f.RegisterWait(ctx, stale, now); return err })

	good := f.Start()
	items = append(items, store.RegisterItem{Tenant: f.Name(), Registration: store.Registration{Wait: good.Wait("w", "refunded", K("order", "1"))}})
	out := must(h.Store.RegisterBatch(ctx, items, now))(t, "register them all at once")
	for i, b := range bad {
		code(t, b.what+" in a batch", out[i].Err, b.code, b.details...)
		eq(t, "waits of "+b.what, b.r.Rows(), nil)
	}
	done(t, "the good one of the batch", out[len(bad)].Err)
	good.WantOpen("w")
	eq(t, "waits of the tenant", len(f.Listed(store.WaitFilter{})), 1)
	eq(t, "waits of the other tenant", other.Listed(store.WaitFilter{}), nil)
}

func thousandWaits(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	items := make([]store.RegisterItem, rendezvous.MaxWaitsPerRun)
	for i := range items {
		items[i] = store.RegisterItem{Tenant: f.Name(), Registration: store.Registration{Wait: r.Wait(fmt.Sprint("w", i), "paid", K("order", fmt.Sprint(i)))}}
	}
	for half := 0; half < len(items); half += rendezvous.MaxBatchItems {
		for _, o := range must(h.Store.RegisterBatch(ctx, items[half:half+rendezvous.MaxBatchItems], now))(t, "register 500") {
			done(t, "register", o.Err)
		}
	}
	for _, by := range registrars {
		_, _, err := by.do(r, r.Wait("more", "paid"), now)
		code(t, by.name+" of one more", err, rendezvous.CodeTooLarge, "limit", rendezvous.MaxWaitsPerRun)
		_, _, err = by.do(r, items[0].Wait, now)
		done(t, by.name+" of one that is there", err)
	}
	rows := r.Rows() // page by page
	eq(t, "waits listed", len(rows), rendezvous.MaxWaitsPerRun)
	for i := 1; i < len(rows); i++ {
		if rows[i].Number <= rows[i-1].Number {
			t.Fatalf("wait %d of the list has number %d, the one before it %d", i, rows[i].Number, rows[i-1].Number)
		}
	}
	eq(t, "open waits", r.Describe().OpenWaits, rendezvous.MaxWaitsPerRun)
	f.Send(EventOf("paid", K("order", "500")))
	r.Waits("more", "paid")
	eq(t, "waits retired", r.Conclude(rendezvous.StatusCompleted).Retired.Waits, rendezvous.MaxWaitsPerRun)
}
