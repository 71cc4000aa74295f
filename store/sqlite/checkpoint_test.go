package sqlite

import (
	"strconv"
	"strings"
	"testing"
)

// What the folding of the WAL rests on (decision 0008): a SQLite that loses no commit when two connections write and checkpoint at one instant, and a checkpoint
// that only tells. To a SQLite that does not know it, NOOP is PASSIVE: the writer would fold after every commit.
func TestSQLiteIsFitForFoldingBesideTheWriter(t *testing.T) {
	b, err := Open(t.Context(), Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	<-b.turn
	defer b.leave()
	var version string
	r := &reader{conn: b.conn}
	if err := r.query(t.Context(), "SELECT sqlite_version()", func(c *columns) error { version = c.Text(); return nil }); err != nil {
		t.Fatal(err)
	}
	if n := versionNumber(t, version); n < 3_051_003 {
		t.Errorf("SQLite is %s, want 3.51.3 or later", version)
	}
	if err := b.run("INSERT INTO meta VALUES ('fold', 'me')"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mode string
		all  bool
	}{{"NOOP", false}, {"NOOP", false}, {"PASSIVE", true}, {"NOOP", true}} {
		frames, folded, err := checkpoint(b.conn, c.mode)
		if err != nil || frames == 0 || (folded == frames) != c.all {
			t.Errorf("after %s %d of %d frames are folded, %v", c.mode, folded, frames, err)
		}
	}
}

// versionNumber is a version as SQLite numbers them: 3.51.3 is 3051003.
func versionNumber(t *testing.T, version string) (n int) {
	t.Helper()
	for _, part := range strings.Split(version, ".") {
		x, err := strconv.Atoi(part)
		if err != nil {
			t.Fatal(version)
		}
		n = n*1000 + x
	}
	return n
}
