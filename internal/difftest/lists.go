package difftest

import (
	"cmp"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// pages is how many pages a list is turned at most.
const pages = 50

// page asks for the page at a cursor and answers what it holds and the cursor behind it.
type page func(cursor string) (got any, next string, err error)

// turn asks for all pages from the n-th cursor that the store ever handed out on, each by the store's own.
func (s *side) turn(n int, ask page) (any, error) {
	var all []any
	for cursor, left := s.cursor(n), pages; left > 0; left-- {
		got, next, err := ask(cursor)
		if err != nil {
			return all, err
		}
		all = append(all, got, next != "")
		if cursor = next; next == "" {
			break
		}
		s.cursors = append(s.cursors, next)
	}
	return all, nil
}

// Waiting is the verb, page by page.
type Waiting struct {
	Tenant, Run, Type, Key, State string
	Limit, Cursor                 int
}

func filter(s *side, run, kind, k, state string) store.WaitFilter {
	f := store.WaitFilter{RunID: s.id(run), Type: kind, State: rendezvous.WaitState(state)}
	if k != "" {
		of := key(k)
		f.Key = &of
	}
	return f
}

func (l Waiting) ask(s *side) (any, error) {
	t, err := s.of(l.Tenant)
	if err != nil {
		return nil, err
	}
	return s.turn(l.Cursor, func(cursor string) (any, string, error) {
		got, err := t.Waiting(ctx, filter(s, l.Run, l.Type, l.Key, l.State), l.Limit, cursor)
		return got.Waits, got.NextCursor, err
	})
}

// ParkedWaits is the verb, page by page.
type ParkedWaits struct {
	Tenant, Run, Type, Key, State string
	Limit, Cursor                 int
}

func (l ParkedWaits) ask(s *side) (any, error) {
	t, err := s.of(l.Tenant)
	if err != nil {
		return nil, err
	}
	return s.turn(l.Cursor, func(cursor string) (any, string, error) {
		got, err := t.ParkedWaits(ctx, filter(s, l.Run, l.Type, l.Key, l.State), l.Limit, cursor)
		return got, got.NextCursor, err
	})
}

// QuarantinedWaits is the verb, page by page.
type QuarantinedWaits struct {
	Tenant        string
	Limit, Cursor int
}

func (l QuarantinedWaits) ask(s *side) (any, error) {
	t, err := s.of(l.Tenant)
	if err != nil {
		return nil, err
	}
	return s.turn(l.Cursor, func(cursor string) (any, string, error) {
		got, err := t.QuarantinedWaits(ctx, l.Limit, cursor)
		return got.Waits, got.NextCursor, err
	})
}

// QueryWorkflows is the verb, page by page, and CountWorkflows with it.
type QueryWorkflows struct {
	Tenant                  string
	Types, Statuses, Queues []string
	Prefix                  string
	Limit, Cursor, Most     int
}

func (l QueryWorkflows) ask(s *side) (any, error) {
	t, err := s.of(l.Tenant)
	if err != nil {
		return nil, err
	}
	f := store.WorkflowFilter{Types: l.Types, Queues: l.Queues, Prefix: l.Prefix}
	for _, status := range l.Statuses {
		f.Statuses = append(f.Statuses, rendezvous.Status(status))
	}
	all, err := s.turn(l.Cursor, func(cursor string) (any, string, error) {
		got, err := t.QueryWorkflows(ctx, f, l.Limit, cursor)
		return got.Workflows, got.NextCursor, err
	})
	n, capped, failed := t.CountWorkflows(ctx, f, l.Most)
	return []any{all, n, capped, failed}, err
}

// ReadHistory is the verb.
type ReadHistory struct{ Tenant, Workflow string }

func (r ReadHistory) ask(s *side) (any, error) {
	t, err := s.of(r.Tenant)
	if err != nil {
		return nil, err
	}
	return t.ReadHistory(ctx, s.id(r.Workflow))
}

// ReadHistoryFrom is the verb.
type ReadHistoryFrom struct {
	Tenant, Workflow string
	From             int64
	Limit            int
}

func (r ReadHistoryFrom) ask(s *side) (any, error) {
	t, err := s.of(r.Tenant)
	if err != nil {
		return nil, err
	}
	return t.ReadHistoryFrom(ctx, s.id(r.Workflow), r.From, r.Limit)
}

// ReadRunChain is the verb.
type ReadRunChain struct {
	Tenant, Workflow string
	After            int64
	Limit            int
}

func (r ReadRunChain) ask(s *side) (any, error) {
	t, err := s.of(r.Tenant)
	if err != nil {
		return nil, err
	}
	return t.ReadRunChain(ctx, s.id(r.Workflow), r.After, r.Limit)
}

// DescribeWorkflow is the verb.
type DescribeWorkflow struct{ Tenant, Workflow, Run string }

func (d DescribeWorkflow) ask(s *side) (any, error) {
	t, err := s.of(d.Tenant)
	if err != nil {
		return nil, err
	}
	return t.DescribeWorkflow(ctx, store.WorkflowRef{WorkflowID: s.id(d.Workflow), RunID: s.id(d.Run)})
}

// AbandonedRuns is the verb, page by page.
type AbandonedRuns struct{ Limit, Cursor int }

func (a AbandonedRuns) ask(s *side) (any, error) {
	return s.turn(a.Cursor, func(cursor string) (any, string, error) {
		got, next, err := s.store.AbandonedRuns(ctx, a.Limit, cursor)
		return got, next, err
	})
}

// DueLeases is the verb, page by page: what it hands out stays, so pages repeat what they had ahead of others.
type DueLeases struct{ Limit, Cursor int }

func (l DueLeases) ask(s *side) (any, error) {
	return s.turn(l.Cursor, func(cursor string) (any, string, error) {
		got, next, err := s.store.DueLeases(ctx, l.Limit, cursor)
		return got, next, err
	})
}

// TakeUnmet is the verb, once around. Where its pages end is each store's own (backend.Tx, UnmetEvents), and so is what a small page of a few tenants
// has: all pages together are compared.
type TakeUnmet struct {
	Grace, Hold time.Duration
	Limit       int
}

func (t TakeUnmet) ask(s *side) (any, error) {
	var rows []store.UnmetPair
	for cursor, left := "", pages; left > 0; left-- {
		got, next, err := s.store.TakeUnmet(ctx, t.Grace, t.Limit, t.Hold, cursor)
		if err != nil {
			return rows, err
		}
		rows = append(rows, got.Rows...)
		if cursor = next; next == "" {
			break
		}
	}
	return rows, nil
}

// TakeNews is the verb, from the last few minutes on, until it is not cut.
type TakeNews struct {
	Grace, Hold time.Duration
	Limit       int
}

func (t TakeNews) ask(s *side) (any, error) {
	var rows []store.UnmetPair
	for cursor, left := "", pages; left > 0; left-- {
		got, next, err := s.store.TakeNews(ctx, t.Grace, t.Limit, t.Hold, cursor)
		if err != nil {
			return rows, err
		}
		rows = append(rows, got.Rows...)
		if cursor = next; !got.Saturated {
			break
		}
	}
	return rows, nil
}

func (t TakeNews) learn(w *World, got any) { TakeUnmet(t).learn(w, got) }

func (t TakeUnmet) learn(w *World, _ any) {
	w.known.at(Base.Add(w.now + cmp.Or(t.Hold, 30*time.Second)))
	w.known.at(Base.Add(w.now + t.Grace))
}

// Depths is the verb.
type Depths struct{}

func (Depths) ask(s *side) (any, error) { return s.store.Depths(ctx) }

// Look is everything that can be read, around armed failures. Events are those to look up: no verb lists them.
type Look struct{ Events []Name }

// Name is an event's, plane-wide.
type Name struct{ Tenant, Source, ID string }

// sight is what a look saw: what was asked, and what came.
type sight struct {
	Of    string
	Value any
	Err   error
}

func (l Look) ask(s *side) (any, error) {
	through := s.store
	s.store = s.plain
	defer func() { s.store = through }()
	var all []sight
	see := func(step Step) any {
		got, err := step.ask(s)
		all = append(all, sight{Go(step), got, err})
		return got
	}
	all = append(all, sight{Of: "events by number", Value: l.order(s)})
	for _, e := range l.Events {
		see(LookupEvent{e.Tenant, e.Source, e.ID, true})
		see(Minter(e))
		see(ExplainEvent(e))
	}
	for _, tenant := range Tenants {
		see(Waiting{Tenant: tenant, Limit: 3})
		see(ParkedWaits{Tenant: tenant, Limit: 2})
		see(QuarantinedWaits{Tenant: tenant, Limit: 1})
		see(DeadLetters{Tenant: tenant, Limit: 2, Payload: true})
		see(Pushes{Tenant: tenant, Limit: 2})
		for _, id := range workflowsIn(see(QueryWorkflows{Tenant: tenant, Limit: 2})) {
			see(ReadHistory{tenant, id})
			see(ReadRunChain{Tenant: tenant, Workflow: id})
			see(DescribeWorkflow{Tenant: tenant, Workflow: id})
		}
	}
	see(Depths{})
	see(AbandonedRuns{})
	for i := range all {
		all[i].Of = "" // a minted id may be in it
	}
	return all, nil
}

// order is the events as their numbers have them.
func (l Look) order(s *side) []Name {
	type numbered struct {
		Name
		n int64
	}
	var all []numbered
	for _, e := range l.Events {
		t, err := s.of(e.Tenant)
		if err != nil {
			continue
		}
		if got, err := t.LookupEvent(ctx, rendezvous.EventID{Source: e.Source, ID: e.ID}, false); err == nil {
			all = append(all, numbered{e, got.Number})
		}
	}
	slices.SortFunc(all, func(a, b numbered) int { return int(a.n - b.n) })
	names := make([]Name, len(all))
	for i, e := range all {
		names[i] = e.Name
	}
	return names
}

// workflowsIn are the ids in an answer of QueryWorkflows.
func workflowsIn(got any) []string {
	var ids []string
	all, _ := got.([]any)
	if len(all) == 0 {
		return nil
	}
	rows, _ := all[0].([]any)
	for _, page := range rows {
		flows, _ := page.([]store.Workflow)
		for _, f := range flows {
			ids = append(ids, f.WorkflowID)
		}
	}
	return ids
}
