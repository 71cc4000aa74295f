package push_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/push"
)

const signingKey, olderKey = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"

func read(t *testing.T, text string) (*push.Destinations, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "destinations.json")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	list, err := push.ReadDestinations(path)
	if err != nil {
		return nil, err
	}
	return push.NewDestinations(list, begin)
}

// PU-6: any fault of a destination stops the start and names the destination, and no secret of it.
func TestFaultsOfDestinationsAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		`{"destinations":[{"name":" ","url":"https://example.org/"}]}`:                                                                                                        "blank name",
		`{"destinations":[{"name":"audit","url":"https://example.org/"},{"name":"audit","url":"https://example.org/"}]}`:                                                      `"audit"`,
		`{"destinations":[{"name":"audit","url":"://"}]}`:                                                                                                                     `"audit"`,
		`{"destinations":[{"name":"audit","url":"https://example.org/","signing_key":"whsec_aHVzaA=="}]}`:                                                                     `"audit"`,
		`{"destinations":[{"name":"audit","url":"https://example.org/","rotation_key":"` + olderKey + `"}]}`:                                                                  `"audit" has a rotation_key and no signing_key`,
		`{"destinations":[{"name":"audit","url":"https://example.org/","auth":{"scheme":"Bearer","credentials":"hush\n"}}]}`:                                                  `"audit"`,
		`{"destinations":[{"name":"audit","url":"https://example.org/","follow":"chain"}]}`:                                                                                   `unknown field "follow"`,
		`{"destinations":[{"name":"audit","url":"https://example.org/","timeout_ms":31000}]}`:                                                                                 `"audit"`,
		`{"destinations":[{"name":"audit","url":"https://example.org/","events":["run.dreamt"]}]}`:                                                                            "audit",
		`{"destinations":[{"name":"audit","url":"https://example.org/","headers":[{"name":"Content-Type","value":"hush"}]}]}`:                                                 `"audit"`,
		`{"destinations":[{"name":"audit","url":"https://me:hush@example.org/"}]}`:                                                                                            `"audit"`,
		`{"destinations":[{"name":"audit","url":"http://127.1/hush"}]}`:                                                                                                       `"audit"`,
		`{"destinations":[{"name":"audit","url":"https://example.org/#hush"}]}`:                                                                                               `"audit"`,
		`{"destinations":[{"name":"audit","url":"https://example.org/","auth":{"oauth2":{"token_url":"https://me:hush@example.org/","client_id":"c","client_secret":"s"}}}]}`: `"audit"`,
		`{"destinations":[]} {"destinations":[{"name":"audit","url":"https://example.org/"}]}`:                                                                                "decode",
		`{"destinations":"hush"}`: "type",
		`hush`:                    "decode",
	} {
		_, err := read(t, text)
		if rendezvous.CodeOf(err) != rendezvous.CodeInvalid || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "whsec_") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	_, err := push.ReadDestinations(filepath.Join(t.TempDir(), "none"))
	eq(t, "a file that is not there", rendezvous.CodeOf(err), rendezvous.CodeInvalid)
}

// A destination is what its file says: its keys newest first, its events as a set, and defaults where it says nothing.
func TestADestinationAsItIsWritten(t *testing.T) {
	d, err := read(t, `{"destinations":[{"name":"audit","url":"http://10.0.0.7/in","types":["order"],"token":"t","auth":{"username":"u","password":"p"},
		"headers":[{"name":"X-Team","value":"ops"}],"signing_key":"`+signingKey+`","rotation_key":"`+olderKey+`","timeout_ms":2000,"max_attempts":3,"include_payload":true}]}`)
	must(t, err)
	r, ok := d.Lookup("run", "operator:audit")
	eq(t, "found", ok, true)
	eq(t, "run and id", r.RunID+" "+r.ID, "run operator:audit")
	eq(t, "auth", string(r.Auth.Kind)+" "+r.Auth.User+" "+r.Auth.Password.Reveal(), "basic u p")
	eq(t, "keys", r.Signing[0].Key.Reveal()+" "+r.Signing[1].Key.Reveal(), signingKey+" "+olderKey)
	eq(t, "header", r.Headers[0].Name+" "+r.Headers[0].Value.Reveal(), "X-Team ops")
	eq(t, "timeout", r.Timeout.String(), "2s")
	eq(t, "attempts", r.MaxAttempts, 3)
	eq(t, "rejections by default", r.OnRejectLimit, rendezvous.DefaultOnRejectLimit)
	eq(t, "trace by default", *r.Trace, true)
	known := d.Known()
	eq(t, "known", len(known) == 1 && known[0].Name == "audit" && known[0].Types[0] == "order" && len(known[0].Events) == 4, true)
	_, ok = d.Lookup("run", "operator:other")
	eq(t, "another", ok, false)
}
