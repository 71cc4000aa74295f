package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// punctuality is what became of the armings, and how late those fired that no driver held up.
type punctuality struct {
	outcomes  string
	lateness  string
	takeovers []takeover
}

// takeover is how long what was due waited after a disturbance, when nothing else was done meanwhile.
type takeover struct{ what, text string }

const (
	outcomesSQL = `SELECT class || ' ' || coalesce(how, 'pending'), count(*) FROM soak.armings GROUP BY 1 ORDER BY 1`

	latenessSQL = `SELECT count(*), percentile_cont(ARRAY[0.5, 0.99, 1]) WITHIN GROUP (ORDER BY extract(epoch FROM ended_at - due)) FROM soak.fired`

	// Of each disturbance: the longest that anything waited which was due when it came or while the leases last that it left, if no other came meanwhile.
	takeoversSQL = `SELECT what, count(*), percentile_cont(ARRAY[0.5, 0.99, 1]) WITHIN GROUP (ORDER BY extract(epoch FROM longest)) FROM (
		SELECT d.what, d.ended, max(f.ended_at - greatest(f.due, d.ended)) AS longest, max(f.ended_at) AS last
		FROM soak.disturbances d JOIN soak.fired f ON f.due < d.ended + interval '3 s' AND f.ended_at > d.ended
		GROUP BY d.what, d.ended) d
		WHERE NOT EXISTS (SELECT FROM soak.disturbances o WHERE o.ended > d.ended AND o.began < d.last)
		GROUP BY what ORDER BY what`
)

func (v *verifier) punctuality(ctx context.Context) (p punctuality, err error) {
	rows, err := v.conn.Query(ctx, outcomesSQL)
	if err != nil {
		return p, err
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (text string, err error) {
		var name string
		var n int
		err = row.Scan(&name, &n)
		return fmt.Sprintf("%s %d", name, n), err
	})
	if err != nil {
		return p, err
	}
	p.outcomes = strings.Join(all, ", ")
	var n int
	var seconds []float64
	if err := v.conn.QueryRow(ctx, latenessSQL).Scan(&n, &seconds); err != nil {
		return p, err
	}
	p.lateness = spread(n, seconds)
	if rows, err = v.conn.Query(ctx, takeoversSQL); err != nil {
		return p, err
	}
	p.takeovers, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (t takeover, err error) {
		err = row.Scan(&t.what, &n, &seconds)
		t.text = spread(n, seconds)
		return t, err
	})
	return p, err
}

// spread tells p50, p99 and max.
func spread(n int, seconds []float64) string {
	if len(seconds) < 3 {
		return "nothing"
	}
	at := func(i int) time.Duration {
		return time.Duration(seconds[i] * float64(time.Second)).Round(time.Millisecond)
	}
	return fmt.Sprintf("p50 %s, p99 %s, at most %s (of %d)", at(0), at(1), at(2), n)
}
