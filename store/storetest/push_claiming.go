package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// pushClaiming is push.md section 3: Claim and Renew.
var pushClaiming = []Case{
	{Name: "PU-28 two claimers get disjoint rows", Run: pushDisjoint},
	{Name: "PU-28 many workers at one due row: one gets it", Run: pushOneHolder},
	{Name: "PU-28 claimers at once share out all that is due, each row once", Run: pushClaimsAtOnce},
	{Name: "PU-28 a claim repeated with its request answers the same rows and tokens", Run: pushClaimAgain},
	{Name: "PU-28 PU-26 a claim whose answer was lost is not lost", Run: pushClaimLost},
	{Name: "PU-29 a claimed row is not due until its lease ends; then with a greater token, lost 1, attempts unchanged", Run: pushLeaseEnds},
	{Name: "PU-29 leases lost in a row park at the limit; any settlement begins anew", Run: pushWorkerLost},
	{Name: "PU-29 tokens rise store-wide, also across Delete and Put", Run: pushTokensRise},
	{Name: "PU-30 a stale token is fenced and changes nothing, but its acceptance is a fact", Run: pushStaleToken},
	{Name: "PU-30 a token of an incarnation before is not found", Run: pushFormerToken},
	{Name: "PU-31 Renew extends, never shortens, and revives a lapsed lease that nobody took", Run: pushRenews},
	{Name: "PU-31 Renew of many tokens answers in their order", Run: pushRenewsMany},
	{Name: "PU-35 a claim takes at most per_gate rows of a gate", Run: pushPerGate},
	{Name: "PU-57 a claim takes no more of a gate than there is room for, and goes on behind it", Run: pushRoom},
	{Name: "PU-35 a tenant of few is served beside one of many", Run: pushFairly},
	{Name: "PU-35 every tenant gets its share, the rest go to the longest due", Run: pushShares},
	{Name: "PU-36 saturated exactly when more was due; next_due is the earliest instant ahead", Run: pushSaturated},
	{Name: "PU-36 only names runs, and makes no row early", Run: pushOnly},
	{Name: "PU-21 at an instant of the caller's the rows due then are claimed", Run: pushClaimAt},
	{Name: "limits of claims and renewals are refused by name", Run: pushClaimLimits},
}

// many makes n due registrations of a tenant, each of its own run.
func (f *Fix) manyPushes(n int) []*Flow {
	f.T.Helper()
	var runs []*Flow
	for range n {
		r := f.Start()
		r.Follows("a")
		runs = append(runs, r)
	}
	return runs
}

func pushDisjoint(t *testing.T, h *Harness) {
	f := h.Fix(t)
	f.manyPushes(7)
	before := h.Now(t)
	one, two := h.Pusher(t).Claim(4), h.Pusher(t).Claim(4)
	eq(t, "claimed", []int{len(one.Pushes), len(two.Pushes)}, []int{4, 3})
	seen := map[string]bool{}
	for _, c := range slices.Concat(one.Pushes, two.Pushes) {
		if name := c.RunID + "/" + c.ID; seen[name] {
			t.Fatalf("%s was handed out twice", name)
		} else {
			seen[name] = true
		}
		if c.Token <= 0 || c.ExpiresAt.Before(before.Add(pushLease)) {
			t.Fatalf("token %d until %s", c.Token, c.ExpiresAt)
		}
		row := must(f.GetPush(ctx, c.Key()))(t, "get")
		eq(t, "the row as claimed", *row, c.Push)
		eq(t, "lease", row.LeaseUntil, c.ExpiresAt)
	}
	if one.Now.Before(before) || one.Now.After(h.Now(t)) {
		t.Fatalf("now is %s", one.Now)
	}
}

