package main

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// What the judge goes by beside push.md.
const (
	unflushed  = 16               // push.unflushed: accepted and not acknowledged
	pushLease  = 40 * time.Second // push.lease
	frozenFor  = pushLease / 2    // a lease has two thirds of its length left at least: who stands still for less comes back to it
	flushed    = 5 * time.Second  // an acceptance is acknowledged after so long: then a call of the store is over,
	flushedYet = 15 * time.Second // where the store was away or rows were held, so long
	lostLimit  = 5                // push.lost_limit
)

// written is a record of a run, as far as registrations go by it.
type written struct {
	seq     int64
	kind    rendezvous.Kind
	payload bool
}

// verdict holds what receivers saw against what was recorded and what was done to the push-workers. It is a function of the notes alone.
type verdict struct {
	upsets []disturbance // of the push-workers, and of the store
	found  []string

	hooks, messages, accepted int
	repeats                   map[string]int // by cause
	parked                    map[string]int // by reason
	stale                     int            // the most messages that went out under a key that had been replaced
}

func newVerdict(upsets []disturbance) *verdict {
	slices.SortFunc(upsets, func(a, b disturbance) int { return a.began.Compare(b.began) })
	return &verdict{upsets: upsets, repeats: map[string]int{}, parked: map[string]int{}}
}

func (v *verdict) finding(h *hook, format string, args ...any) {
	v.found = append(v.found, fmt.Sprintf("%s (%s): ", h.hookKey, h.manner.name)+fmt.Sprintf(format, args...))
}

// hook judges one registration by the history of its run.
func (v *verdict) hook(h *hook, history []written) {
	want := h.takes(history)
	slices.SortFunc(h.attempts, func(a, b attempt) int { return a.began.Compare(b.began) })
	v.hooks++
	v.messages += len(h.attempts)
	v.ordered(h, want)
	v.whole(h, want)
	v.repeated(h)
	v.alone(h)
	v.cursors(h, want)
	v.parkings(h)
	v.late(h)
}

// takes are the messages of the records from the hook's first cursor on.
func (h *hook) takes(history []written) (all []message) {
	for _, r := range history {
		if r.seq < h.from || !h.wants(r.kind) {
			continue
		}
		all = append(all, message{r.seq, 0})
		if h.a2a && r.kind == rendezvous.RunCompleted && r.payload { // its result, and its status
			all = append(all, message{r.seq, 1})
		}
	}
	return all
}

func (h *hook) wants(kind rendezvous.Kind) bool {
	run, wait := strings.HasPrefix(string(kind), "run."), strings.HasPrefix(string(kind), "wait.")
	switch {
	case h.a2a && !run && !wait:
		return false
	case len(h.events) == 0:
		return run || wait
	}
	return slices.Contains(h.events, rendezvous.AllEvents) || slices.Contains(h.events, string(kind))
}

// ordered: a message goes out once the one before it was answered 2xx, the first one at once; nothing else goes out.
func (v *verdict) ordered(h *hook, want []message) {
	place := make(map[message]int, len(want))
	for i, m := range want {
		place[m] = i
	}
	given := make([]time.Time, len(want)) // the first 2xx
	for _, a := range h.attempts {
		i, known := place[a.message]
		switch {
		case !known:
			v.finding(h, "got %v, which it does not take", a.message)
			continue
		case i > 0 && (given[i-1].IsZero() || a.began.Before(given[i-1])):
			v.finding(h, "got %v before %v was answered 2xx", a.message, want[i-1])
		}
		if a.ok() && given[i].IsZero() {
			given[i] = a.ended
		}
		if a.accepted {
			v.accepted++
		}
	}
}

// whole: every message was accepted, but of a registration that was deleted or stays parked.
func (v *verdict) whole(h *hook, want []message) {
	if !h.deleted.IsZero() || h.forever {
		return
	}
	accepted := map[message]bool{}
	for _, a := range h.attempts {
		accepted[a.message] = accepted[a.message] || a.accepted
	}
	for _, m := range want {
		if !accepted[m] {
			v.finding(h, "never accepted %v", m)
			return
		}
	}
}

