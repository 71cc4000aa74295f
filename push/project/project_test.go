package project_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/push/project"
)

var recordedAt = time.Date(2026, 11, 29, 16, 0, 0, 1000, time.UTC)

func record(kind rendezvous.Kind, data string) rendezvous.Record {
	return rendezvous.Record{Seq: 7, RunID: "run-1", Kind: kind, V: 1, Data: json.RawMessage(data), RecordedAt: recordedAt}
}

func options(projection rendezvous.Projection, include bool) project.Options {
	return project.Options{
		Tenant: "acme", Workflow: "order-4711", Projection: projection, Events: []string{"*"}, IncludePayload: include, Source: "urn:rendezvous:test",
	}
}

func messages(t *testing.T, r rendezvous.Record, o project.Options) []project.Message {
	t.Helper()
	got, err := project.Messages(r, o)
	if err != nil {
		t.Fatalf("%s: %v", r.Kind, err)
	}
	for i, m := range got {
		if !json.Valid(m.Body) || i > 0 && m.Index != got[i-1].Index+1 || m.ID != project.MessageID(r.RunID, r.Seq, m.Index) {
			t.Errorf("%s: message %d: %+v %s", r.Kind, i, m, m.Body)
		}
	}
	return got
}

// the only message of a record, as a CloudEvent
func event(t *testing.T, r rendezvous.Record, o project.Options) string {
	t.Helper()
	got := messages(t, r, o)
	if len(got) != 1 || got[0].ContentType != "application/cloudevents+json; charset=UTF-8" {
		t.Fatalf("%+v", got)
	}
	return string(got[0].Body)
}

// kinds has a record of each of the 21 kinds, what its CloudEvent tells beyond the fixed data, and its A2A state.
var kinds = map[rendezvous.Kind]struct {
	effect, data string
	tells        string
	state        string
}{
	rendezvous.RunStarted:        {"", `{"queue":"q","type":"order","deadline":"2026-12-01T00:00:00.000000Z"}`, ``, "SUBMITTED"},
	rendezvous.RunCompleted:      {"", `{}`, `,"outcome":"completed"`, "COMPLETED"},
	rendezvous.RunFailed:         {"", `{"code":"declined","failed_effect":"pay","reason":"no <funds> & no hope"}`, `,"outcome":"failed","code":"declined","reason":"no <funds> & no hope"`, "FAILED"},
	rendezvous.RunCancelled:      {"", `{"reason":"by hand"}`, `,"outcome":"cancelled","reason":"by hand"`, "CANCELED"},
	rendezvous.RunTimedOut:       {"", `{"deadline":"2026-12-01T00:00:00.000000Z"}`, `,"outcome":"timed_out"`, "FAILED"},
	rendezvous.RunContinued:      {"", `{"next_run":"run-2"}`, `,"outcome":"continued_as_new","next_run":"run-2"`, "WORKING"},
	rendezvous.RunReopened:       {"", `{"reason":"again","superseded":["pay"]}`, `,"reason":"again"`, "WORKING"},
	rendezvous.RunPaused:         {"", `{"reason":"lunch"}`, `,"reason":"lunch"`, "WORKING"},
	rendezvous.RunResumed:        {"", `{}`, ``, "WORKING"},
	rendezvous.EffectStarted:     {"ship", `{"name":"ship it"}`, `,"effect":"ship"`, ""},
	rendezvous.EffectDone:        {"ship", `{}`, `,"effect":"ship"`, ""},
	rendezvous.EffectFailed:      {"ship", `{"code":"lost","reason":"at sea","retryable":true}`, `,"effect":"ship","code":"lost","reason":"at sea"`, ""},
	rendezvous.WaitRegistered:    {"pay", `{"keys":[{"namespace":"order","value":"4711"}],"type":"payment.received"}`, `,"effect":"pay","event_type":"payment.received"`, "INPUT_REQUIRED"},
	rendezvous.WaitAnswered:      {"pay", `{"event_id":"p-1","event_source":"urn:psp","event_type":"payment.received","key":{"namespace":"order","value":"4711"},"received_at":"2026-11-29T15:00:00.000000Z"}`, `,"effect":"pay","event_type":"payment.received"`, "WORKING"},
	rendezvous.WaitTimedOut:      {"pay", `{"deadline":"2026-12-01T00:00:00.000000Z"}`, `,"effect":"pay"`, "WORKING"},
	rendezvous.WaitWithdrawn:     {"pay", `{"reason":"not needed"}`, `,"effect":"pay","reason":"not needed"`, ""},
	rendezvous.TimerStarted:      {"", `{"fire_at":"2026-12-01T00:00:00.000000Z","timer_id":"t"}`, ``, ""},
	rendezvous.TimerFired:        {"", `{"armed_seq":3,"fire_at":"2026-12-01T00:00:00.000000Z","timer_id":"t"}`, ``, ""},
	rendezvous.TimerCancelled:    {"", `{"armed_seq":3,"reason":"early","timer_id":"t"}`, `,"reason":"early"`, ""},
	rendezvous.AttributesUpdated: {"", `{"attributes":{"a":1}}`, ``, ""},
	rendezvous.Note:              {"", `{"name":"n"}`, ``, ""},
}