func pushOneHolder(t *testing.T, h *Harness) {
	r := h.Fix(t).Start()
	r.Follows("a")
	for range h.Rounds(t) {
		var got [5]store.ClaimedPushes
		var errs [5]error
		var fns []func()
		for i := range got {
			c := h.Pusher(t).ask(0)
			if i%2 == 0 {
				c.Only = []store.PushRun{{Tenant: r.F.Name(), RunID: r.ID}}
			}
			fns = append(fns, func() { got[i], errs[i] = h.Store.ClaimPushes(ctx, c) })
		}
		Race(t, fns...)
		var all []store.ClaimedPush
		for i := range got {
			done(t, "claim", errs[i])
			all = append(all, got[i].Pushes...)
		}
		eq(t, "holders", len(all), 1)
		h.Pusher(t).Settle(settling(all[0], store.PushRelease))
		h.Advance(time.Microsecond)
	}
}

func pushClaimsAtOnce(t *testing.T, h *Harness) {
	two := h.Two(t)
	for _, f := range two {
		f.manyPushes(10)
	}
	for range max(h.Rounds(t)/4, 2) {
		var mine [4][]store.ClaimedPush
		var errs [4]error
		var fns []func()
		for i := range mine {
			w := h.Pusher(t)
			fns = append(fns, func() {
				for range 20 { // rows that others have in hand are passed over
					got, err := h.Store.ClaimPushes(ctx, w.ask(3))
					if err != nil {
						errs[i] = err
						return
					}
					mine[i] = append(mine[i], got.Pushes...)
				}
			})
		}
		Race(t, fns...)
		for _, err := range errs {
			done(t, "claim", err)
		}
		all := slices.Concat(mine[:]...)
		names, seen := claimed(all), tokens(all)
		slices.Sort(names)
		slices.Sort(seen)
		eq(t, "rows", []int{len(names), len(slices.Compact(names)), len(slices.Compact(seen))}, []int{20, 20, 20})
		items := make([]store.PushSettlement, len(all))
		for i, c := range all {
			items[i] = settling(c, store.PushRelease)
		}
		for _, out := range h.Pusher(t).SettleAll(items...) {
			done(t, "release", out.Err)
		}
		h.Advance(time.Millisecond)
	}
}

func pushClaimAgain(t *testing.T, h *Harness) {
	f := h.Fix(t)
	f.manyPushes(6)
	w := h.Pusher(t)
	c := w.ask(4)
	first := w.Ask(c)
	eq(t, "claimed", len(first.Pushes), 4)
	h.Advance(time.Second)
	again := w.Ask(c)
	eq(t, "rows and tokens", [][]string{claimed(again.Pushes)}, [][]string{claimed(first.Pushes)})
	eq(t, "tokens", tokens(again.Pushes), tokens(first.Pushes))
	for i, p := range again.Pushes {
		eq(t, "expiry", p.ExpiresAt, first.Pushes[i].ExpiresAt)
	}
	w.Settle(settling(first.Pushes[0], store.PushRetry))
	r := &Flow{F: f, ID: first.Pushes[1].RunID}
	done(t, "park", f.ParkPush(ctx, store.ParkPush{PushKey: r.PushKey("a"), Reason: rendezvous.ParkByOperator}))
	r = &Flow{F: f, ID: first.Pushes[3].RunID}
	r.Puts(r.Hook("a")) // it is live, and the token is revoked
	again = w.Ask(c)
	eq(t, "those still held", tokens(again.Pushes), []int64{first.Pushes[2].Token})
	stranger := h.Pusher(t).ask(3)
	stranger.Request = c.Request
	other := h.Pusher(t).Ask(stranger)
	for _, p := range other.Pushes {
		if slices.Contains(tokens(first.Pushes), p.Token) {
			t.Fatalf("token %d was handed to two owners", p.Token)
		}
	}
	next := w.Claim(3)
	for _, p := range next.Pushes {
		if slices.Contains(tokens(first.Pushes), p.Token) {
			t.Fatalf("token %d was handed out by two requests", p.Token)
		}
	}
}

