package storetest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// pushStorm is verbs of several callers and workers on few registrations at once.
type pushStorm struct {
	t      testing.TB
	h      *Harness
	flows  []*Flow
	mu     sync.Mutex
	given  map[int64]store.PushItem // every token, once
	odd    []string
	before map[store.PushItem]store.Push
}

func pushesAtOnce(t *testing.T, h *Harness) {
	seed := seedOf(t)
	t.Logf("RDV_SEED=%d", seed)
	for round := range 1 + h.Rounds(t)/10 {
		rnd := rand.New(rand.NewPCG(seed, uint64(2000+round)))
		s := &pushStorm{t: t, h: h, given: map[int64]store.PushItem{}}
		for _, f := range h.Two(t) {
			s.flows = append(s.flows, f.Start(), f.Start())
		}
		last := int64(0)
		for range 15 {
			s.before = s.all()
			var movers []func()
			known := len(s.given)
			for range 4 {
				own := rand.New(rand.NewPCG(rnd.Uint64(), rnd.Uint64()))
				w := h.Pusher(t)
				movers = append(movers, func() {
					for range 4 {
						s.move(own, w)
					}
				})
			}
			Race(t, movers...)
			for _, o := range s.odd {
				t.Errorf("%s", o)
			}
			if t.Failed() {
				return
			}
			last = s.sound(last, known)
			h.Advance(time.Duration(rnd.IntN(30_000)) * time.Millisecond)
		}
		s.end()
	}
}

// all are all rows.
func (s *pushStorm) all() map[store.PushItem]store.Push {
	s.t.Helper()
	rows := map[store.PushItem]store.Push{}
	for _, r := range s.flows {
		for _, p := range must(r.F.ListPush(ctx, r.ID))(s.t, "list") {
			rows[store.PushItem{Tenant: p.Tenant, PushKey: p.Key()}] = p
		}
	}
	return rows
}

