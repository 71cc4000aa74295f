package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// pushDue is push.md section 2: which registrations are due, in which order, and how that is read.
var pushDue = []Case{
	{Name: "PU-15 a retry at T is not due at T - 1 µs and due at T", Run: pushDueAtT},
	{Name: "PU-19 DuePushIn is DuePush filtered, both namespaces, with what it leaves out counted", Run: pushDueInFilters},
	{Name: "PU-20 foreign rows before a window hide none of its own", Run: pushForeignRows},
	{Name: "PU-20 workers of one namespace never touch the other's rows", Run: pushNamespacesApart},
	{Name: "PU-21 due order is the instant, then the bytes of run and id", Run: pushDueOrder},
	{Name: "PU-21 late names never starve", Run: pushLateNames},
	{Name: "PU-22 a parked row is due at no instant, and listed with its reason and error", Run: pushParkedNotDue},
	{Name: "PU-22 parked rows are paged without gap or repeat while others park", Run: pushParkedPaged},
	{Name: "PU-22 a page of parked rows with a filter that matches little goes on", Run: pushParkedFiltered},
	{Name: "PU-27 a row that has caught up is due at no instant", Run: pushIdleNotDue},
	{Name: "PU-36 reads of what is due take nothing", Run: pushDueReadsOnly},
	{Name: "limits of reads of registrations are refused by name", Run: pushReadLimits},
}

func pushDueAtT(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"))
	r.Follows("a")
	must(f.AdvancePush(ctx, r.PushKey("a"), 0, at(1, 1)))(t, "advance")
	for i := 1; i <= 3; i++ {
		due := h.In(t, time.Minute).Add(300 * time.Nanosecond) // rounded up
		T := rendezvous.DueInstant(due)
		r.Retries("a", 0, due)
		p := r.WantCursor("a", 1, 1)
		eq(t, "attempts and instant", []any{p.Attempts, p.NextAttemptAt, p.State, p.Error}, []any{i, T, rendezvous.PushLive, "503"})
		r.WantDue("a microsecond early", "a", T.Add(-time.Microsecond), false)
		r.WantDue("at T", "a", T, true)
		eq(t, "claimed early", len(h.Pusher(t).ClaimOf(r)), 0)
	}
	failing := r.Push("a").FailingSince
	if failing.IsZero() || failing.After(h.Now(t)) {
		t.Fatalf("failing since %s", failing)
	}
	h.Advance(time.Minute - 2*time.Microsecond) // some of it may have passed
	if h.Now(t).Before(r.Push("a").NextAttemptAt) {
		eq(t, "claimed a moment early", len(h.Pusher(t).ClaimOf(r)), 0)
	}
	h.Advance(3 * time.Microsecond)
	h.Pusher(t).Take(r)
	eq(t, "failing since", r.Push("a").FailingSince, failing)
}

// mixed makes rows of both namespaces with instants of chance, some never retried: the first rows of two runs.
func (h *Harness) mixed(t *testing.T, rnd *rand.Rand) *Fix {
	t.Helper()
	h.Destinations(t, rendezvous.Destination{Name: "audit", Events: []string{"*"}}, rendezvous.Destination{Name: "billing", Events: []string{"*"}})
	f := h.Fix(t)
	for range 8 {
		r := f.Start()
		for i := range 2 {
			r.Follows(fmt.Sprint("hook-", i))
		}
		for _, p := range must(f.ListPush(ctx, r.ID))(t, "list") {
			switch rnd.IntN(4) {
			case 0:
				r.Retries(p.ID, 0, h.In(t, time.Duration(1+rnd.IntN(60))*time.Second))
			case 1:
				if rnd.IntN(2) == 0 {
					r.Stop(p.ID, rendezvous.ParkByOperator)
				}
			case 2:
				h.Advance(time.Millisecond)
			}
		}
	}
	return f
}

