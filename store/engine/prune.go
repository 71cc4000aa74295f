package engine

import (
	"context"
	"math"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// maxPrunedRuns is how many runs one transaction removes; those of a single workflow go together, however many they are.
const maxPrunedRuns = 5000

// closedPosition is the place of a closed workflow.
type closedPosition struct {
	Closed   time.Time `json:"c"`
	Tenant   string    `json:"t"`
	Workflow string    `json:"w"`
}

func (p *closedPosition) sound() bool {
	return soundAt(p.Closed) && rendezvous.CheckTenant(p.Tenant) == nil && rendezvous.CheckID("cursor", p.Workflow) == nil
}

// PruneWorkflows implements [store.Retainer].
func (e *Engine) PruneWorkflows(ctx context.Context, closedBefore time.Time, limit int, cursor string) (store.Pruned, error) {
	const verb = "prune_workflows"
	limit, err := rendezvous.PageLimit(limit, defaultRetention, rendezvous.MaxBatchItems)
	if err != nil {
		return store.Pruned{}, err
	}
	before, err := checkCutoff("closed_before", closedBefore)
	if err != nil || before.IsZero() {
		return store.Pruned{}, err
	}
	var at closedPosition
	if err := decodeCursor(cursor, verb, "", nil, &at); err != nil {
		return store.Pruned{}, err
	}
	after := backend.ClosedPosition{Set: cursor != "", Closed: at.Closed, Key: backend.WorkflowKey{Tenant: at.Tenant, ID: at.Workflow}}
	var page store.Pruned
	_, err = e.update(ctx, verb, time.Time{}, func(ctx context.Context, u *unit) error {
		rows, err := u.tx.Closed(ctx, before, after, limit)
		if err != nil {
			return err
		}
		p := &pruning{unit: u}
		n, err := p.prune(ctx, rows)
		if err != nil {
			return err
		}
		if page = p.page; n < len(rows) || n == limit {
			last := rows[n-1]
			page.NextCursor = encodeCursor(verb, "", nil, closedPosition{last.ClosedAt, last.Tenant, last.ID})
		}
		return nil
	})
	if err != nil {
		return store.Pruned{}, err
	}
	return page, nil
}

// pruning is a page of PruneWorkflows.
type pruning struct {
	*unit
	page    store.Pruned
	sending map[backend.RunKey]string // runs with a registration that is not finished
}

// prune removes closed workflows that are as they were seen, and answers how many of the rows it looked at.
func (p *pruning) prune(ctx context.Context, rows []*backend.Workflow) (int, error) {
	keys := make([]backend.WorkflowKey, len(rows))
	for i, w := range rows {
		keys[i] = w.Key()
	}
	if err := p.lock(ctx, keys); err != nil {
		return 0, err
	}
	chains := map[backend.WorkflowKey][]*backend.Run{}
	var runs []backend.RunKey
	looked := 0
	for ; looked < len(rows) && len(runs) < maxPrunedRuns; looked++ {
		row := rows[looked]
		f := p.flows[row.Key()]
		switch {
		case f == nil: // somebody else pruned it
		case f.Corrupt != nil:
			p.spare(row, f.Corrupt)
		case f.Status.Terminal() && f.ClosedAt.Equal(row.ClosedAt):
			chain, err := p.chain(ctx, row.Key())
			if rendezvous.CodeOf(err) == rendezvous.CodeCorrupt {
				p.spare(row, err)
				continue
			}
			if err != nil {
				return 0, err
			}
			chains[row.Key()] = chain
			for _, r := range chain {
				runs = append(runs, r.Key())
			}
		}
	}
	waiting, err := p.leftOver(ctx, runs)
	if err != nil {
		return 0, err
	}
	if p.sending, err = p.unfinished(ctx, runs); err != nil {
		return 0, err
	}
	for _, row := range rows[:looked] {
		if chain := chains[row.Key()]; len(chain) > 0 {
			p.remove(row, chain, waiting)
		}
	}
	return looked, nil
}

func (p *pruning) spare(w *backend.Workflow, why error) {
	p.page.Spared = append(p.page.Spared, store.ClosedWorkflow{Tenant: w.Tenant, WorkflowID: w.ID, Why: why})
}

// chain is all runs of a workflow.
func (p *pruning) chain(ctx context.Context, key backend.WorkflowKey) (chain []*backend.Run, err error) {
	const page = 1000
	for after := int64(0); ; after = chain[len(chain)-1].FirstSeq {
		runs, err := p.tx.RunsOf(ctx, key, after, page)
		chain = append(chain, runs...)
		if err != nil || len(runs) < page {
			return chain, err
		}
	}
}

// leftOver are the runs that have waits, possible only after a restore: whoever repairs those needs the history.
func (p *pruning) leftOver(ctx context.Context, runs []backend.RunKey) (map[backend.RunKey]bool, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	waits, err := p.tx.WaitsOf(ctx, runs)
	found := map[backend.RunKey]bool{}
	for _, w := range waits {
		found[backend.RunKey{Tenant: w.Tenant, ID: w.RunID}] = true
	}
	return found, err
}

// parkedLong is how long a parked registration keeps its workflow (SW-29).
const parkedLong = 30 * 24 * time.Hour

// unfinished are the runs that a registration still follows: their records may yet be sent.
func (p *pruning) unfinished(ctx context.Context, runs []backend.RunKey) (map[backend.RunKey]string, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	rows, err := p.tx.PushesOf(ctx, runs)
	found := map[backend.RunKey]string{}
	for _, x := range rows {
		done := x.State == backend.PushGone || x.Corrupt == nil && x.State == rendezvous.PushParked && !x.ParkedAt.After(p.now.Add(-parkedLong))
		if !done {
			found[x.Key().Run()] = x.ID
		}
	}
	return found, err
}

// remove has the rows of a workflow and its runs go, and remnants come in their place.
func (p *pruning) remove(w *backend.Workflow, chain []*backend.Run, waiting map[backend.RunKey]bool) {
	for _, r := range chain {
		if waiting[r.Key()] {
			p.spare(w, rendezvous.Errorf(rendezvous.CodeConflict, "run %q ended and has a wait left over, of a restore perhaps", r.ID).With("run", r.ID))
			return
		}
		if id, ok := p.sending[r.Key()]; ok {
			p.spare(w, rendezvous.Errorf(rendezvous.CodeConflict, "push registration %q of run %q is not finished", id, r.ID).With("run", r.ID).With("id", id))
			return
		}
	}
	for i, r := range chain {
		x := &backend.Remnant{Tenant: r.Tenant, RunID: r.ID, WorkflowID: w.ID, FirstSeq: r.FirstSeq, LastSeq: math.MaxInt64}
		if i == 0 {
			x.FirstSeq = 0
		}
		if i+1 < len(chain) {
			x.LastSeq = chain[i+1].FirstSeq - 1
		}
		p.ch.Remnants = append(p.ch.Remnants, x)
		p.ch.GoneRuns = append(p.ch.GoneRuns, r.Key())
	}
	p.ch.GoneWorkflows = append(p.ch.GoneWorkflows, w.Key())
	p.ch.Unwoken = append(p.ch.Unwoken, w.Key())
	p.page.Pruned = append(p.page.Pruned, store.ClosedWorkflow{Tenant: w.Tenant, WorkflowID: w.ID})
}

// PruneRecords implements [store.Retainer].
func (e *Engine) PruneRecords(ctx context.Context, limit int) (store.PrunedRecords, error) {
	limit, err := rendezvous.PageLimit(limit, store.MaxPruneRecords, store.MaxPruneRecords)
	if err != nil {
		return store.PrunedRecords{}, err
	}
	var page store.PrunedRecords
	_, err = e.update(ctx, "prune_records", time.Time{}, func(ctx context.Context, u *unit) error {
		left, err := u.tx.Remnants(ctx, limit)
		if err != nil {
			return err
		}
		u.ch.GoneRecords, u.ch.GoneBatches = left.Records, left.Batches
		if !left.More { // else some have rows left that this page does not name
			for _, x := range left.Runs {
				u.ch.GoneRemnants = append(u.ch.GoneRemnants, x.Key())
			}
		}
		page = store.PrunedRecords{Removed: len(left.Records) + len(left.Batches), More: left.More || len(left.Runs) == backend.MostRemnants}
		return nil
	})
	if err != nil {
		return store.PrunedRecords{}, err
	}
	return page, nil
}

// checkRemnants refuses ids of a pruned workflow or run of which records are left. The store refuses their rows by itself: this is for the next try, which says why.
func (u *unit) checkRemnants(ctx context.Context, tenant, workflow, run string) error {
	if u.try == 0 {
		return nil
	}
	x, err := u.tx.RemnantOf(ctx, backend.WorkflowKey{Tenant: tenant, ID: workflow}, backend.RunKey{Tenant: tenant, ID: run})
	if err != nil || x == nil {
		return err
	}
	return conflict("pruning", x.WorkflowID, "workflow %q is being pruned; its id and its runs' are free again when its records are gone: try later, or choose another", x.WorkflowID).
		With("workflow", x.WorkflowID).With("run", x.RunID)
}
