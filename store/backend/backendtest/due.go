package backendtest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

var dueCases = []backendCase{
	{"due parked waits: only those that can be worked now, in order", dueParked},
	{"a page of parked waits is fair by tenant and says when more was due", dueParkedFair},
	{"due marks: only of free runs that go on, in order", dueWoken},
	{"a page of marks is fair by tenant and says when more was due", dueWokenFair},
	{"unmet events: live, in time, untaken, both sides settled", unmetEvents},
	{"a targeted event is unmet by its run's waits of its type", unmetTargeted},
	{"unmet events come in pages until all were seen", unmetPages},
	{"abandoned runs by expiry, page by page", abandoned},
	{"leases that ran out, fair by tenant, and a walk over those that stay", dueLeases},
	{"what is due in some shards, alone and in a page's places", dueOfShards},
	{"depths count what is live, up to the most that was asked", depths},
}

func (x *bench) due(limit int) ([]string, bool) {
	x.Helper()
	var names []string
	var more bool
	x.update(func(tx backend.Tx) {
		rows, m, err := tx.DueParked(ctx, nil, limit)
		if err != nil {
			x.Fatal(err)
		}
		names, more = effectsOf(rows), m
	})
	return names, more
}

// dueParked parks one wait for each reason to leave it out, and two that are due.
func dueParked(x *bench) {
	w := x.flow(acme, "1")
	for _, name := range []string{"later", "stuck", "taken", "taken and settled", "due second", "due first"} {
		x.parked(w, name)
	}
	x.opened(w, "open")
	driven, ended := x.flow(acme, "2"), x.flow(acme, "3")
	x.parked(driven, "driven")
	x.parked(ended, "ended")
	x.lease(driven, time.Minute)
	ended.Status, ended.ClosedAt = rendezvous.StatusCompleted, x.now()
	x.apply(&backend.Changes{Workflows: []*backend.Workflow{ended}}, ended.Key())

	now := x.now()
	change := func(name string, fn func(w *backend.Wait)) {
		x.Helper()
		row := x.reread(&backend.Wait{Tenant: acme, RunID: "r1", Effect: name})
		fn(row)
		x.apply(&backend.Changes{Waits: []*backend.Wait{row}})
	}
	change("later", func(w *backend.Wait) { w.NextAttemptAt = now.Add(10*time.Second + time.Microsecond) })
	change("stuck", func(w *backend.Wait) { w.QuarantinedAt = now })
	change("taken", func(w *backend.Wait) { w.Take, w.TakeUntil = 1, now.Add(time.Minute) })
	change("taken and settled", func(w *backend.Wait) {
		w.Take, w.TakeUntil, w.TakeSettled, w.NextAttemptAt = 2, now.Add(time.Minute), true, now.Add(10*time.Second)
	})
	change("due first", func(w *backend.Wait) { w.NextAttemptAt = now.Add(time.Second) })
	change("due second", func(w *backend.Wait) { w.NextAttemptAt = now.Add(time.Second) })

	names, more := x.due(10)
	eq(x, "due before their time", names, nil)
	eq(x, "more", more, false)
	x.advance(10 * time.Second)
	names, more = x.due(10)
	eq(x, "due", names, []string{"due second", "due first", "taken and settled"}) // equal instants: the lower number
	eq(x, "more", more, false)
	names, more = x.due(2)
	eq(x, "page", names, []string{"due second", "due first"})
	eq(x, "more", more, true)
	x.advance(time.Minute)
	names, _ = x.due(10)
	eq(x, "due once takes and leases ran out", names, []string{"due second", "due first", "taken", "driven", "taken and settled", "later"})
}

func dueParkedFair(x *bench) {
	many, one := x.flow(acme, "1"), x.flow(globex, "1")
	for i := range 8 {
		x.parked(many, fmt.Sprint("many", i))
	}
	x.advance(time.Second)
	x.parked(one, "one")
	x.parked(one, "two")
	x.advance(time.Minute)
	names, more := x.due(4)
	eq(x, "page", names, []string{"many0", "many1", "one", "two"})
	eq(x, "more", more, true)
	names, more = x.due(6)
	eq(x, "larger page", names, []string{"many0", "many1", "many2", "many3", "one", "two"})
	eq(x, "more", more, true)
	names, more = x.due(10)
	eq(x, "whole page", len(names), 10)
	eq(x, "more", more, false)
	names, _ = x.due(1)
	eq(x, "one place", names, []string{"many0"})
}

