package messaging

import (
	"context"
	"sync"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
)

const (
	// settleFor is how long something that was deleted elsewhere stays deleted before it is made again.
	settleFor  = time.Second
	settleLook = 10 * time.Millisecond
	settleMost = 10 * time.Second
)

// settler waits until a deletion is over. A server of one node forgets a stream and tells its consumers first and removes the files after
// that: what is made again in between loses its files, answers every question and stores nothing, until somebody deletes it by hand.
type settler struct {
	clock    clock.Clock
	deleting func(stream, consumer string) bool // nil: the server's files are elsewhere

	mu     sync.Mutex
	born   map[[2]string]time.Time // when what was there was created, by stream and consumer
	waited bool                    // in this pass
}

func newSettler(d Deps) *settler {
	s := &settler{clock: d.Clock, born: map[[2]string]time.Time{}}
	if server, ok := d.InProcess.(interface {
		Deleting(stream, consumer string) bool
	}); ok {
		s.deleting = server.Deleting
	}
	return s
}

// found notes that a stream (consumer empty) or consumer is there, and since when.
func (s *settler) found(stream, consumer string, created time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.born[[2]string{stream, consumer}] = created
}

// created is when what was found last was made.
func (s *settler) created(stream, consumer string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.born[[2]string{stream, consumer}]
}

// wait returns when what is missing may be made, or is missing no more: files are there as well while somebody else makes it.
func (s *settler) wait(ctx context.Context, stream, consumer string, missing func() bool) error {
	if s.deleting == nil {
		return clock.Sleep(ctx, s.clock, s.rest(stream, consumer))
	}
	// Files nobody deletes are leftovers of a damaged stream; JetStream takes them over. What this process never saw was most likely half made when its
	// predecessor was killed.
	most := settleMost
	if s.created(stream, consumer).IsZero() {
		most = settleFor
	}
	for end := s.clock.Now().Add(most); s.deleting(stream, consumer) && s.clock.Now().Before(end) && missing(); {
		if err := clock.Sleep(ctx, s.clock, settleLook); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// rest is how long to wait: nothing for what was never seen, and once in a pass for all that went together.
func (s *settler) rest(stream, consumer string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, seen := s.born[[2]string{stream, consumer}]; !seen || s.waited {
		return 0
	}
	s.waited = true
	return settleFor
}

// pass begins a new one.
func (s *settler) pass() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waited = false
}
