// Package memory is the simplest storage engine: maps and ordered sets under one lock. It keeps nothing beyond the process.
//
// It is the executable specification of store/backend: one transaction at a time, so there is nothing to race with; every index stands beside its
// rows and is kept by the same two functions per kind of row (link and unlink, in tables.go and link.go), so a page costs its result and not what is finished.
// What a transaction may not do by the protocol of store/backend (changing a workflow it did not lock, locking twice, applying twice) is an error
// here, even where a single writer would come to no harm.
package memory

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Backend is an in-memory [backend.Backend], safe for concurrent use.
type Backend struct {
	clock  clock.Clock
	shards int
	turn   chan struct{} // holds one token: who took it has the tables
	closed bool          // under turn
	tables tables        // under turn
}

var _ backend.Backend = (*Backend)(nil)

// Open makes an empty backend whose now is c's, in whole microseconds.
func Open(c clock.Clock, shards int) *Backend {
	b := &Backend{clock: c, shards: shards, turn: make(chan struct{}, 1), tables: newTables()}
	b.turn <- struct{}{}
	return b
}

// Shards implements [backend.Backend].
func (b *Backend) Shards() int { return b.shards }

// Update implements [backend.Backend]. Transactions run one after the other, so that none is ever stale by another's commit.
func (b *Backend) Update(ctx context.Context, _ string, fn func(ctx context.Context, tx backend.Tx) error) error {
	if err := b.enter(ctx); err != nil {
		return err
	}
	defer b.leave()
	tx := &transaction{reader: b.reader()}
	if err := fn(ctx, tx); err != nil {
		return err
	}
	if err := alive(ctx); err != nil {
		return err
	}
	tx.commit()
	return nil
}

// View implements [backend.Backend].
func (b *Backend) View(ctx context.Context, _ string, fn func(ctx context.Context, r backend.Reader) error) error {
	if err := b.enter(ctx); err != nil {
		return err
	}
	defer b.leave()
	r := b.reader()
	return fn(ctx, &r)
}

// Ping implements [backend.Backend].
func (b *Backend) Ping(ctx context.Context) error {
	if err := b.enter(ctx); err != nil {
		return err
	}
	b.leave()
	return nil
}

// Close waits for the transaction under way; what comes later is refused as unavailable. What was stored is gone.
func (b *Backend) Close() error {
	<-b.turn
	b.closed, b.tables = true, tables{}
	b.leave()
	return nil
}

// enter waits for the turn.
func (b *Backend) enter(ctx context.Context) error {
	if err := alive(ctx); err != nil {
		return err
	}
	select {
	case <-b.turn:
	case <-ctx.Done():
		return alive(ctx)
	}
	if b.closed {
		b.leave()
		return rendezvous.Errorf(rendezvous.CodeUnavailable, "the store is closed")
	}
	return nil
}

func (b *Backend) leave() { b.turn <- struct{}{} }

func (b *Backend) reader() reader {
	return reader{tables: &b.tables, now: rendezvous.Instant(b.clock.Now())}
}

// alive is unavailable once ctx is done: nothing was written and the caller has gone.
func alive(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return rendezvous.Errorf(rendezvous.CodeUnavailable, "the call was given up before it was done").Because(context.Cause(ctx))
}

// reader reads the tables during one turn.
type reader struct {
	*tables
	now time.Time
}

// Now implements [backend.Reader].
func (r *reader) Now() time.Time { return r.now }
