package postgres

import "github.com/jackc/pgx/v5/pgconn"

// OnNotice makes a store tell what the server remarks.
func OnNotice(c *Config, fn func(message string)) {
	c.notice = func(_ *pgconn.PgConn, n *pgconn.Notice) { fn(n.Message) }
}
