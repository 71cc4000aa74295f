package messaging_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	rendezvous "github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/messaging"
)

func TestStreamsAreThoseOfTheTable(t *testing.T) {
	p := newPlane(t, func(c *messaging.Config) { c.InboxMaxBytes, c.MatchMaxBytes = 64<<20, 32<<20 })
	p.provision()
	type row struct {
		Subjects  []string
		Retention jetstream.RetentionPolicy
		Discard   jetstream.DiscardPolicy
		MaxBytes  int64
		MaxSize   int32
		MaxAge    time.Duration
		Dedup     time.Duration
		Storage   jetstream.StorageType
		Replicas  int
	}
	var match []string
	for i := range 16 {
		match = append(match, fmt.Sprintf("rdv.match.%d", i))
	}
	const day, dedup = 24 * time.Hour, 2 * time.Minute
	want := map[string]row{
		"rdv_INBOX":    {[]string{"rdv.*.in.>"}, jetstream.WorkQueuePolicy, jetstream.DiscardNew, 64 << 20, 2<<20 + 64<<10, 0, dedup, jetstream.FileStorage, 1},
		"rdv_MATCH":    {match, jetstream.WorkQueuePolicy, jetstream.DiscardNew, 32 << 20, -1, 0, dedup, jetstream.FileStorage, 1},
		"rdv_RESUME":   {[]string{"rdv.*.resume.*"}, jetstream.LimitsPolicy, jetstream.DiscardOld, -1, -1, time.Hour, dedup, jetstream.FileStorage, 1},
		"rdv_REJECTED": {[]string{"rdv.*.rejected"}, jetstream.LimitsPolicy, jetstream.DiscardOld, -1, -1, 30 * day, dedup, jetstream.FileStorage, 1},
		"rdv_ADVISORY": {
			[]string{"$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.>", "$JS.EVENT.ADVISORY.CONSUMER.MSG_TERMINATED.>"},
			jetstream.LimitsPolicy, jetstream.DiscardOld, -1, -1, 7 * day, dedup, jetstream.FileStorage, 1,
		},
	}
	got := map[string]row{}
	for _, name := range p.streams() {
		c := p.stream(name).Config
		got[name] = row{c.Subjects, c.Retention, c.Discard, c.MaxBytes, c.MaxMsgSize, c.MaxAge, c.Duplicates, c.Storage, c.Replicas}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("streams (-want +got):\n%s", d)
	}
}

func TestDurablesAreExplicitPullConsumersOnePerPartition(t *testing.T) {
	p := newPlane(t, func(c *messaging.Config) { c.AckWait = 7 * time.Second })
	p.provision()
	check := func(stream, durable, filter string) {
		c := p.consumer(stream, durable).Config
		if c.FilterSubject != filter || c.AckPolicy != jetstream.AckExplicitPolicy || c.AckWait != 7*time.Second || c.BackOff != nil ||
			c.InactiveThreshold != 0 || c.DeliverSubject != "" || c.Durable != durable || c.MaxDeliver < 1000 {
			t.Errorf("%s/%s: %+v", stream, durable, c)
		}
	}
	check("rdv_INBOX", "ingest", "rdv.*.in.>")
	check("rdv_ADVISORY", "sweep", "")
	for i := range 16 {
		check("rdv_MATCH", fmt.Sprintf("match-%d", i), fmt.Sprintf("rdv.match.%d", i))
		check("rdv_PUSH", fmt.Sprintf("push-%d", i), fmt.Sprintf("rdv.push.%d.*", i))
	}
}

func TestProvisionIsIdempotentAndConcurrent(t *testing.T) {
	p := newPlane(t)
	var g errgroup.Group
	for range 3 {
		other := p.connect()
		defer other.Close()
		for range 2 {
			g.Go(func() error { return other.Provision(t.Context()) })
		}
	}
	must(t, g.Wait())
	before := p.configs()
	p.provision()
	if after := p.configs(); !reflect.DeepEqual(before, after) {
		t.Errorf("provisioning again changed something:\n%s", cmp.Diff(before, after))
	}
	if n := len(before); n != 6+34 {
		t.Errorf("%d streams and consumers, want 40", n)
	}
}

func (p *plane) configs() map[string]any {
	out := map[string]any{}
	for _, name := range p.streams() {
		out[name] = p.stream(name).Config
		s, err := p.conn.JetStream().Stream(p.t.Context(), name)
		must(p.t, err)
		list := s.ListConsumers(p.t.Context())
		for c := range list.Info() {
			out[name+"/"+c.Name] = c.Config
		}
		must(p.t, list.Err())
	}
	return out
}

func TestProvisionLeavesWhatExistsAsItIs(t *testing.T) {
	p := newPlane(t)
	p.eventually("connected", p.conn.Connected)
	js := p.conn.JetStream()
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "rdv_RESUME", Subjects: []string{"rdv.*.resume.*"}, MaxAge: time.Minute})
	must(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "rdv_MATCH", Subjects: []string{"rdv.match.0", "rdv.match.1"}, Retention: jetstream.WorkQueuePolicy})
	must(t, err)
	_, err = js.CreateConsumer(t.Context(), "rdv_MATCH", jetstream.ConsumerConfig{Durable: "match-0", FilterSubject: "rdv.match.1", AckPolicy: jetstream.AckExplicitPolicy})
	must(t, err)
	_ = p.conn.Provision(t.Context()) // match-1 cannot be made beside such a match-0; that is the operator's to see
	if got := p.stream("rdv_RESUME").Config.MaxAge; got != time.Minute {
		t.Errorf("RESUME's age is %v now", got)
	}
	if got := p.consumer("rdv_MATCH", "match-0").Config.FilterSubject; got != "rdv.match.1" {
		t.Errorf("match-0's filter is %s now", got)
	}
}

// Trying again would never help: whoever set it has to know what and why.
func TestReplicasThatAServerAloneCannotKeepAreRefusedByName(t *testing.T) {
	cfg := rawConfig(t)
	cfg.URL, cfg.Replicas = "nats://in-process", 3 // as a worker beside a server outside
	conn, err := messaging.Connect(cfg, messaging.Deps{Log: testLog(t), InProcess: rawServer(t, 8<<20)})
	must(t, err)
	defer conn.Close()
	err = conn.Provision(t.Context())
	var e *rendezvous.Error
	if !errors.As(err, &e) || e.Code != rendezvous.CodeInvalid || e.Details["field"] != "nats-replicas" || e.Details["limit"] != 1 || e.Details["value"] != 3 {
		t.Errorf("got %v with %v", err, e)
	}
	if errors.Unwrap(err) == nil {
		t.Error("the server's own words are lost")
	}
}