func pushClaimLost(t *testing.T, h *Harness) {
	f := h.Fix(t)
	f.manyPushes(3)
	w := h.Pusher(t)
	c := w.ask(2)
	lost := h.Faults.Arm(fault.Failure{Point: fault.AfterCommit})
	_, err := h.Store.ClaimPushes(ctx, c)
	code(t, "claim", err, rendezvous.CodeCommitUnknown)
	eq(t, "answers lost", lost.Struck(), 1)
	got := w.Ask(c)
	eq(t, "claimed", len(got.Pushes), 2)
	eq(t, "the rest, by another", len(h.Pusher(t).Claim(0).Pushes), 1)
	for _, p := range got.Pushes {
		eq(t, "lease", w.Renew(p.Token).State, store.PushLeaseHeld)
	}
}

func pushLeaseEnds(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Follows("a")
	r.Retries("a", 0, h.Now(t))
	h.Advance(time.Second)
	w := h.Pusher(t)
	first := w.Take(r)
	for _, ahead := range []time.Time{now, h.Now(t)} {
		eq(t, "due", f.Due(ahead), nil)
	}
	eq(t, "claimed", len(h.Pusher(t).ClaimOf(r)), 0)
	h.Advance(pushLeaseEnd)
	r.WantDue("after the lease", "a", now, true)
	ask := h.Pusher(t).ask(0)
	got := h.Pusher(t).Ask(ask)
	eq(t, "lost", []int{got.Lost, len(got.Parked), len(got.Pushes)}, []int{1, 0, 1})
	next := got.Pushes[0]
	if next.Token <= first.Token {
		t.Fatalf("token %d after %d", next.Token, first.Token)
	}
	eq(t, "the row", []any{next.Lost, next.Attempts, next.Cursor}, []any{1, 1, at(1, 0)})
	log := r.Log("a")
	if len(log) != 1 || !log[0].Unknown || log[0].Class != rendezvous.ClassOwn {
		t.Fatalf("a lost worker is logged as %+v, want one unknown attempt", log)
	}
	eq(t, "the former holder", w.Renew(first.Token).State, store.PushLeaseFenced)
}

func pushWorkerLost(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Follows("a")
	lose := func(n, want int) {
		t.Helper()
		for i := range n {
			got := h.Pusher(t).Claim(0)
			eq(t, "claimed", len(got.Pushes), 1)
			eq(t, "lost so far", got.Pushes[0].Lost, want+i)
			h.Advance(pushLeaseEnd)
		}
	}
	lose(5, 0) // the fifth lease runs out
	got := h.Pusher(t).Claim(0)
	eq(t, "handed out", []int{len(got.Pushes), got.Lost}, []int{0, 1})
	eq(t, "parked", got.Parked, []store.PushItem{{Tenant: f.Name(), PushKey: r.PushKey("a")}})
	p := r.WantCursor("a", 1, 0)
	eq(t, "the row", []any{p.State, p.Reason, p.Attempts}, []any{rendezvous.PushParked, rendezvous.ParkWorkerLost, 0})
	must(f.UnparkPush(ctx, r.PushKey("a"), now, ""))(t, "unpark")
	lose(1, r.Push("a").Lost)
	c := h.Pusher(t).Take(r)
	h.Pusher(t).Settle(settling(c, store.PushRelease))
	eq(t, "lost after a settlement", r.Push("a").Lost, 0)
	h.Advance(time.Second)
	ask := h.Pusher(t).ask(0)
	ask.LostLimit = 2
	eq(t, "claimed", len(h.Pusher(t).Ask(ask).Pushes), 1)
	h.Advance(pushLeaseEnd)
	ask.Request = ID("request")
	eq(t, "claimed", len(h.Pusher(t).Ask(ask).Pushes), 1)
	h.Advance(pushLeaseEnd)
	ask.Request = ID("request")
	eq(t, "parked at a lower limit", len(h.Pusher(t).Ask(ask).Parked), 1)
}

