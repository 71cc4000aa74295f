package project

import (
	"testing"

	"github.com/rendezvous-events/rendezvous"
)

// A string that stands in JSON as it is has the bytes that an encoder would give it.
func TestPlainStringsAreEncodedAlike(t *testing.T) {
	for c := range rune(0x3000) {
		text := "a" + string(c) + "<&>/b"
		want, err := rendezvous.EncodeJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := quoted(nil, text); string(got) != string(want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
