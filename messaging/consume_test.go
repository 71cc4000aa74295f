package messaging_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rendezvous-events/rendezvous/messaging"
)

func TestEveryMatchNoticeReachesTheHandlerFromAllPartitions(t *testing.T) {
	p := newPlane(t)
	p.provision()
	p.publish(events(0, 2000)...)
	s := newSeen()
	c, err := p.conn.ConsumeMatch(messaging.ConsumeOptions{}, s.matchHandler())
	must(t, err)
	s.wait(t, "2000 notices", func() bool { return s.names() == 2000 })
	stop(t, c)
	p.eventually("MATCH is empty", func() bool { return p.stream(p.conn.Names().Match()).State.Msgs == 0 })
}

func TestBatchesHoldAtMostTheirSizeAndFillUnderBacklog(t *testing.T) {
	p := newPlane(t)
	p.provision()
	p.publish(events(0, 1000)...)
	s, sizes := newSeen(), make(chan int, 1000)
	h := s.matchHandler()
	c, err := p.conn.ConsumeMatch(messaging.ConsumeOptions{Batch: messaging.Batch{Size: 100, Linger: 200 * time.Millisecond}},
		func(ctx context.Context, b []messaging.MatchNotice) []messaging.Outcome {
			sizes <- len(b)
			return h(ctx, b)
		})
	must(t, err)
	s.wait(t, "1000 notices", func() bool { return s.names() == 1000 })
	stop(t, c)
	close(sizes)
	full := 0
	for n := range sizes {
		if n > 100 {
			t.Errorf("a batch of %d, asked for at most 100", n)
		}
		if n == 100 {
			full++
		}
	}
	if full < 5 {
		t.Errorf("only %d full batches of 10 possible from a backlog", full)
	}
}

func TestOutcomesBecomeTheRightAcknowledgements(t *testing.T) {
	p := newPlane(t)
	p.provision()
	for _, id := range []string{"ack", "retry", "term", "release", "forgotten"} {
		p.send("acme", id, nil, []byte(id))
	}
	s := newSeen()
	c, err := p.conn.ConsumeInbox(messaging.ConsumeOptions{Batch: messaging.Batch{Size: 1}},
		func(_ context.Context, b []messaging.Msg) []messaging.Outcome {
			m := b[0]
			defer s.add(string(m.Data))
			if m.Delivered > 1 {
				return []messaging.Outcome{messaging.Ack()}
			}
			return map[string][]messaging.Outcome{
				"ack": {messaging.Ack()}, "retry": {messaging.Retry(0)}, "term": {messaging.Term("cannot work")},
				"release": {messaging.Release()}, "forgotten": nil,
			}[string(m.Data)]
		})
	must(t, err)
	// Well before AckWait: the delayed ones by their NAK, the released one at once.
	s.wait(t, "retried, released and forgotten come again", func() bool {
		return s.of("retry") == 2 && s.of("release") == 2 && s.of("forgotten") == 2
	})
	p.eventually("INBOX is empty", func() bool { return p.stream(p.conn.Names().Inbox()).State.Msgs == 0 })
	stop(t, c)
	if s.of("ack") != 1 || s.of("term") != 1 {
		t.Errorf("acknowledged came %d times, terminated %d times; want once each", s.of("ack"), s.of("term"))
	}
	p.eventually("the termination is in ADVISORY", func() bool { return p.stream(p.conn.Names().Advisory()).State.Msgs == 1 })
}

func TestDrainLeavesNoMessageUnacknowledged(t *testing.T) {
	p := newPlane(t) // AckWait 30 s: whatever were left behind would come too late for this test
	p.provision()
	const n = 3000
	p.publish(events(0, n)...)
	s := newSeen()
	began, goOn := make(chan struct{}, n), make(chan struct{})
	h := s.matchHandler()
	c, err := p.conn.ConsumeMatch(messaging.ConsumeOptions{}, func(ctx context.Context, b []messaging.MatchNotice) []messaging.Outcome {
		began <- struct{}{}
		<-goOn
		return h(ctx, b)
	})
	must(t, err)
	<-began // a batch is in the handler and more is prefetched
	go close(goOn)
	stop(t, c)
	first := s.names()
	if first == 0 || first == n {
		t.Fatalf("%d of %d handled before the stop; the test needs some and not all", first, n)
	}
	again, err := p.conn.ConsumeMatch(messaging.ConsumeOptions{}, s.matchHandler())
	must(t, err)
	s.wait(t, "the rest comes at once", func() bool { return s.names() == n })
	stop(t, again)
	for i := range n {
		if got := s.of(event(i).ID); got != 1 {
			t.Fatalf("%s handled %d times", event(i).ID, got)
		}
	}
}

func TestAHandlerThatPanicsGetsItsMessagesAgain(t *testing.T) {
	p := newPlane(t)
	p.provision()
	s := newSeen()
	c, err := p.conn.ConsumeMatch(messaging.ConsumeOptions{}, func(ctx context.Context, batch []messaging.MatchNotice) []messaging.Outcome {
		if s.add("try"); s.of("try") == 1 {
			panic("a bug")
		}
		return s.matchHandler()(ctx, batch)
	})
	must(t, err)
	p.publish(event(1))
	s.wait(t, "the notice, handled", func() bool { return s.of("e-1") == 1 })
	stop(t, c)
}

