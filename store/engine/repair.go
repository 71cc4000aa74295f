package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// abandonedPosition is where a page of abandoned runs ended, as a cursor carries it.
type abandonedPosition struct {
	Expires  time.Time `json:"e"`
	Tenant   string    `json:"t"`
	Workflow string    `json:"w"`
}

func (p *abandonedPosition) sound() bool {
	return soundAt(p.Expires) && rendezvous.CheckTenant(p.Tenant) == nil && rendezvous.CheckID("cursor", p.Workflow) == nil
}

// AbandonedRuns implements [store.Repairer].
func (v scoped) AbandonedRuns(ctx context.Context, limit int, cursor string) (list []store.AbandonedRun, next string, err error) {
	return v.all().abandonedRuns(ctx, limit, cursor)
}

func (w enumeration) abandonedRuns(ctx context.Context, limit int, cursor string) (list []store.AbandonedRun, next string, err error) {
	type position = backend.AbandonedPosition
	return w.abandoned(ctx, "abandoned_runs", limit, cursor, func(ctx context.Context, r backend.Reader, after position, limit int) (rows []*backend.Workflow, next position, err error) {
		rows, err = r.Abandoned(ctx, w.owned, after, limit+1) // one more tells whether this is the last page
		if len(rows) > limit {
			rows = rows[:limit]
			next = backend.AbandonedAt(rows[limit-1])
		}
		return rows, next, err
	})
}

// DueLeases implements [store.Repairer].
func (v scoped) DueLeases(ctx context.Context, limit int, cursor string) (list []store.AbandonedRun, next string, err error) {
	return v.all().dueLeases(ctx, limit, cursor)
}

func (w enumeration) dueLeases(ctx context.Context, limit int, cursor string) (list []store.AbandonedRun, next string, err error) {
	type position = backend.AbandonedPosition
	return w.abandoned(ctx, "due_leases", limit, cursor, func(ctx context.Context, r backend.Reader, after position, limit int) ([]*backend.Workflow, position, error) {
		return r.DueLeases(ctx, w.owned, after, limit)
	})
}

// abandoned is a page of abandoned runs.
func (e *Engine) abandoned(
	ctx context.Context, verb string, limit int, cursor string,
	read func(ctx context.Context, r backend.Reader, after backend.AbandonedPosition, limit int) (rows []*backend.Workflow, next backend.AbandonedPosition, err error),
) (list []store.AbandonedRun, next string, err error) {
	if limit, err = rendezvous.PageLimit(limit, rendezvous.DefaultList, rendezvous.MaxList); err != nil {
		return nil, "", err
	}
	var after backend.AbandonedPosition
	if cursor != "" {
		var at abandonedPosition
		if err := decodeCursor(cursor, verb, "", nil, &at); err != nil {
			return nil, "", err
		}
		after = backend.AbandonedPosition{Set: true, Expires: at.Expires, Key: backend.WorkflowKey{Tenant: at.Tenant, ID: at.Workflow}}
	}
	err = e.view(ctx, verb, func(ctx context.Context, r backend.Reader) error {
		rows, last, err := read(ctx, r, after, limit)
		if err != nil {
			return err
		}
		next = ""
		if last.Set {
			next = encodeCursor(verb, "", nil, abandonedPosition{last.Expires, last.Key.Tenant, last.Key.ID})
		}
		list = make([]store.AbandonedRun, len(rows))
		for i, w := range rows {
			list[i] = abandonedRun(w)
		}
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return list, next, nil
}

// abandonedRun is a row as listed; one that does not decode shows its ids and the page goes on (RN-39).
func abandonedRun(w *backend.Workflow) store.AbandonedRun {
	a := store.AbandonedRun{Tenant: w.Tenant, WorkflowRef: store.WorkflowRef{WorkflowID: w.ID, RunID: w.RunID}}
	if w.Corrupt != nil {
		a.Corrupt = w.Corrupt
		return a
	}
	a.Owner, a.Epoch, a.ExpiresAt, a.Reclaims = w.LeaseOwner, w.LeaseEpoch, w.LeaseExpires, w.Reclaims
	return a
}

// Notices of woken runs are repeated at growing intervals, for ever: no count of notices ends it (RN-17).
const maxResumeRetry = 10 * time.Minute

// TakeWoken implements [store.Repairer].
func (v scoped) TakeWoken(ctx context.Context, limit int) (store.Taken[store.ResumeRef], error) {
	return v.all().takeWoken(ctx, limit)
}

// takeWoken is TakeWoken in the shards that are owned.
func (w enumeration) takeWoken(ctx context.Context, limit int) (store.Taken[store.ResumeRef], error) {
	limit, err := rendezvous.PageLimit(limit, rendezvous.DefaultList, rendezvous.MaxList)
	if err != nil {
		return store.Taken[store.ResumeRef]{}, err
	}
	var taken store.Taken[store.ResumeRef]
	_, err = w.update(ctx, "take_woken", time.Time{}, func(ctx context.Context, u *unit) error {
		marks, more, err := u.tx.DueWoken(ctx, w.owned, limit)
		if err != nil {
			return err
		}
		taken = store.Taken[store.ResumeRef]{Saturated: more}
		for _, m := range marks {
			m.Notices++
			m.NextNoticeAt = rendezvous.DueInstant(u.now.Add(resumeInterval(m.Notices)))
			u.ch.MarkedWoken = append(u.ch.MarkedWoken, m)
			taken.Rows = append(taken.Rows, repeatOf(m))
		}
		return nil
	})
	if err != nil {
		return store.Taken[store.ResumeRef]{}, err
	}
	return taken, nil
}

// resumeInterval is the time from the n-th repetition of a notice to the next: 10 s doubling to 10 min, less up to an eighth, so that runs woken
// together do not come back together and an interval still is always longer than the one before.
func resumeInterval(n int) time.Duration {
	d := doubled(resumeRetry, n, maxResumeRetry)
	return d - rand.N(d/8)
}

// doubled is d doubled n times, at most most.
func doubled(d time.Duration, n int, most time.Duration) time.Duration {
	for ; n > 0 && d < most; n-- {
		d *= 2
	}
	return min(d, most)
}
