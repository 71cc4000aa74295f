package memory

import (
	"cmp"
	"slices"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// The law of key rows (events.md section 2): exactly live events and open waits stand in the match index.

func (t *tables) linkEvent(e *backend.Event) {
	t.events[e.Key()], t.eventsByNum[e.Number] = e, e
	if e.State == rendezvous.EventClaimed {
		t.claimed[claimOf(e)] = e
	}
	if e.Op != "" {
		under(t.ops, op{e.Tenant, e.Op}).insert(e.Number)
	}
	if e.Listed = e.Dead(); e.Listed {
		t.dead[e.DeadReason]++
		t.tenant(e.Tenant).dead.insert(e.Number)
		t.tenant(e.Tenant).died.insert(instant{e.DeadAt, e.Number})
	}
	if e.Keyed = e.Live(); !e.Keyed {
		return
	}
	t.live.insert(instant{e.LiveSince, e.Number})
	t.overdue(e).insert(dueAt(e))
	for _, k := range e.MatchKeys() {
		t.meet(meeting{e.Tenant, e.Type, k}, eventSide, e.Number)
	}
	if e.Target != "" {
		under(t.kept, backend.RunKey{Tenant: e.Tenant, ID: e.Target}).insert(e.Number)
	}
}

func (t *tables) unlinkEvent(e *backend.Event) {
	delete(t.events, e.Key())
	delete(t.eventsByNum, e.Number)
	if t.claimed[claimOf(e)] == e {
		delete(t.claimed, claimOf(e))
	}
	if e.Op != "" {
		drop(t.ops, op{e.Tenant, e.Op}, e.Number)
	}
	if e.Listed {
		if t.dead[e.DeadReason]--; t.dead[e.DeadReason] == 0 {
			delete(t.dead, e.DeadReason)
		}
		t.tenant(e.Tenant).dead.remove(e.Number)
		t.tenant(e.Tenant).died.remove(instant{e.DeadAt, e.Number})
	}
	if !e.Keyed {
		return
	}
	t.live.remove(instant{e.LiveSince, e.Number})
	t.overdue(e).remove(dueAt(e))
	for _, k := range e.MatchKeys() {
		t.part(meeting{e.Tenant, e.Type, k}, eventSide, e.Number)
	}
	if e.Target != "" {
		drop(t.kept, backend.RunKey{Tenant: e.Tenant, ID: e.Target}, e.Number)
	}
}

// overdue is the order in which a live event falls due, and dueAt its place there.
func (t *tables) overdue(e *backend.Event) *sorted[instant] {
	if e.ExpiresAt.IsZero() {
		return t.tenant(e.Tenant).ageing
	}
	return t.tenant(e.Tenant).expiring
}

func dueAt(e *backend.Event) instant {
	if e.ExpiresAt.IsZero() {
		return instant{e.LiveSince, e.Number}
	}
	return instant{e.ExpiresAt, e.Number}
}

func claimOf(e *backend.Event) backend.WaitKey {
	return backend.WaitKey{Tenant: e.Tenant, RunID: e.ClaimRun, Effect: e.ClaimEffect}
}

// waitKeys are the keys under which an open wait stands beside live events: its own, and its run's, where events targeted at the run stand.
func waitKeys(w *backend.Wait) []rendezvous.Key {
	return append([]rendezvous.Key{backend.TargetKey(w.RunID)}, w.Keys...)
}

func runOf(w *backend.Wait) backend.RunKey { return backend.RunKey{Tenant: w.Tenant, ID: w.RunID} }

func (t *tables) linkWait(w *backend.Wait) {
	t.waits[w.Key()], t.waitsByNum[w.Number] = w, w
	o := t.tenant(w.Tenant)
	o.waits.insert(w.Number)
	under(t.runWaits, runOf(w)).insert(w.Number)
	w.Keyed = w.Open()
	switch {
	case w.Keyed:
		t.open++
		for _, k := range waitKeys(w) {
			t.meet(meeting{w.Tenant, w.Type, k}, waitSide, w.Number)
		}
	case w.QuarantinedAt.IsZero():
		t.mail[runOf(w)]++
		t.parked.insert(instant{w.ParkedAt, w.Number})
		o.due.insert(instant{w.NextAttemptAt, w.Number})
	default:
		t.held++
		o.stuck.insert(instant{w.NextAttemptAt, w.Number})
		o.quarantined.insert(instant{w.QuarantinedAt, w.Number})
	}
}

func (t *tables) unlinkWait(w *backend.Wait) {
	delete(t.waits, w.Key())
	delete(t.waitsByNum, w.Number)
	o := t.tenant(w.Tenant)
	o.waits.remove(w.Number)
	drop(t.runWaits, runOf(w), w.Number)
	switch {
	case w.Keyed:
		t.open--
		for _, k := range waitKeys(w) {
			t.part(meeting{w.Tenant, w.Type, k}, waitSide, w.Number)
		}
	case w.QuarantinedAt.IsZero():
		if t.mail[runOf(w)]--; t.mail[runOf(w)] == 0 {
			delete(t.mail, runOf(w))
		}
		t.parked.remove(instant{w.ParkedAt, w.Number})
		o.due.remove(instant{w.NextAttemptAt, w.Number})
	default:
		t.held--
		o.stuck.remove(instant{w.NextAttemptAt, w.Number})
		o.quarantined.remove(instant{w.QuarantinedAt, w.Number})
	}
}

// linkEffect adds a record that opens or closes an effect.
func (t *tables) linkEffect(effect backend.WaitKey, rec *record) {
	run := backend.RunKey{Tenant: effect.Tenant, ID: effect.RunID}
	switch rec.Kind {
	case rendezvous.EffectStarted:
		if t.openings[run] == nil {
			t.openings[run] = newSorted(func(a, b opening) int { return cmp.Compare(a.seq, b.seq) })
		}
		t.openings[run].insert(opening{rec.Seq, rec})
	case rendezvous.EffectFailed:
		t.failures[run] = append(t.failures[run], rec)
		fallthrough
	case rendezvous.EffectDone:
		t.closeEffect(run, effect, rec.Attempt)
	}
	t.effects[effect] = append(t.effects[effect], rec)
	if t.named[run] == nil {
		t.named[run] = newSorted(cmp.Compare[string])
	}
	t.named[run].insert(effect.Effect)
}

// unlinkEffect takes such a record out.
func (t *tables) unlinkEffect(effect backend.WaitKey, rec *record) {
	run := backend.RunKey{Tenant: effect.Tenant, ID: effect.RunID}
	same := func(o *record) bool { return o == rec }
	if open := t.openings[run]; open != nil {
		if open.remove(opening{seq: rec.Seq}); open.len() == 0 {
			delete(t.openings, run)
		}
	}
	if t.failures[run] = slices.DeleteFunc(t.failures[run], same); len(t.failures[run]) == 0 {
		delete(t.failures, run)
	}
	if t.effects[effect] = slices.DeleteFunc(t.effects[effect], same); len(t.effects[effect]) > 0 {
		return
	}
	delete(t.effects, effect)
	if names := t.named[run]; names != nil {
		if names.remove(effect.Effect); names.len() == 0 {
			delete(t.named, run)
		}
	}
}

func (t *tables) closeEffect(run backend.RunKey, effect backend.WaitKey, attempt int) {
	open := t.openings[run]
	if open == nil {
		return
	}
	for _, o := range t.effects[effect] {
		if o.Kind == rendezvous.EffectStarted && o.Attempt == attempt {
			open.remove(opening{seq: o.Seq})
		}
	}
	if open.len() == 0 {
		delete(t.openings, run)
	}
}
