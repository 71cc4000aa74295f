package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

func pageLimits(t *testing.T, h *Harness) {
	f := h.Fix(t)
	r := f.Start()
	r.fill(510, 0)
	for i := range 101 {
		f.StartAs(store.Start{WorkflowID: fmt.Sprintf("w%03d", i), RunID: ID("run"), Type: "order"})
	}
	regs := make([]store.RegisterItem, 101)
	for i := range regs {
		regs[i] = store.RegisterItem{Tenant: f.Name(), Registration: store.Registration{Wait: r.Wait(fmt.Sprint("w", i), "paid")}}
	}
	must(h.Store.RegisterBatch(ctx, regs, now))(t, "register")
	BufferAll(t, h.Store, EventsOf(f.Name(), 0, 101))
	h.Advance(time.Second)
	f.Sweep(0)
	for _, v := range []struct {
		name      string
		page      func(limit int) (int, error)
		def, most int
		filled    bool // there is more than a default page
	}{
		{"ReadHistoryFrom", func(n int) (int, error) {
			p, err := f.ReadHistoryFrom(ctx, r.WorkflowID, 1, n)
			return len(p.Records), err
		}, 500, 10_000, true},
		{"ReadRunChain", func(n int) (int, error) { p, err := f.ReadRunChain(ctx, r.WorkflowID, 0, n); return len(p), err }, 100, 1000, false},
		{"QueryWorkflows", func(n int) (int, error) {
			p, err := f.QueryWorkflows(ctx, store.WorkflowFilter{}, n, "")
			return len(p.Workflows), err
		}, 100, 1000, true},
		{"Waiting", func(n int) (int, error) {
			p, err := f.Waiting(ctx, store.WaitFilter{}, n, "")
			return len(p.Waits), err
		}, 100, 1000, true},
		{"ParkedWaits", func(n int) (int, error) {
			p, err := f.ParkedWaits(ctx, store.WaitFilter{}, n, "")
			return len(p.Waits), err
		}, 100, 1000, false},
		{"QuarantinedWaits", func(n int) (int, error) { p, err := f.QuarantinedWaits(ctx, n, ""); return len(p.Waits), err }, 100, 1000, false},
		{"AbandonedRuns", func(n int) (int, error) { p, _, err := h.Store.AbandonedRuns(ctx, n, ""); return len(p), err }, 0, 0, false},
		{"TakeParked", func(n int) (int, error) { p, err := h.Store.TakeParked(ctx, n, 0); return len(p.Rows), err }, 0, 0, false},
		{"TakeWoken", func(n int) (int, error) { p, err := h.Store.TakeWoken(ctx, n); return len(p.Rows), err }, 0, 0, false},
		{"DeadLetters", func(n int) (int, error) {
			p, err := f.DeadLetters(ctx, store.DeadFilter{}, n, "", false)
			return len(p.Letters), err
		}, 100, 1000, true},
		{"TakeNews", func(n int) (int, error) {
			p, _, err := h.Store.TakeNews(ctx, grace, n, 0, "")
			return len(p.Rows), err
		}, 0, 0, false},
		{"TakeUnmet", func(n int) (int, error) {
			p, _, err := h.Store.TakeUnmet(ctx, grace, n, 0, "")
			return len(p.Rows), err
		}, 0, 0, false},
	} {
		n, err := v.page(0)
		done(t, v.name+" with limit 0", err)
		if v.filled {
			eq(t, v.name+" with limit 0", n, v.def)
			n, err = v.page(7)
			done(t, v.name+" with limit 7", err)
			eq(t, v.name+" with limit 7", n, 7)
		}
		_, err = v.page(-1)
		code(t, v.name+" with a negative limit", err, rendezvous.CodeInvalid, "field", "limit")
		if v.most == 0 {
			_, err = v.page(1 << 30)
			code(t, v.name+" above its maximum", err, rendezvous.CodeTooLarge, "value", 1<<30)
			continue
		}
		_, err = v.page(v.most)
		done(t, v.name+" at its maximum", err)
		_, err = v.page(v.most + 1)
		code(t, v.name+" above its maximum", err, rendezvous.CodeTooLarge, "limit", v.most, "value", v.most+1)
	}
}

