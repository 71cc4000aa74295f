package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

var begun = time.Date(2026, 11, 30, 18, 0, 0, 0, time.UTC)

// ms is an instant of the notes.
func ms(n int) time.Time { return begun.Add(time.Duration(n) * time.Millisecond) }

func done(what string, from, to int) disturbance { return disturbance{what, ms(from), ms(to)} }

// came is an attempt at the first message of a record, of 5 ms.
func came(seq int64, at, status int) attempt {
	ok := status/100 == 2
	return attempt{message: message{seq, 0}, began: ms(at), ended: ms(at + 5), status: status, accepted: ok, seen: ok}
}

func stood(at int, seq int64) sight {
	return sight{at: ms(at), incarnation: 1, cursor: rendezvous.Cursor{NextSeq: seq}, state: rendezvous.PushLive}
}

func parkedFor(reason rendezvous.ParkReason, at int, seq int64) sight {
	s := stood(at, seq)
	s.state, s.reason, s.parkedAt = rendezvous.PushParked, reason, ms(at-50)
	return s
}

// notes are what is known of one registration.
type notes struct {
	hook    *hook
	history []written
	upsets  []disturbance
}

// inOrder is a registration that went through everything it may: a failure, an answer that was cut off, a worker killed behind an acceptance, a parking.
func inOrder() *notes {
	cut := came(3, 300, 0)
	cut.accepted = true
	return &notes{
		hook: &hook{
			hookKey: hookKey{tenant, "r", "h"}, events: []string{rendezvous.AllEvents}, from: 1, timeout: time.Second, most: 2, rejects: 2, made: ms(-1000), unparked: []time.Time{ms(1100)},
			attempts: []attempt{
				came(1, 0, 204), came(2, 100, 500), came(2, 200, 204), cut, came(3, 400, 204), came(4, 500, 200), came(4, 700, 200), came(5, 800, 410), came(5, 1200, 204), came(6, 1300, 204),
			},
			sights: []sight{stood(50, 2), stood(250, 3), stood(600, 4), parkedFor(rendezvous.ParkGone, 900, 5), stood(1150, 5), stood(1250, 6)},
		},
		history: []written{
			{1, rendezvous.RunStarted, false},
			{2, rendezvous.Note, false},
			{3, rendezvous.WaitRegistered, false},
			{4, rendezvous.WaitAnswered, true},
			{5, rendezvous.Note, false},
			{6, rendezvous.RunCompleted, true},
		},
		upsets: []disturbance{done(killed, 550, 560), done(drained, 1000, 1050)},
	}
}

func (n *notes) judged() *verdict {
	v := newVerdict(n.upsets)
	v.hook(n.hook, n.history)
	return v
}

func TestNothingIsFoundOfARegistrationInOrder(t *testing.T) {
	v := inOrder().judged()
	if len(v.found) > 0 || v.messages != 10 || v.accepted != 8 || v.parked[string(rendezvous.ParkGone)] != 1 || len(v.repeats) != 2 || v.repeats[notSeen] != 1 || v.repeats[killed] != 1 {
		t.Errorf("%+v", v)
	}
}

// again puts n messages of a long history into the notes, each accepted at 2 s and once more at 4 s.
func (n *notes) again(count int, upsets ...disturbance) {
	n.history, n.hook.attempts, n.hook.sights, n.upsets = nil, nil, nil, upsets
	for i := range count {
		n.history = append(n.history, written{int64(i + 1), rendezvous.Note, false})
		n.hook.attempts = append(n.hook.attempts, came(int64(i+1), 2000+10*i, 204), came(int64(i+1), 4000+10*i, 204))
	}
	slices.SortFunc(n.hook.attempts, func(a, b attempt) int { return a.began.Compare(b.began) })
}

