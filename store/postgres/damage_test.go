package postgres_test

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

// damage changes rows by SQL, past every law: a constraint that would keep it from doing so is dropped.
type damage struct {
	url string
	// done is told once that the store is fit for no other case.
	done *atomic.Bool
}

var _ storetest.Damage = damage{}

// step is a statement with its parameters; one that must touch exactly one row says what it looks for.
type step struct {
	sql  string
	args []any
	one  string
}

// do runs steps in one transaction.
func (d damage) do(steps ...step) error {
	d.done.Store(true)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, d.url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		for _, s := range steps {
			tag, err := tx.Exec(ctx, s.sql, s.args...)
			if err != nil {
				return fmt.Errorf("%s: %w", s.sql, err)
			}
			if s.one != "" && tag.RowsAffected() != 1 {
				return fmt.Errorf("no %s (%d rows)", s.one, tag.RowsAffected())
			}
		}
		return nil
	})
}

func (d damage) Minter(tenant string, id rendezvous.EventID) error {
	return d.do(
		step{sql: `ALTER TABLE events DROP CONSTRAINT IF EXISTS events_minted`},
		step{
			`UPDATE events SET minted_actor = 'kim', minted_basis = '' WHERE tenant = $1 AND source = $2 AND id = $3`,
			[]any{tenant, id.Source, id.ID},
			fmt.Sprintf("event %v in %s", id, tenant),
		})
}

func (d damage) Event(tenant string, id rendezvous.EventID) error {
	return d.do(
		step{sql: `ALTER TABLE events DROP CONSTRAINT IF EXISTS events_keys`},
		step{
			`UPDATE events SET keys = keys || ARRAY['half a key'] WHERE tenant = $1 AND source = $2 AND id = $3`,
			[]any{tenant, id.Source, id.ID},
			fmt.Sprintf("event %v in %s", id, tenant),
		})
}

func (d damage) Wait(tenant string, id rendezvous.WaitID) error {
	return d.do(
		step{sql: `ALTER TABLE waits DROP CONSTRAINT IF EXISTS waits_keys`},
		step{
			`UPDATE waits SET keys = keys || ARRAY['half a key'] WHERE tenant = $1 AND run_id = $2 AND effect = $3`,
			[]any{tenant, id.RunID, id.Effect},
			fmt.Sprintf("wait %v in %s", id, tenant),
		})
}

func (d damage) Timer(tenant, workflowID, timerID string) error {
	return d.do(
		step{sql: `ALTER TABLE timers DROP CONSTRAINT IF EXISTS timers_counts`},
		step{
			`UPDATE timers SET armed_seq = -1 WHERE tenant = $1 AND workflow_id = $2 AND timer_id = $3`,
			[]any{tenant, workflowID, timerID},
			fmt.Sprintf("timer %q of %q in %s", timerID, workflowID, tenant),
		})
}

func (d damage) Push(tenant, run, id string) error {
	return d.do(step{
		`UPDATE push_registrations SET settings = '\x00' WHERE tenant = $1 AND run_id = $2 AND id = $3`,
		[]any{tenant, run, id},
		fmt.Sprintf("registration %q of run %q in %s", id, run, tenant),
	})
}

func (d damage) Lease(tenant, workflowID string) error {
	return d.do(
		step{sql: `ALTER TABLE workflows DROP CONSTRAINT IF EXISTS workflows_lease`},
		step{
			`UPDATE workflows SET lease_epoch = -1 WHERE tenant = $1 AND workflow_id = $2`,
			[]any{tenant, workflowID},
			fmt.Sprintf("workflow %q in %s", workflowID, tenant),
		})
}

func (d damage) Record(tenant, workflowID string, seq int64) error {
	return d.do(step{
		`UPDATE history SET data = '{' WHERE tenant = $1 AND workflow_id = $2 AND seq = $3`,
		[]any{tenant, workflowID, seq},
		fmt.Sprintf("record %d of %q in %s", seq, workflowID, tenant),
	})
}

func (d damage) Rewrite(tenant, workflowID string, seq int64, kind rendezvous.Kind, v int, data string) error {
	return d.do(step{
		`UPDATE history SET kind = $4, v = $5, data = $6 WHERE tenant = $1 AND workflow_id = $2 AND seq = $3`,
		[]any{tenant, workflowID, seq, string(kind), v, data},
		fmt.Sprintf("record %d of %q in %s", seq, workflowID, tenant),
	})
}

