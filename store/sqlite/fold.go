package sqlite

import (
	"errors"
	"sync/atomic"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// When the WAL is folded into the database, in frames: a page of 4 KiB each.
const (
	foldFrames = 4_000  // not folded yet: the folder's turn
	longFrames = 16_000 // in the WAL: the writer's turn, so that it begins anew
)

// folder copies what the WAL holds into the database beside the writer, on a connection of its own: no commit waits for it. What is written meanwhile stays in
// the WAL, which begins anew only when all of it is folded; so where it is long the writer folds the little that the last round left.
type folder struct {
	conn *sqlite.Conn
	due  chan struct{} // closed at the end
	done chan struct{}
	busy atomic.Bool // a round is due or under way
	most int         // foldFrames but in tests
	long int         // longFrames but in tests
}

func startFolder(path string) (*folder, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, translate(err)
	}
	conn.SetBusyTimeout(busyTimeout)
	// The WAL is synced before it is copied, and the database before the WAL may begin anew.
	if err := sqlitex.ExecuteTransient(conn, "PRAGMA synchronous = FULL", nil); err != nil {
		return nil, errors.Join(translate(err), conn.Close())
	}
	f := &folder{conn: conn, due: make(chan struct{}, 1), done: make(chan struct{}), most: foldFrames, long: longFrames}
	go f.work()
	return f, nil
}

func (f *folder) work() {
	defer close(f.done)
	for range f.due {
		// It failing loses nothing: all is in the WAL, and the next round begins with it. A disk that fails shows at the next commit.
		_, _, _ = checkpoint(f.conn, "PASSIVE")
		f.busy.Store(false)
	}
}

// stop ends with the round under way. After it nobody calls foldWAL.
func (f *folder) stop() error {
	close(f.due)
	<-f.done
	return translate(f.conn.Close())
}

// foldWAL looks at the WAL after a commit whose callers know already. With the turn.
func (b *Backend) foldWAL() {
	frames, folded, err := checkpoint(b.conn, "NOOP")
	if err != nil || b.folder.busy.Load() {
		return
	}
	switch {
	case frames-folded >= b.folder.most:
		b.folder.busy.Store(true)
		b.folder.due <- struct{}{}
	case frames >= b.folder.long && frames > folded:
		_, _, _ = checkpoint(b.conn, "PASSIVE") // see work
	}
}

// checkpoint answers the frames of the WAL and how many of them are in the database. PASSIVE copies what nobody's snapshot stands against and waits for nobody,
// NOOP only tells.
func checkpoint(conn *sqlite.Conn, mode string) (frames, folded int, err error) {
	stmt, err := conn.Prepare("PRAGMA wal_checkpoint(" + mode + ")")
	if err != nil {
		return 0, 0, err
	}
	if _, err = stmt.Step(); err == nil {
		frames, folded = stmt.ColumnInt(1), stmt.ColumnInt(2)
	}
	return frames, folded, errors.Join(err, stmt.Reset())
}
