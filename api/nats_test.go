package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/wire"
)

// Every call is answered exactly once, also while another process answers the same verbs.
func TestEveryNATSCallIsAnsweredOnce(t *testing.T) {
	at, external := nodetest.Broker(t)
	nodetest.Start(t, external)
	nodetest.Start(t, external, func(c *node.Config) { c.Delivery = false })
	nc := nodetest.NATS(t, at)
	inbox, err := nc.SubscribeSync(nats.NewInbox())
	must(t, err)
	const calls = 200
	for i := range calls {
		verb := "system.info"
		if i%4 == 0 {
			verb = "runs.dance"
		}
		must(t, nc.PublishRequest("rdv.acme.api."+verb, inbox.Subject, nil))
	}
	for range calls {
		if _, err := inbox.NextMsg(nodetest.Patience); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := inbox.NextMsg(100 * time.Millisecond); err == nil {
		t.Errorf("an answer too many: %s", m.Data)
	}
}

// The verbs are a micro service: discovery lists an endpoint per verb, stats count its calls, and its refusals carry the error headers.
func TestTheVerbsAreAMicroService(t *testing.T) {
	d := natsDoor{nodetest.NATS(t, nodetest.Start(t).NATSURL)}
	for range 3 {
		ok(t, d, "acme", "system.info", "")
	}
	refused(t, d, "acme", "runs.get", `{"run_id":"nobody"}`, 404, "not_found")
	ok(t, d, "api", "system.check", "")                     // a tenant may have that name
	must(t, d.nc.Publish("rdv.acme.api.system.check", nil)) // nobody waits for the answer
	r := refused(t, d, "acme", "runs.dance", "", 404, "not_found")
	if !strings.Contains(string(r.body), "runs.dance") {
		t.Errorf("does not name the verb: %s", r.body)
	}
	refused(t, d, "acme", strings.Repeat("x", 200), "", 404, "not_found")

	var info micro.Info
	must(t, json.Unmarshal(d.request(t, "$SRV.INFO.rendezvous", nil).body, &info))
	subjects := map[string]string{}
	for _, e := range info.Endpoints {
		subjects[e.Subject] = e.Name
	}
	for _, verb := range builtVerbs {
		if subjects["rdv.*.api."+verb] != strings.ReplaceAll(verb, ".", "_") {
			t.Errorf("no endpoint of %s: %v", verb, subjects)
		}
	}
	var stats micro.Stats
	must(t, json.Unmarshal(d.request(t, "$SRV.STATS.rendezvous", nil).body, &stats))
	for _, e := range stats.Endpoints {
		if e.Name == "system_info" && e.NumRequests != 3 {
			t.Errorf("system.info counted %d calls", e.NumRequests)
		}
		if e.Name == "runs_get" && string(e.Data) != `{"refused":1}` {
			t.Errorf("runs.get says %s", e.Data)
		}
	}
}

// On NATS the account's permissions decide (api.md section 4): what the account may not publish never reaches the plane.
func TestTheAccountsPermissionsDecideOnNATS(t *testing.T) {
	at, external := nodetest.Broker(t, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "worker", Password: "worker-secret"},
			{Username: "shop", Password: "shop-secret", Permissions: &server.Permissions{
				Publish:   &server.SubjectPermission{Allow: []string{"rdv.acme.api.events.put", "rdv.acme.api.events.deliver"}},
				Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
			}},
		}
	})
	nodetest.Start(t, external, func(c *node.Config) { c.NATS.URL = strings.Replace(at, "//", "//worker:worker-secret@", 1) })
	violations := make(chan error, 16)
	shop := natsDoor{nodetest.NATS(t, at, nats.UserInfo("shop", "shop-secret"), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { violations <- err }))}
	match(t, `{"results":[{"source":"urn:psp","id":"p-1","outcome":"accepted"}]}`, ok(t, shop, "acme", "events.put", `{"events":[`+payment+`]}`))
	for _, subject := range []string{"rdv.other.api.events.put", "rdv.acme.api.runs.start"} {
		must(t, shop.nc.Publish(subject, []byte(`{"workflow_id":"w","run_id":"r","type":"t"}`)))
		select {
		case err := <-violations:
			if !errors.Is(err, nats.ErrPermissionViolation) {
				t.Errorf("%s: %v", subject, err)
			}
		case <-time.After(nodetest.Patience):
			t.Errorf("%s was allowed", subject)
		}
	}
	worker := natsDoor{nodetest.NATS(t, at, nats.UserInfo("worker", "worker-secret"))}
	refused(t, worker, "acme", "runs.get", `{"run_id":"r"}`, 404, "not_found")
}

