package memory

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/fair"
)

// sortedRuns is keys in order, each once.
func sortedRuns(keys []backend.RunKey) []backend.RunKey {
	s := slices.Clone(keys)
	slices.SortFunc(s, func(a, b backend.RunKey) int { return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID)) })
	return slices.Compact(s)
}

// tenant is what the tenant has, without making a place for a tenant that has nothing.
func (r *reader) tenant(name string) *tenant {
	if o := r.tenants[name]; o != nil {
		return o
	}
	return newTenant()
}

func stateOf(w *backend.Wait) rendezvous.WaitState {
	switch {
	case w.Open():
		return rendezvous.WaitOpen
	case w.QuarantinedAt.IsZero():
		return rendezvous.WaitParked
	}
	return rendezvous.WaitQuarantined
}

func passes(w *backend.Wait, f backend.WaitFilter) bool {
	return (f.RunID == "" || f.RunID == w.RunID) && (f.Type == "" || f.Type == w.Type) && (f.State == "" || f.State == stateOf(w)) &&
		(f.Key == nil || slices.Contains(w.Keys, *f.Key))
}

// fill adds the waits of those numbers to a page, as far as it may look, and reports whether it is done.
func fill[P any](r *reader, page *backend.Listing[backend.Wait, P], numbers iter.Seq[int64], f backend.WaitFilter, look int) (done bool) {
	for n := range numbers {
		look--
		w := r.waitsByNum[n]
		if page.Add(w, passes(w, f), look == 0) {
			return true
		}
	}
	return false
}

func copyWaits(rows []*backend.Wait) []*backend.Wait {
	for i, w := range rows {
		rows[i] = copyWait(w)
	}
	return rows
}

// ListWaits implements [backend.Reader].
func (r *reader) ListWaits(ctx context.Context, tenant string, f backend.WaitFilter, after int64, p backend.Span) ([]*backend.Wait, int64, error) {
	if err := alive(ctx); err != nil {
		return nil, 0, err
	}
	order, look := r.tenant(tenant).waits, p.Look
	if f.RunID != "" {
		if order = r.runWaits[backend.RunKey{Tenant: tenant, ID: f.RunID}]; order == nil {
			return nil, 0, nil
		}
		look = math.MaxInt
	}
	page := backend.Listing[backend.Wait, int64]{Limit: p.Limit, At: backend.NumberAt}
	fill(r, &page, order.above(after), f, look)
	return copyWaits(page.Rows), page.Next, nil
}

// ListParked implements [backend.Reader].
func (r *reader) ListParked(
	ctx context.Context, tenant string, f backend.WaitFilter, after backend.ParkedPosition, p backend.Span,
) ([]*backend.Wait, backend.ParkedPosition, error) {
	if err := alive(ctx); err != nil {
		return nil, backend.ParkedPosition{}, err
	}
	o, last := r.tenant(tenant), instant{after.At, after.Number}
	due, stuck := o.due.all(), o.stuck.all()
	switch {
	case after.Quarantined:
		due, stuck = none, o.stuck.above(last)
	case after.Set:
		due = o.due.above(last)
	}
	page := backend.Listing[backend.Wait, backend.ParkedPosition]{Limit: p.Limit, At: backend.ParkedAt}
	if !fill(r, &page, numbers(due), f, p.Look) {
		fill(r, &page, numbers(stuck), f, p.Look)
	}
	return copyWaits(page.Rows), page.Next, nil
}

// none is an empty range.
func none(func(instant) bool) {}

// ListQuarantined implements [backend.Reader].
func (r *reader) ListQuarantined(ctx context.Context, tenant string, after backend.ParkedPosition, limit int) ([]*backend.Wait, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	order := r.tenant(tenant).quarantined
	walk := order.all()
	if after.Set {
		walk = order.above(instant{after.At, after.Number})
	}
	var rows []*backend.Wait
	for n := range numbers(walk) {
		if len(rows) >= limit {
			break
		}
		rows = append(rows, copyWait(r.waitsByNum[n]))
	}
	return rows, nil
}

func numbers(rows iter.Seq[instant]) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for x := range rows {
			if !yield(x.number) {
				return
			}
		}
	}
}

func shows(w *backend.Workflow, f backend.WorkflowFilter) bool {
	return (len(f.Types) == 0 || slices.Contains(f.Types, w.Type)) && (len(f.Statuses) == 0 || slices.Contains(f.Statuses, w.Status)) &&
		(len(f.Queues) == 0 || slices.Contains(f.Queues, w.Queue)) && strings.HasPrefix(w.ID, f.Prefix)
}

