package main

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/client/receiver"
	"github.com/rendezvous-events/rendezvous/wire"
)

// hooks are all registrations that the soak made, what their receiver saw, and what was seen of their rows. Safe for concurrent use.
type hooks struct {
	ledger *ledger
	door   string      // the receiver's port
	calm   atomic.Bool // nothing is killed yet: how late messages are is the plane's own

	mu     sync.Mutex
	all    []*hook
	byKey  map[hookKey]*hook
	rows   []row     // the last look
	looked time.Time // when it began
	late   []time.Duration
}

type hookKey struct{ tenant, run, id string }

// hook is a registration: what it is judged by, and what its receiver goes by.
type hook struct {
	hookKey
	n       int
	manner  manner
	events  []string
	a2a     bool
	from    int64 // the first cursor
	timeout time.Duration
	most    int  // failures in a row park it,
	rejects int  // and so many rejections of one message
	forever bool // nobody unparks it

	made     time.Time   // the reply that it is registered
	replaced time.Time   // the reply that the second key holds; zero: none
	deleted  time.Time   // nothing comes after it; zero: it was not deleted
	parking  bool        // an operator asks that it is parked, or did
	unparked []time.Time // before each unparking was asked for
	attempts []attempt   // as they began
	sights   []sight

	terms    wire.PutPush // all but its URL, under the first key
	keys     []string
	verifier *receiver.Verifier
	rng      *rand.Rand
	times    map[message]int // it came
	taken    int             // messages
	healed   bool            // somebody saw to it
}

// message is what a record's projection makes: the index is 0 but for records of several.
type message struct {
	seq   int64
	index int
}

// attempt is one request as the receiver saw it.
type attempt struct {
	message
	key      int       // which of the hook's keys signed it
	began    time.Time // it was all here
	ended    time.Time // right before it was answered or cut off, or when the sender was gone
	status   int       // 0: no answer
	accepted bool      // the receiver took the message
	seen     bool      // the sender must have seen a 2xx
}

// ok reports whether a 2xx was given.
func (a attempt) ok() bool { return a.status/100 == 2 }

// sight is what a row was when it had changed.
type sight struct {
	at          time.Time // it was read before
	incarnation int64
	cursor      rendezvous.Cursor
	state       rendezvous.PushState
	reason      rendezvous.ParkReason
	parkedAt    time.Time
}

func newHooks(l *ledger) *hooks { return &hooks{ledger: l, byKey: map[hookKey]*hook{}} }

// add makes a hook known before the plane is told of it.
func (s *hooks) add(h *hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.n = len(s.all)
	s.all = append(s.all, h)
	s.byKey[h.hookKey] = h
}

func (s *hooks) number(n int) *hook {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < 0 || n >= len(s.all) {
		return nil
	}
	return s.all[n]
}

// change changes what is known of a hook.
func (s *hooks) change(h *hook, how func(*hook)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how(h)
}

// begin notes a request and answers what is done with it.
func (s *hooks) begin(h *hook, a attempt) (i int, do act) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do = h.manner.act(h, a.message, h.times[a.message])
	h.times[a.message]++
	h.attempts = append(h.attempts, a)
	return len(h.attempts) - 1, do
}

// end notes how a request ended, before its sender can know.
func (s *hooks) end(h *hook, i int, how func(*attempt)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &h.attempts[i]
	a.ended = time.Now()
	how(a)
	a.seen = a.seen && h.timeout == patient && a.ended.Sub(a.began) < h.timeout/2 // a hasty one may have given up meanwhile
	if a.accepted && !slices.ContainsFunc(h.attempts, func(o attempt) bool { return o.accepted && o.message == a.message && o.began != a.began }) {
		h.taken++
	}
}

// see notes the rows as they were read since began, and answers the parked ones.
func (s *hooks) see(began time.Time, rows []row) (parked []*hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows, s.looked = rows, began
	at := time.Now()
	for _, r := range rows {
		h := s.byKey[r.hookKey]
		if h == nil {
			continue
		}
		r.at = at
		if n := len(h.sights); n == 0 || !h.sights[n-1].same(r.sight) {
			h.sights = append(h.sights, r.sight)
		}
		if r.state == rendezvous.PushParked {
			parked = append(parked, h)
		}
	}
	return parked
}

// same reports whether nothing has changed.
func (s sight) same(o sight) bool {
	return s.incarnation == o.incarnation && s.cursor == o.cursor && s.state == o.state && s.reason == o.reason && s.parkedAt.Equal(o.parkedAt)
}
