package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// TestASpoiledBatchIsSplit proves that whatever items spoil the transaction fail alone, in their places, and that trouble with the store as a whole is
// the answer of the whole batch (R3, R8).
func TestASpoiledBatchIsSplit(t *testing.T) {
	spoils := rendezvous.Errorf(rendezvous.CodeCorrupt, "a row of this item does not decode")
	type outcome struct {
		item int
		err  error
	}
	calls := 0
	work := func(bad []int, err error) ([]outcome, error) {
		items := make([]int, 500)
		for i := range items {
			items[i] = i
		}
		calls = 0
		return inParts(items, func(part []int) ([]outcome, error) {
			calls++
			out := make([]outcome, len(part))
			for i, item := range part {
				if slices.Contains(bad, item) {
					return nil, err
				}
				out[i].item = item
			}
			return out, nil
		}, func(err error) outcome { return outcome{item: -1, err: err} })
	}
	for _, bad := range [][]int{nil, {0}, {499}, {250}, {3, 4, 400}} {
		out, err := work(bad, spoils)
		if err != nil || len(out) != 500 {
			t.Fatalf("bad %v: %d outcomes, %v", bad, len(out), err)
		}
		for i, o := range out {
			if wrong := slices.Contains(bad, i); wrong != errors.Is(o.err, rendezvous.ErrCorrupt) || (!wrong && o.item != i) {
				t.Fatalf("bad %v: item %d came to %+v", bad, i, o)
			}
		}
		if calls > 1+20*len(bad) {
			t.Errorf("bad %v: %d transactions", bad, calls)
		}
	}
	for _, whole := range []error{unavailable("away"), rendezvous.Errorf(rendezvous.CodeCommitUnknown, "lost"), errors.New("foreign")} {
		if out, err := work([]int{7}, whole); !errors.Is(err, whole) || out != nil || calls != 1 {
			t.Errorf("%v: %d outcomes in %d transactions, %v; want the error at once", whole, len(out), calls, err)
		}
	}
}

// Free text may come from an error of anything; not every store takes NUL and invalid UTF-8, and what they become counts.
func TestAnErrorIsFitToBeKept(t *testing.T) {
	if got, want := clip("a\x00b\xffc\n"), "a\uFFFDb\uFFFDc\n"; got != want {
		t.Errorf("clip = %q, want %q", got, want)
	}
	if got := clip(strings.Repeat("\xff-", rendezvous.MaxReason/2)); len(got) > rendezvous.MaxReason {
		t.Errorf("%d bytes are kept", len(got))
	}
}

// last_error stays within its limit and valid.
func TestAnErrorIsClippedBetweenCharacters(t *testing.T) {
	for _, s := range []string{"", "short", strings.Repeat("a", 512), strings.Repeat("a", 513), strings.Repeat("\u20ac", 400), strings.Repeat("\U0001F600", 129)} {
		got := clip(s)
		if len(got) > rendezvous.MaxReason || !utf8.ValidString(got) || !strings.HasPrefix(s, got) {
			t.Errorf("%d bytes became %d: %q", len(s), len(got), got)
		}
		if len(s) <= rendezvous.MaxReason && got != s {
			t.Errorf("%d bytes were cut to %d", len(s), len(got))
		}
	}
}

