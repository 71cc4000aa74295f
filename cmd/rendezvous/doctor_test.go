package main

import (
	"regexp"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/rendezvous-events/rendezvous/internal/nodetest"
)

// A server that is not there, one that refuses, one without JetStream and one without the plane's streams want four different things of an operator.
func TestTheDoctorTellsWhatIsWrongWithNATS(t *testing.T) {
	u := newTool(t)
	empty, _ := nodetest.Broker(t)
	closed, _ := nodetest.Broker(t, func(o *server.Options) { o.Username, o.Password = "kim", "secret" })
	core, _ := nodetest.Broker(t, func(o *server.Options) { o.JetStream = false })
	small, _ := nodetest.Broker(t, func(o *server.Options) { o.MaxPayload = server.MAX_PAYLOAD_SIZE })
	for _, row := range []struct {
		name, says string
		flags      []string
	}{
		{"nobody there", `not connected: no server answers`, []string{"--nats", "nats://127.0.0.1:1"}},
		{"wrong credentials", `not connected: the server refuses it: .*Authorization`, []string{"--nats", closed}},
		{"no JetStream", `JetStream does not say which streams there are: .`, []string{"--nats", core}},
		{"no streams", `streams not found: \[.*rdv_INBOX`, []string{"--nats", empty}},
		{"no room for the default limit", `invalid: event-limit`, []string{"--nats", small}},
		{"room for the plane's", `streams not found: \[.*rdv_INBOX`, []string{"--nats", small, "--event-limit", "600000"}},
		{"no limit", `invalid: event-limit`, []string{"--nats", empty, "--event-limit", "0"}},
		{"no such context", `invalid: nats.context`, []string{"--nats-context", t.TempDir() + "/none.json"}},
		{"a seed that is none", `invalid: nats.nkey`, []string{"--nats", empty, "--nats-nkey", t.TempDir()}},
	} {
		r := u.run(append([]string{"doctor"}, row.flags...)...)
		if r.code != 1 || !regexp.MustCompile(`(?s)API +ok.*NATS +BAD +`+row.says).MatchString(r.out) {
			t.Errorf("%s: exit code %d, output %q and %q; want 1 and %s", row.name, r.code, r.out, r.err, row.says)
		}
	}
}
