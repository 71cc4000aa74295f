package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// everyLimit sends events that differ from a good one in one thing.
func everyLimit(t *testing.T, h *Harness) {
	f := h.Fix(t)
	id := func(n int) string { s := ID("i"); return s + strings.Repeat("x", n-len(s)) }
	keys := func(n int) []rendezvous.Key {
		var all []rendezvous.Key
		for i := range n {
			all = append(all, K("order", fmt.Sprint(i)))
		}
		return all
	}
	text := func(n int) string { return strings.Repeat("x", n) }
	type change func(e *rendezvous.Event)
	for _, c := range []struct {
		name, field string
		at          change // accepted
		beyond      change // refused
		code        rendezvous.Code
	}{
		{"id", "id", func(e *rendezvous.Event) { e.ID = id(512) }, func(e *rendezvous.Event) { e.ID = id(513) }, rendezvous.CodeTooLarge},
		{"one byte id", "id", func(e *rendezvous.Event) { e.ID = "1" }, func(e *rendezvous.Event) { e.ID = "" }, rendezvous.CodeInvalid},
		{"source", "source", func(e *rendezvous.Event) { e.Source = text(512) }, func(e *rendezvous.Event) { e.Source = text(513) }, rendezvous.CodeTooLarge},
		{"one byte source", "source", func(e *rendezvous.Event) { e.Source = "s" }, func(e *rendezvous.Event) { e.Source = "" }, rendezvous.CodeInvalid},
		{"type", "type", func(e *rendezvous.Event) { e.Type = text(512) }, func(e *rendezvous.Event) { e.Type = text(513) }, rendezvous.CodeTooLarge},
		{"one byte type", "type", func(e *rendezvous.Event) { e.Type = "t" }, func(e *rendezvous.Event) { e.Type = "" }, rendezvous.CodeInvalid},
		{"number of keys", "keys", func(e *rendezvous.Event) { e.Keys = keys(16) }, func(e *rendezvous.Event) { e.Keys = keys(17) }, rendezvous.CodeTooLarge},
		{
			"keys that repeat", "keys", func(e *rendezvous.Event) { e.Keys = append(keys(16), keys(16)...) },
			func(e *rendezvous.Event) { e.Keys = append(keys(16), keys(17)...) }, rendezvous.CodeTooLarge,
		},
		{
			"namespace", "keys[0].namespace", func(e *rendezvous.Event) { e.Keys = []rendezvous.Key{K(text(256), "1")} },
			func(e *rendezvous.Event) { e.Keys = []rendezvous.Key{K(text(257), "1")} }, rendezvous.CodeTooLarge,
		},
		{
			"one byte namespace", "keys[0].namespace", func(e *rendezvous.Event) { e.Keys = []rendezvous.Key{K("n", "1")} },
			func(e *rendezvous.Event) { e.Keys = []rendezvous.Key{K("", "1")} }, rendezvous.CodeInvalid,
		},
		{
			"key's value", "keys[1].value", func(e *rendezvous.Event) { e.Keys = []rendezvous.Key{K("n", "1"), K("n", text(256))} },
			func(e *rendezvous.Event) { e.Keys = []rendezvous.Key{K("n", "1"), K("n", text(257))} }, rendezvous.CodeTooLarge,
		},
		{
			"one byte value", "keys[0].value", func(e *rendezvous.Event) { e.Keys = []rendezvous.Key{K("n", "v")} },
			func(e *rendezvous.Event) { e.Keys = []rendezvous.Key{K("n", "")} }, rendezvous.CodeInvalid,
		},
		{
			"content type", "content_type", func(e *rendezvous.Event) { e.ContentType = text(256) },
			func(e *rendezvous.Event) { e.ContentType = text(257) }, rendezvous.CodeTooLarge,
		},
		{
			"payload", "payload", func(e *rendezvous.Event) { e.Payload = make([]byte, 1<<20) },
			func(e *rendezvous.Event) { e.Payload = make([]byte, 1<<20+1) }, rendezvous.CodeTooLarge,
		},
		{
			"control characters", "id", func(e *rendezvous.Event) { e.ID = "a\u00a0b" }, func(e *rendezvous.Event) { e.ID = "a\nb" }, rendezvous.CodeInvalid,
		},
		{"NUL", "source", func(e *rendezvous.Event) { e.Source = "a b" }, func(e *rendezvous.Event) { e.Source = "a\x00b" }, rendezvous.CodeInvalid},
		{"DEL", "type", func(e *rendezvous.Event) { e.Type = "a~b" }, func(e *rendezvous.Event) { e.Type = "a\x7fb" }, rendezvous.CodeInvalid},
		{"UTF-8", "id", func(e *rendezvous.Event) { e.ID = "a\u20acb" }, func(e *rendezvous.Event) { e.ID = "a\xffb" }, rendezvous.CodeInvalid},
		{
			"UTF-8 in keys", "keys[0].value", func(e *rendezvous.Event) { e.Keys = []rendezvous.Key{K("n", "\u20ac")} },
			func(e *rendezvous.Event) { e.Keys = []rendezvous.Key{K("n", "\xe2\x82")} }, rendezvous.CodeInvalid,
		},
	} {
		good, bad := EventOf("paid"), EventOf("paid")
		c.at(&good)
		eq(t, c.name+" at its limit", f.Put(good).Outcome, store.BufferNew)
		stored := f.Stored(good.EventID)
		eq(t, c.name+" as stored", stored.EventID, good.EventID)
		c.beyond(&bad)
		_, err := f.Buffer(ctx, bad, now)
		code(t, c.name+" beyond its limit", err, c.code, "field", c.field)
		if c.code == rendezvous.CodeTooLarge && (detail(err, "limit") == nil || detail(err, "value") == nil) {
			t.Fatalf("%s: the error names no limit and value: %v", c.name, err)
		}
	}
}

