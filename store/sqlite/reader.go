package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/backend/row"
)

// reader reads in one transaction.
type reader struct {
	conn     *sqlite.Conn
	prepared prepared // of the connection; nil where it is used once
	now      time.Time
	loaded   map[int64]backend.Event // events as they were read, by number; nil where nothing will be changed
	recent   *recent                 // the writer's; nil beside it
}

// prepared are a connection's statements. The driver keeps them too, but clears their bindings before it hands one out again, which makes SQLite plan it anew: its
// planner looks at bound values for some of its guesses, and no binding is another one. For the same reason limits are written ? + 0.
type prepared map[string]*sqlite.Stmt

// Now implements [backend.Reader].
func (r *reader) Now() time.Time { return r.now }

// errEnough ends a query before its last row.
var errEnough = errors.New("enough rows")

// query runs one statement, prepared once per connection, and hands over its rows one by one, until each answers errEnough or an error.
func (r *reader) query(ctx context.Context, sql string, each func(c *columns) error, args ...any) error {
	if err := alive(ctx); err != nil {
		return err
	}
	stmt, err := r.prepare(sql, args)
	if err != nil {
		return translate(err)
	}
	src := &source{stmt: stmt}
	c := row.New(src)
	for {
		there, err := stmt.Step()
		if err != nil {
			_ = stmt.Reset() // answers the same error
			return translate(err)
		}
		if !there {
			return translate(stmt.Reset())
		}
		src.at = 0
		c.Next()
		if err := each(c); err != nil {
			_ = stmt.Reset()
			if errors.Is(err, errEnough) {
				return nil
			}
			return err
		}
	}
}

// exec runs one statement and answers how many rows it changed.
func (r *reader) exec(sql string, args ...any) (int, error) {
	stmt, err := r.prepare(sql, args)
	if err != nil {
		return 0, translate(err)
	}
	_, err = stmt.Step()
	changed := r.conn.Changes()
	if reset := stmt.Reset(); err == nil {
		err = reset
	}
	return changed, translate(err)
}

// prepare binds args in their order. A zero instant is NULL, and so are nil bytes; what else may be absent comes as nil.
func (r *reader) prepare(sql string, args []any) (*sqlite.Stmt, error) {
	stmt := r.prepared[sql]
	if stmt == nil {
		var err error
		if stmt, err = r.conn.Prepare(sql); err != nil {
			return nil, err
		}
		if r.prepared != nil {
			r.prepared[sql] = stmt
		}
	}
	for i, arg := range args {
		at := i + 1
		switch v := arg.(type) {
		case nil:
			stmt.BindNull(at)
		case string:
			stmt.BindText(at, v)
		case int64:
			stmt.BindInt64(at, v)
		case int:
			stmt.BindInt64(at, int64(v))
		case bool:
			stmt.BindBool(at, v)
		case []byte:
			bindBytes(stmt, at, v)
		case time.Time:
			if v.IsZero() {
				stmt.BindNull(at)
			} else {
				stmt.BindInt64(at, v.UnixMicro())
			}
		default:
			panic(fmt.Sprintf("store/sqlite: a parameter of type %T", arg))
		}
	}
	return stmt, nil
}

func bindBytes(stmt *sqlite.Stmt, at int, b []byte) {
	switch {
	case b == nil:
		stmt.BindNull(at)
	case len(b) == 0:
		stmt.BindZeroBlob(at, 0) // an empty slice would be NULL
	default:
		stmt.BindBytes(at, b)
	}
}