func pushTokensRise(t *testing.T, h *Harness) {
	two := h.Two(t)
	last := int64(0)
	for range 4 {
		for _, f := range two {
			r := f.Start()
			for range 2 {
				r.Follows("a")
				c := h.Pusher(t).Take(r)
				if c.Token <= last {
					t.Fatalf("token %d after %d", c.Token, last)
				}
				last = c.Token
				h.Pusher(t).Settle(settling(c, store.PushRelease))
				must(f.DeletePush(ctx, r.PushKey("a")))(t, "delete")
			}
		}
	}
}

func pushStaleToken(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"))
	r.Follows("a")
	w := h.Pusher(t)
	stale := w.Take(r)
	h.Advance(pushLeaseEnd)
	r.Retries("a", 0, h.Now(t))
	h.Advance(time.Second)
	holder := h.Pusher(t).Take(r)
	before := r.Push("a")
	eq(t, "attempts of the new holder's row", before.Attempts, 1)
	fenced := func() {
		t.Helper()
		code(t, "retry", f.RetryPush(ctx, r.PushKey("a"), stale.Token, h.In(t, time.Hour), "late"), rendezvous.CodeFenced)
		code(t, "park", f.ParkPush(ctx, store.ParkPush{PushKey: r.PushKey("a"), Token: stale.Token, Reason: rendezvous.ParkGone}), rendezvous.CodeFenced)
		eq(t, "renew", w.Renew(stale.Token).State, store.PushLeaseFenced)
		for _, do := range []store.PushSettle{store.PushRelease, store.PushRetry, store.PushPark} {
			out := w.SettleAll(settling(stale, do))[0]
			code(t, "settle "+string(do), out.Err, rendezvous.CodeFenced)
			eq(t, "state", out.State, store.PushLeaseFenced)
		}
		eq(t, "settle keep", w.Settle(settling(stale, store.PushKeep)).State, store.PushLeaseFenced) // as Advance: no error
		r.Unchanged("after a stale token", before)
	}
	fenced()
	eq(t, "advance", r.Advances("a", stale.Token, 2), store.PushAdvanced{Cursor: at(2, 0), Owned: false})
	want := *before
	want.Cursor = at(2, 0)
	r.Unchanged("after an acceptance of a stale token", &want)
	before = &want
	fenced()
	for _, never := range []int64{holder.Token + 1000} {
		code(t, "a token that was never given", f.RetryPush(ctx, r.PushKey("a"), never, h.Now(t), "x"), rendezvous.CodeFenced)
		eq(t, "renew", w.Renew(never).State, store.PushLeaseFenced)
	}
	eq(t, "the holder", h.Pusher(t).Renew(holder.Token).State, store.PushLeaseHeld)
}

func pushFormerToken(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.AppendFree(r.Noted("n"))
	r.Follows("a")
	w := h.Pusher(t)
	former := w.Take(r)
	must(f.DeletePush(ctx, r.PushKey("a")))(t, "delete")
	r.Follows("a")
	before := r.Push("a")
	_, err := f.AdvancePush(ctx, r.PushKey("a"), former.Token, at(3, 0))
	code(t, "advance", err, rendezvous.CodeNotFound)
	after := r.Push("a")
	after.LeaseUntil, before.LeaseUntil = time.Time{}, time.Time{} // it may be handed in by this
	eq(t, "the row after a former token", after, before)
	out := w.SettleAll(resting(former, 2))[0]
	if out.Err == nil {
		t.Fatal("a settlement of the deleted registration went well")
	}
	p := r.WantCursor("a", 1, 0)
	eq(t, "the row", []any{p.State, p.Attempts, p.Lost}, []any{rendezvous.PushLive, 0, 0})
}

