// Package attention is what a human should look at, in words of a closed set (sweep.md section 8): the same ones in a sweeper's report, in the metrics and in
// system.check.
package attention

import (
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// Reason is one word of the set.
type Reason string

// The set. A leased run's wait that is tried later and two sweepers that meet are no reasons.
const (
	DeadLetters   Reason = "dead_letters"   // events that ended unanswered and that nobody has requeued or purged; erased ones are nobody's
	Quarantined   Reason = "quarantined"    // waits whose answer fails every time
	NoExecutor    Reason = "no_executor"    // runs with news that nobody has taken up for long
	TimersLate    Reason = "timers_late"    // timers due for long that nobody fires
	PushesLate    Reason = "pushes_late"    // push registrations due for long that nobody sends for
	PushesParked  Reason = "pushes_parked"  // push registrations that get nothing until somebody unparks or deletes them
	Saturated     Reason = "saturated"      // a pass ended two ticks in a row with more due
	Failed        Reason = "failed"         // a pass failed or does not come back
	Stuck         Reason = "stuck"          // a run that loses every driver
	Undeliverable Reason = "undeliverable"  // an event whose offer fails every time
	Exhausted     Reason = "exhausted"      // messages that ran out of deliveries
	GaugesMissing Reason = "gauges_missing" // what is live could not be counted
)

// Reasons are all, in the order in which they are told.
var Reasons = [...]Reason{DeadLetters, Quarantined, NoExecutor, TimersLate, PushesLate, PushesParked, Saturated, Failed, Stuck, Undeliverable, Exhausted, GaugesMissing}

// says is what each means and where to look.
var says = map[Reason]string{
	DeadLetters:   "there are dead letters, events that ended unanswered, usually for a wrong key or type: see deadletter list and event explain; what is settled goes by deadletter purge or requeue",
	Quarantined:   "waits are quarantined, their answer fails every time: see wait list --parked, mend the cause, then wait retry",
	NoExecutor:    "runs have had news for more than 5 min and nobody takes them up: is an executor of their queue running?",
	TimersLate:    "timers have been due for more than 5 min and nobody fires them: is a timer-worker running? See shard list",
	PushesLate:    "push registrations have been due for more than 5 min and nobody sends: is a push-worker running?",
	PushesParked:  "push registrations are parked and get nothing: see push parked for why, mend the receiver, then push unpark, or push delete",
	Saturated:     "it ends every tick with more to do: run more sweepers, or look why so much is left to them",
	Failed:        "it fails or does not come back: see the sweeper's log",
	Stuck:         "a run lost 16 drivers in a row: see the sweeper's log for which, and its executor's for why",
	Undeliverable: "events failed at every offer: see deadletter list --reason undeliverable",
	Exhausted:     "messages ran out of deliveries: a worker fails at what the passes then repair; see the workers' logs",
	GaugesMissing: "what is live could not be counted: is the store slow or away?",
}

// String is what a human reads.
func (r Reason) String() string { return says[r] }

// neglected is how long a run may have news before its queue is taken for one without an executor, and how long a timer or a push registration may be due before
// nobody is taken to serve it: no shorter than the longest hold of one.
const neglected = 5 * time.Minute

// Of are the reasons that the counts of live rows give at an instant of the store.
func Of(d store.Depths, now time.Time) []Reason {
	var found []Reason
	for reason, n := range d.Dead {
		if n > 0 && reason != rendezvous.DeadErased {
			found = append(found, DeadLetters)
			break
		}
	}
	if d.Dead[rendezvous.DeadUndeliverable] > 0 {
		found = append(found, Undeliverable)
	}
	if d.QuarantinedWaits > 0 {
		found = append(found, Quarantined)
	}
	if !d.OldestWoken.IsZero() && now.Sub(d.OldestWoken) > neglected {
		found = append(found, NoExecutor)
	}
	if !d.OldestDueTimer.IsZero() && now.Sub(d.OldestDueTimer) > neglected {
		found = append(found, TimersLate)
	}
	if !d.OldestDuePush.IsZero() && now.Sub(d.OldestDuePush) > neglected {
		found = append(found, PushesLate)
	}
	if d.ParkedPushes > 0 {
		found = append(found, PushesParked)
	}
	return found
}
