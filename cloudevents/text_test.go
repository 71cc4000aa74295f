package cloudevents

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/rendezvous-events/rendezvous"
)

// A name goes into errors, REJECTED and logs, so a long one is refused and cut, wherever it comes from.
func TestLongNamesAreRefusedAndNotRepeated(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	quoted, err := json.Marshal(long)
	if err != nil {
		t.Fatal(err)
	}
	header, body := structured(`{` + minimal + `,` + string(quoted) + `:"v"}`)
	twice, doubled := structured(`{` + minimal + `,` + string(quoted) + `:1,` + string(quoted) + `:2}`)
	binary := map[string][]string{"ce-specversion": {"1.0"}, "ce-id": {"1"}, "ce-source": {"s"}, "ce-type": {"t"}, "ce-" + long: {"v"}}
	for name, m := range map[string]Message{
		"structured": decodeOne(t, header, body), "given twice": decodeOne(t, twice, doubled), "binary": decodeOne(t, binary, nil),
	} {
		var e *rendezvous.Error
		if !errors.As(m.Err, &e) || e.Code != rendezvous.CodeInvalid {
			t.Errorf("%s: %.100v", name, m.Err)
			continue
		}
		if field, _ := e.Details["field"].(string); len(field) > 80 || len(e.Message) > 200 || !strings.Contains(field, "xxxx") {
			t.Errorf("%s: field of %d bytes, message of %d", name, len(field), len(e.Message))
		}
	}
	if got := ShownName(strings.Repeat("é", 40)); got != strings.Repeat("é", 30)+"…" {
		t.Errorf("cut to %q", got)
	}
	if got := ShownName(strings.Repeat("x", maxName)); len(got) != maxName {
		t.Errorf("cut to %q", got)
	}
}

// The same event is refused for the same fault every time.
func TestOfSeveralFaultsTheFirstByNameIsTold(t *testing.T) {
	header, body := structured(`{` + minimal + `,"zz":{},"mm":{},"aa":{},"kk":[],"bb":{}}`)
	control, text := structured(`{` + minimal + `,"zz":"\u0001","mm":"\u0001","aa":"\u0001","kk":"\u0001","bb":"\u0001"}`)
	binary := map[string][]string{
		"ce-specversion": {"1.0"}, "ce-id": {"1"}, "ce-source": {"s"}, "ce-type": {"t"}, "ce-zz": {"%"}, "ce-mm": {"%"}, "ce-aa": {"%"}, "ce-kk": {"%"}, "ce-bb": {"%"},
	}
	for range 50 {
		for _, c := range []struct {
			header map[string][]string
			body   []byte
			field  string
		}{{header, body, "aa"}, {control, text, "aa"}, {binary, nil, "ce-aa"}} {
			var e *rendezvous.Error
			if m := decodeOne(t, c.header, c.body); !errors.As(m.Err, &e) || e.Details["field"] != c.field {
				t.Fatalf("got %v, want field %s", m.Err, c.field)
			}
		}
		both := map[string][]string{"traceparent": {"b"}, "Traceparent": {"a"}, "TRACEPARENT": {}}
		if got := first(both, "traceparent"); got != "a" {
			t.Fatalf("the header is %q", got)
		}
	}
}
