package storetest

import (
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// retention are the cases of what is kept for a time (SW-29).
var retention = []Case{
	{Name: "SW-29 letters dead for their time are purged by rule, others stay, and the bound is inclusive", Run: oldLettersPurged},
	{Name: "SW-29 S1 old letters that do not decode are spared and hide nobody", Run: oldLettersSpared},
	{Name: "SW-29 S3 old letters of many hide none of another tenant's", Run: oldLettersFair},
	{Name: "SW-29 S5 two purges at once, and an operator's requeue between them", Run: oldLettersAtOnce},
	{Name: "SW-29 a purge of old letters at any step is done or not done", Run: oldLettersOrNot},
	{Name: "limits of a purge of old letters are refused by name", Run: oldLettersLimits},
}

// PurgeOld purges all letters dead since before or earlier, in pages of limit.
func (h *Harness) PurgeOld(t testing.TB, before time.Time, limit int) (purged, spared []string) {
	t.Helper()
	return h.purgeOldFrom(t, "", before, limit)
}

func (h *Harness) purgeOldFrom(t testing.TB, cursor string, before time.Time, limit int) (purged, spared []string) {
	t.Helper()
	for {
		page := must(h.Store.PurgeOldLetters(ctx, before, limit, cursor))(t, "purge old letters")
		if n := len(page.Purged) + len(page.Spared); limit > 0 && n > limit {
			t.Fatalf("a page of %d letters", n)
		}
		for _, l := range page.Purged {
			purged = append(purged, l.ID)
		}
		for _, l := range page.Spared {
			code(t, "why "+l.ID+" is spared", l.Corrupt, rendezvous.CodeCorrupt)
			spared = append(spared, l.ID)
		}
		if cursor = page.NextCursor; cursor == "" {
			return purged, spared
		}
	}
}

func oldLettersPurged(t *testing.T, h *Harness) {
	for _, f := range h.Two(t) {
		old, raised := f.Kill(EventOf("paid", K("order", "1"))), f.Kill(EventOf("paid"))
		eq(t, "requeue", f.RequeueAll(raised.EventID).Items[0].Outcome, store.RequeueRequeued)
		live := f.PutNew("paid", K("order", "2"))
		deadAt := f.Stored(old.EventID).DeadAt
		h.Advance(time.Second)
		young := f.Start()
		recent := EventOf("paid", K("order", "1"))
		young.Kept(recent)
		young.Conclude(rendezvous.StatusCompleted)

		purged, _ := h.PurgeOld(t, deadAt.Add(-time.Microsecond), 0)
		eq(t, "purged a microsecond early", purged, nil)
		for _, none := range []time.Time{{}, time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC)} {
			purged, _ = h.PurgeOld(t, none, 0)
			eq(t, "purged by a window longer than time", purged, nil)
		}
		purged, _ = h.PurgeOld(t, deadAt, 0)
		eq(t, "purged at the bound", purged, []string{old.ID})
		purged, _ = h.PurgeOld(t, deadAt, 0)
		eq(t, "purged again", purged, nil)
		f.WantLive(raised, live)
		eq(t, "letters", letterIDs(f.Letters(store.DeadFilter{})), []string{recent.ID})
		eq(t, "letters of the key", letterIDs(f.Letters(store.DeadFilter{Key: &old.Keys[0]})), []string{recent.ID})

		s := f.WantDead(old.EventID, rendezvous.DeadUnclaimed)
		eq(t, "stored", []any{s.Purged, s.HasPayload, len(s.Keys), s.OpBy.Actor, s.Op != ""}, []any{true, false, 0, store.Retention, true})
		again := f.Put(old)
		eq(t, "replay", []any{again.Outcome, again.State}, []any{store.BufferDuplicate, rendezvous.EventDead})
		other := old
		other.Payload = []byte("other")
		_, err := f.Buffer(ctx, other, now)
		code(t, "replay with other content", err, rendezvous.CodeConflict)
		eq(t, "verdict", must(f.ExplainEvent(ctx, old.EventID))(t, "explain").Facts.Purged, true)
		purged, _ = h.PurgeOld(t, h.Now(t), 0)
		eq(t, "the last one", purged, []string{recent.ID})
	}
}

