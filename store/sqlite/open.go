package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/folderlock"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Config says how to open a store. Only Dir has no default.
type Config struct {
	Dir     string      // the directory of the store, made where it is missing
	Clock   clock.Clock // the store's now. Default clock.System
	Shards  int         // N; 0 is what the store was created with, and rendezvous.DefaultShards for a new one
	Migrate bool        // bring the schema to this build's version first; without it an older one is refused, but for an empty directory
	Readers int         // connections that read beside the writer. Default 4
	Copying bool        // open even a store that a copy is under way to, to go on with that
}

// Names of the files in a store's directory; SQLite puts its -wal and -shm beside the database.
const (
	databaseFile = "rendezvous.db"
	lockFile     = "rendezvous.lock"
)

const defaultReaders = 4

// Backend is a [backend.Backend] in a directory, safe for concurrent use.
type Backend struct {
	clock   clock.Clock
	dir     string
	shards  int
	lock    *folderlock.Lock
	readers *sqlitex.Pool
	folder  *folder

	mu      sync.Mutex
	reading map[*sqlite.Conn]prepared // of the readers
	ended   error                     // why nothing is served any more

	turn     chan struct{} // holds one token: who took it has what is below
	conn     *sqlite.Conn
	prepared prepared
	recent   *recent
	group    *group // the open one; nil where no transaction is
	counts   [kinds]counter
	closed   bool
	syncs    int // commits, each of a group
}

var _ backend.Backend = (*Backend)(nil)

// Open opens the store in c.Dir. Refused are: a directory that another process has open (naming it); a schema newer than this build, or an older one without
// Migrate (naming both versions); another N of shards than the store's (naming both); a file that is no database of this project; a store that is half copied.
func Open(ctx context.Context, c Config) (*Backend, error) {
	if c.Clock == nil {
		c.Clock = clock.System
	}
	if c.Readers == 0 {
		c.Readers = defaultReaders
	}
	switch {
	case c.Dir == "":
		return nil, rendezvous.InvalidField("store", "names no directory")
	case c.Shards < 0:
		return nil, rendezvous.InvalidField("shards", "%d is negative", c.Shards)
	case c.Readers < 1 || c.Readers > 1000:
		return nil, rendezvous.InvalidField("readers", "%d is outside 1..1000", c.Readers)
	}
	b := &Backend{clock: c.Clock, dir: c.Dir, turn: make(chan struct{}, 1), prepared: prepared{}, recent: newRecent(), reading: map[*sqlite.Conn]prepared{}}
	if err := b.open(ctx, c); err != nil {
		return nil, errors.Join(err, b.release())
	}
	b.turn <- struct{}{}
	return b, nil
}

func (b *Backend) open(ctx context.Context, c Config) error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return unavailable("the directory of the store cannot be made").Because(err)
	}
	if err := b.takeDirectory(); err != nil {
		return err
	}
	var err error
	if b.conn, err = openWriter(b.path()); err != nil {
		return err
	}
	if err := migrate(ctx, b.conn, c.Migrate); err != nil {
		return err
	}
	if err := b.checkWhole(ctx); err != nil && !c.Copying {
		return err
	}
	if b.shards, err = settleShards(ctx, b.conn, c.Shards); err != nil {
		return err
	}
	if b.counts, err = readCounters(ctx, b.conn); err != nil {
		return err
	}
	if b.folder, err = startFolder(b.path()); err != nil {
		return err
	}
	b.readers, err = sqlitex.NewPool(b.path(), sqlitex.PoolOptions{
		Flags: sqlite.OpenReadOnly, PoolSize: c.Readers, PrepareConn: configureReader,
	})
	return translate(err)
}

func (b *Backend) path() string { return filepath.Join(b.dir, databaseFile) }

// takeDirectory keeps other processes out.
func (b *Backend) takeDirectory() error {
	lock, owner, err := folderlock.Take(filepath.Join(b.dir, lockFile))
	switch {
	case err != nil:
		return unavailable("the directory of the store cannot be locked").Because(err)
	case lock == nil:
		return rendezvous.InvalidField("store", "the directory is in use by another process (%s); stop that one, or give another directory", owner)
	}
	b.lock = lock
	return nil
}

