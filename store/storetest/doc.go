// Package storetest is the battery that every store passes: one case per promise of docs/spec, the same for every backend, and once, over store/memory,
// through every decorator: they see nothing of a backend but its contract.
//
// [Run] opens an empty store per case by the function it is given, and runs the cases by role; each is a subtest that runs alone:
//
//	go test ./store/memory -run 'TestBattery/events_intake/EV-1_'
//
// A case speaks to the store as a worker or a client would: through the contract. What no caller can do, it does through its [Harness]: move the
// store's now, fail a transaction at a point ([fault.Backend]), damage a stored row ([Damage]), count what the store asked of its backend ([Counts]),
// close the store and open it again. [Fix] says the usual things in few words: a tenant with events, runs, waits and drivers.
//
// Races run [Rounds] times: RDV_ROUNDS, or 20.
package storetest
