package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

// step is one call of a story and the exact shape of its reply.
type step struct{ verb, request, want string }

// tell makes the calls in order.
func tell(t *testing.T, d door, tenant string, steps []step) {
	t.Helper()
	for _, s := range steps {
		match(t, s.want, ok(t, d, tenant, s.verb, s.request))
		if t.Failed() {
			t.Fatalf("at %s %s", s.verb, s.request)
		}
	}
}

const (
	payment = `{"specversion":"1.0","id":"p-1","source":"urn:psp","type":"payment.received","subject":"4711","rdvkeys":"order=4711","datacontenttype":"application/json","data":{"amount":12}}`
	orderIs = `[{"namespace":"order","value":"4711"}]`
	answer  = `{"seq":3,"run_id":"run-1","kind":"wait.answered","effect":"pay","recorded_at":"<time>","source":"urn:psp",
		"data":{"event_source":"urn:psp","event_id":"p-1","event_type":"payment.received","received_at":"<time>","key":{"namespace":"order","value":"4711"}},
		"payload":{"data":{"amount":12},"content_type":"application/json"}}`
	started = `{"seq":1,"run_id":"run-1","kind":"run.started","recorded_at":"<time>","data":{"type":"order","queue":"orders"},
		"payload":{"data":{"n":1},"content_type":"application/json"}}`
	registered = `{"seq":2,"run_id":"run-1","kind":"wait.registered","effect":"pay","recorded_at":"<time>","data":{"type":"payment.received","keys":` + orderIs + `}}`
)

