package memory

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSortedIsAnOrderedSet compares the set with a plain map under random changes.
func TestSortedIsAnOrderedSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, model := newSorted(cmp.Compare[int]), map[int]struct{}{}
		small := rapid.IntRange(0, 300)
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				x := small.Draw(t, "x")
				s.insert(x)
				model[x] = struct{}{}
			},
			"insert a run": func(t *rapid.T) { // rising numbers, as events and waits come
				from := small.Draw(t, "from")
				for x := from; x < from+3*chunkSize; x++ {
					s.insert(x)
					model[x] = struct{}{}
				}
			},
			"remove": func(t *rapid.T) {
				x := small.Draw(t, "x")
				s.remove(x)
				delete(model, x)
			},
			"remove a range": func(t *rapid.T) {
				from := small.Draw(t, "from")
				for x := from; x < from+2*chunkSize; x++ {
					s.remove(x)
					delete(model, x)
				}
			},
			"": func(t *rapid.T) {
				want := slices.Sorted(maps.Keys(model))
				if got := slices.Collect(s.all()); !slices.Equal(got, want) || s.len() != len(want) {
					t.Fatalf("got %d items (len %d), want %d", len(got), s.len(), len(want))
				}
				x := small.Draw(t, "above")
				above := slices.DeleteFunc(slices.Clone(want), func(y int) bool { return y <= x })
				if got := slices.Collect(s.above(x)); !slices.Equal(got, above) {
					t.Fatalf("above %d: got %v, want %v", x, got, above)
				}
				first, ok := s.first()
				if ok != (len(want) > 0) || ok && first != want[0] {
					t.Fatalf("first: got %d, %v", first, ok)
				}
				for _, c := range s.chunks {
					if len(c) == 0 || len(c) > chunkSize {
						t.Fatalf("a chunk of %d items", len(c))
					}
				}
			},
		})
	})
}
