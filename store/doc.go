// Package store is the contract of the truth: events, waits, runs and histories, by role. Everything else (NATS, notices, workers) is the way.
//
// A [Store] has two sides. The queue side ([Queue]) serves workers plane-wide: every item and row carries its tenant. The tenant side ([Tenant])
// is a handle of one tenant (rule R1). Rules R1..R9 of docs/spec/events.md hold for every verb:
//
//   - at is the instant of the call; the zero time means the store's now, and that is what workers pass (R2);
//   - one verb is one transaction, all or nothing; a batch answers one outcome per item in input order, and an item that cannot be worked fails
//     alone, in its Err (R3);
//   - a lost reply is ErrCommitUnknown; repeating the same call is always safe (R8, I17); each verb says what the repeat answers;
//   - invalid, unavailable, commit_unknown and corrupt can come from every verb.
//
// After a verb has returned, its caller sends the [Notices] it names: whoever commits sends. A notice that cannot be sent fails nothing.
//
// The verbs live once, in store/engine, over the small storage interface of store/backend; store/memory and store/postgres implement that.
// A concrete store is chosen by URL in one place, store/open.
package store
