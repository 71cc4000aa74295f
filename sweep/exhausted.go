package sweep

import (
	"context"
	"maps"
	"sync"

	"github.com/rendezvous-events/rendezvous/internal/attention"
	"github.com/rendezvous-events/rendezvous/messaging"
)

// givenUp gathers the broker's words about messages that were given up, between two looks of the pass exhausted.
type givenUp struct {
	mu sync.Mutex
	n  map[gaveUp]int
}

// gaveUp is one way in which a stream's messages end without an acknowledgement.
type gaveUp struct {
	stream    string
	exhausted bool
}

// take counts a batch. It is acknowledged at once: the passes find the rows, and a count lost with this process is no row lost.
func (g *givenUp) take(_ context.Context, batch []messaging.Advisory) []messaging.Outcome {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]messaging.Outcome, len(batch))
	for i, a := range batch {
		out[i] = messaging.Ack()
		if a.Stream == "" {
			continue // a stream of somebody else in this account
		}
		if g.n == nil {
			g.n = map[gaveUp]int{}
		}
		g.n[gaveUp{a.Stream, a.Exhausted}]++
	}
	return out
}

func (g *givenUp) drain() map[gaveUp]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	n := maps.Clone(g.n)
	g.n = nil
	return n
}

// exhausted tells of messages that ran out of deliveries since it last looked. Terminated ones are no trouble: whoever terminated them said why.
func (w *Worker) exhausted(ctx context.Context) (page, error) {
	var p page
	for g, n := range w.given.drain() {
		w.metrics.giveUp(ctx, g, n)
		if !g.exhausted {
			continue
		}
		p.Handed, p.Done = p.Handed+n, p.Done+n
		w.alarms.raise(attention.Exhausted, w.deps.Clock.Now())
		w.deps.Log.WarnContext(ctx, "messages ran out of deliveries; the passes find the rows they spoke of", "stream", g.stream, "messages", n)
	}
	return p, nil
}
