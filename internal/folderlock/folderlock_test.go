package folderlock_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rendezvous-events/rendezvous/internal/folderlock"
)

func TestAFolderIsOnesUntilItIsReleased(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, owner, err := folderlock.Take(path)
	if first == nil || owner != "" || err != nil {
		t.Fatalf("a free folder: lock %v, owner %q, %v", first, owner, err)
	}
	second, owner, err := folderlock.Take(path)
	if want := fmt.Sprintf("pid %d", os.Getpid()); second != nil || owner != want || err != nil {
		t.Errorf("a folder in use: lock %v, owner %q, %v; want the owner %q", second, owner, err, want)
	}
	for range 2 {
		if err := first.Release(); err != nil {
			t.Error(err)
		}
	}
	third, _, err := folderlock.Take(path)
	if third == nil || err != nil {
		t.Fatalf("a folder that was released: lock %v, %v", third, err)
	}
	if err := third.Release(); err != nil {
		t.Error(err)
	}
}

func TestAFolderThatIsNotThereCannotBeTaken(t *testing.T) {
	if lock, _, err := folderlock.Take(filepath.Join(t.TempDir(), "gone", "lock")); lock != nil || err == nil {
		t.Errorf("lock %v, %v; want an error", lock, err)
	}
}
