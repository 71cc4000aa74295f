// Package open chooses the concrete store by its URL. It is the one place that knows them all: workers see the contract of package store alone.
//
//	memory:                              keeps nothing beyond the process
//	sqlite:DIR                           a directory of one process
//	postgres://user:password@host/db     PostgreSQL; postgresql:// is the same
//
// Every store is the same engine, store/engine, over another backend, so all of them keep the same promises.
package open

import (
	"context"
	"errors"
	"strings"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/engine"
	"github.com/rendezvous-events/rendezvous/store/memory"
	"github.com/rendezvous-events/rendezvous/store/postgres"
	"github.com/rendezvous-events/rendezvous/store/sqlite"
)

// Options are the settings of a store; the zero value is good.
type Options struct {
	Clock    clock.Clock // measures pauses, and is the now of memory and SQLite unless Now is given. Default clock.System
	Now      clock.Clock // the now of memory and SQLite alone, for tests whose pauses go on; PostgreSQL has its own and refuses it
	Shards   int         // N, fixed when a store is created; 0 is what it was created with, and rendezvous.DefaultShards for a new one
	MaxEvent int         // an event's payload in bytes, at most rendezvous.MaxPayload, which is the default
	Migrate  bool        // bring a durable store's schema to this build's version first; without it an older one is refused
	// Destinations are the operator's push destinations, of which the store knows names, events and types: every run is registered with them.
	Destinations []rendezvous.Destination
	PushPerRun   int // push registrations of callers that a run may have; 0 is 10
	// Postgres holds what only PostgreSQL has. URL, Clock, Shards and Migrate are taken from the call.
	Postgres postgres.Config
	// Wrap puts decorators around the backend, below the engine: telemetry, faults. It sees every transaction by the name of its verb.
	Wrap func(backend.Backend) backend.Backend
}

// Kinds of stores.
const (
	kindMemory   = "memory"
	kindSQLite   = "sqlite"
	kindPostgres = "postgres"
)

// Kind names the kind of store at url: memory, sqlite or postgres; "" for a URL that [Open] refuses.
func Kind(url string) string {
	which, _ := kind(url)
	return which
}

func kind(url string) (string, error) {
	scheme, rest, found := strings.Cut(url, ":")
	if !found {
		return "", rendezvous.InvalidField("store", "is not a URL; give memory:, sqlite:DIR or postgres://user@host/database")
	}
	switch strings.ToLower(scheme) {
	case kindMemory:
		if rest != "" {
			return "", rendezvous.InvalidField("store", "memory: takes nothing behind the colon")
		}
		return kindMemory, nil
	case kindPostgres, "postgresql":
		if !strings.HasPrefix(rest, "//") {
			return "", rendezvous.InvalidField("store", "a PostgreSQL URL begins postgres://")
		}
		return kindPostgres, nil
	case kindSQLite:
		if directory(url) == "" {
			return "", rendezvous.InvalidField("store", "sqlite: names a directory: sqlite:./rendezvous-data/store")
		}
		return kindSQLite, nil
	}
	return "", rendezvous.InvalidField("store", "%.32q is no store's scheme; give memory:, sqlite:DIR or postgres://user@host/database", scheme)
}

// directory is what an SQLite URL names. Both sqlite:DIR and sqlite:///abs/DIR are taken, as they come from other programs' habits.
func directory(url string) string {
	_, dir, _ := strings.Cut(url, ":")
	return strings.TrimPrefix(dir, "//")
}

// Open opens the store at url. Close frees it. A store that does not answer is unavailable: try again; everything else that is refused stays so until
// the setting it names is changed.
func Open(ctx context.Context, url string, o Options) (store.Store, error) {
	if o.Clock == nil {
		o.Clock = clock.System
	}
	if o.Now == nil {
		o.Now = o.Clock
	} else if Kind(url) == kindPostgres {
		return nil, rendezvous.InvalidField("now", "a PostgreSQL store has a clock of its own; no other can be given")
	}
	b, err := openBackend(ctx, url, o)
	if err != nil {
		return nil, err
	}
	if o.Wrap != nil {
		b = o.Wrap(b)
	}
	s, err := engine.New(b, engine.Options{Clock: o.Clock, MaxEvent: o.MaxEvent, Destinations: o.Destinations, PushPerRun: o.PushPerRun})
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return s, nil
}

func openBackend(ctx context.Context, url string, o Options) (backend.Backend, error) {
	which, err := kind(url)
	if err != nil {
		return nil, err
	}
	switch which {
	case kindSQLite:
		b, err := sqlite.Open(ctx, sqlite.Config{Dir: directory(url), Clock: o.Now, Shards: o.Shards, Migrate: o.Migrate})
		if err != nil {
			return nil, err
		}
		return b, nil
	case kindPostgres:
		c := o.Postgres
		c.URL, c.Clock, c.Shards, c.Migrate = url, o.Clock, o.Shards, o.Migrate
		b, err := postgres.Open(ctx, c)
		if err != nil {
			return nil, err // not b: a nil pointer in an interface is not nil
		}
		return b, nil
	}
	if o.Shards < 0 {
		return nil, rendezvous.InvalidField("shards", "%d is negative", o.Shards)
	}
	if o.Shards == 0 {
		o.Shards = rendezvous.DefaultShards
	}
	return memory.Open(o.Now, o.Shards), nil
}

// Migrate brings the schema of the durable store at url to this build's version. A schema that is there already is left alone; a newer one is refused.
func Migrate(ctx context.Context, url string) error {
	which, err := kind(url)
	if err != nil {
		return err
	}
	if which == kindMemory {
		return rendezvous.InvalidField("store", "memory: keeps nothing, so there is nothing to migrate; give a durable store")
	}
	if which == kindSQLite {
		return sqlite.Migrate(ctx, directory(url))
	}
	return postgres.Migrate(ctx, url)
}
