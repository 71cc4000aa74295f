package cloudevents

import (
	"strings"
	"testing"

	"github.com/rendezvous-events/rendezvous"
)

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// EV-10: what is not the same text inside other JSON, or would make a request nest too deep, is no data.
func TestWhatTravelsVerbatim(t *testing.T) {
	for text, want := range map[string]bool{
		`{"a":"<b>&\u2028"}`: true,
		"[\"\u2028\"]":       true,
		`{"a": 1}`:           false, // the blank would go
		`{`:                  false,
		``:                   false,
		"\"\xff\"":           false,
		`"[[\"["`:            true,
		nested(maxVerbatim):  true,
		nested(1000):         false,
		nested(10_001):       false,
	} {
		if got := Verbatim([]byte(text)); got != want {
			t.Errorf("%.40q: %v", text, got)
		}
	}
}

func TestPayloadsThatLookLikeHTMLTravelAsTheyAre(t *testing.T) {
	e := rendezvous.Event{EventID: rendezvous.EventID{Source: "urn:s", ID: "1"}, Type: "t", ContentType: "application/json", Payload: []byte(`{"a":"<b>&"}`)}
	raw, err := Encode(e, "")
	if err != nil || !strings.Contains(string(raw), `"data":{"a":"<b>&"}`) {
		t.Fatalf("%s, %v", raw, err)
	}
	e.Payload = []byte(nested(1001))
	if raw, err = Encode(e, ""); err != nil || !strings.Contains(string(raw), `"data_base64":`) {
		t.Fatalf("%.200s, %v", raw, err)
	}
	if m := DecodeObject(raw); m.Err != nil || string(m.Event.Payload) != nested(1001) {
		t.Fatalf("read back with %v", m.Err)
	}
}
