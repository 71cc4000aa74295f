package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

func start(t *testing.T) *Cluster {
	t.Helper()
	c, err := Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// ask answers the one value of a query.
func ask[T any](t *testing.T, url, query string) T {
	t.Helper()
	var answer T
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), query).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return answer
}

func alive(pid int) bool {
	return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func gone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, os.ErrNotExist)
}

func TestAClusterIsDurablePrivateAndUTF8(t *testing.T) {
	c := start(t)
	for setting, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
		"max_connections": "200", "listen_addresses": "127.0.0.1", "server_encoding": "UTF8", "lc_collate": "C",
	} {
		query := fmt.Sprintf("SELECT current_setting('%s')", setting)
		if setting == "lc_collate" {
			query = "SELECT datcollate FROM pg_database WHERE datname = current_database()"
		}
		if got := ask[string](t, c.URL(adminDatabase), query); got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
	stranger := strings.Replace(c.URL(adminDatabase), c.password, "guess", 1)
	if _, err := pgx.Connect(t.Context(), stranger); err == nil {
		t.Error("a wrong password was let in")
	}
}

func TestStopLeavesNothingAndMayBeRepeated(t *testing.T) {
	c := start(t)
	pid, watcher := c.PID(), c.watchdog.cmd.Process.Pid
	for range 2 {
		if err := c.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if alive(pid) || alive(watcher) || !gone(c.dir) {
		t.Errorf("left: server %v, watchdog %v, folder %v", alive(pid), alive(watcher), !gone(c.dir))
	}
	if err := c.Restart(t.Context()); err == nil {
		t.Error("a stopped cluster was restarted")
	}
	if err := c.Kill(); err != nil {
		t.Error(err)
	}
}

func TestTwoClustersAtOnceAreStrangers(t *testing.T) {
	a, b := start(t), start(t)
	if err := a.CreateDatabase(t.Context(), "ours"); err != nil {
		t.Fatal(err)
	}
	if err := a.CreateDatabase(t.Context(), "ours"); err == nil {
		t.Error("a database was made twice")
	}
	const count = "SELECT count(*) FROM pg_database WHERE datname = 'ours'"
	if got := ask[int](t, a.URL(adminDatabase), count); got != 1 {
		t.Errorf("%d databases in the first cluster, want 1", got)
	}
	if got := ask[int](t, b.URL(adminDatabase), count); got != 0 {
		t.Errorf("%d databases in the second cluster, want 0", got)
	}
	if err := a.DropDatabase(t.Context(), "ours"); err != nil {
		t.Fatal(err)
	}
	if got := ask[int](t, a.URL(adminDatabase), count); got != 0 {
		t.Errorf("%d databases in the first cluster after the drop, want 0", got)
	}
}

func TestWhatWasCommittedSurvivesKillAndRestart(t *testing.T) {
	c := start(t)
	url := c.URL(adminDatabase)
	if err := execute(t.Context(), url, "CREATE TABLE kept (n int)"); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		if err := execute(t.Context(), url, fmt.Sprintf("INSERT INTO kept VALUES (%d)", n)); err != nil {
			t.Fatal(err)
		}
		if err := c.Kill(); err != nil {
			t.Fatal(err)
		}
		if c.PID() != 0 {
			t.Error("a killed server has a process id")
		}
		if err := execute(t.Context(), url, "SELECT 1"); err == nil {
			t.Fatal("a killed server answers")
		}
		if err := c.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if c.URL(adminDatabase) != url {
			t.Error("the URL changed")
		}
		if got := ask[int](t, url, "SELECT count(*) FROM kept"); got != n+1 {
			t.Errorf("%d rows after restart %d, want %d", got, n, n+1)
		}
	}
}

func TestKillCutsAnOpenSessionAndItsTransaction(t *testing.T) {
	c := start(t)
	url := c.URL(adminDatabase)
	if err := execute(t.Context(), url, "CREATE TABLE lost (n int)"); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "BEGIN; INSERT INTO lost VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Kill(), c.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "COMMIT"); err == nil {
		t.Error("a session outlived its server")
	}
	if got := ask[int](t, url, "SELECT count(*) FROM lost"); got != 0 {
		t.Errorf("%d uncommitted rows survived", got)
	}
}

func TestRestartOfARunningServerKeepsItsData(t *testing.T) {
	c := start(t)
	if err := c.CreateDatabase(t.Context(), "kept"); err != nil {
		t.Fatal(err)
	}
	before := c.PID()
	if err := c.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.PID() == before {
		t.Error("it is the same process")
	}
	if got := ask[string](t, c.URL("kept"), "SELECT current_database()::text"); got != "kept" {
		t.Errorf("connected to %q", got)
	}
}

func TestANewClusterWhosePortWasTakenTakesAnother(t *testing.T) {
	taken := start(t)
	c := start(t)
	c.mu.Lock()
	err := c.end(syscall.SIGINT)
	c.port, c.served = taken.port, false // as if somebody took the port between the look and the start
	err = errors.Join(err, c.launch(t.Context()))
	c.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if c.port == taken.port {
		t.Errorf("both have port %d", c.port)
	}
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	c := start(t)
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.data()+"/postgresql.conf", []byte("no_such_setting = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Restart(t.Context()); err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("Restart: %v", err)
	}
}

func TestAStartThatIsCancelledLeavesNothing(t *testing.T) {
	base := t.TempDir()
	if err := os.Chmod(base, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", base)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := Start(ctx); err == nil {
		t.Fatal(errors.Join(errors.New("a cancelled start succeeded"), c.Stop()))
	}
	left, err := os.ReadDir(base)
	if err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
