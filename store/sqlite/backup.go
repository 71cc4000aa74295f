package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/rendezvous-events/rendezvous"
)

// Backup writes the store as it is now into a new directory, which is a store itself: open it to restore it. The store is in use meanwhile and nobody waits
// for the backup, but what is written while it lasts stays in the WAL until it has ended. The copy differs from the store in that nothing held outside passes
// a fence in it (runs.md section 1): see fence.
func (b *Backend) Backup(ctx context.Context, target string) error { return Backup(ctx, b.dir, target) }

// Backup is [Backend.Backup] of the store in dir, which this process, another or none may have open: it reads the file as any reader beside the writer
// does, and takes no lock that keeps others out. target must not be there. It appears when all of it is on disk; what a killed backup leaves stands beside
// it, under its name with .partial- behind it.
func Backup(ctx context.Context, dir, target string) error {
	switch _, err := os.Lstat(target); {
	case target == "":
		return rendezvous.InvalidField("target", "names no directory")
	case err == nil:
		return rendezvous.InvalidField("target", "%s is there already; give a name that is not", target)
	case !errors.Is(err, os.ErrNotExist):
		return unavailable("the target of the backup cannot be looked at").Because(err)
	}
	conn, err := openReader(ctx, dir)
	if err != nil {
		return err
	}
	target = filepath.Clean(target)
	err = writeBackup(conn, target)
	return errors.Join(err, translate(conn.Close()))
}

// Exists reports whether there is a store in dir, or at least its file.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, databaseFile))
	return err == nil
}

// openReader opens the store in dir to be read, whoever else has it.
func openReader(ctx context.Context, dir string) (*sqlite.Conn, error) {
	if !Exists(dir) { // SQLite does not say what it misses
		return nil, rendezvous.InvalidField("store", "there is no store in %s", dir)
	}
	conn, err := sqlite.OpenConn(filepath.Join(dir, databaseFile), sqlite.OpenReadOnly)
	if err != nil {
		return nil, translate(err)
	}
	conn.SetInterrupt(ctx.Done())
	err = configureReader(conn)
	id := 0
	if err == nil {
		id, err = pragma(conn, "application_id")
	}
	if err == nil && id != applicationID {
		err = rendezvous.InvalidField("store", "%s in %s is not a store of this program", databaseFile, dir)
	}
	if err != nil {
		return nil, errors.Join(translate(err), conn.Close())
	}
	return conn, nil
}

// writeBackup has the target appear whole or not at all.
func writeBackup(conn *sqlite.Conn, target string) error {
	parent := filepath.Dir(target)
	partial, err := os.MkdirTemp(parent, filepath.Base(target)+".partial-")
	if err != nil {
		return unavailable("the directory of the backup cannot be made").Because(err)
	}
	file := filepath.Join(partial, databaseFile)
	err = translate(sqlitex.ExecuteTransient(conn, "VACUUM INTO ?", &sqlitex.ExecOptions{Args: []any{file}}))
	if err == nil {
		err = fence(file)
	}
	if err == nil {
		err = publish(file, partial, target)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	return nil
}

// gap is more than a store gives of anything after its backup and before that is restored.
const gap = 1 << 32

// fence has a copy's epochs and numbers begin where those of the store never came: whoever got one after the backup must not meet it again when that is
// restored (I9). The lease of a run keeps its owner, so that the leases pass finds it, records what is parked for it and wakes it; the owner's epoch is
// worth nothing. A shard's is free, and nobody is a member of a pool (shards.md section 5).
// Send leases of push registrations are emptied: nobody sends for a copy, and whoever sends for the store is no lost worker of it.
func fence(file string) error {
	conn, err := sqlite.OpenConn(file, sqlite.OpenReadWrite)
	if err != nil {
		return translate(err)
	}
	err = sqlitex.ExecuteScript(conn, `
UPDATE workflows SET lease_epoch = lease_epoch + :gap, acquire_id = '';
UPDATE shard_leases SET owner = '', epoch = epoch + :gap, expires_at = NULL, serving = 0, address = '';
DELETE FROM members;
DELETE FROM push_registrations WHERE state = 'gone';
UPDATE push_registrations SET lease_token = 0, lease_owner = '', lease_request = '', lease_until = NULL, lease_revoked = 0, ended_token = 0, ended_as = ''
WHERE lease_token <> 0 OR ended_token <> 0;
UPDATE counters SET value = value + :gap;`, &sqlitex.ExecOptions{Named: map[string]any{":gap": int64(gap)}})
	return errors.Join(translate(err), translate(conn.Close()))
}

// publish puts the written file on disk, then gives its directory its name.
func publish(file, partial, target string) error {
	err := os.Chmod(file, 0o600)
	for _, path := range [...]string{file, partial} {
		if err == nil {
			err = syncPath(path)
		}
	}
	if err == nil {
		err = os.Rename(partial, target)
	}
	if err != nil {
		return unavailable("the backup cannot be written").Because(err)
	}
	if err := syncPath(filepath.Dir(target)); err != nil {
		return unavailable("the backup is written, but its name may not survive a cut of the power; remove it, or keep it and know that").Because(err)
	}
	return nil
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
