package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/cloudevents"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/store/fault"
	"github.com/rendezvous-events/rendezvous/wire"
)

// refusal is one bad request and how it is refused.
type refusal struct {
	name, verb, body string
	status           int
	code, field      string // field "": not looked at
}

const run1 = `"run_id":"run-1"`

// badRequests are the list of bad input, one line each. The run run-1 is leased with epoch 1, its head is 2, its effect "open" waits; run sealed is ended.
var badRequests = []refusal{
	{"no JSON", "runs.get", `{"run_id"`, 400, "invalid", "body"},
	{"no object", "runs.get", `["run-1"]`, 400, "invalid", "body"},
	{"a number", "runs.get", `7`, 400, "invalid", "body"},
	{"two objects", "runs.get", `{"run_id":"run-1"}{}`, 400, "invalid", "body"},
	{"invalid UTF-8", "runs.get", "{\"run_id\":\"\xff\"}", 400, "invalid", "body"},
	{"NUL in the text", "runs.get", "{\"run_id\":\"a\x00\"}", 400, "invalid", "body"},
	{"NUL in an id", "runs.get", `{"run_id":"a\u0000"}`, 400, "invalid", "run_id"},
	{"NUL in a key", "runs.await", `{` + run1 + `,"epoch":1,"effect":"e","type":"t","keys":[{"namespace":"n","value":"a\u0000"}]}`, 400, "invalid", "keys[0].value"},
	{"half a surrogate pair", "runs.get", `{"run_id":"\ud800"}`, 400, "invalid", "body"},
	{"unknown field", "runs.get", `{"run_id":"run-1","colour":"red"}`, 400, "invalid", "colour"},
	{"field in other letters", "runs.get", `{"RUN_ID":"run-1"}`, 400, "invalid", "RUN_ID"},
	{"unknown field inside", "runs.list", `{"filter":{"colour":"red"}}`, 400, "invalid", "colour"},
	{"field twice", "runs.get", `{"run_id":"run-1","run_id":"run-2"}`, 400, "invalid", "run_id"},
	{"field twice, one escaped", "runs.get", `{"run_id":"run-1","run\u005fid":"run-2"}`, 400, "invalid", "run_id"},
	{"wrong type", "runs.acquire", `{` + run1 + `,"owner":"o","ttl_ms":"soon"}`, 400, "invalid", "ttl_ms"},
	{"a number of many digits", "runs.append", `{` + run1 + `,"expected_seq":` + strings.Repeat("9", 10_000) + `}`, 400, "invalid", "expected_seq"},
	{"deep nesting", "runs.append", `{` + run1 + `,"records":[{"kind":"note","payload":{"data":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}}]}`, 400, "invalid", "body"},
	{"deeper nesting", "events.put", `{"events":[` + strings.Repeat(`{"a":`, 200_000) + `1` + strings.Repeat("}", 200_000) + `]}`, 400, "invalid", "body"},
	{"a million members", "runs.get", manyMembers(1_000_000), 400, "invalid", ""},
	{"a million keys", "runs.await", `{` + run1 + `,"epoch":1,"effect":"e","type":"t","keys":[` + manyKeys(200_000) + `]}`, 413, "too_large", "keys"},
	{"17 keys", "runs.await", `{` + run1 + `,"epoch":1,"effect":"e","type":"t","keys":[` + manyKeys(17) + `]}`, 413, "too_large", "keys"},
	{"unknown verb", "runs.dance", `{}`, 404, "not_found", ""},
	{"verb of a role that is not built", "push.test", `{}`, 404, "not_found", ""},
	{"no event", "events.put", `{"events":[]}`, 400, "invalid", "events"},
	{"501 events", "events.put", `{"events":[` + strings.TrimSuffix(strings.Repeat(`{},`, 501), ",") + `]}`, 413, "too_large", "events"},
	{"event that is none", "events.deliver", `{` + run1 + `,"event":7}`, 400, "invalid", "event"},
	{"event without run", "events.deliver", `{"event":` + payment + `}`, 400, "invalid", "run_id"},
	{"event for another run", "events.deliver", `{` + run1 + `,"event":{"specversion":"1.0","id":"1","source":"s","type":"t","rdvrun":"other"}}`, 400, "invalid", "event.rdvrun"},
	{"event of the plane's own type", "events.deliver", `{` + run1 + `,"event":{"specversion":"1.0","id":"1","source":"s","type":"rendezvous.x"}}`, 400, "invalid", "type"},
	{"event for an unknown run", "events.deliver", `{"run_id":"nobody","event":` + payment + `}`, 404, "not_found", ""},
	{"event for a sealed run", "events.deliver", `{"run_id":"sealed","event":` + payment + `}`, 409, "sealed", ""},
	{"unknown event", "events.get", `{"source":"urn:a","id":"nobody"}`, 404, "not_found", ""},
	{"event without source", "events.get", `{"id":"nobody"}`, 400, "invalid", "source"},
	{"explaining an event without id", "events.explain", `{"source":"urn:a"}`, 400, "invalid", "id"},
	{"explaining half a pair", "events.explain", `{"source":"urn:a","id":"1","run_id":"r"}`, 400, "invalid", "effect"},
	{"explaining a wait without effect", "waits.explain", `{` + run1 + `}`, 400, "invalid", "effect"},
	{"explaining a wait beside half an event", "waits.explain", `{` + run1 + `,"effect":"e","id":"1"}`, 400, "invalid", "source"},
	{"explaining with what is unheard of", "events.explain", `{"source":"urn:a","id":"1","include_data":true}`, 400, "invalid", "include_data"},
	{"explaining an id too long", "events.explain", `{"source":"urn:a","id":"` + strings.Repeat("x", 513) + `"}`, 413, "too_large", "id"},
	{"unknown run", "runs.get", `{"run_id":"nobody"}`, 404, "not_found", ""},
	{"neither workflow nor run", "runs.get", `{}`, 400, "invalid", "workflow_id"},
	{"both workflow and run", "runs.get", `{"workflow_id":"w","run_id":"run-1"}`, 400, "invalid", "workflow_id"},
	{"limit of another verb", "runs.get", `{"run_id":"run-1","limit":7}`, 400, "invalid", "limit"},
	{"id too long", "runs.get", `{"run_id":"` + strings.Repeat("x", 513) + `"}`, 413, "too_large", "run_id"},
	{"queue with a dot", "runs.start", `{"type":"t","queue":"a.b"}`, 400, "invalid", "queue"},
	{"queue too long", "runs.start", `{"type":"t","queue":"` + strings.Repeat("q", 65) + `"}`, 400, "invalid", "queue"},
	{"start of a known workflow with other content", "runs.start", `{"workflow_id":"w","run_id":"run-1","type":"other"}`, 409, "conflict", ""},
	{"unbuilt attributes", "runs.start", `{"type":"t","attributes":{"a":1}}`, 400, "invalid", "attributes"},
	{"unbuilt sort", "runs.list", `{"sort":["type"]}`, 400, "invalid", "sort"},
	{"push of a continuation", "runs.conclude", `{` + run1 + `,"epoch":1,"expected_seq":2,"batch_id":"b","outcome":"continued_as_new","next":{"push":[]}}`, 400, "invalid", "push"},
	{"wait of an unknown run", "runs.await", `{"run_id":"nobody","effect":"e","type":"t","keys":[]}`, 404, "not_found", ""},
	{"wait of a sealed run", "runs.await", `{"run_id":"sealed","effect":"e","type":"t","keys":[]}`, 409, "sealed", ""},
	{"wait without the lease's epoch", "runs.await", `{` + run1 + `,"effect":"e","type":"t","keys":[]}`, 409, "lease_held", ""},
	{"wait under a stale epoch", "runs.await", `{` + run1 + `,"epoch":99,"effect":"e","type":"t","keys":[]}`, 409, "fenced", ""},
	{"wait with other keys under its effect", "runs.await", `{` + run1 + `,"epoch":1,"effect":"open","type":"t","keys":[` + manyKeys(1) + `]}`, 409, "conflict", ""},
	{"append under a stale epoch", "runs.append", `{` + run1 + `,"epoch":99,"expected_seq":2,"batch_id":"b","records":[{"kind":"note","data":{"name":"n"}}]}`, 409, "fenced", ""},
	{"append without epoch", "runs.append", `{` + run1 + `,"expected_seq":2,"batch_id":"b","records":[{"kind":"note","data":{"name":"n"}}]}`, 409, "lease_held", ""},
	{"append at a lower head", "runs.append", `{` + run1 + `,"epoch":1,"expected_seq":1,"batch_id":"b","records":[{"kind":"note","data":{"name":"n"}}]}`, 409, "conflict", ""},
	{"append at a higher head", "runs.append", `{` + run1 + `,"epoch":1,"expected_seq":3,"batch_id":"b","records":[{"kind":"note","data":{"name":"n"}}]}`, 409, "conflict", ""},
	{"append to an unknown run", "runs.append", `{"run_id":"nobody","expected_seq":1,"batch_id":"b","records":[]}`, 404, "not_found", ""},
	{"append to a sealed run", "runs.append", `{"run_id":"sealed","expected_seq":2,"batch_id":"b","records":[]}`, 409, "sealed", ""},
	{"record of an unknown kind", "runs.append", `{` + run1 + `,"epoch":1,"expected_seq":2,"batch_id":"b","records":[{"kind":"run.danced"}]}`, 400, "invalid", ""},
	{"record with a seq", "runs.append", `{` + run1 + `,"epoch":1,"expected_seq":2,"batch_id":"b","records":[{"seq":3,"kind":"note","data":{"name":"n"}}]}`, 400, "invalid", "records"},
	{"payload twice", "runs.append", `{` + run1 + `,"epoch":1,"expected_seq":2,"batch_id":"b","records":[{"kind":"note","data":{"name":"n"},"payload":{"data":1,"data_base64":"AA=="}}]}`, 400, "invalid", "data_base64"},
	{"bad base64", "runs.append", `{` + run1 + `,"epoch":1,"expected_seq":2,"batch_id":"b","records":[{"kind":"note","data":{"name":"n"},"payload":{"data_base64":"%"}}]}`, 400, "invalid", "data_base64"},
	{"base64 as a list of numbers", "runs.start", `{"type":"t","input":{"data_base64":[1,2]}}`, 400, "invalid", "data_base64"},
	{"content type alone", "runs.start", `{"type":"t","input":{"content_type":"a/b"}}`, 400, "invalid", "data"},
	{"content type beside null", "runs.start", `{"type":"t","input":{"data_base64":null,"content_type":"a/b"}}`, 400, "invalid", "data"},
	{"payload without anything", "runs.append", `{` + run1 + `,"epoch":1,"expected_seq":2,"batch_id":"b","records":[{"kind":"note","data":{"name":"n"},"payload":{}}]}`, 400, "invalid", "data"},
	{"unknown field of a payload", "runs.start", `{"type":"t","input":{"data":1,"colour":"red"}}`, 400, "invalid", "colour"},
	{"payload over the limit", "runs.append", `{` + run1 + `,"epoch":1,"expected_seq":2,"batch_id":"b","records":[{"kind":"note","data":{"name":"n"},"payload":{"data":"` + strings.Repeat("x", 1<<20) + `"}}]}`, 413, "too_large", "payload"},
	{"lease for no time", "runs.acquire", `{"run_id":"free","owner":"o","acquire_id":"a","ttl_ms":0}`, 400, "invalid", "ttl"},
	{"lease for too long", "runs.acquire", `{"run_id":"free","owner":"o","acquire_id":"a","ttl_ms":3600001}`, 400, "invalid", "ttl"},
	{"lease for longer than time", "runs.acquire", `{"run_id":"free","owner":"o","acquire_id":"a","ttl_ms":9223372036854775807}`, 400, "invalid", "ttl"},
	{"lease that is held", "runs.acquire", `{` + run1 + `,"owner":"other","acquire_id":"z"}`, 409, "lease_held", ""},
	{"lease with an epoch", "runs.acquire", `{"run_id":"free","owner":"o","epoch":4}`, 400, "invalid", "epoch"},
	{"renewal with an acquire_id", "runs.renew", `{` + run1 + `,"owner":"pod","epoch":1,"acquire_id":"a"}`, 400, "invalid", "acquire_id"},
	{"renewal under a stale epoch", "runs.renew", `{` + run1 + `,"owner":"pod","epoch":99}`, 409, "fenced", ""},
	{"renewal by another owner", "runs.renew", `{` + run1 + `,"owner":"thief","epoch":1}`, 409, "fenced", ""},
	{"release without epoch", "runs.release", `{` + run1 + `}`, 400, "invalid", "epoch"},
	{"suspension under a stale epoch", "runs.release", `{` + run1 + `,"epoch":99,"seen_seq":2}`, 409, "fenced", ""},
	{"collection without epoch", "runs.collect", `{` + run1 + `}`, 400, "invalid", "epoch"},
	{"collection under a stale epoch", "runs.collect", `{` + run1 + `,"epoch":99}`, 409, "fenced", ""},
	{"conclusion at a wrong head", "runs.conclude", `{` + run1 + `,"epoch":1,"expected_seq":7,"batch_id":"b","outcome":"completed"}`, 409, "conflict", ""},
	{"conclusion under a stale epoch", "runs.conclude", `{` + run1 + `,"epoch":99,"expected_seq":2,"batch_id":"b","outcome":"completed"}`, 409, "fenced", ""},
	{"unknown outcome", "runs.conclude", `{` + run1 + `,"epoch":1,"expected_seq":2,"batch_id":"b","outcome":"bored"}`, 400, "invalid", ""},
	{"detail of a completion", "runs.conclude", `{` + run1 + `,"epoch":1,"expected_seq":2,"batch_id":"b","outcome":"completed","detail":{"data":1}}`, 400, "invalid", "outcome"},
	{"next of a completion", "runs.conclude", `{` + run1 + `,"epoch":1,"expected_seq":2,"batch_id":"b","outcome":"completed","next":{}}`, 400, "invalid", "next"},
	{"continuation with a workflow", "runs.conclude", `{` + run1 + `,"epoch":1,"expected_seq":2,"batch_id":"b","outcome":"continued_as_new","next":{"workflow_id":"x"}}`, 400, "invalid", "next"},
	{"pause now", "runs.pause", `{` + run1 + `,"now":true}`, 400, "invalid", "now"},
	{"reason too long", "runs.cancel", `{` + run1 + `,"reason":"` + strings.Repeat("x", 513) + `"}`, 413, "too_large", "reason"},
	{"operator without a name", "runs.cancel", `{` + run1 + `,"operator":{"basis":"asserted"}}`, 400, "invalid", "operator.actor"},
	{"operator of an unknown basis", "runs.cancel", `{` + run1 + `,"operator":{"actor":"ann","basis":"rumour"}}`, 400, "invalid", "operator.basis"},
	{"cancel of an unknown run", "runs.cancel", `{"run_id":"nobody"}`, 404, "not_found", ""},
	{"history from behind the head", "runs.history", `{"workflow_id":"w","from_seq":9}`, 400, "invalid", "from_seq"},
	{"history page too long", "runs.history", `{"workflow_id":"w","limit":10001}`, 413, "too_large", "limit"},
	{"history page of less than nothing", "runs.history", `{"workflow_id":"w","limit":-1}`, 400, "invalid", "limit"},
	{"poll too long", "runs.history", `{"workflow_id":"w","wait_ms":30001}`, 400, "invalid", "wait_ms"},
	{"list too long", "runs.list", `{"limit":1001}`, 413, "too_large", "limit"},
	{"cursor of something else", "runs.list", `{"cursor":"bm9uc2Vuc2U"}`, 400, "invalid", "cursor"},
	{"waits' cursor of something else", "waits.list", `{"cursor":"%%%"}`, 400, "invalid", "cursor"},
	{"unknown status", "runs.list", `{"filter":{"statuses":["asleep"]}}`, 400, "invalid", ""},
	{"unknown state of a wait", "waits.list", `{"filter":{"state":"asleep"}}`, 400, "invalid", ""},
	{"something for system.check", "system.check", `{"x":1}`, 400, "invalid", "x"},
}

