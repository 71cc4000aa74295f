package sqlite

import (
	"cmp"
	"context"

	"zombiezen.com/go/sqlite"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// group is transactions that are committed together: one sync of the disk for all of them.
type group struct {
	members int           // transactions that succeeded in it
	done    chan struct{} // closed when the group has ended
	err     error         // how it ended; read after done
}

// Update implements [backend.Backend]. Transactions run one after the other, so that none is ever stale by another's commit; each but the first is a
// savepoint in the group that is open. Its caller then comes once more for the turn, behind all that wait already: they join the group meanwhile, and who comes first
// commits it. So a group is as large as the crowd, and a lone caller commits at once.
func (b *Backend) Update(ctx context.Context, verb string, fn func(ctx context.Context, tx backend.Tx) error) error {
	if err := b.enter(ctx); err != nil {
		return err
	}
	g, err := b.join(ctx, fn)
	b.leave()
	if g == nil {
		return err // nothing was written, and nothing it saw is undecided
	}
	select {
	case <-g.done:
	case <-b.turn:
		if b.group == g {
			b.commitGroup()
		}
		b.leave()
	}
	switch {
	case g.err == nil || err != nil && rendezvous.CodeOf(err) == rendezvous.CodeUnavailable:
		return err
	case rendezvous.CodeOf(g.err) == rendezvous.CodeCommitUnknown && err == nil:
		return rendezvous.Errorf(rendezvous.CodeCommitUnknown, "%s: the disk failed during the commit, so it may or may not have been done; repeat the same call", verb).
			Because(g.err)
	case rendezvous.CodeOf(g.err) == rendezvous.CodeCommitUnknown: // it was refused by what nobody knows
		return unavailable("the disk failed; nothing was done, try again").Because(g.err)
	}
	return g.err
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
	err := b.serves()
	if err != nil {
		b.leave()
	}
	return err
}

// serves is why nothing is served any more, nil as long as the store is open and its disk did not fail.
func (b *Backend) serves() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended
}

// end keeps the first reason for which nothing is served from here on.
func (b *Backend) end(why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended == nil {
		b.ended = why
	}
}

func (b *Backend) leave() { b.turn <- struct{}{} }

// join runs fn as a savepoint of the group. It answers the group whose end the caller has to wait for, nil for none. With the turn.
func (b *Backend) join(ctx context.Context, fn func(ctx context.Context, tx backend.Tx) error) (*group, error) {
	if b.group == nil {
		if err := b.run("BEGIN IMMEDIATE"); err != nil {
			return nil, err
		}
		b.group = &group{done: make(chan struct{})}
	}
	g, before := b.group, b.counts
	ended := false
	defer func() { // a panic of fn's must not leave its half behind
		if !ended {
			b.undo(g, before)
			b.leave() // the caller's own is not reached
		}
	}()
	err := b.savepoint(ctx, fn)
	ended = true
	if err == nil {
		g.members++
		return g, nil
	}
	if alone := b.undo(g, before); alone {
		return nil, err
	}
	return g, err
}

// savepoint runs fn and keeps what it changed. The first of a group has none: where it fails all is undone, and SQLite need not remember each page as it was.
func (b *Backend) savepoint(ctx context.Context, fn func(ctx context.Context, tx backend.Tx) error) error {
	first := b.group.members == 0
	if !first {
		if err := b.run("SAVEPOINT verb"); err != nil {
			return err
		}
	}
	tx := &transaction{reader: reader{
		conn: b.conn, prepared: b.prepared, now: rendezvous.Instant(b.clock.Now()), loaded: map[int64]backend.Event{}, recent: b.recent,
	}, counts: &b.counts}
	b.recent.changed = false
	if first {
		if err := b.recent.begin(ctx, &tx.reader); err != nil {
			return err
		}
	}
	if err := fn(ctx, tx); err != nil {
		return err
	}
	if err := alive(ctx); err != nil {
		return err
	}
	if err := tx.reserve(); err != nil {
		return err
	}
	if b.conn.AutocommitEnabled() { // fn took no notice of an error that ended the transaction
		return unavailable("the store gave the transaction up; nothing was done, try again")
	}
	if first {
		return nil
	}
	return b.run("RELEASE verb")
}

