package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/open"
)

// placeFor refuses an embedded store that would have to be made in a directory that is not there: a mistyped path would become an empty store that looks well.
func placeFor(url string) error {
	dir := open.Directory(url)
	if dir == "" || open.Exists(url) {
		return nil
	}
	return parentOf("store", dir)
}

// parentOf refuses a directory that cannot be made, as what it is to be made in is not there.
func parentOf(field, dir string) error {
	parent := filepath.Dir(filepath.Clean(dir))
	if at, err := os.Stat(parent); err != nil || !at.IsDir() {
		return rendezvous.InvalidField(field, "there is no directory %s to make %s in; make it, or correct the path", parent, filepath.Base(dir))
	}
	return nil
}

// mostCounted is where the workflows of a store are no longer counted.
const mostCounted = 10_000

// holds names the place of an embedded store and says how much is in it.
func holds(ctx context.Context, url string, fresh bool) string {
	dir := open.Directory(url)
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if fresh {
		return dir + " (new and empty)"
	}
	switch n, err := open.Workflows(ctx, url, mostCounted+1); {
	case err != nil:
		return dir // it serves: that it cannot be counted is no reason to say more
	case n > mostCounted:
		return fmt.Sprintf("%s (more than %d workflows)", dir, mostCounted)
	case n == 1:
		return dir + " (1 workflow)"
	default:
		return fmt.Sprintf("%s (%d workflows)", dir, n)
	}
}
