// Command soak kills the plane and looks whether anything was lost.
//
// It starts a PostgreSQL of its own, a NATS server, two ingest processes, two delivery-workers and two sweepers, each a process that can be killed, puts load on both
// doors, and round by round ends one or two of them by SIGKILL, deletes every stream and consumer, or removes the broker's folder. At the end the load
// stops, what is left is given time to settle, and the store is held against what the plane promised while it was being killed: the notes of the ledger,
// kept in this process, which is never killed.
//
// With -embedded there is one process to kill, `rendezvous up` on its own store and its own NATS server, whose streams go with some of its lives. What is judged then
// is a copy of its store in PostgreSQL: a backup taken in use, moved there, for each look another one.
//
// # Who decides what
//
//   - The ledger holds promises only: an event that a door called accepted or duplicate, or that events.get knew; a wait that a reply called registered; a
//     run that a reply called started or concluded. What nobody was told may be lost.
//   - The load is indifferent to outcomes. Its producers, registrations and drivers repeat what was not answered, as the contract tells clients to.
//   - The checks (checks/*.sql) are queries that find what must not be. Each answers the keys of offending rows; none may.
//
// # What ends with what
//
// A guard process holds the reading end of a pipe. When this process ends, however it ends, the pipe closes, and the guard kills what still runs.
package main
