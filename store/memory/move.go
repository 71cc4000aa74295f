package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

var (
	_ backend.Source = (*reader)(nil)
	_ backend.Target = (*transaction)(nil)
)

// Scan implements [backend.Source]. There is no index for it: each page puts all keys in order.
func (r *reader) Scan(ctx context.Context, kind backend.Kind, after backend.Position, limit, maxBytes int) (*backend.Page, error) {
	if err := alive(ctx); err != nil {
		return nil, err
	}
	p := &backend.Page{}
	room := func() bool { return p.Rows < limit && p.Bytes < maxBytes }
	var err error
	flow, run := backend.WorkflowKey{Tenant: after.Tenant, ID: after.ID}, backend.RunKey{Tenant: after.Tenant, ID: after.ID}
	switch kind {
	case backend.Workflows:
		err = behind(r.workflows, flow, room, func(w *backend.Workflow) error { return p.AddWorkflow(copyWorkflow(w)) })
	case backend.Runs:
		err = behind(r.runs, run, room, func(x *backend.Run) error { p.AddRun(copyRun(x)); return nil })
	case backend.History:
		err = r.scanHistories(flow, after.Number, room, p)
	case backend.Batches:
		key := backend.BatchKey{Tenant: after.Tenant, RunID: after.ID, ID: after.Part}
		err = behind(r.batches, key, room, func(b *backend.Batch) error { p.AddBatch(copyBatch(b)); return nil })
	case backend.Left:
		err = behind(r.remnants, run, room, func(x *backend.Remnant) error { p.AddRemnant(copied(x)); return nil })
	case backend.Events:
		err = behind(r.byNumber(), number(after.Number), room, func(e *backend.Event) error { return p.AddEvent(copyEvent(e, true)) })
	case backend.Waits:
		key := backend.WaitKey{Tenant: after.Tenant, RunID: after.ID, Effect: after.Part}
		err = behind(r.waits, key, room, func(w *backend.Wait) error { return p.AddWait(copyWait(w)) })
	case backend.Marks:
		err = behind(r.woken, flow, room, func(m *backend.Woken) error { p.AddMark(copyWoken(m)); return nil })
	case backend.Timers:
		key := backend.TimerKey{Tenant: after.Tenant, WorkflowID: after.ID, TimerID: after.Part}
		err = behind(r.timers, key, room, func(x *backend.Timer) error { return p.AddTimer(copyTimer(x)) })
	case backend.ShardLeases:
		key := backend.ShardKey{Pool: after.ID, Shard: int(after.Number)}
		err = behind(r.leases, key, room, func(l *backend.ShardLease) error { p.AddShardLease(copied(l)); return nil })
	case backend.Pushes:
		err = behind(r.push.pushes, after.PushLogKey().PushKey, room, func(x *backend.Push) error { return p.AddPush(copyPush(x)) })
	case backend.PushLogs:
		err = behind(r.entries(), after.PushLogKey(), room, func(e *backend.PushLogEntry) error { p.AddPushLog(copied(e)); return nil })
	default:
		return nil, fmt.Errorf("store/memory: no kind of rows is called %q", kind)
	}
	return p, err
}

// number is a key that has an order, as the others have.
type number int64

// Compare orders by value.
func (n number) Compare(o number) int { return cmp.Compare(n, o) }

func (r *reader) byNumber() map[number]*backend.Event {
	rows := make(map[number]*backend.Event, len(r.eventsByNum))
	for n, e := range r.eventsByNum {
		rows[number(n)] = e
	}
	return rows
}

func (r *reader) entries() map[backend.PushLogKey]*backend.PushLogEntry {
	rows := map[backend.PushLogKey]*backend.PushLogEntry{}
	for _, own := range r.push.log {
		for e := range own.all() {
			rows[e.PushLogKey] = e
		}
	}
	return rows
}

// behind adds the rows whose keys come behind after, in their order, while there is room.
func behind[K interface {
	comparable
	Compare(K) int
}, V any](rows map[K]V, after K, room func() bool, add func(row V) error,
) error {
	for _, k := range slices.SortedFunc(maps.Keys(rows), K.Compare) {
		if k.Compare(after) <= 0 {
			continue
		}
		if !room() {
			break
		}
		if err := add(rows[k]); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) scanHistories(after backend.WorkflowKey, seq int64, room func() bool, p *backend.Page) error {
	for _, k := range slices.SortedFunc(maps.Keys(r.histories), backend.WorkflowKey.Compare) {
		for _, rec := range r.histories[k].records {
			if c := k.Compare(after); c < 0 || c == 0 && rec.Seq <= seq {
				continue
			}
			if !room() {
				return nil
			}
			wrong := p.AddRecord(k.Tenant, k.ID, copyRecord(rec.Record), rec.Kind.Phase() == rendezvous.PhaseClose)
			if err := cmp.Or(rec.damaged, wrong); err != nil {
				return err
			}
		}
	}
	return nil
}

// About implements [backend.Source].
func (r *reader) About(_ context.Context, kind backend.Kind) (int64, error) {
	n := map[backend.Kind]int{
		backend.Workflows: len(r.workflows), backend.Runs: len(r.runs), backend.Batches: len(r.batches), backend.Left: len(r.remnants), backend.Events: len(r.events),
		backend.Pushes: len(r.push.pushes), backend.PushLogs: len(r.entries()),
		backend.Waits: len(r.waits), backend.Marks: len(r.woken), backend.Timers: len(r.timers), backend.ShardLeases: len(r.leases),
	}[kind]
	if kind == backend.History {
		for _, h := range r.histories {
			n += len(h.records)
		}
	}
	return int64(n), nil
}

// Given implements [backend.Source].
func (r *reader) Given(context.Context) (backend.Numbers, error) {
	return backend.Numbers{Event: r.eventNumber, Wait: r.waitNumber, Take: r.take}, nil
}

// Unfinished implements [backend.Source].
func (r *reader) Unfinished(context.Context) (string, error) { return r.copying, nil }

// Mark implements [backend.Target].
func (t *transaction) Mark(_ context.Context, was, mark string) error {
	if t.copying != was {
		return backend.ErrStale
	}
	t.mark = &mark
	return nil
}

// Raise implements [backend.Target].
func (t *transaction) Raise(_ context.Context, n backend.Numbers) error {
	t.eventNumber, t.waitNumber, t.take = max(t.eventNumber, n.Event), max(t.waitNumber, n.Wait), max(t.take, n.Take)
	return nil
}