// openWriter opens the one connection that writes. Its settings are those the guarantee stands on, so each is read back.
func openWriter(path string) (*sqlite.Conn, error) {
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return nil, translate(err)
	}
	for _, set := range [...]struct{ name, value, want string }{
		{"locking_mode", "NORMAL", "normal"},
		{"journal_mode", "WAL", "wal"},
		{"synchronous", "FULL", "2"},
		{"temp_store", "MEMORY", "2"},
		{"cache_size", "-32000", "-32000"},
		{"wal_autocheckpoint", "0", "0"}, // see folder
		{"journal_size_limit", "67108864", "67108864"},
		{"foreign_keys", "OFF", "0"},
	} {
		got := ""
		read := func(stmt *sqlite.Stmt) error { got = stmt.ColumnText(0); return nil }
		err := sqlitex.ExecuteTransient(conn, "PRAGMA "+set.name+" = "+set.value, &sqlitex.ExecOptions{ResultFunc: read})
		if err == nil && got == "" {
			err = sqlitex.ExecuteTransient(conn, "PRAGMA "+set.name, &sqlitex.ExecOptions{ResultFunc: read})
		}
		if err != nil {
			return nil, errors.Join(translate(err), conn.Close())
		}
		if got != set.want {
			return nil, errors.Join(unavailable("the database refuses the setting %s = %s and says %q", set.name, set.value, got), conn.Close())
		}
	}
	conn.SetBusyTimeout(busyTimeout)
	return conn, nil
}

// busyTimeout is how long a connection waits where another has the file for a moment: a recovery of the WAL at the first read.
const busyTimeout = 10 * time.Second

func configureReader(conn *sqlite.Conn) error {
	conn.SetBusyTimeout(busyTimeout)
	return sqlitex.ExecuteTransient(conn, "PRAGMA cache_size = -4000", nil)
}

// settleShards answers N: it is fixed by whoever opens the store first (shards.md section 1).
func settleShards(ctx context.Context, conn *sqlite.Conn, asked int) (int, error) {
	first := asked
	if first == 0 {
		first = rendezvous.DefaultShards
	}
	r := &reader{conn: conn}
	if _, err := r.exec("INSERT INTO meta (name, value) VALUES ('shards', ?) ON CONFLICT DO NOTHING", strconv.Itoa(first)); err != nil {
		return 0, err
	}
	var text string
	if err := r.query(ctx, "SELECT value FROM meta WHERE name = 'shards'", func(c *columns) error { text = c.Text(); return nil }); err != nil {
		return 0, err
	}
	stored, err := strconv.Atoi(text)
	if err != nil || stored < 1 {
		return 0, backend.Corrupt("number of shards", "meta", "name", "shards")
	}
	if asked != 0 && asked != stored {
		return 0, rendezvous.InvalidField("shards", "the store was created with %d shards and %d are configured; the number is fixed: configure %d", stored, asked, stored).
			With("stored", stored).With("value", asked)
	}
	return stored, nil
}

// Shards implements [backend.Backend].
func (b *Backend) Shards() int { return b.shards }

// Ping implements [backend.Backend]: a store that can commit now has a writer that may write.
func (b *Backend) Ping(ctx context.Context) error {
	return b.Update(ctx, "ping", func(context.Context, backend.Tx) error { return nil })
}

// Close implements [backend.Backend]: it waits for the transaction under way, commits what is open, and folds the WAL into the database.
func (b *Backend) Close() error {
	<-b.turn
	defer b.leave()
	if b.closed {
		return nil
	}
	b.commitGroup()
	b.closed = true
	b.end(unavailable("the store is closed"))
	return b.release()
}

// release gives back what open took.
func (b *Backend) release() error {
	var errs []error
	if b.readers != nil { // before the writer, so that the last connection is one that may write
		errs = append(errs, translate(b.readers.Close()))
	}
	if b.folder != nil {
		errs = append(errs, b.folder.stop())
	}
	if b.conn != nil {
		errs = append(errs, translate(b.conn.Close()))
	}
	if b.lock != nil {
		errs = append(errs, b.lock.Release())
	}
	return errors.Join(errs...)
}