// drive is a run from its start to its end, every reply as api.md section 6 shows it.
var drive = []step{
	{"events.put", `{"events":[` + payment + `]}`, `{"results":[{"source":"urn:psp","id":"p-1","outcome":"accepted"}]}`},
	{"events.put", `{"events":[` + payment + `]}`, `{"results":[{"source":"urn:psp","id":"p-1","outcome":"duplicate","state":"live"}]}`},
	{
		"events.get", `{"source":"urn:psp","id":"p-1","include_data":true}`,
		`{"source":"urn:psp","id":"p-1","type":"payment.received","state":"live","number":"<number>","erased":false,"received_at":"<time>","live_since":"<time>",
			"keys":[{"namespace":"subject","value":"4711"},{"namespace":"order","value":"4711"}],
			"payload":{"data":{"amount":12},"content_type":"application/json"}}`,
	},
	{
		"runs.start", `{"workflow_id":"order-4711","run_id":"run-1","type":"order","queue":"orders","input":{"data":{"n":1}}}`,
		`{"workflow_id":"order-4711","run_id":"run-1","head_seq":1,"first":true,"status":"running"}`,
	},
	{
		"runs.start", `{"workflow_id":"order-4711","run_id":"run-1","type":"order","queue":"orders","input":{"data":{"n":1}}}`,
		`{"workflow_id":"order-4711","run_id":"run-1","head_seq":1,"first":false,"status":"running"}`,
	},
	{
		"runs.acquire", `{"run_id":"run-1","owner":"pod-a/7f3c","ttl_ms":30000,"acquire_id":"a1"}`,
		`{"workflow_id":"order-4711","epoch":1,"head_seq":1,"expires_at":"<time>","requests":[],"mail":0}`,
	},
	{
		"runs.renew", `{"run_id":"run-1","owner":"pod-a/7f3c","ttl_ms":30000,"epoch":1}`,
		`{"workflow_id":"order-4711","epoch":1,"head_seq":1,"expires_at":"<time>","requests":[],"mail":0}`,
	},
	{
		"runs.await", `{"run_id":"run-1","epoch":1,"effect":"pay","type":"payment.received","keys":` + orderIs + `}`,
		`{"answered":` + answer + `,"seq":3}`,
	},
	{
		"runs.history", `{"workflow_id":"order-4711","from_seq":1,"limit":500}`,
		`{"head_seq":3,"more":false,"records":[` + started + `,` + registered + `,` + answer + `]}`,
	},
	{
		"events.get", `{"source":"urn:psp","id":"p-1"}`,
		`{"source":"urn:psp","id":"p-1","type":"payment.received","state":"consumed","workflow_id":"order-4711","run_id":"run-1","effect":"pay","seq":3,
			"number":"<number>","erased":false,"received_at":"<time>","live_since":"<time>","claimed_at?":"<time>",
			"keys":[{"namespace":"subject","value":"4711"},{"namespace":"order","value":"4711"}]}`,
	},
	{
		"events.explain", `{"source":"urn:psp","id":"p-1"}`,
		`{"verdict":"delivered","reasons":[],"near_misses":[],"facts":{"number":"<number>","type":"payment.received","received_at":"<time>","at":"<time>",
			"waited_ms?":"<number>","workflow_id":"order-4711","wait":{"run_id":"run-1","effect":"pay"},"seq":3,
			"keys":[{"namespace":"subject","value":"4711"},{"namespace":"order","value":"4711"}]}}`,
	},
	{
		"waits.explain", `{"run_id":"run-1","effect":"pay","source":"urn:psp","id":"p-1"}`,
		`{"verdict":"delivered","near_misses":[],"facts":"<any>","reasons":[{"code":"event_consumed","wait":{"run_id":"run-1","effect":"pay"},"seq":3},
			{"code":"wait_closed","closed":"answered","event":{"source":"urn:psp","id":"p-1"},"seq":3,"since":"<time>"}]}`,
	},
	{
		"events.erase", `{"source":"urn:psp","id":"p-1","operator":{"actor":"ann","basis":"asserted"}}`,
		`{"existed":true,"was":"consumed","journaled":{"workflow_id":"order-4711","seq":3}}`,
	},
	{"events.erase", `{"source":"urn:psp","id":"nobody"}`, `{"existed":false}`},
	{
		"waits.register", `{"run_id":"run-1","epoch":1,"effect":"ship","type":"parcel.sent","keys":` + orderIs + `}`,
		`{"waiting":true,"seq":4,"number":"<number>"}`,
	},
	{
		"waits.list", `{"run_id":"run-1"}`,
		`{"waits":[{"run_id":"run-1","workflow_id":"order-4711","effect":"ship","attempt":1,"type":"parcel.sent","keys":` + orderIs + `,"state":"open","attempts":0,
			"number":"<number>","registered_at":"<time>"}]}`,
	},
	{
		"events.deliver", `{"run_id":"run-1","event":{"specversion":"1.0","id":"s-1","source":"urn:post","type":"parcel.sent","rdvkeys":"order=4711","data":7}}`,
		`{"outcome":"matched","run_id":"run-1","effect":"ship","state?":"claimed"}`,
	},
	{"waits.list", `{"parked":true,"filter":{"type":"parcel.sent"}}`, `{"waits":[{"run_id":"run-1","workflow_id":"order-4711","effect":"ship","attempt":1,"type":"parcel.sent",
		"keys":` + orderIs + `,"state":"parked","attempts":0,"next_attempt_at":"<time>","event":{"source":"urn:post","id":"s-1"},"number":"<number>","registered_at":"<time>"}]}`},
	{
		"waits.explain", `{"run_id":"run-1","effect":"ship"}`,
		`{"verdict":"held","reasons":[],"near_misses":[],"facts":{"number":"<number>","type":"parcel.sent","keys":` + orderIs + `,"registered_at":"<time>","since":"<time>",
			"workflow_id":"order-4711","event":{"source":"urn:post","id":"s-1"},
			"hold":{"state":"leased","owner":"pod-a/7f3c","remaining_ms":"<number>","attempts":0,"next_attempt_at":"<time>"}}}`,
	},
	{
		"runs.collect", `{"run_id":"run-1","epoch":1}`,
		`{"head_seq":5,"more":false,"records":[{"seq":5,"run_id":"run-1","kind":"wait.answered","effect":"ship","recorded_at":"<time>","source":"urn:post",
			"data":{"event_source":"urn:post","event_id":"s-1","event_type":"parcel.sent","received_at":"<time>","key?":"<any>","targeted?":true},
			"payload":{"data":7,"content_type":"application/json"}}]}`,
	},
	{
		"runs.append", `{"run_id":"run-1","epoch":1,"expected_seq":5,"batch_id":"b1","records":[{"kind":"effect.started","effect":"mail","data":{"name":"send"}},{"kind":"effect.done","effect":"mail","payload":{"data":true}}]}`,
		`{"first_seq":6,"head_seq":7,"answers":[],"requests":[],"mail":0}`,
	},
	{
		"runs.append", `{"run_id":"run-1","epoch":1,"expected_seq":5,"batch_id":"b1","records":[{"kind":"effect.started","effect":"mail","data":{"name":"send"}},{"kind":"effect.done","effect":"mail","payload":{"data":true}}]}`,
		`{"first_seq":6,"head_seq":7,"answers":[],"requests":[],"mail":0,"again":true}`,
	},
	{"waits.register", `{"run_id":"run-1","epoch":1,"effect":"later","type":"never.comes","keys":[]}`, `{"waiting":true,"seq":8,"number":"<number>"}`},
	{"waits.withdraw", `{"run_id":"run-1","effect":"later","epoch":1,"reason":"no need"}`, `{"outcome":"withdrawn","seq":9}`},
	{"waits.withdraw", `{"run_id":"run-1","effect":"unheard","epoch":1}`, `{"outcome":"nothing"}`},
	{"waits.retry", `{"run_id":"run-1","effect":"ship","operator":{"actor":"ann","basis":"asserted"}}`, `{"outcome":"not_quarantined"}`},
	{"waits.register", `{"run_id":"run-1","epoch":1,"effect":"later","type":"never.comes","keys":[]}`, `{"withdrawn":true,"seq":9}`},
	{
		"runs.get", `{"run_id":"run-1"}`,
		`{"workflow_id":"order-4711","run_id":"run-1","type":"order","queue":"orders","status":"running","head_seq":9,"shard":"<number>","created_at":"<time>","started_at":"<time>",
			"updated_at":"<time>","open_effects":0,"open_waits":0,"live_timers":0,"lease_owner":"pod-a/7f3c","lease_epoch":1,"lease_remaining_ms":"<number>",
			"run":{"run_id":"run-1","status":"running","first_seq":1,"last_seq":9,"started_at":"<time>"}}`,
	},
	{"runs.release", `{"run_id":"run-1","epoch":1,"seen_seq":9}`, `{"outcome":"suspended","records":[],"head_seq":9,"requests":[],"more":false}`},
	{"runs.release", `{"run_id":"run-1","epoch":1}`, `{"outcome":"not_held","records":[],"head_seq":"<number>","requests":[],"more":false}`},
	{
		"runs.conclude", `{"run_id":"run-1","expected_seq":9,"batch_id":"end","outcome":"completed","result":{"data":{"ok":true}}}`,
		`{"seq":10,"waits":0,"timers":0,"released":[],"dead":[]}`,
	},
	{
		"runs.conclude", `{"run_id":"run-1","expected_seq":9,"batch_id":"end","outcome":"completed","result":{"data":{"ok":true}}}`,
		`{"seq":10,"waits":0,"timers":0,"released":[],"dead":[],"again":true}`,
	},
	{"runs.cancel", `{"run_id":"run-1","reason":"late"}`, `{"outcome":"closed","run_outcome":"completed"}`},
}

