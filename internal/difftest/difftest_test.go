package difftest

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// replays is how often a sequence that failed is replayed to make it smaller.
const replays = 500

// TestStoresAgree makes random sequences on all stores.
func TestStoresAgree(t *testing.T) {
	kinds := open(t)
	var last *World
	defer func() {
		if t.Failed() && last != nil {
			t.Logf("made smaller: %s", Shrink(kinds, last.steps, replays))
		}
	}()
	came := Tally{}
	began, sequences, steps := time.Now(), 0, 0
	rapid.Check(t, func(t *rapid.T) {
		last = NewWorld(t, kinds)
		last.Came = came
		last.Begin(t)
		t.Repeat(map[string]func(*rapid.T){"step": last.Draw})
		last.End()
		sequences, steps = sequences+1, steps+len(last.steps)
	})
	took := time.Since(began).Seconds()
	t.Logf("%d sequences of %d steps in all, %.1f sequences and %.0f steps a second", sequences, steps, float64(sequences)/took, float64(steps)/took)
	t.Logf("what they came to:\n%s", came)
}

func open(t *testing.T) []Kind {
	t.Helper()
	return []Kind{memoryKind(), sqliteKind(t), postgresKind(t)}
}
