package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// TestIndexesFollowTheirRows writes random rows over each other and compares every index with one made of the rows that are left.
func TestIndexesFollowTheirRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Open(clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), rendezvous.DefaultShards)
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				got, want := b.tables.shape(), b.tables.remade().shape()
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Fatalf("indexes differ from their rows (-rows +indexes):\n%s", diff)
				}
			},
			"workflow": func(t *rapid.T) { change(t, b, func(tx *transaction, c *backend.Changes) { drawWorkflow(t, tx, c) }) },
			"event":    func(t *rapid.T) { change(t, b, func(tx *transaction, c *backend.Changes) { drawEvent(t, tx, c) }) },
			"wait":     func(t *rapid.T) { change(t, b, func(tx *transaction, c *backend.Changes) { drawWait(t, tx, c) }) },
			"mark":     func(t *rapid.T) { change(t, b, func(_ *transaction, c *backend.Changes) { drawMark(t, c) }) },
		})
	})
}

func change(t *rapid.T, b *Backend, plan func(tx *transaction, c *backend.Changes)) {
	err := b.Update(context.Background(), "test", func(ctx context.Context, tx backend.Tx) error {
		keys := []backend.WorkflowKey{{Tenant: "a", ID: "w1"}, {Tenant: "a", ID: "w2"}, {Tenant: "b", ID: "w1"}, {Tenant: "b", ID: "w2"}}
		if _, err := tx.LockWorkflows(ctx, keys); err != nil {
			return err
		}
		c := &backend.Changes{}
		plan(tx.(*transaction), c)
		return tx.Apply(ctx, c)
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	anyTenant  = rapid.SampledFrom([]string{"a", "b"})
	anyFlow    = rapid.SampledFrom([]string{"w1", "w2"})
	anyID      = rapid.SampledFrom([]string{"1", "2", "3", "4"})
	anyInstant = rapid.Map(rapid.IntRange(0, 5), func(n int) time.Time { return time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC) })
	anyKeys    = rapid.SliceOfNDistinct(rapid.Map(anyID, func(s string) rendezvous.Key { return rendezvous.Key{Namespace: "n", Value: s} }), 0, 3, rapid.ID)
)

func drawWorkflow(t *rapid.T, tx *transaction, c *backend.Changes) {
	w := &backend.Workflow{
		Tenant: anyTenant.Draw(t, "tenant"), ID: anyFlow.Draw(t, "id"), StartedAt: anyInstant.Draw(t, "started"),
		Status: rapid.SampledFrom([]rendezvous.Status{rendezvous.StatusRunning, rendezvous.StatusPaused, rendezvous.StatusFailed}).Draw(t, "status"),
	}
	if rapid.Bool().Draw(t, "leased") {
		w.LeaseOwner, w.LeaseExpires = "pod", anyInstant.Draw(t, "expires")
	}
	if tx.workflows[w.Key()] == nil {
		c.NewWorkflows = append(c.NewWorkflows, w)
	} else {
		c.Workflows = append(c.Workflows, w)
	}
}

func drawEvent(t *rapid.T, tx *transaction, c *backend.Changes) {
	e := &backend.Event{
		Tenant: anyTenant.Draw(t, "tenant"), Source: "s", ID: anyID.Draw(t, "id"), Type: "paid", Keys: anyKeys.Draw(t, "keys"),
		LiveSince: anyInstant.Draw(t, "live since"), Target: rapid.SampledFrom([]string{"", "", "r1"}).Draw(t, "target"),
		State: rapid.SampledFrom([]rendezvous.EventState{
			rendezvous.EventLive, rendezvous.EventLive, rendezvous.EventClaimed, rendezvous.EventConsumed, rendezvous.EventDead,
		}).Draw(t, "state"),
	}
	old := tx.events[e.Key()]
	if e.State == rendezvous.EventClaimed {
		e.ClaimRun, e.ClaimEffect = "r1", e.ID
	}
	if old == nil {
		e.Number = int64(len(tx.events) + 1)
		c.NewEvents = append(c.NewEvents, e)
		return
	}
	e.Number, e.Version = old.Number, old.Version
	c.Events = append(c.Events, e)
}

func drawWait(t *rapid.T, tx *transaction, c *backend.Changes) {
	w := &backend.Wait{
		Tenant: anyTenant.Draw(t, "tenant"), RunID: "r1", Effect: anyID.Draw(t, "effect"), WorkflowID: anyFlow.Draw(t, "workflow"), Type: "paid",
		Keys: anyKeys.Draw(t, "keys"), OpenSince: anyInstant.Draw(t, "open since"),
	}
	if rapid.Bool().Draw(t, "parked") {
		w.Held = &backend.HeldEvent{Number: 1, Source: "s", ID: "1"}
		w.ParkedAt, w.NextAttemptAt = anyInstant.Draw(t, "parked at"), anyInstant.Draw(t, "next attempt")
		if rapid.Bool().Draw(t, "quarantined") {
			w.QuarantinedAt = anyInstant.Draw(t, "quarantined at")
		}
	}
	old := tx.waits[w.Key()]
	if old == nil {
		tx.waitNumber++
		w.Number = tx.waitNumber
		c.NewWaits = append(c.NewWaits, w)
		return
	}
	w.Number, w.Version = old.Number, old.Version
	if rapid.Bool().Draw(t, "gone") {
		c.GoneWaits = append(c.GoneWaits, w)
	} else {
		c.Waits = append(c.Waits, w)
	}
}

func drawMark(t *rapid.T, c *backend.Changes) {
	m := &backend.Woken{
		Tenant: anyTenant.Draw(t, "tenant"), WorkflowID: anyFlow.Draw(t, "workflow"), Since: anyInstant.Draw(t, "since"),
		NextNoticeAt: anyInstant.Draw(t, "next"), Anew: rapid.Bool().Draw(t, "anew"),
	}
	switch rapid.IntRange(0, 2).Draw(t, "how") {
	case 0:
		c.Woken = append(c.Woken, m)
	case 1:
		c.Unwoken = append(c.Unwoken, m.Key())
	case 2:
		c.MarkedWoken = append(c.MarkedWoken, m)
	}
}

// remade are tables of the same rows, linked anew.
func (t *tables) remade() *tables {
	n := newTables()
	for _, w := range t.workflows {
		n.linkWorkflow(copyWorkflow(w))
	}
	for _, e := range t.events {
		n.linkEvent(copyEvent(e, true))
	}
	for _, w := range t.waits {
		n.linkWait(copyWait(w))
	}
	for _, m := range t.woken {
		n.linkMark(copyWoken(m))
	}
	return &n
}

// shape writes every index down as text, empty ones left out.
func (t *tables) shape() map[string]string {
	s := map[string]string{
		"open": fmt.Sprint(t.open), "held": fmt.Sprint(t.held), "mail": fmt.Sprint(t.mail), "claimed": fmt.Sprint(slices.SortedFunc(maps.Keys(t.claimed), compareWaits)),
	}
	put(s, "leased", t.leased)
	put(s, "live", t.live)
	put(s, "parked", t.parked)
	put(s, "since", t.since)
	for k, set := range t.kept {
		put(s, fmt.Sprint("kept ", k), set)
	}
	for k, set := range t.runWaits {
		put(s, fmt.Sprint("waits of ", k), set)
	}
	for m, both := range t.meets {
		s[fmt.Sprint("meets ", m)] = fmt.Sprint(slices.Collect(both.events.all()), slices.Collect(both.waits.all()))
	}
	for at, set := range t.kinds {
		put(s, fmt.Sprint("kinds ", at), set)
	}
	for name, o := range t.tenants {
		put(s, name+" started", o.started)
		put(s, name+" waits", o.waits)
		put(s, name+" due", o.due)
		put(s, name+" stuck", o.stuck)
		put(s, name+" quarantined", o.quarantined)
		put(s, name+" woken", o.woken)
		for m := range o.unmet {
			s[fmt.Sprint("unmet ", m)] = "yes"
		}
	}
	return s
}

func compareWaits(a, b backend.WaitKey) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.RunID, b.RunID), cmp.Compare(a.Effect, b.Effect))
}

func put[T any](s map[string]string, name string, set *sorted[T]) {
	if set.len() > 0 {
		s[name] = fmt.Sprint(slices.Collect(set.all()))
	}
}
