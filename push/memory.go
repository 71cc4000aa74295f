package push

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/rendezvous-events/rendezvous/store"
)

// turnMemory is what a turn holds before it knows more: a page, and as much for a body and a response.
const turnMemory = 2 * pageBytes

// leastMemory lets the largest record pass: itself, its body in base64, and what is around them.
const leastMemory = 8 << 20

// memory is the budget of pages, bodies and responses. Who waits for it holds nothing of it, so nobody waits for ever.
type memory struct {
	budget *semaphore.Weighted
	most   int64
	used   atomic.Int64
}

func newMemory(most int64) *memory { return &memory{budget: semaphore.NewWeighted(most), most: most} }

// take waits for n bytes, the whole budget at most, and answers how many were taken.
func (m *memory) take(ctx context.Context, n int64) (int64, error) {
	n = min(n, m.most)
	if err := m.budget.Acquire(ctx, n); err != nil {
		return 0, context.Cause(ctx)
	}
	m.used.Add(n)
	return n, nil
}

func (m *memory) give(n int64) {
	m.used.Add(-n)
	m.budget.Release(n)
}

// need is how much a page takes to be sent: its records, the largest one's body, and a response.
func need(page store.HistoryPage) int64 {
	const around, response = 1 << 10, 16 << 10
	all, largest := 0, 0
	for _, r := range page.Records {
		n := len(r.Payload) + len(r.Data) + around
		all, largest = all+n, max(largest, n)
	}
	return int64(all + 2*largest + response)
}
