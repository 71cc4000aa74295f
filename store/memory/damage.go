package memory

import (
	"encoding/json"
	"fmt"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Damage changes rows of a backend as no transaction does, for tests of what the plane makes of damage. It is not for programs.
type Damage struct{ b *Backend }

// Damage opens the backend to damage.
func (b *Backend) Damage() Damage { return Damage{b} }

func corrupt(format string, args ...any) *rendezvous.Error {
	return rendezvous.Errorf(rendezvous.CodeCorrupt, format, args...)
}

// event damages an event's row, kept by its indexes as it was.
func (d Damage) event(tenant string, id rendezvous.EventID, change func(e *backend.Event)) error {
	return d.do(func(t *tables) error {
		e := t.events[backend.EventKey{Tenant: tenant, Source: id.Source, ID: id.ID}]
		if e == nil {
			return fmt.Errorf("no event %v in %s", id, tenant)
		}
		change(e)
		return nil
	})
}

func (d Damage) do(change func(t *tables) error) error {
	<-d.b.turn
	defer d.b.leave()
	return change(&d.b.tables)
}

// Minter leaves half of the pair that says who minted an event.
func (d Damage) Minter(tenant string, id rendezvous.EventID) error {
	return d.event(tenant, id, func(e *backend.Event) {
		e.Corrupt = corrupt("event %v: an actor without a basis", id).With("tenant", tenant).With("source", id.Source).With("id", id.ID)
	})
}

// Event makes an event's row undecodable.
func (d Damage) Event(tenant string, id rendezvous.EventID) error {
	return d.event(tenant, id, func(e *backend.Event) {
		e.Corrupt = corrupt("event %v: its keys do not decode", id).With("tenant", tenant).With("source", id.Source).With("id", id.ID)
	})
}

// Wait makes a wait's row undecodable.
func (d Damage) Wait(tenant string, id rendezvous.WaitID) error {
	return d.do(func(t *tables) error {
		w := t.waits[backend.WaitKey{Tenant: tenant, RunID: id.RunID, Effect: id.Effect}]
		if w == nil {
			return fmt.Errorf("no wait %v in %s", id, tenant)
		}
		w.Corrupt = corrupt("wait %v: its keys do not decode", id).With("tenant", tenant).With("run", id.RunID).With("effect", id.Effect)
		return nil
	})
}

// Timer makes a timer's row undecodable.
func (d Damage) Timer(tenant, workflowID, timerID string) error {
	return d.do(func(t *tables) error {
		x := t.timers[backend.TimerKey{Tenant: tenant, WorkflowID: workflowID, TimerID: timerID}]
		if x == nil {
			return fmt.Errorf("no timer %q of %q in %s", timerID, workflowID, tenant)
		}
		x.Corrupt = corrupt("timer %q of workflow %q: its armed_seq does not decode", timerID, workflowID).
			With("tenant", tenant).With("workflow", workflowID).With("timer", timerID)
		return nil
	})
}

// Push makes a registration's row undecodable.
func (d Damage) Push(tenant, run, id string) error {
	return d.do(func(t *tables) error {
		p := t.push.pushes[backend.PushKey{Tenant: tenant, RunID: run, ID: id}]
		if p == nil {
			return fmt.Errorf("no registration %q of run %q in %s", id, run, tenant)
		}
		p.Corrupt = corrupt("registration %q of run %q: its settings do not decode", id, run).With("tenant", tenant).With("run", run).With("id", id)
		return nil
	})
}

// Lease makes the lease of a workflow's row undecodable.
func (d Damage) Lease(tenant, workflowID string) error {
	return d.do(func(t *tables) error {
		w := t.workflows[backend.WorkflowKey{Tenant: tenant, ID: workflowID}]
		if w == nil {
			return fmt.Errorf("no workflow %q in %s", workflowID, tenant)
		}
		w.Corrupt = corrupt("workflow %q: an owner without an epoch", workflowID).With("tenant", tenant).With("workflow", workflowID)
		return nil
	})
}

func (d Damage) record(tenant, workflowID string, seq int64, change func(r *record)) error {
	return d.do(func(t *tables) error {
		h := t.histories[backend.WorkflowKey{Tenant: tenant, ID: workflowID}]
		if !h.has(seq) {
			return fmt.Errorf("no record %d of %q in %s", seq, workflowID, tenant)
		}
		change(h.records[h.find(seq)])
		return nil
	})
}

// Record makes a record undecodable.
func (d Damage) Record(tenant, workflowID string, seq int64) error {
	return d.record(tenant, workflowID, seq, func(r *record) {
		r.damaged = corrupt("record %d of workflow %q: its data does not decode", seq, workflowID).
			With("tenant", tenant).With("workflow", workflowID).With("seq", seq)
	})
}

// Rewrite gives a record the kind, version and data that another build wrote.
func (d Damage) Rewrite(tenant, workflowID string, seq int64, kind rendezvous.Kind, v int, data string) error {
	return d.record(tenant, workflowID, seq, func(r *record) { r.Kind, r.V, r.Data = kind, v, json.RawMessage(data) })
}

// Link makes a run say that it follows another.
func (d Damage) Link(tenant, run, previous string) error {
	return d.do(func(t *tables) error {
		r := t.runs[backend.RunKey{Tenant: tenant, ID: run}]
		if r == nil {
			return fmt.Errorf("no run %q in %s", run, tenant)
		}
		r.PreviousRun = previous
		return nil
	})
}

// LoseWait removes a wait's row and its key rows.
func (d Damage) LoseWait(tenant string, id rendezvous.WaitID) error {
	return d.do(func(t *tables) error {
		w := t.waits[backend.WaitKey{Tenant: tenant, RunID: id.RunID, Effect: id.Effect}]
		if w == nil {
			return fmt.Errorf("no wait %v in %s", id, tenant)
		}
		t.unlinkWait(w)
		return nil
	})
}

// Keep remembers a wait's row and that of the event it holds; restore puts them back over what is there then.
func (d Damage) Keep(tenant string, id rendezvous.WaitID) (restore func() error, err error) {
	var wait *backend.Wait
	var held *backend.Event
	err = d.do(func(t *tables) error {
		w := t.waits[backend.WaitKey{Tenant: tenant, RunID: id.RunID, Effect: id.Effect}]
		if w == nil {
			return fmt.Errorf("no wait %v in %s", id, tenant)
		}
		if wait = copyWait(w); w.Held != nil {
			held = copyEvent(t.eventsByNum[w.Held.Number], true)
		}
		return nil
	})
	restore = func() error {
		return d.do(func(t *tables) error {
			if now := t.waits[wait.Key()]; now != nil {
				t.unlinkWait(now)
			}
			t.linkWait(copyWait(wait))
			if held != nil {
				now := t.eventsByNum[held.Number]
				t.unlinkEvent(now)
				back := copyEvent(held, true)
				back.Version = now.Version + 1
				t.linkEvent(back)
			}
			return nil
		})
	}
	return restore, err
}

// KeepTimer remembers a timer's row; restore puts it back over what is there then.
func (d Damage) KeepTimer(tenant, workflowID, timerID string) (restore func() error, err error) {
	key := backend.TimerKey{Tenant: tenant, WorkflowID: workflowID, TimerID: timerID}
	var kept *backend.Timer
	err = d.do(func(t *tables) error {
		if t.timers[key] == nil {
			return fmt.Errorf("no timer %v", key)
		}
		kept = copyTimer(t.timers[key])
		return nil
	})
	restore = func() error {
		return d.do(func(t *tables) error {
			t.unlinkTimer(t.timers[key])
			t.linkTimer(copyTimer(kept))
			return nil
		})
	}
	return restore, err
}

// StrayTimer makes a timer's row name another workflow.
func (d Damage) StrayTimer(tenant, workflowID, timerID, to string) error {
	key := backend.TimerKey{Tenant: tenant, WorkflowID: workflowID, TimerID: timerID}
	return d.do(func(t *tables) error {
		x := t.timers[key]
		if x == nil {
			return fmt.Errorf("no timer %v", key)
		}
		t.unlinkTimer(x)
		stray := copyTimer(x)
		stray.WorkflowID = to
		t.linkTimer(stray)
		return nil
	})
}
