// Package engine keeps the store contract, rule by rule, over the storage interface of store/backend.
//
// One verb is one unit: it reads what it needs, locks the workflow rows it judges, plans in plain Go, and leaves its changes to be applied at once.
// The files follow the roles: intake.go, deliver.go, lookup.go and erase.go (events); register.go, registration.go, register_answer.go, look.go,
// claim.go, retire.go and waitlist.go (waits); plan.go, index.go, index_load.go, match.go, offer.go, offer_read.go and offer_answer.go (matching);
// park.go, redeliver.go, take.go, parkedlist.go and answers.go (redelivery); start.go, append.go, batch.go, order.go, write.go, conclude.go, continue.go,
// cancel.go and pause.go (runs); lease.go and suspend.go (leases); read.go, chain.go, query.go and now.go (reads); repair.go, reclaim.go, unmet.go and news.go
// (passes). unit.go holds what they share: how a record is numbered, a wait answered, an event claimed or released, a run woken; standing.go says how a
// wait stands in the history, cursor.go where a list goes on.
package engine