// Each check finds what it is there for, and nothing where the contract allows it.
func TestEveryBreachIsFound(t *testing.T) {
	h := func(spoil func(h *hook)) func(*notes) { return func(n *notes) { spoil(n.hook) } }
	again := func(count int, upsets ...disturbance) func(*notes) {
		return func(n *notes) { n.again(count, upsets...) }
	}
	for name, c := range map[string]struct {
		spoil func(n *notes)
		found string // "": nothing
	}{
		"the first message never came":      {h(func(h *hook) { h.attempts = h.attempts[1:] }), "got {2 0} before {1 0} was answered 2xx"},
		"the next before the answer":        {h(func(h *hook) { h.attempts[1].began = ms(3) }), "got {2 0} before {1 0} was answered 2xx"},
		"the next behind an answer cut off": {h(func(h *hook) { h.attempts = slices.Delete(h.attempts, 4, 5) }), "got {4 0} before {3 0} was answered 2xx"},
		"a message of no record":            {h(func(h *hook) { h.attempts[9].seq = 7 }), "got {7 0}, which it does not take"},
		"a kind it does not take":           {h(func(h *hook) { h.events = nil }), "got {2 0}, which it does not take"},
		"a record before its first cursor":  {h(func(h *hook) { h.from = 2 }), "got {1 0}, which it does not take"},
		"a second message of a result":      {h(func(h *hook) { h.a2a, h.attempts[9].index = true, 1 }), "got {6 1} before {6 0} was answered 2xx"},
		"the last message never came":       {h(func(h *hook) { h.attempts = h.attempts[:9] }), "never accepted {6 0}"},
		"one that was deleted owes nothing": {h(func(h *hook) { h.attempts, h.deleted = h.attempts[:9], ms(1250) }), ""},
		"one that stays parked owes none":   {h(func(h *hook) { h.attempts, h.forever = h.attempts[:9], true }), ""},

		"a repeat for nothing":                    {again(1), "got {1 0} again"},
		"a repeat for a drain":                    {again(1, done(drained, 2100, 2200)), "got {1 0} again"},
		"a repeat for the store":                  {again(1, done(storeAway, 2100, 2200)), "got {1 0} again"},
		"a repeat for a kill before":              {again(1, done(killed, 1000, 1100)), "got {1 0} again"},
		"a repeat for a kill behind it":           {again(1, done(killed, 5000, 5100)), "got {1 0} again"},
		"a repeat for a kill long after":          {again(1, done(killed, 4006, 4007)), "got {1 0} again"},
		"as many repeats as a kill may cost":      {again(16, done(killed, 2200, 2201)), ""},
		"one more":                                {again(17, done(killed, 2200, 2201)), "got {17 0} again"},
		"one more for two kills":                  {again(17, done(killed, 2200, 2201), done(killed, 2300, 2301)), ""},
		"the message under way in a short freeze": {again(1, done(frozen, 2003, 3900)), ""},
		"two for a short freeze":                  {again(2, done(frozen, 2003, 3900)), "got {2 0} again"},
		"kills in a long freeze":                  {again(33, done(frozen, 2500, 50_000), done(killed, 2400, 2401)), ""},
		"two for a freeze beyond the lease":       {again(2, done(frozen, 2100, 50_000)), ""},
		"18 for a freeze beyond the lease":        {again(18, done(frozen, 2300, 50_000)), "got {18 0} again"},
		"a kill late, and the store answered":     {func(n *notes) { n.again(1, done(killed, 8500, 8501)); n.hook.attempts[1].began = ms(9000) }, "got {1 0} again"},
		"a kill late, and the store did not": {func(n *notes) {
			n.again(1, done(storeAway, 1500, 5000), done(killed, 5500, 5501))
			n.hook.attempts[1].began = ms(6000)
		}, ""},
		"a repeat of what was not seen": {func(n *notes) { n.again(1); n.hook.attempts[0].seen = false }, ""},
		"a repeat of one that nobody answered": {func(n *notes) {
			n.again(1, done(killed, 2100, 2101))
			n.hook.attempts = append(n.hook.attempts, came(1, 9000, 204))
			n.hook.attempts[1].status, n.hook.attempts[1].seen = 0, false
		}, ""},
		"two at once":                            {h(func(h *hook) { h.attempts[1].ended = ms(210) }), "got {2 0} while {2 0} was under way"},
		"two at once, the first one's time over": {h(func(h *hook) { h.attempts[1].ended, h.timeout = ms(210), 100*time.Millisecond }), ""},
		"two at once, the first one's sender dead": {func(n *notes) {
			n.hook.attempts[1].ended = ms(210)
			n.upsets = append(n.upsets, done(killed, 150, 151))
		}, ""},

		"a cursor moved back":                 {h(func(h *hook) { h.sights[5].cursor.NextSeq = 4 }), "its cursor moved back from {5 0} to {4 0}"},
		"a cursor of another incarnation":     {h(func(h *hook) { h.sights[5].cursor.NextSeq = 4; h.sights[5].incarnation = 2 }), ""},
		"a cursor past what was not answered": {h(func(h *hook) { h.sights[1].cursor.NextSeq = 4 }), "its cursor stood at {4 0}, and {3 0} had not been answered 2xx"},
		"a cursor past what was never sent":   {h(func(h *hook) { h.sights[5].cursor.NextSeq = 7 }), "its cursor stood at {7 0}, and {6 0} had not"},
		"a parked row's cursor moved":         {h(func(h *hook) { h.sights = slices.Insert(h.sights, 4, parkedFor(rendezvous.ParkGone, 900, 6)) }), "parked at {5 0}, and its cursor moved"},
		"a message to a parked one":           {h(func(h *hook) { h.attempts[8].began = ms(1000) }), "got 1 messages while it was parked as gone"},
		"many to one that an operator parked": {operatorParked(17), "got 17 messages while it was parked as operator"},
		"what was under way when he did":      {operatorParked(16), ""},
		"parked as gone without a 410":        {h(func(h *hook) { h.attempts[7].status = 500 }), "parked as gone at {5 0}"},
		"parked as exhausted after one":       {h(func(h *hook) { h.sights[3].reason = rendezvous.ParkExhausted }), "parked as exhausted at {5 0}"},
		"parked as exhausted after two": {h(func(h *hook) {
			h.sights[3].reason = rendezvous.ParkExhausted
			h.attempts = slices.Insert(h.attempts, 7, came(5, 780, 500))
		}), ""},
		"parked as rejected after one": {h(func(h *hook) { h.sights[3].reason = rendezvous.ParkRejected; h.attempts[7].status = 422 }), "parked as rejected at {5 0}"},
		"parked as rejected after two": {h(func(h *hook) {
			h.sights[3].reason = rendezvous.ParkRejected
			h.attempts[7].status = 422
			h.attempts = slices.Insert(h.attempts, 7, came(5, 780, 422))
		}), ""},
		"parked by an operator who did not":       {h(func(h *hook) { h.sights[3].reason = rendezvous.ParkByOperator }), "parked as operator at {5 0}"},
		"parked for workers that were not lost":   {h(func(h *hook) { h.sights[3].reason = rendezvous.ParkWorkerLost }), "parked as worker_lost at {5 0}"},
		"parked for workers that were":            {lostWorkers, ""},
		"parked for a reason nobody gives":        {h(func(h *hook) { h.sights[3].reason = rendezvous.ParkBadKey }), "parked as bad_key at {5 0}"},
		"a message behind its deletion":           {h(func(h *hook) { h.deleted = ms(1299) }), "got {6 0} 1ms after it was deleted"},
		"a message behind it, of a frozen worker": {func(n *notes) { n.hook.deleted = ms(1299); n.upsets = append(n.upsets, done(frozen, 1200, 1298)) }, ""},
		"under a replaced key what was under way": {func(n *notes) { n.again(8, done(killed, 2200, 2201)); n.hook.replaced = ms(1000) }, ""},
		"under a replaced key for long":           {func(n *notes) { n.again(9, done(killed, 2200, 2201)); n.hook.replaced = ms(1000) }, "got 18 messages under a key that had been replaced"},
	} {
		t.Run(name, func(t *testing.T) {
			n := inOrder()
			c.spoil(n)
			found := n.judged().found
			if c.found == "" && len(found) > 0 || c.found != "" && !slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, c.found) }) {
				t.Errorf("found %q, want %q", found, c.found)
			}
		})
	}
}