func (x *bench) dueMarks(limit int) ([]string, bool) {
	x.Helper()
	var names []string
	var more bool
	x.update(func(tx backend.Tx) {
		rows, m, err := tx.DueWoken(ctx, nil, limit)
		if err != nil {
			x.Fatal(err)
		}
		for _, r := range rows {
			names = append(names, r.Tenant+"/"+r.WorkflowID)
		}
		more = m
	})
	return names, more
}

func dueWoken(x *bench) {
	at := x.now()
	woken := func(id string, next time.Time, change func(w *backend.Workflow)) *backend.Workflow {
		x.Helper()
		w := x.flow(acme, id)
		x.apply(&backend.Changes{Woken: []*backend.Woken{newMark(w, rendezvous.CauseAnswered, 1, at, next)}}, w.Key())
		if change != nil {
			change(w)
			x.apply(&backend.Changes{Workflows: []*backend.Workflow{w}}, w.Key())
		}
		return w
	}
	woken("second", at.Add(time.Second), nil)
	woken("first", at, nil)
	woken("later", at.Add(time.Hour), nil)
	paused := woken("paused", at, func(w *backend.Workflow) { w.Status = rendezvous.StatusPaused })
	woken("ended", at, func(w *backend.Workflow) { w.Status, w.ClosedAt = rendezvous.StatusFailed, at })
	woken("driven", at, func(w *backend.Workflow) {
		w.LeaseOwner, w.LeaseEpoch, w.LeaseExpires, w.AcquireID = "pod", 1, at.Add(time.Minute), "a"
	})
	woken("abandoned", at, func(w *backend.Workflow) {
		w.LeaseOwner, w.LeaseEpoch, w.LeaseExpires, w.AcquireID = "pod", 1, at.Add(time.Second), "a"
	})
	x.advance(2 * time.Second)
	names, more := x.dueMarks(10)
	eq(x, "due", names, []string{"acme/wabandoned", "acme/wfirst", "acme/wsecond"})
	eq(x, "more", more, false)

	paused.Status = rendezvous.StatusRunning
	x.apply(&backend.Changes{Workflows: []*backend.Workflow{paused}}, paused.Key())
	names, _ = x.dueMarks(10)
	eq(x, "due after the pause", names, []string{"acme/wabandoned", "acme/wfirst", "acme/wpaused", "acme/wsecond"})
}

func dueWokenFair(x *bench) {
	at := x.now()
	for i := range 6 {
		w := x.flow(acme, fmt.Sprint(i))
		x.apply(&backend.Changes{Woken: []*backend.Woken{newMark(w, rendezvous.CauseAnswered, 1, at, at)}}, w.Key())
	}
	w := x.flow(globex, "1")
	x.apply(&backend.Changes{Woken: []*backend.Woken{newMark(w, rendezvous.CauseAnswered, 1, at, at.Add(time.Second))}}, w.Key())
	x.advance(time.Minute)
	names, more := x.dueMarks(3)
	eq(x, "page", names, []string{"acme/w0", "acme/w1", "globex/w1"})
	eq(x, "more", more, true)
}

// unmet are the ids of one page of unmet events that were settled by then.
func (x *bench) unmet(before time.Time, after int64, limit int) (ids []string, next int64) {
	x.Helper()
	x.update(func(tx backend.Tx) {
		rows, n, err := tx.UnmetEvents(ctx, before, after, limit)
		if err != nil {
			x.Fatal(err)
		}
		ids, next = idsOf(rows), n
	})
	return ids, next
}

