package sqlite_test

import (
	"fmt"
	"path/filepath"
	"sync/atomic"

	zombie "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

// damage changes rows by SQL on a connection of its own, past every law.
type damage struct{ dir string }

var _ storetest.Damage = damage{}

// step is a statement with its parameters; one that must touch exactly one row says what it looks for.
type step struct {
	sql  string
	args []any
	one  string
}

// do runs steps in one transaction.
func (d damage) do(steps ...step) (err error) {
	conn, err := zombie.OpenConn(filepath.Join(d.dir, "rendezvous.db"), zombie.OpenReadWrite)
	if err != nil {
		return err
	}
	defer func() {
		if closing := conn.Close(); err == nil {
			err = closing
		}
	}()
	for _, pragma := range []string{"PRAGMA ignore_check_constraints = ON", "PRAGMA wal_autocheckpoint = 0"} {
		if err := sqlitex.ExecuteTransient(conn, pragma, nil); err != nil {
			return err
		}
	}
	end, err := sqlitex.ImmediateTransaction(conn)
	if err != nil {
		return err
	}
	defer end(&err)
	for _, s := range steps {
		if err := sqlitex.ExecuteTransient(conn, s.sql, &sqlitex.ExecOptions{Args: s.args}); err != nil {
			return fmt.Errorf("%s: %w", s.sql, err)
		}
		if s.one != "" && conn.Changes() != 1 {
			return fmt.Errorf("no %s (%d rows)", s.one, conn.Changes())
		}
	}
	return nil
}

func (d damage) Minter(tenant string, id rendezvous.EventID) error {
	return d.do(step{
		`UPDATE events SET minted_actor = 'kim', minted_basis = '' WHERE tenant = ? AND source = ? AND id = ?`,
		[]any{tenant, id.Source, id.ID},
		fmt.Sprintf("event %v in %s", id, tenant),
	})
}

func (d damage) Event(tenant string, id rendezvous.EventID) error {
	return d.do(step{
		`UPDATE events SET keys = '[["half a key"]]' WHERE tenant = ? AND source = ? AND id = ?`,
		[]any{tenant, id.Source, id.ID},
		fmt.Sprintf("event %v in %s", id, tenant),
	})
}

func (d damage) Wait(tenant string, id rendezvous.WaitID) error {
	return d.do(step{
		`UPDATE waits SET keys = '[["half a key"]]' WHERE tenant = ? AND run_id = ? AND effect = ?`,
		[]any{tenant, id.RunID, id.Effect},
		fmt.Sprintf("wait %v in %s", id, tenant),
	})
}

func (d damage) Timer(tenant, workflowID, timerID string) error {
	return d.do(step{
		`UPDATE timers SET armed_seq = -1 WHERE tenant = ? AND workflow_id = ? AND timer_id = ?`,
		[]any{tenant, workflowID, timerID},
		fmt.Sprintf("timer %q of %q in %s", timerID, workflowID, tenant),
	})
}

func (d damage) Push(tenant, run, id string) error {
	return d.do(step{
		`UPDATE push_registrations SET settings = x'00' WHERE tenant = ? AND run_id = ? AND id = ?`,
		[]any{tenant, run, id},
		fmt.Sprintf("registration %q of run %q in %s", id, run, tenant),
	})
}

func (d damage) Lease(tenant, workflowID string) error {
	return d.do(step{
		`UPDATE workflows SET lease_epoch = -1 WHERE tenant = ? AND workflow_id = ?`, []any{tenant, workflowID}, fmt.Sprintf("workflow %q in %s", workflowID, tenant),
	})
}

func (d damage) Record(tenant, workflowID string, seq int64) error {
	return d.do(step{
		`UPDATE history SET data = '{' WHERE tenant = ? AND workflow_id = ? AND seq = ?`,
		[]any{tenant, workflowID, seq},
		fmt.Sprintf("record %d of %q in %s", seq, workflowID, tenant),
	})
}

func (d damage) Rewrite(tenant, workflowID string, seq int64, kind rendezvous.Kind, v int, data string) error {
	return d.do(step{
		`UPDATE history SET kind = ?, v = ?, data = ? WHERE tenant = ? AND workflow_id = ? AND seq = ?`,
		[]any{string(kind), v, data, tenant, workflowID, seq},
		fmt.Sprintf("record %d of %q in %s", seq, workflowID, tenant),
	})
}

func (d damage) Link(tenant, run, previous string) error {
	return d.do(step{
		`UPDATE runs SET previous_run = ? WHERE tenant = ? AND run_id = ?`, []any{previous, tenant, run}, fmt.Sprintf("run %q in %s", run, tenant),
	})
}

func (d damage) LoseWait(tenant string, id rendezvous.WaitID) error {
	args := []any{tenant, id.RunID, id.Effect}
	return d.do(
		step{sql: `DELETE FROM wait_keys WHERE number IN (SELECT number FROM waits WHERE tenant = ? AND run_id = ? AND effect = ?)`, args: args},
		step{`DELETE FROM waits WHERE tenant = ? AND run_id = ? AND effect = ?`, args, fmt.Sprintf("wait %v in %s", id, tenant)},
	)
}

var keeps atomic.Int64

// Keep copies the rows to tables of their own.
func (d damage) Keep(tenant string, id rendezvous.WaitID) (restore func() error, err error) {
	name := fmt.Sprintf("kept_%d", keeps.Add(1))
	err = d.do(
		step{sql: `CREATE TABLE ` + name + ` AS SELECT * FROM waits WHERE false`},
		step{
			`INSERT INTO ` + name + ` SELECT * FROM waits WHERE tenant = ? AND run_id = ? AND effect = ?`,
			[]any{tenant, id.RunID, id.Effect},
			fmt.Sprintf("wait %v in %s", id, tenant),
		},
		step{sql: `CREATE TABLE ` + name + `_event AS SELECT e.* FROM events e JOIN ` + name + ` w ON e.number = w.held_number`},
	)
	restore = func() error {
		standing := `SELECT w.number FROM waits w JOIN ` + name + ` k ON (w.tenant, w.run_id, w.effect) = (k.tenant, k.run_id, k.effect)`
		return d.do(
			step{sql: `DELETE FROM wait_keys WHERE number IN (` + standing + `)`},
			step{sql: `DELETE FROM waits WHERE number IN (` + standing + `)`},
			step{sql: `INSERT INTO waits SELECT * FROM ` + name},
			step{sql: `INSERT INTO wait_keys SELECT w.tenant, p.value ->> 0, p.value ->> 1, w.type, w.number, w.open_since
				FROM ` + name + ` w, json_each(w.keys) p WHERE w.held_number IS NULL`},
			// The event comes back under a version that nobody has read.
			step{sql: `UPDATE ` + name + `_event AS k SET version = (SELECT e.version + 1 FROM events e WHERE e.number = k.number)`},
			step{sql: `DELETE FROM event_keys WHERE number IN (SELECT number FROM ` + name + `_event)`},
			step{sql: `DELETE FROM events WHERE number IN (SELECT number FROM ` + name + `_event)`},
			step{sql: `INSERT INTO events SELECT * FROM ` + name + `_event`},
		)
	}
	return restore, err
}

// KeepTimer copies the row to a table of its own.
func (d damage) KeepTimer(tenant, workflowID, timerID string) (restore func() error, err error) {
	name := fmt.Sprintf("kept_%d", keeps.Add(1))
	args := []any{tenant, workflowID, timerID}
	const which = ` WHERE tenant = ? AND workflow_id = ? AND timer_id = ?`
	err = d.do(
		step{sql: `CREATE TABLE ` + name + ` AS SELECT * FROM timers WHERE false`},
		step{`INSERT INTO ` + name + ` SELECT * FROM timers` + which, args, fmt.Sprintf("timer %v", args)},
	)
	restore = func() error {
		return d.do(step{sql: `DELETE FROM timers` + which, args: args}, step{sql: `INSERT INTO timers SELECT * FROM ` + name})
	}
	return restore, err
}

func (d damage) StrayTimer(tenant, workflowID, timerID, to string) error {
	args := []any{to, tenant, workflowID, timerID}
	return d.do(step{`UPDATE timers SET workflow_id = ? WHERE tenant = ? AND workflow_id = ? AND timer_id = ?`, args, fmt.Sprintf("timer %v", args)})
}
