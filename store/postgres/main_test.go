package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rendezvous-events/rendezvous/internal/pgtest"
	"github.com/rendezvous-events/rendezvous/store/postgres"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.WithCluster(m)) }

// migrated is an empty store, from which tests get copies; stopped is one whose clock stands until a test moves it on.
var (
	migrated = pgtest.NewTemplate(postgres.Migrate)
	stopped  = pgtest.NewTemplate(func(ctx context.Context, url string) error {
		return errors.Join(postgres.Migrate(ctx, url), postgres.StopClock(ctx, url))
	})
)

// open opens the store at url as tests do; the test closes it.
func open(tb testing.TB, url string, changes ...func(*postgres.Config)) *postgres.Backend {
	tb.Helper()
	c := postgres.Config{URL: url, TestClock: true}
	for _, change := range changes {
		change(&c)
	}
	b, err := postgres.Open(context.WithoutCancel(tb.Context()), c)
	if err != nil {
		tb.Fatalf("open the store: %v", err)
	}
	return b
}

// advancer moves the now of the store at url.
func advancer(tb testing.TB, url string) func(time.Duration) {
	return func(d time.Duration) {
		tb.Helper()
		if err := postgres.ShiftClock(context.Background(), url, d); err != nil {
			tb.Fatalf("shift the clock: %v", err)
		}
	}
}
