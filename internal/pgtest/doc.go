// Package pgtest gives tests a PostgreSQL of their own.
//
// [Start] makes a private cluster: a fresh data folder under the temporary folder, a free port on 127.0.0.1, a random password. It never touches a
// cluster that was there before. Durability is PostgreSQL's default (fsync and synchronous_commit on), so that a test that kills the server
// proves what production would see; what is thrown away is thrown away whole, at [Cluster.Stop].
//
// Most tests want only a database: [Database] gives a fresh one on a cluster that the test process shares, [NewTemplate] one with a schema already in it,
// and [Main] or [WithCluster] in TestMain stops that cluster. Tests that kill or restart the server call [Start] and own the result.
// Where RDV_TEST_POSTGRES holds the administrator's URL of a throw-away cluster, that one is used instead; the command in cmd/pgtest
// starts one for a whole run of go test.
//
// A cluster does not outlive its test process. A watchdog (a few lines of shell in a session of its own) holds the reading end of a
// pipe; when the process ends, however it ends, the pipe closes, and the watchdog stops the server and removes the folder.
//
// PostgreSQL refuses to run as root, so root starts it as the account `postgres` (or `nobody`). Where its programs are missing, root installs them by
// apt-get, and anybody by Homebrew; who can do neither gets the command to run and a failure. Nothing here skips.
package pgtest
