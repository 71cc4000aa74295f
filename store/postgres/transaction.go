package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

// reader reads in one transaction.
type reader struct {
	conn   *pgx.Conn
	now    time.Time
	shards int                     // N
	loaded map[int64]backend.Event // events as they were read, by number; nil where nothing will be changed
}

// transaction is one write transaction.
type transaction struct {
	reader
	locked map[backend.WorkflowKey]backend.Workflow // as they were under the lock
}

// Now implements [backend.Reader].
func (r *reader) Now() time.Time { return r.now }

// inBinary asks for every column in binary format, which [columns] reads.
var inBinary = pgx.QueryResultFormats{pgx.BinaryFormatCode}

// query runs one statement and hands over its rows one by one; what a row's bytes are decoded to must not keep them.
func (r *reader) query(ctx context.Context, sql string, fn func(c *columns) error, args ...any) error {
	rows, err := r.conn.Query(ctx, sql, append([]any{inBinary}, args...)...)
	if err != nil {
		return translate(err)
	}
	defer rows.Close()
	return translate(each(rows, fn))
}

// each reads rows. What is not a text has to come in binary format.
func each(rows pgx.Rows, fn func(c *columns) error) error {
	if err := rows.Err(); err != nil { // of a batch that broke off before its turn: such rows know no columns
		return err
	}
	src := &source{fields: rows.FieldDescriptions()}
	c := row.New(src)
	for rows.Next() {
		src.raw, src.at = rows.RawValues(), 0
		c.Next()
		if err := fn(c); err != nil {
			return err
		}
	}
	return rows.Err()
}

// The two kinds of transactions. A view of several statements sees one snapshot.
var (
	update = pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}
	view   = pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
)

// begin starts a transaction and reads the store's now, in one round trip.
func begin(ctx context.Context, conn *pgx.Conn, options pgx.TxOptions) (pgx.Tx, time.Time, error) {
	var now time.Time
	var batch pgx.Batch
	batch.BeginTx(options)
	batch.Queue(nowSQL).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
	results := conn.SendBatch(ctx, &batch)
	if err := results.Close(); err != nil {
		return nil, time.Time{}, err
	}
	return results.Tx(), now.UTC(), nil
}

// Update implements [backend.Backend].
func (b *Backend) Update(ctx context.Context, verb string, fn func(ctx context.Context, tx backend.Tx) error) error {
	return b.within(ctx, update, func(conn *pgx.Conn, tx pgx.Tx, now time.Time) error {
		if err := fn(ctx, &transaction{reader: reader{conn: conn, now: now, shards: b.shards, loaded: map[int64]backend.Event{}}}); err != nil {
			b.rollback(ctx, tx)
			return err
		}
		return b.commit(ctx, verb, tx)
	})
}

// View implements [backend.Backend].
func (b *Backend) View(ctx context.Context, _ string, fn func(ctx context.Context, r backend.Reader) error) error {
	return b.within(ctx, view, func(conn *pgx.Conn, tx pgx.Tx, now time.Time) error {
		// What was read is good however the transaction ends: nothing depends on its end.
		defer b.rollback(ctx, tx)
		return fn(ctx, &reader{conn: conn, now: now, shards: b.shards})
	})
}

// within runs fn in a transaction that fn ends. A panic of fn's takes the connection with it.
func (b *Backend) within(ctx context.Context, options pgx.TxOptions, fn func(conn *pgx.Conn, tx pgx.Tx, now time.Time) error) error {
	conn, tx, now, err := b.start(ctx, options)
	if err != nil {
		return err
	}
	defer conn.Release() // destroys a connection that is still in a transaction
	return fn(conn.Conn(), tx, now)
}

// start takes a connection and begins. A pooled connection that was lost while nobody used it says nothing of the database, and others will have been lost
// with it (a restart, a failover): then all idle ones are dropped and a fresh one is tried, once.
func (b *Backend) start(ctx context.Context, options pgx.TxOptions) (*pgxpool.Conn, pgx.Tx, time.Time, error) {
	for fresh := false; ; fresh = true {
		conn, err := b.acquire(ctx)
		if err != nil {
			return nil, nil, time.Time{}, err
		}
		tx, now, err := begin(ctx, conn.Conn(), options)
		if err == nil {
			return conn, tx, now, nil
		}
		lost := conn.Conn().IsClosed()
		conn.Release()
		if fresh || !lost || ctx.Err() != nil {
			return nil, nil, time.Time{}, translate(err)
		}
		b.pool.Reset()
	}
}

func (b *Backend) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	conn, err := b.pool.Acquire(ctx)
	if err == nil {
		return conn, nil
	}
	if b.closed.Load() {
		return nil, unavailable("the store is closed")
	}
	return nil, translate(err)
}

// rollback ends a transaction whose caller may have gone. Where it fails the driver closes the connection, and with it goes the transaction.
func (b *Backend) rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), b.clock, b.endTimeout)
	defer cancel()
	_ = tx.Rollback(ctx)
}

// commit commits. A caller that has gone before gets nothing written; one that goes now is not waited for by the COMMIT, which goes on to its answer so
// that as few callers as possible are told that nobody knows.
func (b *Backend) commit(ctx context.Context, verb string, tx pgx.Tx) error {
	if err := ctx.Err(); err != nil {
		b.rollback(ctx, tx)
		return translate(err)
	}
	ending, cancel := clock.WithTimeout(context.WithoutCancel(ctx), b.clock, b.endTimeout)
	defer cancel()
	return translateCommit(verb, tx.Commit(ending))
}

// translateCommit judges an error of COMMIT: an answer of the server says that nothing was committed, unless the session was ended under it; no answer
// says nothing.
func translateCommit(verb string, err error) error {
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return unavailable("%s: the transaction had failed before its end and was undone; try again", verb)
	case pgconn.SafeToRetry(err):
		return translate(err)
	case errors.As(err, &pg) && pg.Severity == "ERROR":
		return translate(err)
	}
	return rendezvous.Errorf(rendezvous.CodeCommitUnknown, "%s: the answer of the commit was lost, so it may or may not have been done; repeat the same call", verb).
		Because(translate(err))
}
