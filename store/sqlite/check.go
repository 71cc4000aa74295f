package sqlite

import (
	"context"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// mostFaults is how many faults of each sort are told: one tells that the store is damaged, a few tell where.
const mostFaults = 20

// Check answers what is wrong with the store, nothing for a sound one, on one snapshot and beside whoever uses it. It reads all of the file: pages and indexes
// (SQLite's own check, which leaves CHECKs out for who may not write), the law of key rows, claims and the waits that hold them, histories without gaps,
// numbers, and whether every row decodes. An error says that it could not look.
func (b *Backend) Check(ctx context.Context) ([]string, error) { return Check(ctx, b.dir) }

// Check is [Backend.Check] of the store in dir, which this process, another or none may have open.
func Check(ctx context.Context, dir string) ([]string, error) {
	faults, err := check(ctx, dir)
	if rendezvous.CodeOf(err) == rendezvous.CodeCorrupt {
		return append(faults, "the file is damaged so that it cannot be read through"), nil
	}
	return faults, err
}

func check(ctx context.Context, dir string) (faults []string, err error) {
	conn, err := openReader(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, translate(conn.Close())) }()
	if err := checkVersion(conn); err != nil {
		return nil, err
	}
	r := &reader{conn: conn}
	if _, err := r.exec("BEGIN"); err != nil {
		return nil, err
	}
	if faults, err = integrity(conn); err != nil || len(faults) > 0 {
		return faults, err // what stands on damaged pages says nothing more
	}
	for _, l := range laws {
		err := sqlitex.ExecuteTransient(conn, l.sql, &sqlitex.ExecOptions{Args: []any{mostFaults}, ResultFunc: func(stmt *sqlite.Stmt) error {
			faults = append(faults, fmt.Sprintf(l.says, stmt.ColumnText(0)))
			return nil
		}})
		if err != nil {
			return faults, translate(err)
		}
	}
	for _, kind := range backend.Kinds {
		more, err := r.undecodable(ctx, kind)
		if faults = append(faults, more...); err != nil {
			return faults, err
		}
	}
	return faults, nil
}

// checkVersion refuses a schema that is not this build's: its laws are others.
func checkVersion(conn *sqlite.Conn) error {
	s, err := schema()
	if err != nil {
		return err
	}
	stored, err := pragma(conn, "user_version")
	if err == nil && stored != len(s.Migrations) {
		err = unavailable("the schema of the store has version %d and this build checks version %d", stored, len(s.Migrations)).
			With("stored", stored).With("build", len(s.Migrations))
	}
	return err
}

// integrity is what SQLite's own check finds.
func integrity(conn *sqlite.Conn) ([]string, error) {
	var faults []string
	err := sqlitex.ExecuteTransient(conn, fmt.Sprintf("PRAGMA integrity_check(%d)", mostFaults), &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		if text := stmt.ColumnText(0); text != "ok" {
			faults = append(faults, text)
		}
		return nil
	}})
	return faults, translate(err)
}

// A law is a statement that answers what breaks it, at most as many as its parameter says.
type law struct{ sql, says string }

// eventKey and waitKey say whether the key of a row i of the match index is one of the row that it belongs to. Keys that are malformed are none: that is told of
// the row itself.
const (
	eventKey = `
CASE WHEN e.target <> '' THEN i.namespace = '' AND i.value = e.target
	WHEN e.keys = '[]' THEN i.namespace = '' AND i.value = ''
	ELSE EXISTS (SELECT 1 FROM json_each(iif(json_valid(e.keys), e.keys, '[]')) p WHERE` + isKey + `) END`
	waitKey = `
EXISTS (SELECT 1 FROM json_each(iif(json_valid(w.keys), w.keys, '[]')) p WHERE` + isKey + `)`
	isKey = ` CASE WHEN p.type = 'array' THEN p.value ->> 0 = i.namespace AND p.value ->> 1 = i.value END`
)