func pushRenews(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.Follows("a")
	w := h.Pusher(t)
	c := w.Take(r)
	h.Advance(10 * time.Second)
	before := h.Now(t)
	got := w.Renew(c.Token)
	eq(t, "state", got.State, store.PushLeaseHeld)
	if got.ExpiresAt.Before(before.Add(pushLease)) || got.ExpiresAt.After(h.Now(t).Add(pushLease)) {
		t.Fatalf("renewed at %s until %s", before, got.ExpiresAt)
	}
	eq(t, "the row", r.Push("a").LeaseUntil, got.ExpiresAt)
	short := must(h.Store.RenewPushes(ctx, []int64{c.Token}, time.Second))(t, "renew")[0]
	eq(t, "a shorter one", short, got)
	h.Advance(pushLease - 5*time.Second)
	eq(t, "claimed under a renewed lease", len(h.Pusher(t).ClaimOf(r)), 0)
	h.Advance(pushLease)
	eq(t, "lapsed, and nobody took it", w.Renew(c.Token).State, store.PushLeaseHeld)
	eq(t, "claimed", len(h.Pusher(t).ClaimOf(r)), 0)
	eq(t, "lost", r.Push("a").Lost, 0)
	h.Advance(pushLeaseEnd)
	h.Pusher(t).Take(r)
	eq(t, "taken over", w.Renew(c.Token).State, store.PushLeaseFenced)
	must(f.DeletePush(ctx, r.PushKey("a")))(t, "delete")
}

func pushRenewsMany(t *testing.T, h *Harness) {
	f := h.Fix(t)
	f.manyPushes(4)
	w := h.Pusher(t)
	got := w.Claim(0).Pushes
	w.Settle(settling(got[1], store.PushRetry))
	must(f.DeletePush(ctx, got[2].Key()))(t, "delete")
	ask := []int64{got[3].Token, got[2].Token, got[1].Token, got[0].Token, got[3].Token, got[3].Token + 1000}
	var states []store.PushLeaseState
	for i, l := range must(h.Store.RenewPushes(ctx, ask, pushLease))(t, "renew") {
		eq(t, "token", l.Token, ask[i])
		states = append(states, l.State)
	}
	held, fenced := store.PushLeaseHeld, store.PushLeaseFenced
	eq(t, "states", states, []store.PushLeaseState{held, store.PushLeaseRevoked, fenced, held, held, fenced})
	eq(t, "nothing to renew", len(must(h.Store.RenewPushes(ctx, nil, pushLease))(t, "renew nothing")), 0)
}

func pushPerGate(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for range 20 {
		r := f.Start()
		p := r.Hook("a")
		p.URL, p.NextSeq = "https://one.example.org/"+r.ID, 1
		r.Puts(p)
	}
	h.Advance(time.Second)
	other := f.Start()
	other.Follows("a")
	w := h.Pusher(t)
	first := w.Claim(15)
	eq(t, "claimed", []any{len(first.Pushes), first.Saturated}, []any{9, true})
	eq(t, "the other gate's, though it is due last", first.Pushes[8].RunID, other.ID)
	c := w.ask(15)
	c.PerGate = 3
	second := w.Ask(c)
	eq(t, "claimed of three", []any{len(second.Pushes), second.Saturated}, []any{3, true})
	third := w.Claim(0)
	eq(t, "claimed again", []any{len(third.Pushes), third.Saturated}, []any{8, true})
	last := w.Claim(0)
	eq(t, "the last", []any{len(last.Pushes), last.Saturated}, []any{1, false})
}

func pushRoom(t *testing.T, h *Harness) {
	f := h.Fix(t)
	to := func(host string, n int) {
		for range n {
			r := f.Start()
			p := r.Hook("a")
			p.URL, p.NextSeq = "https://"+host+"/"+r.ID, 1
			r.Puts(p)
		}
		h.Advance(time.Second)
	}
	to("full.example.org", 150) // more than a claim goes over before it asks gate by gate
	to("narrow.example.org", 5)
	to("wide.example.org", 5)
	w := h.Pusher(t)
	c := w.ask(20)
	c.Room = map[string]int{"https://full.example.org:443": 0, "https://narrow.example.org:443": 2, "https://other.example.org:443": 1}
	got := w.Ask(c)
	count := map[string]int{}
	for _, p := range got.Pushes {
		count[p.Gate]++
	}
	eq(t, "claimed", count, map[string]int{"https://narrow.example.org:443": 2, "https://wide.example.org:443": 5})
	eq(t, "saturated", got.Saturated, true)
	c = w.ask(20)
	c.Room = map[string]int{"https://full.example.org:443": 100}
	eq(t, "no more than per_gate", len(w.Ask(c).Pushes), 8+3)
}

