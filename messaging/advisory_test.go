package messaging_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/rendezvous-events/rendezvous/messaging"
)

// messaging.md section 2: a message that ran out of deliveries is otherwise invisible. Streams that are not the plane's are in the same account, and told apart.
func TestAdvisoriesTellWhichMessageWasGivenUpAndHow(t *testing.T) {
	p := newPlane(t)
	p.provision()
	js, names := p.conn.JetStream(), p.conn.Names()
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "orders", Subjects: []string{"orders"}})
	must(t, err)
	for stream, subject := range map[string]string{names.Resume(): names.ResumeSubject("acme", "q"), "orders": "orders"} {
		_, err := js.Publish(t.Context(), subject, []byte("{}"))
		must(t, err)
		p.exhaust(stream)
	}
	_, err = js.Publish(t.Context(), names.MatchSubject(3), []byte("no notice"))
	must(t, err)
	match, err := p.conn.ConsumeMatch(messaging.ConsumeOptions{}, newSeen().matchHandler()) // it terminates what does not decode
	must(t, err)
	got := make(chan messaging.Advisory, 10)
	c, err := p.conn.ConsumeAdvisory(messaging.ConsumeOptions{}, func(_ context.Context, b []messaging.Advisory) []messaging.Outcome {
		return all(b, func(a messaging.Advisory) messaging.Outcome { got <- a; return messaging.Ack() })
	})
	must(t, err)
	want := map[messaging.Advisory]bool{
		{Stream: "RESUME", Consumer: "probe", Sequence: 1, Deliveries: 1, Exhausted: true}: true,
		{Stream: "", Consumer: "probe", Sequence: 1, Deliveries: 1, Exhausted: true}:       true,
		{Stream: "MATCH", Consumer: "match-3", Sequence: 1, Deliveries: 1}:                 true,
	}
	for range len(want) {
		select {
		case a := <-got:
			if !want[a] {
				t.Errorf("got %+v", a)
			}
			delete(want, a)
		case <-time.After(patience):
			t.Fatalf("did not come: %+v", want)
		}
	}
	stop(t, match)
	stop(t, c)
}

// exhaust makes a stream's messages run out of deliveries at a consumer that allows one.
func (p *plane) exhaust(stream string) {
	p.t.Helper()
	c, err := p.conn.JetStream().CreateConsumer(p.t.Context(), stream, jetstream.ConsumerConfig{
		Durable: "probe", AckPolicy: jetstream.AckExplicitPolicy, AckWait: 50 * time.Millisecond, MaxDeliver: 1,
	})
	must(p.t, err)
	for range 2 { // the second pull finds it unacknowledged and not to be delivered again
		got, err := c.Fetch(1, jetstream.FetchMaxWait(500*time.Millisecond))
		must(p.t, err)
		for range got.Messages() {
		}
	}
}