func unmetEvents(x *bench) {
	w := x.flow(acme, "1")
	start := x.now()
	x.opened(w, "a", key("a"))
	x.parked(w, "parked")
	x.stored(acme, "met", key("b"), key("a"))
	x.stored(acme, "on a parked wait's key", key("parked"))
	x.stored(acme, "alone", key("c"))
	x.stored(globex, "elsewhere", key("a"))
	other := x.event(acme, "of another type", key("a"))
	other.Type = "shipped"
	expired := x.event(acme, "expired", key("a"))
	expired.ExpiresAt = start.Add(time.Second)
	taken := x.event(acme, "taken", key("a"))
	taken.Take, taken.TakeUntil, taken.TakeOpen = 1, start.Add(time.Minute), true
	dead := x.event(acme, "dead", key("a"))
	dead.State, dead.DeadReason, dead.DeadAt = rendezvous.EventDead, rendezvous.DeadUnclaimed, start
	x.apply(&backend.Changes{NewEvents: []*backend.Event{other, expired, taken, dead}})
	x.advance(2 * time.Second)
	x.stored(acme, "young", key("a"))
	x.opened(w, "young wait", key("c"))

	ids, next := x.unmet(start, 0, 10)
	eq(x, "unmet", ids, []string{"met"})
	eq(x, "next", next, int64(0))
	ids, _ = x.unmet(start.Add(-time.Microsecond), 0, 10)
	eq(x, "unmet a moment earlier", ids, nil)
	ids, _ = x.unmet(x.now(), 0, 10)
	eq(x, "unmet by now", ids, []string{"met", "alone", "young"})
	x.advance(time.Minute)
	ids, _ = x.unmet(start, 0, 10)
	eq(x, "unmet once the take ran out", ids, []string{"met", "taken"})
}

func unmetTargeted(x *bench) {
	w := x.flow(acme, "1")
	e := x.event(acme, "kept", key("1"))
	e.Target = "r1"
	stranger := x.event(acme, "for another run", key("1"))
	stranger.Target = "r2"
	x.apply(&backend.Changes{NewEvents: []*backend.Event{e, stranger}})
	other := x.wait(w, "other")
	other.Type = "shipped"
	x.apply(&backend.Changes{NewWaits: []*backend.Wait{other}}, w.Key())
	ids, _ := x.unmet(x.now(), 0, 10)
	eq(x, "unmet without a wait of its type", ids, nil)
	x.opened(w, "wait")
	ids, _ = x.unmet(x.now(), 0, 10)
	eq(x, "unmet", ids, []string{"kept"})
}

func unmetPages(x *bench) {
	ours, theirs := x.flow(acme, "1"), x.flow(globex, "1")
	x.opened(ours, "wait", key("1"))
	x.opened(theirs, "wait", key("1"))
	var want []string
	for i := range 9 {
		want = append(want, x.stored(acme, fmt.Sprint("ours", i), key("1")).ID)
	}
	want = append(want, x.stored(globex, "theirs", key("1")).ID)
	first, _ := x.unmet(x.now(), 0, 4)
	if !slices.Contains(first, "theirs") {
		x.Fatalf("first page %v leaves the other tenant out", first)
	}
	seen := map[string]bool{}
	after := int64(0)
	for range 20 {
		ids, next := x.unmet(x.now(), after, 4)
		for _, id := range ids {
			seen[id] = true
			x.hold(id)
		}
		if next == 0 {
			break
		}
		if next < after {
			x.Fatalf("the page after %d leads back to %d", after, next)
		}
		after = next
	}
	for _, id := range want {
		if !seen[id] {
			x.Errorf("%s was on no page", id)
		}
	}
}

// hold takes an event, as TakeUnmet does.
func (x *bench) hold(id string) {
	x.Helper()
	tenant := acme
	if id == "theirs" {
		tenant = globex
	}
	e := x.read(&backend.Event{Tenant: tenant, Source: "shop", ID: id})
	e.Take, e.TakeUntil, e.TakeOpen = 1, x.now().Add(time.Hour), true
	x.apply(&backend.Changes{Events: []*backend.Event{e}})
}

func abandoned(x *bench) {
	for i, ttl := range []time.Duration{3, 2, 1, 9} {
		x.lease(x.flow(acme, fmt.Sprint(i)), ttl*time.Second)
	}
	x.lease(x.flow(globex, "2"), time.Second)
	x.flow(acme, "never leased")
	released := x.flow(acme, "released")
	x.lease(released, time.Second)
	released.LeaseOwner, released.LeaseEnded, released.LeaseExpires = "", rendezvous.LeaseReleased, time.Time{}
	x.apply(&backend.Changes{Workflows: []*backend.Workflow{released}}, released.Key())

	page := func(after backend.AbandonedPosition, limit int) []*backend.Workflow {
		x.Helper()
		var rows []*backend.Workflow
		x.view(func(r backend.Reader) { rows = got(r.Abandoned(ctx, nil, after, limit))(x) })
		return rows
	}
	names := func(rows []*backend.Workflow) []string {
		var all []string
		for _, w := range rows {
			all = append(all, w.Tenant+"/"+w.ID)
		}
		return all
	}
	eq(x, "nothing expired yet", names(page(backend.AbandonedPosition{}, 10)), nil)
	x.advance(3 * time.Second)
	want := []string{"acme/w2", "globex/w2", "acme/w1", "acme/w0"} // an expiry that is now counts
	rows := page(backend.AbandonedPosition{}, 10)
	eq(x, "abandoned", names(rows), want)
	var walked []string
	after := backend.AbandonedPosition{}
	for len(walked) < 9 {
		rows := page(after, 1)
		if len(rows) == 0 {
			break
		}
		walked = append(walked, names(rows)...)
		after = backend.AbandonedPosition{Set: true, Expires: rows[0].LeaseExpires, Key: rows[0].Key()}
	}
	eq(x, "abandoned, one by one", walked, want)
}

