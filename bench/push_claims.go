package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/open"
)

const (
	claimable = 256 // registrations that are due
	claims    = 30
)

// pushClaims measures what the worker asks when it looks for what is due: in a store that has nothing else, and, by turns, in one that is full of registrations that are
// idle or parked.
func pushClaims(ctx context.Context, b *bench) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	var claimers [2]claimer
	start := time.Now()
	for i := range claimers {
		at, err := b.o.database(ctx, fmt.Sprint("push_claims_", i))
		if err != nil {
			return err
		}
		if err := fillPushes(ctx, at, i*b.o.idle); err != nil { // which makes the tables too
			return err
		}
		s, err := open.Open(ctx, at, open.Options{Clock: clock.System, Shards: rendezvous.DefaultShards})
		if err != nil {
			return err
		}
		defer s.Close()
		if err := claimables(ctx, s); err != nil {
			return err
		}
		claimers[i].store = s
	}
	fmt.Printf("  %d idle and %d parked registrations written in %s\n", b.o.idle, b.o.idle/10, time.Since(start).Round(time.Second))
	for range claims {
		for i := range claimers {
			if err := claimers[i].round(ctx); err != nil {
				return err
			}
		}
	}
	bare, beside := claimers[0], claimers[1]
	for _, c := range [...]struct {
		what         string
		bare, beside samples
	}{{"nothing is due", bare.none, beside.none}, {fmt.Sprint(claimable, " are due, and their release"), bare.some, beside.some}} {
		fmt.Printf("  claim where %s: p50 %s p99 %s, beside them p50 %s p99 %s, ratio of p50 %.2f\n", c.what, c.bare.at(50), c.bare.at(99),
			c.beside.at(50), c.beside.at(99), float64(c.beside.at(50))/float64(c.bare.at(50)))
	}
	return nil
}

// claimer claims all that is due, and then, while it holds that, nothing.
type claimer struct {
	store      store.Store
	asked      int
	none, some samples
}

func (c *claimer) round(ctx context.Context) error {
	start := time.Now()
	got, err := c.claim(ctx, claimable)
	if err != nil {
		return err
	}
	took := time.Since(start)
	start = time.Now()
	if _, err := c.claim(ctx, 0); err != nil {
		return err
	}
	c.none = append(c.none, time.Since(start))
	items := make([]store.PushSettlement, len(got))
	for i, p := range got {
		items[i] = store.PushSettlement{
			PushItem: store.PushItem{Tenant: p.Tenant, PushKey: p.Key()}, Token: p.Token, Name: fmt.Sprint(c.asked), Do: store.PushRelease, Why: store.ReleasePage,
		}
	}
	start = time.Now()
	_, err = c.store.SettlePushes(ctx, items)
	c.some = append(c.some, took+time.Since(start))
	return err
}

// claim expects so many registrations.
func (c *claimer) claim(ctx context.Context, n int) ([]store.ClaimedPush, error) {
	c.asked++
	got, err := c.store.ClaimPushes(ctx, store.ClaimPush{
		Namespace: rendezvous.PushCaller, Owner: "bench", Request: fmt.Sprint(c.asked), Limit: claimable, PerGate: claimable, Lease: time.Hour,
	})
	if err == nil && len(got.Pushes) != n {
		err = fmt.Errorf("%d registrations were claimed where %d are due", len(got.Pushes), n)
	}
	return got.Pushes, err
}

// claimables makes the registrations that are due, of as many runs, each with one record to send.
func claimables(ctx context.Context, s store.Store) error {
	t, err := s.Tenant("bench")
	if err != nil {
		return err
	}
	return each(ctx, 8, claimable, func(ctx context.Context, i int) error {
		r := hook("", "hook", fmt.Sprintf("http://127.0.0.1:%d/in", 1+i%receivers))
		r.NextSeq = 1
		_, err := t.StartRun(ctx, store.Start{
			WorkflowID: fmt.Sprint("due-", i), RunID: fmt.Sprint("due-run-", i), Type: "order", Queue: queue, Push: []store.PutPush{r},
		}, time.Time{})
		return err
	})
}

// fillPushes makes a store, and in it n registrations that rest and a tenth as many that are parked, of ten a run.
func fillPushes(ctx context.Context, url string, n int) error {
	f, done, err := fillerOf(ctx, url)
	if err != nil {
		return err
	}
	defer done()
	if n == 0 {
		return nil
	}
	began := time.Now().Add(-time.Hour).Truncate(time.Microsecond)
	statements := f.flow("rest", n/10+1, rendezvous.StatusRunning, 1, 0, began)
	statements = append(statements, f.records("rest", n/10+1, began, []rendezvous.Kind{rendezvous.RunStarted},
		rendezvous.RunStartedData{Type: "order", Queue: queue})...)
	statements = append(statements, f.pushes("idle", n, rendezvous.PushIdle, began), f.pushes("parked", n/10, rendezvous.PushParked, began))
	for _, s := range append(statements, f.settled...) {
		if err := f.execute(s); err != nil {
			return fmt.Errorf("fill the store: %w", err)
		}
	}
	return nil
}

// pushes are n registrations of the runs rest-1, rest-2 and so on, at their heads.
func (f filler) pushes(id string, n int, state rendezvous.PushState, at time.Time) string {
	parked, reason := "NULL", ""
	if state == rendezvous.PushParked {
		parked, reason = f.instant(at), string(rendezvous.ParkGone)
	}
	return insert(n, "push_registrations", `tenant, run_id, id, workflow_id, namespace, gate, incarnation, version, created_at, takes, next_seq, next_index, state,
		next_attempt_at, attempts, failing_since, rejects, attempt_no, lost, error, parked_at, reason, lease_token, lease_owner, lease_request, lease_until, lease_revoked,
		ended_token, ended_as, settle_id, settle_outcome, unpark_op, skipped, logged, last, settings`, fmt.Sprintf(`'bench', 'rest-' || (1 + i / 10), '%[1]s-' || i,
		'rest-' || (1 + i / 10), 'caller', 'http://127.0.0.1:' || (1 + i %% %[2]d), 1, 1, %[3]s, 1, 2, 0, '%[4]s', %[3]s, 0, NULL, 0, 0, 0, '', %[5]s, '%[6]s', 0, '', '', NULL,
		false, 0, '', '', NULL, '', 0, 0, NULL, %[7]s`, id, receivers, f.instant(at), state, parked, reason, f.bytes(`{"url":"http://127.0.0.1:1/in"}`)))
}
