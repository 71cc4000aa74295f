package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/internal/pgtest"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/postgres"
)

// execute runs statements at url.
func execute(tb testing.TB, url string, statements ...string) {
	tb.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(ctx)
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			tb.Fatalf("%s: %v", sql, err)
		}
	}
}

// refused opens and expects to be refused with that code, telling those words.
func refused(t *testing.T, c postgres.Config, code rendezvous.Code, words ...string) {
	t.Helper()
	b, err := postgres.Open(t.Context(), c)
	if err == nil {
		_ = b.Close()
		t.Fatalf("opened; want %s", code)
	}
	if rendezvous.CodeOf(err) != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not name %q", err, w)
		}
	}
}

func TestOpenMigratesOnceHoweverManyOpenAtOnce(t *testing.T) {
	url := pgtest.Database(t)
	const pods = 6
	stores, errs := make([]*postgres.Backend, pods), make([]error, pods)
	var all sync.WaitGroup
	for i := range pods {
		all.Go(func() {
			stores[i], errs[i] = postgres.Open(context.Background(), postgres.Config{URL: url, Migrate: true, MaxConns: 2})
		})
	}
	all.Wait()
	for i, b := range stores {
		if errs[i] != nil {
			t.Errorf("pod %d: %v", i, errs[i])
			continue
		}
		if b.Shards() != rendezvous.DefaultShards {
			t.Errorf("pod %d has %d shards", i, b.Shards())
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := postgres.Migrate(t.Context(), url); err != nil {
		t.Errorf("migrate again: %v", err)
	}
}

// knows is how an error names the version of the schema that this build is made for.
func knows() string { return fmt.Sprintf("version %d", postgres.BuildVersion()) }

func TestOpenRefusesAnOlderSchemaUnlessItMayMigrate(t *testing.T) {
	refused(t, postgres.Config{URL: pgtest.Database(t)}, rendezvous.CodeUnavailable, "version 0", knows(), "migrate")
}

// HI-7: a newer schema is never used, and never migrated back.
func TestOpenRefusesANewerSchema(t *testing.T) {
	url := migrated.Database(t)
	execute(t, url, `INSERT INTO rdv_migrations (version_id, is_applied) VALUES (977, true)`)
	for _, migrate := range []bool{false, true} {
		refused(t, postgres.Config{URL: url, Migrate: migrate}, rendezvous.CodeUnavailable, "977", knows())
	}
}

// SH-2: two pods that cut the workflows differently would neither find nor leave alone what is theirs.
func TestOpenRefusesAnotherNumberOfShards(t *testing.T) {
	url := migrated.Database(t)
	first := open(t, url, func(c *postgres.Config) { c.Shards = 16 })
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	refused(t, postgres.Config{URL: url, Shards: 32}, rendezvous.CodeInvalid, "16", "32")
	again := open(t, url)
	defer again.Close()
	if again.Shards() != 16 {
		t.Errorf("opened with %d shards, want the store's 16", again.Shards())
	}
}

func TestOpenRefusesAnEncodingThatIsNotUTF8(t *testing.T) {
	admin := pgtest.Database(t)
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimPrefix(u.Path, "/") + "_l1"
	execute(t, admin, `CREATE DATABASE `+name+` TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'`)
	t.Cleanup(func() { execute(t, admin, `DROP DATABASE `+name) })
	u.Path = "/" + name
	refused(t, postgres.Config{URL: u.String(), Migrate: true}, rendezvous.CodeInvalid, "LATIN1", "UTF8")
}

// I16: no production store runs on a shifted clock.
func TestOpenRefusesAShiftedClock(t *testing.T) {
	url := migrated.Database(t)
	advancer(t, url)(0)
	refused(t, postgres.Config{URL: url}, rendezvous.CodeInvalid, "clock")
	if err := open(t, url).Close(); err != nil {
		t.Error(err)
	}
}

// I16: every connection sees a shift at once.
func TestShiftClockMovesEveryConnection(t *testing.T) {
	url := migrated.Database(t)
	b := open(t, url)
	defer b.Close()
	now := func() (now time.Time) {
		t.Helper()
		if err := b.View(t.Context(), "test", func(_ context.Context, r backend.Reader) error { now = r.Now(); return nil }); err != nil {
			t.Fatal(err)
		}
		return now
	}
	before := now()
	if !before.Equal(before.Truncate(time.Microsecond)) || before.Location() != time.UTC {
		t.Errorf("now is %v: not whole microseconds in UTC", before)
	}
	hour := advancer(t, url)
	err := b.View(t.Context(), "test", func(_ context.Context, outer backend.Reader) error {
		hour(time.Hour)
		if moved := now().Sub(before); moved < time.Hour || moved > time.Hour+time.Minute {
			t.Errorf("another connection moved by %s", moved)
		}
		if moved := outer.Now().Sub(before); moved > time.Minute {
			t.Errorf("now moved by %s within a transaction", moved)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if moved := now().Sub(before); moved < time.Hour {
		t.Errorf("the first connection moved by %s", moved)
	}
}

func TestOpenTellsNoPassword(t *testing.T) {
	for _, bad := range []string{
		"postgres://rdv:hunter2@127.0.0.1:port/x", "postgres://rdv:hunter2@127.0.0.1:1/x?connect_timeout=2", "postgres://rdv:hunter2@127.0.0.1:1/x?sslmode=what",
	} {
		_, err := postgres.Open(t.Context(), postgres.Config{URL: bad})
		if err == nil {
			t.Errorf("%s: opened", bad)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(e.Error(), "hunter2") {
				t.Errorf("%q tells the password", e)
			}
		}
		if err := postgres.Migrate(t.Context(), bad); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Migrate: %v", err)
		}
	}
}

func TestOpenRefusesSettingsOutOfRange(t *testing.T) {
	for field, c := range map[string]postgres.Config{
		"max_conns":         {MaxConns: -1},
		"shards":            {Shards: -1},
		"statement_timeout": {StatementTimeout: -time.Second},
		"lock_timeout":      {LockTimeout: time.Microsecond},
		"idle_timeout":      {IdleTimeout: -1},
		"end_timeout":       {EndTimeout: -1},
	} {
		refused(t, c, rendezvous.CodeInvalid, field)
	}
}

func TestClosedStoreIsUnavailable(t *testing.T) {
	b := open(t, migrated.Database(t))
	for range 2 { // closing again does nothing
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Ping(t.Context()); rendezvous.CodeOf(err) != rendezvous.CodeUnavailable {
		t.Errorf("ping: %v, want unavailable", err)
	}
}
