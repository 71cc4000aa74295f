package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rendezvous-events/rendezvous"
)

// notices are the resume notices of a scenario's runs: when each run's first one came.
type notices struct {
	sub *nats.Subscription

	mu   sync.Mutex
	due  map[string]time.Time // by run: when what wakes it was sent, or due
	came map[string]time.Time
}

// hear begins to hear the notices of that cause. Those of other scenarios' runs come again and again, as nobody acquires them.
func (b *bench) hear(scenario, queue string, cause rendezvous.Cause) (*notices, error) {
	h := &notices{due: map[string]time.Time{}, came: map[string]time.Time{}}
	var err error
	h.sub, err = b.nats.Subscribe("rdv.bench.resume."+queue, func(m *nats.Msg) {
		at := time.Now()
		var r struct {
			RunID string `json:"run_id"`
			Cause string `json:"cause"`
		}
		if json.Unmarshal(m.Data, &r) == nil && r.Cause == string(cause) && strings.HasPrefix(r.RunID, scenario+"-run-") {
			h.arrived(r.RunID, at)
		}
	})
	if err != nil {
		return nil, err
	}
	return h, h.sub.SetPendingLimits(-1, -1) // a burst is no reason to lose any
}

func (h *notices) stop() { _ = h.sub.Unsubscribe() }

func (h *notices) arrived(run string, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, again := h.came[run]; !again {
		h.came[run] = at
	}
}

// expect notes from when on a run's notice is waited for.
func (h *notices) expect(run string, due time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.due[run] = due
}

// await waits until n runs had a notice.
func (h *notices) await(ctx context.Context, n int) error {
	for {
		h.mu.Lock()
		came := len(h.came)
		h.mu.Unlock()
		if came >= n {
			return nil
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%d of %d resume notices came: %w", came, n, context.Cause(ctx))
		}
	}
}

// between are the times from due to notice of the runs that were due in [from, to).
func (h *notices) between(from, to time.Time) samples {
	h.mu.Lock()
	defer h.mu.Unlock()
	var took samples
	for run, due := range h.due {
		if at, ok := h.came[run]; ok && !due.Before(from) && due.Before(to) {
			took = append(took, at.Sub(due))
		}
	}
	return took
}