func batchLimits(t *testing.T, h *Harness) {
	f := h.Fix(t)
	items := make([]store.BufferItem, rendezvous.MaxBatchItems+1)
	for i := range items {
		items[i] = store.BufferItem{Tenant: f.Name(), Event: EventOf("paid")}
	}
	_, err := h.Store.BufferBatch(ctx, items, now)
	code(t, "buffer 501 items", err, rendezvous.CodeTooLarge, "limit", rendezvous.MaxBatchItems, "value", len(items))
	eq(t, "live events", must(h.Store.Depths(ctx))(t, "depths").LiveEvents, 0)
	_, err = h.Store.BufferBatch(ctx, nil, now)
	code(t, "buffer no items", err, rendezvous.CodeInvalid)
	out := must(h.Store.BufferBatch(ctx, []store.BufferItem{{Tenant: "a.b", Event: EventOf("paid")}, items[0]}, now))(t, "buffer for no tenant")
	code(t, "item of no tenant", out[0].Err, rendezvous.CodeInvalid)
	eq(t, "the other item", out[1].Outcome, store.BufferNew)
}

func expiryLimit(t *testing.T, h *Harness) {
	f := h.Fix(t)
	at := h.Now(t)
	most := rendezvous.MaxExpiryDays * 24 * time.Hour
	for _, c := range []struct {
		ahead time.Duration
		good  bool
	}{{-time.Hour, true}, {0, true}, {most, true}, {most + time.Microsecond, false}} {
		e := EventOf("paid")
		e.ExpiresAt = at.Add(c.ahead)
		_, err := f.Buffer(ctx, e, at)
		if c.good {
			done(t, "expiry "+c.ahead.String()+" ahead", err)
			eq(t, "expiry as stored", f.Stored(e.EventID).ExpiresAt, e.ExpiresAt)
		} else {
			code(t, "expiry beyond 30 days", err, rendezvous.CodeInvalid, "field", "expires_at")
		}
	}
	fine := EventOf("paid")
	fine.ExpiresAt = at.Add(time.Minute + time.Nanosecond) // due-like instants round up
	f.Put(fine)
	eq(t, "expiry as stored", f.Stored(fine.EventID).ExpiresAt, at.Add(time.Minute+time.Microsecond))
}
