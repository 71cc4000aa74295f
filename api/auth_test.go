package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rendezvous-events/rendezvous/api"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

const tokenFile = `{"tokens":[
	{"token":"producer-of-acme-0001","name":"shop","role":"producer","tenants":["acme"]},
	{"token":"producer-of-psp-00001","name":"psp","role":"producer","tenants":["acme","other"],"sources":["urn:psp"]},
	{"token":"executor-of-acme-0001","name":"pod","role":"executor","tenants":["acme"]},
	{"token":"pushing-for-acme-0001","name":"hooks","role":"executor","tenants":["acme"],"push":true},
	{"token":"operator-of-acme-0001","name":"ann","role":"operator","tenants":["acme"]},
	{"sha256":"26e14b0db30c01c5d9c1f8a1fe8e45b7c4ec4b07e19b9e0cd10cc1ba7a5fba7c","name":"digested","role":"operator","tenants":["acme"]},
	{"token":"admin-of-everything-1","name":"root","role":"admin"}]}`

// withTokens gives a node the tokens of a file.
func withTokens(t *testing.T, content string) func(*node.Config) {
	path := filepath.Join(t.TempDir(), "tokens.json")
	must(t, os.WriteFile(path, []byte(content), 0o600))
	return func(c *node.Config) { c.Ingest.Tokens = path }
}

func TestRolesAllowWhatTheContractSays(t *testing.T) {
	n := nodetest.Start(t, withTokens(t, tokenFile))
	producer := []string{"events.put", "events.deliver", "system.info"}
	executor := slices.DeleteFunc(slices.Clone(builtVerbs), func(v string) bool {
		return v == "events.erase" || v == "shards.list" || strings.HasPrefix(v, "deadletters.") || strings.HasPrefix(v, "push.")
	})
	own := []string{"push.put", "push.get", "push.list", "push.delete", "push.park", "push.unpark", "push.skip", "push.rotate", "push.attempts"}
	for _, c := range []struct {
		token, tenant string
		verbs         []string
	}{
		{"producer-of-acme-0001", "acme", producer},
		{"producer-of-acme-0001", "other", nil},
		{"producer-of-psp-00001", "other", producer},
		{"executor-of-acme-0001", "acme", executor},
		{"executor-of-acme-0001", "other", nil},
		{"pushing-for-acme-0001", "acme", slices.Concat(executor, own)},
		{"pushing-for-acme-0001", "other", nil},
		{"operator-of-acme-0001", "acme", builtVerbs},
		{"operator-of-acme-0001", "acme2", nil},
		{"admin-of-everything-1", "acme", builtVerbs},
		{"admin-of-everything-1", "anything", builtVerbs},
		{"unheard-of-token-0001", "acme", nil},
		{"", "acme", nil},
	} {
		d := newHTTPDoor(t, n, c.token)
		for _, verb := range append(slices.Clone(builtVerbs), "events") {
			allowed := slices.Contains(c.verbs, verb) || verb == "events" && slices.Contains(c.verbs, "events.put")
			r := d.call(t, c.tenant, verb, `{"unheard":1}`)
			if (r.status == http.StatusUnauthorized) == allowed {
				t.Errorf("token %q, tenant %s, verb %s: status %d", c.token, c.tenant, verb, r.status)
			}
			if !allowed {
				checkRefused(t, r, 401, "unauthorized")
			}
		}
	}
}

func TestACallerWithoutAKnownTokenIsAskedForOne(t *testing.T) {
	d := newHTTPDoor(t, nodetest.Start(t, withTokens(t, tokenFile)), "")
	for _, authorization := range []string{"", "Bearer", "Bearer ", "Basic YTpi", "Bearer unheard-of-token-0001", "producer-of-acme-0001", "Bearer producer-of-acme-0001 x"} {
		h := http.Header{}
		if authorization != "" {
			h.Set("Authorization", authorization)
		}
		r := d.post(t, "acme/system.info", nil, h)
		checkRefused(t, r, 401, "unauthorized")
		if !strings.HasPrefix(strings.Join(r.header["Www-Authenticate"], ""), "Bearer") {
			t.Errorf("%q: no WWW-Authenticate", authorization)
		}
	}
	for _, authorization := range []string{"Bearer producer-of-acme-0001", "bearer producer-of-acme-0001", "Bearer  producer-of-acme-0001 "} {
		if r := d.post(t, "acme/system.info", nil, http.Header{"Authorization": {authorization}}); r.status != 200 {
			t.Errorf("%q: status %d", authorization, r.status)
		}
	}
}

// A producer bound to sources sends those only (events.md section 4).
func TestAProducerBoundToSourcesSendsOnlyThose(t *testing.T) {
	n := nodetest.Start(t, withTokens(t, tokenFile))
	d := newHTTPDoor(t, n, "producer-of-psp-00001")
	foreign := strings.Replace(payment, "urn:psp", "urn:bank", 1)
	match(t, `{"results":[{"source":"urn:psp","id":"p-1","outcome":"accepted"},{"source":"urn:bank","id":"p-1","outcome":"rejected","error":
		{"code":"unauthorized","message":"<text>","details":{"field":"source"}}}]}`, ok(t, d, "acme", "events.put", `{"events":[`+payment+`,`+foreign+`]}`))
	refused(t, d, "acme", "events.deliver", `{"run_id":"r","event":`+foreign+`}`, 401, "unauthorized")
	checkRefused(t, d.post(t, "acme/events", []byte(foreign), http.Header{"Content-Type": {"application/cloudevents+json"}}), 401, "unauthorized")
	refused(t, newHTTPDoor(t, n, "admin-of-everything-1"), "acme", "events.get", `{"source":"urn:bank","id":"p-1"}`, 404, "not_found")
}