// badDues are bad instants and durations, deadlines, timers and shards. Instants that are over are legal for timers and waits, not for a run's deadline.
func badDues() []refusal {
	const arm, await = `{"run_id":"free","batch_id":"b","timer_id":"t"`, `{"run_id":"free","effect":"e","type":"t","keys":[]`
	var list []refusal
	for _, v := range []struct{ name, verb, at, after, open string }{
		{"run", "runs.start", "deadline", "deadline_after_ms", `{"type":"t"`},
		{"wait", "waits.register", "deadline", "deadline_after_ms", await},
		{"timer", "timers.arm", "fire_at", "after_ms", arm},
	} {
		for _, c := range []struct{ name, members, field string }{
			{"an instant that is none", `"%s":"soon"`, v.at},
			{"an empty instant", `"%s":""`, v.at},
			{"an instant that is a number", `"%s":1767225600`, v.at},
			{"an instant without its zone", `"%s":"2030-01-01T00:00:00"`, v.at},
			{"a day that is none", `"%s":"2030-02-30T00:00:00Z"`, v.at},
			{"a leap second", `"%s":"2030-06-30T23:59:60Z"`, v.at},
			{"a year of five digits", `"%s":"10000-01-01T00:00:00Z"`, v.at},
			{"an instant that rounds up to year 10000", `"%s":"9999-12-31T23:59:59.9999999Z"`, v.at},
			{"the year 0", `"%s":"0000-12-31T23:59:59Z"`, v.at},
		} {
			list = append(list, refusal{c.name + " of a " + v.name, v.verb, v.open + "," + fmt.Sprintf(c.members, v.at) + "}", 400, "invalid", c.field})
		}
		for name, ms := range map[string]string{
			"a negative duration": "-1", "more than 100 years": "3153600000001", "all milliseconds there are": "9223372036854775807", "more than all": "1e30",
			"half a millisecond": "0.5", "a duration in words": `"1h"`,
		} {
			list = append(list, refusal{name + " of a " + v.name, v.verb, v.open + `,"` + v.after + `":` + ms + `}`, 400, "invalid", v.after})
		}
		list = append(list, refusal{"both of a " + v.name, v.verb, v.open + `,"` + v.at + `":"2030-01-01T00:00:00Z","` + v.after + `":5}`, 400, "invalid", v.at})
	}
	return append(list, []refusal{
		{"a run's deadline that is over", "runs.start", `{"type":"t","deadline":"2020-01-01T00:00:00Z"}`, 400, "invalid", "deadline"},
		{"a run's deadline at once", "runs.start", `{"type":"t","deadline_after_ms":0}`, 400, "invalid", "deadline"},
		{"a continuation's deadline that is over", "runs.conclude", `{"run_id":"free","expected_seq":1,"batch_id":"b","outcome":"continued_as_new","next":{"deadline":"2020-01-01T00:00:00Z"}}`, 400, "invalid", "deadline"},
		{"a start again with another deadline", "runs.start", `{"workflow_id":"w","run_id":"run-1","type":"order","deadline":"2030-01-01T00:00:00Z"}`, 409, "conflict", ""},
		{"a wait again with a deadline", "runs.await", `{` + run1 + `,"epoch":1,"effect":"open","type":"t","keys":[],"deadline":"2030-01-01T00:00:00Z"}`, 409, "conflict", ""},
		{"a time-out without a deadline", "runs.conclude", `{"run_id":"free","expected_seq":1,"batch_id":"b","outcome":"timed_out"}`, 409, "conflict", ""},
		{"a code of a time-out", "runs.conclude", `{"run_id":"free","expected_seq":1,"batch_id":"b","outcome":"timed_out","code":"late"}`, 400, "invalid", "code"},
		{"a timer for no time", "timers.arm", arm + `}`, 400, "invalid", "fire_at"},
		{"a timer without an id", "timers.arm", `{"run_id":"free","batch_id":"b","after_ms":1}`, 400, "invalid", "timer_id"},
		{"a timer of the plane's own", "timers.arm", `{"run_id":"free","batch_id":"b","timer_id":"$run/x","after_ms":1}`, 400, "invalid", "timer_id"},
		{"a timer id too long", "timers.arm", `{"run_id":"free","batch_id":"b","after_ms":1,"timer_id":"` + strings.Repeat("x", 513) + `"}`, 413, "too_large", "timer_id"},
		{"a timer without a batch", "timers.arm", `{"run_id":"free","timer_id":"t","after_ms":1}`, 400, "invalid", "batch_id"},
		{"a timer of an unknown run", "timers.arm", `{"run_id":"nobody","batch_id":"b","timer_id":"t","after_ms":1}`, 404, "not_found", ""},
		{"a timer of a sealed run", "timers.arm", `{"run_id":"sealed","batch_id":"b","timer_id":"t","after_ms":1}`, 409, "sealed", ""},
		{"a timer without the lease's epoch", "timers.arm", `{` + run1 + `,"batch_id":"b","timer_id":"t","after_ms":1}`, 409, "lease_held", ""},
		{"a timer under a stale epoch", "timers.arm", `{` + run1 + `,"epoch":99,"batch_id":"b","timer_id":"t","after_ms":1}`, 409, "fenced", ""},
		{"a timer under no epoch at all", "timers.arm", `{` + run1 + `,"epoch":-1,"batch_id":"b","timer_id":"t","after_ms":1}`, 400, "invalid", "epoch"},
		{"cancelling a deadline", "timers.cancel", `{"run_id":"free","batch_id":"b","timer_id":"$wait/x"}`, 400, "invalid", "timer_id"},
		{"cancelling without the lease's epoch", "timers.cancel", `{` + run1 + `,"batch_id":"b","timer_id":"t"}`, 409, "lease_held", ""},
		{"cancelling for too many words", "timers.cancel", `{"run_id":"free","batch_id":"b","timer_id":"t","reason":"` + strings.Repeat("x", 513) + `"}`, 413, "too_large", "reason"},
		{"cancelling a timer of an unknown run", "timers.cancel", `{"run_id":"nobody","batch_id":"b","timer_id":"t"}`, 404, "not_found", ""},
		{"timers of nothing", "timers.list", `{}`, 400, "invalid", "workflow_id"},
		{"timers of a workflow and a run", "timers.list", `{"workflow_id":"w","run_id":"run-1"}`, 400, "invalid", "workflow_id"},
		{"timers of a class that is not built", "timers.list", `{"workflow_id":"w","class":"tick"}`, 400, "invalid", "class"},
		{"too many timers", "timers.list", `{"workflow_id":"w","limit":1001}`, 413, "too_large", "limit"},
		{"timers' cursor of something else", "timers.list", `{"workflow_id":"w","cursor":"%%%"}`, 400, "invalid", "cursor"},
		{"a record with a timer for two times", "runs.append", timed(`"kind":"timer.started","data":{"timer_id":"t","fire_at":"2030-01-01T00:00:00Z","after":5}`), 400, "invalid", "data.fire_at"},
		{"a record with a timer for no time", "runs.append", timed(`"kind":"timer.started","data":{"timer_id":"t"}`), 400, "invalid", "data.fire_at"},
		{"a record with a timer for a negative time", "runs.append", timed(`"kind":"timer.started","data":{"timer_id":"t","after":-1}`), 400, "invalid", "data.after"},
		{"a record with a timer of the plane's own", "runs.append", timed(`"kind":"timer.started","data":{"timer_id":"$t","after":1}`), 400, "invalid", "data.timer_id"},
		{"a record with a wait for two deadlines", "runs.append", timed(`"kind":"wait.registered","effect":"e","data":{"type":"t","keys":[],"deadline":"2030-01-01T00:00:00Z","deadline_after":5}`), 400, "invalid", "data.deadline"},
		{"a record with a wait for more than 100 years", "runs.append", timed(`"kind":"wait.registered","effect":"e","data":{"type":"t","keys":[],"deadline_after":3153600000000001}`), 400, "invalid", "data.deadline_after"},
		{"a record that fires what was never armed", "runs.append", timed(`"kind":"timer.fired","data":{"timer_id":"t","armed_seq":1}`), 409, "conflict", ""},
		{"a record that cancels what was never armed", "runs.append", timed(`"kind":"timer.cancelled","data":{"timer_id":"t","armed_seq":1}`), 409, "conflict", ""},
		{"a record that reopens", "runs.append", timed(`"kind":"run.reopened","data":{"superseded":[]}`), 400, "invalid", ""},
		{"reopening a running run", "runs.reopen", `{"run_id":"free","batch_id":"b"}`, 409, "conflict", ""},
		{"reopening a completed run", "runs.reopen", `{"run_id":"sealed","batch_id":"b"}`, 409, "conflict", ""},
		{"reopening an unknown run", "runs.reopen", `{"run_id":"nobody","batch_id":"b"}`, 404, "not_found", ""},
		{"reopening without a batch", "runs.reopen", `{"run_id":"sealed"}`, 400, "invalid", "batch_id"},
		{"reopening now", "runs.reopen", `{"run_id":"sealed","batch_id":"b","now":true}`, 400, "invalid", "now"},
		{"a pool that is none", "shards.list", `{"pool":"swim"}`, 400, "invalid", "pool"},
		{"a limit of shards", "shards.list", `{"limit":7}`, 400, "invalid", "limit"},
	}...)
}

