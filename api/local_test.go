package api_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

// An open API is for programs of this machine: no web page that a browser shows there can call it (api.md section 4).
func TestWebPagesCannotCallAnOpenAPI(t *testing.T) {
	d := newHTTPDoor(t, nodetest.Start(t), "")
	const form, text = "application/x-www-form-urlencoded", "text/plain;charset=UTF-8"
	for name, c := range map[string]struct {
		host, origin, content string
		status                int
		code                  string
	}{
		"a program":                     {"", "", "", 200, ""},
		"a program that says JSON":      {"", "", "Application/JSON; charset=utf-8", 200, ""},
		"localhost":                     {"localhost:7480", "", "application/json", 200, ""},
		"IPv6":                          {"[::1]:7480", "", "application/json", 200, ""},
		"IPv6 without a port":           {"[::1]", "", "application/json", 200, ""},
		"a page of this machine":        {"127.0.0.1:7480", "http://localhost:3000", "application/json", 200, ""},
		"a page of elsewhere":           {"localhost:7480", "http://evil.example", "application/json", 401, "unauthorized"},
		"a page whose body has no type": {"localhost:7480", "https://evil.example", "", 401, "unauthorized"},
		"a page in a sandbox":           {"localhost:7480", "null", "", 401, "unauthorized"},
		"a name like ours":              {"localhost:7480", "http://localhost.evil.example", "", 401, "unauthorized"},
		"a name that leads here":        {"evil.example:7480", "", "application/json", 401, "unauthorized"},
		"an address that is not here":   {"192.0.2.1", "", "application/json", 401, "unauthorized"},
		"a text":                        {"", "", text, 400, "invalid"},
		"a form":                        {"", "", form, 400, "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"acme/system.info", "acme/events"} {
				h := http.Header{}
				if c.origin != "" {
					h.Set("Origin", c.origin)
				}
				if c.content != "" {
					h.Set("Content-Type", c.content)
				}
				if path == "acme/events" { // its modes are told by the content type
					h.Set("Content-Type", "application/cloudevents+json")
					if c.status == 400 {
						h.Set("Content-Type", c.content)
					}
				}
				body := []byte(`{}`)
				if path == "acme/events" {
					body = []byte(payment)
				}
				if r := d.postTo(t, c.host, path, body, h); r.status != c.status || r.code() != c.code {
					t.Errorf("%s: status %d: %s", path, r.status, r.body)
				}
			}
		})
	}
}

// With tokens the caller is who its token says, whatever name it calls the server by.
func TestTokensAreForCallersOfElsewhere(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens.json")
	must(t, os.WriteFile(tokens, []byte(`{"tokens":[{"token":"correct-horse-battery","name":"shop","role":"executor","tenants":["acme"]}]}`), 0o600))
	n := nodetest.Start(t, func(c *node.Config) { c.Ingest.Tokens = tokens })
	h := http.Header{"Origin": {"https://shop.example"}, "Content-Type": {"application/json"}}
	if r := newHTTPDoor(t, n, "correct-horse-battery").postTo(t, "api.shop.example", "acme/system.info", []byte(`{}`), h); r.status != 200 {
		t.Errorf("status %d: %s", r.status, r.body)
	}
}
