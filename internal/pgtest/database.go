package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// SharedVariable names the environment variable that holds an administrator's URL of a throw-away cluster for tests to share.
const SharedVariable = "RDV_TEST_POSTGRES"

// shared is the cluster of this test process, started by the first test that asks.
var shared struct {
	once    sync.Once
	admin   string   // URL of the administrator's database
	cluster *Cluster // nil where the environment gave the URL
	err     error
}

// Database gives tb an empty database of its own and answers its URL; it is dropped after the test, whoever is still connected. The first call in a test process
// starts the cluster, which [Main] or [WithCluster] stops. A cluster that cannot be had fails the test.
func Database(tb testing.TB) string {
	tb.Helper()
	return copyOf(tb, "template1")
}

// Template is a database prepared once for a test process, of which tests get copies: a schema is migrated once, not once per test.
type Template struct {
	prepare func(ctx context.Context, url string) error
	once    sync.Once
	name    string
	err     error
}

// NewTemplate tells how to prepare; prepare runs once, at the first use, and closes every connection it opens.
func NewTemplate(prepare func(ctx context.Context, url string) error) *Template {
	return &Template{prepare: prepare}
}

// Database is the function [Database], with a copy of the template instead of an empty database.
func (t *Template) Database(tb testing.TB) string {
	tb.Helper()
	admin := adminURL(tb)
	t.once.Do(func() { t.err = t.fill(admin) })
	if t.err != nil {
		tb.Fatalf("cannot prepare a template database: %v", t.err)
	}
	return copyOf(tb, t.name)
}

func (t *Template) fill(admin string) error {
	ctx := context.Background()
	t.name = databaseName("template")
	if err := execute(ctx, admin, "CREATE DATABASE "+pgx.Identifier{t.name}.Sanitize()); err != nil {
		return err
	}
	u, err := withDatabase(admin, t.name)
	if err != nil {
		return err
	}
	return t.prepare(ctx, u)
}

// Main runs the tests of a package that uses [Database], stops the cluster and exits: func TestMain(m *testing.M) { pgtest.Main(m) }.
func Main(m *testing.M) {
	os.Exit(WithCluster(m).Run())
}

// Runner is what runs the tests of a package: *testing.M, and what [WithCluster] makes of it.
type Runner interface{ Run() int }

// WithCluster runs m and then stops the cluster that its tests used. It stands between m and goleak, which finds nothing of the cluster left:
// goleak.VerifyTestMain(pgtest.WithCluster(m)).
func WithCluster(m Runner) Runner { return stopping{m} }

type stopping struct{ tests Runner }

func (s stopping) Run() int {
	code := s.tests.Run()
	if shared.cluster == nil {
		return code
	}
	if err := shared.cluster.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return max(code, 1)
	}
	return code
}

func adminURL(tb testing.TB) string {
	tb.Helper()
	shared.once.Do(startShared)
	if shared.err != nil {
		tb.Fatalf("this test needs PostgreSQL: %v", shared.err)
	}
	return shared.admin
}

func startShared() {
	if shared.admin = os.Getenv(SharedVariable); shared.admin != "" {
		return
	}
	// Not a test's context: the cluster outlives the test that happens to be first.
	if shared.cluster, shared.err = Start(context.Background()); shared.err == nil {
		shared.admin = shared.cluster.URL(adminDatabase)
	}
}

func copyOf(tb testing.TB, template string) string {
	tb.Helper()
	admin, name := adminURL(tb), databaseName(tb.Name())
	quoted := pgx.Identifier{name}.Sanitize()
	create := "CREATE DATABASE " + quoted + " TEMPLATE " + pgx.Identifier{template}.Sanitize()
	if err := execute(tb.Context(), admin, create); err != nil {
		tb.Fatalf("cannot make a database for this test: %v", err)
	}
	tb.Cleanup(func() {
		// The test's context has ended by now.
		if err := execute(context.Background(), admin, "DROP DATABASE "+quoted+" WITH (FORCE)"); err != nil {
			tb.Errorf("cannot drop the database of this test: %v", err)
		}
	})
	u, err := withDatabase(admin, name)
	if err != nil {
		tb.Fatal(err)
	}
	return u
}

// databaseName is unique and tells a person at psql which test it belongs to. PostgreSQL cuts names at 63 bytes.
func databaseName(of string) string {
	lower := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + ('a' - 'A')
		default:
			return '_'
		}
	}, of)
	return fmt.Sprintf("%.32s_%s", lower, strings.ToLower(rand.Text()))
}

func withDatabase(admin, name string) (string, error) {
	u, err := url.Parse(admin)
	if err != nil || u.Scheme == "" {
		return "", errors.New(SharedVariable + " is not a URL like postgres://user:password@127.0.0.1:5432/postgres") // the value may hold a password
	}
	u.Path = "/" + name
	return u.String(), nil
}

// execute runs one statement on a connection of its own.
func execute(ctx context.Context, url, statement string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, statement)
	return errors.Join(err, conn.Close(ctx))
}
