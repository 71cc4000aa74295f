package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// Tests move the store's now by a table of one row that only [ShiftClock] makes, together with a rdv_now() that reads it. A store that has the table is
// for tests: Open refuses it unless it is told that this is one, so that no production store ever runs on a shifted clock.
const (
	shiftTable = `CREATE TABLE IF NOT EXISTS rdv_clock (one boolean PRIMARY KEY DEFAULT true CHECK (one), shift interval NOT NULL)`
	shiftedNow = `CREATE OR REPLACE FUNCTION rdv_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS $$ SELECT clock_timestamp() + coalesce((SELECT shift FROM rdv_clock), interval '0') $$`
	shiftBy    = `INSERT INTO rdv_clock (shift) VALUES ($1 * interval '1 microsecond') ON CONFLICT (one) DO UPDATE SET shift = rdv_clock.shift + excluded.shift`
)

// ShiftClock is for tests: it moves the store's now at url by d, forward or back, for every connection at once. Shifts add up. A store once shifted opens
// only with Config.TestClock.
func ShiftClock(ctx context.Context, url string, d time.Duration) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return translate(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // what was committed is committed
	return translate(pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// Two who shift at once must not both replace the function.
		for _, sql := range [...]string{"SELECT pg_advisory_xact_lock(hashtextextended('rdv_clock', 0))", shiftTable, shiftedNow} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, shiftBy, d.Microseconds())
		return err
	}))
}
