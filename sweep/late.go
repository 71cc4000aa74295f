package sweep

import (
	"context"
	"time"

	"github.com/rendezvous-events/rendezvous/store"
)

// lateAfter is how long a timer may be due before its shard's owner is told again: two probes.
const lateAfter = 10 * time.Second

// late tells the timer-workers of shards in which something has been due for longer than they take to notice by themselves. It fires nothing: what they do not do,
// an operator is to see.
func (w *Worker) late(ctx context.Context) (page, error) {
	next, err := w.shards.NextDue(ctx, nil)
	if err != nil {
		return page{}, err
	}
	var p page
	var n store.Notices
	for s, at := range next.NextDue {
		if since := next.Now.Sub(at); since > lateAfter {
			n.Timers = append(n.Timers, store.TimerRef{Shard: s, FireAt: at})
			p.oldest = max(p.oldest, since)
		}
	}
	p.Handed, p.Done = len(n.Timers), len(n.Timers)
	w.deps.Sender.Try(ctx, n)
	return p, nil
}
