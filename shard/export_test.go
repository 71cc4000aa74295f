package shard

import (
	"context"
	"slices"
)

// Turn hears what kicked the member and makes the round that is due, if one is, as Run does. The member is not run.
func (m *Member) Turn(ctx context.Context) (gone bool) {
	select {
	case <-m.kick:
		m.hear()
	default:
	}
	return m.turn(ctx)
}

// Start joins the pool with the next turn.
func (m *Member) Start() error { return m.start() }

// Drain takes the member out with the next turns.
func (m *Member) Drain() { m.drain() }

// Reverse makes the member extend its scope before it publishes.
func (m *Member) Reverse() { m.reversed = true }

// Kicked reports whether a round was asked for.
func (m *Member) Kicked() bool { return len(m.kick) > 0 }

// Owned are the shards this member works on, by number, as of its last round.
func (m *Member) Owned() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.status.owned)
}
