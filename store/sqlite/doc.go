// Package sqlite is the embedded durable storage engine: a [backend.Backend] in one directory, without a server, through zombiezen.com/go/sqlite.
//
// Who decides what. The rules stand in store/engine; here is no rule, only rows. The tables and what can be said of a row by itself (CHECK) are in
// migrations/.
//
// There is one writer and there are readers beside it:
//
//   - [Backend.Update] takes turns on one connection, in the order of arrival. A transaction is a savepoint in the group that is open; whoever gets the turn
//     next after all that waited have had theirs commits the group, so callers share one sync of the disk and none waits for company (group.go). Nothing is
//     answered before its group is committed, not even a refusal, which may have been judged by rows of the same group.
//   - [Backend.View] reads a snapshot on a connection of its own and never waits for the writer.
//   - The journal is a WAL, synced at every commit (synchronous=FULL): what was answered survives a cut of the power. The writer is the one connection
//     that ever writes or checkpoints.
//
// A directory belongs to one process: a lock on a file in it keeps out a second, and goes with the process however that ends.
//
// The file does not shrink: what is deleted leaves pages that later rows use. [Backend.Backup] writes a copy without them.
package sqlite