func pushDueInFilters(t *testing.T, h *Harness) {
	rnd := rand.New(rand.NewPCG(seedOf(t), 19))
	f := h.mixed(t, rnd)
	early := f.Start() // the only rows that are due before all others: never retried
	before := h.Now(t)
	early.Follows("late")
	both := [2]rendezvous.PushNamespace{rendezvous.PushCaller, rendezvous.PushOperator}
	for _, instant := range []time.Time{before.Add(-time.Hour), before, h.Now(t), h.In(t, 30*time.Second), h.In(t, time.Hour), endOfTime} {
		all := must(f.DuePush(ctx, instant, store.MaxPushClaim))(t, "list what is due")
		for i, namespace := range both {
			want := slices.DeleteFunc(slices.Clone(all), func(p store.Push) bool { return p.Namespace != namespace })
			foreign := len(all) - len(want)
			for _, limit := range []int{1, 3, store.MaxPushClaim} {
				got := must(f.DuePushIn(ctx, instant, limit, namespace))(t, "list what is due of "+string(namespace))
				eq(t, "head of the namespace", got.Pushes, want[:min(limit, len(want))])
				eq(t, "unserved", []any{got.Unserved, got.Capped}, []any{foreign, false})
			}
			_ = i
		}
	}
	h.Advance(time.Hour)
	eq(t, "at zero it is the store's now", f.Due(now), f.Due(h.Now(t)))
}

func pushForeignRows(t *testing.T, h *Harness) {
	h.Destinations(t, rendezvous.Destination{Name: "a", Events: []string{"*"}}, rendezvous.Destination{Name: "b", Events: []string{"*"}},
		rendezvous.Destination{Name: "c", Events: []string{"*"}}, rendezvous.Destination{Name: "d", Events: []string{"*"}},
		rendezvous.Destination{Name: "e", Events: []string{"*"}})
	f := h.Fix(t)
	r := f.Start()
	h.Advance(time.Second)
	r.Follows("own")
	before := must(f.ListPush(ctx, r.ID))(t, "list")
	got := must(f.DuePushIn(ctx, now, 2, rendezvous.PushCaller))(t, "list what is due")
	eq(t, "rows", pushNames(got.Pushes), []string{r.ID + "/own"})
	eq(t, "unserved", got.Unserved, 5)
	c := h.Pusher(t).Claim(2)
	eq(t, "claimed", claimed(c.Pushes), []string{f.Name() + "/" + r.ID + "/own"})
	eq(t, "unserved and saturated", []any{c.Unserved, c.UnservedCapped, c.Saturated}, []any{5, false, false})
	for _, p := range before {
		if p.Namespace == rendezvous.PushOperator {
			r.Unchanged("after a caller's worker", &p)
		}
	}
}

func pushNamespacesApart(t *testing.T, h *Harness) {
	h.Destinations(t, rendezvous.Destination{Name: "audit", Events: []string{"*"}})
	f := h.Fix(t)
	r := f.Start()
	r.Follows("own")
	operator := h.Pusher(t)
	operator.Namespace = rendezvous.PushOperator
	got := operator.Claim(0)
	eq(t, "an operator's worker", claimed(got.Pushes), []string{f.Name() + "/" + r.ID + "/operator:audit"})
	eq(t, "unserved", got.Unserved, 1)
	own := h.Pusher(t).Claim(0)
	eq(t, "a caller's worker", claimed(own.Pushes), []string{f.Name() + "/" + r.ID + "/own"})
	eq(t, "unserved", own.Unserved, 0) // the operator's is leased
	for _, wrong := range []rendezvous.PushNamespace{"", "both"} {
		c := operator.ask(0)
		c.Namespace = wrong
		_, err := h.Store.ClaimPushes(ctx, c)
		code(t, "no namespace", err, rendezvous.CodeInvalid, "field", "namespace")
		_, err = f.DuePushIn(ctx, now, 0, wrong)
		code(t, "no namespace", err, rendezvous.CodeInvalid, "field", "namespace")
	}
}