func depths(x *bench) {
	x.view(func(r backend.Reader) { eq(x, "depths of nothing", got(r.Depths(ctx, 10))(x), backend.Depths{}) })
	start := x.now()
	w := x.flow(acme, "1")
	x.stored(acme, "first", key("1"))
	x.advance(time.Second)
	x.stored(globex, "second")
	x.letter(acme, "lost", rendezvous.DeadUnclaimed)
	x.letter(globex, "lost", rendezvous.DeadUnclaimed)
	x.letter(acme, "secret", rendezvous.DeadErased)
	x.purged(x.letter(acme, "purged", rendezvous.DeadExpired))
	x.opened(w, "open", key("9"))
	parkedSince := x.now()
	x.parked(w, "parked")
	stuck, _ := x.parked(w, "stuck")
	stuck.QuarantinedAt = x.now()
	x.apply(&backend.Changes{Waits: []*backend.Wait{stuck}, Woken: []*backend.Woken{newMark(w, rendezvous.CauseAnswered, 1, start, start)}}, w.Key())
	x.view(func(r backend.Reader) {
		eq(x, "depths", got(r.Depths(ctx, 10))(x), backend.Depths{
			LiveEvents: 2, OpenWaits: 1, ParkedWaits: 1, QuarantinedWaits: 1, Woken: 1,
			OldestLiveEvent: start, OldestParked: parkedSince, OldestWoken: start,
			Dead: map[rendezvous.DeadReason]int{rendezvous.DeadUnclaimed: 2, rendezvous.DeadErased: 1},
		})
		eq(x, "dead up to 1", got(r.Depths(ctx, 1))(x).Dead, map[rendezvous.DeadReason]int{rendezvous.DeadUnclaimed: 1, rendezvous.DeadErased: 1})
		eq(x, "depths up to 1", got(r.Depths(ctx, 1))(x).LiveEvents, 1)
	})
}

// dueLeases are the rows of a walk whose rows all stay: each page has each tenant's share of what is behind its position, and what got no place is behind the next.
func dueLeases(x *bench) {
	start := x.now()
	lease := func(tenant, id string, at time.Duration) {
		w := x.flow(tenant, id)
		w.LeaseOwner, w.LeaseEpoch, w.LeaseExpires, w.AcquireID = "pod", 1, start.Add(at*time.Second), "acquire"
		x.apply(&backend.Changes{Workflows: []*backend.Workflow{w}}, w.Key())
	}
	for i := range 6 {
		lease(acme, fmt.Sprint(i), time.Duration(i/2)) // two at an instant
	}
	lease(globex, "a", 1)
	lease(globex, "b", 2)
	lease("third", "c", 2)
	lease("third", "live", 60)
	x.flow(acme, "never leased")
	x.advance(10 * time.Second)
	page := func(after backend.AbandonedPosition, limit int) (names []string, next backend.AbandonedPosition) {
		x.Helper()
		x.view(func(r backend.Reader) {
			rows, n := got2(r.DueLeases(ctx, nil, after, limit))(x)
			for _, w := range rows {
				names = append(names, w.Tenant+"/"+w.ID)
			}
			next = n
		})
		return names, next
	}
	all := []string{"acme/w0", "acme/w1", "acme/w2", "acme/w3", "globex/wa", "acme/w4", "acme/w5", "globex/wb", "third/wc"}
	for limit, want := range map[int][]string{
		1: {"acme/w0"},
		2: {"acme/w0", "globex/wa"},
		3: {"acme/w0", "globex/wa", "third/wc"},
		5: {"acme/w0", "acme/w1", "acme/w2", "globex/wa", "third/wc"},
		6: {"acme/w0", "acme/w1", "globex/wa", "acme/w2", "globex/wb", "third/wc"},
		9: all,
	} {
		names, next := page(backend.AbandonedPosition{}, limit)
		slices.SortFunc(want, func(a, b string) int { return cmp.Compare(slices.Index(all, a), slices.Index(all, b)) })
		eq(x, fmt.Sprint("page of ", limit, ", and more"), []any{names, next.Set}, []any{want, limit < 9})
		met, pages := map[string]bool{}, 0
		for after, first := (backend.AbandonedPosition{}), true; first || after.Set; first = false {
			names, after = page(after, limit)
			for _, n := range names {
				met[n] = true
			}
			if pages++; pages > 9 {
				x.Fatalf("the walk by %d does not end", limit)
			}
		}
		eq(x, fmt.Sprint("met by ", limit), slices.Sorted(maps.Keys(met)), slices.Sorted(slices.Values(all)))
	}
}

