package api_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/wire"
)

// An identity twice in one batch: the second sees what the first did, also where one of them names its run (R3, EV-7).
func TestAnIdentityTwiceInABatchIsDecidedInItsOrder(t *testing.T) {
	d := natsDoor{nodetest.NATS(t, nodetest.Start(t).NATSURL)}
	plain, other := `"data":1`, `"data":2`
	for name, c := range map[string]struct {
		first, second func(run string) string
		want          [2]string
	}{
		"targeted, plain":                {toRun(plain), toAll(plain), [2]string{wire.Accepted, wire.Duplicate}},
		"targeted, plain, other content": {toRun(plain), toAll(other), [2]string{wire.Accepted, wire.Conflict}},
		"targeted twice":                 {toRun(plain), toRun(plain), [2]string{wire.Accepted, wire.Duplicate}},
		"targeted twice, other content":  {toRun(plain), toRun(other), [2]string{wire.Accepted, wire.Conflict}},
		"plain, targeted, other content": {toAll(plain), toRun(other), [2]string{wire.Accepted, wire.Conflict}},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range 50 {
				run := fmt.Sprintf("%s-%d", name, i)
				ok(t, d, "acme", "runs.start", fmt.Sprintf(`{"workflow_id":%q,"run_id":%q,"type":"t"}`, run, run))
				ok(t, d, "acme", "runs.await", fmt.Sprintf(`{"run_id":%q,"effect":"e","type":"t","keys":[]}`, run))
				var got wire.PutResults
				must(t, json.Unmarshal(ok(t, d, "acme", "events.put", `{"events":[`+c.first(run)+`,`+c.second(run)+`]}`), &got))
				if r := got.Results; r[0].Outcome != c.want[0] || r[1].Outcome != c.want[1] {
					t.Fatalf("batch %d: %s, %s; want %v", i, r[0].Outcome, r[1].Outcome, c.want)
				}
			}
		})
	}
}

// toRun and toAll make an event whose identity is the run's name, for that run or for all.
func toRun(data string) func(run string) string {
	return func(run string) string {
		return fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"s","type":"t","rdvrun":%q,%s}`, run, run, data)
	}
}

func toAll(data string) func(run string) string {
	return func(run string) string {
		return fmt.Sprintf(`{"specversion":"1.0","id":%q,"source":"s","type":"t",%s}`, run, data)
	}
}

// An event that the stream door kept for a run which does not wait is known: delivered again it is a duplicate, and live (decision 0006).
func TestAKeptEventDeliveredAgainIsADuplicate(t *testing.T) {
	n := nodetest.Start(t)
	nc := nodetest.NATS(t, n.NATSURL)
	d := natsDoor{nc}
	ok(t, d, "acme", "runs.start", `{"workflow_id":"w","run_id":"run-1","type":"t"}`)
	event := `{"specversion":"1.0","id":"kept","source":"s","type":"t","rdvrun":"run-1","data":1}`
	m := &nats.Msg{Subject: "rdv.acme.in.t", Header: nats.Header{"content-type": {"application/cloudevents+json"}}, Data: []byte(event)}
	_, err := nc.RequestMsg(m, nodetest.Patience)
	must(t, err)
	for d.call(t, "acme", "events.get", `{"source":"s","id":"kept"}`).status != 200 {
		must(t, clock.Sleep(t.Context(), clock.System, 10*time.Millisecond))
	}
	match(t, `{"outcome":"duplicate","state":"live","run_id":"run-1"}`, ok(t, d, "acme", "events.deliver", `{"run_id":"run-1","event":`+event+`}`))
	match(t, `{"results":[{"source":"s","id":"kept","outcome":"duplicate","state":"live"}]}`, ok(t, d, "acme", "events.put", `{"events":[`+event+`]}`))
}
