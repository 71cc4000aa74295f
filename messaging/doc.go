// Package messaging is how the plane uses NATS: connections, the embedded server, streams, notices, consumers and W3C trace context.
//
// # A notice is not the truth
//
// The store is (I11). A notice says which event, wait or run to look at; it carries identity and trace context, never a payload, and whoever
// gets it does what the rows say then. So a lost notice costs one poll interval, and a late, repeated or reordered one is a no-op. Everything
// here leans on that: notices may be published twice, streams may be deleted, the broker's directory may be wiped, and the worst that happens
// is that a consumer's Gap hook asks its worker to poll. Only INBOX (until the commit) and REJECTED (what never became an event) carry payloads.
//
// # Who decides what
//
//   - [Config] says how NATS is reached and how large things may be; [Config.Validate] names the wrong field.
//   - [Embedded] is a whole server in the process. [Connect] makes one connection to publish and one to consume, both reconnecting for ever.
//   - [Conn.Provision] creates what is missing and changes nothing that exists. Workers call it at start; publishers and consumers call it
//     themselves when they meet a hole, so a stream deleted under load heals without an operator.
//   - [Conn.Publish] sends notices after the commit that caused them and returns when JetStream has acknowledged each, or names those it has not.
//   - [Conn.ConsumeMatch], [Conn.ConsumeInbox], [Conn.ConsumeAdvisory] and [ConsumeResume] hand batches to a handler. The handler answers one [Outcome] for each
//     message, and one function (outcome.go) turns an outcome into the acknowledgement.
//
// # The life of a consumption
//
// A [Consumption] pulls from one or several durables (MATCH has one for each partition; all pods compete on all) into one bounded buffer, and
// gathers from it up to a batch or a few milliseconds. Each durable is in one of three states: idle (its share of the buffer is full), pulling
// (a request stands at the broker), broken (the stream or consumer is gone, the broker does not answer, heartbeats stay away). Broken ones are
// provisioned and pulled again, with backoff, for ever; what was deleted a moment ago is made again only when the deletion is over (settle.go).
// [Consumption.Stop] ends the pulls, lets the running batches finish, gives back what no handler has seen, and returns when nothing is left.
//
// # What is not promised
//
// No order (two pods on one consumer invert freely), no exactly-once (acknowledgements can be lost with the broker), no delivery at all when a
// stream is deleted. An acknowledged publish may be lost with a machine that has no synchronous storage.
package messaging