// timed is an append of one record to run-1.
func timed(record string) string {
	return `{` + run1 + `,"epoch":1,"expected_seq":2,"batch_id":"b","records":[{` + record + `}]}`
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d":1,`, i)
	}
	return `{` + strings.TrimSuffix(b.String(), ",") + `}`
}

func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"namespace":"n","value":"%d"},`, i)
	}
	return strings.TrimSuffix(b.String(), ",")
}

func TestBadRequestsAreRefusedOverBothDoorsAndLeaveNothing(t *testing.T) {
	n := nodetest.Start(t)
	for _, d := range doors(t, n) {
		tenant := "bad-" + d.name()
		prepareBad(t, d, tenant)
		before := everything(t, d, tenant)
		for _, c := range slices.Concat(badRequests, badDues()) {
			t.Run(d.name()+"/"+c.name, func(t *testing.T) {
				if d.name() == "nats" && len(c.body) > 8<<20 {
					t.Log("over what one NATS message carries: refused by the connection itself")
					return
				}
				r := refused(t, d, tenant, c.verb, c.body, c.status, c.code)
				if field := `"field":"` + c.field + `"`; c.field != "" && !strings.Contains(string(r.body), field) {
					t.Errorf("does not name its field %s: %s", c.field, r.body)
				}
				if len(r.body) > 2000 {
					t.Errorf("an error of %d bytes", len(r.body))
				}
			})
		}
		if after := everything(t, d, tenant); after != before {
			t.Errorf("%s: refused requests left something:\nbefore %s\nafter  %s", d.name(), before, after)
		}
		match(t, `{"verdict":"ok","reasons":[]}`, ok(t, d, tenant, "system.check", ""))
	}
}

func prepareBad(t *testing.T, d door, tenant string) {
	t.Helper()
	tell(t, d, tenant, []step{
		{"runs.start", `{"workflow_id":"w","run_id":"run-1","type":"order"}`, `"<any>"`},
		{"runs.acquire", `{` + run1 + `,"owner":"pod","acquire_id":"a","ttl_ms":3600000}`, `"<any>"`},
		{"runs.await", `{` + run1 + `,"epoch":1,"effect":"open","type":"t","keys":[]}`, `"<any>"`},
		{"runs.start", `{"workflow_id":"s","run_id":"sealed","type":"order"}`, `"<any>"`},
		{"runs.conclude", `{"run_id":"sealed","expected_seq":1,"batch_id":"end","outcome":"completed"}`, `"<any>"`},
		{"runs.start", `{"workflow_id":"f","run_id":"free","type":"order"}`, `"<any>"`},
	})
}

// everything is what a tenant's lists and histories say, without what only time changes.
func everything(t *testing.T, d door, tenant string) string {
	t.Helper()
	var all strings.Builder
	for _, q := range []struct{ verb, body string }{
		{"runs.count", `{}`},
		{"waits.list", `{}`},
		{"timers.list", `{"workflow_id":"w"}`},
		{"timers.list", `{"workflow_id":"f"}`},
		{"runs.chain", `{"workflow_id":"w"}`},
		{"runs.history", `{"workflow_id":"w"}`},
		{"runs.history", `{"workflow_id":"s"}`},
		{"runs.history", `{"workflow_id":"f"}`},
	} {
		all.Write(ok(t, d, tenant, q.verb, q.body))
	}
	for _, id := range []string{`{"source":"urn:psp","id":"p-1"}`, `{"source":"s","id":"1"}`} {
		refused(t, d, tenant, "events.get", id, 404, "not_found")
	}
	return all.String()
}

// HI-47: what is no tenant's name is refused at every door; over NATS a name with a dot is a subject that nobody serves.
func TestTenantsOfOtherShapesAreRefused(t *testing.T) {
	n := nodetest.Start(t)
	web, requests := newHTTPDoor(t, n, ""), natsDoor{nodetest.NATS(t, n.NATSURL)}
	for _, tenant := range []string{"a.b", "match", "push", "timer", "tick", "note", "a%20b", "%C3%A4", "a%00", "a%2Fb", "%2E%2E"} {
		for _, path := range []string{tenant + "/system.info", tenant + "/events"} {
			checkRefused(t, web.post(t, path, []byte(`{}`), nil), 400, "invalid")
		}
	}
	long := strings.Repeat("x", 65)
	checkRefused(t, web.post(t, long+"/system.info", nil, nil), 400, "invalid")
	refused(t, requests, long, "system.info", "", 400, "invalid")
	for _, tenant := range []string{"match", "note", "ä", "a=b"} {
		refused(t, requests, tenant, "system.info", "", 400, "invalid")
	}
	_, err := requests.nc.Request("rdv.a.b.api.system.info", nil, nodetest.Patience)
	if err == nil || err.Error() != nats.ErrNoResponders.Error() {
		t.Errorf("a tenant with a dot over NATS: %v, want %v", err, nats.ErrNoResponders)
	}
}

func TestHTTPRefusesWhatIsNoCall(t *testing.T) {
	d := newHTTPDoor(t, nodetest.Start(t), "")
	for _, path := range []string{"acme", "acme/", "acme/system.info/more", ""} {
		r := d.post(t, path, nil, nil)
		checkRefused(t, r, 404, "not_found")
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.base+"acme/system.info", nil)
	must(t, err)
	resp, err := d.client.Do(req)
	must(t, err)
	must(t, resp.Body.Close())
	if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != http.MethodPost {
		t.Errorf("GET: %d, Allow %q", resp.StatusCode, resp.Header.Get("Allow"))
	}
	checkRefused(t, d.post(t, "acme/events.put", make([]byte, 33<<20), nil), 413, "too_large")
	checkRefused(t, d.post(t, "acme/events", make([]byte, 33<<20), nil), 413, "too_large")
}

// One bad event is refused alone; EV-11 for the plane's own names, EV-8 and EV-9 for the limits, I2 for other content.
func TestABadEventIsRefusedAlone(t *testing.T) {
	n := nodetest.Start(t)
	event := func(members string) string {
		return `{"specversion":"1.0","source":"urn:a","type":"t",` + members + `}`
	}
	events := []string{
		event(`"id":"good-1"`),
		event(`"id":"good-1","data":1`),
		`{"specversion":"1.0","id":"own-type","source":"urn:a","type":"rendezvous.answered"}`,
		`{"specversion":"1.0","id":"own-source","source":"rendezvous:plane","type":"t"}`,
		event(`"id":"nul\u0000"`),
		event(`"id":"big","data":"` + strings.Repeat("x", 1<<20) + `"`),
		event(`"id":"keys","rdvkeys":"` + strings.Repeat("k=1,", 16) + `k"`),
		event(`"id":"upper","Extension":"x"`),
		event(`"id":"twice","id":"again"`),
		event(`"id":"for-nobody","rdvrun":"nobody"`),
		event(`"id":"for-sealed","rdvrun":"sealed"`),
		`{"specversion":"1.0","id":"for-busy","source":"urn:a","type":"other","rdvrun":"run-1"}`,
		event(`"id":"late","expirytime":"` + `2999-01-01T00:00:00Z"`),
		event(`"id":"good-2"`),
	}
	want := []string{
		"accepted", "conflict conflict", "rejected invalid", "rejected invalid", "rejected invalid", "rejected too_large", "rejected invalid", "rejected invalid",
		"rejected invalid", "rejected not_found", "rejected sealed", "rejected not_found", "rejected invalid", "accepted",
	}
	for _, d := range doors(t, n) {
		tenant := "alone-" + d.name()
		prepareBad(t, d, tenant)
		var shape strings.Builder
		for i, w := range want {
			if i > 0 {
				shape.WriteByte(',')
			}
			outcome, code, bad := strings.Cut(w, " ")
			fmt.Fprintf(&shape, `{"source":"<any>","id":"<any>","outcome":%q`, outcome)
			if bad {
				fmt.Fprintf(&shape, `,"error":{"code":%q,"message":"<text>","details?":"<any>"}`, code)
			}
			shape.WriteByte('}')
		}
		match(t, `{"results":[`+shape.String()+`]}`, ok(t, d, tenant, "events.put", `{"events":[`+strings.Join(events, ",")+`]}`))
		for _, id := range []string{"own-type", "big", "keys", "upper", "twice", "again", "for-nobody", "for-sealed", "for-busy", "late"} {
			refused(t, d, tenant, "events.get", `{"source":"urn:a","id":"`+id+`"}`, 404, "not_found")
		}
	}
}

// A payload may nest deeper than a reply may: then it travels in base64, and no history is made unreadable by it.
func TestADeepPayloadKeepsItsHistoryReadable(t *testing.T) {
	n := nodetest.Start(t)
	web := newHTTPDoor(t, n, "")
	deep := strings.Repeat("[", 9_990) + strings.Repeat("]", 9_990)
	h := http.Header{"Ce-Specversion": {"1.0"}, "Ce-Id": {"deep"}, "Ce-Source": {"urn:a"}, "Ce-Type": {"t"}, "Content-Type": {"application/json"}, "Ce-Rdvkeys": {"k=1"}}
	match(t, `{"results":[{"source":"urn:a","id":"deep","outcome":"accepted"}]}`, web.post(t, "acme/events", []byte(deep), h).body)
	ok(t, web, "acme", "runs.start", `{"workflow_id":"w","run_id":"r","type":"t"}`)
	for _, d := range doors(t, n) {
		match(t, `{"answered":{"seq":3,"run_id":"r","kind":"wait.answered","effect":"e","data":"<any>","source":"urn:a","recorded_at":"<time>",
			"payload":{"data_base64":"<text>","content_type":"application/json"}},"seq":3}`,
			ok(t, d, "acme", "runs.await", `{"run_id":"r","effect":"e","type":"t","keys":[{"namespace":"k","value":"1"}]}`))
	}
}

// EV-12: while the store is away nothing is accepted, and what is sent again afterwards is New.
func TestAStoreThatIsAwayIsUnavailableAndNothingIsAccepted(t *testing.T) {
	var faults *fault.Backend
	n := nodetest.Start(t, withFaults(&faults))
	away := faults.Arm(fault.Failure{Point: fault.AtCall, Call: 1, Times: -1, Err: rendezvous.Errorf(rendezvous.CodeUnavailable, "the store is away")})
	requests := []struct{ verb, body string }{
		{"events.put", `{"events":[` + payment + `]}`},
		{"events.get", `{"source":"urn:psp","id":"p-1"}`},
		{"runs.start", `{"workflow_id":"w","run_id":"run-1","type":"order"}`},
		{"runs.get", `{"run_id":"run-1"}`},
		{"runs.await", `{` + run1 + `,"effect":"e","type":"t","keys":[]}`},
	}
	both := doors(t, n)
	for _, d := range both {
		for _, q := range requests {
			r := refused(t, d, "away-"+d.name(), q.verb, q.body, 503, "unavailable")
			if d.name() == "http" && r.header["Retry-After"] == nil {
				t.Errorf("%s: 503 without Retry-After", q.verb)
			}
		}
	}
	r := both[0].(httpDoor).post(t, "away-http/events", []byte(payment), http.Header{"Content-Type": {"application/cloudevents+json"}})
	checkRefused(t, r, 503, "unavailable")
	away.Disarm()
	for _, d := range both {
		match(t, `{"results":[{"source":"urn:psp","id":"p-1","outcome":"accepted"}]}`, ok(t, d, "away-"+d.name(), "events.put", requests[0].body))
	}
}

// EV-13: a commit whose answer was lost is told as unknown; sent again it is a duplicate, and one row.
func TestALostCommitIsToldAsUnknown(t *testing.T) {
	var faults *fault.Backend
	n := nodetest.Start(t, withFaults(&faults))
	for _, d := range doors(t, n) {
		faults.Arm(fault.Failure{Verb: "buffer_batch", Point: fault.AfterCommit})
		refused(t, d, "lost-"+d.name(), "events.put", `{"events":[`+payment+`]}`, 503, "commit_unknown")
		match(t, `{"results":[{"source":"urn:psp","id":"p-1","outcome":"duplicate","state":"live"}]}`,
			ok(t, d, "lost-"+d.name(), "events.put", `{"events":[`+payment+`]}`))
	}
}

// withFaults puts a node's store behind failures.
func withFaults(faults **fault.Backend) func(*node.Config) {
	return func(c *node.Config) {
		c.Wrap = wrapWith(faults)
	}
}

// What fails in a way that no error of the contract describes is logged and leaves as unavailable, without its text.
func TestForeignErrorsStayInside(t *testing.T) {
	var faults *fault.Backend
	n := nodetest.Start(t, withFaults(&faults))
	for _, d := range doors(t, n) {
		faults.Arm(fault.Failure{Verb: "lookup_event", Point: fault.AtCall, Call: 1, Err: context.DeadlineExceeded})
		r := refused(t, d, "acme", "events.get", `{"source":"urn:psp","id":"p-1"}`, 503, "unavailable")
		if strings.Contains(string(r.body), "deadline") {
			t.Errorf("the foreign text went out: %s", r.body)
		}
	}
}

// What cloudevents and wire write as data is no deeper than any request may be, so no payload is refused for how it was written.
func TestTheDeepestPayloadWrittenAsDataIsTaken(t *testing.T) {
	n := nodetest.Start(t)
	for i, d := range doors(t, n) {
		for _, depth := range []int{900, 989, 990, 991, 997, 998, 999, 1000, 1001} {
			deep := []byte(strings.Repeat("[", depth) + strings.Repeat("]", depth))
			id := fmt.Sprintf("%d-%d", i, depth)
			event, err := cloudevents.Encode(rendezvous.Event{
				EventID: rendezvous.EventID{Source: "urn:a", ID: id}, Type: "t", ContentType: "application/json", Payload: deep,
			}, "")
			must(t, err)
			match(t, `{"results":[{"source":"urn:a","id":"`+id+`","outcome":"accepted"}]}`, ok(t, d, "acme", "events.put", `{"events":[`+string(event)+`]}`))
			input, err := json.Marshal(wire.PayloadOf(deep, "application/json"))
			must(t, err)
			ok(t, d, "acme", "runs.start", `{"workflow_id":"w-`+id+`","type":"t","input":`+string(input)+`}`)
		}
	}
}
