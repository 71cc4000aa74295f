package difftest

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Step is one call, as data: drawn, printed, pasted.
type Step interface {
	// ask makes the call and answers what the caller would see.
	ask(s *side) (any, error)
}

// Long is an id over every limit.
const Long = "=> over every limit <="

// long is what stands for Long in a call.
var long = strings.Repeat("x", 70_000)

// Go prints a step as it stands in a test.
func Go(s Step) string {
	var b strings.Builder
	write(&b, reflect.ValueOf(s), true)
	return b.String()
}

// script is steps as the arguments of Replay.
func script(steps []Step) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&b, "\t\t%s,\n", Go(s))
	}
	return b.String()
}

func write(b *strings.Builder, v reflect.Value, named bool) {
	switch v.Kind() {
	case reflect.Struct:
		writeStruct(b, v, named)
	case reflect.Slice:
		b.WriteString("[]" + v.Type().Elem().Name() + "{")
		for i := range v.Len() {
			comma(b, i)
			write(b, v.Index(i), false)
		}
		b.WriteString("}")
	case reflect.String:
		writeText(b, v.String())
	case reflect.Int64:
		if d, ok := v.Interface().(time.Duration); ok {
			b.WriteString(duration(d))
			return
		}
		b.WriteString(strconv.FormatInt(v.Int(), 10))
	default:
		fmt.Fprint(b, v.Interface())
	}
}

func writeStruct(b *strings.Builder, v reflect.Value, named bool) {
	if named {
		b.WriteString(v.Type().Name())
	}
	b.WriteString("{")
	n := 0
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			continue
		}
		comma(b, n)
		n++
		b.WriteString(v.Type().Field(i).Name + ": ")
		write(b, v.Field(i), true)
	}
	b.WriteString("}")
}

func writeText(b *strings.Builder, text string) {
	switch {
	case text == Long:
		b.WriteString("Long")
	case strings.Contains(text, `"`) && strconv.CanBackquote(text):
		b.WriteString("`" + text + "`")
	default:
		b.WriteString(strconv.Quote(text))
	}
}

func comma(b *strings.Builder, n int) {
	if n > 0 {
		b.WriteString(", ")
	}
}

func duration(d time.Duration) string {
	for _, u := range [...]struct {
		unit time.Duration
		name string
	}{{time.Hour, "time.Hour"}, {time.Second, "time.Second"}, {time.Microsecond, "time.Microsecond"}} {
		if d%u.unit == 0 {
			return fmt.Sprintf("%d * %s", d/u.unit, u.name)
		}
	}
	return strconv.FormatInt(int64(d), 10)
}

// stretch answers a step in which Long is as long as it says.
func stretch(s Step) Step {
	if !strings.Contains(Go(s), "Long") {
		return s
	}
	v := reflect.New(reflect.TypeOf(s)).Elem()
	v.Set(copyOf(reflect.ValueOf(s)))
	eachText(v, func(text reflect.Value) {
		if text.String() == Long {
			text.SetString(long)
		}
	})
	return v.Interface().(Step)
}

// copyOf is a copy that shares no slice with v.
func copyOf(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			c.Field(i).Set(copyOf(v.Field(i)))
		}
	case reflect.Slice:
		if v.IsNil() {
			break
		}
		c.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			c.Index(i).Set(copyOf(v.Index(i)))
		}
	}
	return c
}

// eachText visits every text of a step that can be set.
func eachText(v reflect.Value, visit func(reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			eachText(v.Field(i), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachText(v.Index(i), visit)
		}
	case reflect.String:
		visit(v)
	}
}
