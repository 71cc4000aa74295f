// Package shard makes a process a member of a pool: pods that divide the shards of workflows among themselves, so that each row normally has one pod looking
// at it (docs/spec/shards.md).
//
// # Who decides what
//
// The store decides who owns a shard: leases with epochs, judged by its own clock, and a fence in every write that needs one. A [Member] asks. Nobody leads:
// every member sees the same directory, computes from it the same wish (balance.go), takes its part and gives back what is over it. Two that see different
// things at worst ask for the same shard, and one of them loses; a write under a lost shard is refused by the fence.
//
// # One round
//
// Every second, and every half second while something is to be had, a member renews its leases and its heartbeat and gets the directory, in one verb. It
// drops what it lost, gives back what is over its quota, and takes what is free and its own to take. Taking over goes in one order: acquire, subscribe the
// notices, publish, believe, and only then may enumerations see the shards and the work begin. A shard that fails a step is dropped alone.
//
// A round also comes when a lease that others hold runs out, and when a notice says that shards changed. A lost notice costs half a second.
//
// # What is not promised
//
// That a shard has one owner at every instant: between a death and the end of its lease it has none, and a pod that slept may still think it owns it. Safety
// is the fence's; the division is for speed. Before each page a worker asks IsCurrentOwner, which says no before the lease of a pod that is cut off ends.
package shard
