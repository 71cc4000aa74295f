// Package postgres is the production storage engine: a [backend.Backend] on PostgreSQL, through pgx.
//
// Who decides what. The rules stand in store/engine; here is no rule, only rows. The tables and what can be said of a row by itself (CHECK) are in
// migrations/, the statements in sql/, one per decision and each set-based: a verb costs a fixed handful of round trips, however many items it has.
//
// A transaction:
//
//   - begins with one round trip that also reads the store's now, rdv_now() (I16);
//   - reads unlocked, then locks workflow rows in key order, then reads what the lock protects, all under READ COMMITTED;
//   - sends everything it changes in one pipeline ([backend.Tx.Apply]). Each write judges by itself whether the row is still the one that was read: its
//     condition names the version, and a row count that differs is [backend.ErrStale]. So is a violation of one of our unique constraints, known by
//     its name. Event rows are locked by these writes alone, by number (R7);
//   - commits in a round trip of its own. Where the answer to COMMIT is lost, nobody knows, and that is said: commit_unknown.
//
// Plans do not depend on statistics. Every connection turns hash joins, merge joins, sequential scans and custom plans off, so that each statement has the one
// plan that its parameters, arrays that drive nested loops over indexes, were written for; tests read those plans on filled tables.
//
// What is not promised: a URL through a pooler that keeps no session (prepared statements and session settings are used), a database whose encoding is not
// UTF8, or another N of shards than the store was created with. All three are refused at Open.
package postgres