// dueOfShards has something due in three shards, of two tenants. The first shard's is due the longest, so that places given before it is left out would be lost.
func dueOfShards(x *bench) {
	var flows []*backend.Workflow
	for shard := range 3 {
		for _, tenant := range []string{acme, globex} {
			w := x.shardFlow(tenant, fmt.Sprint(shard), shard, rendezvous.StatusRunning)
			x.parked(w, fmt.Sprint(tenant, shard))
			x.apply(&backend.Changes{Woken: []*backend.Woken{newMark(w, rendezvous.CauseAnswered, 1, x.now(), x.now())}}, w.Key())
			flows = append(flows, w)
			x.advance(time.Second)
		}
	}
	x.advance(time.Minute)
	list := func(shards []int, limit int) (found []string) {
		x.Helper()
		x.update(func(tx backend.Tx) {
			parked, more, err := tx.DueParked(ctx, shards, limit)
			if err != nil {
				x.Fatal(err)
			}
			marks, moreMarks, err := tx.DueWoken(ctx, shards, limit)
			if err != nil {
				x.Fatal(err)
			}
			found = append(found, fmt.Sprint(effectsOf(parked), more))
			var ids []string
			for _, m := range marks {
				ids = append(ids, m.Tenant+m.WorkflowID[1:])
			}
			found = append(found, fmt.Sprint(ids, moreMarks))
		})
		return found
	}
	both := func(s string) []string { return []string{s, s} }
	eq(x, "due in all", list(nil, 10), both("[acme0 globex0 acme1 globex1 acme2 globex2] false"))
	eq(x, "due in two", list([]int{2, 1}, 10), both("[acme1 globex1 acme2 globex2] false"))
	eq(x, "a place each", list([]int{1, 2}, 2), both("[acme1 globex1] true"))
	eq(x, "one place", list([]int{2}, 1), both("[acme2] true"))
	eq(x, "just enough places", list([]int{2}, 2), both("[acme2 globex2] false"))
	eq(x, "due in a shard without any", list([]int{3}, 10), both("[] false"))
	eq(x, "due in none", list([]int{}, 10), both("[] false"))

	for _, w := range flows {
		x.lease(w, time.Second)
	}
	x.advance(time.Second)
	leases := func(shards []int, limit int) (found []string) {
		x.Helper()
		x.view(func(r backend.Reader) {
			var all []string
			for _, w := range got(r.Abandoned(ctx, shards, backend.AbandonedPosition{}, limit))(x) {
				all = append(all, w.Tenant+w.ID[1:])
			}
			found = append(found, fmt.Sprint(all))
			rows, next, err := r.DueLeases(ctx, shards, backend.AbandonedPosition{}, limit)
			if err != nil {
				x.Fatal(err)
			}
			all = nil
			for _, w := range rows {
				all = append(all, w.Tenant+w.ID[1:])
			}
			found = append(found, fmt.Sprint(all, next.Set))
		})
		return found
	}
	all := func(text, more string) []string { return []string{text, text + " " + more} }
	eq(x, "abandoned in two", strings.Count(leases([]int{2, 1}, 10)[1], " "), 4)
	eq(x, "abandoned in one", leases([]int{1}, 10), all("[acme1 globex1]", "false"))
	eq(x, "abandoned in one, a place", leases([]int{2}, 1), all("[acme2]", "true"))
	eq(x, "abandoned in a shard without any", leases([]int{3}, 10), all("[]", "false"))
	eq(x, "abandoned in none", leases([]int{}, 10), all("[]", "false"))
	eq(x, "abandoned in all", strings.Count(leases(nil, 10)[1], " "), 6)
}
