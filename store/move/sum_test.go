package move

import (
	"reflect"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous/store/backend"
)

// Every column counts: a row that differs in one has another sum, and whatever is no column has none.
func TestASumCoversEveryColumn(t *testing.T) {
	t.Parallel()
	for _, row := range []any{
		&backend.Workflow{}, &backend.Run{}, &backend.Record{}, &backend.Batch{}, &backend.Event{}, &backend.Wait{}, &backend.Woken{},
		&backend.Timer{}, &backend.ShardLease{},
	} {
		v := reflect.ValueOf(row).Elem()
		seen := map[string]string{string(encode(nil, v)): "nothing"}
		change(t, v, func(field string, summed bool) {
			got := string(encode(nil, v))
			if before, ok := seen[got]; ok == summed {
				t.Errorf("%s.%s changes its row's encoding: %v, want %v (%s)", v.Type(), field, !ok, summed, before)
			}
			if summed {
				seen[got] = field
			}
		})
	}
}

// change sets one field after the other, those within included, to something and back.
func change(t *testing.T, v reflect.Value, visit func(field string, summed bool)) {
	t.Helper()
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		summed := !unsummed[v.Type().Name()+"."+name]
		if f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[time.Time]() {
			change(t, f, visit)
			continue
		}
		switch {
		case f.Kind() == reflect.Interface:
			continue // an error
		case f.Type() == reflect.TypeFor[time.Time]():
			f.Set(reflect.ValueOf(time.UnixMicro(1)))
		case f.Kind() == reflect.String:
			f.SetString("x")
		case f.CanInt():
			f.SetInt(77)
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		case f.Kind() == reflect.Pointer:
			f.Set(reflect.New(f.Type().Elem()))
			visit(name, summed)
			change(t, f.Elem(), visit)
			f.SetZero()
			continue
		case f.Kind() == reflect.Slice && f.Type().Elem().Kind() == reflect.Uint8:
			f.Set(reflect.MakeSlice(f.Type(), 0, 0))
			visit(name+", empty", summed)
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case f.Kind() == reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			visit(name, summed)
			change(t, f.Index(0), visit)
			f.SetZero()
			continue
		}
		visit(name, summed)
		f.SetZero()
	}
}

func TestASumDoesNotDependOnOrder(t *testing.T) {
	t.Parallel()
	a, b := &backend.Run{ID: "a"}, &backend.Run{ID: "b"}
	var one, two, twice Tally
	one.add(page(a, b))
	two.add(page(b))
	two.add(page(a))
	twice.add(page(a, a))
	if one != two || one.Rows != 2 || twice.Sum == (Sum{}) || twice.Sum == one.Sum {
		t.Errorf("%v, %v, %v", one, two, twice)
	}
	var back Sum
	if text, err := one.Sum.MarshalText(); err != nil || back.UnmarshalText(text) != nil || back != one.Sum {
		t.Errorf("%s, %v, %v", text, err, back)
	}
}

func page(runs ...*backend.Run) *backend.Page {
	return &backend.Page{Changes: backend.Changes{NewRuns: runs}}
}
