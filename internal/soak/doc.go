// Command soak kills the plane and looks whether anything was lost.
//
// It starts a PostgreSQL of its own, a NATS server, two ingest processes, two delivery-workers, two sweepers and four timer-workers, each a process that can be
// killed, puts load on both doors, and round by round ends one or two of them by SIGKILL, deletes every stream and consumer, or removes the broker's folder. At the
// end the load stops, what is left is given time to settle, and the store is held against what the plane promised while it was being killed: the notes of the
// ledger, kept in this process, which is never killed.
//
// With -embedded there is one process to kill, `rendezvous up` on its own store and its own NATS server, whose streams go with some of its lives. What is judged then
// is a copy of its store in PostgreSQL: a backup taken in use, moved there, for each look another one.
//
// With -push there are two push-workers instead of the timer-workers, and they are what is killed, frozen, told to end and brought back, one or both; at times one
// stands still for longer than its send leases last while the rounds go on. At times the broker, PostgreSQL, its sessions or the streams go. The load is runs with
// registrations, whose receiver is in this process and misbehaves, each registration in a way of its own: it fails, asks for patience, answers slowly, cuts the
// connection off behind what it took, hangs, is gone. Registrations are made, given other keys, parked, unparked and deleted among the records. Judged is each by
// itself, by what its receiver saw and what was seen of its row: all messages, in order, one at a time, each behind the 2xx of the one before; again only what the
// contract lets come again, and counted by its cause; no cursor moved back or past what had no 2xx; nobody parked who did not deserve it, and nothing sent to who was.
//
// # Time
//
// Beside events and waits the load arms timers and deadlines (-timers, -timer-rate), and lets everything that can happen to one happen about when it is due: events,
// cancels, armings for the same instant and for later ones, pauses, ends of runs and reopenings. The timer-workers are unseated at a pace of their own: killed, one
// or two at once, stopped for longer than their leases last, or told to end. The clock of every pod is off, by another skew of up to 3 s in each of its lives: the
// programs are built with the tag skewed (package clock). What must hold of each arming: it comes to one outcome, it is never early, its row is there exactly as
// long as it lives, and it is not due for 5 s in which nothing was done to the timer-workers or the database.
//
// # Who decides what
//
//   - The ledger holds promises only: an event that a door called accepted or duplicate, or that events.get knew; a wait that a reply called registered; a
//     run that a reply called started or concluded; a record that a reply named. What nobody was told may be lost.
//   - The load is indifferent to outcomes. Its producers, registrations and drivers repeat what was not answered, as the contract tells clients to.
//   - The checks (checks/*.sql) are queries that find what must not be. Each answers the keys of offending rows; none may.
//
// # What ends with what
//
// A guard process holds the reading end of a pipe. When this process ends, however it ends, the pipe closes, and the guard kills what still runs.
package main