// What is over one NATS message ends earlier; a record that is over it by itself is without its payload, and says so.
func TestRepliesOverMaxPayloadEndEarlier(t *testing.T) {
	const limit = 256 << 10
	at, external := nodetest.Broker(t, func(o *server.Options) { o.MaxPayload = limit })
	n := nodetest.Start(t, external, func(c *node.Config) { c.Limit = 64 << 10 })
	web := newHTTPDoor(t, n, "")
	requests := natsDoor{nodetest.NATS(t, at)}
	ok(t, web, "acme", "runs.start", `{"workflow_id":"w","run_id":"run-1","type":"order"}`)
	ok(t, web, "acme", "runs.acquire", `{`+run1+`,"owner":"o","acquire_id":"a"}`)
	note := `{"kind":"note","data":{"name":"n"},"payload":{"data":"` + strings.Repeat("x", 50_000) + `"}}`
	ok(t, web, "acme", "runs.append", `{`+run1+`,"epoch":1,"expected_seq":1,"batch_id":"b","records":[`+strings.TrimSuffix(strings.Repeat(note+",", 12), ",")+`]}`)
	seen := int64(0)
	for {
		var page wire.History
		must(t, json.Unmarshal(ok(t, requests, "acme", "runs.history", fmt.Sprintf(`{"workflow_id":"w","from_seq":%d}`, seen+1)), &page))
		for _, r := range page.Records {
			if seen++; r.Seq != seen {
				t.Fatalf("record %d where %d belongs", r.Seq, seen)
			}
		}
		if !page.More {
			break
		}
	}
	if seen != 13 {
		t.Errorf("%d records over NATS, 13 are there", seen)
	}
	var out wire.Released
	must(t, json.Unmarshal(ok(t, requests, "acme", "runs.release", `{`+run1+`,"epoch":1,"seen_seq":1}`), &out))
	if out.Outcome != "continue" || !out.More || len(out.Records) == 0 || out.Records[0].Seq != 2 || out.HeadSeq != 13 {
		t.Errorf("continue with %d records, more %v, head %d", len(out.Records), out.More, out.HeadSeq)
	}

	big := `{"kind":"note","data":{"name":"n"},"payload":{"data":"` + strings.Repeat("x", 400_000) + `"}}`
	ok(t, web, "acme", "runs.append", `{`+run1+`,"epoch":1,"expected_seq":13,"batch_id":"b2","records":[`+big+`]}`)
	ok(t, web, "acme", "runs.append", `{`+run1+`,"epoch":1,"expected_seq":14,"batch_id":"b3","records":[`+note+`]}`)
	match(t, `{"records":[{"seq":14,"run_id":"run-1","kind":"note","data":{"name":"n"},"payload_omitted":true,"payload_size":400002,"batch":"b2","recorded_at":"<time>"}],
		"head_seq":15,"more":true}`, ok(t, requests, "acme", "runs.history", `{"workflow_id":"w","from_seq":14}`)) // a record over the limit hides none behind it
	ok(t, requests, "acme", "runs.history", `{"workflow_id":"w","from_seq":15}`)
	if r := ok(t, web, "acme", "runs.history", `{"workflow_id":"w","from_seq":14}`); len(r) < 400_000 {
		t.Errorf("over HTTP: %.300s", r)
	}
	event := strings.Replace(payment, `{"amount":12}`, `"`+strings.Repeat("x", 60_000)+`"`, 1)
	ok(t, web, "acme", "events.put", `{"events":[`+event+`]}`)
	ok(t, requests, "acme", "events.get", `{"source":"urn:psp","id":"p-1","include_data":true}`)
	refused(t, requests, "acme", "runs.append", `{`+run1+`,"epoch":1,"expected_seq":15,"batch_id":"b4","records":[{"kind":"note","data":{"name":"n"},"payload_omitted":true}]}`,
		400, "invalid")
}

