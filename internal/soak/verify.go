package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Each check is a query that finds what must not be: one text column, the keys of an offending row. Its first line says which promise it holds the
// store to.
//
//go:embed checks/*.sql
var checkFiles embed.FS

//go:embed ledger.sql
var ledgerSQL string

// settling are the checks that hold only once the plane has come to rest, in the order in which it does.
var settling = []string{"run_not_completed", "lease_left_standing", "claim_left_standing", "pair_left_apart", "arming_without_outcome"}

const shown = 8 // offending rows of a check that are printed

// finding is a check that found something.
type finding struct {
	check   string
	promise string
	keys    []string
}

func (f finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d rows\n    %s\n", f.check, len(f.keys), f.promise)
	for _, k := range f.keys[:min(len(f.keys), shown)] {
		fmt.Fprintf(&b, "    - %s\n", k)
	}
	return b.String()
}

// verifier asks the store.
type verifier struct {
	judged func(ctx context.Context) (url string, err error)
	anew   bool // each look is at another database
	ledger *ledger
	conn   *pgx.Conn
	say    func(format string, args ...any)
}

// newVerifier has yet to look.
func newVerifier(judged func(context.Context) (string, error), anew bool, l *ledger, say func(string, ...any)) *verifier {
	return &verifier{judged: judged, anew: anew, ledger: l, say: say}
}

func (v *verifier) close(ctx context.Context) {
	if v.conn != nil {
		_ = v.conn.Close(ctx)
	}
}

// look connects to what is judged: the store itself, or, anew each time, a copy of the embedded one.
func (v *verifier) look(ctx context.Context) error {
	if v.conn != nil && !v.anew {
		return nil
	}
	v.close(ctx)
	url, err := v.judged(ctx)
	if err != nil {
		return err
	}
	if v.conn, err = pgx.Connect(ctx, url); err != nil {
		return err
	}
	return v.load(ctx)
}

// load puts the ledger beside the store's tables.
func (v *verifier) load(ctx context.Context) error {
	if _, err := v.conn.Exec(ctx, ledgerSQL); err != nil {
		return err
	}
	for _, t := range v.ledger.tables() {
		if _, err := v.conn.CopyFrom(ctx, pgx.Identifier{"soak", t.name}, t.columns, pgx.CopyFromRows(t.rows)); err != nil {
			return fmt.Errorf("the ledger of %s: %w", t.name, err)
		}
	}
	// What the views of ledger.sql come to no statistics say: joined row by row they would take minutes.
	_, err := v.conn.Exec(ctx, "ANALYZE; SET enable_nestloop = off")
	return err
}

// settle waits until the named checks find nothing any more, or until the time is over; what is left then is found again by all.
func (v *verifier) settle(ctx context.Context, limit time.Duration, checks ...string) (time.Duration, error) {
	start := time.Now()
	said := start
	for {
		if err := v.look(ctx); err != nil {
			return 0, err
		}
		left, err := v.unsettled(ctx, checks)
		if err != nil {
			return 0, err
		}
		took := time.Since(start)
		if left == nil || took > limit || !pause(ctx, 250*time.Millisecond) {
			return took, nil
		}
		if time.Since(said) > sayEvery {
			said = time.Now()
			v.say("settling: %s", left)
		}
	}
}

// unsettled is the first of the checks that still finds something, nil when none does.
func (v *verifier) unsettled(ctx context.Context, checks []string) (*finding, error) {
	for _, name := range checks {
		if f, err := v.check(ctx, name); err != nil || len(f.keys) > 0 {
			return &f, err
		}
	}
	return nil, nil
}

// hurry makes the notices due that are not yet, as the minutes would that lie between them: a run whose notices were lost again and again waits up to ten
// for the next (runs.md section 6). It answers how many.
func (v *verifier) hurry(ctx context.Context) (int, error) {
	tag, err := v.conn.Exec(ctx, `UPDATE woken k SET next_notice_at = rdv_now() FROM soak.completes c
		WHERE c.tenant = k.tenant AND c.workflow_id = k.workflow_id AND k.next_notice_at > rdv_now()`)
	return int(tag.RowsAffected()), err
}

// all runs every check and answers what was found.
func (v *verifier) all(ctx context.Context) (ran int, found []finding, err error) {
	entries, err := fs.ReadDir(checkFiles, "checks")
	if err != nil {
		return 0, nil, err
	}
	for _, e := range entries {
		f, err := v.check(ctx, strings.TrimSuffix(e.Name(), ".sql"))
		if err != nil {
			return ran, found, err
		}
		ran++
		if len(f.keys) > 0 {
			found = append(found, f)
		}
	}
	return ran, found, nil
}

func (v *verifier) check(ctx context.Context, name string) (finding, error) {
	text, err := checkFiles.ReadFile(path.Join("checks", name+".sql"))
	if err != nil {
		return finding{}, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	f := finding{check: name, promise: strings.TrimPrefix(first, "-- ")}
	rows, err := v.conn.Query(ctx, string(text))
	if err != nil {
		return f, fmt.Errorf("check %s: %w", name, err)
	}
	if f.keys, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
		return f, fmt.Errorf("check %s: %w", name, err)
	}
	slices.Sort(f.keys)
	return f, nil
}

// figures are counts for the summary.
type figures struct {
	events, answered, live, dead  int
	workflows, waits, records     int
	quarantined, failed, reclaims int
}

const figuresSQL = `SELECT
	(SELECT count(*) FROM events), (SELECT count(*) FROM events WHERE state = 'consumed'), (SELECT count(*) FROM events WHERE state = 'live'),
	(SELECT count(*) FROM events WHERE state = 'dead'), (SELECT count(*) FROM workflows),
	(SELECT count(*) FROM history WHERE kind = 'wait.registered'), (SELECT count(*) FROM history),
	(SELECT count(*) FROM waits WHERE quarantined_at IS NOT NULL), (SELECT count(*) FROM events WHERE offer_failures > 0),
	(SELECT coalesce(max(reclaims), 0) FROM workflows)`

func (v *verifier) figures(ctx context.Context) (f figures, err error) {
	err = v.conn.QueryRow(ctx, figuresSQL).Scan(&f.events, &f.answered, &f.live, &f.dead, &f.workflows, &f.waits, &f.records, &f.quarantined, &f.failed, &f.reclaims)
	return f, err
}
