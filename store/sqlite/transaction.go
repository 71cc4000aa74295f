package sqlite

import (
	"context"

	"zombiezen.com/go/sqlite"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// transaction is one turn with the right to change.
type transaction struct {
	reader
	counts *[kinds]counter
	locked map[backend.WorkflowKey]backend.Workflow // as they were under the lock
}

// LockWorkflows implements [backend.Tx]. The turn is the lock.
func (t *transaction) LockWorkflows(ctx context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Workflow, error) {
	rows, err := t.Workflows(ctx, keys)
	t.locked = make(map[backend.WorkflowKey]backend.Workflow, len(rows))
	for k, w := range rows {
		t.locked[k] = *w
	}
	return rows, err
}

// counter draws numbers. What may have been given is on disk before anything with such a number is, so none is given twice, whatever crashes.
type counter struct {
	last      int64 // drawn
	reserved  int64 // up to here no draw needs a write, as the open group sees it
	committed int64 // as the disk has it
}

// The kinds of numbers, and their names in the table.
const (
	eventNumber = iota
	waitNumber
	takeToken
	kinds
)

var counterNames = [kinds]string{"event", "wait", "take"}

// reserve is how many numbers are reserved at once. As many may be skipped when a process ends.
const reserve = 10_000

func readCounters(ctx context.Context, conn *sqlite.Conn) (counts [kinds]counter, err error) {
	r := &reader{conn: conn}
	for i, name := range counterNames {
		found := false
		err := r.query(ctx, "SELECT value FROM counters WHERE name = ?", func(c *columns) error {
			n := c.Count()
			counts[i], found = counter{n, n, n}, true
			return c.Corrupt("counter", "counter", name)
		}, name)
		if err != nil {
			return counts, err
		}
		if !found {
			return counts, backend.Corrupt("counter", "missing", "counter", name)
		}
	}
	return counts, nil
}

// NewEventNumbers implements [backend.Tx].
func (t *transaction) NewEventNumbers(ctx context.Context, n int) ([]int64, error) {
	return t.draw(ctx, eventNumber, n)
}

// NewWaitNumbers implements [backend.Tx].
func (t *transaction) NewWaitNumbers(ctx context.Context, n int) ([]int64, error) {
	return t.draw(ctx, waitNumber, n)
}

// NewTakes implements [backend.Tx].
func (t *transaction) NewTakes(ctx context.Context, n int) ([]int64, error) {
	return t.draw(ctx, takeToken, n)
}

// draw is n numbers above all that were drawn before. They stay drawn when the transaction is undone.
func (t *transaction) draw(ctx context.Context, kind, n int) ([]int64, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	drawn := make([]int64, max(n, 0))
	for i := range drawn {
		t.counts[kind].last++
		drawn[i] = t.counts[kind].last
	}
	return drawn, nil
}

// reserve writes how far numbers may have been given, before the transaction ends.
func (t *transaction) reserve() error {
	for i := range t.counts {
		c := &t.counts[i]
		if c.last <= c.reserved {
			continue
		}
		if _, err := t.exec("UPDATE counters SET value = ? WHERE name = ?", c.last+reserve, counterNames[i]); err != nil {
			return err
		}
		c.reserved = c.last + reserve
	}
	return nil
}
