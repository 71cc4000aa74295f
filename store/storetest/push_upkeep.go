package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// pushUpkeep is what the sweeper and retention do with registrations (push.md section 8, sweep.md section 6).
var pushUpkeep = []Case{
	{Name: "PU-66 rows past the age ceiling park expired, the others stay", Run: pushAged},
	{Name: "PU-66 leased, parked and idle rows are not aged; pages are bounded and cover all tenants", Run: pushAgedPages},
	{Name: "PU-66 parking the aged at any step is done or not done", Run: pushAgedOrNot},
	{Name: "PU-27 runs with rows due for long are listed, the longest first", Run: pushDueRuns},
	{Name: "SW-29 retention spares a closed workflow whose registration is unfinished, and hides nobody behind it", Run: pushSparedByRetention},
	{Name: "SW-29 what has been parked for 30 days goes with its workflow", Run: pushGoesWithRetention},
	{Name: "SW-29 a finished registration spares nothing, and its log goes with the workflow", Run: pushFinishedGoes},
	{Name: "PU-22 S1 a row that does not decode is handed to nobody and hides nobody", Run: pushCorrupt},
}

func (h *Harness) age(t *testing.T, most time.Duration, limit int) []store.PushItem {
	t.Helper()
	var all []store.PushItem
	for pages := 0; ; pages++ {
		parked, more, err := h.Store.ParkAgedPushes(ctx, most, limit)
		done(t, "park what is too old", err)
		if limit > 0 && len(parked) > limit {
			t.Fatalf("a page of %d", len(parked))
		}
		if all = append(all, parked...); !more {
			return all
		}
		if pages == 100 {
			t.Fatal("ageing never ends")
		}
	}
}

func pushAged(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		r := f.Start()
		for _, id := range []string{"failing", "fine", "younger", "forgiven"} {
			r.Follows(id)
		}
		r.Retries("failing", 0, h.In(t, 100*time.Hour))
		r.Retries("forgiven", 0, h.In(t, 100*time.Hour))
		h.Advance(time.Hour)
		r.Retries("younger", 0, h.In(t, 100*time.Hour))
		must(f.AdvancePush(ctx, r.PushKey("forgiven"), 0, at(1, 1)))(t, "advance")
		h.Advance(store.DefaultPushMaxAge - time.Hour - time.Minute)
		eq(t, "a minute early", h.age(t, 0, 0), nil)
		h.Advance(time.Minute)
		failing := r.Push("failing")
		eq(t, "at 72 h", h.age(t, 0, 0), []store.PushItem{{Tenant: f.Name(), PushKey: r.PushKey("failing")}})
		p := r.Push("failing")
		eq(t, "the row", []any{p.State, p.Reason, p.Attempts, p.Cursor, p.FailingSince}, []any{rendezvous.PushParked, rendezvous.ParkExpired, 1, at(1, 0), failing.FailingSince})
		eq(t, "again", h.age(t, 0, 0), nil)
		eq(t, "by a lower ceiling", h.age(t, time.Hour, 0), []store.PushItem{{Tenant: f.Name(), PushKey: r.PushKey("younger")}})
		must(f.UnparkPush(ctx, r.PushKey("failing"), now, ""))(t, "unpark")
		eq(t, "after unparking", h.age(t, 0, 0), nil)
		eq(t, "the others", []rendezvous.PushState{r.Push("fine").State, r.Push("forgiven").State}, []rendezvous.PushState{rendezvous.PushLive, rendezvous.PushLive})
		for _, p := range must(f.ListPush(ctx, r.ID))(t, "list") {
			must(f.DeletePush(ctx, p.Key()))(t, "delete")
		}
	}
}

func pushAgedPages(t *testing.T, h *Harness) {
	var want []string
	for _, f := range h.Two(t) {
		for range 4 {
			r := f.Start()
			r.Follows("a")
			r.Retries("a", 0, h.Now(t))
			want = append(want, f.Name()+"/"+r.ID)
		}
	}
	f := h.Fix(t)
	held, parked := f.Start(), f.Start()
	parked.Follows("a")
	parked.Retries("a", 0, h.Now(t))
	parked.Stop("a", rendezvous.ParkByOperator)
	h.Advance(store.DefaultPushMaxAge - time.Second)
	held.Follows("a")
	w := h.Pusher(t)
	held.Retries("a", 0, h.Now(t))
	h.Advance(time.Microsecond)
	w.Take(held)
	h.Advance(time.Second)
	var got []string
	for _, p := range h.age(t, 0, 3) {
		got = append(got, p.Tenant+"/"+p.RunID)
	}
	slices.Sort(got)
	slices.Sort(want)
	eq(t, "parked", got, want)
	eq(t, "a held one, under a ceiling it is past", h.age(t, time.Millisecond, 0), nil)
	eq(t, "the operator's reason stays", parked.Push("a").Reason, rendezvous.ParkByOperator)
	_, _, err := h.Store.ParkAgedPushes(ctx, 0, 501)
	code(t, "a limit too large", err, rendezvous.CodeTooLarge, "field", "limit")
	_, _, err = h.Store.ParkAgedPushes(ctx, -1, 0)
	code(t, "a negative ceiling", err, rendezvous.CodeInvalid, "field", "max_age")
}