func TestPU98EveryKindAsACloudEvent(t *testing.T) {
	if len(kinds) != 21 {
		t.Fatalf("%d kinds", len(kinds))
	}
	for kind, c := range kinds {
		r := record(kind, c.data)
		r.Effect, r.Payload, r.ContentType = c.effect, []byte(`{"secret":1}`), "application/json"
		want := `{"specversion":"1.0","id":"run-1/7/0","source":"urn:rendezvous:test/acme/order-4711","type":"rendezvous.` + string(kind) +
			`","subject":"run-1","time":"2026-11-29T16:00:00.000001Z","sequence":"00000000000000000007","tenantid":"acme","datacontenttype":"application/json","data":{"run_id":"run-1",` +
			`"workflow_id":"order-4711","seq":7,"kind":"` + string(kind) + `"` + c.tells + `}}`
		if diff := cmp.Diff(want, event(t, r, options(rendezvous.ProjectionCloudEvents, false))); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
}

func TestPU98EveryKindAsAnA2AUpdate(t *testing.T) {
	for kind, c := range kinds {
		r := record(kind, c.data)
		r.Effect = c.effect
		got := messages(t, r, options(rendezvous.ProjectionA2A, true))
		if c.state == "" {
			if len(got) > 0 {
				t.Errorf("%s: %s", kind, got[0].Body)
			}
			continue
		}
		metadata := `{"seq":7}`
		if kind == rendezvous.RunContinued {
			metadata = `{"seq":7,"next_run":"run-2"}`
		}
		want := `{"statusUpdate":{"taskId":"run-1","contextId":"order-4711","status":{"state":"TASK_STATE_` + c.state + `","timestamp":"2026-11-29T16:00:00.000001Z"},"metadata":` + metadata + `}}`
		if len(got) != 1 || got[0].ContentType != "application/a2a+json" {
			t.Fatalf("%s: %+v", kind, got)
		}
		if diff := cmp.Diff(want, string(got[0].Body)); diff != "" {
			t.Errorf("%s: %s", kind, diff)
		}
	}
}

func TestPU98AResultIsAnArtifactAndThenTheStatus(t *testing.T) {
	for name, c := range map[string]struct {
		payload, contentType string
		part                 string
	}{
		"JSON":            {`{"n": 1.0}`, "application/json", `{"data":{"n": 1.0},"mediaType":"application/json"}`},
		"JSON, suffix":    {`[1]`, "application/vnd.x+json; v=1", `{"data":[1],"mediaType":"application/vnd.x+json; v=1"}`},
		"text":            {"grüße & <mehr>", "text/plain", `{"text":"grüße & <mehr>","mediaType":"text/plain"}`},
		"text in UTF-8":   {"a", "Text/HTML; charset=UTF-8", `{"text":"a","mediaType":"Text/HTML; charset=UTF-8"}`},
		"text in Latin 1": {"a", "text/plain; charset=iso-8859-1", `{"raw":"YQ==","mediaType":"text/plain; charset=iso-8859-1"}`},
		"text that isn't": {"\xff", "text/plain", `{"raw":"/w==","mediaType":"text/plain"}`},
		"JSON that isn't": {"{", "application/json", `{"raw":"ew==","mediaType":"application/json"}`},
		"bytes":           {"\x00", "application/octet-stream", `{"raw":"AA==","mediaType":"application/octet-stream"}`},
		"no type":         {"{}", "", `{"raw":"e30="}`},
		"empty":           {"", "text/plain", `{"text":"","mediaType":"text/plain"}`},
	} {
		r := record(rendezvous.RunCompleted, `{}`)
		r.Payload, r.ContentType = []byte(c.payload), c.contentType
		got := messages(t, r, options(rendezvous.ProjectionA2A, true))
		if len(got) != 2 || got[0].ID != "run-1/7/0" || got[1].ID != "run-1/7/1" {
			t.Fatalf("%s: %+v", name, got)
		}
		want := `{"artifactUpdate":{"taskId":"run-1","contextId":"order-4711","artifact":{"artifactId":"result","parts":[` + c.part + `]},"lastChunk":true,"metadata":{"seq":7}}}`
		if diff := cmp.Diff(want, string(got[0].Body)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for _, m := range got {
			var members map[string]json.RawMessage
			if err := json.Unmarshal(m.Body, &members); err != nil || len(members) != 1 {
				t.Errorf("%s: %s, %v", name, m.Body, err)
			}
		}
		if got := messages(t, r, options(rendezvous.ProjectionA2A, false)); len(got) != 1 || got[0].ID != "run-1/7/1" || !strings.Contains(string(got[0].Body), "COMPLETED") {
			t.Errorf("%s, without payloads: %+v", name, got)
		}
	}
}

func TestPU79MessageIDsHaveNoDots(t *testing.T) {
	for run, want := range map[string]string{
		"plain-Run_1~x": "plain-Run_1~x/12/1", "a.b": "a%2Eb/12/1", "a/b": "a%2Fb/12/1", "a b%": "a%20b%25/12/1", "größe": "gr%C3%B6%C3%9Fe/12/1", "0198f4c2-": "0198f4c2-/12/1",
	} {
		got := project.MessageID(run, 12, 1)
		if got != want || strings.Contains(got, ".") {
			t.Errorf("%q: %s, want %s", run, got, want)
		}
		r := record(rendezvous.Note, `{"name":"n"}`)
		r.RunID = run
		if !strings.Contains(event(t, r, options(rendezvous.ProjectionCloudEvents, false)), `"id":"`+project.MessageID(run, 7, 0)+`"`) {
			t.Errorf("%q: the event has another id", run)
		}
	}
}

// PU-40: the source is percent-encoded, so that a workflow's id cannot look like a path.
func TestPU40SourceTypeAndSubject(t *testing.T) {
	o := options(rendezvous.ProjectionCloudEvents, false)
	o.Workflow = "a/b c.d"
	got := event(t, record(rendezvous.RunCompleted, `{}`), o)
	for _, part := range []string{
		`"source":"urn:rendezvous:test/acme/a%2Fb%20c.d"`, `"workflow_id":"a/b c.d"`, `"type":"rendezvous.run.completed"`, `"id":"run-1/7/0"`, `"subject":"run-1"`, `"outcome":"completed"`,
	} {
		if !strings.Contains(got, part) {
			t.Errorf("%s lacks %s", got, part)
		}
	}
}

func TestPU97NoReasonMemberOnSuccess(t *testing.T) {
	got := event(t, record(rendezvous.RunCompleted, `{}`), options(rendezvous.ProjectionCloudEvents, true))
	for _, absent := range []string{"reason", "code", "payload", "next_run", "effect", "event_type", "traceparent"} {
		if strings.Contains(got, absent) {
			t.Errorf("%s tells of %s", got, absent)
		}
	}
}

func TestPU97PayloadsAreVerbatimOrBase64(t *testing.T) {
	for name, c := range map[string]struct{ payload, contentType, want string }{
		"JSON":             {`{"n":1.0e+2,"big":12345678901234567890.10,"a":1,"a":2}`, "application/json", `"payload":{"n":1.0e+2,"big":12345678901234567890.10,"a":1,"a":2}`},
		"blanks":           {"{ \"a\" :\n1 }", "application/json", "\"payload\":{ \"a\" :\n1 }"},
		"HTML and escapes": {`"<&>\u003c\/é\ud83d\ude00"`, "application/json", `"payload":"<&>\u003c\/é\ud83d\ude00"`},
		"null":             {`null`, "application/json", `"payload":null`},
		"no JSON":          {`{`, "application/json", `"payload_base64":"ew==","payload_content_type":"application/json"`},
		"two values":       {`1 2`, "application/json", `"payload_base64":"MSAy","payload_content_type":"application/json"`},
		"bytes":            {"\x00\xff", "application/octet-stream", `"payload_base64":"AP8=","payload_content_type":"application/octet-stream"`},
		"text":             {"hi", "text/plain", `"payload_base64":"aGk=","payload_content_type":"text/plain"`},
		"without a type":   {`{}`, "", `"payload_base64":"e30="`},
		"empty":            {"", "application/octet-stream", `"payload_base64":"","payload_content_type":"application/octet-stream"`},
		"too deep":         {strings.Repeat("[", 2000) + strings.Repeat("]", 2000), "application/json", `"payload_base64":"W1tb`},
	} {
		r := record(rendezvous.EffectDone, `{}`)
		r.Effect, r.Payload, r.ContentType = "ship", []byte(c.payload), c.contentType
		got := event(t, r, options(rendezvous.ProjectionCloudEvents, true))
		if !strings.Contains(got, `"effect":"ship",`+c.want) || name == "without a type" && strings.Contains(got, "content_type\":\"\"") {
			t.Errorf("%s: %s", name, got)
		}
		if off := event(t, r, options(rendezvous.ProjectionCloudEvents, false)); strings.Contains(off, `"payload`) {
			t.Errorf("%s, not asked for: %s", name, off)
		}
	}
}

func TestPU97OverTheBoundIsSizeAndDigest(t *testing.T) {
	const digest = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" // of "x"
	r := record(rendezvous.RunCompleted, `{}`)
	r.Payload, r.ContentType = []byte("x"), "application/octet-stream"
	o := options(rendezvous.ProjectionCloudEvents, true)
	whole := event(t, r, o)
	o.MaxBody = len(whole)
	if got := event(t, r, o); got != whole {
		t.Errorf("at the bound: %s", got)
	}
	o.MaxBody--
	if got := event(t, r, o); strings.Contains(got, "base64") || !strings.Contains(got, `"payload_size":1,"payload_sha256":"`+digest+`"`) {
		t.Errorf("over the bound: %s", got)
	}
	a := options(rendezvous.ProjectionA2A, true)
	a.MaxBody = 200
	r.Payload = []byte(strings.Repeat("x", 300))
	got := messages(t, r, a)
	if len(got) != 2 || !strings.Contains(string(got[0].Body), `"parts":[{"data":{"payload_size":300,"payload_sha256":"`) || strings.Contains(string(got[0].Body), "xxx") {
		t.Errorf("an artifact over the bound: %+v", got)
	}
	// The default bound holds the largest record whole.
	o.MaxBody, r.Payload = 0, make([]byte, rendezvous.MaxPayload)
	if got := event(t, r, o); len(got) <= base64.StdEncoding.EncodedLen(rendezvous.MaxPayload) {
		t.Errorf("the largest payload gives %d bytes", len(got))
	}
}

func TestPU97AnErasedPayloadIsAnnounced(t *testing.T) {
	r := record(rendezvous.WaitAnswered, kinds[rendezvous.WaitAnswered].data)
	o := options(rendezvous.ProjectionCloudEvents, true)
	o.Erased = true
	if got := event(t, r, o); !strings.HasSuffix(got, `"payload_erased":true}}`) {
		t.Errorf("%s", got)
	}
	o.IncludePayload = false
	if got := event(t, r, o); strings.Contains(got, "erased") {
		t.Errorf("not asked for: %s", got)
	}
	a := options(rendezvous.ProjectionA2A, true)
	a.Erased = true
	if got := messages(t, record(rendezvous.RunCompleted, `{}`), a); len(got) != 2 || !strings.Contains(string(got[0].Body), `"parts":[{"data":{"payload_erased":true}}]`) {
		t.Errorf("%+v", got)
	}
}

// PU-80: the body's trace is what the options say, and never a tracestate.
func TestPU80TraceparentWhenThereIsOne(t *testing.T) {
	o := options(rendezvous.ProjectionCloudEvents, false)
	o.Trace = rendezvous.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b"}
	if got := event(t, record(rendezvous.Note, `{"name":"n"}`), o); !strings.Contains(got, `"tenantid":"acme","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","datacontenttype"`) || strings.Contains(got, "tracestate") {
		t.Errorf("%s", got)
	}
}

func TestPU44BodiesAreTheSameEachTime(t *testing.T) {
	for kind, c := range kinds {
		r := record(kind, c.data)
		r.Effect, r.Payload, r.ContentType = c.effect, []byte(`{"a":1}`), "application/json"
		for _, projection := range []rendezvous.Projection{rendezvous.ProjectionCloudEvents, rendezvous.ProjectionA2A} {
			if diff := cmp.Diff(messages(t, r, options(projection, true)), messages(t, r, options(projection, true))); diff != "" {
				t.Errorf("%s %s: %s", kind, projection, diff)
			}
		}
	}
}

func TestPU54ARecordThatIsNotTakenMakesNoMessage(t *testing.T) {
	o := options(rendezvous.ProjectionCloudEvents, false)
	o.Events = []string{"run.completed", "wait.answered"}
	for kind, c := range kinds {
		r := record(kind, c.data)
		r.Effect = c.effect
		if got := messages(t, r, o); (len(got) == 1) != (kind == rendezvous.RunCompleted || kind == rendezvous.WaitAnswered) {
			t.Errorf("%s: %d messages", kind, len(got))
		}
	}
	o.Events = nil
	if got := messages(t, record(rendezvous.RunCompleted, `{}`), o); len(got) > 0 {
		t.Errorf("taken by nobody: %+v", got)
	}
}

// A record that a newer build wrote is neither sent nor passed over, whatever events are taken.
func TestARecordOfAnUnknownKindIsLeft(t *testing.T) {
	unknown := record("run.teleported", `{}`)
	newer := record(rendezvous.RunCompleted, `{}`)
	newer.Unknown = true
	o := options(rendezvous.ProjectionCloudEvents, false)
	o.Events = []string{"run.failed"}
	for _, r := range []rendezvous.Record{unknown, newer} {
		if got, err := project.Messages(r, o); !errors.Is(err, project.ErrUnknown) || got != nil {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// PU-50: data that does not decode is an error, for the row to bear alone.
func TestPU50DataThatDoesNotDecodeIsAnError(t *testing.T) {
	for _, data := range []string{`{"code":1}`, `[]`, `{`} {
		if got, err := project.Messages(record(rendezvous.RunFailed, data), options(rendezvous.ProjectionCloudEvents, false)); !errors.Is(err, rendezvous.ErrCorrupt) && rendezvous.CodeOf(err) != rendezvous.CodeCorrupt {
			t.Errorf("%s: %+v, %v", data, got, err)
		}
	}
	o := options("else", false)
	if _, err := project.Messages(record(rendezvous.RunFailed, `{}`), o); err == nil {
		t.Error("another projection")
	}
}