func pushFairly(t *testing.T, h *Harness) {
	two := h.Two(t)
	const many, few, limit = 120, 10, 40
	two[0].manyPushes(many)
	h.Advance(time.Second)
	two[1].manyPushes(few)
	got := h.Pusher(t).Claim(limit)
	count := map[string]int{}
	for _, c := range got.Pushes {
		count[c.Tenant]++
	}
	eq(t, "places", count, map[string]int{two[0].Name(): limit - few, two[1].Name(): few})
	eq(t, "saturated", got.Saturated, true)
}

func pushShares(t *testing.T, h *Harness) {
	var tenants []*Fix
	for i, n := range []int{9, 1, 4, 9} { // due in this order
		f := h.FixOf(t, fmt.Sprint("tenant-", i))
		f.manyPushes(n)
		tenants = append(tenants, f)
		h.Advance(time.Second)
	}
	for _, c := range []struct {
		limit int
		want  []int
	}{{4, []int{1, 1, 1, 1}}, {12, []int{5, 0, 3, 4}}, {100, []int{3, 0, 0, 4}}} {
		// Of 12: a share is ⌊12/3⌋ = 4 of each that has as many, and what is left goes to the longest due.
		var got []int
		all := h.Pusher(t).Claim(c.limit).Pushes
		for _, f := range tenants {
			n := 0
			for _, p := range all {
				if p.Tenant == f.Name() {
					n++
				}
			}
			got = append(got, n)
		}
		eq(t, fmt.Sprint("places of ", c.limit), got, c.want)
	}
	for i := range 5 { // more tenants than places: the longest due
		h.FixOf(t, fmt.Sprint("small-", i)).manyPushes(1)
		h.Advance(time.Second)
	}
	eq(t, "places of 2", len(h.Pusher(t).Claim(2).Pushes), 2)
}

func pushSaturated(t *testing.T, h *Harness) {
	f := h.Fix(t)
	runs := f.manyPushes(5)
	soon, later := h.In(t, 10*time.Second), h.In(t, 20*time.Second)
	runs[3].Retries("a", 0, later)
	runs[4].Retries("a", 0, soon)
	w := h.Pusher(t)
	got := w.Claim(2)
	eq(t, "of three that are due, two", []any{len(got.Pushes), got.Saturated}, []any{2, true})
	got = w.Claim(1)
	eq(t, "the last", []any{len(got.Pushes), got.Saturated, got.NextDue}, []any{1, false, soon})
	got = w.Claim(0)
	eq(t, "none", []any{len(got.Pushes), got.Saturated}, []any{0, false})
	h.Advance(10 * time.Second)
	got = w.Claim(0)
	eq(t, "at the instant", []any{len(got.Pushes), got.Saturated}, []any{1, false})
	for _, r := range runs {
		must(f.DeletePush(ctx, r.PushKey("a")))(t, "delete")
	}
	got = w.Claim(0)
	eq(t, "nothing left", []any{len(got.Pushes), got.Saturated, got.NextDue.IsZero()}, []any{0, false, true})
}