// operatorParked is a registration of which so many messages come behind the parking.
func operatorParked(count int) func(*notes) {
	return func(n *notes) {
		n.again(count)
		n.hook.attempts = n.hook.attempts[:count]
		n.hook.parking, n.hook.unparked, n.hook.sights = true, nil, []sight{parkedFor(rendezvous.ParkByOperator, 1900, 1)}
	}
}

func lostWorkers(n *notes) {
	n.hook.sights[3].reason = rendezvous.ParkWorkerLost
	for i := range lostLimit - 1 {
		n.upsets = append(n.upsets, done(killed, 810+i, 811+i))
	}
}

func TestWhatIsLeftIsFound(t *testing.T) {
	key := hookKey{tenant, "r", "h"}
	h := &hook{hookKey: key, forever: true}
	known := map[hookKey]*hook{key: h}
	for _, c := range []struct {
		name  string
		spoil func(h *hook, r *row)
		found string
	}{
		{"nothing", func(*hook, *row) {}, ""},
		{"a live row", func(_ *hook, r *row) { r.state = rendezvous.PushLive }, "its row is left, live"},
		{"an idle row of a run that is over", func(_ *hook, r *row) { r.state = rendezvous.PushIdle }, "its row is left, idle"},
		{"a parked row that was to be unparked", func(h *hook, _ *row) { h.forever = false }, "its row is left, parked"},
		{"a lease", func(_ *hook, r *row) { r.leased = true }, "a send lease is left"},
		{"a deleted row", func(h *hook, _ *row) { h.deleted = begun }, "it was deleted"},
		{"a row of nobody", func(_ *hook, r *row) { r.id = "other" }, "nobody registered it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			*h = hook{hookKey: key, forever: true}
			r := row{hookKey: key, sight: parkedFor(rendezvous.ParkGone, 0, 5)}
			c.spoil(h, &r)
			v := newVerdict(nil)
			v.left([]row{r}, known)
			if c.found == "" && len(v.found) > 0 || c.found != "" && (len(v.found) != 1 || !strings.Contains(v.found[0], c.found)) {
				t.Errorf("found %q, want %q", v.found, c.found)
			}
		})
	}
}

// Of a registration for A2A a result is two messages, and a note none.
func TestMessagesOfRecords(t *testing.T) {
	n := inOrder()
	for _, c := range []struct {
		name   string
		a2a    bool
		events []string
		from   int64
		want   []message
	}{
		{"all", false, []string{rendezvous.AllEvents}, 5, []message{{5, 0}, {6, 0}}},
		{"the default", false, nil, 1, []message{{1, 0}, {3, 0}, {4, 0}, {6, 0}}},
		{"one kind", false, []string{string(rendezvous.RunCompleted)}, 1, []message{{6, 0}}},
		{"A2A", true, nil, 4, []message{{4, 0}, {6, 0}, {6, 1}}},
	} {
		h := hook{a2a: c.a2a, events: c.events, from: c.from}
		if got := h.takes(n.history); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