// steer is what operators do to runs, and the lists.
var steer = []step{
	{"runs.start", `{"workflow_id":"w","run_id":"r1","type":"order"}`, `{"workflow_id":"w","run_id":"r1","head_seq":1,"first":true,"status":"running"}`},
	{"runs.pause", `{"run_id":"r1","operator":{"actor":"ann","basis":"asserted"},"reason":"stock"}`, `{"outcome":"paused","seq":2,"operator?":"<any>","since?":"<time>"}`},
	{"runs.pause", `{"run_id":"r1","operator":{"actor":"bob","basis":"asserted"}}`, `{"outcome":"already_paused","seq?":2,"operator":{"actor":"ann","basis":"asserted"},"since":"<time>"}`},
	{"runs.resume", `{"run_id":"r1","operator":{"actor":"ann","basis":"asserted"}}`, `{"outcome":"resumed","seq":3}`},
	{"runs.resume", `{"run_id":"r1"}`, `{"outcome":"not_paused"}`},
	{
		"runs.cancel", `{"run_id":"r1","operator":{"actor":"ann","basis":"asserted"},"reason":"fraud"}`,
		`{"outcome":"requested","operator":{"actor":"ann","basis":"asserted"},"reason":"fraud","at":"<time>"}`,
	},
	{
		"runs.acquire", `{"run_id":"r1","owner":"pod","acquire_id":"a"}`,
		`{"workflow_id":"w","epoch":1,"head_seq":3,"expires_at":"<time>","mail":0,
			"requests":[{"kind":"cancel","operator":{"actor":"ann","basis":"asserted"},"reason":"fraud","at":"<time>"}]}`,
	},
	{
		"runs.release", `{"run_id":"r1","epoch":1,"seen_seq":3}`,
		`{"outcome":"continue","records":[],"head_seq":3,"more":false,"requests":[{"kind":"cancel","operator":{"actor":"ann","basis":"asserted"},"reason":"fraud","at":"<time>"}]}`,
	},
	{
		"runs.conclude", `{"run_id":"r1","epoch":1,"expected_seq":3,"batch_id":"next","outcome":"continued_as_new","next":{"run_id":"r2","input":{"data_base64":"AAE=","content_type":"application/octet-stream"}}}`,
		`{"seq":5,"waits":0,"timers":0,"released":[],"dead":[],"next_run":"r2"}`,
	},
	{
		"runs.chain", `{"workflow_id":"w"}`,
		`{"runs":[{"run_id":"r1","status":"continued_as_new","first_seq":1,"last_seq":4,"started_at":"<time>","closed_at":"<time>","outcome":"run.continued"},
			{"run_id":"r2","previous_run":"r1","status":"running","first_seq":5,"last_seq":5,"started_at":"<time>"}]}`,
	},
	{"runs.cancel", `{"run_id":"r2","now":true,"reason":"fraud"}`, `{"outcome":"cancelled","seq":6}`},
	{
		"runs.list", `{"filter":{"types":["order"],"statuses":["cancelled"],"workflow_id":"w"},"limit":10}`,
		`{"runs":[{"workflow_id":"w","run_id":"r2","type":"order","queue":"default","status":"cancelled","head_seq":6,"shard":"<number>","created_at":"<time>","started_at":"<time>",
			"closed_at":"<time>","updated_at":"<time>","open_effects":0,"open_waits":0,"live_timers":0,"lease_epoch":"<number>"}]}`,
	},
	{"runs.count", `{"filter":{"types":["order"]},"cap":100}`, `{"count":1}`},
	{"runs.list", `{"filter":{"types":["nothing"]}}`, `{"runs":[]}`},
	{"waits.list", `{}`, `{"waits":[]}`},
	{"events.explain", `{"source":"urn:a","id":"nobody"}`, `{"verdict":"unknown","facts":{},"reasons":[],"near_misses":[]}`},
	{
		"waits.explain", `{"run_id":"nobody","effect":"w"}`,
		`{"verdict":"unregistered","facts":{"run":{"run_id":"nobody","state":"unknown"}},"reasons":[],"near_misses":[]}`,
	},
	{"runs.history", `{"workflow_id":"nobody"}`, `{"records":[],"head_seq":0,"more":false}`},
	{
		"system.info", `{}`,
		`{"version":"0.0.1","go":"<text>","store":"memory","tenant":"steer-DOOR","now":"<time>","depths":{"live_events":"<number>","open_waits":"<number>","parked_waits":"<number>",
			"quarantined_waits":"<number>","woken":"<number>","timers":"<number>","due_timers":"<number>","due_pushes":"<number>","failing_pushes":"<number>","parked_pushes":"<number>","dead_letters":"<number>","dead?":"<any>","oldest_live_event?":"<time>","oldest_parked?":"<time>","oldest_woken?":"<time>","oldest_due_timer?":"<time>","oldest_due_push?":"<time>"}}`,
	},
	{"system.check", ``, `{"verdict":"ok","reasons":[]}`},
}