func TestStopOutOfPatienceCancelsTheHandler(t *testing.T) {
	p := newPlane(t)
	p.provision()
	p.publish(event(1))
	began := make(chan struct{})
	c, err := p.conn.ConsumeMatch(messaging.ConsumeOptions{}, func(ctx context.Context, b []messaging.MatchNotice) []messaging.Outcome {
		close(began)
		<-ctx.Done()
		return all(b, func(messaging.MatchNotice) messaging.Outcome { return messaging.Release() })
	})
	must(t, err)
	<-began
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Stop(ctx); err == nil {
		t.Error("a stop that had to cancel its handler says nothing")
	}
	stop(t, c) // idempotent
}

func TestAMessageThatLooksLikeABrokersStatusIsStillAMessage(t *testing.T) {
	p := newPlane(t)
	p.provision()
	for _, status := range []string{"100", "408", "409", "503"} {
		p.send("acme", "x", nats.Header{"Status": {status}, "Description": {"Consumer Deleted"}, "ce-id": {status}}, nil)
	}
	s := newSeen()
	c, err := p.conn.ConsumeInbox(messaging.ConsumeOptions{}, func(_ context.Context, b []messaging.Msg) []messaging.Outcome {
		return all(b, func(m messaging.Msg) messaging.Outcome { s.add(m.Header.Get("ce-id")); return messaging.Ack() })
	})
	must(t, err)
	s.wait(t, "all four", func() bool { return s.names() == 4 })
	stop(t, c)
}

func TestInboxMessagesComeRawWithTheirTenant(t *testing.T) {
	p := newPlane(t)
	p.provision()
	body := []byte{0, 1, 2, 0xff}
	p.send("acme", "a.b.c", nats.Header{"ce-id": {"1"}, "TraceParent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}, body)
	got := make(chan messaging.Msg, 1)
	c, err := p.conn.ConsumeInbox(messaging.ConsumeOptions{}, func(_ context.Context, b []messaging.Msg) []messaging.Outcome {
		return all(b, func(m messaging.Msg) messaging.Outcome { got <- m; return messaging.Ack() })
	})
	must(t, err)
	m := <-got
	stop(t, c)
	if m.Tenant != "acme" || m.Subject != "rdv.acme.in.a.b.c" || string(m.Data) != string(body) || m.Header.Get("ce-id") != "1" {
		t.Errorf("got %+v", m)
	}
	if m.Trace().Parent != "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" {
		t.Errorf("trace %+v: headers are read in any case", m.Trace())
	}
	if m.Delivered != 1 || m.Sequence != 1 || m.Stored.IsZero() {
		t.Errorf("metadata %+v", m)
	}
}

func TestOneMessageLargerThanARequestStillComes(t *testing.T) {
	p := newPlane(t)
	p.provision()
	large := make([]byte, 2<<20)
	for i := range 12 {
		p.send("acme", "large", nil, large[:len(large)-i])
	}
	s := newSeen()
	c, err := p.conn.ConsumeInbox(messaging.ConsumeOptions{Batch: messaging.Batch{Bytes: 1 << 20}},
		func(_ context.Context, b []messaging.Msg) []messaging.Outcome {
			return all(b, func(m messaging.Msg) messaging.Outcome { s.add(fmt.Sprint(len(m.Data))); return messaging.Ack() })
		})
	must(t, err)
	s.wait(t, "all large ones", func() bool { return s.names() == 12 })
	stop(t, c)
}

func TestWhatDoesNotDecodeIsTerminated(t *testing.T) {
	p := newPlane(t)
	p.provision()
	for _, body := range []string{"{", `{"tenant":"acme"}`, `{"tenant":"a.b","source":"s","id":"1"}`, "\x00"} {
		_, err := p.conn.JetStream().Publish(t.Context(), p.conn.Names().MatchSubject(3), []byte(body))
		must(t, err)
	}
	p.publish(event(1))
	s := newSeen()
	c, err := p.conn.ConsumeMatch(messaging.ConsumeOptions{}, s.matchHandler())
	must(t, err)
	s.wait(t, "the good one", func() bool { return s.of("e-1") == 1 })
	p.eventually("MATCH is empty", func() bool { return p.stream(p.conn.Names().Match()).State.Msgs == 0 })
	stop(t, c)
	if s.names() != 1 {
		t.Errorf("the handler saw %d notices, want the good one only", s.names())
	}
}

func TestUnacknowledgedMessagesComeAgainAfterAckWait(t *testing.T) {
	p := newPlane(t, func(c *messaging.Config) { c.AckWait = 100 * time.Millisecond })
	p.provision()
	p.publish(event(1))
	s := newSeen()
	first, block := make(chan struct{}, 100), make(chan struct{})
	c, err := p.conn.ConsumeMatch(messaging.ConsumeOptions{Batch: messaging.Batch{Concurrency: 2}},
		func(_ context.Context, b []messaging.MatchNotice) []messaging.Outcome {
			if b[0].Delivered == 1 {
				first <- struct{}{}
				<-block // a worker that hangs
			}
			return all(b, func(n messaging.MatchNotice) messaging.Outcome { s.add(n.ID); return messaging.Ack() })
		})
	must(t, err)
	<-first
	s.wait(t, "the other handler gets it", func() bool { return s.of("e-1") >= 1 })
	close(block)
	stop(t, c)
}
