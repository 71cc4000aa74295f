package messaging

import (
	"sync"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
)

// buffer holds what was pulled and no handler has taken. It is bounded by what the puller asks for, so adding never blocks.
type buffer struct {
	clock   clock.Clock
	changed chan struct{} // a signal (capacity 1) that something came

	mu     sync.Mutex
	msgs   []held
	bytes  int
	since  time.Time // when the oldest came
	closed bool
}

// held is a message, its size in bytes, and the durable it came from: which, and since when that had been there.
type held struct {
	Msg
	size int
	from int
	born time.Time
}

func newBuffer(c clock.Clock) *buffer { return &buffer{clock: c, changed: make(chan struct{}, 1)} }

// add keeps m; false once the buffer is closed.
func (b *buffer) add(m held) bool {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return false
	}
	if len(b.msgs) == 0 {
		b.since = b.clock.Now()
	}
	b.msgs = append(b.msgs, m)
	b.bytes += m.size
	b.mu.Unlock()
	select {
	case b.changed <- struct{}{}:
	default:
	}
	return true
}

// ripe reports whether a batch should be taken now; if not, after how long (0: when something comes).
func (b *buffer) ripe(opts Batch, linger time.Duration) (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case len(b.msgs) == 0:
		return 0, false
	case len(b.msgs) >= opts.Size, b.bytes >= opts.Bytes, linger < 0:
		return 0, true
	}
	left := linger - b.clock.Now().Sub(b.since)
	return left, left <= 0
}

// take removes the oldest messages up to the batch's size and bytes, at least one.
func (b *buffer) take(opts Batch) []held {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, bytes := 0, 0
	for n < len(b.msgs) && n < opts.Size {
		size := b.msgs[n].size
		if n > 0 && bytes+size > opts.Bytes {
			break
		}
		n, bytes = n+1, bytes+size
	}
	batch := b.msgs[:n:n]
	b.msgs, b.bytes = b.msgs[n:], b.bytes-bytes
	return batch
}

// close empties the buffer for good.
func (b *buffer) close() []held {
	b.mu.Lock()
	defer b.mu.Unlock()
	rest := b.msgs
	b.msgs, b.bytes, b.closed = nil, 0, true
	return rest
}
