package shard

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// status is what others may ask of a member.
type status struct {
	draining bool
	renewed  time.Time // when the last round that succeeded began
	owned    []int
	floor    int       // the lowest quota
	free     int       // shards that nobody owns
	freeFrom time.Time // since when there always were some
}

// Ready says that this pod takes part: else why not (shards.md section 5).
func (m *Member) Ready() error {
	m.mu.Lock()
	s := m.status
	m.mu.Unlock()
	now := m.deps.Clock.Now()
	switch {
	case s.draining:
		return errors.New("the pod is draining")
	case s.renewed.IsZero():
		return errors.New("the pod has not joined its pool yet")
	case now.Sub(s.renewed) > 2*m.cfg.TTL:
		return fmt.Errorf("the shards could not be renewed for %s", now.Sub(s.renewed).Round(time.Millisecond))
	case len(s.owned) < s.floor && s.free > 0 && now.Sub(s.freeFrom) >= unready:
		return fmt.Errorf("%d shards are free, some for %s, and the pod holds %d of its %d", s.free, now.Sub(s.freeFrom).Round(time.Millisecond), len(s.owned), s.floor)
	}
	return nil
}

// observe tells what the round came to.
func (m *Member) observe() {
	d, free := m.look()
	free = slices.DeleteFunc(free, func(s int) bool { return m.held[s] != nil }) // taken since the directory was read
	m.mu.Lock()
	defer m.mu.Unlock()
	s := status{draining: m.status.draining, renewed: m.last, owned: m.working(), floor: d.floor(), free: len(free), freeFrom: m.status.freeFrom}
	switch {
	case len(free) == 0:
		s.freeFrom = time.Time{}
	case s.freeFrom.IsZero():
		s.freeFrom = m.last
	}
	m.status = s
}
