package fault_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/store/memory"
)

var key = backend.WorkflowKey{Tenant: "default", ID: "w"}

func open(t *testing.T) *fault.Backend {
	t.Helper()
	b := fault.Wrap(memory.Open(clock.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), 4))
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

// put writes one workflow's row in two calls: a lock and an Apply.
func put(b backend.Backend, verb string) error {
	return b.Update(context.Background(), verb, func(ctx context.Context, tx backend.Tx) error {
		if _, err := tx.LockWorkflows(ctx, []backend.WorkflowKey{key}); err != nil {
			return err
		}
		return tx.Apply(ctx, &backend.Changes{NewWorkflows: []*backend.Workflow{{
			Tenant: key.Tenant, ID: key.ID, RunID: "r", Type: "t", Queue: "default", Status: rendezvous.StatusRunning, Head: 1,
			CreatedAt: tx.Now(), StartedAt: tx.Now(), UpdatedAt: tx.Now(),
		}}})
	})
}

func written(t *testing.T, b backend.Backend) bool {
	t.Helper()
	var there bool
	err := b.View(context.Background(), "look", func(ctx context.Context, r backend.Reader) error {
		rows, err := r.Workflows(ctx, []backend.WorkflowKey{key})
		there = rows[key] != nil
		return err
	})
	if err != nil {
		t.Fatalf("look: %v", err)
	}
	return there
}

func TestBeforeCommitNothingIsWritten(t *testing.T) {
	b := open(t)
	f := b.Arm(fault.Failure{Verb: "put", Point: fault.BeforeCommit})
	if err := put(b, "put"); !errors.Is(err, rendezvous.ErrUnavailable) {
		t.Fatalf("put under a failure before its commit: %v, want unavailable", err)
	}
	if written(t, b) || f.Struck() != 1 {
		t.Fatalf("written %v, struck %d; want nothing written, struck once", written(t, b), f.Struck())
	}
	if err := put(b, "put"); err != nil || !written(t, b) {
		t.Fatalf("put after the failure: %v, written %v", err, written(t, b))
	}
}

func TestAfterCommitAllIsWrittenAndTheCallerIsNotTold(t *testing.T) {
	b := open(t)
	b.Arm(fault.Failure{Verb: "put", Point: fault.AfterCommit})
	if err := put(b, "put"); !errors.Is(err, rendezvous.ErrCommitUnknown) {
		t.Fatalf("put whose commit answer is lost: %v, want commit_unknown", err)
	}
	if !written(t, b) {
		t.Fatal("nothing is written though the commit went through")
	}
}

func TestAtCallEveryStepCanBreak(t *testing.T) {
	b := open(t)
	broken := 0
	for call := 1; ; call++ {
		f := b.Arm(fault.Failure{Verb: "put", Point: fault.AtCall, Call: call})
		err := put(b, "put")
		if f.Struck() == 0 {
			f.Disarm()
			if err != nil {
				t.Fatalf("put that nothing struck: %v", err)
			}
			break
		}
		if broken++; !errors.Is(err, rendezvous.ErrUnavailable) || written(t, b) {
			t.Fatalf("put broken at call %d: %v, written %v", call, err, written(t, b))
		}
	}
	if broken != 2 {
		t.Fatalf("%d steps were broken, want the lock and the Apply", broken)
	}
}

func TestAReadCanBreak(t *testing.T) {
	b := open(t)
	b.Arm(fault.Failure{Verb: "look", Point: fault.AtCall, Call: 1})
	err := b.View(context.Background(), "look", func(ctx context.Context, r backend.Reader) error {
		_, err := r.Workflows(ctx, []backend.WorkflowKey{key})
		return err
	})
	if !errors.Is(err, rendezvous.ErrUnavailable) {
		t.Fatalf("a broken read: %v, want unavailable", err)
	}
}

func TestAFailureStrikesWhenAndAsOftenAsItSays(t *testing.T) {
	for name, c := range map[string]struct {
		failure fault.Failure
		want    []bool // whether the n-th try fails
	}{
		"once":           {fault.Failure{}, []bool{true, false, false}},
		"another verb":   {fault.Failure{Verb: "other"}, []bool{false, false}},
		"after one":      {fault.Failure{Skip: 1}, []bool{false, true, false}},
		"twice":          {fault.Failure{Times: 2}, []bool{true, true, false}},
		"always":         {fault.Failure{Times: -1}, []bool{true, true, true, true}},
		"twice after 1":  {fault.Failure{Skip: 1, Times: 2}, []bool{false, true, true, false}},
		"by name, twice": {fault.Failure{Verb: "put", Times: 2}, []bool{true, true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t)
			c.failure.Point = fault.BeforeCommit
			b.Arm(c.failure)
			for i, want := range c.want {
				err := b.Update(context.Background(), "put", func(context.Context, backend.Tx) error { return nil })
				if (err != nil) != want {
					t.Fatalf("try %d: %v, want a failure: %v", i+1, err, want)
				}
			}
		})
	}
}

func TestDisarmTakesFailuresBack(t *testing.T) {
	b := open(t)
	b.Arm(fault.Failure{Point: fault.BeforeCommit, Times: -1})
	b.Arm(fault.Failure{Point: fault.AfterCommit, Times: -1})
	b.Disarm()
	if err := put(b, "put"); err != nil {
		t.Fatalf("put after everything was disarmed: %v", err)
	}
}

func TestTheFailureIsTheOneAskedFor(t *testing.T) {
	b := open(t)
	b.Arm(fault.Failure{Point: fault.BeforeCommit, Err: backend.ErrStale})
	if err := put(b, "put"); !errors.Is(err, backend.ErrStale) {
		t.Fatalf("put: %v, want stale", err)
	}
	done := false
	b.Arm(fault.Failure{Point: fault.BeforeCommit, Do: func(context.Context) error { done = true; return nil }})
	if err := put(b, "put"); err != nil || !done || !written(t, b) {
		t.Fatalf("put past a point that only does something: %v, done %v, written %v", err, done, written(t, b))
	}
}

func TestArmRefusesWhatCannotStrike(t *testing.T) {
	for name, f := range map[string]fault.Failure{"no point": {}, "no call": {Point: fault.AtCall}} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it was armed")
				}
			}()
			open(t).Arm(f)
		})
	}
}

// TestEveryMethodCanBreak calls every method of a transaction under a failure at its first call: one that passed by the counter would not fail.
func TestEveryMethodCanBreak(t *testing.T) {
	b := open(t)
	b.Arm(fault.Failure{Point: fault.AtCall, Call: 1, Times: -1})
	shape := reflect.TypeFor[backend.Tx]()
	for i := range shape.NumMethod() {
		m := shape.Method(i)
		if m.Name == "Now" {
			continue
		}
		err := b.Update(context.Background(), "probe", func(ctx context.Context, tx backend.Tx) error {
			args := []reflect.Value{reflect.ValueOf(ctx)}
			for n := 1; n < m.Type.NumIn(); n++ {
				args = append(args, reflect.Zero(m.Type.In(n)))
			}
			results := reflect.ValueOf(tx).MethodByName(m.Name).Call(args)
			err, _ := results[len(results)-1].Interface().(error)
			return err
		})
		if !errors.Is(err, rendezvous.ErrUnavailable) {
			t.Errorf("%s under a failure at every first call: %v, want unavailable", m.Name, err)
		}
	}
}