func TestEveryVerbAnswersInItsShapeOverBothDoors(t *testing.T) {
	n := nodetest.Start(t)
	for _, d := range doors(t, n) {
		t.Run(d.name(), func(t *testing.T) {
			tell(t, d, "drive-"+d.name(), drive)
			told := slices.Clone(steer)
			for i := range told {
				told[i].want = strings.ReplaceAll(told[i].want, "DOOR", d.name())
			}
			tell(t, d, "steer-"+d.name(), told)
			tell(t, d, "sleep-"+d.name(), sleep)
		})
	}
	called := map[string]bool{}
	for _, s := range slices.Concat(drive, steer, bury, sleep, webhooks) {
		called[s.verb] = true
	}
	for _, verb := range builtVerbs {
		if !called[verb] {
			t.Errorf("no step of the stories calls %s", verb)
		}
	}
}

// builtVerbs are the verbs of this build.
var builtVerbs = []string{
	"events.explain", "waits.explain",
	"events.put", "events.deliver", "events.get", "events.erase", "runs.start", "runs.get", "runs.list", "runs.count", "runs.chain", "runs.history", "runs.acquire",
	"runs.renew", "runs.release", "runs.collect", "runs.append", "runs.await", "runs.conclude", "runs.cancel", "runs.pause", "runs.resume", "runs.reopen", "waits.register",
	"waits.list", "waits.withdraw", "waits.retry", "timers.arm", "timers.cancel", "timers.list", "shards.list", "deadletters.list",
	"deadletters.count", "deadletters.requeue", "deadletters.purge", "system.info", "system.check",
	"push.put", "push.get", "push.list", "push.delete", "push.park", "push.parked", "push.unpark", "push.unpark_many", "push.skip", "push.rotate", "push.attempts",
}