// expect notes an error that no verb may give here.
func (s *pushStorm) expect(what string, err error, codes ...rendezvous.Code) {
	got := rendezvous.CodeOf(err)
	if err == nil {
		return
	}
	for _, c := range codes {
		if c == got {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.odd = append(s.odd, fmt.Sprintf("%s: %v", what, err))
}

// move plays one verb.
func (s *pushStorm) move(rnd *rand.Rand, w *Pusher) {
	r := pick(rnd, s.flows...)
	f, key := r.F, r.PushKey(pick(rnd, "a", "b"))
	switch rnd.IntN(12) {
	case 0, 1:
		err := r.appendAny()
		s.expect("append", err, rendezvous.CodeSealed)
		if rendezvous.CodeOf(err) == rendezvous.CodeSealed {
			_, err := f.ReopenRun(ctx, r.reopening(), now)
			s.expect("reopen", err, rendezvous.CodeConflict)
		}
	case 2:
		p := r.Hook(key.ID)
		p.NextSeq = int64(rnd.IntN(2))
		_, err := f.PutPush(ctx, p, now)
		s.expect("put", err)
	case 3:
		_, err := f.DeletePush(ctx, key)
		s.expect("delete", err)
	case 4:
		s.expect("park", f.ParkPush(ctx, store.ParkPush{PushKey: key, Reason: rendezvous.ParkByOperator}), rendezvous.CodeNotFound)
	case 5:
		_, err := f.UnparkPush(ctx, key, now, "")
		s.expect("unpark", err)
	case 6:
		_, err := f.AdvancePush(ctx, key, 0, at(1, rnd.IntN(3)))
		s.expect("advance", err, rendezvous.CodeNotFound)
	case 7:
		if rnd.IntN(4) == 0 {
			_, err := f.CancelRun(ctx, r.ID, nil, "", true, now)
			s.expect("cancel", err, rendezvous.CodeSealed)
		}
	default:
		s.work(rnd, w)
	}
}

// work claims some and settles them.
func (s *pushStorm) work(rnd *rand.Rand, w *Pusher) {
	c := w.ask(1 + rnd.IntN(3))
	c.LostLimit = 100
	got, err := s.h.Store.ClaimPushes(ctx, c)
	s.expect("claim", err)
	var items []store.PushSettlement
	for _, p := range got.Pushes {
		item := store.PushItem{Tenant: p.Tenant, PushKey: p.Key()}
		s.mu.Lock()
		if other, is := s.given[p.Token]; is {
			s.odd = append(s.odd, fmt.Sprintf("token %d of %v was given to %v", p.Token, item, other))
		}
		s.given[p.Token] = item
		s.mu.Unlock()
		page, err := s.h.tenantOf(p.Tenant).ReadHistoryFrom(ctx, p.WorkflowID, rendezvous.MaxSeq, 1)
		s.expect("head", err)
		switch rnd.IntN(5) {
		case 0:
			continue // a worker is lost
		case 1:
			items = append(items, settling(p, store.PushRetry))
		case 2:
			x := settling(p, store.PushComplete)
			x.Advance = ptr(at(page.Head+1, 0))
			items = append(items, x)
		default:
			items = append(items, resting(p, page.Head))
		}
	}
	out, err := s.h.Store.SettlePushes(ctx, items)
	s.expect("settle", err)
	for _, o := range out {
		s.expect("settled", o.Err, rendezvous.CodeFenced, rendezvous.CodeNotFound, rendezvous.CodeConflict)
	}
}

// tenantOf is a tenant's handle, for callers that may not fail the test.
func (h *Harness) tenantOf(name string) store.Tenant {
	t, err := h.Store.Tenant(name)
	if err != nil {
		panic(err)
	}
	return t
}

// sound fails the test unless cursors stand where they were or further, tokens rose, and each registration has one holder at most.
func (s *pushStorm) sound(last int64, known int) int64 {
	s.t.Helper()
	for _, r := range s.flows {
		r.awake("after a storm")
	}
	rows := s.all()
	for item, p := range rows {
		if was, is := s.before[item]; is && was.CreatedAt.Equal(p.CreatedAt) && p.Cursor.Compare(was.Cursor) < 0 {
			s.t.Fatalf("%v went back from %v to %v", item, was.Cursor, p.Cursor)
		}
	}
	byItem, greatest := map[store.PushItem][]int64{}, last
	fresh := 0
	for token, item := range s.given {
		byItem[item] = append(byItem[item], token)
		if token > last {
			fresh++
		}
		greatest = max(greatest, token)
	}
	eq(s.t, "tokens that are greater than all before", fresh, len(s.given)-known)
	for item, all := range byItem {
		if held := s.heldNow(all); held > 1 || held == 1 && rows[item].LeaseUntil.IsZero() {
			s.t.Fatalf("%v has %d holders, lease until %s", item, held, rows[item].LeaseUntil)
		}
	}
	return greatest
}

// heldNow is how many of tokens hold a lease.
func (s *pushStorm) heldNow(tokens []int64) int {
	s.t.Helper()
	n := 0
	for _, l := range must(s.h.Store.RenewPushes(ctx, tokens, store.MinPushLease))(s.t, "renew") {
		if l.State == store.PushLeaseHeld {
			n++
		}
	}
	return n
}

// end lets every lease run out: what is live is due and claimed, once, and what is parked is not.
func (s *pushStorm) end() {
	s.t.Helper()
	s.h.Advance(2 * time.Hour)
	want := map[string]bool{}
	for item, p := range s.all() {
		if p.State == rendezvous.PushLive {
			want[item.Tenant+"/"+item.RunID+"/"+item.ID] = true
		}
	}
	w := s.h.Pusher(s.t)
	c := w.ask(0)
	c.LostLimit = 1000
	got := w.Ask(c)
	eq(s.t, "claimed at the end", len(got.Pushes), len(want))
	for _, name := range claimed(got.Pushes) {
		if !want[name] {
			s.t.Fatalf("claimed %s, which is not live", name)
		}
	}
	for item := range s.all() {
		must(s.h.FixOf(s.t, item.Tenant).DeletePush(ctx, item.PushKey))(s.t, "delete")
	}
	s.h.Advance(pushLeaseEnd)
}
