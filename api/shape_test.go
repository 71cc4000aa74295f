package api_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// Holes of an expected shape.
var holes = map[string]*regexp.Regexp{
	"<time>": regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`), // RFC 3339 with microseconds, UTC
	"<uuid>": regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$`),
	"<text>": regexp.MustCompile(`.`),
}

// match compares a JSON text with an expected one: the same members, no more and no fewer, but for the holes above, "<number>", "<any>", and members whose
// name ends in "?", which may be missing.
func match(t *testing.T, want string, got []byte) {
	t.Helper()
	var w, g any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("the expected shape is not JSON: %v\n%s", err, want)
	}
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatalf("not JSON: %v\n%.300s", err, got)
	}
	if bad := differs("", w, g); bad != "" {
		t.Errorf("%s\n got: %.2000s\nwant: %s", bad, got, want)
	}
}

func differs(at string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		return differsObject(at, w, got)
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s: is %v, not a list of %d", at, got, len(w))
		}
		for i := range w {
			if bad := differs(fmt.Sprintf("%s[%d]", at, i), w[i], g[i]); bad != "" {
				return bad
			}
		}
		return ""
	case string:
		return differsText(at, w, got)
	}
	if !reflect.DeepEqual(want, got) {
		return fmt.Sprintf("%s: is %v, not %v", at, got, want)
	}
	return ""
}

func differsText(at, want string, got any) string {
	text, isText := got.(string)
	_, isNumber := got.(float64)
	hole := holes[want]
	switch {
	case want == "<any>", want == "<number>" && isNumber, hole != nil && isText && hole.MatchString(text), hole == nil && isText && text == want:
		return ""
	}
	return fmt.Sprintf("%s: is %v, not %s", at, got, want)
}

func differsObject(at string, want map[string]any, got any) string {
	g, ok := got.(map[string]any)
	if !ok {
		return fmt.Sprintf("%s: is %v, not an object", at, got)
	}
	left := make(map[string]bool, len(g))
	for name := range g {
		left[name] = true
	}
	for name, w := range want {
		name, optional := strings.CutSuffix(name, "?")
		delete(left, name)
		v, there := g[name]
		if !there && optional {
			continue
		}
		if !there {
			return fmt.Sprintf("%s.%s: is missing", at, name)
		}
		if bad := differs(at+"."+name, w, v); bad != "" {
			return bad
		}
	}
	for name := range left {
		return fmt.Sprintf("%s.%s: is not expected", at, name)
	}
	return ""
}
