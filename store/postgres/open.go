package postgres

import (
	"cmp"
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Config says how to open a store. Only URL has no default.
type Config struct {
	URL     string      // postgres://user:password@host:port/database?options
	Clock   clock.Clock // bounds waits of this process; the store's now is the database's. Default clock.System
	Shards  int         // N; 0 is what the store was created with, and rendezvous.DefaultShards for a new one
	Migrate bool        // bring the schema to this build's version first; without it an older one is refused
	// TestClock opens a store whose now was shifted by ShiftClock. Production leaves it off and is refused such a store.
	TestClock bool
	// Copying opens even a store that a copy is under way to, to go on with that.
	Copying bool

	MaxConns         int           // connections of the pool; a verb holds one while it runs. Default 16
	StatementTimeout time.Duration // of one statement, waits for locks included. Default 30 s
	LockTimeout      time.Duration // of one wait for a lock. Default 10 s
	IdleTimeout      time.Duration // after which the server ends a session that sits in a transaction: a pod that stands still holds its rows no longer. Default 5 s
	EndTimeout       time.Duration // for the answer of COMMIT or ROLLBACK once the caller has gone. Default 10 s
	Tracer           pgx.QueryTracer

	notice func(*pgconn.PgConn, *pgconn.Notice) // for tests: what the server remarks
}

const (
	defaultConns   = 16
	connectTimeout = 10 * time.Second
)

func (c Config) withDefaults() Config {
	if c.Clock == nil {
		c.Clock = clock.System
	}
	if c.MaxConns == 0 {
		c.MaxConns = defaultConns
	}
	for _, d := range [...]struct {
		value *time.Duration
		def   time.Duration
	}{
		{&c.StatementTimeout, 30 * time.Second}, {&c.LockTimeout, 10 * time.Second}, {&c.IdleTimeout, 5 * time.Second}, {&c.EndTimeout, 10 * time.Second},
	} {
		if *d.value == 0 {
			*d.value = d.def
		}
	}
	return c
}

func (c Config) check() error {
	for _, d := range [...]struct {
		field string
		value time.Duration
	}{
		{"statement_timeout", c.StatementTimeout}, {"lock_timeout", c.LockTimeout}, {"idle_timeout", c.IdleTimeout}, {"end_timeout", c.EndTimeout},
	} {
		if d.value < time.Millisecond {
			return rendezvous.InvalidField(d.field, "%s is below 1 ms", d.value)
		}
	}
	if c.MaxConns < 1 || c.MaxConns > 10_000 {
		return rendezvous.InvalidField("max_conns", "%d is outside 1..10000", c.MaxConns)
	}
	if c.Shards < 0 {
		return rendezvous.InvalidField("shards", "%d is negative", c.Shards)
	}
	return nil
}

// Backend is a [backend.Backend] on PostgreSQL, safe for concurrent use.
type Backend struct {
	pool       *pgxpool.Pool
	clock      clock.Clock
	endTimeout time.Duration
	shards     int
	closed     atomic.Bool
}

var _ backend.Backend = (*Backend)(nil)

// Open opens the store at c.URL. Refused are: a schema newer than this build, or an older one without Migrate (naming both versions); another N of shards
// than the store's (naming both); a database whose encoding is not UTF8; a store with a shifted clock, unless it is opened as one; one that is half copied,
// unless to go on with that. A database that does not answer is unavailable: try again.
func Open(ctx context.Context, c Config) (*Backend, error) {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, invalidURL(err)
	}
	if c.Migrate {
		if err := migrate(ctx, config.ConnConfig); err != nil {
			return nil, err
		}
	}
	config.MaxConns = int32(c.MaxConns)
	config.ConnConfig.Tracer, config.ConnConfig.OnNotice = c.Tracer, c.notice
	configureSession(config.ConnConfig, c)
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		acceptArrays(conn)
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, translate(err)
	}
	b := &Backend{pool: pool, clock: c.Clock, endTimeout: c.EndTimeout}
	if err := b.checkStore(ctx, c); err != nil {
		pool.Close()
		return nil, err
	}
	return b, nil
}

