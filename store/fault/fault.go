package fault

import (
	"context"
	"slices"
	"sync"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Point is where in a transaction a failure strikes.
type Point string

// The points.
const (
	// BeforeCommit strikes when everything is applied and nothing is committed: nothing is written, the caller gets unavailable. Reads have no such point.
	BeforeCommit Point = "before_commit"
	// AfterCommit strikes when all is written and the caller does not know: it gets commit_unknown. Reads have no such point.
	AfterCommit Point = "after_commit"
	// AtCall strikes instead of the n-th call inside a transaction or a read: nothing is written, the caller gets unavailable.
	AtCall Point = "at_call"
)

// Failure says what is to fail.
type Failure struct {
	Verb  string // the name the transaction was begun with; "" is any
	Point Point
	// Call is, for AtCall, which call of the transaction, from 1: reads and writes are numbered together, in their order. Now is not counted.
	Call  int
	Skip  int // how often the point is passed before it strikes: 0 strikes the first time
	Times int // how often it strikes: 0 is once, negative is for ever
	// Err is what the transaction fails with, instead of the point's own error.
	Err error
	// Do runs at the point, in the transaction's goroutine. With Err nil the transaction fails with what Do answers, and goes on if that is nil: so a test
	// can hold a transaction at a point, or do something else meanwhile. In an engine that runs one transaction at a time, as memory does, Do must not
	// wait for another.
	Do func(ctx context.Context) error
}

// Backend forwards to another backend and fails where it is told to. It is safe for concurrent use.
type Backend struct {
	inner backend.Backend
	mu    sync.Mutex
	armed []*Armed
}

var _ backend.Backend = (*Backend)(nil)

// Wrap puts b behind failures. None is armed.
func Wrap(b backend.Backend) *Backend { return &Backend{inner: b} }

// Armed is a failure that waits for its moment.
type Armed struct {
	Failure
	owner  *Backend
	passed int
	struck int
}

// Arm arms a failure and answers its handle. A failure without a known point, or AtCall without a call, can never strike: Arm panics.
func (b *Backend) Arm(f Failure) *Armed {
	switch f.Point {
	case BeforeCommit, AfterCommit:
	case AtCall:
		if f.Call < 1 {
			panic("fault: a failure at a call needs the number of that call, from 1")
		}
	default:
		panic("fault: unknown point " + string(f.Point))
	}
	a := &Armed{Failure: f, owner: b}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed = append(b.armed, a)
	return a
}

// Disarm takes every failure back.
func (b *Backend) Disarm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed = nil
}

// Disarm takes this failure back.
func (a *Armed) Disarm() {
	a.owner.mu.Lock()
	defer a.owner.mu.Unlock()
	a.owner.armed = slices.DeleteFunc(a.owner.armed, func(o *Armed) bool { return o == a })
}

// Struck is how often the failure has struck.
func (a *Armed) Struck() int {
	a.owner.mu.Lock()
	defer a.owner.mu.Unlock()
	return a.struck
}

// pass comes by a point and answers the failure that strikes there, if one does.
func (b *Backend) pass(ctx context.Context, verb string, p Point, call int) error {
	a := b.strike(verb, p, call)
	if a == nil {
		return nil
	}
	if a.Do != nil {
		if err := a.Do(ctx); err != nil || a.Err == nil {
			return err
		}
	}
	if a.Err != nil {
		return a.Err
	}
	if p == AfterCommit {
		return rendezvous.Errorf(rendezvous.CodeCommitUnknown, "%s: the answer of the commit was lost (an armed failure); repeat the same call", verb)
	}
	return rendezvous.Errorf(rendezvous.CodeUnavailable, "%s: the store failed (an armed failure); nothing was done, try again", verb)
}

// strike finds the first armed failure that is due at a point and counts it.
func (b *Backend) strike(verb string, p Point, call int) *Armed {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, a := range b.armed {
		if a.Point != p || a.Call != call && p == AtCall || a.Verb != "" && a.Verb != verb {
			continue
		}
		if a.passed++; a.passed <= a.Skip {
			continue
		}
		a.struck++
		if a.Times >= 0 && a.struck >= max(a.Times, 1) {
			b.armed = slices.Delete(b.armed, i, i+1)
		}
		return a
	}
	return nil
}

// Update implements [backend.Backend].
func (b *Backend) Update(ctx context.Context, verb string, fn func(ctx context.Context, tx backend.Tx) error) error {
	err := b.inner.Update(ctx, verb, func(ctx context.Context, inner backend.Tx) error {
		if err := fn(ctx, &tx{reader: reader{inner: inner, at: &calls{owner: b, verb: verb}}, inner: inner}); err != nil {
			return err
		}
		return b.pass(ctx, verb, BeforeCommit, 0)
	})
	if err != nil {
		return err
	}
	return b.pass(ctx, verb, AfterCommit, 0)
}

// View implements [backend.Backend].
func (b *Backend) View(ctx context.Context, verb string, fn func(ctx context.Context, r backend.Reader) error) error {
	return b.inner.View(ctx, verb, func(ctx context.Context, inner backend.Reader) error {
		return fn(ctx, &reader{inner: inner, at: &calls{owner: b, verb: verb}})
	})
}

// Ping implements [backend.Backend].
func (b *Backend) Ping(ctx context.Context) error { return b.inner.Ping(ctx) }

// Close implements [backend.Backend].
func (b *Backend) Close() error { return b.inner.Close() }

// Shards implements [backend.Backend].
func (b *Backend) Shards() int { return b.inner.Shards() }

// calls counts the calls of one transaction.
type calls struct {
	owner *Backend
	verb  string
	n     int
}

// next counts a call and answers the failure that strikes instead of it.
func (c *calls) next(ctx context.Context) error {
	c.n++
	return c.owner.pass(ctx, c.verb, AtCall, c.n)
}
