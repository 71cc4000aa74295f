package backendtest

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Forwards proves that a decorator hands every method on: each call reaches the backend below once, under its name, with its arguments, and its answer and
// error come back as they were given.
func Forwards(t *testing.T, wrap func(backend.Backend) backend.Backend) {
	s := &spy{}
	b := wrap(s)
	called := errors.New("an error of its own")
	within := func(shape reflect.Type, do func(verb string, each func(ctx context.Context, inner any) error) error) {
		for i := range shape.NumMethod() {
			m := shape.Method(i)
			t.Run(shape.Name()+"."+m.Name, func(t *testing.T) {
				s.calls, s.err = nil, called
				err := do("verb of "+m.Name, func(ctx context.Context, inner any) error {
					forwarded(t, s, inner, m, ctx)
					return called
				})
				if s.verb != "verb of "+m.Name || !errors.Is(err, called) {
					t.Errorf("it ran as %q and ended with %v", s.verb, err)
				}
			})
		}
	}
	ctx := t.Context()
	within(reflect.TypeFor[backend.Tx](), func(verb string, each func(ctx context.Context, inner any) error) error {
		return b.Update(ctx, verb, func(ctx context.Context, tx backend.Tx) error { return each(ctx, tx) })
	})
	within(reflect.TypeFor[backend.Reader](), func(verb string, each func(ctx context.Context, inner any) error) error {
		return b.View(ctx, verb, func(ctx context.Context, r backend.Reader) error { return each(ctx, r) })
	})
	s.err = called
	if err := b.Ping(ctx); !errors.Is(err, called) {
		t.Errorf("Ping: %v", err)
	}
	if n := b.Shards(); n != 77 {
		t.Errorf("Shards: %d", n)
	}
	if err := b.Close(); !errors.Is(err, called) {
		t.Errorf("Close: %v", err)
	}
}

// forwarded makes one call and compares what came in below with what went out.
func forwarded(t *testing.T, s *spy, inner any, m reflect.Method, ctx context.Context) {
	t.Helper()
	var in []reflect.Value
	for i := range m.Type.NumIn() {
		if i == 0 && m.Type.In(0) == reflect.TypeFor[context.Context]() {
			in = append(in, reflect.ValueOf(ctx))
			continue
		}
		in = append(in, s.some(m.Type.In(i)))
	}
	out := reflect.ValueOf(inner).MethodByName(m.Name).Call(in)
	if len(s.calls) != 1 || s.calls[0].name != m.Name {
		t.Fatalf("it came as %+v, want %s once", s.calls, m.Name)
	}
	got := s.calls[0]
	for i, arg := range in[min(1, len(in)):] {
		if !reflect.DeepEqual(arg.Interface(), got.args[i]) {
			t.Errorf("argument %d came as %v, was %v", i, got.args[i], arg)
		}
	}
	for i, answer := range out {
		if want := got.answers[i]; !reflect.DeepEqual(answer.Interface(), want) {
			t.Errorf("answer %d came back as %v, was %v", i, answer, want)
		}
	}
}

// spy is a backend that tells what is asked of it and answers something of its own each time.
type spy struct {
	verb  string
	calls []spied
	err   error
	n     int
}

type spied struct {
	name          string
	args, answers []any
}

func (s *spy) Update(ctx context.Context, verb string, fn func(ctx context.Context, tx backend.Tx) error) error {
	s.verb = verb
	return fn(ctx, spyTx{s})
}

func (s *spy) View(ctx context.Context, verb string, fn func(ctx context.Context, r backend.Reader) error) error {
	s.verb = verb
	return fn(ctx, spyTx{s})
}
func (s *spy) Ping(context.Context) error { return s.err }
func (s *spy) Close() error               { return s.err }
func (s *spy) Shards() int                { return 77 }

