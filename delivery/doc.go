// Package delivery makes events meet waits. A [Worker] pulls MATCH, gathers notices, drops repeats and hands them to the store's OfferBatch in one
// call; the store decides everything. After the commit it sends the notices that the outcomes name, and then acknowledges: a crash in between is
// repaired by the notice coming again, which the store answers with what it did the first time.
//
// A pair whose run is leased stays parked in the store. The worker tries it again from memory six more times, 25 ms doubling to 800 ms, and then
// forgets it: the passes of package sweep own it. The worker never sleeps on a lease, never reads a history and never holds a payload.
package delivery