func names(t *testing.T, h *Harness) {
	f := h.Fix(t)
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	good := []string{letters, strings.Repeat("x", 64), "-", "_", "0"}
	for _, c := range letters {
		good = append(good, string(c))
	}
	bad := []string{"", "a.b", "a b", "a*", "*", ">", "a/b", "a\x00", "a\n", "é", "\xff", "a,b", "a:b"}
	for _, name := range good {
		tenant := h.FixOf(t, name)
		r := tenant.StartAs(store.Start{WorkflowID: "w", RunID: "r", Type: "order", Queue: name})
		eq(t, "queue", r.Describe().Queue, name)
		tenant.PutNew("paid")
	}
	doors := func(tenant string) map[string]error {
		id := rendezvous.EventID{Source: "shop", ID: "1"}
		_, handle := h.Store.Tenant(tenant)
		buffered := must(h.Store.BufferBatch(ctx, []store.BufferItem{{Tenant: tenant, Event: EventOf("paid")}}, now))(t, "buffer")
		delivered := must(h.Store.DeliverToBatch(ctx, []store.DeliverItem{{Tenant: tenant, RunID: "r", Event: EventOf("paid"), Keep: true}}, now))(t, "deliver to")
		registered := must(h.Store.RegisterBatch(ctx, []store.RegisterItem{{
			Tenant: tenant, Registration: store.Registration{Wait: rendezvous.Wait{WaitID: rendezvous.WaitID{RunID: "r", Effect: "w"}, Type: "paid"}},
		}}, now))(t, "register")
		offered := must(h.Store.OfferBatch(ctx, []store.OfferItem{{Tenant: tenant, Event: &id}}, now))(t, "offer")
		return map[string]error{
			"handle": handle, "buffer": buffered[0].Err, "deliver to": delivered[0].Err, "register": registered[0].Err, "offer": offered.Items[0].Err,
		}
	}
	for _, name := range append(bad, "match", "push", "timer", "tick", "note") {
		for door, err := range doors(name) {
			code(t, fmt.Sprintf("tenant %q at %s", name, door), err, rendezvous.CodeInvalid, "field", "tenant")
		}
	}
	for door, err := range doors(strings.Repeat("x", 65)) {
		if c := rendezvous.CodeOf(err); c != rendezvous.CodeInvalid && c != rendezvous.CodeTooLarge {
			t.Fatalf("a tenant of 65 bytes at %s: got %v, want it refused", door, err)
		}
	}
	for _, name := range append(bad[1:], strings.Repeat("x", 65)) { // "" is the default queue
		_, err := f.StartRun(ctx, store.Start{WorkflowID: ID("workflow"), RunID: ID("run"), Type: "order", Queue: name}, now)
		if c := rendezvous.CodeOf(err); c != rendezvous.CodeInvalid && c != rendezvous.CodeTooLarge || detail(err, "field") != "queue" {
			t.Fatalf("queue %q: got %v, want it refused", name, err)
		}
		r := &Flow{F: f, WorkflowID: ID("workflow"), ID: ID("run")}
		root := r.record(rendezvous.RunStarted, "", rendezvous.RunStartedData{Type: "order", Queue: name})
		_, err = f.Append(ctx, store.Append{WorkflowID: r.WorkflowID, RunID: r.ID, BatchID: ID("batch"), Records: recs(root)}, now)
		if c := rendezvous.CodeOf(err); c != rendezvous.CodeInvalid && c != rendezvous.CodeTooLarge {
			t.Fatalf("queue %q in a record: got %v, want it refused", name, err)
		}
	}
}