func pushDueOrder(t *testing.T, h *Harness) {
	two := h.Two(t)
	rnd := rand.New(rand.NewPCG(seedOf(t), 21))
	runIDs := []string{"a", "B", "é", "z", "ä", "日本", "a-b", "a b", "aa"}
	hooks := []string{"x", "Y", "ß", "10", "9", "é"}
	T := h.In(t, time.Minute)
	var want []store.Push
	for _, f := range two {
		for _, i := range rnd.Perm(len(runIDs)) {
			r := f.StartAs(store.Start{WorkflowID: ID("workflow"), RunID: runIDs[i], Type: "order"})
			for _, k := range rnd.Perm(len(hooks)) {
				r.Follows(hooks[k])
				at := T
				if rnd.IntN(3) == 0 {
					at = T.Add(-time.Duration(rnd.IntN(3)) * time.Second)
				}
				r.Retries(hooks[k], 0, at)
				want = append(want, *r.Push(hooks[k]))
			}
		}
	}
	slices.SortFunc(want, func(a, b store.Push) int {
		if c := a.NextAttemptAt.Compare(b.NextAttemptAt); c != 0 {
			return c
		}
		return byBytes(a, b)
	})
	for _, f := range two {
		own := slices.DeleteFunc(slices.Clone(want), func(p store.Push) bool { return p.Tenant != f.Name() })
		eq(t, "due of "+f.Name(), f.Due(T), pushNames(own))
	}
	h.Advance(time.Minute + time.Second)
	c := h.Pusher(t).ask(store.MaxPushClaim)
	c.PerGate = store.MaxPushClaim
	var all []string
	for _, p := range want {
		all = append(all, p.Tenant+"/"+p.RunID+"/"+p.ID)
	}
	eq(t, "claimed", claimed(h.Pusher(t).Ask(c).Pushes), all)
}

func pushLateNames(t *testing.T, h *Harness) {
	f := h.Fix(t)
	early, late := f.StartAs(store.Start{RunID: "a", Type: "order"}), f.StartAs(store.Start{RunID: "z", Type: "order"})
	for i := range 6 {
		early.Follows(fmt.Sprint("a", i))
	}
	late.Follows("z")
	w := h.Pusher(t)
	served := 0
	for turn := range 8 {
		h.Advance(time.Second)
		for _, c := range w.Claim(2).Pushes {
			if c.ID == "z" {
				served++
			}
			w.Settle(settling(c, store.PushRelease)) // due now, behind whoever waited longer
		}
		if served == 0 && turn >= 4 {
			t.Fatalf("after %d turns of 2 the late name among 7 was not served", turn+1)
		}
	}
}

func pushParkedNotDue(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Parks("a")
	live := r.Follows("b")
	for _, at := range []time.Time{now, h.Now(t), h.In(t, 365*24*time.Hour), endOfTime} {
		eq(t, "due", f.Due(at), []string{r.ID + "/b"})
		eq(t, "due of the namespace", pushNames(must(f.DuePushIn(ctx, at, 0, rendezvous.PushCaller))(t, "list").Pushes), []string{r.ID + "/b"})
	}
	h.Advance(time.Hour)
	eq(t, "claimed", claimed(h.Pusher(t).ClaimOf(r)), []string{f.Name() + "/" + r.ID + "/b"})
	p := r.Push("a")
	eq(t, "parked", []any{p.State, p.Reason, p.Error, p.ParkedAt.IsZero(), p.Cursor},
		[]any{rendezvous.PushParked, rendezvous.ParkByOperator, "parked for operator", false, at(1, 0)})
	eq(t, "listed", f.parkedPushes(store.PushParkedFilter{}, 0), []store.Push{*p})
	_ = live
}

func pushParkedPaged(t *testing.T, h *Harness) {
	f := h.Fix(t)
	var parked []string
	park := func(n int) []string {
		var made []string
		for range n {
			r := f.StartAs(store.Start{RunID: ID("é"), Type: "order"})
			for _, id := range []string{"b", "a"} {
				r.Parks(id)
				made = append(made, r.ID+"/"+id)
			}
		}
		return made
	}
	parked = park(5)
	var got []string
	for cursor := ""; ; {
		page := must(f.ParkedPushes(ctx, store.PushParkedFilter{}, 3, cursor))(t, "list parked")
		got = append(got, pushNames(page.Pushes)...)
		if cursor = page.NextCursor; cursor == "" {
			break
		}
		park(1) // what parks meanwhile may be listed or not
	}
	if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Fatalf("not in the order of bytes, or twice: %v", got)
	}
	for _, p := range parked {
		if !slices.Contains(got, p) {
			t.Fatalf("%s was parked before and is not listed: %v", p, got)
		}
	}
	_, err := f.ParkedPushes(ctx, store.PushParkedFilter{}, 0, "nothing")
	code(t, "no cursor", err, rendezvous.CodeInvalid, "field", "cursor")
}

