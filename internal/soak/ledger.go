package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/rendezvous-events/rendezvous"
)

// Doors of events.
const (
	requestDoor = "request"
	streamDoor  = "stream"
)

// ledger holds what the plane promised, and what nobody may see: broken promises. Safe for concurrent use.
type ledger struct {
	mu         sync.Mutex
	events     map[eventKey]acceptance
	waits      map[waitKey]bool  // registered; true: the reply was the answer
	runs       map[runKey]string // started: its workflow
	ended      map[runKey]bool   // concluded, continued or cancelled
	pairs      []pair
	races      []pair // of waits with a deadline
	recorded   []promise
	complete   map[runKey]bool // workflows that are to complete once all their events are accepted
	duplicates int             // answered by the request door
	resent     int             // published again, because events.get did not know it
	conflicts  int             // identities sent with other content, and refused
	abandoned  int             // leases left to run out
	done       []disturbance
	failOver   time.Duration // the longest that anything due may wait undisturbed
	broken     []string
	last       map[string]time.Time     // by door: when an event was last accepted,
	silence    map[string]time.Duration // and the longest time in which none was
}

type eventKey struct {
	tenant string
	rendezvous.EventID
}

// acceptance is the first time that a door took an event: the reply was here at that instant.
type acceptance struct {
	door string
	at   time.Time
}

type waitKey struct {
	tenant string
	rendezvous.WaitID
}

type runKey struct{ tenant, id string }

// pair is a wait and the one event that shares a key with it.
type pair struct {
	tenant string
	wait   rendezvous.WaitID
	event  rendezvous.EventID
}

// promise is a reply that said what was recorded.
type promise struct {
	tenant, run string
	seq         int64
	kinds       []rendezvous.Kind // one of them it is
	timer       string            // "" for a record about none
	fireAt      time.Time         // of an arming
}

// disturbance is something that was done to the timer-workers or to the database, after which nobody fires for a while.
type disturbance struct {
	what         string // killed, stalled, drained; or postgres
	began, ended time.Time
}

// failOver is the goal of shards.md section 5.
const failOver = 5 * time.Second

func newLedger() *ledger {
	return &ledger{
		events: map[eventKey]acceptance{}, waits: map[waitKey]bool{}, runs: map[runKey]string{}, ended: map[runKey]bool{}, complete: map[runKey]bool{},
		failOver: failOver, last: map[string]time.Time{}, silence: map[string]time.Duration{},
	}
}

// accepted notes a promise of a door.
func (l *ledger) accepted(tenant string, e rendezvous.EventID, door string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if before, ok := l.last[door]; ok {
		l.silence[door] = max(l.silence[door], now.Sub(before))
	}
	l.last[door] = now
	key := eventKey{tenant, e}
	if _, known := l.events[key]; !known {
		l.events[key] = acceptance{door, now}
	}
}

func (l *ledger) registered(tenant string, w rendezvous.WaitID, answered bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := waitKey{tenant, w}
	l.waits[key] = l.waits[key] || answered
}

func (l *ledger) started(tenant, workflow, run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[runKey{tenant, run}] = workflow
}

func (l *ledger) concluded(tenant, run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended[runKey{tenant, run}] = true
}

func (l *ledger) meet(tenant string, w rendezvous.WaitID, e rendezvous.EventID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pairs = append(l.pairs, pair{tenant, w, e})
}

// reopened takes back that a run is over.
func (l *ledger) reopened(tenant, run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ended, runKey{tenant, run})
}

// race notes the one event that may answer a wait with a deadline.
func (l *ledger) race(tenant string, w rendezvous.WaitID, e rendezvous.EventID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.races = append(l.races, pair{tenant, w, e})
}

// told notes a promise.
func (l *ledger) told(p promise) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recorded = append(l.recorded, p)
}

// disturbed notes what was done since began.
func (l *ledger) disturbed(what string, began time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done = append(l.done, disturbance{what, began, time.Now()})
}

// completes says that nothing is missing any more for a workflow to complete.
func (l *ledger) completes(tenant, workflow string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.complete[runKey{tenant, workflow}] = true
}

func (l *ledger) count(n *int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*n++
}

// violation notes something that the contract rules out.
func (l *ledger) violation(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = append(l.broken, fmt.Sprintf(format, args...))
}

// byDoor counts accepted events.
func (l *ledger) byDoor() (request, stream int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range l.events {
		if a.door == requestDoor {
			request++
		} else {
			stream++
		}
	}
	return request, stream
}
