package difftest

import (
	"fmt"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

var (
	hooks   = []string{"", "h1", "H1", "é", "h2"}
	urls    = []string{"https://a.example/x", "https://a.example/x", "https://b.example/y", "http://A.example"}
	parks   = []string{"gone", "operator", "exhausted", "expired"}
	classes = []string{"", "failed", "rejected", "accepted", "silent"}
)

var pushChoices = []choice{
	{5, func(d drawer) Step {
		f := d.flow()
		p := PutPush{Hook: Hook{f.tenant, f.run, one(d, hooks)}, URL: one(d, urls), Next: one(d, []int64{0, 0, 1, f.head, f.head + 1, f.head + 2})}
		if d.chance(3) {
			p.Token, p.Projection, p.Events = "t", one(d, []string{"", "a2a"}), one(d, [][]string{nil, {"*"}, {"run.completed"}, {"note", "wait.answered"}})
		}
		if d.chance(4) {
			p.Fields, p.IfVersion = some(d, 2, []string{"url", "token", "events"}), int64(d.rare(2))
		}
		return p
	}},
	{7, func(d drawer) Step {
		c := ClaimPushes{
			Limit: d.limit(), PerGate: d.n(0, 2), Namespace: one(d, []string{"caller", "caller", "operator"}), Owner: one(d, owners), Request: one(d, []string{"1", "2", "3", "4", "5", "6"}),
			Lease: one(d, []time.Duration{0, time.Second, time.Minute}),
		}
		if d.chance(4) {
			f := d.flow()
			c.Only = []Only{{f.tenant, f.run}}
		}
		return c
	}},
	{8, func(d drawer) Step { return SettlePushes{Items: list(d, 3, d.settlement)} }},
	{1, func(d drawer) Step {
		return RenewPushes{list(d, 3, func() int { _, n := d.leased(); return n }), one(d, []time.Duration{0, time.Second, time.Hour})}
	}},
	{2, func(d drawer) Step {
		h, n := d.leased()
		return AdvancePush{h, d.tokenOr0(n), int64(d.n(1, 6)), d.rare(6)}
	}},
	{2, func(d drawer) Step {
		h, n := d.leased()
		return RetryPush{h, d.tokenOr0(n), d.soon(), one(d, []string{"", "no\nanswer"})}
	}},
	{2, func(d drawer) Step { h, n := d.leased(); return ParkPush{h, d.tokenOr0(n), one(d, parks)} }},
	{2, func(d drawer) Step {
		h, _ := d.leased()
		return UnparkPush{h, d.soon(), one(d, []string{"", "op1", "op2"})}
	}},
	{1, func(d drawer) Step {
		return UnparkPushes{d.tenant(), one(d, []string{"", "operator"}), one(d, []time.Duration{0, time.Minute}), d.limit()}
	}},
	{2, func(d drawer) Step { h, _ := d.leased(); return SkipPush{h, int64(d.n(1, 4)), "kim"} }},
	{1, func(d drawer) Step { h, n := d.leased(); return CompletePush{h, d.tokenOr0(n), int64(d.n(1, 9))} }},
	{2, func(d drawer) Step { h, _ := d.leased(); return DeletePush{h} }},
	{1, func(d drawer) Step {
		h, _ := d.leased()
		return RotatePush{h, "", one(d, []string{"op1", "op2"}), one(d, []time.Duration{0, time.Minute, 8 * 24 * time.Hour})}
	}},
	{1, func(d drawer) Step { h, _ := d.leased(); return LogPush{h, one(d, []string{"e1", "e2", "e3"})} }},
	{2, func(d drawer) Step { return Upkeep{d.limit()} }},
	{2, func(d drawer) Step { return Pushes{d.tenant(), d.limit()} }},
}

// sent is a registration put, claimed and settled by its holder, in one of the ways that a turn ends.
func (d drawer) sent(f flow) burst {
	n := len(d.w.known.leases) + 1
	h := Hook{f.tenant, f.run, "h1"}
	end := d.settlement()
	end.Hook, end.Token, end.Head, end.Seq = h, n, f.head, f.head+1
	return burst{
		PutPush{Hook: h, URL: one(d, urls), Next: 1},
		ClaimPushes{Limit: 3, Namespace: "caller", Owner: "pod/1", Request: fmt.Sprint("b", n), Lease: time.Second, Only: []Only{{f.tenant, f.run}}},
		SettlePushes{Items: []Settlement{end}},
		Advance{one(d, []time.Duration{time.Second, time.Minute})},
	}
}

// soon is now, mostly, or a while ahead.
func (d drawer) soon() time.Duration {
	if d.chance(2) {
		return 0
	}
	return d.w.now + one(d, []time.Duration{time.Second, time.Minute, -time.Second})
}

// tokenOr0 is mostly the token, and sometimes none.
func (d drawer) tokenOr0(n int) int {
	if d.chance(3) {
		return 0
	}
	return n
}

// leased is mostly a registration that was leased, with the place of its token, or any there is.
func (d drawer) leased() (Hook, int) {
	all := d.w.known.leases
	if n := len(all); n > 0 && !d.chance(4) {
		place := max(1, n-d.n(0, min(n-1, 5)))
		return all[place-1], place
	}
	f := d.flow()
	id := one(d, hooks)
	if id == "" {
		id = rendezvous.DefaultRegistrationID(f.run)
	}
	return Hook{f.tenant, f.run, id}, 0
}

// settlement is one of a registration that was leased, mostly as its holder would make it.
func (d drawer) settlement() Settlement {
	h, n := d.leased()
	s := Settlement{
		Hook: h, Token: max(n, 1), Name: one(d, []string{"s1", "s2", "s3", "s4", "s5", "s6"}),
		Do:  string(one(d, []store.PushSettle{store.PushKeep, store.PushRelease, store.PushRelease, store.PushRetry, store.PushPark, store.PushComplete})),
		Err: one(d, []string{"", "no"}), Class: one(d, classes), At: d.soon(),
	}
	s.Why = string(one(d, []store.PushWhy{store.ReleaseRest, store.ReleaseRest, store.ReleasePage, store.ReleaseGate}))
	s.Reason = one(d, parks)
	flows := d.flows(h.Tenant)
	i := slices.IndexFunc(flows, func(f store.Workflow) bool { return d.w.role(f.RunID) == h.Run })
	if i < 0 || d.chance(6) {
		s.Head, s.Seq = int64(d.n(0, 5)), int64(d.n(0, 5))
		return s
	}
	s.Head = flows[i].Head
	if d.chance(3) {
		s.Seq = int64(d.n(1, int(s.Head)+1))
	} else {
		s.Seq = s.Head + 1
	}
	return s
}
