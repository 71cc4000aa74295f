package cloudevents

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rendezvous-events/rendezvous"
)

const minimal = `"specversion":"1.0","id":"1","source":"urn:s","type":"t"`

func structured(body string) (map[string][]string, []byte) {
	return map[string][]string{"Content-Type": {"Application/CloudEvents+JSON; charset=utf-8"}}, []byte(body)
}

func decodeOne(t *testing.T, header map[string][]string, body []byte) Message {
	t.Helper()
	all, err := Decode(header, body)
	if err != nil || len(all) != 1 {
		t.Fatalf("Decode: %d events, %v", len(all), err)
	}
	return all[0]
}

func TestAllAttributesAreRead(t *testing.T) {
	m := decodeOne(t, map[string][]string{"content-type": {Structured}, "Traceparent": {"00-headers"}}, []byte(`{`+minimal+
		`,"subject":"4711","time":"2026-01-02T03:04:05.678Z","rdvkeys":"order=4711,customer=c%2C9%3D%25,order=4711","expirytime":"2026-02-03T04:05:06.0000001Z",
		"rdvrun":"r-1","datacontenttype":"application/json","dataschema":"urn:x","traceparent":"00-extension","other":true,"number":7,"absent":null,"data":{"a": 1}}`))
	if m.Err != nil {
		t.Fatal(m.Err)
	}
	want := rendezvous.Event{
		EventID: rendezvous.EventID{Source: "urn:s", ID: "1"}, Type: "t", ContentType: "application/json", Payload: []byte(`{"a": 1}`),
		Keys:      []rendezvous.Key{{Namespace: "subject", Value: "4711"}, {Namespace: "order", Value: "4711"}, {Namespace: "customer", Value: "c,9=%"}},
		ExpiresAt: time.Date(2026, 2, 3, 4, 5, 6, 1000, time.UTC), // due-like: up to the microsecond
		Trace:     rendezvous.Trace{Parent: "00-headers"},         // headers win
	}
	if diff := cmp.Diff(want, m.Event); diff != "" || m.Run != "r-1" {
		t.Errorf("run %q, event differs (-want +got):\n%s", m.Run, diff)
	}
}

// EV-10: none, empty, null, arrays and bytes with NUL are different payloads, kept bit for bit.
func TestPayloadsAreKeptApart(t *testing.T) {
	for name, c := range map[string]struct {
		members string
		want    []byte
	}{
		"none":                 {``, nil},
		"null":                 {`,"data":null`, []byte("null")},
		"array, verbatim":      {`,"data":[1, 2.50]`, []byte("[1, 2.50]")},
		"empty bytes":          {`,"data_base64":""`, []byte{}},
		"bytes with NUL":       {`,"data_base64":"AAEA"`, []byte{0, 1, 0}},
		"text":                 {`,"datacontenttype":"text/plain","data":"a\u0000b"`, []byte("a\x00b")},
		"empty text":           {`,"datacontenttype":"text/plain","data":""`, []byte{}},
		"string in JSON":       {`,"datacontenttype":"application/x+json; v=1","data":"s"`, []byte(`"s"`)},
		"object of other type": {`,"datacontenttype":"text/xml","data":{"a":1}`, []byte(`{"a":1}`)},
	} {
		t.Run(name, func(t *testing.T) {
			h, b := structured(`{` + minimal + c.members + `}`)
			m := decodeOne(t, h, b)
			if m.Err != nil || !bytes.Equal(m.Event.Payload, c.want) || (m.Event.Payload == nil) != (c.want == nil) {
				t.Errorf("payload %q (nil %v), %v; want %q", m.Event.Payload, m.Event.Payload == nil, m.Err, c.want)
			}
		})
	}
}

