package api_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

const ann = `"operator":{"actor":"ann","basis":"asserted"}`

// letter is an event's row as deadletters.list shows it.
func letter(id, rest string) string {
	return `{"source":"urn:psp","id":"` + id + `","number":"<number>","type":"payment.received","keys":[{"namespace":"order","value":"` + id + `"}],
		"received_at":"<time>","dead_at":"<time>",` + rest + `}`
}

// bury is the life of dead letters, every reply in its shape. Three events died before: p-1 and p-2 unclaimed, p-3 expired.
var bury = []step{
	{"deadletters.count", `{}`, `{"count":3}`},
	{"deadletters.count", `{"by_reason":true}`, `{"count":3,"by_reason":{"unclaimed":2,"expired":1}}`},
	{"deadletters.count", `{"cap":2}`, `{"count":2,"capped":true}`},
	{"deadletters.count", `{"filter":{"reason":"expired"}}`, `{"count":1}`},
	{"deadletters.count", `{"filter":{"dead_before":"2026-01-01T00:00:00Z"}}`, `{"count":0}`},
	{
		"deadletters.list", `{"filter":{"reason":"unclaimed","type":"payment.received","source":"urn:psp","key":{"namespace":"order","value":"p-1"},"dead_after":"2026-01-01T00:00:00Z"}}`,
		`{"letters":[` + letter("p-1", `"reason":"unclaimed","erased":false`) + `]}`,
	},
	{
		"deadletters.list", `{"filter":{"reason":"expired"},"include_data":true}`,
		`{"letters":[` + letter("p-3", `"reason":"expired","expires_at":"<time>","erased":false,"payload":{"data":{"amount":3},"content_type":"application/json"}`) + `]}`,
	},
	{
		"deadletters.requeue", `{"events":[{"source":"urn:psp","id":"p-1"},{"source":"urn:psp","id":"p-3"},{"source":"urn:psp","id":"unheard"}],` + ann + `,"op":"op-1"}`,
		`{"results":[{"source":"urn:psp","id":"p-1","outcome":"requeued","number":"<number>"},{"source":"urn:psp","id":"p-3","outcome":"expired"},
			{"source":"urn:psp","id":"unheard","outcome":"not_found"}]}`,
	},
	{
		"deadletters.requeue", `{"events":[{"source":"urn:psp","id":"p-1"}],` + ann + `,"op":"op-1"}`,
		`{"results":[{"source":"urn:psp","id":"p-1","outcome":"requeued","number":"<number>"}]}`,
	},
	{
		"deadletters.requeue", `{"events":[{"source":"urn:psp","id":"p-1"}],` + ann + `,"op":"op-2"}`,
		`{"results":[{"source":"urn:psp","id":"p-1","outcome":"not_dead","state":"live"}]}`,
	},
	{
		"deadletters.requeue", `{"filter":{"reason":"expired"},"bound":10,"expires_at":"2026-12-20T00:00:00Z","to":"broadcast",` + ann + `,"op":"op-3"}`,
		`{"results":[{"source":"urn:psp","id":"p-3","outcome":"requeued","number":"<number>"}]}`,
	},
	{
		"deadletters.purge", `{"filter":{},"bound":1,` + ann + `,"op":"op-4"}`,
		`{"results":[{"source":"urn:psp","id":"p-2","outcome":"purged"}]}`,
	},
	{"deadletters.list", `{}`, `{"letters":[]}`},
	{"events.put", `{"events":[` + payments("p-2") + `]}`, `{"results":[{"source":"urn:psp","id":"p-2","outcome":"duplicate","state":"dead"}]}`},
}

func payments(ids ...string) string {
	var all []string
	for _, id := range ids {
		expires := ""
		if id == "p-3" {
			expires = `"expirytime":"2026-12-01T01:00:00Z",`
		}
		all = append(all, `{"specversion":"1.0","id":"`+id+`","source":"urn:psp","type":"payment.received",`+expires+`"rdvkeys":"order=`+id+`","datacontenttype":"application/json","data":{"amount":`+id[2:]+`}}`)
	}
	return strings.Join(all, ",")
}

