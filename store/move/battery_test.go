package move_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/memory"
	"github.com/rendezvous-events/rendezvous/store/move"
	"github.com/rendezvous-events/rendezvous/store/sqlite"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

// Whatever state the battery of the contract leaves a store in, it can be copied, and the copy is sound. Of the small ones some go to SQLite, by chance, where
// opening a directory costs more than the copy; all others stay in memory.
func TestEveryStateOfTheBatteryIsCopied(t *testing.T) {
	t.Setenv("RDV_ROUNDS", "1") // races are not what this is about
	whole, damaged := 0, 0
	storetest.Run(t, func(t *testing.T) *storetest.Harness {
		c := now()
		b := kept{inMemory(c)}
		h := storetest.Assemble(t, b, storetest.Options{
			Advance: c.Advance, Damage: b.Damage(), Reopen: func(*testing.T) backend.Backend { return b },
		})
		t.Cleanup(func() {
			if t.Failed() || t.Skipped() {
				return
			}
			if copyOf(t, b) {
				whole++
			} else {
				damaged++
			}
		})
		return h
	})
	t.Logf("%d stores copied, %d with rows that do not decode refused", whole, damaged)
	if whole < 10*damaged {
		t.Error("most stores are to be whole")
	}
}

// kept is a store that outlives its closing.
type kept struct{ *memory.Backend }

// Close implements [backend.Backend].
func (kept) Close() error { return nil }

// bg is for what runs when the test's own context has ended.
var bg = context.Background()

// small is how many rows are copied to SQLite.
const small = 200

// copyOf copies a store and reports whether it could be.
func copyOf(t *testing.T, from backend.Backend) bool {
	t.Helper()
	whole := copiedTo(t, from, inMemory(now()))
	if !whole || rows(t, from) > small || rand.N(4) > 0 {
		return whole
	}
	dir := t.TempDir()
	to, err := sqlite.Open(bg, sqlite.Config{Dir: dir, Shards: from.Shards(), Copying: true})
	if err != nil {
		t.Error(err)
		return false
	}
	defer closed(t, to)
	whole = copiedTo(t, from, to)
	if faults, err := sqlite.Check(bg, dir); err != nil || len(faults) > 0 {
		t.Errorf("%v, %q", err, faults)
	}
	return whole
}

func copiedTo(t *testing.T, from, to backend.Backend) bool {
	t.Helper()
	_, err := move.Copy(bg, from, to, move.Options{From: "there", To: "here"})
	switch {
	case rendezvous.CodeOf(err) == rendezvous.CodeCorrupt:
		t.Log(err)
		return false
	case err != nil:
		t.Error(err)
	}
	return true
}

// rows is how many a store has.
func rows(t *testing.T, b backend.Backend) (n int64) {
	t.Helper()
	err := b.View(bg, "test", func(ctx context.Context, r backend.Reader) error {
		for _, kind := range backend.Kinds {
			about, err := r.(backend.Source).About(ctx, kind)
			if err != nil {
				return err
			}
			n += about
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	return n
}
