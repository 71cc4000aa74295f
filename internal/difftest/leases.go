package difftest

import (
	"cmp"
	"slices"
	"time"

	"github.com/rendezvous-events/rendezvous/store"
)

// AcquireLease is the verb.
type AcquireLease struct {
	Tenant, Run, Owner string
	TTL                time.Duration
	Acquire            string
}

func (a AcquireLease) ask(s *side) (any, error) {
	t, err := s.of(a.Tenant)
	if err != nil {
		return nil, err
	}
	return t.AcquireLease(ctx, s.id(a.Run), a.Owner, a.TTL, a.Acquire)
}

func (AcquireLease) learn(w *World, got any) { w.known.at(got.(store.Lease).ExpiresAt) }

// RenewLease is the verb.
type RenewLease struct {
	Tenant, Run, Owner string
	Epoch              int64
	TTL                time.Duration
}

func (r RenewLease) ask(s *side) (any, error) {
	t, err := s.of(r.Tenant)
	if err != nil {
		return nil, err
	}
	return t.RenewLease(ctx, s.id(r.Run), r.Owner, r.Epoch, r.TTL)
}

// Collect is the verb.
type Collect struct {
	Tenant, Run string
	Epoch       int64
}

func (c Collect) ask(s *side) (any, error) {
	t, err := s.of(c.Tenant)
	if err != nil {
		return nil, err
	}
	return t.Collect(ctx, s.id(c.Run), c.Epoch)
}

// Suspend is the verb.
type Suspend struct {
	Tenant, Run string
	Epoch, Seen int64
	KnowsCancel bool
}

func (p Suspend) ask(s *side) (any, error) {
	t, err := s.of(p.Tenant)
	if err != nil {
		return nil, err
	}
	return t.Suspend(ctx, s.id(p.Run), p.Epoch, p.Seen, p.KnowsCancel)
}

// ReleaseLease is the verb.
type ReleaseLease struct {
	Tenant, Run string
	Epoch       int64
}

func (r ReleaseLease) ask(s *side) (any, error) {
	t, err := s.of(r.Tenant)
	if err != nil {
		return nil, err
	}
	return t.ReleaseLease(ctx, s.id(r.Run), r.Epoch)
}

// Reclaim is an item of ReclaimRun.
type Reclaim struct {
	Tenant, Workflow string
	Epoch            int64
	Expires          time.Duration // behind Base
}

// ReclaimRun is the verb.
type ReclaimRun struct{ Items []Reclaim }

func (r ReclaimRun) ask(s *side) (any, error) {
	items := make([]store.ReclaimItem, len(r.Items))
	for i, of := range r.Items {
		items[i] = store.ReclaimItem{Tenant: of.Tenant, WorkflowID: s.id(of.Workflow), Epoch: of.Epoch, ExpiresAt: at(of.Expires)}
	}
	return s.store.ReclaimRun(ctx, items)
}

// TakeWoken is the verb. A store puts the next notice of a woken run up to an eighth of its interval earlier, by chance: no step asks inside that eighth,
// and once notices are due by chance all of them are taken, since which of them a small page has is chance too.
type TakeWoken struct{ Limit int }

// longest is the longest interval of notices, all of which are over before the next look.
const longest = 10 * time.Minute

func (TakeWoken) prepare(w *World) {
	for i := 0; i < len(w.vague); i++ {
		if v := w.vague[i]; v.from <= w.now && w.now <= v.to {
			w.move(v.to - w.now + time.Microsecond)
			i = -1
		}
	}
}

// takenRuns are the rows of a page: those that were never taken before in their order, the others' being chance.
type takenRuns struct {
	First, Again []store.ResumeRef
	Saturated    bool
}

func (t TakeWoken) ask(s *side) (any, error) {
	taken, err := s.store.TakeWoken(ctx, t.Limit)
	got := takenRuns{Saturated: taken.Saturated}
	for _, row := range taken.Rows {
		if row.Notices <= 1 {
			got.First = append(got.First, row)
		} else {
			got.Again = append(got.Again, row)
		}
	}
	slices.SortFunc(got.Again, func(a, b store.ResumeRef) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.WorkflowID, b.WorkflowID))
	})
	return got, err
}

// unsure is a page that may have been taken: its notices are due any time up to the longest interval.
func (TakeWoken) unsure(w *World) { w.vague = append(w.vague, window{w.now, w.now + longest}) }

func (TakeWoken) learn(w *World, got any) {
	for _, row := range slices.Concat(got.(takenRuns).First, got.(takenRuns).Again) {
		d := 10 * time.Second
		for range row.Notices {
			d = min(2*d, longest)
		}
		w.vague = append(w.vague, window{w.now + d - d/8, w.now + d})
	}
}
