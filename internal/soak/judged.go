package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	zombie "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/rendezvous-events/rendezvous/store/move"
	"github.com/rendezvous-events/rendezvous/store/open"
	"github.com/rendezvous-events/rendezvous/store/sqlite"
)

// judged is the URL of the database that the checks are asked of. An embedded store is backed up, in use as it is, and the backup copied to a database of its
// own: the same checks judge both, and the way from the file to PostgreSQL is walked each time.
func (p *plane) judged(ctx context.Context) (url string, err error) {
	if !p.embedded {
		return p.cluster.URL(database), nil
	}
	if p.copies > 0 { // its verifier has closed the last one's connection
		if err := p.cluster.DropDatabase(ctx, p.copyName()); err != nil {
			return "", err
		}
	}
	p.copies++
	name, backup := p.copyName(), filepath.Join(p.folder, fmt.Sprintf("backup-%d", p.copies))
	defer func() { err = errors.Join(err, os.RemoveAll(backup)) }()
	if err := p.cluster.CreateDatabase(ctx, name); err != nil {
		return "", err
	}
	if err := sqlite.Backup(ctx, filepath.Join(p.dataFolder(), "store"), backup); err != nil {
		return "", err
	}
	url = p.cluster.URL(name)
	_, err = open.Copy(ctx, "sqlite:"+backup, url, func(move.Progress) {})
	return url, err
}

// copyName is the database of the last copy.
func (p *plane) copyName() string { return fmt.Sprintf("%s_%d", database, p.copies) }

// hurryEmbedded is verifier.hurry for the embedded store: a second process writes to its file for a moment, which only a test may.
func (p *plane) hurryEmbedded(context.Context) (int, error) {
	conn, err := zombie.OpenConn(filepath.Join(p.dataFolder(), "store", "rendezvous.db"), zombie.OpenReadWrite)
	if err != nil {
		return 0, err
	}
	conn.SetBusyTimeout(10 * time.Second)
	now := time.Now().UnixMicro()
	err = sqlitex.ExecuteTransient(conn, "UPDATE woken SET next_notice_at = ?1 WHERE next_notice_at > ?1", &sqlitex.ExecOptions{Args: []any{now}})
	return conn.Changes(), errors.Join(err, conn.Close())
}
