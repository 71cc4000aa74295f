// Package sweep is the backstop that makes notices disposable (I11), and the operator's eyes. A [Worker] runs passes: each looks in the store for rows
// that a lost notice, a dead driver or a crash left behind, and does what the notice would have led to.
//
//   - leases: a lease that ran out ends; what was parked under it is recorded, and another driver is called.
//   - parked: a parked wait whose run is free is answered.
//   - unmet: a live event that meets an open wait is offered to it; what became matchable lately is looked at first.
//   - woken: a run with news that nobody drives is told of again.
//   - late: of a timer that has been due for long the timer-workers are told again; who fires it is not a pass.
//   - unclaimed: a live event that nobody wanted in its window becomes a dead letter.
//   - push_upkeep: registrations that have failed for too long are parked, attempt logs trimmed; of those that nobody sends for the push-workers are told again.
//   - retention: a dead letter whose time is over is purged, a closed workflow whose time is over is removed.
//   - exhausted: messages that ran out of deliveries are counted. The passes above find the rows they spoke of.
//
// # Who decides what
//
// The store decides: which rows are due, whom a page takes, what a row comes to. A pass asks for a page, hands it back to the store to be worked, and
// sends the notices that the answer names, after the commit. Every change is conditional on what was seen, so any number of workers run at once, in as
// many pods, and need no leader.
//
// The passes leases, parked, woken and late look at the shards that the worker was given to adopt, by the scope of their handle, so that normally no two pods look
// at one row; whether they do is a matter of speed. The others are plane-wide: every worker runs them at its own jittered pace. A worker without shards is a stand-by.
//
// # One tick
//
// The passes that are due take turns, a page each, in the order above; a pass with more due goes on, up to its pages. A page has a budget. One that fails,
// panics or hangs is that pass's trouble alone: the others have their turns, and the [Report] of the tick says what happened. What a human should look
// at is the report's Attention.
//
// # What is not promised
//
// No page waits for a lease, a receiver or a notice. A row handed to a worker that dies comes back when its take ends, not before.
package sweep
