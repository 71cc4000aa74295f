package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rendezvous-events/rendezvous"
)

// notices are the resume notices of a scenario's runs 0..n-1: when each one's first came. They are kept without pointers: the collector, which has the plane's memory
// to watch, passes them by.
type notices struct {
	sub   *nats.Subscription
	begun time.Time

	mu    sync.Mutex
	due   []time.Duration // since begun: when what wakes the run was sent, or due; 0 is not yet
	came  []time.Duration
	heard int
}

// hear begins to hear the notices of that cause. Those of other scenarios' runs come again and again, as nobody acquires them.
func (b *bench) hear(scenario, queue string, cause rendezvous.Cause, n int) (*notices, error) {
	h := &notices{begun: time.Now(), due: make([]time.Duration, n), came: make([]time.Duration, n)}
	var err error
	h.sub, err = b.nats.Subscribe("rdv.bench.resume."+queue, func(m *nats.Msg) {
		at := time.Since(h.begun)
		var r struct {
			RunID string `json:"run_id"`
			Cause string `json:"cause"`
		}
		if json.Unmarshal(m.Data, &r) != nil || r.Cause != string(cause) {
			return
		}
		if number, ok := strings.CutPrefix(r.RunID, scenario+"-run-"); ok {
			if i, err := strconv.Atoi(number); err == nil && i < n {
				h.arrived(i, at)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return h, h.sub.SetPendingLimits(-1, -1) // a burst is no reason to lose any
}

func (h *notices) stop() { _ = h.sub.Unsubscribe() }

func (h *notices) arrived(i int, at time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.came[i] == 0 {
		h.came[i] = at
		h.heard++
	}
}

// expect notes from when on a run's notice is waited for.
func (h *notices) expect(i int, due time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.due[i] = due.Sub(h.begun)
}

// await waits until n runs had a notice.
func (h *notices) await(ctx context.Context, n int) error {
	for {
		h.mu.Lock()
		heard := h.heard
		h.mu.Unlock()
		if heard >= n {
			return nil
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%d of %d resume notices came: %w", heard, n, context.Cause(ctx))
		}
	}
}

// between are the times from due to notice of the runs that were due in [from, to).
func (h *notices) between(from, to time.Time) samples {
	h.mu.Lock()
	defer h.mu.Unlock()
	var took samples
	for i, due := range h.due {
		if h.came[i] != 0 && due != 0 && due >= from.Sub(h.begun) && due < to.Sub(h.begun) {
			took = append(took, h.came[i]-due)
		}
	}
	return took
}
