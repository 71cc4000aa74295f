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

// pushClaims measures what the worker asks when it looks for what is due, before and after the store is filled with registrations that are idle or parked.
func pushClaims(ctx context.Context, b *bench) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	at, err := b.o.database(ctx, "push_claims")
	if err != nil {
		return err
	}
	if err := fillPushes(ctx, at, 0); err != nil { // and so makes the tables
		return err
	}
	none, some, err := claimed(ctx, at, true)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := fillPushes(ctx, at, b.o.idle); err != nil {
		return err
	}
	fmt.Printf("  %d idle and %d parked registrations written in %s\n", b.o.idle, b.o.idle/10, time.Since(start).Round(time.Second))
	noneBeside, someBeside, err := claimed(ctx, at, false)
	if err != nil {
		return err
	}
	for _, c := range [...]struct {
		what           string
		before, beside samples
	}{{"nothing is due", none, noneBeside}, {fmt.Sprint(claimable, " are due, and their release"), some, someBeside}} {
		fmt.Printf("  claim where %s: p50 %s p99 %s, beside them p50 %s p99 %s, ratio of p50 %.2f\n", c.what, c.before.at(50), c.before.at(99),
			c.beside.at(50), c.beside.at(99), float64(c.beside.at(50))/float64(c.before.at(50)))
	}
	return nil
}

// claimed claims and gives back, again and again. The first time it makes the registrations that are due; for a claim of nothing they are somebody else's.
func claimed(ctx context.Context, at string, first bool) (none, some samples, err error) {
	s, err := open.Open(ctx, at, open.Options{Clock: clock.System, Shards: rendezvous.DefaultShards})
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	if first {
		if err := claimables(ctx, s); err != nil {
			return nil, nil, err
		}
	}
	n := 0
	claim := func(owner string) (store.ClaimedPushes, error) {
		n++
		return s.ClaimPushes(ctx, store.ClaimPush{
			Namespace: rendezvous.PushCaller, Owner: owner, Request: fmt.Sprint(at[:8], n, first), Limit: claimable, PerGate: claimable, Lease: time.Hour,
		})
	}
	var got store.ClaimedPushes
	release := func() error {
		items := make([]store.PushSettlement, len(got.Pushes))
		for i, p := range got.Pushes {
			items[i] = store.PushSettlement{
				PushItem: store.PushItem{Tenant: p.Tenant, PushKey: p.Key()}, Token: p.Token, Name: fmt.Sprint(n), Do: store.PushRelease, Why: store.ReleasePage,
			}
		}
		_, err := s.SettlePushes(ctx, items)
		return err
	}
	for range claims {
		start := time.Now()
		if got, err = claim("bench/some"); err != nil {
			return nil, nil, err
		}
		if len(got.Pushes) != claimable {
			return nil, nil, fmt.Errorf("%d registrations were claimed, not %d", len(got.Pushes), claimable)
		}
		if err := release(); err != nil {
			return nil, nil, err
		}
		some = append(some, time.Since(start))
	}
	if got, err = claim("bench/some"); err != nil {
		return nil, nil, err
	}
	for range claims {
		start := time.Now()
		if nothing, err := claim("bench/none"); err != nil || len(nothing.Pushes) > 0 {
			return nil, nil, fmt.Errorf("%d registrations were claimed where nothing is due: %w", len(nothing.Pushes), err)
		}
		none = append(none, time.Since(start))
	}
	return none, some, release()
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
