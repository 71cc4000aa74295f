package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// calmFor is how long nothing is done to anybody in the push shape, to see how late messages are by themselves.
const calmFor = 6 * time.Second

// follow starts the receiver, and the watch over all rows; leave ends both.
func (s *soak) follow(ctx context.Context) (leave func() error, err error) {
	listen, err := address(map[int]bool{})
	if err != nil {
		return nil, err
	}
	stop, err := s.hooks.receive(listen)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { newWatcher(s.hooks, s.plane.cluster.URL(database), s.access).run(ctx) })
	s.unwatch = func() {
		cancel()
		watch.Wait()
	}
	return func() error {
		s.unwatch()
		return stop()
	}, nil
}

// beCalm lets the load go on by itself for a while.
func (s *hooks) beCalm(ctx context.Context) {
	s.calm.Store(true)
	pause(ctx, calmFor)
	s.calm.Store(false)
}

// deliver lets the push-workers deliver what is left. They are told to end before, so that the leases that are left then are those of the dead, and end at once.
func (s *soak) deliver(ctx context.Context) error {
	began := time.Now()
	if err := s.chaos.told(ctx, s.plane.pushers, s.chaos.endLeases); err != nil {
		return err
	}
	for pause(ctx, lookEvery) && time.Since(began) < s.settle && !s.hooks.settled(began) {
	}
	s.delivered = time.Since(began)
	s.unwatch() // whom it has unpark is about to be dismissed
	return nil
}

// settled reports whether a look since then found nothing left.
func (s *hooks) settled(since time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := newVerdict(nil)
	j.left(s.rows, s.byKey)
	return s.looked.After(since) && len(j.found) == 0
}

// judgePushes holds what the receiver saw against the histories, and prints what came of it.
func (s *soak) judgePushes(ctx context.Context, v *verifier) ([]error, error) {
	if s.hooks == nil {
		return nil, nil
	}
	histories, err := readHistories(ctx, v.conn)
	if err != nil {
		return nil, err
	}
	s.ledger.mu.Lock()
	j := newVerdict(slices.Clone(s.ledger.done))
	s.ledger.mu.Unlock()
	s.hooks.mu.Lock()
	defer s.hooks.mu.Unlock()
	for _, h := range s.hooks.all {
		j.hook(h, histories[runKey{h.tenant, h.run}])
	}
	j.left(s.hooks.rows, s.hooks.byKey)
	line("registrations", "%d of %d runs; parked: %s", j.hooks, len(histories), list(j.parked))
	line("messages", "%d requests, %d accepted; again: %s", j.messages, j.accepted, list(j.repeats))
	line("under a replaced key", "%d of a registration at most", j.stale)
	line("from record to request", "%s, while nothing was done to anybody", spread(quantiles(s.hooks.late)))
	line("time to deliver the rest", "%s", s.delivered.Round(10*time.Millisecond))
	var errs []error
	for _, f := range j.found[:min(len(j.found), 5*shown)] {
		errs = append(errs, errors.New(f))
	}
	if more := len(j.found) - len(errs); more > 0 {
		errs = append(errs, fmt.Errorf("and %d more of registrations", more))
	}
	if j.accepted == 0 {
		errs = append(errs, errors.New("no message was accepted"))
	}
	return errs, nil
}

// quantiles are p50, p99 and the longest, in seconds.
func quantiles(all []time.Duration) (n int, seconds []float64) {
	slices.Sort(all)
	if n = len(all); n == 0 {
		return 0, nil
	}
	for _, i := range [...]int{n / 2, n * 99 / 100, n - 1} {
		seconds = append(seconds, all[i].Seconds())
	}
	return n, seconds
}

// readHistories reads what was recorded of every run.
func readHistories(ctx context.Context, conn *pgx.Conn) (map[runKey][]written, error) {
	rows, err := conn.Query(ctx, "SELECT tenant, run_id, seq, kind, payload IS NOT NULL FROM history ORDER BY tenant, workflow_id, seq")
	if err != nil {
		return nil, err
	}
	all := map[runKey][]written{}
	var run runKey
	var r written
	_, err = pgx.ForEachRow(rows, []any{&run.tenant, &run.id, &r.seq, &r.kind, &r.payload}, func() error {
		all[run] = append(all[run], r)
		return nil
	})
	return all, err
}