func (d damage) Link(tenant, run, previous string) error {
	return d.do(step{
		`UPDATE runs SET previous_run = $3 WHERE tenant = $1 AND run_id = $2`, []any{tenant, run, previous}, fmt.Sprintf("run %q in %s", run, tenant),
	})
}

func (d damage) LoseWait(tenant string, id rendezvous.WaitID) error {
	return d.do(
		step{sql: `DELETE FROM wait_keys USING waits w WHERE w.tenant = $1 AND w.run_id = $2 AND w.effect = $3
			AND wait_keys.tenant = w.tenant AND wait_keys.number = w.number`, args: []any{tenant, id.RunID, id.Effect}},
		step{
			`DELETE FROM waits WHERE tenant = $1 AND run_id = $2 AND effect = $3`, []any{tenant, id.RunID, id.Effect}, fmt.Sprintf("wait %v in %s", id, tenant),
		})
}

var keeps atomic.Int64

// Keep copies the rows to tables of their own.
func (d damage) Keep(tenant string, id rendezvous.WaitID) (restore func() error, err error) {
	name := fmt.Sprintf("kept_%d", keeps.Add(1))
	err = d.do(
		step{sql: `CREATE TABLE ` + name + ` AS SELECT * FROM waits WITH NO DATA`},
		step{
			`INSERT INTO ` + name + ` SELECT * FROM waits WHERE tenant = $1 AND run_id = $2 AND effect = $3`,
			[]any{tenant, id.RunID, id.Effect},
			fmt.Sprintf("wait %v in %s", id, tenant),
		},
		step{sql: `CREATE TABLE ` + name + `_event AS SELECT e.* FROM events e JOIN ` + name + ` w ON e.number = w.held_number`},
	)
	restore = func() error {
		keys := func(table, from, where, since string) string {
			return `INSERT INTO ` + table + ` SELECT r.tenant, r.keys[p], r.keys[p + 1], r.type, r.number, r.` + since + ` FROM ` + from +
				` r, generate_series(1, cardinality(r.keys), 2) p WHERE ` + where
		}
		return d.do(
			step{sql: `DELETE FROM wait_keys USING waits w, ` + name + ` k WHERE (w.tenant, w.run_id, w.effect) = (k.tenant, k.run_id, k.effect)
				AND (wait_keys.tenant, wait_keys.number) = (w.tenant, w.number)`},
			step{sql: `DELETE FROM waits w USING ` + name + ` k WHERE (w.tenant, w.run_id, w.effect) = (k.tenant, k.run_id, k.effect)`},
			step{sql: `INSERT INTO waits SELECT * FROM ` + name},
			step{sql: keys("wait_keys", name, "r.held_number IS NULL", "open_since")},
			// The event comes back under a version that nobody has read.
			step{sql: `UPDATE ` + name + `_event k SET version = e.version + 1 FROM events e WHERE e.number = k.number`},
			step{sql: `DELETE FROM event_keys i USING ` + name + `_event k WHERE i.number = k.number`},
			step{sql: `DELETE FROM events e USING ` + name + `_event k WHERE e.number = k.number`},
			step{sql: `INSERT INTO events SELECT * FROM ` + name + `_event`},
		)
	}
	return restore, err
}

// KeepTimer copies the row to a table of its own.
func (d damage) KeepTimer(tenant, workflowID, timerID string) (restore func() error, err error) {
	name := fmt.Sprintf("kept_%d", keeps.Add(1))
	args := []any{tenant, workflowID, timerID}
	const which = ` WHERE tenant = $1 AND workflow_id = $2 AND timer_id = $3`
	err = d.do(
		step{sql: `CREATE TABLE ` + name + ` AS SELECT * FROM timers WITH NO DATA`},
		step{`INSERT INTO ` + name + ` SELECT * FROM timers` + which, args, fmt.Sprintf("timer %v", args)},
	)
	restore = func() error {
		return d.do(step{sql: `DELETE FROM timers` + which, args: args}, step{sql: `INSERT INTO timers SELECT * FROM ` + name})
	}
	return restore, err
}

func (d damage) StrayTimer(tenant, workflowID, timerID, to string) error {
	args := []any{tenant, workflowID, timerID, to}
	return d.do(step{`UPDATE timers SET workflow_id = $4 WHERE tenant = $1 AND workflow_id = $2 AND timer_id = $3`, args, fmt.Sprintf("timer %v", args)})
}