// undo takes back what the savepoint changed, and what it reserved of the numbers, and reports whether the group ended with it, because it has no other
// member. Some errors (a full disk, a failing one) make SQLite undo the whole transaction: then the group is lost.
func (b *Backend) undo(g *group, before [kinds]counter) (alone bool) {
	if b.recent.changed {
		b.recent.forget()
	}
	alone = g.members == 0
	lost := b.conn.AutocommitEnabled()
	if !lost && !alone && b.run("ROLLBACK TO verb") == nil && b.run("RELEASE verb") == nil {
		for i := range b.counts {
			b.counts[i].reserved = before[i].reserved
		}
		return false
	}
	if !alone {
		b.recent.forget()
	}
	if !lost {
		_ = b.run("ROLLBACK") // nobody is told that anything was done
	}
	b.endGroup(unavailable("the store's disk is full or failing; nothing was done, try again"))
	return alone
}

// commitGroup commits what is open. With the turn.
func (b *Backend) commitGroup() {
	if b.group == nil {
		return
	}
	raw := b.runRaw("COMMIT")
	b.syncs++
	if raw == nil {
		for i := range b.counts {
			b.counts[i].committed = b.counts[i].reserved
		}
		b.endGroup(nil)
		b.foldWAL()
		return
	}
	b.recent.forget()
	err := translate(raw)
	if sqlite.ErrCode(raw).ToPrimary() == sqlite.ResultIOErr {
		// The WAL may hold the commit or may not; only reading it anew tells, and a reader may see it and it be gone after that.
		b.end(unavailable("the store's disk failed during a commit; open the store again").Because(err))
		err = rendezvous.Errorf(rendezvous.CodeCommitUnknown, "the disk failed during the commit").Because(err)
	}
	if !b.conn.AutocommitEnabled() {
		_ = b.run("ROLLBACK") // its error says no more than that of the commit
	}
	b.endGroup(err)
}

// endGroup tells all members how the group ended.
func (b *Backend) endGroup(err error) {
	g := b.group
	if g == nil {
		return
	}
	if err != nil || g.members == 0 {
		for i := range b.counts {
			b.counts[i].reserved = b.counts[i].committed
		}
	}
	g.err, b.group = err, nil
	close(g.done)
}

// run runs a statement without parameters and rows.
func (b *Backend) run(sql string) error { return translate(b.runRaw(sql)) }

func (b *Backend) runRaw(sql string) error {
	stmt, err := b.conn.Prepare(sql)
	if err != nil {
		return err
	}
	_, err = stmt.Step()
	if reset := stmt.Reset(); err == nil {
		err = reset
	}
	return err
}

// preparedOf are the statements of a connection that reads.
func (b *Backend) preparedOf(conn *sqlite.Conn) prepared {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.reading[conn]
	if p == nil {
		p = prepared{}
		b.reading[conn] = p
	}
	return p
}

// View implements [backend.Backend].
func (b *Backend) View(ctx context.Context, _ string, fn func(ctx context.Context, r backend.Reader) error) error {
	if err := cmp.Or(alive(ctx), b.serves()); err != nil {
		return err
	}
	conn, err := b.readers.Take(ctx)
	if err != nil { // the pool may have been closed meanwhile
		return cmp.Or(alive(ctx), b.serves(), translate(err))
	}
	defer b.readers.Put(conn)
	r := &reader{conn: conn, prepared: b.preparedOf(conn), now: rendezvous.Instant(b.clock.Now())}
	if _, err := r.exec("BEGIN"); err != nil {
		return err
	}
	defer func() {
		conn.SetInterrupt(nil) // the end must not be given up
		_, _ = r.exec("ROLLBACK")
	}()
	return fn(ctx, r)
}