// configureSession gives every connection the settings that the statements are written for: plans that do not change with statistics (see doc.go), and
// limits so that nothing waits for ever.
func configureSession(config *pgx.ConnConfig, c Config) {
	milliseconds := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	for name, value := range map[string]string{
		"plan_cache_mode":                     "force_generic_plan",
		"enable_hashjoin":                     "off",
		"enable_mergejoin":                    "off",
		"enable_seqscan":                      "off",
		"enable_bitmapscan":                   "off",
		"enable_memoize":                      "off",
		"enable_material":                     "off",
		"jit":                                 "off",
		"timezone":                            "UTC",
		"statement_timeout":                   milliseconds(c.StatementTimeout),
		"lock_timeout":                        milliseconds(c.LockTimeout),
		"idle_in_transaction_session_timeout": milliseconds(c.IdleTimeout),
	} {
		config.RuntimeParams[name] = value
	}
	if config.ConnectTimeout == 0 { // the URL says none: a host that swallows packets is not waited for at length
		config.ConnectTimeout = connectTimeout
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "rendezvous"
	}
}

// checkStore judges what Open finds.
func (b *Backend) checkStore(ctx context.Context, c Config) error {
	conn, err := b.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	var versioned, shifted bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL, to_regclass('rdv_clock') IS NOT NULL", versionTable).Scan(&versioned, &shifted); err != nil {
		return translate(err)
	}
	if shifted && !c.TestClock {
		return rendezvous.InvalidField("store", "this is a store of tests: its clock was shifted; use another database")
	}
	var stored int64
	if versioned {
		if err := conn.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM rdv_migrations WHERE is_applied").Scan(&stored); err != nil {
			return translate(err)
		}
	}
	if err := checkVersion(stored, false); err != nil {
		return err
	}
	if !c.Copying {
		mark, err := (&reader{conn: conn.Conn()}).Unfinished(ctx)
		if err := cmp.Or(err, backend.HalfCopied(mark)); err != nil {
			return err
		}
	}
	b.shards, err = settleShards(ctx, conn.Conn(), c.Shards)
	return err
}

// settleShards answers N: it is fixed by whoever opens the store first (shards.md section 1).
func settleShards(ctx context.Context, conn *pgx.Conn, asked int) (int, error) {
	first := asked
	if first == 0 {
		first = rendezvous.DefaultShards
	}
	if _, err := conn.Exec(ctx, "INSERT INTO meta (name, value) VALUES ('shards', $1) ON CONFLICT (name) DO NOTHING", strconv.Itoa(first)); err != nil {
		return 0, translate(err)
	}
	var text string
	if err := conn.QueryRow(ctx, "SELECT value FROM meta WHERE name = 'shards'").Scan(&text); err != nil {
		return 0, translate(err)
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

// invalidURL refuses a URL that does not parse. The driver's message may quote it, password and all.
func invalidURL(error) error {
	return rendezvous.InvalidField("store", "the URL does not parse; give postgres://user:password@host:port/database")
}

// Name is what the store at url is called: server and database, and nothing secret.
func Name(url string) (string, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return "", invalidURL(err)
	}
	name := "postgres://" + net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))) + "/" + config.Database
	if path := config.RuntimeParams["search_path"]; path != "" {
		name += "?search_path=" + path
	}
	return name, nil
}

// Shards implements [backend.Backend].
func (b *Backend) Shards() int { return b.shards }

// Ping implements [backend.Backend]: a store that can commit now has a session that may write.
func (b *Backend) Ping(ctx context.Context) error {
	return b.Update(ctx, "ping", func(context.Context, backend.Tx) error { return nil })
}

// Close implements [backend.Backend]: it waits for transactions under way.
func (b *Backend) Close() error {
	b.closed.Store(true)
	b.pool.Close()
	return nil
}