// some is a value of that type that no other call has.
func (s *spy) some(of reflect.Type) reflect.Value {
	s.n++
	v := reflect.New(of).Elem()
	switch of.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(s.n))
	case reflect.String:
		v.SetString(string(rune('a'+s.n%26)) + of.Name())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(of, s.n%5+1, s.n%5+1))
	case reflect.Map:
		v.Set(reflect.MakeMap(of))
		v.SetMapIndex(s.some(of.Key()), s.some(of.Elem()))
	case reflect.Pointer:
		v.Set(reflect.New(of.Elem()))
	case reflect.Struct:
		if of == reflect.TypeFor[time.Time]() {
			return reflect.ValueOf(time.UnixMicro(int64(s.n)).UTC())
		}
		for i := range of.NumField() {
			if f := of.Field(i); f.IsExported() && (f.Type.Kind() == reflect.String || f.Type.Kind() == reflect.Int) {
				v.Field(i).Set(s.some(f.Type))
			}
		}
	}
	return v
}

// spyTx answers as a transaction.
type spyTx struct{ s *spy }

var _ backend.Tx = spyTx{}

// note tells of a call and makes its answer.
func note[A any](t spyTx, name string, args ...any) (A, error) {
	a := t.s.some(reflect.TypeFor[A]()).Interface().(A)
	t.s.calls = append(t.s.calls, spied{name, args, []any{a, t.s.err}})
	return a, t.s.err
}

// note2 is note of two answers.
func note2[A, B any](t spyTx, name string, args ...any) (A, B, error) {
	a, b := t.s.some(reflect.TypeFor[A]()).Interface().(A), t.s.some(reflect.TypeFor[B]()).Interface().(B)
	t.s.calls = append(t.s.calls, spied{name, args, []any{a, b, t.s.err}})
	return a, b, t.s.err
}

func (t spyTx) Now() time.Time {
	now := t.s.some(reflect.TypeFor[time.Time]()).Interface().(time.Time)
	t.s.calls = append(t.s.calls, spied{"Now", nil, []any{now}})
	return now
}

func (t spyTx) Apply(_ context.Context, c *backend.Changes) error {
	t.s.calls = append(t.s.calls, spied{"Apply", []any{c}, []any{t.s.err}})
	return t.s.err
}

func (t spyTx) Workflows(_ context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Workflow, error) {
	return note[map[backend.WorkflowKey]*backend.Workflow](t, "Workflows", keys)
}

func (t spyTx) Runs(_ context.Context, keys []backend.RunKey) (map[backend.RunKey]*backend.Run, error) {
	return note[map[backend.RunKey]*backend.Run](t, "Runs", keys)
}

func (t spyTx) RunsOf(_ context.Context, key backend.WorkflowKey, after int64, limit int) ([]*backend.Run, error) {
	return note[[]*backend.Run](t, "RunsOf", key, after, limit)
}

func (t spyTx) Batches(_ context.Context, keys []backend.BatchKey) (map[backend.BatchKey]*backend.Batch, error) {
	return note[map[backend.BatchKey]*backend.Batch](t, "Batches", keys)
}

func (t spyTx) Woken(_ context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Woken, error) {
	return note[map[backend.WorkflowKey]*backend.Woken](t, "Woken", keys)
}

func (t spyTx) History(_ context.Context, key backend.WorkflowKey, from int64, to int64, limit int, maxBytes int) ([]rendezvous.Record, error) {
	return note[[]rendezvous.Record](t, "History", key, from, to, limit, maxBytes)
}

func (t spyTx) HistorySize(_ context.Context, key backend.WorkflowKey) (int64, int64, error) {
	return note2[int64, int64](t, "HistorySize", key)
}

func (t spyTx) Effects(_ context.Context, keys []backend.WaitKey) (map[backend.WaitKey][]rendezvous.Record, error) {
	return note[map[backend.WaitKey][]rendezvous.Record](t, "Effects", keys)
}

func (t spyTx) RecordsAt(_ context.Context, keys []backend.RecordKey) (map[backend.RecordKey]rendezvous.Record, error) {
	return note[map[backend.RecordKey]rendezvous.Record](t, "RecordsAt", keys)
}

func (t spyTx) OpenEffects(_ context.Context, key backend.RunKey, limit int) ([]rendezvous.Record, error) {
	return note[[]rendezvous.Record](t, "OpenEffects", key, limit)
}

func (t spyTx) EffectNames(_ context.Context, key backend.RunKey, limit int) ([]string, error) {
	return note[[]string](t, "EffectNames", key, limit)
}

