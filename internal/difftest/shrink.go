package difftest

import (
	"fmt"
	"reflect"
	"slices"
)

// trial is the test of a replay that may fail.
type trial struct{ said, detail string }

func (*trial) Helper() {}

func (t *trial) Logf(format string, args ...any) { t.detail = fmt.Sprintf(format, args...) }

func (t *trial) Fatalf(format string, args ...any) {
	t.said = fmt.Sprintf(format, args...)
	panic(t)
}

// shrinking makes a sequence that tells the stores apart smaller. Steps are data and name what they mean, so any part of a sequence is one too: rapid, which
// shrinks what a sequence was drawn from, would have every later step drawn anew.
type shrinking struct {
	kinds  []Kind
	said   string // how the smaller ones are to fail
	tries  int
	best   []Step
	detail string // of the failure of the best
}

// Shrink answers a smaller sequence that fails as steps do, as a test of its own, and how it fails. It replays at most that many.
func Shrink(kinds []Kind, steps []Step, tries int) string {
	s := &shrinking{kinds: kinds, tries: tries, best: steps, detail: "it does not fail again: something is left to chance"}
	n, t := s.replay(steps)
	if t.said == "" {
		s.tries = 0
	} else {
		s.said, s.best, s.detail = t.said, steps[:n], t.detail
	}
	for before := 0; before != s.size() && s.tries > 0; {
		before = s.size()
		s.drop()
		s.simplify()
	}
	return fmt.Sprintf("%s\n\n\tReplay(\n\t\tt, open(t),\n%s\t)", s.detail, script(s.best))
}

func (s *shrinking) size() int { return len(script(s.best)) }

// replay answers how many steps were made until one failed, and how it did.
func (s *shrinking) replay(steps []Step) (made int, t *trial) {
	t = &trial{}
	w := &World{t: t}
	defer func() {
		if p := recover(); p != nil && p != any(t) {
			panic(p)
		}
		made = len(w.steps)
	}()
	*w = *NewWorld(t, s.kinds)
	for _, step := range steps {
		w.Do(step)
	}
	return 0, t
}

// better takes a smaller sequence if it fails as it should.
func (s *shrinking) better(steps []Step) bool {
	if s.tries <= 0 {
		return false
	}
	s.tries--
	n, t := s.replay(steps)
	if t.said != s.said {
		return false
	}
	s.best, s.detail = steps[:n], t.detail
	return true
}

// drop leaves steps out: halves, then quarters, then single ones, from behind.
func (s *shrinking) drop() {
	for size := max(len(s.best)/2, 1); size >= 1; size /= 2 {
		for from := len(s.best) - size; from > -size; from -= size {
			from, to := max(from, 0), min(max(from, 0)+size, len(s.best))
			if from < to {
				s.better(slices.Concat(s.best[:from], s.best[to:]))
			}
		}
	}
}

// simplify empties fields and leaves items out, step by step.
func (s *shrinking) simplify() {
	for i := len(s.best) - 1; i >= 0; i-- {
		for field := 0; i < len(s.best); field++ {
			simpler, more := without(s.best[i], field)
			if !more {
				break
			}
			steps := slices.Clone(s.best)
			steps[i] = simpler
			if s.better(steps) {
				field-- // what came behind it is there now
			}
		}
	}
}

// without answers a step without its n-th part: a field that is filled in, or an item of a list.
func without(s Step, n int) (simpler Step, more bool) {
	v := reflect.New(reflect.TypeOf(s)).Elem()
	v.Set(copyOf(reflect.ValueOf(s)))
	left := n
	if !strip(v, &left) {
		return nil, false
	}
	return v.Interface().(Step), true
}

// strip takes the part away that comes after that many others, and reports whether there was one.
func strip(v reflect.Value, left *int) bool {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); !f.IsZero() && (strip(f, left) || gone(f, left)) {
				return true
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if *left == 0 {
				v.Set(reflect.AppendSlice(v.Slice(0, i), v.Slice(i+1, v.Len())))
				return true
			}
			*left--
			if item := v.Index(i); item.Kind() == reflect.Struct && strip(item, left) {
				return true
			}
		}
	}
	return false
}

// gone empties a field that holds one value.
func gone(f reflect.Value, left *int) bool {
	if f.Kind() == reflect.Struct || f.Kind() == reflect.Slice {
		return false
	}
	if *left == 0 {
		f.SetZero()
		return true
	}
	*left--
	return false
}