func oldLettersSpared(t *testing.T, h *Harness) {
	f := h.Fix(t)
	var bad, good []string
	for range 5 {
		e := f.Kill(EventOf("paid"))
		bad = append(bad, e.ID)
		done(t, "damage", h.Damage.Event(f.Name(), e.EventID))
	}
	for range 3 {
		good = append(good, f.Kill(EventOf("paid")).ID)
	}
	purged, spared := h.PurgeOld(t, h.Now(t), 2)
	eq(t, "purged", purged, good)
	eq(t, "spared", spared, bad)
	eq(t, "letters left", f.Count(store.DeadFilter{}), len(bad))
}

func oldLettersFair(t *testing.T, h *Harness) {
	acme, globex := h.FixOf(t, "acme"), h.FixOf(t, "globex")
	for range 10 {
		acme.PutNew("paid")
	}
	h.Advance(time.Second)
	acme.Sweep(0)
	one := globex.Kill(EventOf("paid"))
	page := must(h.Store.PurgeOldLetters(ctx, h.Now(t), 4, ""))(t, "purge")
	eq(t, "purged", []int{len(page.Purged), len(globex.Letters(store.DeadFilter{}))}, []int{4, 0})
	globex.WantDead(one.EventID, rendezvous.DeadUnclaimed)
	rest, _ := h.purgeOldFrom(t, page.NextCursor, h.Now(t), 4)
	eq(t, "the rest, in the same walk", len(rest), 7)
}

func oldLettersAtOnce(t *testing.T, h *Harness) {
	f := h.Fix(t)
	for range max(h.Rounds(t)/10, 5) {
		letters := make([]rendezvous.EventID, 6)
		for i := range letters {
			letters[i] = f.Kill(EventOf("paid")).EventID
		}
		before := h.Now(t)
		var pages [2]store.OldLetters
		var errs [3]error
		var out store.Requeuing
		purge := func(i int) func() {
			return func() { pages[i], errs[i] = h.Store.PurgeOldLetters(ctx, before, 0, "") }
		}
		Race(t, purge(0), purge(1), func() {
			out, errs[2] = f.RequeueDeadLetters(ctx, store.Selection{Events: letters}, store.Requeue{}, *kim, ID("op"), now)
		})
		for _, err := range errs {
			done(t, "purge or requeue", err)
		}
		purged := map[rendezvous.EventID]int{}
		for _, p := range pages {
			for _, l := range p.Purged {
				purged[l.EventID]++
			}
		}
		for i, id := range letters {
			want := map[store.RequeueOutcome]int{store.RequeueRequeued: 0, store.RequeuePurged: 1}
			eq(t, "times purged", purged[id], want[out.Items[i].Outcome])
			eq(t, "is purged", f.Stored(id).Purged, purged[id] == 1)
		}
		f.Sweep(0)
		h.PurgeOld(t, h.Now(t), 0)
	}
}

func oldLettersOrNot(t *testing.T, h *Harness) {
	f := h.Fix(t)
	h.Break(t, "purge_old_letters", func() (func() error, func(error, bool)) {
		e := f.Kill(EventOf("paid", K("order", "1")))
		purge := func() error { _, err := h.Store.PurgeOldLetters(ctx, h.Now(t), 0, ""); return err }
		return purge, func(_ error, committed bool) {
			eq(t, "purged", f.Stored(e.EventID).Purged, committed)
			done(t, "purge again", purge())
			eq(t, "letters", f.Letters(store.DeadFilter{}), nil)
		}
	})
}

func oldLettersLimits(t *testing.T, h *Harness) {
	purge := func(before time.Time, limit int, cursor string) error {
		_, err := h.Store.PurgeOldLetters(ctx, before, limit, cursor)
		return err
	}
	code(t, "no limit", purge(h.Now(t), -1, ""), rendezvous.CodeInvalid, "field", "limit")
	code(t, "a limit too large", purge(h.Now(t), rendezvous.MaxBatchItems+1, ""), rendezvous.CodeTooLarge, "field", "limit")
	code(t, "no cursor", purge(h.Now(t), 0, "x"), rendezvous.CodeInvalid, "field", "cursor")
	code(t, "no instant", purge(time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), 0, ""), rendezvous.CodeInvalid, "field", "dead_before")
}