// What the plane mints itself are ids of version 7.
func TestIDsThatAreLeftOutAreMinted(t *testing.T) {
	for _, d := range doors(t, nodetest.Start(t)) {
		match(t, `{"workflow_id":"<uuid>","run_id":"<uuid>","head_seq":1,"first":true,"status":"running"}`, ok(t, d, "acme", "runs.start", `{"type":"order"}`))
	}
}

// I4: the event that comes after its wait is answered by the delivery-worker; the long poll of runs.history sees it.
func TestALongPollSeesTheAnswer(t *testing.T) {
	for _, d := range doors(t, nodetest.Start(t)) {
		t.Run(d.name(), func(t *testing.T) {
			tenant := "poll-" + d.name()
			ok(t, d, tenant, "runs.start", `{"workflow_id":"w","run_id":"run-1","type":"order"}`)
			match(t, `{"waiting":true,"seq":2,"number":"<number>"}`,
				ok(t, d, tenant, "runs.await", `{"run_id":"run-1","effect":"pay","type":"payment.received","keys":`+orderIs+`}`))
			ok(t, d, tenant, "events.put", `{"events":[`+payment+`]}`)
			match(t, `{"records":[`+answer+`],"head_seq":3,"more":false}`, ok(t, d, tenant, "runs.history", `{"workflow_id":"w","from_seq":3,"wait_ms":30000}`))
		})
	}
}

