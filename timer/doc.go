// Package timer is the timer-worker: it fires what is due in the shards its pod owns, each arming once and never early (timers.md section 6, I13).
//
// In memory it keeps, per shard, the instant at which something is due next, and nothing else: so nothing else can be lost by a restart. It sleeps until the
// earliest of them, at most one probe, and then asks the store, whose page selects, records and retires in one transaction that is fenced by the shards' epochs.
// Hints of earlier instants and its own probes only say when to ask.
package timer