// Who acts under a token is whom the token names, whatever the request says; without tokens a name is only asserted.
func TestOperatorsAreWhomTheirTokenNames(t *testing.T) {
	const start, pause = `{"workflow_id":"w","run_id":"r","type":"t","operator":{"actor":"the boss","basis":"authenticated"}}`, `{"run_id":"r","operator":{"actor":"the boss","basis":"authenticated"}}`
	const history = `{"head_seq":2,"more":false,"records":[
		{"seq":1,"run_id":"r","kind":"run.started","data":"<any>","recorded_at":"<time>","operator":OPERATOR},
		{"seq":2,"run_id":"r","kind":"run.paused","data?":"<any>","recorded_at":"<time>","operator":OPERATOR}]}`
	for _, c := range []struct {
		d        door
		operator string
	}{
		{newHTTPDoor(t, nodetest.Start(t, withTokens(t, tokenFile)), "operator-of-acme-0001"), `{"actor":"ann","basis":"authenticated"}`},
		{newHTTPDoor(t, nodetest.Start(t), ""), `{"actor":"the boss","basis":"asserted"}`},
	} {
		ok(t, c.d, "acme", "runs.start", start)
		ok(t, c.d, "acme", "runs.pause", pause)
		match(t, strings.ReplaceAll(history, "OPERATOR", c.operator), ok(t, c.d, "acme", "runs.history", `{"workflow_id":"w"}`))
	}
}

func TestATokenFileThatIsWrongStopsTheStartAndShowsNoToken(t *testing.T) {
	entry := func(members string) string { return `{"tokens":[{` + members + `}]}` }
	const good = `"token":"super-secret-0123456","name":"n","role":"executor","tenants":["acme"]`
	for name, content := range map[string]string{
		"nothing":              ``,
		"no tokens":            `{"tokens":[]}`,
		"no JSON":              `tokens`,
		"a list":               `[]`,
		"unknown field":        entry(good + `,"colour":"red"`),
		"field in other case":  entry(good + `,"ROLE":"admin"`),
		"no role":              entry(`"token":"super-secret-0123456","name":"n","tenants":["acme"]`),
		"unknown role":         entry(`"token":"super-secret-0123456","name":"n","role":"king","tenants":["acme"]`),
		"no name":              entry(`"token":"super-secret-0123456","role":"executor","tenants":["acme"]`),
		"no tenants":           entry(`"token":"super-secret-0123456","name":"n","role":"executor"`),
		"tenant with a dot":    entry(`"token":"super-secret-0123456","name":"n","role":"executor","tenants":["a.b"]`),
		"reserved tenant":      entry(`"token":"super-secret-0123456","name":"n","role":"executor","tenants":["match"]`),
		"no token":             entry(`"name":"n","role":"executor","tenants":["acme"]`),
		"token and digest":     entry(good + `,"sha256":"` + strings.Repeat("0", 64) + `"`),
		"token with a blank":   entry(`"token":"super-secret 0123456","name":"n","role":"executor","tenants":["acme"]`),
		"short token":          entry(`"token":"super-secret","name":"n","role":"executor","tenants":["acme"]`),
		"digest that is none":  entry(`"sha256":"super-secret","name":"n","role":"executor","tenants":["acme"]`),
		"the same token twice": `{"tokens":[{` + good + `},{` + good + `}]}`,
		"empty source":         entry(good + `,"sources":[""]`),
	} {
		_, err := node.Start(t.Context(), nodetest.Config(t, withTokens(t, content)))
		if err == nil {
			t.Errorf("%s: the node started", name)
			continue
		}
		if strings.Contains(err.Error(), "super-secret") {
			t.Errorf("%s: the error shows the token: %v", name, err)
		}
	}
	if _, err := api.LoadTokens(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("an absent file is no tokens")
	}
}

func TestAnOpenAPIListensOnLoopbackOnly(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "example.org:80", "nonsense"} {
		_, err := node.Start(t.Context(), nodetest.Config(t, func(c *node.Config) { c.Ingest.HTTP = address }))
		if err == nil || !strings.Contains(err.Error(), "http") {
			t.Errorf("%s: %v", address, err)
		}
	}
	nodetest.Start(t, withTokens(t, tokenFile), func(c *node.Config) { c.Ingest.HTTP = ":0" })
}

func FuzzTokens(f *testing.F) {
	f.Add([]byte(tokenFile))
	f.Add([]byte(`{"tokens":[{"token":"a","sha256":"b"}]}`))
	f.Add([]byte(`{"tokens":null}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		tokens, err := api.ParseTokens(content)
		if (err == nil) != (tokens != nil) {
			t.Fatalf("tokens %v, error %v", tokens, err)
		}
		if err != nil {
			return
		}
		var file struct{ Tokens []struct{ Token string } }
		must(t, json.Unmarshal(content, &file))
		for _, row := range file.Tokens {
			if row.Token == "" || strings.TrimSpace(row.Token) != row.Token {
				continue
			}
			if c, err := tokens.Caller(fmt.Sprintf("Bearer %s", row.Token)); err != nil || c.Role == api.RoleNone || c.Name == "" {
				t.Errorf("an accepted token is not known: %v %v", c, err)
			}
		}
	})
}