// ListWorkflows implements [backend.Reader].
func (r *reader) ListWorkflows(
	ctx context.Context, tenant string, f backend.WorkflowFilter, after backend.WorkflowPosition, p backend.Span,
) ([]*backend.Workflow, backend.WorkflowPosition, error) {
	if err := alive(ctx); err != nil {
		return nil, backend.WorkflowPosition{}, err
	}
	order := r.tenant(tenant).started
	walk := order.all()
	if after.Set {
		walk = order.above(start{after.StartedAt, after.ID})
	}
	page, look := backend.Listing[backend.Workflow, backend.WorkflowPosition]{Limit: p.Limit, At: backend.StartedAt}, p.Look
	for at := range walk {
		look--
		w := r.workflows[backend.WorkflowKey{Tenant: tenant, ID: at.id}]
		if page.Add(w, shows(w, f), look == 0) {
			break
		}
	}
	for i, w := range page.Rows {
		c := copyWorkflow(w)
		c.StartedAt = w.StartedAt // its place in the order is known even where the row does not decode
		page.Rows[i] = c
	}
	return page.Rows, page.Next, nil
}

// CountWorkflows implements [backend.Reader].
func (r *reader) CountWorkflows(ctx context.Context, tenant string, f backend.WorkflowFilter, most int) (int, error) {
	if err := alive(ctx); err != nil {
		return 0, err
	}
	n := 0
	for p := range r.tenant(tenant).started.all() {
		if most > 0 && n == most {
			break
		}
		if shows(r.workflows[backend.WorkflowKey{Tenant: tenant, ID: p.id}], f) {
			n++
		}
	}
	return n, nil
}

// Abandoned implements [backend.Reader].
func (r *reader) Abandoned(ctx context.Context, shards []int, after backend.AbandonedPosition, limit int) ([]*backend.Workflow, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	walk := r.leased.all()
	if after.Set {
		walk = r.leased.above(leaseEnd{after.Expires, after.Key})
	}
	var rows []*backend.Workflow
	for l := range walk {
		if len(rows) >= limit || l.at.After(r.now) {
			break
		}
		w := r.workflows[l.key]
		if !within(shards, w.Shard) {
			continue
		}
		c := copyWorkflow(w)
		c.LeaseExpires = w.LeaseExpires
		rows = append(rows, c)
	}
	return rows, nil
}

// DueLeases implements [backend.Reader].
func (r *reader) DueLeases(ctx context.Context, shards []int, after backend.AbandonedPosition, limit int) ([]*backend.Workflow, backend.AbandonedPosition, error) {
	if err := alive(ctx); err != nil {
		return nil, backend.AbandonedPosition{}, err
	}
	walk := r.leased.all()
	if after.Set {
		walk = r.leased.above(leaseEnd{after.Expires, after.Key})
	}
	due := map[string][]leaseEnd{}
	for l := range walk {
		if l.at.After(r.now) {
			break
		}
		if own := due[l.key.Tenant]; len(own) <= limit && within(shards, r.workflows[l.key].Shard) {
			due[l.key.Tenant] = append(own, l)
		}
	}
	places, left := fair.Choose(due, limit, compareEnds)
	rows, next := make([]*backend.Workflow, len(places)), backend.AbandonedPosition{}
	for i, l := range places {
		w := r.workflows[l.key]
		rows[i] = copyWorkflow(w)
		rows[i].LeaseExpires = w.LeaseExpires
		if len(left) > 0 && compareEnds(l, left[0]) < 0 {
			next = backend.AbandonedPosition{Set: true, Expires: l.at, Key: l.key}
		}
	}
	return rows, next, nil
}

// Depths implements [backend.Reader].
func (r *reader) Depths(ctx context.Context, most int) (backend.Depths, error) {
	if err := alive(ctx); err != nil {
		return backend.Depths{}, err
	}
	oldest := func(s *sorted[instant]) time.Time { x, _ := s.first(); return x.at }
	woken, _ := r.since.first()
	dead := make(map[rendezvous.DeadReason]int, len(r.dead))
	for reason, n := range r.dead {
		dead[reason] = min(n, most)
	}
	due, oldestDue := r.dueDepth(most)
	d := backend.Depths{
		Timers: min(len(r.timers), most), DueTimers: due, OldestDueTimer: oldestDue,
		LiveEvents: min(r.live.len(), most), OpenWaits: min(r.open, most), ParkedWaits: min(r.parked.len(), most),
		QuarantinedWaits: min(r.held, most), Woken: min(len(r.woken), most),
		OldestLiveEvent: oldest(r.live), OldestParked: oldest(r.parked), OldestWoken: woken.at, Dead: dead,
	}
	r.pushDepth(most, &d)
	return d, nil
}
