package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous/client/receiver"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/wire"
)

const (
	signingKey = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	givenKey   = "cGxhbnRlZC0xMjM0NTY3ODkwMTIzNDU2Nzg5MA=="
)

// granting lets callers register at that host; nobody delivers.
func granting(hosts ...string) func(*node.Config) {
	return func(c *node.Config) { c.Targets, c.Push = node.Targets{CallerHosts: hosts}, nil }
}

const (
	hookOptions = `"projection":"cloudevents","include_payload":false,"follow":"run","timeout_ms":15000,"max_attempts":64,"on_reject_limit":8,"trace":false`
	hookRow     = `"run_id":"run-1","workflow_id":"w","namespace":"caller","created_at":"<time>","attempts":0`
	hook        = hookRow + `,"id":"hook","url":"https://example.org/in?key=1","token_set":true,"auth":{"kind":"scheme","scheme":"Bearer"},"headers":["X-Shop"],` +
		`"events":["run.completed"],` + hookOptions + `,"signing":[{"key_id":"<text>","algorithm":"v1","created_at":"<time>"}]`
	byAnn = `"operator":{"actor":"ann"},"reason":"maintenance"`
)

// webhooks is a registration from its making to its end, every reply in its shape. Nobody delivers meanwhile.
var webhooks = []step{
	{
		"runs.start", `{"workflow_id":"w","run_id":"run-1","type":"order","push":[{"url":"https://example.org/all"}]}`,
		`{"workflow_id":"w","run_id":"run-1","head_seq":1,"first":true,"status":"running"}`,
	},
	{
		"push.put", `{"run_id":"run-1","id":"hook","url":"https://example.org/in?key=1","token":"planted-token","auth":{"scheme":"Bearer","credentials":"planted-credentials"},
			"headers":[{"name":"X-Shop","value":"planted-header"}],"signing":[{"key":"` + signingKey + `"}],"events":["run.completed"],"next_seq":1}`,
		`{` + hook + `,"version":1,"attempt_no":0,"state":"live","cursor":{"next_seq":1,"next_index":0},"next_attempt_at":"<time>","created":true}`,
	},
	{"push.get", `{"run_id":"run-1","id":"hook"}`, `{` + hook + `,"version":1,"attempt_no":0,"state":"live","cursor":{"next_seq":1,"next_index":0},"next_attempt_at":"<time>"}`},
	{
		"push.get", `{"run_id":"run-1"}`, `{` + hookRow + `,"id":"push-run-1","url":"https://example.org/all","token_set":false,"events":"<any>",` + hookOptions +
			`,"version":1,"attempt_no":0,"state":"live","cursor":{"next_seq":1,"next_index":0},"next_attempt_at":"<time>"}`,
	},
	{"push.list", `{"run_id":"run-1"}`, `{"registrations":["<any>","<any>"]}`},
	{"push.parked", `{}`, `{"registrations":[]}`},
	{"push.park", `{"run_id":"run-1","id":"hook",` + byAnn + `,"op":"p1"}`, `{"outcome":"parked"}`},
	{
		"push.parked", `{"filter":{"reason":"operator","gate":"https://example.org:443"},"limit":10}`,
		`{"registrations":[{` + hook + `,"version":1,"attempt_no":0,"state":"parked","cursor":{"next_seq":1,"next_index":0},"parked_at":"<time>","reason":"operator","error":"ann: maintenance"}]}`,
	},
	{"push.skip", `{"run_id":"run-1","id":"hook","seq":1,` + byAnn + `,"op":"s1"}`, `{"outcome":"skipped","cursor":{"next_seq":2,"next_index":0}}`},
	{"push.skip", `{"run_id":"run-1","id":"hook","seq":1,` + byAnn + `,"op":"s1"}`, `{"outcome":"skipped","cursor":{"next_seq":2,"next_index":0}}`},
	{
		"push.attempts", `{"run_id":"run-1","id":"hook","limit":5}`,
		`{"attempts":[{"attempt_no":1,"seq":1,"at":"<time>","outcome":"skipped","actor":"ann","reason":"maintenance"}]}`,
	},
	{"push.unpark", `{"run_id":"run-1","id":"hook",` + byAnn + `,"op":"u1"}`, `{"unparked":true}`},
	{"push.unpark", `{"run_id":"run-1","id":"hook",` + byAnn + `,"op":"u1"}`, `{"unparked":true}`},
	{"push.unpark", `{"run_id":"run-1","id":"hook",` + byAnn + `,"op":"u2"}`, `{"unparked":false}`},
	{"push.unpark", `{"run_id":"run-1","id":"nobody","op":"u3"}`, `{"unparked":false}`},
	{"push.park", `{"run_id":"run-1","id":"hook"}`, `{"outcome":"parked"}`},
	{"push.unpark_many", `{"filter":{"reason":"gone"},` + byAnn + `}`, `{"count":0,"more":false}`},
	{"push.unpark_many", `{"filter":{"reason":"operator"},"spread_ms":1000,"limit":5,` + byAnn + `}`, `{"count":1,"more":false}`},
	{
		"push.rotate", `{"run_id":"run-1","id":"hook","grace_ms":60000,"op":"r1"}`,
		`{"key_id":"<text>","algorithm":"v1","created_at":"<time>","key":"<text>","version":2}`,
	},
	{
		"push.rotate", `{"run_id":"run-1","id":"hook","grace_ms":60000,"op":"r1"}`,
		`{"key_id":"<text>","algorithm":"v1","created_at":"<time>","key":"<text>","version":2,"again":true}`,
	},
	{"push.delete", `{"run_id":"run-1","id":"hook"}`, `{"outcome":"deleted"}`},
	{"push.delete", `{"run_id":"run-1","id":"hook"}`, `{"outcome":"deleted"}`},
}

