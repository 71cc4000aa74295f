package difftest

import (
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous/store"
)

// TB is what a sequence needs of its test: *testing.T has it, and *rapid.T.
type TB interface {
	Helper()
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// World is one sequence on one empty store of each kind. The first kind is what the others are compared with.
type World struct {
	t     TB
	sides []*side
	steps []Step
	now   time.Duration // behind Base
	known seen
	vague []window // see TakeWoken

	// Came counts what the steps came to, where it is set.
	Came Tally
}

// window is a stretch of time, behind Base.
type window struct{ from, to time.Duration }

// NewWorld empties the stores and puts their clocks to [Base].
func NewWorld(t TB, kinds []Kind) *World {
	t.Helper()
	w := &World{t: t}
	for _, k := range kinds {
		s, err := newSide(k)
		if err != nil {
			t.Fatalf("%v", err)
			return nil
		}
		w.sides = append(w.sides, s)
	}
	return w
}

// Replay makes steps in a world of their own and compares all that is left: a sequence that once told the stores apart.
func Replay(t *testing.T, kinds []Kind, steps ...Step) {
	t.Helper()
	w := NewWorld(t, kinds)
	for _, s := range steps {
		w.Do(s)
	}
	w.End()
}

// answer is what one store answered.
type answer struct {
	value any
	err   error
}

// preparing is a step that changes the world before it is made.
type preparing interface{ prepare(w *World) }

// learning is a step of which the world keeps something, from the first side's answer.
type learning interface{ learn(w *World, got any) }

// unsure is a step after whose failure nobody knows what was done.
type unsure interface{ unsure(w *World) }

// Do makes one step on every store and compares the answers.
func (w *World) Do(s Step) {
	w.t.Helper()
	w.steps = append(w.steps, s)
	w.known.add(s)
	if p, ok := s.(preparing); ok {
		p.prepare(w)
	}
	got := w.ask(stretch(s))
	if _, arms := s.(Arm); !arms {
		w.disarm()
	}
	if diff := w.compare(got); diff != "" {
		w.fail(s, diff)
	}
	if w.Came != nil {
		w.Came.count(s, got[0])
	}
	if l, ok := s.(learning); ok && got[0].err == nil {
		l.learn(w, got[0].value)
	}
	if u, ok := s.(unsure); ok && got[0].err != nil {
		u.unsure(w)
	}
}

// ask asks all sides at once: most of their time is waiting.
func (w *World) ask(s Step) []answer {
	got := make([]answer, len(w.sides))
	var all sync.WaitGroup
	for i, on := range w.sides {
		all.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					got[i] = answer{err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
				}
			}()
			value, err := s.ask(on)
			got[i] = answer{value, err}
		})
	}
	all.Wait()
	return got
}

// disarm takes back what did not strike. How often each failure struck is part of the answer.
func (w *World) disarm() {
	w.t.Helper()
	for i := range w.sides[0].armed {
		want := w.sides[0].armed[i].Struck()
		for _, s := range w.sides[1:] {
			if got := s.armed[i].Struck(); got != want {
				w.fail(w.steps[len(w.steps)-1], fmt.Sprintf("the armed failure struck %d times on %s and %d times on %s", want, w.sides[0].Name, got, s.Name))
			}
		}
	}
	for _, s := range w.sides {
		s.armed = nil
		s.faults.Disarm()
	}
}

// compare answers how the sides differ from the first, "" when they do not.
func (w *World) compare(got []answer) string {
	same := w.sameness()
	for i, s := range w.sides[1:] {
		if diff := same.diff(got[0], got[i+1]); diff != "" {
			return fmt.Sprintf("(-%s +%s)\n%s", w.sides[0].Name, s.Name, diff)
		}
	}
	return ""
}

// fail says what happened and then fails in few words: rapid shrinks a sequence to a shorter one that fails in the same words.
func (w *World) fail(s Step, diff string) {
	w.t.Helper()
	w.t.Logf("step %d: %s\n%s", len(w.steps), Go(s), diff)
	w.t.Fatalf("the stores differ in %T", s)
}

// move moves all clocks.
func (w *World) move(d time.Duration) {
	w.t.Helper()
	w.now += d
	for _, s := range w.sides {
		if err := s.Shift(d); err != nil {
			w.t.Fatalf("move the clock of %s: %v", s.Name, err)
		}
	}
}

// look is the first side's tenant, around all failures: what a drawn step is made from.
func (w *World) look(tenant string) store.Tenant {
	w.t.Helper()
	t, err := w.sides[0].plain.Tenant(tenant)
	if err != nil {
		w.t.Fatalf("take the handle of %q: %v", tenant, err)
	}
	return t
}

// role is how steps name an id of the first side: minted ones by their place.
func (w *World) role(id string) string {
	if i := slices.Index(w.sides[0].minted, id); i >= 0 {
		return fmt.Sprintf("$%d", i+1)
	}
	return id
}

// End compares everything that can be read, and then what the passes find.
func (w *World) End() {
	w.t.Helper()
	w.disarm()
	w.Do(Look{Events: w.known.events})
	w.Do(Advance{By: time.Hour})
	for _, s := range []Step{AbandonedRuns{Limit: 2}, DueLeases{Limit: 2}, TakeWoken{}, TakeParked{}, TakeUnmet{Limit: 2}, Depths{}} {
		w.Do(s)
	}
}

// Advance moves the clocks, forward or back.
type Advance struct{ By time.Duration }

func (a Advance) prepare(w *World) { w.move(a.By) }

func (a Advance) ask(s *side) (any, error) { return s.plain.Now(ctx) }