func (t spyTx) LastFailure(_ context.Context, key backend.RunKey) (string, error) {
	return note[string](t, "LastFailure", key)
}

func (t spyTx) EventsByKey(_ context.Context, keys []backend.EventKey, payload bool) (map[backend.EventKey]*backend.Event, error) {
	return note[map[backend.EventKey]*backend.Event](t, "EventsByKey", keys, payload)
}

func (t spyTx) EventsByNumber(_ context.Context, numbers []int64, payload bool) (map[int64]*backend.Event, error) {
	return note[map[int64]*backend.Event](t, "EventsByNumber", numbers, payload)
}

func (t spyTx) LiveEvents(_ context.Context, lookups []backend.Lookup) ([][]*backend.Event, error) {
	return note[[][]*backend.Event](t, "LiveEvents", lookups)
}

func (t spyTx) ClaimedEvents(_ context.Context, keys []backend.WaitKey) (map[backend.WaitKey]*backend.Event, error) {
	return note[map[backend.WaitKey]*backend.Event](t, "ClaimedEvents", keys)
}

func (t spyTx) KeptCounts(_ context.Context, keys []backend.RunKey) (map[backend.RunKey]int, error) {
	return note[map[backend.RunKey]int](t, "KeptCounts", keys)
}

func (t spyTx) KeptEvents(_ context.Context, keys []backend.RunKey) ([]*backend.Event, error) {
	return note[[]*backend.Event](t, "KeptEvents", keys)
}

func (t spyTx) Waits(_ context.Context, keys []backend.WaitKey) (map[backend.WaitKey]*backend.Wait, error) {
	return note[map[backend.WaitKey]*backend.Wait](t, "Waits", keys)
}

func (t spyTx) WaitsOf(_ context.Context, keys []backend.RunKey) ([]*backend.Wait, error) {
	return note[[]*backend.Wait](t, "WaitsOf", keys)
}

func (t spyTx) ParkedOf(_ context.Context, keys []backend.RunKey) (map[backend.RunKey]int, error) {
	return note[map[backend.RunKey]int](t, "ParkedOf", keys)
}

func (t spyTx) OpenWaits(_ context.Context, lookups []backend.Lookup) ([][]*backend.Wait, error) {
	return note[[][]*backend.Wait](t, "OpenWaits", lookups)
}

func (t spyTx) NearWaits(_ context.Context, n backend.Near) (backend.Nearby[backend.Wait], error) {
	return note[backend.Nearby[backend.Wait]](t, "NearWaits", n)
}

func (t spyTx) NearEvents(_ context.Context, n backend.Near) (backend.Nearby[backend.Event], error) {
	return note[backend.Nearby[backend.Event]](t, "NearEvents", n)
}

func (t spyTx) ListWaits(_ context.Context, tenant string, f backend.WaitFilter, after int64, p backend.Span) ([]*backend.Wait, int64, error) {
	return note2[[]*backend.Wait, int64](t, "ListWaits", tenant, f, after, p)
}

func (t spyTx) ListParked(
	_ context.Context, tenant string, f backend.WaitFilter, after backend.ParkedPosition, p backend.Span,
) ([]*backend.Wait, backend.ParkedPosition, error) {
	return note2[[]*backend.Wait, backend.ParkedPosition](t, "ListParked", tenant, f, after, p)
}

func (t spyTx) ListQuarantined(_ context.Context, tenant string, after backend.ParkedPosition, limit int) ([]*backend.Wait, error) {
	return note[[]*backend.Wait](t, "ListQuarantined", tenant, after, limit)
}

func (t spyTx) ListWorkflows(
	_ context.Context, tenant string, f backend.WorkflowFilter, after backend.WorkflowPosition, p backend.Span,
) ([]*backend.Workflow, backend.WorkflowPosition, error) {
	return note2[[]*backend.Workflow, backend.WorkflowPosition](t, "ListWorkflows", tenant, f, after, p)
}

func (t spyTx) CountWorkflows(_ context.Context, tenant string, f backend.WorkflowFilter, most int) (int, error) {
	return note[int](t, "CountWorkflows", tenant, f, most)
}

