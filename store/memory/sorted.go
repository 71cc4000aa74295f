package memory

import (
	"iter"
	"slices"
	"sort"
)

// chunkSize bounds a chunk of a sorted set: small enough to move items about cheaply, large enough to keep chunks few.
const chunkSize = 512

// sorted is an ordered set without equals: chunks in order, each in order, none empty. Finding costs a binary search, changing moves at most a chunk.
type sorted[T any] struct {
	compare func(a, b T) int
	chunks  [][]T
	n       int
}

func newSorted[T any](compare func(a, b T) int) *sorted[T] { return &sorted[T]{compare: compare} }

func (s *sorted[T]) len() int { return s.n }

// find is the place of x, or the place where it belongs: the chunk, the index in it, and whether it is there.
func (s *sorted[T]) find(x T) (chunk, at int, found bool) {
	chunk = sort.Search(len(s.chunks), func(i int) bool {
		c := s.chunks[i]
		return s.compare(c[len(c)-1], x) >= 0
	})
	if chunk == len(s.chunks) {
		return chunk, 0, false
	}
	at, found = slices.BinarySearchFunc(s.chunks[chunk], x, s.compare)
	return chunk, at, found
}

func (s *sorted[T]) insert(x T) {
	chunk, at, found := s.find(x)
	if found {
		return
	}
	s.n++
	if chunk == len(s.chunks) { // behind all: the usual case, numbers rise
		if chunk == 0 || len(s.chunks[chunk-1]) >= chunkSize {
			s.chunks = append(s.chunks, []T{x})
			return
		}
		chunk--
		at = len(s.chunks[chunk])
	}
	c := slices.Insert(s.chunks[chunk], at, x)
	if len(c) <= chunkSize {
		s.chunks[chunk] = c
		return
	}
	half := len(c) / 2
	s.chunks[chunk] = slices.Clone(c[:half])
	s.chunks = slices.Insert(s.chunks, chunk+1, slices.Clone(c[half:]))
}

func (s *sorted[T]) remove(x T) {
	chunk, at, found := s.find(x)
	if !found {
		return
	}
	s.n--
	if c := slices.Delete(s.chunks[chunk], at, at+1); len(c) > 0 {
		s.chunks[chunk] = c
	} else {
		s.chunks = slices.Delete(s.chunks, chunk, chunk+1)
	}
}

// first is the lowest item, if there is any.
func (s *sorted[T]) first() (T, bool) {
	if len(s.chunks) == 0 {
		var none T
		return none, false
	}
	return s.chunks[0][0], true
}

// all yields the items in order. The set must not change meanwhile.
func (s *sorted[T]) all() iter.Seq[T] { return s.walk(0, 0) }

// back yields the items from the last to the first. The set must not change meanwhile.
func (s *sorted[T]) back() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, c := range slices.Backward(s.chunks) {
			for _, x := range slices.Backward(c) {
				if !yield(x) {
					return
				}
			}
		}
	}
}

// above yields the items greater than x in order. The set must not change meanwhile.
func (s *sorted[T]) above(x T) iter.Seq[T] {
	chunk, at, found := s.find(x)
	if found {
		at++
	}
	return s.walk(chunk, at)
}

func (s *sorted[T]) walk(chunk, at int) iter.Seq[T] {
	return func(yield func(T) bool) {
		for i := chunk; i < len(s.chunks); i++ {
			from := 0
			if i == chunk {
				from = at
			}
			for _, x := range s.chunks[i][from:] {
				if !yield(x) {
					return
				}
			}
		}
	}
}

// below yields the items less than x, the greatest first. The set must not change meanwhile.
func (s *sorted[T]) below(x T) iter.Seq[T] {
	chunk, at, _ := s.find(x)
	return func(yield func(T) bool) {
		for i := min(chunk, len(s.chunks)-1); i >= 0; i-- {
			to := len(s.chunks[i])
			if i == chunk {
				to = at
			}
			for j := to - 1; j >= 0; j-- {
				if !yield(s.chunks[i][j]) {
					return
				}
			}
		}
	}
}