var laws = [...]law{
	{
		`SELECT DISTINCT i.number FROM event_keys i LEFT JOIN events e ON e.number = i.number
WHERE e.number IS NULL OR e.state <> 'live' OR e.tenant <> i.tenant OR e.type <> i.type OR NOT (` + eventKey + `) LIMIT ?`,
		"event %s has a key row that it must not have",
	},
	{
		`SELECT e.number FROM events e WHERE e.state = 'live' AND json_valid(e.keys) AND (SELECT count(*) FROM event_keys i WHERE i.number = e.number) <>
	CASE WHEN e.target <> '' OR e.keys = '[]' THEN 1 ELSE json_array_length(e.keys) END LIMIT ?`,
		"live event %s has not all its key rows, so waits may miss it",
	},
	{
		`SELECT DISTINCT i.number FROM event_keys i JOIN events e ON e.number = i.number
WHERE e.state = 'live' AND (i.live_since <> e.live_since OR i.expires_at IS NOT e.expires_at) LIMIT ?`,
		"the key rows of event %s say another age or expiry, so sweeps misjudge it",
	},
	{
		`SELECT DISTINCT i.number FROM dead_keys i LEFT JOIN events e ON e.number = i.number
WHERE e.number IS NULL OR e.state <> 'dead' OR e.purged OR e.tenant <> i.tenant
	OR NOT EXISTS (SELECT 1 FROM json_each(iif(json_valid(e.keys), e.keys, '[]')) p WHERE` + isKey + `) LIMIT ?`,
		"event %s has a key row of dead letters that it must not have",
	},
	{
		`SELECT e.number FROM events e WHERE e.state = 'dead' AND NOT e.purged AND json_valid(e.keys)
	AND (SELECT count(*) FROM json_each(iif(json_valid(e.keys), e.keys, '[]')) p JOIN dead_keys i ON i.tenant = e.tenant AND i.number = e.number AND` + isKey + `)
		<> json_array_length(e.keys) LIMIT ?`,
		"dead letter %s has not all its key rows, so lists by key miss it",
	},
	{
		`SELECT DISTINCT i.number FROM wait_keys i LEFT JOIN waits w ON w.number = i.number
WHERE w.number IS NULL OR w.held_number IS NOT NULL OR w.tenant <> i.tenant OR w.type <> i.type OR NOT (` + waitKey + `) LIMIT ?`,
		"wait %s has a key row that it must not have",
	},
	{
		`SELECT DISTINCT w.number FROM waits w JOIN json_each(iif(json_valid(w.keys), w.keys, '[]')) p
WHERE w.held_number IS NULL AND p.type = 'array' AND NOT EXISTS (
	SELECT 1 FROM wait_keys i
	WHERE i.tenant = w.tenant AND i.namespace = p.value ->> 0 AND i.value = p.value ->> 1 AND i.type = w.type AND i.number = w.number) LIMIT ?`,
		"open wait %s has not all its key rows, so events may miss it",
	},
	{
		`SELECT w.number FROM waits w LEFT JOIN events e ON e.number = w.held_number
WHERE w.held_number IS NOT NULL AND (e.number IS NULL OR (e.state, e.tenant, e.claim_run, e.claim_effect) <> ('claimed', w.tenant, w.run_id, w.effect)) LIMIT ?`,
		"parked wait %s holds an event that is not claimed for it",
	},
	{
		`SELECT e.number FROM events e INDEXED BY events_claimed WHERE e.claim_run <> '' AND NOT EXISTS (
	SELECT 1 FROM waits w WHERE w.tenant = e.tenant AND w.run_id = e.claim_run AND w.effect = e.claim_effect AND w.held_number = e.number) LIMIT ?`,
		"event %s is claimed for a wait that does not hold it",
	},
	{
		`SELECT w.tenant || ' ' || w.workflow_id FROM workflows w WHERE (w.head_seq, w.head_seq) <> (
	SELECT count(*), max(h.seq) FROM history h WHERE h.tenant = w.tenant AND h.workflow_id = w.workflow_id) LIMIT ?`,
		"the history of workflow %s has gaps, or does not end where its row says",
	},
	{
		`SELECT t.tenant || ' ' || t.workflow_id || ' ' || t.timer_id FROM timers t LEFT JOIN workflows w ON w.tenant = t.tenant AND w.workflow_id = t.workflow_id
WHERE w.shard IS NOT t.shard LIMIT ?`,
		"timer %s belongs to no workflow, or stands in another shard than that",
	},
	{
		`SELECT t.tenant || ' ' || t.workflow_id || ' ' || t.timer_id FROM timers t
LEFT JOIN history h ON h.tenant = t.tenant AND h.workflow_id = t.workflow_id AND h.seq = t.armed_seq
WHERE t.armed_seq > 0 AND h.run_id IS NOT t.run_id LIMIT ?`,
		"timer %s says that a record armed it which its run does not have",
	},
	{
		`SELECT w.tenant || ' ' || w.workflow_id FROM workflows w WHERE w.registrations <> (
	SELECT count(*) FROM runs r JOIN push_registrations p ON p.tenant = r.tenant AND p.run_id = r.run_id AND p.state <> 'gone'
	WHERE r.tenant = w.tenant AND r.workflow_id = w.workflow_id) LIMIT ?`,
		"workflow %s counts other push registrations than there are",
	},
	{
		`SELECT p.tenant || ' ' || p.run_id || ' ' || p.id FROM push_registrations p LEFT JOIN runs r ON r.tenant = p.tenant AND r.run_id = p.run_id
WHERE r.workflow_id IS NOT p.workflow_id LIMIT ?`,
		"push registration %s belongs to no run, or stands with another workflow than that",
	},
	{
		`SELECT p.tenant || ' ' || p.run_id || ' ' || p.id FROM push_registrations p JOIN workflows w ON w.tenant = p.tenant AND w.workflow_id = p.workflow_id
WHERE p.state = 'idle' AND (p.run_id <> w.run_id OR w.closed_at IS NOT NULL) LIMIT ?`,
		"push registration %s rests though its run is over, so nothing wakes it",
	},
	{
		`SELECT x.tenant || ' ' || x.workflow_id FROM remnants x JOIN workflows w ON w.tenant = x.tenant AND w.workflow_id = x.workflow_id LIMIT ?`,
		"workflow %s is there and pruned, too",
	},
	{
		`SELECT c.name FROM counters c WHERE c.value < max(
	coalesce((SELECT max(token) FROM timers WHERE c.name = 'take'), 0),
	coalesce((SELECT max(max(incarnation, lease_token)) FROM push_registrations WHERE c.name = 'take'), 0),
	coalesce((SELECT max(number) FROM events WHERE c.name = 'event'), 0), coalesce((SELECT max(max(number, claim_number)) FROM waits WHERE c.name = 'wait'), 0),
	coalesce((SELECT max(take) FROM events WHERE c.name = 'take'), 0), coalesce((SELECT max(take) FROM waits WHERE c.name = 'take'), 0)) LIMIT ?`,
		"the counter of %s numbers is below numbers that were given",
	},
}

// undecodable are rows of a kind that do not decode.
func (r *reader) undecodable(ctx context.Context, kind backend.Kind) (faults []string, err error) {
	const rows, bytes = 1000, 8 << 20
	for at := (backend.Position{}); len(faults) < mostFaults; {
		page, err := r.Scan(ctx, kind, at, rows, bytes)
		switch {
		case page != nil && page.Rows > 0 && rendezvous.CodeOf(err) == rendezvous.CodeCorrupt: // go on behind it
			faults = append(faults, fmt.Sprintf("%s: %v %v", kind, err, rendezvous.AsError(err).Details))
		case err != nil:
			return faults, err
		case page.Rows == 0:
			return faults, nil
		}
		at = page.Last
	}
	return faults, nil
}
