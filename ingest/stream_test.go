package ingest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/internal/node"
	"github.com/rendezvous-events/rendezvous/internal/nodetest"
	"github.com/rendezvous-events/rendezvous/store/backend"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

// producer is a plain JetStream client beside a running node.
type producer struct {
	t  *testing.T
	nc *nats.Conn
	js jetstream.JetStream
}

func newProducer(t *testing.T, url string) producer {
	nc := nodetest.NATS(t, url)
	js, err := jetstream.New(nc)
	must(t, err)
	return producer{t, nc, js}
}

func (p producer) publish(subject, body string, header ...string) {
	p.t.Helper()
	m := message(0, body, header...)
	_, err := p.js.PublishMsg(p.t.Context(), &nats.Msg{Subject: subject, Header: m.Header, Data: m.Data})
	must(p.t, err)
}

// get asks events.get for an event of urn:a until the reply holds want.
func (p producer) get(tenant, id, want string) {
	p.t.Helper()
	var last string
	for end := time.Now().Add(nodetest.Patience); time.Now().Before(end); clock.Sleep(context.Background(), clock.System, 5*time.Millisecond) {
		r, err := p.nc.Request("rdv."+tenant+".api.events.get", []byte(`{"source":"urn:a","id":"`+id+`","include_data":true}`), nodetest.Patience)
		must(p.t, err)
		if last = string(r.Data); strings.Contains(last, want) {
			return
		}
	}
	p.t.Fatalf("%s: %s does not hold %s", id, last, want)
}

// The stream door end to end: three modes reach the store with their payloads, what is refused stands in REJECTED as it came, and INBOX empties.
func TestTheStreamDoorEndToEnd(t *testing.T) {
	n := nodetest.Start(t)
	p := newProducer(t, n.NATSURL)
	p.publish("rdv.acme.in.payment.received", "hello", "ce-specversion", "1.0", "ce-id", "binary", "ce-source", "urn:a", "ce-type", "t", "content-type", "text/plain")
	p.publish("rdv.acme.in.x", event("structured", `"data":{"n":1}`), "Content-Type", "application/cloudevents+json")
	p.publish("rdv.acme.in.x", `[`+event("one")+`,`+event("bad", `"Name":1`)+`]`, "content-type", "application/cloudevents-batch+json")
	p.publish("rdv.acme.in.x", "\xff\x00 not an event", "content-type", "application/cloudevents+json", "x-mine", "kept")
	p.get("acme", "binary", `"payload":{"data_base64":"aGVsbG8=","content_type":"text/plain"}`)
	p.get("acme", "structured", `"payload":{"data":{"n":1},"content_type":"application/json"}`)
	p.get("acme", "one", `"state":"live"`)

	cons, err := p.js.OrderedConsumer(t.Context(), "rdv_REJECTED", jetstream.OrderedConsumerConfig{})
	must(t, err)
	got := map[string]jetstream.Msg{}
	for range 2 {
		m, err := cons.Next(jetstream.FetchMaxWait(nodetest.Patience))
		must(t, err)
		if m.Subject() != "rdv.acme.rejected" || m.Headers().Get("reason") != "invalid" || m.Headers().Get("detail") == "" {
			t.Errorf("rejected on %s with %v", m.Subject(), m.Headers())
		}
		got[string(m.Data())] = m
	}
	if got[event("bad", `"Name":1`)] == nil {
		t.Error("the bad event of the batch is not there alone")
	}
	if m := got["\xff\x00 not an event"]; m == nil || m.Headers().Get("x-mine") != "kept" {
		t.Error("the unreadable message is not there as it came")
	}
	inbox, err := p.js.Stream(t.Context(), "rdv_INBOX")
	must(t, err)
	for end := time.Now().Add(nodetest.Patience); ; clock.Sleep(context.Background(), clock.System, 5*time.Millisecond) {
		info, err := inbox.Info(t.Context())
		must(t, err)
		if info.State.Msgs == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d messages stay in INBOX", info.State.Msgs)
		}
	}
}

// EV-12: while the store is away the stream keeps the messages; they are New when it is back.
func TestTheStreamKeepsMessagesWhileTheStoreIsAway(t *testing.T) {
	var faults *fault.Backend
	n := nodetest.Start(t, func(c *node.Config) {
		c.Wrap = func(b backend.Backend) backend.Backend { faults = fault.Wrap(b); return faults }
	})
	p := newProducer(t, n.NATSURL)
	struck := make(chan struct{}, 1)
	away := faults.Arm(fault.Failure{Verb: "buffer_batch", Point: fault.BeforeCommit, Times: -1, Do: func(context.Context) error {
		select {
		case struck <- struct{}{}:
		default:
		}
		return context.DeadlineExceeded // any foreign error: nothing is committed
	}})
	p.publish("rdv.acme.in.x", event("x"), "content-type", "application/cloudevents+json")
	<-struck
	p.get("acme", "x", `"not_found"`)
	away.Disarm()
	p.get("acme", "x", `"state":"live"`)
}

// A node that is stopped drains: what it took is committed and acknowledged, what it had not begun is given back, and the next one takes that at once.
func TestADrainedNodeLeavesNothingBehind(t *testing.T) {
	url, external := nodetest.Broker(t)
	first, err := node.Start(t.Context(), nodetest.Config(t, external))
	must(t, err)
	p := newProducer(t, url)
	for range 200 {
		p.publish("rdv.acme.in.x", event("x"), "content-type", "application/cloudevents+json")
	}
	nodetest.Stop(t, first)
	nodetest.Start(t, external)
	inbox, err := p.js.Consumer(t.Context(), "rdv_INBOX", "ingest")
	must(t, err)
	for start := time.Now(); ; clock.Sleep(context.Background(), clock.System, 5*time.Millisecond) {
		info, err := inbox.Info(t.Context())
		must(t, err)
		if info.NumAckPending == 0 && info.NumPending == 0 {
			break
		}
		if time.Since(start) > 20*time.Second { // well under the AckWait that would bring what was left behind
			t.Fatalf("%d pending, %d unacknowledged", info.NumPending, info.NumAckPending)
		}
	}
}
