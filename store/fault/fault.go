// Package fault puts failures between store/engine and its backend, where a network and a database would fail: tests arm one, and the next
// transaction that it fits meets it.
//
// Idle it changes nothing, so a battery that passes bare must pass through it.
package fault

import (
	"context"
	"slices"
	"sync"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Point is where a failure strikes a write transaction.
type Point string

// The points.
const (
	Begin  Point = "begin"  // it never started: unavailable
	Apply  Point = "apply"  // its changes never arrived, all is undone: unavailable
	Commit Point = "commit" // its changes arrived, the commit failed, all is undone: unavailable
	Answer Point = "answer" // it is committed and the answer is lost: commit_unknown
	Stale  Point = "stale"  // a row moved on under it, all is undone: the engine makes it anew
	Retry  Point = "retry"  // the database gave up on it, all is undone: the engine makes it anew
)

// Backend is a backend whose failures are armed. It is safe for concurrent use.
type Backend struct {
	backend.Backend
	mu    sync.Mutex
	armed []strike
	away  bool
}

type strike struct {
	point Point
	verbs []string
}

var _ backend.Backend = (*Backend)(nil)

// Wrap puts an idle wrapper around inner.
func Wrap(inner backend.Backend) *Backend { return &Backend{Backend: inner} }

// Arm makes the next write transaction of one of those verbs (of any verb, when none is given) fail at that point, once. Several armed failures
// strike one after the other. A transaction that writes nothing meets Apply and Stale as if it did.
func (b *Backend) Arm(p Point, verbs ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed = append(b.armed, strike{p, verbs})
}

// Armed is the number of failures that have not struck yet: a test that armed one asserts 0 at its end.
func (b *Backend) Armed() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.armed)
}

// Away makes every call unavailable until it is called with false.
func (b *Backend) Away(away bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = away
}

// Update implements [backend.Backend].
func (b *Backend) Update(ctx context.Context, verb string, fn func(ctx context.Context, tx backend.Tx) error) error {
	point, err := b.next(verb)
	if err != nil {
		return err
	}
	err = b.Backend.Update(ctx, verb, func(ctx context.Context, tx backend.Tx) error {
		if point == Apply || point == Stale {
			tx = failing{tx, point}
		}
		if err := fn(ctx, tx); err != nil {
			return err
		}
		return failure(point)
	})
	if err == nil && point == Answer {
		return rendezvous.Errorf(rendezvous.CodeCommitUnknown, "the answer to the commit was lost; repeat the same call")
	}
	return err
}

// View implements [backend.Backend].
func (b *Backend) View(ctx context.Context, verb string, fn func(ctx context.Context, r backend.Reader) error) error {
	if err := b.gone(); err != nil {
		return err
	}
	return b.Backend.View(ctx, verb, fn)
}

// Ping implements [backend.Backend].
func (b *Backend) Ping(ctx context.Context) error {
	if err := b.gone(); err != nil {
		return err
	}
	return b.Backend.Ping(ctx)
}

func (b *Backend) gone() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away {
		return lost("the store is away")
	}
	return nil
}

// next takes the failure that is this transaction's to meet, "" for none.
func (b *Backend) next(verb string) (Point, error) {
	if err := b.gone(); err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.armed, func(s strike) bool { return len(s.verbs) == 0 || slices.Contains(s.verbs, verb) })
	if i < 0 {
		return "", nil
	}
	point := b.armed[i].point
	b.armed = slices.Delete(b.armed, i, i+1)
	if point == Begin {
		return "", lost("the transaction never began")
	}
	return point, nil
}

// failure is what a transaction that ran to its end meets instead of its commit.
func failure(p Point) error {
	switch p {
	case Apply, Commit:
		return lost("the transaction was lost before its commit")
	case Stale:
		return backend.ErrStale
	case Retry:
		return backend.ErrRetry
	}
	return nil
}

func lost(what string) error {
	return rendezvous.Errorf(rendezvous.CodeUnavailable, "%s; nothing was done, try again", what)
}

// failing is a transaction whose changes never arrive.
type failing struct {
	backend.Tx
	point Point
}

// Apply implements [backend.Tx].
func (f failing) Apply(context.Context, *backend.Changes) error { return failure(f.point) }
