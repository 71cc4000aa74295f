package move

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Options say how to copy. From and To have no defaults.
type Options struct {
	From, To string         // what the stores are called in the mark and in errors: no secrets
	Watch    func(Progress) // hears of every step; nil for nobody
	Rows     int            // of a transaction. Default 500
	Bytes    int            // of a transaction, about. Default 8 MiB
}

const (
	defaultRows  = 500
	defaultBytes = 8 << 20
)

// Step is what a copy is at.
type Step string

// The steps of a copy, in their order, each through all kinds.
const (
	Copying   Step = "copying"
	Rereading Step = "reading the source again"
	Checking  Step = "reading the target"
)

// Progress is how far a copy got in a kind of rows. Of is about how many there are, 0 where that is not known.
type Progress struct {
	Step     Step
	Kind     backend.Kind
	Done, Of int64
	Resumed  bool // these rows were copied before
}

// Report is what was copied, of each kind; source and target agreed.
type Report map[backend.Kind]Tally

// Copy copies everything from one store to another, or goes on with that. Refused as invalid are: a target that is neither empty nor half copied from the same
// source; another N of shards; a source that is half copied itself, and one that changed meanwhile. A row that does not decode is corrupt, and named. What is
// unavailable may be tried again: the copy goes on.
func Copy(ctx context.Context, from, to backend.Backend, o Options) (Report, error) {
	if o.Rows == 0 {
		o.Rows = defaultRows
	}
	if o.Bytes == 0 {
		o.Bytes = defaultBytes
	}
	if o.Watch == nil {
		o.Watch = func(Progress) {}
	}
	if n, m := from.Shards(), to.Shards(); n != m {
		return nil, rendezvous.InvalidField("to", "%s has %d shards and %s has %d; the number is fixed: make the target anew with %d", o.From, n, o.To, m, n)
	}
	c := &copying{from: from, to: to, Options: o, about: map[backend.Kind]int64{}}
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	for _, kind := range backend.Kinds {
		if err := c.copy(ctx, kind); err != nil {
			return nil, err
		}
	}
	report, err := c.verify(ctx)
	if err != nil {
		return nil, err
	}
	return report, c.finish(ctx)
}

// copying is a copy under way.
type copying struct {
	Options
	from, to backend.Backend
	mark     *mark
	stored   string // the mark as it stands in the target
	about    map[backend.Kind]int64
}

