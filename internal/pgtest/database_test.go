package pgtest

import (
	"context"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestEveryTestGetsADatabaseOfItsOwnThatIsDroppedAfterIt(t *testing.T) {
	admin := adminURL(t)
	var name string
	t.Run("inner", func(t *testing.T) {
		a, b := Database(t), Database(t)
		if err := execute(t.Context(), a, "CREATE TABLE mine ()"); err != nil {
			t.Fatal(err)
		}
		if ask[bool](t, b, "SELECT to_regclass('mine') IS NOT NULL") {
			t.Error("two databases share a table")
		}
		// A connection left open must not keep the database.
		conn, err := pgx.Connect(context.Background(), a)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close(context.Background()) })
		u, err := url.Parse(a)
		if err != nil {
			t.Fatal(err)
		}
		name = strings.TrimPrefix(u.Path, "/")
		if len(name) > 63 || !strings.HasPrefix(name, "testeverytestgetsadatabase") {
			t.Errorf("the name %q does not tell the test", name)
		}
	})
	if got := ask[int](t, admin, "SELECT count(*) FROM pg_database WHERE datname = '"+name+"'"); got != 0 {
		t.Errorf("database %s is still there", name)
	}
}

func TestATemplateIsPreparedOnceAndCopied(t *testing.T) {
	prepared := 0
	template := NewTemplate(func(ctx context.Context, url string) error {
		prepared++
		return execute(ctx, url, "CREATE TABLE schema_of_all ()")
	})
	for range 3 {
		if !ask[bool](t, template.Database(t), "SELECT to_regclass('schema_of_all') IS NOT NULL") {
			t.Error("the copy has no schema")
		}
	}
	if prepared != 1 {
		t.Errorf("prepared %d times", prepared)
	}
}

// recorder is a testing.TB that keeps what it is told instead of failing.
type recorder struct {
	testing.TB
	fatal []any
}

type stopped struct{}

func (r *recorder) Fatalf(_ string, args ...any) {
	r.fatal = args
	panic(stopped{})
}

func TestATemplateThatCannotBePreparedFailsEveryTest(t *testing.T) {
	broken := errors.New("no such migration")
	template := NewTemplate(func(context.Context, string) error { return broken })
	for range 2 {
		r := &recorder{TB: t}
		func() {
			defer func() {
				if p := recover(); p != nil && p != (stopped{}) {
					panic(p)
				}
			}()
			template.Database(r)
		}()
		if len(r.fatal) != 1 || !errors.Is(r.fatal[0].(error), broken) {
			t.Errorf("the test was told %v", r.fatal)
		}
	}
}

func TestTheExitCodeOfTheTestsIsKept(t *testing.T) {
	if shared.cluster != nil {
		// The cluster of this process must not be stopped by this test.
		kept := shared.cluster
		shared.cluster = nil
		defer func() { shared.cluster = kept }()
	}
	if got := WithCluster(code(3)).Run(); got != 3 {
		t.Errorf("Run answered %d, want 3", got)
	}
}

type code int

func (c code) Run() int { return int(c) }

func TestAWrongSharedURLIsRefusedWithoutShowingIt(t *testing.T) {
	_, err := withDatabase("host=x password=hidden", "name")
	if err == nil || strings.Contains(err.Error(), "hidden") || !strings.Contains(err.Error(), SharedVariable) {
		t.Errorf("withDatabase: %v", err)
	}
}

func TestTheClusterOfTheEnvironmentIsUsed(t *testing.T) {
	given := os.Getenv(SharedVariable)
	if admin := adminURL(t); given != "" && (admin != given || shared.cluster != nil) {
		t.Error("a cluster was started though the environment names one")
	} else if given == "" && shared.cluster == nil {
		t.Error("no cluster was started though the environment names none")
	}
}