func pushAgedOrNot(t *testing.T, h *Harness) {
	f := h.Fix(t)
	h.Break(t, "park_aged_pushes", func() (func() error, func(error, bool)) {
		r := f.Start()
		r.Follows("a")
		r.Retries("a", 0, h.Now(t))
		h.Advance(time.Second)
		attempt := func() error { _, _, err := h.Store.ParkAgedPushes(ctx, time.Millisecond, 0); return err }
		return attempt, func(_ error, committed bool) {
			eq(t, "parked", r.Push("a").State == rendezvous.PushParked, committed)
			done(t, "again", attempt())
			eq(t, "parked again", r.Push("a").State, rendezvous.PushParked)
			eq(t, "attempts", r.Push("a").Attempts, 1)
		}
	})
}

func pushDueRuns(t *testing.T, h *Harness) {
	two := h.Two(t)
	var runs []*Flow
	for i := range 6 {
		r := two[i%2].Start()
		r.Follows("a")
		r.Follows("b")
		runs = append(runs, r)
		h.Advance(time.Second)
	}
	runs[0].AppendFree(runs[0].Noted("n"))
	runs[1].Parks("a")
	runs[1].Stop("b", rendezvous.ParkByOperator)
	runs[2].Retries("a", 0, h.In(t, time.Hour))
	runs[3].Rests("idle")
	bound := runs[4].Push("b").NextAttemptAt
	list := func(before time.Time, limit int) ([]store.DuePushRun, bool) {
		t.Helper()
		got, more, err := h.Store.DuePushRuns(ctx, before, limit)
		done(t, "list runs with due rows", err)
		return got, more
	}
	row := func(r *Flow, since string, rows int) store.DuePushRun {
		return store.DuePushRun{
			PushRun: store.PushRun{Tenant: r.F.Name(), RunID: r.ID}, WorkflowID: r.WorkflowID, Head: r.Head(), Since: r.Push(since).NextAttemptAt, Rows: rows,
		}
	}
	got, more := list(bound, 0)
	eq(t, "runs", got, []store.DuePushRun{row(runs[0], "a", 2), row(runs[2], "b", 1), row(runs[3], "a", 2), row(runs[4], "a", 2)})
	eq(t, "more", more, false)
	got, more = list(bound, 2)
	eq(t, "of two", []any{len(got), more, got[0].RunID}, []any{2, true, runs[0].ID})
	h.Pusher(t).Claim(store.MaxPushClaim)
	got, _ = list(h.Now(t), 0)
	eq(t, "leased rows are not due", got, nil)
	_, _, err := h.Store.DuePushRuns(ctx, h.Now(t), 501)
	code(t, "a limit too large", err, rendezvous.CodeTooLarge, "field", "limit")
}

func pushSparedByRetention(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		var kept []*Flow
		for i := range 4 {
			r := f.Start()
			r.Rests("a")
			if i == 1 {
				r.Stop("a", rendezvous.ParkGone)
			}
			if i == 2 {
				r = r.Continue() // a registration on the run before
			}
			r.Conclude(rendezvous.StatusCompleted)
			if i == 3 {
				h.Pusher(t).Take(r)
			}
			kept = append(kept, r)
		}
		h.Advance(time.Second)
		free := f.Start()
		free.Conclude(rendezvous.StatusCompleted)
		h.Advance(time.Second)
		gone, spared := h.Prune(t, h.Now(t), 2)
		eq(t, "pruned", gone, []string{free.WorkflowID})
		var want []string
		for _, r := range kept {
			want = append(want, r.WorkflowID)
			eq(t, "its history", len(r.History()) > 1, true)
		}
		slices.Sort(spared)
		slices.Sort(want)
		eq(t, "spared", spared, want)
		for _, r := range kept {
			for _, s := range must(f.ReadRunChain(ctx, r.WorkflowID, 0, 0))(t, "read the chain") {
				must(f.DeletePush(ctx, store.PushKey{RunID: s.RunID, ID: "a"}))(t, "delete")
			}
		}
		h.Advance(pushLeaseEnd)
		gone, spared = h.Prune(t, h.Now(t), 0)
		eq(t, "pruned without registrations", []int{len(gone), len(spared)}, []int{4, 0})
		h.PruneAll(t, 0)
	}
}