// begin looks at both stores and sets the mark, or reads it.
func (c *copying) begin(ctx context.Context) error {
	err := view(ctx, c.from, func(ctx context.Context, s backend.Source) error {
		mark, err := s.Unfinished(ctx)
		if err == nil {
			err = backend.HalfCopied(mark)
		}
		for _, kind := range backend.Kinds {
			if err == nil {
				c.about[kind], err = s.About(ctx, kind)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.change(ctx, func(ctx context.Context, t backend.Target) error {
		stored, err := t.Unfinished(ctx)
		if err != nil {
			return err
		}
		if stored != "" {
			// A process that was killed may have left a commit behind that is not carried out yet: this waits for it.
			if err := t.Mark(ctx, stored, stored); errors.Is(err, backend.ErrStale) {
				return backend.ErrRetry
			} else if err != nil {
				return err
			}
			c.stored = stored
			c.mark, err = readMark(stored, c.From)
			return err
		}
		if err := c.wantEmpty(ctx, t); err != nil {
			return err
		}
		c.mark = newMark(c.From)
		c.stored = c.mark.text()
		return t.Mark(ctx, "", c.stored)
	})
}

func (c *copying) wantEmpty(ctx context.Context, t backend.Source) error {
	for _, kind := range backend.Kinds {
		page, err := t.Scan(ctx, kind, backend.Position{}, 1, 1)
		if err == nil && page.Rows > 0 || rendezvous.CodeOf(err) == rendezvous.CodeCorrupt {
			return rendezvous.InvalidField("to", "%s is not empty: it has %s; a copy begins with an empty store", c.To, kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copy copies what is missing of a kind.
func (c *copying) copy(ctx context.Context, kind backend.Kind) error {
	s := c.mark.Kinds[kind]
	c.Watch(Progress{Step: Copying, Kind: kind, Done: s.Rows, Of: c.about[kind], Resumed: true})
	for !s.Done {
		after := s.After
		page, err := scan(ctx, c.from, kind, after, c.Rows, c.Bytes)
		if err != nil {
			return fmt.Errorf("copying %s from %s: %w", kind, c.From, err)
		}
		depose(page)
		if err := c.insert(ctx, kind, page); err != nil {
			return fmt.Errorf("copying %s to %s, %s: %w", kind, c.To, behind(after), err)
		}
		c.Watch(Progress{Step: Copying, Kind: kind, Done: s.Rows, Of: c.about[kind]})
	}
	return nil
}

// behind tells a position, so that a row the target does not take can be found.
func behind(p backend.Position) string {
	var key []string
	for _, text := range [...]string{p.Tenant, p.ID, p.Part} {
		if text != "" {
			key = append(key, strconv.Quote(text))
		}
	}
	if p.Number > 0 {
		key = append(key, strconv.FormatInt(p.Number, 10))
	}
	if len(key) == 0 {
		return "the first ones"
	}
	return "those behind " + strings.Join(key, " ")
}

// insert has rows and mark in the target together.
func (c *copying) insert(ctx context.Context, kind backend.Kind, page *backend.Page) error {
	c.mark.take(kind, page)
	next := c.mark.text()
	err := c.change(ctx, func(ctx context.Context, t backend.Target) error {
		if err := t.Mark(ctx, c.stored, next); err != nil {
			return err
		}
		if flows := flowsOf(page); len(flows) > 0 {
			if _, err := t.LockWorkflows(ctx, flows); err != nil { // the law of Apply
				return err
			}
		}
		if err := t.Apply(ctx, &page.Changes); !errors.Is(err, backend.ErrStale) {
			return err
		}
		return rendezvous.InvalidField("to", "%s has rows that this copy did not write; begin again with an empty store that nobody uses", c.To)
	})
	if err == nil {
		c.stored = next
	}
	return err
}

// later is how far epochs of shards are ahead in a copy: no pod that works on the source can pass a fence of the target, whatever it takes there meanwhile
// (shards.md section 5).
const later = 1 << 32

// depose has leases as they are to be in the target: those of shards free, and of a later epoch; those of push registrations ended, but for what a deleted one
// waits for.
func depose(p *backend.Page) {
	for _, x := range p.NewPushes {
		if x.State != backend.PushGone {
			x.LeaseToken, x.LeaseOwner, x.LeaseRequest, x.LeaseUntil, x.LeaseRevoked = 0, "", "", time.Time{}, false
		}
	}
	for _, l := range p.NewShardLeases {
		l.Epoch += later
		l.Owner, l.ExpiresAt, l.Serving, l.Address = "", time.Time{}, false, ""
	}
}

// flowsOf are the workflows that rows belong to.
func flowsOf(p *backend.Page) []backend.WorkflowKey {
	flows := map[backend.WorkflowKey]struct{}{}
	for _, r := range p.NewRuns {
		flows[backend.WorkflowKey{Tenant: r.Tenant, ID: r.WorkflowID}] = struct{}{}
	}
	for _, r := range p.Records {
		flows[backend.WorkflowKey{Tenant: r.Tenant, ID: r.WorkflowID}] = struct{}{}
	}
	for _, w := range p.NewWaits {
		flows[backend.WorkflowKey{Tenant: w.Tenant, ID: w.WorkflowID}] = struct{}{}
	}
	for _, x := range p.Timers {
		flows[backend.WorkflowKey{Tenant: x.Tenant, ID: x.WorkflowID}] = struct{}{}
	}
	for _, x := range p.NewPushes {
		flows[x.Flow()] = struct{}{}
	}
	return slices.SortedFunc(maps.Keys(flows), backend.WorkflowKey.Compare)
}

// finish has the target draw its numbers above all that the source gave, and opens it.
func (c *copying) finish(ctx context.Context) error {
	given := c.mark.Numbers
	err := view(ctx, c.from, func(ctx context.Context, s backend.Source) error {
		n, err := s.Given(ctx)
		given = given.Max(n)
		return err
	})
	if err != nil {
		return err
	}
	return c.change(ctx, func(ctx context.Context, t backend.Target) error {
		if err := t.Raise(ctx, given); err != nil {
			return err
		}
		return t.Mark(ctx, c.stored, "")
	})
}

// change changes the target.
func (c *copying) change(ctx context.Context, fn func(ctx context.Context, t backend.Target) error) error {
	err := again(func() error {
		return c.to.Update(ctx, "copy", func(ctx context.Context, tx backend.Tx) error {
			t, ok := tx.(backend.Target)
			if !ok {
				return rendezvous.InvalidField("to", "a store of this kind takes no copy")
			}
			return fn(ctx, t)
		})
	})
	if errors.Is(err, backend.ErrStale) {
		return rendezvous.InvalidField("to", "another copy to %s is under way; let one of them finish", c.To)
	}
	return err
}

// view reads a store.
func view(ctx context.Context, b backend.Backend, fn func(ctx context.Context, s backend.Source) error) error {
	return again(func() error {
		return b.View(ctx, "copy", func(ctx context.Context, r backend.Reader) error {
			s, ok := r.(backend.Source)
			if !ok {
				return rendezvous.InvalidField("from", "a store of this kind cannot be copied")
			}
			return fn(ctx, s)
		})
	})
}

// again makes a transaction anew that the database gave up.
func again(fn func() error) error {
	err := fn()
	for tries := 1; errors.Is(err, backend.ErrRetry) && tries < 10; tries++ {
		err = fn()
	}
	return err
}

// scan reads a page. The error of a row that does not decode names it.
func scan(ctx context.Context, b backend.Backend, kind backend.Kind, after backend.Position, rows, bytes int) (page *backend.Page, err error) {
	err = view(ctx, b, func(ctx context.Context, s backend.Source) error {
		page, err = s.Scan(ctx, kind, after, rows, bytes)
		return err
	})
	var known *rendezvous.Error
	if errors.As(err, &known) && known.Code == rendezvous.CodeCorrupt {
		err = rendezvous.Errorf(rendezvous.CodeCorrupt, "%s: %s", strings.TrimPrefix(fmt.Sprint(known.Details), "map"), known.Message).Because(err)
	}
	return page, err
}
