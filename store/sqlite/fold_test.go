package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/sqlite"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The WAL is folded beside the writer and begins anew, however long the writing goes on: its file stays within a few rounds of it.
func TestTheWALBeginsAnewUnderSteadyWriting(t *testing.T) {
	dir := t.TempDir()
	b, err := sqlite.Open(t.Context(), sqlite.Config{Dir: dir})
	must(t, err)
	s, err := engine.New(b, engine.Options{})
	must(t, err)
	defer func() { must(t, s.Close()) }()
	const mib = 1 << 20
	longest := int64(0)
	for batch := range 400 {
		items := make([]store.BufferItem, 100)
		for i := range items {
			items[i] = store.BufferItem{Tenant: "acme", Event: rendezvous.Event{
				EventID: rendezvous.EventID{Source: "s", ID: fmt.Sprint(batch, "-", i)}, Type: "t", Payload: make([]byte, 4<<10),
			}}
		}
		_, err := s.BufferBatch(t.Context(), items, time.Time{})
		must(t, err)
		info, err := os.Stat(filepath.Join(dir, "rendezvous.db-wal"))
		must(t, err)
		longest = max(longest, info.Size())
	}
	t.Logf("the WAL grew to %d MiB", longest/mib)
	if file, err := os.Stat(filepath.Join(dir, "rendezvous.db")); err != nil || file.Size() < 150*mib { // all but the last rounds are in it
		t.Errorf("the database has %d bytes, %v", file.Size(), err)
	}
	if longest > 110*mib {
		t.Errorf("the WAL grew to %d MiB and did not begin anew", longest/mib)
	}
}