// repeated: an accepted message comes again only when its sender saw no 2xx, or was killed or frozen before that was acknowledged; few for each.
func (v *verdict) repeated(h *hook) {
	last := map[message]attempt{} // of those accepted once
	charged := make([]int, len(v.upsets))
	for _, a := range h.attempts {
		before, again := last[a.message]
		if again || a.accepted {
			last[a.message] = a
		}
		if !again {
			continue
		}
		switch {
		case !before.seen:
			v.repeats[notSeen]++
		case !v.charge(before, a, charged):
			v.repeats[byNobody]++
			v.finding(h, "got %v again %s after it was answered %d at %s", a.message, a.began.Sub(before.ended), before.status, before.ended.UTC().Format(time.TimeOnly))
		}
	}
}

// Causes of repeats, beside what was done to a worker.
const (
	notSeen  = "answer not seen"
	byNobody = "without a cause"
)

// charge finds what was done to a worker that excuses a repeat, and has not excused as many of the registration as it may; a freeze where no kill does.
func (v *verdict) charge(before, again attempt, charged []int) bool {
	for _, what := range [...]string{killed, frozen} {
		for i, u := range v.upsets {
			if u.what == what && v.mayRepeat(u, before, again) && charged[i] < mostOf(u) {
				charged[i]++
				v.repeats[what]++
				return true
			}
		}
	}
	return false
}

// mayRepeat reports whether what was done to a worker excuses that an accepted message came again: it was done before the acceptance can have been acknowledged.
func (v *verdict) mayRepeat(u disturbance, before, again attempt) bool {
	return !u.began.After(again.began) && !u.ended.Before(before.began) && !u.began.After(before.ended.Add(v.flushing(before.ended)))
}

// mostOf is how many messages of a registration may come again for it.
func mostOf(u disturbance) int {
	switch {
	case u.what == killed:
		return unflushed
	case u.ended.Sub(u.began) < frozenFor:
		return 1 // the one under way, whose time was over
	}
	return unflushed + 1 // two workers had it: what was not acknowledged, and the one under way
}

// flushing is how long an acceptance may wait to be acknowledged. Who is frozen in the middle of a transaction holds its rows for a while.
func (v *verdict) flushing(at time.Time) time.Duration {
	if v.upset(at.Add(-flushed), at.Add(flushed), storeAway, frozen) {
		return flushedYet
	}
	return flushed
}

// upset reports whether one of these was done to somebody between two instants.
func (v *verdict) upset(from, to time.Time, what ...string) bool {
	return slices.ContainsFunc(v.upsets, func(u disturbance) bool {
		return slices.Contains(what, u.what) && !u.began.After(to) && !u.ended.Before(from)
	})
}

// alone: one request at a time, plane-wide. A request is its receiver's alone once its timeout is over or its sender was killed or frozen.
func (v *verdict) alone(h *hook) {
	var open attempt // the one that lasts longest
	for i, a := range h.attempts {
		if i > 0 && open.ended.After(a.began) && a.began.Sub(open.began) < h.timeout && !v.upset(open.began, a.began, killed, frozen) {
			v.finding(h, "got %v while %v was under way", a.message, open.message)
		}
		if a.ended.After(open.ended) {
			open = a
		}
	}
}

// cursors: none moves back, or past a message that no 2xx was given for.
func (v *verdict) cursors(h *hook, want []message) {
	given := map[message]time.Time{}
	for _, a := range h.attempts {
		if _, known := given[a.message]; a.ok() && !known {
			given[a.message] = a.ended
		}
	}
	passed := 0 // of want
	for i, s := range h.sights {
		if i > 0 && s.incarnation == h.sights[i-1].incarnation && s.cursor.Compare(h.sights[i-1].cursor) < 0 {
			v.finding(h, "its cursor moved back from %v to %v", h.sights[i-1].cursor, s.cursor)
		}
		for ; passed < len(want) && want[passed].before(s.cursor); passed++ {
			if at, ok := given[want[passed]]; !ok || at.After(s.at) {
				v.finding(h, "its cursor stood at %v, and %v had not been answered 2xx", s.cursor, want[passed])
			}
		}
	}
}

func (m message) before(c rendezvous.Cursor) bool {
	return cmp.Or(cmp.Compare(m.seq, c.NextSeq), cmp.Compare(m.index, c.NextIndex)) < 0
}

