package sqlite

import (
	"context"
	"errors"
)

// Workflows counts the workflows of all tenants of the store in dir, up to most. This process, another or none may have it open.
func Workflows(ctx context.Context, dir string, most int) (n int, err error) {
	conn, err := openReader(ctx, dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, translate(conn.Close())) }()
	r := &reader{conn: conn}
	err = r.query(ctx, "SELECT count(*) FROM (SELECT 1 FROM workflows LIMIT ?)", func(c *columns) error { n = c.Tally(); return nil }, most)
	return n, err
}