// TestStandingIsTheLatestAttempts reads how a wait stands from records of every attempt.
func TestStandingIsTheLatestAttempts(t *testing.T) {
	rec := func(seq int64, kind rendezvous.Kind, attempt int) rendezvous.Record {
		return rendezvous.Record{Seq: seq, Kind: kind, Attempt: attempt}
	}
	for name, c := range map[string]struct {
		records        []rendezvous.Record
		opened, closed int64
		how            rendezvous.Closing
	}{
		"nothing":           {},
		"open":              {[]rendezvous.Record{rec(2, rendezvous.WaitRegistered, 1)}, 2, 0, ""},
		"answered":          {[]rendezvous.Record{rec(2, rendezvous.WaitRegistered, 1), rec(5, rendezvous.WaitAnswered, 1)}, 2, 5, rendezvous.ClosedAnswered},
		"withdrawn":         {[]rendezvous.Record{rec(2, rendezvous.WaitRegistered, 1), rec(5, rendezvous.WaitWithdrawn, 1)}, 2, 5, rendezvous.ClosedWithdrawn},
		"timed out":         {[]rendezvous.Record{rec(2, rendezvous.WaitRegistered, 1), rec(5, rendezvous.WaitTimedOut, 1)}, 2, 5, rendezvous.ClosedTimedOut},
		"left open, again":  {[]rendezvous.Record{rec(2, rendezvous.WaitRegistered, 1), rec(7, rendezvous.WaitRegistered, 2)}, 7, 0, ""},
		"again, answered":   {[]rendezvous.Record{rec(2, rendezvous.WaitRegistered, 1), rec(7, rendezvous.WaitRegistered, 2), rec(8, rendezvous.WaitAnswered, 2)}, 7, 8, rendezvous.ClosedAnswered},
		"an effect's words": {[]rendezvous.Record{rec(2, rendezvous.EffectStarted, 1), rec(3, rendezvous.EffectDone, 1)}, 0, 0, ""},
	} {
		s := standingOf(c.records)
		if seqOf(s.opened) != c.opened || seqOf(s.closed) != c.closed || s.closing() != c.how {
			t.Errorf("%s: opened %d, closed %d %q; want %d, %d %q", name, seqOf(s.opened), seqOf(s.closed), s.closing(), c.opened, c.closed, c.how)
		}
	}
}

func seqOf(r *rendezvous.Record) int64 {
	if r == nil {
		return 0
	}
	return r.Seq
}

// TestPairReasonsSayAllThatHolds is the table of sweep.md section 7 for a run's own waits.
func TestPairReasonsSayAllThatHolds(t *testing.T) {
	a, b := rendezvous.Key{Namespace: "k", Value: "a"}, rendezvous.Key{Namespace: "k", Value: "b"}
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	e := backend.Event{Tenant: "acme", Source: "s", ID: "1", Type: "paid", Keys: []rendezvous.Key{a}, Target: "r", State: rendezvous.EventLive}
	w := backend.Wait{Tenant: "acme", RunID: "r", Type: "paid", Keys: []rendezvous.Key{a}}
	for name, c := range map[string]struct {
		change func(e *backend.Event, w *backend.Wait)
		want   []string
	}{
		"they meet":       {func(*backend.Event, *backend.Wait) {}, nil},
		"event no keys":   {func(e *backend.Event, _ *backend.Wait) { e.Keys = nil }, nil},
		"wait no keys":    {func(_ *backend.Event, w *backend.Wait) { w.Keys = nil }, nil},
		"type":            {func(_ *backend.Event, w *backend.Wait) { w.Type = "Paid" }, []string{"other_type"}},
		"source":          {func(_ *backend.Event, w *backend.Wait) { w.From = "other" }, []string{"other_source"}},
		"key":             {func(_ *backend.Event, w *backend.Wait) { w.Keys = []rendezvous.Key{b} }, []string{"no_shared_key"}},
		"expired":         {func(e *backend.Event, _ *backend.Wait) { e.ExpiresAt = noon }, []string{"event_expired"}},
		"parked":          {func(_ *backend.Event, w *backend.Wait) { w.Held = &backend.HeldEvent{} }, []string{"wait_parked"}},
		"type and parked": {func(_ *backend.Event, w *backend.Wait) { w.Type, w.Held = "x", &backend.HeldEvent{} }, []string{"other_type", "wait_parked"}},
	} {
		e, w := e, w
		c.change(&e, &w)
		var got []string
		for _, r := range pairReasons(&e, &remains{Wait: &w}, noon) {
			got = append(got, string(r.Code))
		}
		if !slices.Equal(got, c.want) || meets(&e, &w, noon) != (c.want == nil) {
			t.Errorf("%s: %v, meets %v; want %v", name, got, meets(&e, &w, noon), c.want)
		}
	}
}
