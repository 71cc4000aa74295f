package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/wire"
)

func TestATimeOfARequestIsStrictlyRFC3339(t *testing.T) {
	for text, want := range map[string]string{
		`"2026-12-01t12:00:00.5z"`: `"2026-12-01T12:00:00.500000Z"`,
		`"0001-01-01T00:00:00Z"`:   `"0001-01-01T00:00:00.000001Z"`, // not left out
		`"2026-12-01T12:00:00,5Z"`: "",
		`"2026-12-01T1:00:00Z"`:    "",
		`1764590400`:               "",
	} {
		var got wire.Time
		if err := json.Unmarshal([]byte(text), &got); (err == nil) != (want != "") || err != nil && rendezvous.CodeOf(err) != rendezvous.CodeInvalid {
			t.Errorf("%s: %v; readable should be %v", text, err, want != "")
			continue
		}
		if again, _ := json.Marshal(got); want != "" && string(again) != want {
			t.Errorf("%s is written as %s, want %s", text, again, want)
		}
	}
}
