package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Tests move the store's now by a table of one row that only [ShiftClock] and [StopClock] make, together with a rdv_now() that reads it. A store that has the
// table is for tests: Open refuses it unless it is told that this is one, so that no production store ever runs on a shifted clock.
const (
	shiftTable = `CREATE TABLE IF NOT EXISTS rdv_clock (
	one boolean PRIMARY KEY DEFAULT true CHECK (one),
	stopped_at timestamptz, -- where the clock stands; NULL while it runs
	shift interval NOT NULL DEFAULT '0'
)`
	// PL/pgSQL keeps the plan of its query in the session; a function in SQL that cannot be inlined is planned at every call.
	shiftedNow = `CREATE OR REPLACE FUNCTION rdv_now() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS
$$ BEGIN RETURN (SELECT coalesce(max(stopped_at), clock_timestamp()) + coalesce(max(shift), '0') FROM rdv_clock); END $$`
	shiftRow  = `INSERT INTO rdv_clock DEFAULT VALUES ON CONFLICT DO NOTHING`
	shiftBy   = `UPDATE rdv_clock SET shift = shift + $1 * interval '1 microsecond'`
	stopClock = `UPDATE rdv_clock SET stopped_at = clock_timestamp() WHERE stopped_at IS NULL`
)

// ShiftClock is for tests: it moves the store's now at url by d, forward or back, for every connection at once. Shifts add up. A store once shifted opens
// only with Config.TestClock.
func ShiftClock(ctx context.Context, url string, d time.Duration) error {
	return onTestClock(ctx, url, shiftBy, d.Microseconds())
}

// StopClock is for tests: from here on the store's now at url moves by [ShiftClock] alone. Stopping it again does nothing.
func StopClock(ctx context.Context, url string) error { return onTestClock(ctx, url, stopClock) }

func onTestClock(ctx context.Context, url, sql string, args ...any) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return translate(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // what was committed is committed
	var there bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass('rdv_clock') IS NOT NULL").Scan(&there); err != nil {
		return translate(err)
	}
	if !there {
		if err := makeTestClock(ctx, conn); err != nil {
			return err
		}
	}
	_, err = conn.Exec(ctx, sql, args...)
	return translate(err)
}

func makeTestClock(ctx context.Context, conn *pgx.Conn) error {
	return translate(pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// Two who shift at once must not both make the table.
		for _, sql := range [...]string{"SELECT pg_advisory_xact_lock(hashtextextended('rdv_clock', 0))", shiftTable, shiftedNow, shiftRow} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	}))
}