// PU-3, PU-13, PU-23, PU-24: the verbs of registrations in their shapes through both doors, and again as after a lost reply.
func TestPushVerbsAnswerInTheirShapes(t *testing.T) {
	n := nodetest.Start(t, granting("example.org"))
	for _, d := range doors(t, n) {
		t.Run(d.name(), func(t *testing.T) { tell(t, d, "hooks-"+d.name(), webhooks) })
	}
}

// pushRefusals are the bad requests about registrations, by the field that is wrong. The run run-1 has a registration "hook", at version 1 and not parked.
var pushRefusals = []refusal{
	{"PU-3 unknown run", "push.put", `{"run_id":"nobody","url":"https://example.org/"}`, 404, "not_found", ""},
	{"PU-5 id of 129 bytes", "push.put", `{` + run1 + `,"id":"` + strings.Repeat("x", 129) + `","url":"https://example.org/"}`, 400, "invalid", "id"},
	{"PU-5 control character", "push.put", `{` + run1 + `,"id":"a\u0007","url":"https://example.org/"}`, 400, "invalid", "id"},
	{"PU-5 an operator's id", "push.put", `{` + run1 + `,"id":"Operator:x","url":"https://example.org/"}`, 401, "unauthorized", "id"},
	{"PU-7 scheme", "push.put", `{` + run1 + `,"url":"https://example.org/","auth":{"scheme":"Be arer","credentials":"planted"}}`, 400, "invalid", "auth.scheme"},
	{"PU-7 line break in credentials", "push.put", `{` + run1 + `,"url":"https://example.org/","auth":{"scheme":"Bearer","credentials":"planted\r\nX: y"}}`, 400, "invalid", "auth.credentials"},
	{"PU-7 line break in the token", "push.put", `{` + run1 + `,"url":"https://example.org/","token":"planted\n"}`, 400, "invalid", "token"},
	{"PU-7 token that is no text", "push.put", `{` + run1 + `,"url":"https://example.org/","token":7411}`, 400, "invalid", "token"},
	{"PU-7 reserved header", "push.put", `{` + run1 + `,"url":"https://example.org/","headers":[{"name":"WEBHOOK-id","value":"planted"}]}`, 400, "invalid", "headers"},
	{"PU-7 names equal but for case", "push.put", `{` + run1 + `,"url":"https://example.org/","headers":[{"name":"A","value":"1"},{"name":"a","value":"1"}]}`, 400, "invalid", "headers"},
	{"PU-7 17 headers", "push.put", `{` + run1 + `,"url":"https://example.org/","headers":[` + manyHeaders(17) + `]}`, 400, "invalid", "headers"},
	{"credentials without scheme", "push.put", `{` + run1 + `,"url":"https://example.org/","auth":{"credentials":"planted"}}`, 400, "invalid", "auth.scheme"},
	{"auth that says nothing", "push.put", `{` + run1 + `,"url":"https://example.org/","auth":{}}`, 400, "invalid", "auth"},
	{"auth of two kinds", "push.put", `{` + run1 + `,"url":"https://example.org/","auth":{"scheme":"Bearer","credentials":"c","username":"u","password":"p"}}`, 400, "invalid", "auth"},
	{"short key", "push.put", `{` + run1 + `,"url":"https://example.org/","signing":[{"key":"whsec_c2hvcnQ="}]}`, 400, "invalid", "signing"},
	{"unknown kind", "push.put", `{` + run1 + `,"url":"https://example.org/","events":["run.danced"]}`, 400, "invalid", "events"},
	{"timeout", "push.put", `{` + run1 + `,"url":"https://example.org/","timeout_ms":30001}`, 400, "invalid", "timeout_ms"},
	{"timeout that overflows", "push.put", `{` + run1 + `,"url":"https://example.org/","timeout_ms":9223372036854775807}`, 400, "invalid", "timeout_ms"},
	{"max_attempts", "push.put", `{` + run1 + `,"url":"https://example.org/","max_attempts":1001}`, 400, "invalid", "max_attempts"},
	{"next_seq above the head", "push.put", `{` + run1 + `,"url":"https://example.org/","next_seq":3}`, 400, "invalid", "next_seq"},
	{"S2 follow", "push.put", `{` + run1 + `,"url":"https://example.org/","follow":"chain"}`, 400, "invalid", "follow"},
	{"S2 rate", "push.put", `{` + run1 + `,"url":"https://example.org/","rate_per_minute":60}`, 400, "invalid", "rate_per_minute"},
	{"S2 handshake", "push.put", `{` + run1 + `,"url":"https://example.org/","handshake":"required"}`, 400, "invalid", "handshake"},
	{"S2 rate of an update", "push.put", `{` + run1 + `,"id":"hook","fields":["token"],"rate_per_minute":60}`, 400, "invalid", "rate_per_minute"},
	{"PU-9 another version", "push.put", `{` + run1 + `,"id":"hook","url":"https://example.org/","if_version":7}`, 409, "conflict", ""},
	{"PU-9 update of none", "push.put", `{` + run1 + `,"id":"nobody","fields":["url"],"url":"https://example.org/"}`, 404, "not_found", ""},
	{"update of an unknown field", "push.put", `{` + run1 + `,"id":"hook","fields":["run_id"]}`, 400, "invalid", "fields"},
	{"PU-13 inline naming a run", "runs.start", `{"run_id":"fresh","type":"t","push":[{"run_id":"fresh","url":"https://example.org/"}]}`, 400, "invalid", "run_id"},
	{"PU-13 inline bad auth", "runs.start", `{"run_id":"fresh","type":"t","push":[{"url":"https://example.org/","auth":{"scheme":"Bearer","credentials":" "}}]}`, 400, "invalid", "auth.credentials"},
	{"PU-13 inline host", "runs.start", `{"run_id":"fresh","type":"t","push":[{"url":"https://example.net/"}]}`, 400, "invalid", "url"},
	{"absent", "push.get", `{` + run1 + `,"id":"nobody"}`, 404, "not_found", ""},
	{"park of none", "push.park", `{` + run1 + `,"id":"nobody"}`, 404, "not_found", ""},
	{"skip of none", "push.skip", `{` + run1 + `,"id":"nobody","seq":1}`, 404, "not_found", ""},
	{"PU-24 skip of a live one", "push.skip", `{` + run1 + `,"id":"hook","seq":1}`, 409, "conflict", ""},
	{"reason too long", "push.park", `{` + run1 + `,"id":"hook","reason":"` + strings.Repeat("x", 513) + `"}`, 413, "too_large", "reason"},
	{"operator with no name", "push.park", `{` + run1 + `,"id":"hook","operator":{"actor":""}}`, 400, "invalid", "operator.actor"},
	{"grace", "push.rotate", `{` + run1 + `,"id":"hook","op":"o","grace_ms":604800001}`, 400, "invalid", "grace_ms"},
	{"rotation without a name", "push.rotate", `{` + run1 + `,"id":"hook"}`, 400, "invalid", "op"},
	{"spread", "push.unpark_many", `{"spread_ms":-1}`, 400, "invalid", "spread_ms"},
	{"cursor", "push.attempts", `{` + run1 + `,"id":"hook","cursor":"x"}`, 400, "invalid", "cursor"},
	{"PU-87 http", "push.put", `{` + run1 + `,"url":"http://example.org/secret-path"}`, 400, "invalid", "url"},
	{"PU-87 userinfo", "push.put", `{` + run1 + `,"url":"https://u:planted@example.org/"}`, 400, "invalid", "url"},
	{"PU-87 fragment", "push.put", `{` + run1 + `,"url":"https://example.org/#planted"}`, 400, "invalid", "url"},
	{"PU-87 port", "push.put", `{` + run1 + `,"url":"https://example.org:8080/"}`, 400, "invalid", "url"},
	{"PU-87 hex address", "push.put", `{` + run1 + `,"url":"https://0x7f.1/"}`, 400, "invalid", "url"},
	{"PU-85 another host", "push.put", `{` + run1 + `,"url":"https://example.net/secret-path"}`, 400, "invalid", "url"},
	{"PU-85 subdomain", "push.put", `{` + run1 + `,"url":"https://a.example.org/"}`, 400, "invalid", "url"},
	{"PU-85 token endpoint", "push.put", `{` + run1 + `,"url":"https://example.org/","auth":{"oauth2":{"token_url":"https://example.net/t","client_id":"c","client_secret":"planted"}}}`, 400, "invalid", "auth.oauth2.token_url"},
	{"PU-88 loopback", "push.put", `{` + run1 + `,"url":"https://127.0.0.1/"}`, 400, "invalid", "url"},
}

