package engine

import (
	"encoding/base64"
	"errors"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/store"
)

// TestACursorGoesOnWhereItBegan proves that a position comes back as it was and that a cursor serves only the list it came from (EV-64's pages, SW-10).
func TestACursorGoesOnWhereItBegan(t *testing.T) {
	filter := store.WaitFilter{RunID: "r", Key: &rendezvous.Key{Namespace: "order", Value: "7\u00e4"}}
	was := parkedPosition{Quarantined: true, At: time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC), Number: 1<<62 + 1}
	cursor := encodeCursor("list", "acme", filter, was)
	var got parkedPosition
	if err := decodeCursor(cursor, "list", "acme", filter, &got); err != nil || got != was {
		t.Fatalf("came back as %+v, %v; want %+v", got, err, was)
	}
	for what, err := range map[string]error{
		"another verb":   decodeCursor(cursor, "other", "acme", filter, &got),
		"another tenant": decodeCursor(cursor, "list", "acme2", filter, &got),
		"another filter": decodeCursor(cursor, "list", "acme", store.WaitFilter{RunID: "r"}, &got),
	} {
		if !errors.Is(err, rendezvous.ErrInvalid) {
			t.Errorf("a cursor of %s: %v, want invalid", what, err)
		}
	}
	got = parkedPosition{}
	if err := decodeCursor("", "list", "acme", filter, &got); err != nil || got != (parkedPosition{}) {
		t.Errorf("no cursor: %+v, %v; want the beginning", got, err)
	}
}

// TestADamagedCursorIsRefused cuts a cursor short everywhere and changes each byte of what is not its position.
func TestADamagedCursorIsRefused(t *testing.T) {
	cursor := encodeCursor("list", "acme", nil, numberPosition{Number: 42})
	refused := func(what, damaged string) {
		t.Helper()
		var p numberPosition
		if err := decodeCursor(damaged, "list", "acme", nil, &p); !errors.Is(err, rendezvous.ErrInvalid) {
			t.Errorf("%s (%q): %v, want invalid", what, damaged, err)
		}
	}
	for n := 1; n < len(cursor); n++ {
		refused("cut short", cursor[:n])
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1 + cursorFingerprint {
		damaged := append([]byte(nil), raw...)
		damaged[i] ^= 0x10
		refused("a changed byte", base64.RawURLEncoding.EncodeToString(damaged))
	}
	refused("more behind it", base64.RawURLEncoding.EncodeToString(append(raw, "{}"...)))
	refused("no base64", cursor+"=")
	refused("padding bits", cursor[:len(cursor)-1]+"_")
}

// TestAForgedPositionIsRefused keeps a cursor's head and puts other positions behind it: only what encodeCursor writes of a row goes to the storage (HI-37).
func TestAForgedPositionIsRefused(t *testing.T) {
	decode := func(text string, p position) error {
		raw := append([]byte{cursorVersion}, fingerprint("list", "acme", nil)...)
		return decodeCursor(base64.RawURLEncoding.EncodeToString(append(raw, text...)), "list", "acme", nil, p)
	}
	for _, c := range []struct {
		new       func() position
		good, bad []string
	}{
		{
			func() position { return &numberPosition{} },
			[]string{
				`{"number":42}`,
			},
			[]string{
				`{"number":0}`,
				`{"number":-1}`,
				`{"number":1e3}`,
				`{"Number":42}`,
				`{"number":42,"more":1}`,
				`{"number":42,"number":42}`,
				` {"number":42}`,
			},
		},
		{
			func() position { return &parkedPosition{} },
			[]string{
				`{"quarantined":true,"at":"2026-01-02T03:04:05.678901Z","number":7}`,
				`{"at":"0001-01-01T00:00:00Z","number":7}`,
			},
			[]string{
				`{"quarantined":false,"at":"2026-01-02T03:04:05Z","number":7}`,
				`{"at":"2026-01-02T03:04:05Z","number":0}`,
				`{"at":"0000-01-01T00:00:00Z","number":7}`,
				`{"at":"2026-01-02T03:04:05.1234567Z","number":7}`,
			},
		},
		{
			func() position { return &workflowPosition{} },
			[]string{
				`{"s":"2026-01-02T03:04:05Z","i":"a\u003cb"}`,
				`{"s":"9999-12-31T23:59:59.999999Z","i":"😀"}`,
			},
			[]string{
				`{"s":"2026-01-02T03:04:05Z","i":"a\u0000b"}`,
				`{"s":"2026-01-02T03:04:05Z","i":""}`,
				`{"s":"2026-01-02T03:04:05Z","i":"\ud800"}`,
				`{"s":"0000-01-01T00:00:00Z","i":"x"}`,
				`{"s":"9999-12-31T23:59:59-23:00","i":"x"}`,
				`{"s":"9999-12-31T23:59:59+24:00","i":"x"}`,
				`{"s":"2026-01-02T03:04:05Z"}`,
				`{"s":"2026-01-02T03:04:05Z","i":"x"}}}`,
			},
		},
		{
			func() position { return &abandonedPosition{} },
			[]string{
				`{"e":"2026-01-02T03:04:05Z","t":"acme","w":"w"}`,
			},
			[]string{
				`{"e":"2026-01-02T03:04:05Z","t":"a.b","w":"w"}`,
				`{"e":"2026-01-02T03:04:05Z","t":"acme","w":"\u0000"}`,
				`{"e":"0000-01-02T03:04:05Z","t":"acme","w":"w"}`,
			},
		},
	} {
		for _, text := range c.good {
			if err := decode(text, c.new()); err != nil {
				t.Errorf("%T of %s: %v", c.new(), text, err)
			}
		}
		for _, text := range append(c.bad, `{}`, `null`, `[]`, `0`, `""`) {
			if err := decode(text, c.new()); !errors.Is(err, rendezvous.ErrInvalid) {
				t.Errorf("%T of %s: %v, want invalid", c.new(), text, err)
			}
		}
	}
}

func FuzzCursor(f *testing.F) {
	f.Add(encodeCursor("list", "acme", nil, numberPosition{Number: 42}))
	f.Add("AQ")
	f.Fuzz(func(t *testing.T, cursor string) {
		var p numberPosition
		if err := decodeCursor(cursor, "list", "acme", nil, &p); err != nil && !errors.Is(err, rendezvous.ErrInvalid) {
			t.Fatalf("%q: %v, want invalid or nothing", cursor, err)
		}
	})
}
