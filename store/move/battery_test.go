package move_test

import (
	"context"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/memory"
	"github.com/rendezvous-events/rendezvous/store/move"
	"github.com/rendezvous-events/rendezvous/store/sqlite"
	"github.com/rendezvous-events/rendezvous/store/storetest"
)

// Whatever state the battery of the contract leaves a store in, it can be copied, and the copy is sound.
func TestEveryStateOfTheBatteryIsCopied(t *testing.T) {
	t.Parallel()
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

// copyOf copies a store and reports whether it could be.
func copyOf(t *testing.T, from backend.Backend) bool {
	t.Helper()
	dir := t.TempDir()
	to, err := sqlite.Open(bg, sqlite.Config{Dir: dir, Shards: from.Shards(), Copying: true})
	if err != nil {
		t.Error(err)
		return false
	}
	defer closed(t, to)
	_, err = move.Copy(bg, from, to, move.Options{From: "there", To: "here"})
	switch {
	case rendezvous.CodeOf(err) == rendezvous.CodeCorrupt:
		t.Log(err)
		return false
	case err != nil:
		t.Error(err)
	}
	if faults, err := sqlite.Check(bg, dir); err != nil || len(faults) > 0 {
		t.Errorf("%v, %q", err, faults)
	}
	return true
}
