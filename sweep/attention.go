package sweep

import (
	"slices"
	"sync"
	"time"

	"github.com/rendezvous-events/rendezvous/internal/attention"
)

// Attention is something a human should look at. Pass is set where it is about one.
type Attention struct {
	Reason attention.Reason
	Pass   string
}

// String is what a human reads.
func (a Attention) String() string {
	if a.Pass == "" {
		return a.Reason.String()
	}
	return "pass " + a.Pass + ": " + a.Reason.String()
}

// Reasons is what a human should look at, as of the last tick, in words; and of a pass that does not run any more, that.
func (w *Worker) Reasons() []string {
	var words []string
	for _, a := range w.Last().Attention {
		words = append(words, a.String())
	}
	if err := w.Ready(); err != nil && !w.Last().At.IsZero() {
		words = append(words, err.Error())
	}
	return words
}

// alarms remembers what happens at an instant and should be seen for a while.
type alarms struct {
	mu sync.Mutex
	at map[attention.Reason]time.Time
}

// alarmLasts is how long an alarm stands after it was last raised.
const alarmLasts = 10 * time.Minute

func (a *alarms) raise(r attention.Reason, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at == nil {
		a.at = map[attention.Reason]time.Time{}
	}
	a.at[r] = now
}

func (a *alarms) stands(r attention.Reason, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	at, raised := a.at[r]
	return raised && now.Sub(at) <= alarmLasts
}

// attention is what stands at the end of a tick, in the order of the set.
func (w *Worker) attention(r Report) []Attention {
	now := w.deps.Clock.Now()
	var found []Attention
	if at := w.seenAt.Load(); at != nil {
		for _, reason := range attention.Of(r.Depths, *at) {
			found = append(found, Attention{Reason: reason})
		}
	}
	for _, s := range w.passes {
		if s.ticks >= 2 {
			found = append(found, Attention{attention.Saturated, s.name})
		}
		if s.failed {
			found = append(found, Attention{attention.Failed, s.name})
		}
	}
	for _, reason := range [...]attention.Reason{attention.Stuck, attention.Exhausted} {
		if w.alarms.stands(reason, now) {
			found = append(found, Attention{Reason: reason})
		}
	}
	if r.DepthsErr != nil {
		found = append(found, Attention{Reason: attention.GaugesMissing})
	}
	slices.SortStableFunc(found, func(a, b Attention) int {
		return slices.Index(attention.Reasons[:], a.Reason) - slices.Index(attention.Reasons[:], b.Reason)
	})
	return found
}
