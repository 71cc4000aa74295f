package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rendezvous-events/rendezvous/internal/pgtest"
)

// victim is something that is killed and comes back.
type victim interface {
	Name() string
	Kill() error
	Restart(ctx context.Context) error
	Up(ctx context.Context) error
}

// postgres is the cluster as a victim: its postmaster is killed, its sessions notice by themselves.
type postgres struct{ cluster *pgtest.Cluster }

func (postgres) Name() string                        { return "postgres" }
func (d postgres) Kill() error                       { return d.cluster.Kill() }
func (d postgres) Restart(ctx context.Context) error { return d.cluster.Restart(ctx) }
func (postgres) Up(context.Context) error            { return nil } // Restart waits for connections

const (
	beforeKill  = 500 * time.Millisecond
	beforeStart = 300 * time.Millisecond

	shareDelete = 0.12 // of the rounds delete every stream and consumer, half of these while a worker begins its next life,
	shareSingle = 0.06 // delete one stream, or the consumers of one,
	shareStall  = 0.06 // stop one worker for a while and let it go on,
	shareCut    = 0.06 // end every session at the database,
	shareTwo    = 0.15 // kill two at once,
	shareHaste  = 0.25 // do not wait until what was killed works again
	shareWipe   = 0.25 // of the broker's deaths take its folder along

	deleteLimit = 5 * time.Second
	stallMost   = 3 * time.Second // longer than a lease
)

// chaos kills, round by round; timer-workers at a pace of their own (see unseat).
type chaos struct {
	plane  *plane
	rng    *rand.Rand
	say    func(format string, args ...any)
	rounds atomic.Int64
	ledger *ledger

	asleep   atomic.Pointer[process] // the push-worker that stands still for long; nil: none does
	sleeping sync.WaitGroup

	mu    sync.Mutex
	kills map[string]int
}

func newChaos(p *plane, l *ledger, seed uint64, say func(string, ...any)) *chaos {
	return &chaos{plane: p, ledger: l, rng: rand.New(rand.NewPCG(seed, 1)), say: say, kills: map[string]int{}}
}

// count counts what was done.
func (c *chaos) count(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kills[what]++
}

// run goes through rounds until there were enough of them and the load has done its part, or ctx ends. An error is a part of the plane that did not come back.
func (c *chaos) run(ctx context.Context, rounds int, enough func() bool) error {
	awake, wake := context.WithCancel(ctx)
	defer c.sleeping.Wait()
	defer wake()
	for int(c.rounds.Load()) < rounds || rounds == 0 || !enough() {
		if !pause(ctx, c.upTo(beforeKill)) {
			return nil
		}
		if err := c.round(context.WithoutCancel(ctx), awake); err != nil {
			return fmt.Errorf("round %d: %w", c.rounds.Load(), err)
		}
	}
	return nil
}

func (c *chaos) upTo(d time.Duration) time.Duration { return time.Duration(c.rng.Int64N(int64(d))) }

// round does one thing to the plane; what it leaves asleep sleeps until awake ends at most.
func (c *chaos) round(ctx, awake context.Context) error {
	c.rounds.Add(1)
	if len(c.plane.pushers) > 0 {
		return c.upset(ctx, awake)
	}
	switch r := c.rng.Float64(); {
	case r < shareDelete/2:
		return c.deleteStreams(ctx)
	case r < shareDelete:
		return c.deleteAtBirth(ctx)
	case r < shareDelete+shareSingle:
		return c.deleteOne(ctx)
	case r < shareDelete+shareSingle+shareStall:
		return c.stall(ctx)
	case r < shareDelete+shareSingle+shareStall+shareCut && !c.plane.embedded:
		return c.cut(ctx)
	}
	return c.kill(ctx, c.choose())
}

// kill ends the chosen and brings them back.
func (c *chaos) kill(ctx context.Context, chosen []victim) error {
	wipe := c.rng.Float64() < shareWipe
	for _, v := range chosen {
		c.count(v.Name())
	}
	c.say("round %d: kill %s", c.rounds.Load(), names(chosen))
	began := time.Now()
	if err := each(chosen, victim.Kill); err != nil {
		return err
	}
	if wipe && (c.plane.embedded || strings.Contains(names(chosen), "broker")) {
		c.count("broker's folder")
		c.say("round %d: remove the broker's folder", c.rounds.Load())
		if err := os.RemoveAll(c.plane.brokerFolder()); err != nil {
			return err
		}
	}
	pause(ctx, c.upTo(beforeStart))
	if err := each(chosen, func(v victim) error { return v.Restart(ctx) }); err != nil {
		return err
	}
	if strings.Contains(names(chosen), postgres{}.Name()) {
		c.ledger.disturbed(storeAway, began)
	}
	if c.rng.Float64() < shareHaste {
		return nil
	}
	return each(chosen, func(v victim) error { return v.Up(ctx) })
}