func pushGoesWithRetention(t *testing.T, h *Harness) {
	const month = 30 * 24 * time.Hour
	f := h.Fix(t)
	r, other := f.Start(), f.Start()
	for _, r := range []*Flow{r, other} {
		r.Parks("a")
		r.Conclude(rendezvous.StatusCompleted)
	}
	h.Advance(month - time.Hour)
	other.Follows("b")
	_, spared := h.Prune(t, h.Now(t), 0)
	eq(t, "spared before 30 days", len(spared), 2)
	h.Advance(time.Hour + time.Second)
	gone, spared := h.Prune(t, h.Now(t), 0)
	eq(t, "after 30 days", [][]string{gone, spared}, [][]string{{r.WorkflowID}, {other.WorkflowID}})
	r.NoPush("a")
	eq(t, "parked", pushNames(f.parkedPushes(store.PushParkedFilter{}, 0)), []string{other.ID + "/a"})
	h.PruneAll(t, 0)
	_, err := f.PutPush(ctx, r.Hook("a"), now)
	code(t, "put on what was pruned", err, rendezvous.CodeNotFound)
}

func pushFinishedGoes(t *testing.T, h *Harness) {
	f := h.Fix(t)
	s := store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order"}
	r := f.StartAs(s)
	r.Follows("a")
	r.Parks("skipped")
	must(r.skip("skipped", 1))(t, "skip")
	r.Conclude(rendezvous.StatusCompleted)
	w := h.Pusher(t)
	last := settling(w.Take(r), store.PushComplete)
	last.Advance, last.Attempts = ptr(at(3, 0)), []rendezvous.PushAttempt{h.attempt(t, rendezvous.ClassFailed, 1), h.attempt(t, rendezvous.ClassAccepted, 1)}
	eq(t, "done", w.Settle(last).Done, true)
	must(f.DeletePush(ctx, r.PushKey("skipped")))(t, "delete")
	h.Advance(time.Second)
	gone, _ := h.Prune(t, h.Now(t), 0)
	eq(t, "pruned", gone, []string{r.WorkflowID})
	h.PruneAll(t, 0)
	h.trim(t, 0, time.Nanosecond)
	r = f.StartAs(s) // the ids are free again
	r.Follows("a")
	eq(t, "log of the id's next life", len(r.Log("a")), 0)
	eq(t, "log of a skip of its former life", len(r.Log("skipped")), 0)
}

func pushCorrupt(t *testing.T, h *Harness) {
	f := h.Fix(t)
	var good []string
	var runs []*Flow
	for i := range 6 {
		r := f.Start()
		runs = append(runs, r)
		r.Follows("a")
		if i < 3 {
			done(t, "damage", h.Damage.Push(f.Name(), r.ID, "a"))
			continue
		}
		good = append(good, fmt.Sprint(f.Name(), "/", r.ID, "/a"))
	}
	w := h.Pusher(t)
	var got []string
	for range 6 {
		page := w.Claim(2)
		for _, c := range page.Pushes {
			if c.Corrupt != nil {
				t.Fatalf("%s was handed out: %v", c.RunID, c.Corrupt)
			}
			got = append(got, c.Tenant+"/"+c.RunID+"/"+c.ID)
		}
	}
	eq(t, "handed out", got, good)
	for _, p := range must(f.DuePush(ctx, endOfTime, 0))(t, "list what is due") {
		code(t, "what is still due", p.Corrupt, rendezvous.CodeCorrupt)
	}
	for i, r := range runs[:3] {
		_, err := f.GetPush(ctx, r.PushKey("a"))
		code(t, "get", err, rendezvous.CodeCorrupt)
		rows := must(f.ListPush(ctx, r.ID))(t, "list")
		eq(t, "listed", []any{len(rows), rows[0].ID, rows[0].Corrupt != nil}, []any{1, "a", true})
		code(t, "park", f.ParkPush(ctx, store.ParkPush{PushKey: r.PushKey("a"), Reason: rendezvous.ParkByOperator}), rendezvous.CodeCorrupt)
		code(t, "settle", w.SettleAll(store.PushSettlement{
			PushItem: store.PushItem{Tenant: f.Name(), PushKey: r.PushKey("a")}, Token: 1, Name: fmt.Sprint(i), Do: store.PushKeep,
		})[0].Err, rendezvous.CodeCorrupt)
		must(f.DeletePush(ctx, r.PushKey("a")))(t, "delete")
		eq(t, "registrations counted", r.Describe().Registrations, 0)
	}
}
