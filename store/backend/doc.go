// Package backend is what a storage engine must offer for store/engine to keep the contract on it: rows, set-based reads, one way to change rows.
//
// A verb is one call of [Backend.Update]: its function reads through [Tx], locks the workflow rows it will judge or change, computes in plain Go what
// is to happen, and hands it over once, as [Changes], to [Tx.Apply]. So the rules stand once, in store/engine, and a backend is a few dozen set-based
// statements with no rule in them.
//
// Concurrency:
//
//   - workflow rows are locked, in (tenant, workflow id) order, by [Tx.LockWorkflows], until the transaction ends;
//   - event and wait rows are read unlocked and carry a Version; Apply changes or deletes such a row only while its version is the one read, and adds
//     one. A row that moved on makes Apply answer [ErrStale]: the transaction is undone and the verb is made anew (R7);
//   - inserting a row that is there already is ErrStale too, but for what [Changes] says of records;
//   - the pages that come again (Due...) skip rows locked by others.
//
// Law of key rows (events.md section 2): a live event has its key rows and an open wait has its, and nothing else has any. Backends keep it by
// comparing the row's Keyed, as loaded, with its state in Apply. A live untargeted event has one row per key, or one under the empty [rendezvous.Key]
// when it has none; a live targeted event has exactly one, under [TargetKey] of its run. Each carries the event's LiveSince and ExpiresAt.
//
// Likewise a dead letter stands in the lists' index under each of its own keys until it is requeued or purged: the row's Listed, as loaded, tells.
package backend
