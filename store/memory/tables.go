package memory

import (
	"cmp"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// tables are the rows and, beside them, every index. A row is changed only between its unlink and its link, which keep the indexes.
type tables struct {
	workflows map[backend.WorkflowKey]*backend.Workflow
	leased    *sorted[leaseEnd] // workflows with an owner
	closed    *sorted[closing]  // closed ones, by closed_at
	remnants  map[backend.RunKey]*backend.Remnant
	left      map[backend.WorkflowKey]int // remnants of a workflow
	runs      map[backend.RunKey]*backend.Run
	chains    map[backend.WorkflowKey]*sorted[runPlace]
	batches   map[backend.BatchKey]*backend.Batch
	histories map[backend.WorkflowKey]*history
	effects   map[backend.WaitKey][]*record // records that open and close an effect, by seq
	openings  map[backend.RunKey]*sorted[opening]
	failures  map[backend.RunKey][]*record       // EffectFailed, by seq
	named     map[backend.RunKey]*sorted[string] // effect keys

	events      map[backend.EventKey]*backend.Event
	eventsByNum map[int64]*backend.Event
	claimed     map[backend.WaitKey]*backend.Event
	kept        map[backend.RunKey]*sorted[int64] // live events targeted at a run
	live        *sorted[instant]                  // live events by live_since
	dead        map[rendezvous.DeadReason]int     // letters that lists show
	ops         map[op]*sorted[int64]             // events by their last requeue or purge

	waits      map[backend.WaitKey]*backend.Wait
	waitsByNum map[int64]*backend.Wait
	runWaits   map[backend.RunKey]*sorted[int64]
	mail       map[backend.RunKey]int // parked, not quarantined
	open       int
	parked     *sorted[instant] // parked, not quarantined, by parked_at
	held       int              // quarantined

	meets map[meeting]*sides       // the match index: live events and open waits under one type and key
	kinds map[spot]*sorted[string] // the types of the meetings under one key

	woken map[backend.WorkflowKey]*backend.Woken
	since *sorted[mark] // woken by since

	tenants map[string]*tenant

	eventNumber, waitNumber, take int64

	timerTables
	push pushTables

	copying string // how far a copy to this store got; "" for none
}

// tenant holds the orders that a tenant's pages follow.
type tenant struct {
	started     *sorted[start]
	waits       *sorted[int64]
	due         *sorted[instant] // parked, not quarantined, by next_attempt_at
	stuck       *sorted[instant] // quarantined, by next_attempt_at
	quarantined *sorted[instant] // quarantined, by quarantined_at
	woken       *sorted[mark]    // of runs neither paused nor ended, by next_notice_at
	unmet       map[meeting]struct{}
	ageing      *sorted[instant] // live events without an expiry, by live_since
	expiring    *sorted[instant] // those with one, by that
	dead        *sorted[int64]   // letters that lists show
	died        *sorted[instant] // the same by dead_at
}

type (
	instant struct { // of the row of that number
		at     time.Time
		number int64
	}
	mark struct {
		at  time.Time
		key backend.WorkflowKey
	}
	leaseEnd struct {
		at  time.Time
		key backend.WorkflowKey
	}
	closing struct {
		at  time.Time
		key backend.WorkflowKey
	}
	start struct { // newest first
		at time.Time
		id string
	}
	runPlace struct {
		seq int64
		id  string
	}
	opening struct { // an EffectStarted that nothing closed
		seq int64
		rec *record
	}
	meeting struct {
		tenant, kind string
		key          rendezvous.Key
	}
	sides struct{ events, waits *sorted[int64] }
	spot  struct {
		tenant string
		key    rendezvous.Key
	}
	op struct{ tenant, id string }
)

// record is a stored record; damaged says that it does not decode.
type record struct {
	rendezvous.Record
	damaged error
}

type history struct {
	records []*record // by seq
	bytes   int64
}

func compareInstants(a, b instant) int {
	return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.number, b.number))
}

func compareKeys(a, b backend.WorkflowKey) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID))
}

func compareMarks(a, b mark) int       { return cmp.Or(a.at.Compare(b.at), compareKeys(a.key, b.key)) }
func compareEnds(a, b leaseEnd) int    { return compareMarks(mark(a), mark(b)) }
func compareClosings(a, b closing) int { return compareMarks(mark(a), mark(b)) }
func compareStarts(a, b start) int     { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.id, b.id)) }

func comparePlaces(a, b runPlace) int {
	return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.id, b.id))
}

func newTables() tables {
	return tables{
		workflows: map[backend.WorkflowKey]*backend.Workflow{}, leased: newSorted(compareEnds), closed: newSorted(compareClosings),
		remnants: map[backend.RunKey]*backend.Remnant{}, left: map[backend.WorkflowKey]int{},
		runs: map[backend.RunKey]*backend.Run{}, chains: map[backend.WorkflowKey]*sorted[runPlace]{},
		batches: map[backend.BatchKey]*backend.Batch{}, histories: map[backend.WorkflowKey]*history{}, effects: map[backend.WaitKey][]*record{},
		openings: map[backend.RunKey]*sorted[opening]{}, failures: map[backend.RunKey][]*record{}, claimed: map[backend.WaitKey]*backend.Event{},
		events: map[backend.EventKey]*backend.Event{}, eventsByNum: map[int64]*backend.Event{},
		kept: map[backend.RunKey]*sorted[int64]{}, live: newSorted(compareInstants),
		dead: map[rendezvous.DeadReason]int{}, ops: map[op]*sorted[int64]{},
		waits: map[backend.WaitKey]*backend.Wait{}, waitsByNum: map[int64]*backend.Wait{},
		runWaits: map[backend.RunKey]*sorted[int64]{}, mail: map[backend.RunKey]int{}, parked: newSorted(compareInstants),
		meets: map[meeting]*sides{}, kinds: map[spot]*sorted[string]{}, named: map[backend.RunKey]*sorted[string]{}, woken: map[backend.WorkflowKey]*backend.Woken{}, since: newSorted(compareMarks),
		tenants: map[string]*tenant{}, timerTables: newTimerTables(), push: newPushTables(),
	}
}

