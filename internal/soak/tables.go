package main

import "time"

// table is a part of the ledger as rows.
type table struct {
	name    string
	columns []string
	rows    [][]any
}

// tables are the ledger as it is put beside the store's own (ledger.sql).
func (l *ledger) tables() []table {
	l.mu.Lock()
	defer l.mu.Unlock()
	accepted := table{name: "accepted", columns: []string{"tenant", "source", "id", "door", "at"}}
	for k, a := range l.events {
		accepted.add(k.tenant, k.Source, k.ID, a.door, a.at)
	}
	registered := table{name: "registered", columns: []string{"tenant", "run_id", "effect", "answered"}}
	for k, answered := range l.waits {
		registered.add(k.tenant, k.RunID, k.Effect, answered)
	}
	started := table{name: "started", columns: []string{"tenant", "run_id", "workflow_id", "ended"}}
	for k, workflow := range l.runs {
		started.add(k.tenant, k.id, workflow, l.ended[k])
	}
	completes := table{name: "completes", columns: []string{"tenant", "workflow_id"}}
	for k := range l.complete {
		completes.add(k.tenant, k.id)
	}
	recorded := table{name: "recorded", columns: []string{"tenant", "run_id", "seq", "kinds", "timer_id", "fire_at"}}
	for _, p := range l.recorded {
		recorded.add(p.tenant, p.run, p.seq, p.kinds, p.timer, orNull(p.fireAt))
	}
	disturbances := table{name: "disturbances", columns: []string{"what", "began", "ended"}}
	for _, d := range l.done {
		disturbances.add(d.what, d.began, d.ended)
	}
	limits := table{name: "limits", columns: []string{"fail_over"}, rows: [][]any{{l.failOver}}}
	return []table{accepted, registered, started, pairsOf("pairs", l.pairs), pairsOf("races", l.races), completes, recorded, disturbances, limits}
}

func (t *table) add(row ...any) { t.rows = append(t.rows, row) }

func pairsOf(name string, all []pair) table {
	t := table{name: name, columns: []string{"tenant", "run_id", "effect", "source", "id"}}
	for _, p := range all {
		t.add(p.tenant, p.wait.RunID, p.wait.Effect, p.event.Source, p.event.ID)
	}
	return t
}

// orNull is t, or NULL for none.
func orNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t
}
