package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
)

// TestAFullDisk: on a file system without room a call is refused whole, reads go on, and with room again the store works, with all that was acknowledged.
// Where a write of the WAL fails for want of room, nobody is told that anything was done.
func TestAFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system takes root")
	}
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=3m"); err != nil {
		t.Skipf("mounting a small file system is not allowed here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(disk, "store")
	b := open(t, dir, clock.NewManual(began))
	var kept []string
	full := 0
	fill := func(n int) {
		for i := range n {
			id := fmt.Sprintf("e-%d-%d", len(kept)+full, i)
			switch err := put(bg, b, id, 30_000); {
			case err == nil:
				kept = append(kept, id)
			case rendezvous.CodeOf(err) == rendezvous.CodeUnavailable && strings.Contains(err.Error(), "full"):
				if full++; stored(t, b, id) {
					t.Errorf("%s was refused and is stored", id)
				}
			default:
				t.Fatalf("%s: %v", id, err)
			}
		}
	}
	fill(120)
	if full == 0 || len(kept) == 0 {
		t.Fatalf("%d were kept and %d refused: the test needs both", len(kept), full)
	}
	for _, id := range kept {
		if !stored(t, b, id) {
			t.Errorf("on a full disk %s cannot be read", id)
		}
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	before := len(kept)
	fill(5)
	if len(kept) == before {
		t.Error("with room again nothing is stored")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := lawful(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	b = open(t, dir, clock.NewManual(began))
	for _, id := range kept {
		if !stored(t, b, id) {
			t.Errorf("%s was acknowledged and is gone", id)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}