// The events door of HTTP takes the three modes; one event alone is the whole, several have a result each.
func TestEventsDoorTakesThreeModes(t *testing.T) {
	n := nodetest.Start(t)
	d := newHTTPDoor(t, n, "")
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
		}
		return h
	}
	binary := header("ce-specversion", "1.0", "ce-id", "1%20b", "ce-source", "urn:a", "ce-type", "t", "ce-subject", "x", "Content-Type", "text/plain")
	r := d.post(t, "acme/events", []byte("hello"), binary)
	match(t, `{"results":[{"source":"urn:a","id":"1 b","outcome":"accepted"}]}`, r.body)
	match(t, `{"source":"urn:a","id":"1 b","type":"t","state":"live","number":"<number>","erased":false,"received_at":"<time>","live_since":"<time>",
		"keys":[{"namespace":"subject","value":"x"}],"payload":{"data_base64":"aGVsbG8=","content_type":"text/plain"}}`,
		ok(t, d, "acme", "events.get", `{"source":"urn:a","id":"1 b","include_data":true}`))

	structured := header("Content-Type", "Application/CloudEvents+JSON; charset=utf-8", "ce-id", "stray")
	r = d.post(t, "acme/events", []byte(payment), structured)
	match(t, `{"results":[{"source":"urn:psp","id":"p-1","outcome":"accepted"}]}`, r.body)

	other := strings.Replace(payment, `"amount":12`, `"amount":13`, 1)
	batch := `[` + payment + `,` + other + `,{"specversion":"0.3","id":"x","source":"urn:a","type":"t"},` + strings.Replace(payment, "p-1", "p-2", 1) + `]`
	r = d.post(t, "acme/events", []byte(batch), header("Content-Type", "application/cloudevents-batch+json"))
	match(t, `{"results":[{"source":"urn:psp","id":"p-1","outcome":"duplicate","state":"live"},
		{"source":"urn:psp","id":"p-1","outcome":"conflict","error":"<any>"},
		{"source":"urn:a","id":"x","outcome":"rejected","error":{"code":"invalid","message":"<text>","details":{"field":"specversion"}}},
		{"source":"urn:psp","id":"p-2","outcome":"accepted"}]}`, r.body)

	checkRefused(t, d.post(t, "acme/events", []byte(other), structured), http.StatusConflict, "conflict")
	checkRefused(t, d.post(t, "acme/events", []byte(`[]`), header("Content-Type", "application/cloudevents-batch+json")), http.StatusBadRequest, "invalid")
	checkRefused(t, d.post(t, "acme/events", []byte(`[{]`), header("Content-Type", "application/cloudevents-batch+json")), http.StatusBadRequest, "invalid")
	checkRefused(t, d.post(t, "acme/events", []byte(`x`), header("Content-Type", "application/json")), http.StatusBadRequest, "invalid")
}

// A payload comes back as it came: JSON as JSON, other bytes in base64, none as none (EV-10 at the doors).
func TestPayloadsComeBackAsTheyCame(t *testing.T) {
	n := nodetest.Start(t)
	for _, d := range doors(t, n) {
		for i, c := range []struct{ data, want string }{
			{`"data":{"b":1,"a":[true,null,"<&>"]}`, `{"data":{"b":1,"a":[true,null,"<&>"]},"content_type":"application/json"}`},
			{`"data":null`, `{"data":null,"content_type":"application/json"}`},
			{`"data":"text","datacontenttype":"text/plain"`, `{"data_base64":"dGV4dA==","content_type":"text/plain"}`},
			{`"data_base64":"AAECAA=="`, `{"data_base64":"AAECAA=="}`},
			{`"data_base64":""`, `{"data_base64":""}`},
			{`"dataschema":"urn:none"`, ``},
		} {
			id := d.name() + string(rune('a'+i))
			ok(t, d, "acme", "events.put", `{"events":[{"specversion":"1.0","id":"`+id+`","source":"urn:a","type":"t",`+c.data+`}]}`)
			var got struct {
				Payload json.RawMessage `json:"payload"`
			}
			must(t, json.Unmarshal(ok(t, d, "acme", "events.get", `{"source":"urn:a","id":"`+id+`","include_data":true}`), &got))
			if string(got.Payload) != c.want {
				t.Errorf("%s: %s came back as %s, want %s", d.name(), c.data, got.Payload, c.want)
			}
		}
	}
}