// buried starts a plane whose store's clock stands, and makes dead letters of events in those tenants: two hours go by.
func buried(t *testing.T, tenants func(n *node.Node) []string, ids ...string) *node.Node {
	t.Helper()
	now := clock.NewManual(time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
	n := nodetest.Start(t, func(c *node.Config) { c.StoreClock, c.Sweep.Tick = now, 20*time.Millisecond })
	d := doors(t, n)[0]
	for _, tenant := range tenants(n) {
		ok(t, d, tenant, "events.put", `{"events":[`+payments(ids...)+`]}`)
	}
	now.Advance(2 * time.Hour)
	for _, tenant := range tenants(n) {
		for end := clock.System.Now().Add(nodetest.Patience); ; {
			if count := ok(t, d, tenant, "deadletters.count", `{}`); strings.Contains(string(count), fmt.Sprintf(`"count":%d`, len(ids))) {
				break
			}
			if clock.System.Now().After(end) {
				t.Fatal("the events do not die")
			}
			_ = clock.Sleep(t.Context(), clock.System, nodetest.Look)
		}
	}
	return n
}

// SW-7, SW-9, SW-11, SW-12, SW-14: list, count, requeue and purge in their shapes through both doors; each door's tenant has its own letters.
func TestDeadLettersAnswerInTheirShapes(t *testing.T) {
	n := buried(t, func(n *node.Node) (tenants []string) {
		for _, d := range doors(t, n) {
			tenants = append(tenants, "bury-"+d.name())
		}
		return tenants
	}, "p-1", "p-2", "p-3")
	for _, d := range doors(t, n) {
		t.Run(d.name(), func(t *testing.T) { tell(t, d, "bury-"+d.name(), bury) })
	}
}

// api.md section 2: bad requests of the verbs of dead letters are refused by the field that is wrong.
func TestBadRequestsAboutDeadLettersAreRefused(t *testing.T) {
	var many []string
	for i := range 501 {
		many = append(many, fmt.Sprintf(`{"source":"s","id":"%d"}`, i))
	}
	one := `"events":[{"source":"s","id":"1"}],`
	for _, d := range doors(t, nodetest.Start(t)) {
		for _, r := range []refusal{
			{"unknown field", "deadletters.list", `{"colour":"red"}`, 400, "invalid", "colour"},
			{"unknown field inside", "deadletters.list", `{"filter":{"colour":"red"}}`, 400, "invalid", "colour"},
			{"unknown reason", "deadletters.list", `{"filter":{"reason":"bored"}}`, 400, "invalid", "reason"},
			{"time that is none", "deadletters.count", `{"filter":{"dead_after":"yesterday"}}`, 400, "invalid", "time"},
			{"too long a page", "deadletters.list", `{"limit":1001}`, 413, "too_large", "limit"},
			{"foreign cursor", "deadletters.list", `{"cursor":"abc"}`, 400, "invalid", "cursor"},
			{"negative cap", "deadletters.count", `{"cap":-1}`, 400, "invalid", "cap"},
			{"no letters", "deadletters.requeue", `{` + ann + `,"op":"o"}`, 400, "invalid", "events"},
			{"501 letters", "deadletters.purge", `{"events":[` + strings.Join(many, ",") + `],` + ann + `,"op":"o"}`, 413, "too_large", "events"},
			{"no bound", "deadletters.purge", `{"filter":{},` + ann + `,"op":"o"}`, 400, "invalid", "bound"},
			{"both", "deadletters.requeue", `{` + one + `"filter":{},"bound":1,` + ann + `,"op":"o"}`, 400, "invalid", "events"},
			{"no op", "deadletters.requeue", `{` + one + ann + `}`, 400, "invalid", "op"},
			{"unknown run", "deadletters.requeue", `{` + one + `"to":"nobody",` + ann + `,"op":"o"}`, 404, "not_found", ""},
			{"past expiry", "deadletters.requeue", `{` + one + `"expires_at":"2001-01-01T00:00:00Z",` + ann + `,"op":"o"}`, 400, "invalid", "expires_at"},
			{"no target of a purge", "deadletters.purge", `{` + one + `"to":"broadcast",` + ann + `,"op":"o"}`, 400, "invalid", "to"},
		} {
			t.Run(d.name()+"/"+r.name, func(t *testing.T) {
				got := refused(t, d, "acme", r.verb, r.body, r.status, r.code)
				if field := `"field":"` + r.field + `"`; r.field != "" && !strings.Contains(string(got.body), field) {
					t.Errorf("does not name its field %s: %s", r.field, got.body)
				}
			})
		}
	}
}
