package postgres

import (
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// OnNotice makes a store tell what the server remarks.
func OnNotice(c *Config, fn func(message string)) {
	c.notice = func(_ *pgconn.PgConn, n *pgconn.Notice) { fn(n.Message) }
}

// Each reads rows as the store does, and forgets them.
func Each(rows pgx.Rows) error { return each(rows, func(*columns) error { return nil }) }

// BuildVersion is the version of the schema this build is made for.
func BuildVersion() int64 { return buildVersion() }
