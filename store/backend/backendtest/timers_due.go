package backendtest

import (
	"fmt"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

var timerDueCases = []backendCase{
	{"due timers: at their instant, of the shards, in order", dueTimers},
	{"a page of timers is fair by tenant and says when more was due", dueTimersFair},
	{"a page of timers goes through many shards as through one", dueTimersOfShards},
	{"a page of timers that are due at once leaves none out, whichever shards they are of", dueTimersAtOnce},
	{"a held timer is not due until its hold ends, and what is behind it is", heldTimers},
	{"10,000 held timers in front hide no due one", heldInFront},
	{"a hold of an older epoch holds nothing", voidHolds},
	{"the next due instant of each shard", nextDue},
	{"timers are locked by key and by token, and only their hold is written", holdTimers},
	{"due timers are counted up to the most that was asked", timerDepths},
}

// dueNow is a page of due timers.
func (x *bench) dueNow(shards []int, limit int) ([]string, bool) {
	x.Helper()
	var names []string
	var more bool
	x.update(func(tx backend.Tx) {
		rows, m, err := tx.DueTimers(ctx, shards, limit)
		if err != nil {
			x.Fatal(err)
		}
		names, more = timersNamed(rows), m
	})
	return names, more
}

func dueTimers(x *bench) {
	w, other := x.flow(acme, "1"), x.flow(acme, "2")
	put := func(w *backend.Workflow, id string, shard int, d time.Duration) {
		t := x.timer(w, id, d)
		t.Shard = shard
		x.apply(&backend.Changes{Timers: []*backend.Timer{t}}, w.Key())
	}
	put(w, "b", 5, time.Second)
	put(w, "a", 5, time.Second)
	put(other, "a", 5, 0)
	put(other, "late", 5, time.Second+time.Microsecond)
	put(other, "elsewhere", 6, 0)
	x.advance(time.Second)
	names, more := x.dueNow([]int{5, 7, 5}, 10)
	eq(x, "due", names, []string{"acme/w2/a", "acme/w1/a", "acme/w1/b"})
	eq(x, "more", more, false)
	names, more = x.dueNow([]int{5}, 2)
	eq(x, "page", names, []string{"acme/w2/a", "acme/w1/a"})
	eq(x, "more", more, true)
	names, more = x.dueNow([]int{5}, 3)
	eq(x, "page that just holds them", len(names), 3)
	eq(x, "more", more, false)
	names, _ = x.dueNow(nil, 10)
	eq(x, "due in no shards", names, nil)
	names, _ = x.dueNow([]int{6, 5}, 10)
	eq(x, "due in both", names, []string{"acme/w2/a", "acme/w2/elsewhere", "acme/w1/a", "acme/w1/b"})
}

func dueTimersFair(x *bench) {
	many, one := x.flow(acme, "1"), x.flow(globex, "1")
	var rows []*backend.Timer
	for i := range 300 {
		t := x.timer(many, fmt.Sprintf("many%03d", i), 0)
		t.Shard = 0
		rows = append(rows, t)
	}
	for i, id := range []string{"one", "two"} {
		t := x.timer(one, id, time.Second+time.Duration(i)*time.Microsecond)
		t.Shard = 0
		rows = append(rows, t)
	}
	x.apply(&backend.Changes{Timers: rows}, many.Key(), one.Key())
	x.advance(time.Minute)
	names, more := x.dueNow([]int{0}, 4)
	eq(x, "page", names, []string{"acme/w1/many000", "acme/w1/many001", "globex/w1/one", "globex/w1/two"})
	eq(x, "more", more, true)
	names, more = x.dueNow([]int{0}, 7)
	eq(x, "larger page", names[3:], []string{"acme/w1/many003", "acme/w1/many004", "globex/w1/one", "globex/w1/two"})
	eq(x, "more", more, true)
	names, more = x.dueNow([]int{0}, 1)
	eq(x, "one place", names, []string{"acme/w1/many000"})
	eq(x, "more", more, true)
	names, more = x.dueNow([]int{0}, 302)
	eq(x, "whole page", len(names), 302)
	eq(x, "more", more, false)
	names, more = x.dueNow([]int{0}, 301)
	eq(x, "all but one", len(names), 301)
	eq(x, "more", more, true)
}

func dueTimersOfShards(x *bench) {
	w, start := x.flow(acme, "1"), x.now()
	var rows []*backend.Timer
	want, shards := []string{}, []int{}
	for i := range 400 { // most of them in one shard, which has the first and the last
		t := x.timer(w, fmt.Sprintf("t%03d", i), time.Duration(i)*time.Microsecond)
		if t.Shard = 9; i%4 == 1 {
			t.Shard = i % 7
		}
		rows, want = append(rows, t), append(want, "acme/w1/"+t.TimerID)
	}
	for s := range 16 {
		shards = append(shards, s)
	}
	x.apply(&backend.Changes{Timers: rows}, w.Key())
	x.advance(time.Second)
	for _, limit := range []int{1, 10, 399} {
		names, more := x.dueNow(shards, limit)
		eq(x, fmt.Sprintf("page of %d", limit), names, want[:limit])
		eq(x, "more", more, true)
	}
	names, more := x.dueNow(shards, 400)
	eq(x, "all", names, want)
	eq(x, "more", more, false)
	x.view(func(r backend.Reader) {
		next := got(r.NextDue(ctx, shards))(x)
		eq(x, "next due of the full shard", next[9], start)
		eq(x, "shards with timers", len(next), 8)
	})
}

func dueTimersAtOnce(x *bench) {
	for _, tenant := range []string{acme, globex} {
		w := x.flow(tenant, "1")
		var rows []*backend.Timer
		for i := range 6 { // the lower the id, the higher the shard
			t := x.timer(w, fmt.Sprintf("t%d", i), 0)
			t.Shard = 6 - i
			rows = append(rows, t)
		}
		x.apply(&backend.Changes{Timers: rows}, w.Key())
		if tenant == acme { // of globex only two are due
			continue
		}
		for _, t := range rows[2:] {
			t.DueAt = t.DueAt.Add(time.Hour)
			t.ReadyAt = t.DueAt
		}
		x.apply(&backend.Changes{Timers: rows[2:]}, w.Key())
	}
	shards := []int{1, 2, 3, 4, 5, 6}
	want := []string{"acme/w1/t0", "acme/w1/t1", "acme/w1/t2", "acme/w1/t3", "acme/w1/t4", "acme/w1/t5", "globex/w1/t0", "globex/w1/t1"}
	for limit := 2; limit <= 8; limit += 2 { // each tenant's share first, then what globex leaves
		names, more := x.dueNow(shards, limit)
		ours := max(limit/2, limit-2)
		eq(x, fmt.Sprintf("page of %d", limit), names, append(slices.Clone(want[:ours]), want[6:6+limit-ours]...))
		eq(x, "more", more, limit < 8)
	}
}

func heldTimers(x *bench) {
	w, start := x.flow(acme, "1"), x.now()
	front, free := x.timer(w, "front", 0), x.timer(w, "free", time.Second)
	held(front, 1, 1, start.Add(10*time.Second))
	x.apply(&backend.Changes{Timers: []*backend.Timer{front, free}, NewShardLeases: []*backend.ShardLease{x.shardLease(w.Shard, "pod/1", 1)}}, w.Key())
	x.advance(5 * time.Second)
	names, more := x.dueNow([]int{w.Shard}, 1)
	eq(x, "due", names, []string{"acme/w1/free"})
	eq(x, "more", more, false)
	x.advance(5 * time.Second)
	names, _ = x.dueNow([]int{w.Shard}, 9)
	eq(x, "due once the hold ended", names, []string{"acme/w1/front", "acme/w1/free"})
}

func heldInFront(x *bench) {
	w, start := x.flow(acme, "1"), x.now()
	var rows []*backend.Timer
	for i := range 10_000 {
		rows = append(rows, held(x.timerAt(w, fmt.Sprint("held", i), start), int64(i+1), 1, start.Add(time.Minute)))
	}
	rows = append(rows, x.timer(w, "free", time.Second))
	x.apply(&backend.Changes{Timers: rows, NewShardLeases: []*backend.ShardLease{x.shardLease(w.Shard, "pod/1", 1)}}, w.Key())
	x.advance(2 * time.Second)
	names, more := x.dueNow([]int{w.Shard}, 1)
	eq(x, "due", names, []string{"acme/w1/free"})
	eq(x, "more", more, false)
	x.view(func(r backend.Reader) {
		eq(x, "next due", got(r.NextDue(ctx, []int{w.Shard}))(x), map[int]time.Time{w.Shard: start.Add(time.Second)})
	})
}

func voidHolds(x *bench) {
	w, start := x.flow(acme, "1"), x.now()
	until := start.Add(time.Hour)
	older, old, valid, ahead := x.timer(w, "older", time.Second), x.timer(w, "old", 0), x.timer(w, "valid", 0), x.timer(w, "ahead", time.Minute)
	held(older, 1, 1, until)
	held(old, 2, 2, until)
	held(valid, 3, 3, until)
	held(ahead, 4, 1, until)
	lapsed := held(x.timer(w, "lapsed", 0), 5, 1, start.Add(time.Microsecond))
	free := x.timer(w, "free", 2*time.Second)
	foreign := held(x.timer(x.flow(globex, "1"), "foreign", 0), 6, 2, until)
	foreign.Shard = w.Shard
	lease := x.shardLease(w.Shard, "pod/2", 3)
	sweep := x.shardLease(w.Shard, "pod/2", 9)
	sweep.Pool = "sweep" // its epochs are nothing to timers
	x.apply(&backend.Changes{
		Timers: []*backend.Timer{older, old, valid, ahead, lapsed, free, foreign}, NewShardLeases: []*backend.ShardLease{lease, sweep},
	}, w.Key(), flowKey(globex, "w1"))
	x.advance(2 * time.Second)
	names, more := x.dueNow([]int{w.Shard}, 10)
	eq(x, "due", names, []string{"acme/w1/lapsed", "acme/w1/old", "globex/w1/foreign", "acme/w1/older", "acme/w1/free"})
	eq(x, "more", more, false)
	names, more = x.dueNow([]int{w.Shard}, 2)
	eq(x, "page", names, []string{"acme/w1/old", "globex/w1/foreign"})
	eq(x, "more", more, true)
	next := func() time.Time {
		x.Helper()
		var at map[int]time.Time
		x.view(func(r backend.Reader) { at = got(r.NextDue(ctx, []int{w.Shard}))(x) })
		return at[w.Shard]
	}
	eq(x, "next due", next(), start)
	x.apply(&backend.Changes{GoneTimers: []backend.TimerKey{old.Key(), older.Key(), free.Key(), lapsed.Key(), foreign.Key()}}, w.Key(), flowKey(globex, "w1"))
	eq(x, "next due: the end of a void hold is nothing", next(), ahead.DueAt)
	names, _ = x.dueNow([]int{w.Shard}, 10)
	eq(x, "due before its instant, void hold or not", names, nil)
}

func nextDue(x *bench) {
	w, start := x.flow(acme, "1"), x.now()
	put := func(id string, shard int, d time.Duration, change func(t *backend.Timer)) {
		t := x.timer(w, id, d)
		if t.Shard = shard; change != nil {
			change(t)
		}
		x.apply(&backend.Changes{Timers: []*backend.Timer{t}}, w.Key())
	}
	put("a", 1, time.Hour, nil)
	put("b", 1, time.Minute, nil)
	put("c", 2, 0, func(t *backend.Timer) { held(t, 1, 1, start.Add(time.Second)) })
	put("d", 3, 0, func(t *backend.Timer) { t.DueAt, t.ReadyAt = start.Add(5*time.Second), start.Add(5*time.Second) })
	put("e", 4, -time.Hour, nil)
	put("f", 5, 0, nil)
	x.view(func(r backend.Reader) {
		eq(x, "next due", got(r.NextDue(ctx, []int{4, 3, 2, 1, 0, 4}))(x), map[int]time.Time{
			1: start.Add(time.Minute), 2: start.Add(time.Second), 3: start.Add(5 * time.Second), 4: start.Add(-time.Hour),
		})
		eq(x, "next due of no shards", len(got(r.NextDue(ctx, nil))(x)), 0)
	})
}

func holdTimers(x *bench) {
	w, start := x.flow(acme, "1"), x.now()
	a, b, c := x.armed(w, "a", 0), x.armed(w, "b", 0), x.armed(w, "c", 0)
	x.update(func(tx backend.Tx) {
		rows := got(tx.LockTimers(ctx, []backend.TimerKey{b.Key(), a.Key(), {Tenant: globex, WorkflowID: "w1", TimerID: "a"}, a.Key()}))(x)
		eq(x, "locked", rows, map[backend.TimerKey]*backend.Timer{a.Key(): a, b.Key(): b})
		for i, k := range []backend.TimerKey{a.Key(), b.Key()} {
			held(rows[k], int64(40+i), 6, start.Add(time.Minute))
			rows[k].LastError, rows[k].ArmedSeq = "not written", 99
		}
		if err := tx.Apply(ctx, &backend.Changes{HeldTimers: []*backend.Timer{rows[a.Key()], rows[b.Key()]}}); err != nil {
			x.Fatal(err)
		}
	})
	held(a, 40, 6, start.Add(time.Minute))
	held(b, 41, 6, start.Add(time.Minute))
	eq(x, "held", x.timerRow(a.Key()), a)
	names, _ := x.dueNow([]int{w.Shard}, 10)
	eq(x, "due", names, []string{"acme/w1/c"})
	x.update(func(tx backend.Tx) {
		rows := got(tx.HeldTimers(ctx, []int64{41, 77, 40, 41}))(x)
		slices.SortFunc(rows, func(a, b *backend.Timer) int { return a.Key().Compare(b.Key()) })
		eq(x, "held by their tokens", rows, []*backend.Timer{a, b})
		rows[0].Token, rows[0].Holder, rows[0].HoldEpoch, rows[0].HeldUntil, rows[0].ReadyAt = 0, "", 0, time.Time{}, rows[0].DueAt
		if err := tx.Apply(ctx, &backend.Changes{HeldTimers: rows[:1]}); err != nil {
			x.Fatal(err)
		}
	})
	names, _ = x.dueNow([]int{w.Shard}, 10)
	eq(x, "due once released", names, []string{"acme/w1/a", "acme/w1/c"})
	again := x.armed(w, "b", 0)
	eq(x, "armed again, without its hold", x.timerRow(b.Key()), again)
	x.update(func(tx backend.Tx) {
		eq(x, "by tokens that are gone", len(got(tx.HeldTimers(ctx, []int64{40, 41}))(x)), 0)
	})
	eq(x, "never held", x.timerRow(c.Key()), c)
}

func timerDepths(x *bench) {
	w, other, start := x.flow(acme, "1"), x.flow(globex, "9"), x.now()
	x.armed(w, "later", time.Hour)
	x.armed(w, "due", time.Second)
	x.armed(other, "due", 2*time.Second)
	oldest := held(x.timer(w, "held", 0), 1, 1, start.Add(time.Hour))
	x.apply(&backend.Changes{Timers: []*backend.Timer{oldest}}, w.Key())
	x.advance(2 * time.Second)
	x.view(func(r backend.Reader) {
		d := got(r.Depths(ctx, 10))(x)
		eq(x, "timers", []int{d.Timers, d.DueTimers}, []int{4, 3})
		eq(x, "due the longest", d.OldestDueTimer, start)
		d = got(r.Depths(ctx, 2))(x)
		eq(x, "timers up to 2", []int{d.Timers, d.DueTimers}, []int{2, 2})
	})
}
