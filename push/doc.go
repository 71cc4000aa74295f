// Package push is the push-worker: it follows the histories that registrations name and POSTs them, record by record, in order and at least once (push.md
// sections 4 to 8).
//
// The registration's row is all the state there is. A worker claims due rows under send leases, and works each in a turn of its own goroutine:
//
//	claim ── read a page ── project ── POST ── 2xx? next message, acknowledged behind it by group commit
//	                                     └──── anything else ends the turn: retry, park or release, by package outcome
//
// Nobody else sends for a row while its lease holds: before every POST the lease has more left than the request may take, and when it ends by the monotonic
// clock, the request is cancelled; where the store says that it was revoked, it is the last one. A 2xx is a fact: what fails behind it is tried again, never the POST.
//
// PUSH notices and the poll say when to claim, and nothing else; without NATS only latency is lost. The worker's now is the store's, carried on by the
// monotonic clock, so a pod whose wall clock is wrong neither retries early nor signs wrongly.
//
// Not built, and therefore not promised: circuits of gates, rates, the consent handshake, proxies, follow=chain, key rings, notices to people.
package push