// stall stops a worker for longer than its messages and the leases beside it last, and lets it go on with what it had in hand.
func (c *chaos) stall(ctx context.Context) error {
	w := c.plane.workers[c.rng.IntN(len(c.plane.workers))]
	c.count("stalled")
	c.say("round %d: stall %s", c.rounds.Load(), w.name)
	if err := w.Stall(ctx, c.upTo(stallMost)); err != nil {
		return err
	}
	return w.Up(ctx)
}

// cut ends every session of the workers at the database, in the middle of what they do.
func (c *chaos) cut(ctx context.Context) error {
	c.count("sessions cut")
	defer c.ledger.disturbed(storeAway, time.Now())
	c.say("round %d: end every session at the database", c.rounds.Load())
	conn, err := pgx.Connect(ctx, c.plane.cluster.URL(database))
	if err != nil {
		return nil // it is away as it is
	}
	_, err = conn.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rendezvous'")
	return errors.Join(err, conn.Close(ctx))
}

// deleteAtBirth deletes every stream while a worker starts that has never seen them and makes them anew.
func (c *chaos) deleteAtBirth(ctx context.Context) error {
	w := c.plane.workers[c.rng.IntN(len(c.plane.workers))]
	c.count(w.name)
	c.say("round %d: kill %s, and delete every stream while it starts", c.rounds.Load(), w.name)
	if err := errors.Join(w.Kill(), w.Start()); err != nil {
		return err
	}
	pause(ctx, c.upTo(beforeStart))
	return errors.Join(c.deleteStreams(ctx), w.Up(ctx))
}

// choose picks one or two.
func (c *chaos) choose() []victim {
	var all []victim
	for _, w := range c.plane.workers {
		all = append(all, w)
	}
	if !c.plane.embedded {
		all = append(all, c.plane.broker, postgres{c.plane.cluster})
	}
	c.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if c.rng.Float64() < shareTwo && len(all) > 1 {
		return all[:2]
	}
	return all[:1]
}

func names(all []victim) string {
	list := make([]string, len(all))
	for i, v := range all {
		list[i] = v.Name()
	}
	return strings.Join(list, " and ")
}

// each does the same to all at once.
func each(all []victim, do func(victim) error) error {
	errs := make([]error, len(all))
	var doing sync.WaitGroup
	for i, v := range all {
		doing.Go(func() { errs[i] = do(v) })
	}
	doing.Wait()
	return errors.Join(errs...)
}

// deleteStreams takes everything JetStream has, consumers first or streams at once.
func (c *chaos) deleteStreams(ctx context.Context) error {
	consumersFirst := c.rng.IntN(2) == 0
	c.count("streams deleted")
	c.say("round %d: delete every stream, consumers first: %t", c.rounds.Load(), consumersFirst)
	ctx, cancel := context.WithTimeout(ctx, deleteLimit)
	defer cancel()
	for _, name := range c.streams(ctx) {
		if consumersFirst {
			deleteConsumers(ctx, c.plane.js, name)
		}
		c.deleteStream(ctx, name)
	}
	return nil
}

// deleteOne takes one stream, or the consumers of one and leaves its messages.
func (c *chaos) deleteOne(ctx context.Context) error {
	stream, pick := c.rng.IntN(2) == 0, c.rng.Float64()
	ctx, cancel := context.WithTimeout(ctx, deleteLimit)
	defer cancel()
	list := c.streams(ctx)
	if len(list) == 0 {
		return nil
	}
	name := list[int(pick*float64(len(list)))]
	c.count("one stream or its consumers deleted")
	c.say("round %d: delete %s, stream too: %t", c.rounds.Load(), name, stream)
	if stream {
		c.deleteStream(ctx, name)
	} else {
		deleteConsumers(ctx, c.plane.js, name)
	}
	return nil
}

// streams are the names of those there are; none while the broker is away.
func (c *chaos) streams(ctx context.Context) []string {
	var list []string
	for name := range c.plane.js.StreamNames(ctx).Name() {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// deleteStream takes one. What is gone already, or cannot be asked for because the broker is away, is no error.
func (c *chaos) deleteStream(ctx context.Context, name string) {
	if err := c.plane.js.DeleteStream(ctx, name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		c.say("stream %s was not deleted: %v", name, err)
	}
}

func deleteConsumers(ctx context.Context, js jetstream.JetStream, name string) {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return
	}
	for consumer := range stream.ConsumerNames(ctx).Name() {
		_ = stream.DeleteConsumer(ctx, consumer) // whatever is left goes with the stream
	}
}

// pause waits, and reports whether ctx still lasts.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