func pushOnly(t *testing.T, h *Harness) {
	two := h.Two(t)
	s := store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order"}
	var runs []*Flow
	for _, f := range two {
		r := f.StartAs(s)
		r.Follows("a")
		r.Follows("b")
		r.Follows("early")
		r.Retries("early", 0, h.In(t, time.Hour))
		r.Rests("idle")
		r.Parks("parked")
		runs = append(runs, r)
	}
	other := two[0].Start()
	other.Follows("a")
	w := h.Pusher(t)
	eq(t, "claimed", claimed(w.ClaimOf(runs[0])), []string{two[0].Name() + "/" + s.RunID + "/a", two[0].Name() + "/" + s.RunID + "/b"})
	eq(t, "again", len(w.ClaimOf(runs[0])), 0)
	c := w.ask(1)
	c.Only = []store.PushRun{{Tenant: two[1].Name(), RunID: s.RunID}, {Tenant: two[1].Name(), RunID: "unknown"}}
	got := w.Ask(c)
	eq(t, "with a limit", []any{len(got.Pushes), got.Saturated, got.Unserved, got.NextDue.IsZero()}, []any{1, true, 0, true})
	c.Request = ID("request")
	got = w.Ask(c)
	eq(t, "the rest", []any{len(got.Pushes), got.Saturated}, []any{1, false})
	c.Request, c.Only = ID("request"), []store.PushRun{}
	eq(t, "of no run", len(w.Ask(c).Pushes), 0)
	got = w.Claim(0)
	eq(t, "the next", got.NextDue.IsZero(), false)
	eq(t, "all others", claimed(got.Pushes), []string{two[0].Name() + "/" + other.ID + "/a"})
}

func pushClaimAt(t *testing.T, h *Harness) {
	f := h.Fix(t)
	runs := f.manyPushes(2)
	T := h.In(t, time.Hour)
	runs[1].Retries("a", 0, T)
	w := h.Pusher(t)
	c := w.ask(0)
	c.At = T.Add(-2 * time.Hour)
	eq(t, "before all", len(w.Ask(c).Pushes), 0)
	c = w.ask(0)
	c.At = T
	got := w.Ask(c)
	eq(t, "at the later instant", len(got.Pushes), 2)
	if got.Now.After(T.Add(-time.Minute)) {
		t.Fatalf("the store's now is %s", got.Now)
	}
	for _, p := range got.Pushes {
		if p.ExpiresAt.After(h.Now(t).Add(pushLease)) {
			t.Fatalf("a lease until %s: it is by the store's clock", p.ExpiresAt)
		}
	}
}

func pushClaimLimits(t *testing.T, h *Harness) {
	w := h.Pusher(t)
	for field, set := range map[string]func(*store.ClaimPush){
		"owner": func(c *store.ClaimPush) { c.Owner = "" }, "request": func(c *store.ClaimPush) { c.Request = "" },
		"lease": func(c *store.ClaimPush) { c.Lease = time.Millisecond }, "per_gate": func(c *store.ClaimPush) { c.PerGate = -1 },
		"room": func(c *store.ClaimPush) {
			c.Room = map[string]int{}
			for i := range 1001 {
				c.Room[fmt.Sprint(i)] = i
			}
		},
		"lost_limit": func(c *store.ClaimPush) { c.LostLimit = -1 }, "only": func(c *store.ClaimPush) { c.Only = make([]store.PushRun, 501) },
	} {
		c := w.ask(0)
		set(&c)
		_, err := h.Store.ClaimPushes(ctx, c)
		if got := rendezvous.CodeOf(err); got != rendezvous.CodeInvalid && got != rendezvous.CodeTooLarge {
			t.Errorf("%s: %v", field, err)
		}
		eq(t, "field", detail(err, "field"), any(field))
	}
	_, err := h.Store.RenewPushes(ctx, make([]int64, 1001), pushLease)
	code(t, "too many tokens", err, rendezvous.CodeTooLarge, "field", "tokens")
	_, err = h.Store.RenewPushes(ctx, []int64{1}, store.MaxPushLease+1)
	code(t, "too long", err, rendezvous.CodeInvalid, "field", "lease")
	_, err = h.Store.RenewPushes(ctx, []int64{1}, time.Millisecond)
	code(t, "too short", err, rendezvous.CodeInvalid, "field", "lease")
}
