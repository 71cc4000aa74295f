package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// write is one statement of an Apply.
type write struct {
	sql  string
	args []any
	// rows is how many rows the statement must touch; a difference means that one of them moved on since it was read. judge is false where any number does.
	rows  int
	judge bool
	read  func(rows pgx.Rows) error // of a statement that answers rows
}

// writes gathers the statements of one Apply in the order of locks (R7): shards, workflows and runs, events by number with new ones by identity, waits, timers,
// marks, push registrations. A record that copies an event's payload comes before that is shed, and timers and marks that go before those that come.
type writes []write

func (w *writes) add(sql string, rows int, judge bool, args ...any) {
	if rows > 0 {
		*w = append(*w, write{sql: sql, args: args, rows: rows, judge: judge})
	}
}

// Apply implements [backend.Tx].
func (t *transaction) Apply(ctx context.Context, c *backend.Changes) error {
	var w writes
	w.shards(c)
	w.insertFlows(c)
	w.updateFlows(c, t.locked)
	w.insertEvents(c.NewEvents)
	w.insertRecords(c)
	w.updateEvents(c.Events, t.loaded)
	w.deleteWaits(c.GoneWaits)
	w.insertWaits(c.NewWaits)
	w.updateWaits(c.Waits)
	w.timers(c)
	w.insertBatches(c.NewBatches)
	w.marks(c)
	w.pushes(c)
	w.prune(c)
	return t.send(ctx, w)
}

// send sends all statements in one pipeline and judges each by its rows. A failed one makes the server skip those behind it.
func (t *transaction) send(ctx context.Context, w writes) error {
	if len(w) == 0 {
		return nil
	}
	var batch pgx.Batch
	for _, s := range w {
		batch.Queue(s.sql, s.args...)
	}
	results := t.conn.SendBatch(ctx, &batch)
	stale := false
	for _, s := range w {
		tag, err := s.exec(results)
		if err != nil {
			_ = results.Close() // answers the same error
			return translate(err)
		}
		stale = stale || s.judge && tag.RowsAffected() != int64(s.rows)
	}
	if err := results.Close(); err != nil {
		return translate(err)
	}
	if stale {
		return backend.ErrStale
	}
	return nil
}

// exec takes up the statement's result.
func (s write) exec(results pgx.BatchResults) (pgconn.CommandTag, error) {
	if s.read == nil {
		return results.Exec()
	}
	rows, err := results.Query()
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	err = s.read(rows)
	rows.Close()
	return rows.CommandTag(), err
}

// sorted is rows in the order in which they are locked.
func sorted[T any](rows []*T, compare func(a, b *T) int) []*T {
	if slices.IsSortedFunc(rows, compare) {
		return rows
	}
	rows = slices.Clone(rows)
	slices.SortFunc(rows, compare)
	return rows
}

func byNumber(a, b *backend.Event) int { return cmp.Compare(a.Number, b.Number) }

func byIdentity(a, b *backend.Event) int { return a.Key().Compare(b.Key()) }

func byPlace(a, b *backend.Wait) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Number, b.Number))
}

func byFlow(a, b *backend.Workflow) int { return a.Key().Compare(b.Key()) }

func byRun(a, b *backend.Run) int { return a.Key().Compare(b.Key()) }

func byMark(a, b *backend.Woken) int { return a.Key().Compare(b.Key()) }