func TestWhatTheContractRefuses(t *testing.T) {
	long := strings.Repeat("x", 513)
	for name, c := range map[string]struct {
		body, field string
		code        rendezvous.Code
	}{
		"other version":          {`{"specversion":"0.3","id":"1","source":"s","type":"t"}`, "specversion", rendezvous.CodeInvalid},
		"version as a number":    {`{"specversion":1.0,"id":"1","source":"s","type":"t"}`, "specversion", rendezvous.CodeInvalid},
		"no id":                  {`{"specversion":"1.0","source":"s","type":"t"}`, "id", rendezvous.CodeInvalid},
		"empty source":           {`{"specversion":"1.0","id":"1","source":"","type":"t"}`, "source", rendezvous.CodeInvalid},
		"numeric id":             {`{"specversion":"1.0","id":1,"source":"s","type":"t"}`, "id", rendezvous.CodeInvalid},
		"long type":              {`{"specversion":"1.0","id":"1","source":"s","type":"` + long + `"}`, "type", rendezvous.CodeTooLarge},
		"control character":      {`{"specversion":"1.0","id":"a\u0000b","source":"s","type":"t"}`, "id", rendezvous.CodeInvalid},
		"lone surrogate":         {`{"specversion":"1.0","id":"\ud800","source":"s","type":"t"}`, "id", rendezvous.CodeInvalid},
		"lone low surrogate":     {`{"specversion":"1.0","id":"\ud83d\ude00\udc00","source":"s","type":"t"}`, "id", rendezvous.CodeInvalid},
		"invalid UTF-8":          {"{\"specversion\":\"1.0\",\"id\":\"\xff\",\"source\":\"s\",\"type\":\"t\"}", "event", rendezvous.CodeInvalid},
		"a member twice":         {`{` + minimal + `,"id":"2"}`, "id", rendezvous.CodeInvalid},
		"a member twice, hidden": {`{` + minimal + `,"i\u0064":"2"}`, "id", rendezvous.CodeInvalid},
		"bad extension name":     {`{` + minimal + `,"My_Ext":"x"}`, "My_Ext", rendezvous.CodeInvalid},
		"object extension":       {`{` + minimal + `,"ext":{"a":1}}`, "ext", rendezvous.CodeInvalid},
		"bad time":               {`{` + minimal + `,"time":"yesterday"}`, "time", rendezvous.CodeInvalid},
		"bad expiry":             {`{` + minimal + `,"expirytime":"2026-13-01T00:00:00Z"}`, "expirytime", rendezvous.CodeInvalid},
		"expiry with a comma":    {`{` + minimal + `,"expirytime":"2026-12-01T00:00:00,5Z"}`, "expirytime", rendezvous.CodeInvalid},
		"expiry with one digit":  {`{` + minimal + `,"expirytime":"2026-12-01T1:00:00Z"}`, "expirytime", rendezvous.CodeInvalid},
		"time before year 1":     {`{` + minimal + `,"time":"0001-01-01T00:00:00+01:00"}`, "time", rendezvous.CodeInvalid},
		"keys without =":         {`{` + minimal + `,"rdvkeys":"order"}`, "rdvkeys", rendezvous.CodeInvalid},
		"keys with two =":        {`{` + minimal + `,"rdvkeys":"a=b=c"}`, "rdvkeys", rendezvous.CodeInvalid},
		"empty part":             {`{` + minimal + `,"rdvkeys":"=v"}`, "keys[0].namespace", rendezvous.CodeInvalid},
		"empty keys":             {`{` + minimal + `,"rdvkeys":""}`, "rdvkeys", rendezvous.CodeInvalid},
		"bad percent":            {`{` + minimal + `,"rdvkeys":"a=%zz"}`, "rdvkeys", rendezvous.CodeInvalid},
		"17 keys":                {`{` + minimal + `,"rdvkeys":"a=1,a=2,a=3,a=4,a=5,a=6,a=7,a=8,a=9,a=10,a=11,a=12,a=13,a=14,a=15,a=16,a=17"}`, "keys", rendezvous.CodeTooLarge},
		"a million keys":         {`{` + minimal + `,"rdvkeys":"` + strings.Repeat("a=1,", 1_000_000) + `a=1"}`, "rdvkeys", rendezvous.CodeTooLarge},
		"long subject":           {`{` + minimal + `,"subject":"` + strings.Repeat("x", 257) + `"}`, "keys[0].value", rendezvous.CodeTooLarge},
		"both datas":             {`{` + minimal + `,"data":1,"data_base64":"AA=="}`, "data_base64", rendezvous.CodeInvalid},
		"bad base64":             {`{` + minimal + `,"data_base64":"!"}`, "data_base64", rendezvous.CodeInvalid},
		"not an object":          {`[]`, "event", rendezvous.CodeInvalid},
		"cut short":              {`{` + minimal, "event", rendezvous.CodeInvalid},
		"something behind":       {`{` + minimal + `} {}`, "event", rendezvous.CodeInvalid},
		"deep nesting":           {`{` + minimal + `,"data":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, "event", rendezvous.CodeInvalid},
		"empty run":              {`{` + minimal + `,"rdvrun":""}`, "rdvrun", rendezvous.CodeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			h, b := structured(c.body)
			m := decodeOne(t, h, b)
			var e *rendezvous.Error
			if !errors.As(m.Err, &e) || e.Code != c.code || e.Details["field"] != c.field {
				t.Errorf("got %v with field %v; want %s of field %s", m.Err, details(e), c.code, c.field)
			}
		})
	}
}

func details(e *rendezvous.Error) any {
	if e == nil {
		return nil
	}
	return e.Details["field"]
}

func TestOneBadEventOfABatchRefusesItselfAlone(t *testing.T) {
	all, err := Decode(map[string][]string{"content-type": {Batch}}, []byte(`[{`+minimal+`},{"id":7},{`+minimal+`,"subject":"s"}]`))
	if err != nil || len(all) != 3 || all[0].Err != nil || all[1].Err == nil || all[2].Err != nil {
		t.Fatalf("%d events, %v: %+v", len(all), err, all)
	}
	if string(all[1].Raw) != `{"id":7}` {
		t.Errorf("the refused event is kept as %q", all[1].Raw)
	}
	for _, bad := range []string{`{}`, `[{},`, `[1] 2`, "[\"\xff\"]", `[` + strings.Repeat("1,", 500) + `1]`} {
		if _, err := Decode(map[string][]string{"content-type": {Batch}}, []byte(bad)); err == nil {
			t.Errorf("the batch %.20q… is taken", bad)
		}
	}
}

func TestBinaryMode(t *testing.T) {
	header := map[string][]string{
		"Ce-Specversion": {"1.0"}, "ce-id": {"a%20b%C3%A9"}, "CE-Source": {"urn:s"}, "ce-type": {"t"}, "ce-rdvkeys": {"order=1%252C2"}, "content-type": {"text/plain"}, "X-Other": {"x"},
	}
	m := decodeOne(t, header, []byte("a\x00b"))
	if m.Err != nil || m.Event.ID != "a bé" || string(m.Event.Payload) != "a\x00b" || m.Event.ContentType != "text/plain" || m.Event.Keys[0].Value != "1,2" {
		t.Errorf("%+v, %v", m.Event, m.Err)
	}
	for name, extra := range map[string][]string{"ce-id ": {"x"}, "ce-type": {"t", "u"}, "ce-data": {"x"}, "ce-bad": {"%zz"}, "ce-nul": {"%00"}, "ce-utf": {"%ff"}} {
		h := map[string][]string{}
		for k, v := range header {
			h[k] = v
		}
		h[name] = extra
		if m := decodeOne(t, h, nil); m.Err == nil {
			t.Errorf("header %q: %q is taken", name, extra)
		}
	}
}

// Who sends a whole event under a content type that does not say so is told what is missing, not that a version he wrote is wrong.
func TestAWholeEventWithoutItsContentTypeIsToldWhich(t *testing.T) {
	for _, contentType := range [...]string{"application/json", ""} {
		h, b := structured(`{` + minimal + `}`)
		for name := range h {
			h[name] = []string{contentType}
		}
		m := decodeOne(t, h, b)
		if m.Err == nil || !strings.Contains(m.Err.Error(), "no ce-specversion header; to send a whole CloudEvent in the body use content-type application/cloudevents+json") {
			t.Errorf("content type %q: %v", contentType, m.Err)
		}
	}
}

func TestStructuredWinsOverStrayHeaders(t *testing.T) {
	h, b := structured(`{` + minimal + `}`)
	h["ce-id"] = []string{"stray"}
	if m := decodeOne(t, h, b); m.Err != nil || m.Event.ID != "1" {
		t.Errorf("id %q, %v", m.Event.ID, m.Err)
	}
}

// FuzzDecode: nothing that is sent makes the decoder panic, and what it takes survives encoding.
func FuzzDecode(f *testing.F) {
	f.Add("application/cloudevents+json", []byte(`{`+minimal+`,"subject":"s","rdvkeys":"a=b","data":{"x":1}}`))
	f.Add("application/cloudevents+json", []byte(`{`+minimal+`,"datacontenttype":"text/plain","data":"\ud83d\ude00"}`))
	f.Add("application/cloudevents-batch+json", []byte(`[{`+minimal+`,"data_base64":"AAEC"},null,{}]`))
	f.Add("text/plain", []byte("x"))
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		all, err := Decode(map[string][]string{"content-type": {contentType}, "ce-id": {"1"}, "ce-source": {"s"}, "ce-type": {"t"}, "ce-specversion": {"1.0"}}, body)
		if err != nil {
			if rendezvous.CodeOf(err) == "" {
				t.Fatalf("foreign error %v", err)
			}
			return
		}
		for _, m := range all {
			if m.Err != nil {
				if rendezvous.CodeOf(m.Err) == "" {
					t.Fatalf("foreign error %v", m.Err)
				}
				continue
			}
			checked, err := m.Event.Check(0)
			if err != nil {
				continue // over a limit that the store judges
			}
			raw, err := Encode(checked, m.Run)
			if err != nil {
				t.Fatal(err)
			}
			again := DecodeObject(raw)
			if again.Err != nil || again.Event.Digest() != checked.Digest() || again.Run != m.Run {
				t.Fatalf("%s reads back as another event: %v", raw, again.Err)
			}
		}
	})
}
