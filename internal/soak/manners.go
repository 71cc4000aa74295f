package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/rendezvous-events/rendezvous/wire"
)

// act is what a receiver does with a request.
type act struct {
	after      time.Duration
	status     int
	retryAfter int  // seconds; 0: it does not say
	hang       bool // never answers
	cut        bool // takes the message and breaks the connection off instead of answering
	leave      bool // closes the connection behind its answer
}

func (a act) ok() bool { return a.status/100 == 2 }

var fine = act{status: http.StatusNoContent}

// manner is how the receiver of a hook behaves: the same for each message, but for those that it has trouble with when they come first.
type manner struct {
	name  string
	share float64
	put   func(r *wire.PutPush) // what is special about the registration
	act   func(h *hook, m message, times int) act
	parks bool // it is parked, and unparked where that is not for ever
}

// Timeouts of registrations whose receivers do answer, and of those whose do not always.
const (
	patient = 5 * time.Second
	hasty   = time.Second
)

// manners are all of them. The first takes what the others' shares leave.
var manners = [...]manner{
	{name: "steady", share: 1, act: func(*hook, message, int) act { return fine }},
	{name: "slow", share: 0.06, act: func(h *hook, _ message, _ int) act {
		return act{status: http.StatusOK, after: time.Duration(h.rng.IntN(400)) * time.Millisecond}
	}},
	{name: "faulty", share: 0.12, act: func(h *hook, _ message, times int) act {
		return h.first(times, 0.15, act{status: []int{500, 502, 404, 302}[h.rng.IntN(4)]})
	}},
	{name: "busy", share: 0.04, act: func(h *hook, _ message, times int) act {
		return h.first(times, 0.02, act{status: http.StatusTooManyRequests, retryAfter: 1 + h.rng.IntN(6)})
	}},
	{name: "cutting", share: 0.12, act: func(h *hook, _ message, times int) act { return h.first(times, 0.15, act{cut: true}) }},
	{name: "leaving", share: 0.08, act: func(h *hook, _ message, _ int) act { return act{status: http.StatusOK, leave: h.rng.IntN(3) == 0} }},
	{
		name: "hanging", share: 0.04, put: func(r *wire.PutPush) { r.TimeoutMS = hasty.Milliseconds() },
		act: func(h *hook, _ message, times int) act { return h.first(times, 0.08, act{hang: true}) },
	},
	{name: "gone", share: 0.04, parks: true, act: func(h *hook, _ message, _ int) act { return h.until(http.StatusGone) }},
	{
		name: "failing", share: 0.04, parks: true, put: func(r *wire.PutPush) { r.MaxAttempts = 2 },
		act: func(h *hook, _ message, _ int) act { return h.until(http.StatusInternalServerError) },
	},
	{
		name: "rejecting", share: 0.03, parks: true, put: func(r *wire.PutPush) { r.OnRejectLimit = 2 },
		act: func(h *hook, _ message, _ int) act { return h.until(http.StatusUnprocessableEntity) },
	},
}

// first is trouble with a share of the messages when they come for the first time.
func (h *hook) first(times int, share float64, trouble act) act {
	if times == 0 && h.rng.Float64() < share {
		return trouble
	}
	return fine
}

// until is a receiver that takes a few messages and then none, until somebody sees to it.
func (h *hook) until(status int) act {
	if h.taken < 1+h.n%5 || h.healed {
		return fine
	}
	return act{status: status}
}

// someManner is one of them.
func someManner(rng *rand.Rand) manner {
	r := rng.Float64()
	for _, m := range manners[1:] {
		if r -= m.share; r < 0 {
			return m
		}
	}
	return manners[0]
}

const hostsEach = 3 // of a manner: each is a gate of its own

func hostOf(manner string, n int) string { return fmt.Sprintf("%s-%d.localhost", manner, n%hostsEach) }

// granted are the hosts that registrations name. Names below localhost are this machine whatever anybody's resolver says.
func granted() (hosts []string) {
	for _, m := range manners {
		for n := range hostsEach {
			hosts = append(hosts, hostOf(m.name, n))
		}
	}
	return hosts
}

// url is where the hook's messages go.
func (h *hook) url(port string) string {
	return "http://" + hostOf(h.manner.name, h.n) + ":" + port + "/" + strconv.Itoa(h.n)
}