func pushParkedFiltered(t *testing.T, h *Harness) {
	f := h.Fix(t)
	gates := map[string]string{}
	want := map[rendezvous.ParkReason][]string{}
	for _, reason := range rendezvous.ParkReasons {
		for range 2 {
			r := f.Start()
			gates[r.ID+"/a"] = r.Follows("a").Gate
			r.Stop("a", reason)
			want[reason] = append(want[reason], r.ID+"/a")
		}
	}
	for _, reason := range rendezvous.ParkReasons {
		slices.Sort(want[reason])
		eq(t, "parked for "+string(reason), pushNames(f.parkedPushes(store.PushParkedFilter{Reason: reason}, 1)), want[reason])
		one := want[reason][0]
		eq(t, "of a gate", pushNames(f.parkedPushes(store.PushParkedFilter{Gate: gates[one]}, 0)), []string{one})
		eq(t, "of both", pushNames(f.parkedPushes(store.PushParkedFilter{Gate: gates[one], Reason: reason}, 0)), []string{one})
	}
	eq(t, "of another gate's reason",
		pushNames(f.parkedPushes(store.PushParkedFilter{Gate: gates[want[rendezvous.ParkGone][0]], Reason: rendezvous.ParkFault}, 0)), nil)
	_, err := f.ParkedPushes(ctx, store.PushParkedFilter{Reason: "tired"}, 0, "")
	code(t, "no reason", err, rendezvous.CodeInvalid, "field", "reason")
}

func pushIdleNotDue(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Rests("a")
	eq(t, "due", f.Due(endOfTime), nil)
	h.Advance(time.Hour)
	got := h.Pusher(t).Claim(0)
	eq(t, "claimed", []any{len(got.Pushes), got.Saturated, got.NextDue.IsZero(), got.Unserved}, []any{0, false, true, 0})
	eq(t, "parked", len(f.parkedPushes(store.PushParkedFilter{}, 0)), 0)
}

func pushDueReadsOnly(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	row := r.Follows("a")
	h.Counting.Reset()
	for range 2 {
		eq(t, "due", f.Due(now), []string{r.ID + "/a"})
		must(f.DuePushIn(ctx, now, 0, rendezvous.PushCaller))(t, "list what is due")
		must(f.ParkedPushes(ctx, store.PushParkedFilter{}, 0, ""))(t, "list parked")
		must(f.PushAttempts(ctx, r.PushKey("a"), 0, 0))(t, "read the log")
		_, _, err := h.Store.DuePushRuns(ctx, h.Now(t), 0)
		done(t, "list runs that are due", err)
	}
	eq(t, "writes", h.Counting.Counts().Writes, int64(0))
	r.Unchanged("after reads", row)
}

func pushReadLimits(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Follows("a")
	for name, read := range map[string]func(limit int) error{
		"DuePush":      func(n int) error { _, err := f.DuePush(ctx, now, n); return err },
		"DuePushIn":    func(n int) error { _, err := f.DuePushIn(ctx, now, n, rendezvous.PushCaller); return err },
		"ParkedPushes": func(n int) error { _, err := f.ParkedPushes(ctx, store.PushParkedFilter{}, n, ""); return err },
		"PushAttempts": func(n int) error { _, err := f.PushAttempts(ctx, r.PushKey("a"), n, 0); return err },
		"UnparkPushes": func(n int) error { _, err := f.UnparkPushes(ctx, store.UnparkPushes{Limit: n}); return err },
		"ClaimPushes": func(n int) error {
			_, err := h.Store.ClaimPushes(ctx, h.Pusher(t).ask(n))
			return err
		},
	} {
		code(t, name+" with a negative limit", read(-1), rendezvous.CodeInvalid, "field", "limit")
		code(t, name+" with a limit too large", read(1001), rendezvous.CodeTooLarge, "field", "limit")
		done(t, name+" with the greatest", read(1000))
	}
	_, err := f.DuePush(ctx, time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), 0)
	code(t, "no instant", err, rendezvous.CodeInvalid, "field", "at")
}