func (t spyTx) Abandoned(_ context.Context, shards []int, after backend.AbandonedPosition, limit int) ([]*backend.Workflow, error) {
	return note[[]*backend.Workflow](t, "Abandoned", shards, after, limit)
}

func (t spyTx) DueLeases(_ context.Context, shards []int, after backend.AbandonedPosition, limit int) ([]*backend.Workflow, backend.AbandonedPosition, error) {
	return note2[[]*backend.Workflow, backend.AbandonedPosition](t, "DueLeases", shards, after, limit)
}

func (t spyTx) DeadLetters(_ context.Context, tenant string, w backend.DeadWalk, limit int) ([]*backend.Event, int64, error) {
	return note2[[]*backend.Event, int64](t, "DeadLetters", tenant, w, limit)
}

func (t spyTx) CountDead(_ context.Context, tenant string, f backend.DeadFilter, most int) (map[rendezvous.DeadReason]int, bool, error) {
	return note2[map[rendezvous.DeadReason]int, bool](t, "CountDead", tenant, f, most)
}

func (t spyTx) EventsOfOp(_ context.Context, tenant, op string, purged bool, after int64, limit int) ([]*backend.Event, error) {
	return note[[]*backend.Event](t, "EventsOfOp", tenant, op, purged, after, limit)
}

func (t spyTx) OverdueEvents(_ context.Context, o backend.Overdue, limit int) (backend.OverdueEvents, error) {
	return note[backend.OverdueEvents](t, "OverdueEvents", o, limit)
}

func (t spyTx) Depths(_ context.Context, most int) (backend.Depths, error) {
	return note[backend.Depths](t, "Depths", most)
}

func (t spyTx) LockWorkflows(_ context.Context, keys []backend.WorkflowKey) (map[backend.WorkflowKey]*backend.Workflow, error) {
	return note[map[backend.WorkflowKey]*backend.Workflow](t, "LockWorkflows", keys)
}

func (t spyTx) NewEventNumbers(_ context.Context, n int) ([]int64, error) {
	return note[[]int64](t, "NewEventNumbers", n)
}

func (t spyTx) NewWaitNumbers(_ context.Context, n int) ([]int64, error) {
	return note[[]int64](t, "NewWaitNumbers", n)
}

func (t spyTx) NewTakes(_ context.Context, n int) ([]int64, error) {
	return note[[]int64](t, "NewTakes", n)
}

func (t spyTx) DueParked(_ context.Context, shards []int, limit int) ([]*backend.Wait, bool, error) {
	return note2[[]*backend.Wait, bool](t, "DueParked", shards, limit)
}

func (t spyTx) DueWoken(_ context.Context, shards []int, limit int) ([]*backend.Woken, bool, error) {
	return note2[[]*backend.Woken, bool](t, "DueWoken", shards, limit)
}

func (t spyTx) OldLetters(_ context.Context, before time.Time, after backend.LetterPosition, limit int) ([]*backend.Event, bool, error) {
	return note2[[]*backend.Event, bool](t, "OldLetters", before, after, limit)
}

func (t spyTx) Closed(_ context.Context, before time.Time, after backend.ClosedPosition, limit int) ([]*backend.Workflow, error) {
	return note[[]*backend.Workflow](t, "Closed", before, after, limit)
}

func (t spyTx) RemnantOf(_ context.Context, flow backend.WorkflowKey, run backend.RunKey) (*backend.Remnant, error) {
	return note[*backend.Remnant](t, "RemnantOf", flow, run)
}

func (t spyTx) Remnants(_ context.Context, limit int) (backend.Remnants, error) {
	return note[backend.Remnants](t, "Remnants", limit)
}

func (t spyTx) UnmetEvents(_ context.Context, before time.Time, after int64, limit int) ([]*backend.Event, int64, error) {
	return note2[[]*backend.Event, int64](t, "UnmetEvents", before, after, limit)
}

func (t spyTx) UnmetNews(_ context.Context, before time.Time, from backend.News, limit int) (backend.NewsPage, error) {
	return note[backend.NewsPage](t, "UnmetNews", before, from, limit)
}

func (t spyTx) LastNumbers(context.Context) (backend.Numbers, error) {
	return note[backend.Numbers](t, "LastNumbers")
}