// With the smallest max_payload that the start-up takes, everything that a run may hold of events can be read over NATS, bytes that are no JSON too.
func TestTheLargestAnswerIsReadOverTheSmallestNATS(t *testing.T) {
	const size = 1 << 20
	at, external := nodetest.Broker(t, func(o *server.Options) { o.MaxPayload = int32(messaging.LeastMaxPayload(size)) })
	nodetest.Start(t, external)
	d := natsDoor{nodetest.NATS(t, at)}
	long := strings.Repeat(`\"`, 256) // ids of the greatest length, each byte escaped twice
	event := fmt.Sprintf(`{"specversion":"1.0","id":"%s","source":"%s","type":"%s","rdvkeys":"order=1","datacontenttype":"text/plain","data":"%s"}`, long, long, long, strings.Repeat("x", size))
	ok(t, d, "acme", "events.put", `{"events":[`+event+`]}`)
	ok(t, d, "acme", "runs.start", `{"workflow_id":"w","run_id":"run-1","type":"order"}`)
	var got wire.Registered
	must(t, json.Unmarshal(ok(t, d, "acme", "runs.await", `{`+run1+`,"effect":"`+long+`","type":"`+long+`","keys":[{"namespace":"order","value":"1"}]}`), &got))
	if got.Answered == nil || got.Answered.Omitted || len(*got.Answered.Payload.Base64) != size {
		t.Errorf("the answer is not whole: seq %d", got.Seq)
	}
	var page wire.History
	must(t, json.Unmarshal(ok(t, d, "acme", "runs.history", `{"workflow_id":"w","from_seq":3}`), &page))
	if len(page.Records) != 1 || page.Records[0].Omitted || len(*page.Records[0].Payload.Base64) != size {
		t.Errorf("the history has %d records", len(page.Records))
	}
}

// A list that does not fit is answered with fewer rows and a cursor behind them.
func TestAListOverMaxPayloadHasFewerRows(t *testing.T) {
	at, external := nodetest.Broker(t, func(o *server.Options) { o.MaxPayload = 192 << 10 })
	n := nodetest.Start(t, external, func(c *node.Config) { c.Limit = 32 << 10 })
	web := newHTTPDoor(t, n, "")
	requests := natsDoor{nodetest.NATS(t, at)}
	long := strings.Repeat("w", 480)
	const runs = 200
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			web.call(t, "acme", "runs.start", fmt.Sprintf(`{"workflow_id":"%s-%d","type":"%s"}`, long, i, long))
		})
	}
	wg.Wait()
	known, cursor, pages := map[string]bool{}, "", 0
	for {
		var page wire.RunList
		must(t, json.Unmarshal(ok(t, requests, "acme", "runs.list", fmt.Sprintf(`{"limit":1000,"cursor":%q}`, cursor)), &page))
		for _, r := range page.Runs {
			known[r.WorkflowID] = true
		}
		pages++
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if len(known) != runs || pages < 2 {
		t.Errorf("%d of %d workflows in %d pages", len(known), runs, pages)
	}
}

// Long polls have room of their own: any number of them keeps no other verb waiting.
func TestLongPollsKeepNoOtherVerbWaiting(t *testing.T) {
	d := natsDoor{nodetest.NATS(t, nodetest.Start(t).NATSURL)}
	inbox, err := d.nc.SubscribeSync(nats.NewInbox())
	must(t, err)
	const polls = 600
	for range polls {
		must(t, d.nc.PublishRequest("rdv.acme.api.runs.history", inbox.Subject, []byte(`{"workflow_id":"w","wait_ms":8000}`)))
	}
	ok(t, d, "acme", "system.info", "")
	if ended, _, err := inbox.Pending(); err != nil || ended > 0 {
		t.Errorf("a call beside %d polls came after the end of %d, %v", polls, ended, err)
	}
	for range polls {
		_, err := inbox.NextMsg(nodetest.Patience)
		must(t, err)
	}
}