// parkings: who is parked deserves it, keeps the cursor, and gets nothing until somebody unparks it, but for what was under way when an operator parked it.
func (v *verdict) parkings(h *hook) {
	for i, s := range h.sights {
		if s.state != rendezvous.PushParked || i > 0 && h.sights[i-1].parkedAt.Equal(s.parkedAt) {
			continue
		}
		v.parked[string(s.reason)]++
		if !v.deserved(h, s) {
			v.finding(h, "parked as %s at %v, which its receiver gives no reason for", s.reason, s.cursor)
		}
		until, most := h.parkedUntil(s), 0
		if s.reason == rendezvous.ParkByOperator {
			most = unflushed
		}
		for _, o := range h.sights[i:] {
			if o.state == rendezvous.PushParked && o.parkedAt.Equal(s.parkedAt) && o.cursor != s.cursor && s.reason != rendezvous.ParkByOperator {
				v.finding(h, "parked at %v, and its cursor moved to %v", s.cursor, o.cursor)
			}
		}
		got := 0
		for _, a := range h.attempts {
			if a.began.After(s.at) && a.began.Before(until) && !v.upset(s.at.Add(-flushed), a.began, frozen) {
				got++
			}
		}
		if got > most {
			v.finding(h, "got %d messages while it was parked as %s", got, s.reason)
		}
	}
}

// parkedUntil is when somebody began to unpark it.
func (h *hook) parkedUntil(s sight) time.Time {
	for _, at := range h.unparked {
		if at.After(s.parkedAt) {
			return at
		}
	}
	return time.Unix(1<<40, 0)
}

// deserved reports whether the receiver, the workers' ends, or an operator gave reason to park it.
func (v *verdict) deserved(h *hook, s sight) bool {
	switch s.reason {
	case rendezvous.ParkGone:
		return h.failures(s, func(a attempt) bool { return a.status == http.StatusGone }) > 0
	case rendezvous.ParkExhausted:
		return h.failures(s, func(attempt) bool { return true }) >= h.most
	case rendezvous.ParkRejected:
		return h.failures(s, func(a attempt) bool { return a.status == http.StatusUnprocessableEntity }) >= h.rejects
	case rendezvous.ParkByOperator:
		return h.parking
	case rendezvous.ParkWorkerLost:
		lost := 0
		for _, u := range v.upsets {
			if (u.what == killed || u.what == frozen) && u.began.Before(s.at) && u.ended.After(h.made) {
				lost++
			}
		}
		return lost >= lostLimit
	}
	return false
}

// failures counts attempts in a row before the registration was parked, since the last 2xx that was seen or since it was unparked.
func (h *hook) failures(s sight, counts func(attempt) bool) (n int) {
	var since time.Time
	for _, at := range h.unparked {
		if at.Before(s.parkedAt) {
			since = at
		}
	}
	for _, a := range h.attempts {
		switch {
		case a.began.After(s.at):
			return n
		case a.seen || a.began.Before(since):
			n = 0
		case counts(a):
			n++
		}
	}
	return n
}

// late: under a key that was replaced goes out what was under way, and nothing to a registration that is deleted.
func (v *verdict) late(h *hook) {
	stale := 0
	for _, a := range h.attempts {
		if !h.deleted.IsZero() && a.began.After(h.deleted) && !v.upset(h.deleted.Add(-pushLease), a.began, frozen) {
			v.finding(h, "got %v %s after it was deleted", a.message, a.began.Sub(h.deleted))
		}
		if !h.replaced.IsZero() && a.began.After(h.replaced) && a.key == 0 && !v.upset(h.replaced.Add(-pushLease), a.began, frozen) {
			stale++
		}
	}
	if v.stale = max(v.stale, stale); stale > unflushed {
		v.finding(h, "got %d messages under a key that had been replaced", stale)
	}
}

// left: in the end every run is over, so that a row is there only for a registration that stays parked, and nobody sends for it.
func (v *verdict) left(rows []row, known map[hookKey]*hook) {
	for _, r := range rows {
		h := known[r.hookKey]
		switch {
		case h == nil:
			v.found = append(v.found, fmt.Sprintf("%s: nobody registered it", r.hookKey))
		case !h.deleted.IsZero():
			v.finding(h, "its row is there, and it was deleted")
		case r.leased:
			v.finding(h, "a send lease is left")
		case r.state != rendezvous.PushParked || !h.forever:
			v.finding(h, "its row is left, %s %s at %v", r.state, r.reason, r.cursor)
		}
	}
}
