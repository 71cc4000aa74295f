package open

import (
	"context"

	"github.com/rendezvous-events/rendezvous/store/sqlite"
)

// Directory is where the embedded store at url is, or would be; "" for any other store.
func Directory(url string) string {
	if Kind(url) != kindSQLite {
		return ""
	}
	return directory(url)
}

// Exists reports whether there is an embedded store at url.
func Exists(url string) bool {
	dir := Directory(url)
	return dir != "" && sqlite.Exists(dir)
}

// Workflows counts the workflows of all tenants of the embedded store at url, which may be in use, up to most.
func Workflows(ctx context.Context, url string, most int) (int, error) {
	dir, err := embedded(url, "a PostgreSQL database is not counted")
	if err != nil {
		return 0, err
	}
	return sqlite.Workflows(ctx, dir, most)
}
