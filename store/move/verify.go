package move

import (
	"context"
	"fmt"
	"strings"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// verify holds both stores, read anew, to what was copied.
func (c *copying) verify(ctx context.Context) (Report, error) {
	copied := Report{}
	for kind, s := range c.mark.Kinds {
		copied[kind] = s.Tally
	}
	source, err := c.tally(ctx, Rereading, c.from, c.From, depose)
	if err != nil {
		return nil, err
	}
	if differ := differences(copied, source); differ != "" {
		return nil, rendezvous.InvalidField("from", "%s changed while it was copied (%s); stop what uses it, and begin again with an empty target", c.From, differ)
	}
	target, err := c.tally(ctx, Checking, c.to, c.To, func(*backend.Page) {})
	if err != nil {
		return nil, err
	}
	if differ := differences(copied, target); differ != "" {
		return nil, rendezvous.Errorf(rendezvous.CodeCorrupt, "%s does not hold what was copied (%s): somebody else wrote to it; begin again with an empty one that nobody uses",
			c.To, differ)
	}
	return copied, nil
}

// tally reads all of a store, each page as it is once it was copied.
func (c *copying) tally(ctx context.Context, step Step, b backend.Backend, name string, copied func(*backend.Page)) (Report, error) {
	r := Report{}
	for _, kind := range backend.Kinds {
		var t Tally
		of := c.mark.Kinds[kind].Rows
		c.Watch(Progress{Step: step, Kind: kind, Of: of})
		for at := (backend.Position{}); ; {
			page, err := scan(ctx, b, kind, at, c.Rows, c.Bytes)
			if err != nil {
				return nil, fmt.Errorf("reading %s of %s: %w", kind, name, err)
			}
			if page.Rows == 0 {
				break
			}
			copied(page)
			t.add(page)
			at = page.Last
			c.Watch(Progress{Step: step, Kind: kind, Done: t.Rows, Of: of})
		}
		r[kind] = t
	}
	return r, nil
}

// differences tells in which kinds a store is not as it was copied, "" for none.
func differences(copied, found Report) string {
	var differ []string
	for _, kind := range backend.Kinds {
		switch was, is := copied[kind], found[kind]; {
		case was.Rows != is.Rows:
			differ = append(differ, fmt.Sprintf("%s: %d rows copied, %d found", kind, was.Rows, is.Rows))
		case was.Sum != is.Sum:
			differ = append(differ, fmt.Sprintf("%s: %d rows, of another content", kind, is.Rows))
		}
	}
	return strings.Join(differ, "; ")
}
