package client

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/cloudevents"
	"github.com/rendezvous-events/rendezvous/messaging"
)

// Whatever event passes the check arrives through the stream door as it was: the same digest, run and expiry, in both modes.
func TestPublishedEventsArriveAsTheyWere(t *testing.T) {
	c, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text := rapid.StringMatching(`[ -~äß€𝄞]{1,24}`)
	rapid.Check(t, func(t *rapid.T) {
		e := rendezvous.Event{
			EventID: rendezvous.EventID{Source: text.Draw(t, "source"), ID: text.Draw(t, "id")}, Type: text.Draw(t, "type"),
			ContentType: rapid.SampledFrom([]string{"", "text/plain", "application/json", "application/cloudevents+json", "Application/CloudEvents-batch+json; x=y"}).Draw(t, "content type"),
			Payload:     rapid.SampledFrom([][]byte{nil, {}, []byte(`{"a":"<b>"}`), []byte(`{ "a": 1 }`), []byte("null"), {0xff, 0}}).Draw(t, "payload"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "keys") {
			e.Keys = append(e.Keys, rendezvous.Key{Namespace: rapid.SampledFrom([]string{"subject", "order", "a=b", "%"}).Draw(t, "namespace"), Value: text.Draw(t, "value")})
		}
		if rapid.Bool().Draw(t, "expires") {
			e.ExpiresAt = time.Date(2026, 5, 6, 7, 8, 9, rapid.IntRange(0, 999_999).Draw(t, "µs")*1000, time.UTC)
		}
		e, err := e.Check(0)
		if err != nil || e.CheckOutside() != nil {
			return
		}
		var opts []PublishOption
		if rapid.Bool().Draw(t, "structured") {
			opts = append(opts, Structured())
		}
		run := rapid.SampledFrom([]string{"", "run/1 ü"}).Draw(t, "run")
		if run != "" {
			opts = append(opts, ForRun(run))
		}
		msg, err := c.message(context.Background(), e, opts)
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(msg.Subject, " *>\r\n\t") || strings.Contains(msg.Subject, "..") || strings.HasSuffix(msg.Subject, ".") {
			t.Fatalf("subject %q", msg.Subject)
		}
		for _, values := range msg.Header {
			if v := strings.Join(values, ""); strings.ContainsAny(v, "\r\n") || strings.TrimSpace(v) != v {
				t.Fatalf("header %q", v)
			}
		}
		got, err := cloudevents.Decode(msg.Header, msg.Data)
		if err != nil || len(got) != 1 || got[0].Err != nil {
			t.Fatalf("decode: %v %+v", err, got)
		}
		if got[0].Run != run || got[0].Event.Digest() != e.Digest() {
			t.Fatalf("arrived (run %q):\n%s", got[0].Run, cmp.Diff(e, got[0].Event, cmpopts.EquateEmpty()))
		}
		if !got[0].Event.ExpiresAt.Equal(e.ExpiresAt) || got[0].Event.EventID != e.EventID || !slices.Equal(got[0].Event.Keys, e.Keys) {
			t.Fatalf("arrived:\n%s", cmp.Diff(e, got[0].Event))
		}
	})
}

func TestPublishRefusesWhatThePlaneWould(t *testing.T) {
	c, err := New(Options{NATSURL: "nats://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	good, err := NewEvent("urn:test", "paid", Payload{})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*rendezvous.Event){
		"no id":            func(e *rendezvous.Event) { e.ID = "" },
		"our own type":     func(e *rendezvous.Event) { e.Type = "rendezvous.timer" },
		"our own source":   func(e *rendezvous.Event) { e.Source = "rendezvous:push" },
		"control in a key": func(e *rendezvous.Event) { e.Keys = []rendezvous.Key{{Namespace: "a", Value: "\x00"}} },
	} {
		e := good
		change(&e)
		if err := c.Publish(t.Context(), e); !errors.Is(err, rendezvous.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	large := good
	large.Payload = make([]byte, rendezvous.MaxPayload+1)
	if err := c.Publish(t.Context(), large); !errors.Is(err, rendezvous.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
}

func TestSubjectTailIsAlwaysASubject(t *testing.T) {
	for in, want := range map[string]string{
		"payment.received": "payment.received", "a b": "a_b", "*": "_", "a.>": "a._", ".a..b.": "_.a._.b._", "ä": "ä",
	} {
		if got := subjectTail(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
		if _, err := messaging.NamesOf("rdv").TenantOf("rdv.acme.in." + subjectTail(in)); err != nil {
			t.Errorf("%q: %v", in, err)
		}
	}
}
