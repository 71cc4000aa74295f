package memory

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// timerTables are the rows of timers, shards and pools, and their indexes.
type timerTables struct {
	timers     map[backend.TimerKey]*backend.Timer
	flowTimers map[backend.WorkflowKey]map[string]*backend.Timer
	firing     *sorted[timerPlace]                    // by fire_at
	ready      map[int]map[string]*sorted[timerPlace] // by shard and tenant, by ready_at
	holds      map[int]*sorted[hold]                  // of a shard, by epoch
	tokens     map[int64]*backend.Timer

	timerRecords map[backend.RunTimerKey]*record       // the last of each timer
	armings      map[backend.RunKey]*sorted[opening]   // timer.started that are the last of their timers
	heads        map[rendezvous.Status]*sorted[flowAt] // workflows by shard; all under ""

	leases  map[backend.ShardKey]*backend.ShardLease
	members map[backend.MemberKey]*backend.Member
}

type (
	timerPlace struct {
		at  time.Time
		key backend.TimerKey
	}
	hold struct {
		epoch int64
		key   backend.TimerKey
	}
	flowAt struct {
		shard int
		key   backend.WorkflowKey
	}
)

func compareTimers(a, b timerPlace) int { return cmp.Or(a.at.Compare(b.at), a.key.Compare(b.key)) }
func compareHolds(a, b hold) int        { return cmp.Or(cmp.Compare(a.epoch, b.epoch), a.key.Compare(b.key)) }

func compareFlows(a, b flowAt) int {
	return cmp.Or(cmp.Compare(a.shard, b.shard), compareKeys(a.key, b.key))
}

func newTimerTables() timerTables {
	return timerTables{
		timers: map[backend.TimerKey]*backend.Timer{}, flowTimers: map[backend.WorkflowKey]map[string]*backend.Timer{}, firing: newSorted(compareTimers),
		ready: map[int]map[string]*sorted[timerPlace]{}, holds: map[int]*sorted[hold]{}, tokens: map[int64]*backend.Timer{},
		timerRecords: map[backend.RunTimerKey]*record{}, armings: map[backend.RunKey]*sorted[opening]{}, heads: map[rendezvous.Status]*sorted[flowAt]{},
		leases: map[backend.ShardKey]*backend.ShardLease{}, members: map[backend.MemberKey]*backend.Member{},
	}
}

func flowOfTimer(k backend.TimerKey) backend.WorkflowKey {
	return backend.WorkflowKey{Tenant: k.Tenant, ID: k.WorkflowID}
}

func (t *timerTables) linkTimer(x *backend.Timer) {
	key := x.Key()
	t.timers[key] = x
	own := t.flowTimers[flowOfTimer(key)]
	if own == nil {
		own = map[string]*backend.Timer{}
		t.flowTimers[flowOfTimer(key)] = own
	}
	own[x.TimerID] = x
	t.firing.insert(timerPlace{x.FireAt, key})
	if t.ready[x.Shard] == nil {
		t.ready[x.Shard], t.holds[x.Shard] = map[string]*sorted[timerPlace]{}, newSorted(compareHolds)
	}
	if t.ready[x.Shard][x.Tenant] == nil {
		t.ready[x.Shard][x.Tenant] = newSorted(compareTimers)
	}
	t.ready[x.Shard][x.Tenant].insert(timerPlace{x.ReadyAt, key})
	if x.Token != 0 {
		t.holds[x.Shard].insert(hold{x.HoldEpoch, key})
		t.tokens[x.Token] = x
	}
}

// unlinkTimer takes a timer out; nil is none.
func (t *timerTables) unlinkTimer(x *backend.Timer) {
	if x == nil {
		return
	}
	key := x.Key()
	delete(t.timers, key)
	if delete(t.flowTimers[flowOfTimer(key)], x.TimerID); len(t.flowTimers[flowOfTimer(key)]) == 0 {
		delete(t.flowTimers, flowOfTimer(key))
	}
	t.firing.remove(timerPlace{x.FireAt, key})
	queue := t.ready[x.Shard][x.Tenant]
	if queue.remove(timerPlace{x.ReadyAt, key}); queue.len() == 0 {
		delete(t.ready[x.Shard], x.Tenant)
	}
	if x.Token != 0 {
		t.holds[x.Shard].remove(hold{x.HoldEpoch, key})
		delete(t.tokens, x.Token)
	}
	if len(t.ready[x.Shard]) == 0 {
		delete(t.ready, x.Shard)
		delete(t.holds, x.Shard)
	}
}

// timerOf is the timer that a record arms, fires or cancels, if it is such a record.
func timerOf(tenant string, rec *record) (backend.RunTimerKey, bool) {
	switch rec.Kind {
	case rendezvous.TimerStarted, rendezvous.TimerFired, rendezvous.TimerCancelled:
	default:
		return backend.RunTimerKey{}, false
	}
	var data struct {
		TimerID string `json:"timer_id"`
	}
	err := json.Unmarshal(rec.Data, &data)
	return backend.RunTimerKey{Tenant: tenant, RunID: rec.RunID, TimerID: data.TimerID}, err == nil
}

// linkTimerRecord notes a record that arms, fires or cancels a timer.
func (t *timerTables) linkTimerRecord(tenant string, rec *record) {
	key, ok := timerOf(tenant, rec)
	if !ok {
		return
	}
	run := backend.RunKey{Tenant: tenant, ID: rec.RunID}
	last := t.timerRecords[key]
	if last != nil && last.Seq > rec.Seq {
		return
	}
	t.timerRecords[key] = rec
	open := t.armings[run]
	if open == nil {
		open = newSorted(func(a, b opening) int { return cmp.Compare(a.seq, b.seq) })
		t.armings[run] = open
	}
	if last != nil {
		open.remove(opening{seq: last.Seq})
	}
	if rec.Kind == rendezvous.TimerStarted {
		open.insert(opening{rec.Seq, rec})
	}
	if open.len() == 0 {
		delete(t.armings, run)
	}
}

// unlinkTimerRecord forgets a record that goes with its run.
func (t *timerTables) unlinkTimerRecord(tenant string, rec *record) {
	key, ok := timerOf(tenant, rec)
	if !ok {
		return
	}
	if t.timerRecords[key] == rec {
		delete(t.timerRecords, key)
	}
	run := backend.RunKey{Tenant: tenant, ID: rec.RunID}
	if open := t.armings[run]; open != nil {
		if open.remove(opening{seq: rec.Seq}); open.len() == 0 {
			delete(t.armings, run)
		}
	}
}

// headsOf are the places of a workflow among all of them and those of its status.
func (t *timerTables) headsOf(w *backend.Workflow) [2]*sorted[flowAt] {
	var places [2]*sorted[flowAt]
	for i, status := range [2]rendezvous.Status{"", w.Status} {
		if t.heads[status] == nil {
			t.heads[status] = newSorted(compareFlows)
		}
		places[i] = t.heads[status]
	}
	return places
}

func (t *timerTables) linkHead(w *backend.Workflow) {
	for _, heads := range t.headsOf(w) {
		heads.insert(flowAt{w.Shard, w.Key()})
	}
}

func (t *timerTables) unlinkHead(w *backend.Workflow) {
	for _, heads := range t.headsOf(w) {
		heads.remove(flowAt{w.Shard, w.Key()})
	}
}
