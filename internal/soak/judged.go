package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

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
	p.copies++
	name, backup := fmt.Sprintf("%s_%d", database, p.copies), filepath.Join(p.folder, fmt.Sprintf("backup-%d", p.copies))
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
