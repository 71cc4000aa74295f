package pgtest

import (
	"os"
	"path/filepath"
	"testing"
)

// plant makes empty programs in a folder under root.
func plant(t *testing.T, dir string, names ...string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestProgramsAreFoundNewestFirstAndOnlyInPairs(t *testing.T) {
	root := t.TempDir()
	globs := []string{filepath.Join(root, "*", "bin")}
	plant(t, filepath.Join(root, "9.6", "bin"), "initdb", "postgres")
	plant(t, filepath.Join(root, "15", "bin"), "initdb", "postgres")
	plant(t, filepath.Join(root, "postgresql@17", "bin"), "initdb", "postgres")
	plant(t, filepath.Join(root, "18", "bin"), "initdb") // a client package: no server beside it

	got, ok := findPrograms("", globs)
	if want := filepath.Join(root, "postgresql@17", "bin", "initdb"); !ok || got.initdb != want {
		t.Errorf("findPrograms: %q, %v; want %q", got.initdb, ok, want)
	}
}

func TestProgramsInPathWinAlsoThroughALink(t *testing.T) {
	root := t.TempDir()
	plant(t, filepath.Join(root, "99", "bin"), "initdb", "postgres")
	chosen := plant(t, filepath.Join(root, "chosen"), "initdb", "postgres")
	links := plant(t, filepath.Join(root, "links"))
	if err := os.Symlink(filepath.Join(chosen, "initdb"), filepath.Join(links, "initdb")); err != nil {
		t.Fatal(err)
	}

	got, ok := findPrograms("/nowhere:"+links, []string{filepath.Join(root, "*", "bin")})
	if want := filepath.Join(chosen, "postgres"); !ok || got.postgres != want {
		t.Errorf("findPrograms: %q, %v; want %q", got.postgres, ok, want)
	}
}

func TestAFileThatCannotBeRunIsNoProgram(t *testing.T) {
	dir := plant(t, t.TempDir(), "initdb", "postgres")
	if err := os.Chmod(filepath.Join(dir, "postgres"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, ok := findPrograms(dir, nil); ok {
		t.Errorf("findPrograms took %+v", got)
	}
}
