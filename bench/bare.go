package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	zombie "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/rendezvous-events/rendezvous/store/sqlite"
)

// What the embedded store cannot do without for one event that meets a waiting run: where its time goes at least.
var bare = []string{
	`INSERT INTO events (number, version, tenant, source, id, type, keys, digest, received_at, live_since, target, state, claim_run, claim_effect, workflow_id, run_id,
		effect, seq, dead_reason, dead_detail, erased, offer_failures, take, take_open, takes, requeues, purged, op, op_actor, op_basis, minted_actor, minted_basis, trace_parent, trace_state,
		content_type, payload)
	VALUES (?1, 1, 'bench', 'urn:bench', ?2, 'payment.received', '[["order","1"]]', zeroblob(32), 1, 1, '', 'live', '', '', '', '', '', 0, '', '', 0, 0, 0, 0, 0, 0,
		0, '', '', '', '', '', '', '', 'application/json', ?3)`,
	`INSERT INTO event_keys VALUES ('bench', 'order', ?2, 'payment.received', ?1, 1 + length(?3) * 0, NULL)`,
	`SELECT w.run_id FROM wait_keys i CROSS JOIN waits w ON w.number = i.number
	WHERE i.tenant = 'bench' AND i.namespace = 'order' AND i.value = ?2 AND i.type = 'payment.received' AND i.number >= ?1 * 0 + length(?3) * 0`,
	`SELECT head_seq FROM workflows WHERE tenant = 'bench' AND workflow_id = ?2 AND ?1 > 0 AND length(?3) > 0`,
	`UPDATE workflows SET head_seq = head_seq + 1, updated_at = ?1, open_waits = length(?3) * 0 WHERE tenant = 'bench' AND workflow_id = ?2`,
	`INSERT INTO history VALUES ('bench', ?2, 3, ?2, 'wait.answered', 1, 'pay', 1, 1, '{}', ?3, 'application/json', 'urn:bench', '', '', ?1, '')`,
	`UPDATE events SET state = 'consumed', payload = substr(?3, 1, 0), seq = 3, workflow_id = ?2, run_id = ?2, effect = 'pay' WHERE number = ?1`,
	`DELETE FROM event_keys WHERE tenant = 'bench' AND namespace = 'order' AND value = ?2 AND type = 'payment.received' AND number = ?1 AND length(?3) > 0`,
	`DELETE FROM waits WHERE number = ?1 AND run_id = ?2 AND length(?3) > 0`,
	`DELETE FROM wait_keys WHERE tenant = 'bench' AND namespace = 'order' AND value = ?2 AND type = 'payment.received' AND number = ?1 AND length(?3) > 0`,
}

// bareLoop runs those statements in batches of 500, each batch a commit, on a database of its own.
func bareLoop(ctx context.Context, b *bench) error {
	dir, err := os.MkdirTemp("", "rendezvous-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	made, err := sqlite.Open(ctx, sqlite.Config{Dir: dir})
	if err != nil {
		return err
	}
	if err := made.Close(); err != nil {
		return err
	}
	conn, err := zombie.OpenConn(filepath.Join(dir, "rendezvous.db"), zombie.OpenReadWrite)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, pragma := range []string{"journal_mode = WAL", "synchronous = FULL", "cache_size = -32000", "wal_autocheckpoint = 4000", "ignore_check_constraints = ON"} {
		if err := sqlitex.ExecuteTransient(conn, "PRAGMA "+pragma, nil); err != nil {
			return err
		}
	}
	n := b.o.events
	if err := bareWaits(conn, n); err != nil {
		return err
	}
	start := time.Now()
	if err := inBatches(conn, n, bare); err != nil {
		return err
	}
	report("bare SQL of a delivery, in batches of 500", n, time.Since(start))
	return nil
}

// bareWaits puts in place what the loop meets.
func bareWaits(conn *zombie.Conn, n int) error {
	return inBatches(conn, n, []string{
		`INSERT INTO workflows (tenant, workflow_id, shard, run_id, type, queue, status, head_seq, created_at, started_at, updated_at, parent, failure_code,
			failure_reason, failed_effect, open_effects, open_waits, lease_owner, lease_epoch, lease_ended, acquire_id, reclaims, paused_actor, paused_basis)
		VALUES ('bench', ?2, 1, ?2, 'order', 'bench', 'running', 2, 1, ?1, length(?3), '', '', '', '', 0, 1, '', 0, '', '', 0, '', '')`,
		`INSERT INTO history VALUES ('bench', ?2, 2, ?2, 'wait.registered', 1, 'pay', 1, 0, '{}', NULL, '', '', '', '', ?1, iif(?3 IS NULL, 'x', ''))`,
		`INSERT INTO waits (number, version, tenant, run_id, effect, workflow_id, shard, attempt, type, keys, from_source, trace_parent, trace_state, registered_at,
			open_since, held_source, held_id, attempts, last_error, take, take_settled, claim_number)
		VALUES (?1, 1, 'bench', ?2, 'pay', ?2, 1, 1, 'payment.received', '[["order","1"]]', iif(?3 IS NULL, 'x', ''), '', '', 1, 1, '', '', 0, '', 0, 0, 0)`,
		`INSERT INTO wait_keys VALUES ('bench', 'order', ?2, 'payment.received', ?1, length(?3))`,
	})
}

func inBatches(conn *zombie.Conn, n int, statements []string) error {
	body := []byte(payload)
	for from := 1; from <= n; from += 500 {
		if err := sqlitex.Execute(conn, "BEGIN IMMEDIATE", nil); err != nil {
			return err
		}
		for i := from; i < min(from+500, n+1); i++ {
			id := fmt.Sprint("bare-", i)
			for _, sql := range statements {
				stmt, err := conn.Prepare(sql)
				if err != nil {
					return err
				}
				stmt.BindInt64(1, int64(i))
				stmt.BindText(2, id)
				stmt.BindBytes(3, body)
				for row := true; row; {
					if row, err = stmt.Step(); err != nil {
						return err
					}
				}
				if err := stmt.Reset(); err != nil {
					return err
				}
			}
		}
		if err := sqlitex.Execute(conn, "COMMIT", nil); err != nil {
			return err
		}
	}
	return nil
}