func manyHeaders(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"name":"X-%d","value":"v"}`, i))
	}
	return strings.Join(list, ",")
}

// PU-3, PU-5, PU-7, PU-8, PU-9, PU-13, PU-24, PU-85, PU-87, PU-88 at the door: refused with the field, and with nothing of a secret or a path.
func TestBadRequestsAboutRegistrationsAreRefused(t *testing.T) {
	n := nodetest.Start(t, granting("example.org"))
	for _, d := range doors(t, n) {
		t.Run(d.name(), func(t *testing.T) {
			ok(t, d, d.name(), "runs.start", `{"workflow_id":"w","run_id":"run-1","type":"t"}`)
			ok(t, d, d.name(), "push.put", `{`+run1+`,"id":"hook","url":"https://example.org/"}`)
			for _, c := range pushRefusals {
				r := refused(t, d, d.name(), c.verb, c.body, c.status, c.code)
				var e wire.ErrorBody
				must(t, json.Unmarshal(r.body, &e))
				if c.field != "" && e.Error.Details["field"] != c.field {
					t.Errorf("%s: field %v, want %s: %s", c.name, e.Error.Details["field"], c.field, r.body)
				}
				if text := string(r.body); strings.Contains(text, "planted") || strings.Contains(text, "secret-path") || strings.Contains(text, "7411") {
					t.Errorf("%s: the refusal tells what it refuses: %s", c.name, text)
				}
			}
			refused(t, d, d.name(), "runs.get", `{"run_id":"fresh"}`, 404, "not_found") // PU-13: nothing was started
			match(t, `{"registrations":["<any>"]}`, ok(t, d, d.name(), "push.list", `{`+run1+`}`))
		})
	}
}

// PU-85: where no host is granted nobody registers, and the refusal names the setting.
func TestPU85TheRefusalNamesTheSetting(t *testing.T) {
	for _, d := range doors(t, nodetest.Start(t, granting())) {
		ok(t, d, d.name(), "runs.start", `{"run_id":"run-1","type":"t"}`)
		r := refused(t, d, d.name(), "push.put", `{`+run1+`,"url":"https://example.org/"}`, 400, "invalid")
		if !strings.Contains(string(r.body), "push.caller_hosts") || !strings.Contains(string(r.body), `"rule":"host_not_granted"`) {
			t.Errorf("%s", r.body)
		}
	}
}

// PU-86: a grant matches Unicode and punycode, upper case and a trailing dot.
func TestPU86InternationalGrants(t *testing.T) {
	d := doors(t, nodetest.Start(t, granting("bücher.example")))[0]
	ok(t, d, "acme", "runs.start", `{"run_id":"run-1","type":"t"}`)
	for i, host := range []string{"bücher.example", "xn--bcher-kva.example", "BÜCHER.Example", "bücher.example."} {
		ok(t, d, "acme", "push.put", fmt.Sprintf(`{%s,"id":"%d","url":"https://%s/"}`, run1, i, host))
	}
}

// PU-4: the eleventh of a run is too_large, of twelve at once exactly ten succeed, and replacing one at the cap works.
func TestPU4TheEleventhRegistration(t *testing.T) {
	d := newHTTPDoor(t, nodetest.Start(t, granting("example.org")), "")
	ok(t, d, "acme", "runs.start", `{"run_id":"run-1","type":"t"}`)
	var all sync.WaitGroup
	replies := make([]reply, 12)
	for i := range replies {
		all.Go(func() {
			replies[i] = d.call(t, "acme", "push.put", fmt.Sprintf(`{%s,"id":"%d","url":"https://example.org/"}`, run1, i))
		})
	}
	all.Wait()
	put, held := 0, ""
	for i, r := range replies {
		if r.status == http.StatusOK {
			put, held = put+1, fmt.Sprint(i)
			continue
		}
		checkRefused(t, r, 413, "too_large")
		var e wire.ErrorBody
		must(t, json.Unmarshal(r.body, &e))
		if e.Error.Details["limit"] != 10.0 {
			t.Errorf("limit %v", e.Error.Details["limit"])
		}
	}
	if put != 10 {
		t.Errorf("%d of 12 succeeded, not 10", put)
	}
	ok(t, d, "acme", "push.put", `{`+run1+`,"id":"`+held+`","url":"https://example.org/other"}`)
}

// PU-8, PU-9: an update of the url keeps token and keys, a whole put without a token removes it; no reply shows a secret, but the one in which a key was generated.
func TestPU9UpdatesAndPU8Secrets(t *testing.T) {
	for _, d := range doors(t, nodetest.Start(t, granting("example.org"))) {
		seen := ""
		call := func(verb, body string) wire.PushPut {
			raw := ok(t, d, d.name(), verb, body)
			seen += string(raw)
			var p wire.PushPut
			must(t, json.Unmarshal(raw, &p))
			return p
		}
		call("runs.start", `{"run_id":"run-1","type":"t"}`)
		call("push.put", `{`+run1+`,"url":"https://example.org/","token":"planted-1","auth":{"username":"shop","password":"planted-2"},"headers":[{"name":"X-A","value":"planted-3"}],"signing":[{"key":"`+signingKey+`"}]}`)
		p := call("push.put", `{`+run1+`,"fields":["url"],"url":"https://example.org/new","if_version":1}`)
		if !p.TokenSet || len(p.Signing) != 1 || p.URL != "https://example.org/new" || p.Version != 2 || p.Auth == nil || len(p.Headers) != 1 {
			t.Errorf("after an update of the url: %+v", p)
		}
		r := refused(t, d, d.name(), "push.put", `{`+run1+`,"fields":["url"],"url":"https://example.org/","if_version":1}`, 409, "conflict")
		if !strings.Contains(string(r.body), `"version":2`) {
			t.Errorf("the conflict does not tell the version: %s", r.body)
		}
		if p := call("push.put", `{`+run1+`,"url":"https://example.org/new"}`); p.TokenSet || len(p.Signing) != 0 || p.Auth != nil {
			t.Errorf("after a whole put: %+v", p)
		}
		call("push.put", `{`+run1+`,"url":"https://example.org/","token":"planted-1","signing":[{"key":"`+signingKey+`"}]}`)
		var made wire.PushRotated
		must(t, json.Unmarshal(ok(t, d, d.name(), "push.rotate", `{`+run1+`,"algorithm":"v1a","op":"r"}`), &made))
		call("push.get", `{`+run1+`}`)
		call("push.list", `{`+run1+`}`)
		call("push.rotate", `{`+run1+`,"key":"whsec_`+givenKey+`","op":"given"}`)
		for _, secret := range []string{"planted", signingKey[6:], made.Key.Reveal(), givenKey, "[secret]"} {
			if secret == "" || strings.Contains(seen, secret) {
				t.Errorf("%s: %q is in the replies: %s", d.name(), secret, seen)
			}
		}
		if text := fmt.Sprintf("%v %+v %#v %s", made, made, made, made.Key); strings.Contains(text, made.Key.Reveal()) {
			t.Errorf("a printed reply shows its key: %s", text)
		}
	}
}

// api.md section 4, PU-13: without the right nobody registers, nor starts a run that does; nothing is stored. Operators' destinations are operators' to change.
func TestPU13TheRightPush(t *testing.T) {
	n := nodetest.Start(t, withTokens(t, tokenFile), granting("example.org"))
	executor, pushing, operator := newHTTPDoor(t, n, "executor-of-acme-0001"), newHTTPDoor(t, n, "pushing-for-acme-0001"), newHTTPDoor(t, n, "operator-of-acme-0001")
	start := `{"run_id":"run-1","type":"t","push":[{"url":"https://example.org/"}]}`
	refused(t, executor, "acme", "runs.start", start, 401, "unauthorized")
	refused(t, executor, "acme", "runs.get", `{`+run1+`}`, 404, "not_found")
	ok(t, pushing, "acme", "runs.start", start)
	match(t, `{"registrations":["<any>"]}`, ok(t, pushing, "acme", "push.list", `{`+run1+`}`))
	for _, verb := range []string{"push.delete", "push.park", "push.unpark"} {
		refused(t, pushing, "acme", verb, `{`+run1+`,"id":"operator:crm"}`, 401, "unauthorized")
	}
	ok(t, operator, "acme", "push.delete", `{`+run1+`,"id":"operator:crm"}`)
	refused(t, operator, "acme", "push.put", `{`+run1+`,"id":"operator:crm","url":"https://example.org/"}`, 401, "unauthorized")
}

// delivered is a receiver on loopback that says what it got, and answers what it is told to.
func delivered(t *testing.T, answer func() int) (address string, got <-chan string) {
	t.Helper()
	verifier, err := receiver.New([]string{signingKey})
	must(t, err)
	types := make(chan string, 100)
	server := httptest.NewServer(verifier.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var e struct{ Type string }
		_ = json.Unmarshal(body, &e)
		status := answer()
		w.WriteHeader(status)
		if status == http.StatusOK {
			types <- e.Type
		}
	})))
	t.Cleanup(server.Close)
	return server.URL, types
}

func takesFrom(t *testing.T, got <-chan string, want string) {
	t.Helper()
	timeout := clock.System.NewTimer(nodetest.Patience)
	defer timeout.Stop()
	select {
	case e := <-got:
		if e != want {
			t.Fatalf("the receiver got %s, not %s", e, want)
		}
	case <-timeout.C():
		t.Fatalf("the receiver did not get %s", want)
	}
}

// PU-23, PU-49, PU-93: what a start, a put and an unpark make due goes out without waiting for the poll, which here is ten minutes; signed, to a granted
// receiver on loopback.
func TestPU49PutAndUnparkAreDeliveredAtOnce(t *testing.T) {
	status := make(chan int, 100)
	address, got := delivered(t, func() int {
		select {
		case s := <-status:
			return s
		default:
			return http.StatusOK
		}
	})
	u, err := url.Parse(address)
	must(t, err)
	n := nodetest.Start(t, func(c *node.Config) {
		c.Targets = node.Targets{CallerHosts: []string{u.Hostname()}, DevLoopback: true}
		c.Push.Poll = 10 * time.Minute
	})
	d := doors(t, n)[0]
	registration := `"url":"` + address + `/in","signing":[{"key":"` + signingKey + `"}],"events":["run.started","run.completed"],"max_attempts":1`
	ok(t, d, "acme", "runs.start", `{"run_id":"run-1","workflow_id":"w","type":"t","push":[{`+registration+`}]}`)
	takesFrom(t, got, "rendezvous.run.started")
	ok(t, d, "acme", "push.put", `{`+run1+`,"id":"again","next_seq":1,`+registration+`}`)
	takesFrom(t, got, "rendezvous.run.started")

	ok(t, d, "acme", "push.delete", `{`+run1+`,"id":"again"}`)
	status <- http.StatusInternalServerError
	ok(t, d, "acme", "runs.conclude", `{`+run1+`,"expected_seq":1,"batch_id":"b","outcome":"completed"}`)
	for end := clock.System.Now().Add(nodetest.Patience); ; {
		var p wire.Pushes
		must(t, json.Unmarshal(ok(t, d, "acme", "push.parked", `{}`), &p))
		if len(p.Registrations) == 1 {
			if r := p.Registrations[0]; r.Reason != "exhausted" || r.Cursor.NextSeq != 2 || r.Attempts != 1 || r.Last == nil || r.Last.Status != 500 {
				t.Errorf("parked: %+v", r)
			}
			break
		}
		if clock.System.Now().After(end) {
			t.Fatal("it is not parked")
		}
		_ = clock.Sleep(t.Context(), clock.System, nodetest.Look)
	}
	match(t, `{"unparked":true}`, ok(t, d, "acme", "push.unpark", `{`+run1+`,"operator":{"actor":"ann"},"op":"u"}`))
	takesFrom(t, got, "rendezvous.run.completed")
}
