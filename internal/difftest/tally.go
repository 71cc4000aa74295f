package difftest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/rendezvous-events/rendezvous"
)

// Tally counts what steps came to, so that one can see what random sequences reach and what they never do.
type Tally map[string]int

// count adds an answer: the verb with its error's code, or with the outcomes in it.
func (t Tally) count(s Step, got answer) {
	verb := reflect.TypeOf(s).Name()
	if got.err != nil {
		t[verb+" "+string(rendezvous.CodeOf(got.err))]++
		return
	}
	seen := map[string]bool{}
	outcomes(reflect.ValueOf(got.value), seen, 4)
	for o := range seen {
		t[verb+" = "+o]++
	}
	if len(seen) == 0 {
		t[verb+" ok"]++
	}
}

// outcomes collects every field called Outcome, and what items failed with.
func outcomes(v reflect.Value, seen map[string]bool, depth int) {
	if !v.IsValid() || depth == 0 {
		return
	}
	if err, ok := v.Interface().(error); ok && v.Kind() != reflect.Struct && err != nil {
		seen["item "+string(rendezvous.CodeOf(err))] = true
		return
	}
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		outcomes(v.Elem(), seen, depth)
	case reflect.Slice:
		for i := range v.Len() {
			outcomes(v.Index(i), seen, depth)
		}
	case reflect.Struct:
		if !strings.Contains(v.Type().PkgPath(), "store") {
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).Name == "Outcome" {
				seen[fmt.Sprint(v.Field(i).Interface())] = true
				continue
			}
			outcomes(v.Field(i), seen, depth-1)
		}
	}
}

// String is the counts by verb.
func (t Tally) String() string {
	var lines []string
	for what, n := range t {
		lines = append(lines, fmt.Sprintf("%-50s %d", what, n))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
