package difftest

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestStoresAgree is the comparison of random sequences.
func TestStoresAgree(t *testing.T) {
	kinds := open(t)
	began, sequences, steps := time.Now(), 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := NewWorld(t, kinds)
		t.Repeat(map[string]func(*rapid.T){"step": w.Draw})
		w.End()
		sequences, steps = sequences+1, steps+len(w.steps)
	})
	took := time.Since(began).Seconds()
	t.Logf("%d sequences of %d steps in all, %.1f sequences and %.0f steps a second", sequences, steps, float64(sequences)/took, float64(steps)/took)
}

func open(t *testing.T) []Kind {
	t.Helper()
	return []Kind{memoryKind(), sqliteKind(t), postgresKind(t)}
}