func newTenant() *tenant {
	return &tenant{
		started: newSorted(compareStarts), waits: newSorted(cmp.Compare[int64]), due: newSorted(compareInstants),
		stuck: newSorted(compareInstants), quarantined: newSorted(compareInstants), woken: newSorted(compareMarks),
		unmet: map[meeting]struct{}{}, ageing: newSorted(compareInstants), expiring: newSorted(compareInstants), dead: newSorted(cmp.Compare[int64]),
		died: newSorted(compareInstants),
	}
}

func (t *tables) tenant(name string) *tenant {
	if t.tenants[name] == nil {
		t.tenants[name] = newTenant()
	}
	return t.tenants[name]
}

// under is the set of m under k, made when it is not there.
func under[K comparable](m map[K]*sorted[int64], k K) *sorted[int64] {
	s := m[k]
	if s == nil {
		s = newSorted(cmp.Compare[int64])
		m[k] = s
	}
	return s
}

// drop removes x from the set of m under k, and the set with its last item: an index holds nothing of what is finished.
func drop[K comparable](m map[K]*sorted[int64], k K, x int64) {
	if s := m[k]; s != nil {
		if s.remove(x); s.len() == 0 {
			delete(m, k)
		}
	}
}

func (t *tables) linkWorkflow(w *backend.Workflow) {
	t.workflows[w.Key()] = w
	t.tenant(w.Tenant).started.insert(start{w.StartedAt, w.ID})
	if w.LeaseOwner != "" {
		t.leased.insert(leaseEnd{w.LeaseExpires, w.Key()})
	}
	t.linkHead(w)
	if !w.ClosedAt.IsZero() {
		t.closed.insert(closing{w.ClosedAt, w.Key()})
	}
	t.linkMark(t.woken[w.Key()])
}

func (t *tables) unlinkWorkflow(w *backend.Workflow) {
	t.unlinkMark(t.woken[w.Key()])
	t.unlinkHead(w)
	t.leased.remove(leaseEnd{w.LeaseExpires, w.Key()})
	t.closed.remove(closing{w.ClosedAt, w.Key()})
	t.tenant(w.Tenant).started.remove(start{w.StartedAt, w.ID})
	delete(t.workflows, w.Key())
}

func (t *tables) linkRun(r *backend.Run) {
	t.runs[r.Key()] = r
	key := backend.WorkflowKey{Tenant: r.Tenant, ID: r.WorkflowID}
	if t.chains[key] == nil {
		t.chains[key] = newSorted(comparePlaces)
	}
	t.chains[key].insert(runPlace{r.FirstSeq, r.ID})
}

func (t *tables) unlinkRun(r *backend.Run) {
	key := backend.WorkflowKey{Tenant: r.Tenant, ID: r.WorkflowID}
	if t.chains[key].remove(runPlace{r.FirstSeq, r.ID}); t.chains[key].len() == 0 {
		delete(t.chains, key)
	}
	delete(t.runs, r.Key())
}

// linkMark puts a mark where DueWoken finds it, unless its run is paused, ended or gone. nil is none.
func (t *tables) linkMark(m *backend.Woken) {
	if m == nil {
		return
	}
	t.woken[m.Key()] = m
	t.since.insert(mark{m.Since, m.Key()})
	if w := t.workflows[m.Key()]; w != nil && w.Corrupt == nil && w.Status == rendezvous.StatusRunning {
		t.tenant(m.Tenant).woken.insert(mark{m.NextNoticeAt, m.Key()})
	}
}

func (t *tables) unlinkMark(m *backend.Woken) {
	if m == nil {
		return
	}
	t.since.remove(mark{m.Since, m.Key()})
	t.tenant(m.Tenant).woken.remove(mark{m.NextNoticeAt, m.Key()})
}

// side is one half of a meeting: which of its two sets, and the places a row has there.
type side func(s *sides) *sorted[int64]

func eventSide(s *sides) *sorted[int64] { return s.events }
func waitSide(s *sides) *sorted[int64]  { return s.waits }

func (t *tables) meet(m meeting, half side, number int64) {
	s := t.meets[m]
	if s == nil {
		s = &sides{newSorted(cmp.Compare[int64]), newSorted(cmp.Compare[int64])}
		t.meets[m] = s
		t.kindsOf(spot{m.tenant, m.key}).insert(m.kind)
	}
	half(s).insert(number)
	if s.events.len() > 0 && s.waits.len() > 0 {
		t.tenant(m.tenant).unmet[m] = struct{}{}
	}
}

func (t *tables) part(m meeting, half side, number int64) {
	s := t.meets[m]
	if s == nil {
		return
	}
	half(s).remove(number)
	if s.events.len() == 0 || s.waits.len() == 0 {
		delete(t.tenant(m.tenant).unmet, m)
	}
	if s.events.len()+s.waits.len() == 0 {
		delete(t.meets, m)
		at := spot{m.tenant, m.key}
		if t.kinds[at].remove(m.kind); t.kinds[at].len() == 0 {
			delete(t.kinds, at)
		}
	}
}

func (t *tables) kindsOf(s spot) *sorted[string] {
	if t.kinds[s] == nil {
		t.kinds[s] = newSorted(cmp.Compare[string])
	}
	return t.kinds[s]
}
