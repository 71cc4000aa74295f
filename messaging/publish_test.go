package messaging_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.opentelemetry.io/otel/trace"

	rendezvous "github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/messaging"
)

func (p *plane) message(stream string, seq uint64) *jetstream.RawStreamMsg {
	p.t.Helper()
	s, err := p.conn.JetStream().Stream(p.t.Context(), stream)
	must(p.t, err)
	m, err := s.GetMsg(p.t.Context(), seq)
	must(p.t, err)
	return m
}

func TestANoticeOnTheWire(t *testing.T) {
	p := newPlane(t)
	p.provision()
	e := event(1)
	e.Trace = rendezvous.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b"}
	p.publish(e, messaging.ResumeNotice{Tenant: "acme", Queue: "orders", WorkflowID: "w", RunID: "r", Seq: 3, Cause: rendezvous.CauseAnswered})

	m := p.message("rdv_MATCH", 1)
	if want := p.conn.Names().MatchSubject(e.Partition()); m.Subject != want {
		t.Errorf("subject %s, want %s", m.Subject, want)
	}
	if got, want := string(m.Data), `{"tenant":"acme","source":"urn:test","id":"e-1"}`; got != want {
		t.Errorf("body %s, want %s", got, want)
	}
	if m.Header["traceparent"][0] != e.Trace.Parent || m.Header["tracestate"][0] != "a=b" {
		t.Errorf("headers %v: want the notice's trace, in lower case", m.Header)
	}
	if m.Header.Get(nats.MsgIdHdr) == "" || m.Header.Get(nats.ExpectedStreamHdr) != "rdv_MATCH" {
		t.Errorf("headers %v: want a message id and the expected stream", m.Header)
	}
	r := p.message("rdv_RESUME", 1)
	if got, want := string(r.Data), `{"workflow_id":"w","run_id":"r","seq":3,"cause":"answered"}`; r.Subject != "rdv.acme.resume.orders" || got != want {
		t.Errorf("resume notice %s %s, want %s", r.Subject, got, want)
	}
}

func TestANoticeWithoutTraceCarriesTheSpanOfItsContext(t *testing.T) {
	p := newPlane(t)
	p.provision()
	span := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	must(t, p.conn.Publish(trace.ContextWithSpanContext(t.Context(), span), []messaging.Notice{event(1)}))
	got := messaging.ExtractTrace(context.Background(), nats.Header(p.message("rdv_MATCH", 1).Header))
	if sc := trace.SpanContextFromContext(got); sc.TraceID() != span.TraceID() || sc.SpanID() != span.SpanID() {
		t.Errorf("carried %v, want %v", sc, span)
	}
}

func TestOneIntentIsStoredOnceAndARepeatThatIsMeantAgain(t *testing.T) {
	for _, sync := range []bool{false, true} { // batches are used either way on the embedded server; both write modes of it
		t.Run(fmt.Sprintf("sync=%v", sync), func(t *testing.T) {
			p := newPlane(t, func(c *messaging.Config) { c.Embedded.NoSync = !sync })
			p.provision()
			p.publish(events(0, 100)...)
			p.publish(events(50, 150)...)                         // a batch with known ids in it
			p.publish(event(7), event(7), event(200), event(200)) // repeats inside one call
			later := event(7)
			later.Attempt = 1
			p.publish(later)
			if got := p.stream("rdv_MATCH").State.Msgs; got != 152 {
				t.Errorf("%d messages stored, want 152", got)
			}
		})
	}
}

func TestPublishMakesMissingStreams(t *testing.T) {
	p := newPlane(t)
	p.eventually("connected", p.conn.Connected)
	must(t, p.conn.Publish(t.Context(), events(0, 10))) // at once: it provisions and sends again
	if got := p.stream("rdv_MATCH").State.Msgs; got != 10 {
		t.Errorf("%d messages stored, want 10", got)
	}
}

func TestPublishNamesWhatCannotBeSentAndSendsTheRest(t *testing.T) {
	p := newPlane(t)
	p.provision()
	bad := event(1)
	bad.Tenant = "a.b"
	err := p.conn.Publish(t.Context(), []messaging.Notice{event(0), bad, event(2), messaging.ResumeNotice{Tenant: "acme", Queue: "q"}})
	var pe *messaging.PublishError
	if !errors.As(err, &pe) || fmt.Sprint(pe.Failed) != "[1 3]" || !errors.Is(err, rendezvous.ErrInvalid) {
		t.Errorf("got %v, want notices 1 and 3 named as invalid", err)
	}
	if got := p.stream("rdv_MATCH").State.Msgs; got != 2 {
		t.Errorf("%d messages stored, want the two good ones", got)
	}
}

func TestPublishFailsAtOnceWhileTheBrokerIsAway(t *testing.T) {
	p := newPlane(t, func(c *messaging.Config) { c.PublishTimeout = 5 * time.Minute }) // waiting would show
	p.provision()
	p.restart(func() {
		p.eventually("the connection is known to be lost", func() bool { return !p.conn.Connected() })
		began := time.Now()
		err := p.conn.Publish(t.Context(), []messaging.Notice{event(0), event(1)})
		if took := time.Since(began); took > patience {
			t.Errorf("it took %v", took)
		}
		var pe *messaging.PublishError
		if !errors.As(err, &pe) || len(pe.Failed) != 2 || !errors.Is(err, rendezvous.ErrUnavailable) {
			t.Errorf("got %v, want both named as unavailable", err)
		}
	})
	p.publish(event(0), event(1))
}

// A broker that acknowledges nothing fills the window; whoever leaves then is not held back by it, and is told of every notice.
func TestPublishEndsWithItsContextWhileTheWindowIsFull(t *testing.T) {
	cfg := rawConfig(t)
	cfg.PublishTimeout = 5 * time.Minute // waiting would show
	conn, err := messaging.Connect(cfg, messaging.Deps{Log: testLog(t), InProcess: rawServer(t, 8<<20)})
	must(t, err)
	defer conn.Close()
	mute := make(chan struct{}, 1000) // somebody listens, so the broker does not say that nobody does
	for i := range messaging.Partitions {
		_, err := conn.ConsumeConn().Subscribe(conn.Names().MatchSubject(i), func(*nats.Msg) { mute <- struct{}{} })
		must(t, err)
	}
	must(t, conn.ConsumeConn().Flush())
	late := errors.New("the caller left")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		for range 256 {
			<-mute
		}
		cancel(late)
	}()
	start := time.Now()
	err = conn.Publish(ctx, events(0, 300))
	var failed *messaging.PublishError
	if !errors.As(err, &failed) || len(failed.Failed) != 300 || !errors.Is(err, rendezvous.ErrUnavailable) || !errors.Is(err, late) {
		t.Errorf("got %v", err)
	}
	if d := time.Since(start); d > time.Minute {
		t.Errorf("it took %v", d)
	}
}

func TestPublishAcrossARestartEndsWithEveryNoticeStoredOrNamed(t *testing.T) {
	p := newPlane(t)
	p.provision()
	failed := map[int]bool{}
	results := make(chan error, 40)
	for g := range 40 {
		go func() { results <- p.conn.Publish(t.Context(), events(g*100, g*100+100)) }()
	}
	p.restart(func() {})
	for range 40 {
		err := <-results
		var pe *messaging.PublishError
		if err != nil && !errors.As(err, &pe) {
			t.Errorf("got %v, want a PublishError", err)
		}
		if pe != nil && len(pe.Failed) == 0 {
			t.Errorf("%v names nothing", err)
		}
		failed[len(failed)] = err != nil
	}
	for g := range 40 { // whatever was named is sent again, by its callers
		p.publish(events(g*100, g*100+100)...)
	}
	s := newSeen()
	c, err := p.conn.ConsumeMatch(messaging.ConsumeOptions{}, s.matchHandler())
	must(t, err)
	s.wait(t, "all notices", func() bool { return s.names() == 4000 })
	stop(t, c)
}

func TestRejectedKeepsWhatCameWithItsReasonAndNoSteeringHeaders(t *testing.T) {
	p := newPlane(t)
	p.provision()
	p.send("acme", "x", nats.Header{
		"Nats-Msg-Id": {"theirs"}, "nats-ttl": {"1s"}, "Reason": {"theirs"}, "ce-id": {"1"}, "Content-Type": {"application/cloudevents-batch+json"},
	}, []byte("not an event"))
	p.conn.PublishConn().Publish("rdv.a$b.in.x", []byte("no tenant"))
	s := newSeen()
	c, err := p.conn.ConsumeInbox(messaging.ConsumeOptions{}, func(ctx context.Context, b []messaging.Msg) []messaging.Outcome {
		return all(b, func(m messaging.Msg) messaging.Outcome {
			r := messaging.Rejected{Message: m, Reason: "invalid", Detail: "line one\r\nline: two " + strings.Repeat("ü", 1000)}
			one := r
			one.Body, one.Index, one.ContentType = []byte(`{"one":1}`), 4, "application/cloudevents+json"
			if err := p.conn.RejectBatch(ctx, []messaging.Rejected{r, one, r}); err != nil { // r again: stored once
				t.Error(err)
			}
			s.add(m.Subject)
			return messaging.Ack()
		})
	})
	must(t, err)
	s.wait(t, "both rejected", func() bool { return s.names() == 2 })
	stop(t, c)
	if got := p.stream("rdv_REJECTED").State.Msgs; got != 4 {
		t.Fatalf("%d messages in REJECTED, want 4", got)
	}
	m := p.message("rdv_REJECTED", 1)
	if m.Subject != "rdv.acme.rejected" || string(m.Data) != "not an event" || m.Header.Get("ce-id") != "1" {
		t.Errorf("got %s %q %v", m.Subject, m.Data, m.Header)
	}
	if m.Header.Get("reason") != "invalid" || !strings.HasPrefix(m.Header.Get("detail"), "line one  line: two ü") || len(m.Header.Get("detail")) > 512 {
		t.Errorf("reason %q, detail %q", m.Header.Get("reason"), m.Header.Get("detail"))
	}
	if m.Header["Nats-Msg-Id"][0] == "theirs" || m.Header["nats-ttl"] != nil || m.Header["Reason"] != nil {
		t.Errorf("headers %v: the message's own Nats-* and reason must not go along", m.Header)
	}
	one := p.message("rdv_REJECTED", 2)
	if string(one.Data) != `{"one":1}` || one.Header["content-type"][0] != "application/cloudevents+json" || one.Header["Content-Type"] != nil {
		t.Errorf("one event of a batch: %q %v", one.Data, one.Header)
	}
	if m := p.message("rdv_REJECTED", 3); m.Subject != "rdv.note.rejected" {
		t.Errorf("without a tenant: subject %s", m.Subject)
	}
}

// What producers were promised is synced; notices, which the store can make again, are not (I11).
func TestTheEmbeddedServerSyncsEventsAndNotNotices(t *testing.T) {
	p := newPlane(t)
	p.provision()
	for stream, want := range map[string]jetstream.PersistModeType{
		"rdv_INBOX": jetstream.DefaultPersistMode, "rdv_REJECTED": jetstream.DefaultPersistMode,
		"rdv_MATCH": jetstream.AsyncPersistMode, "rdv_RESUME": jetstream.AsyncPersistMode,
	} {
		if got := p.stream(stream).Config.PersistMode; got != want {
			t.Errorf("%s persists %s, want %s", stream, got, want)
		}
	}
}

// The same notices over a listener.
func TestAnExternalServerTakesNoticesOneByOne(t *testing.T) {
	p := newPlane(t, func(c *messaging.Config) { c.Embedded.Listen = "127.0.0.1:0" })
	cfg := messaging.DefaultConfig()
	cfg.URL = p.broker.URL()
	outside, err := messaging.Connect(cfg, messaging.Deps{Log: testLog(t)})
	must(t, err)
	must(t, outside.Publish(t.Context(), events(0, 1000))) // four windows
	must(t, outside.Drain(t.Context()))
	if got := p.stream("rdv_MATCH"); got.State.Msgs != 1000 {
		t.Errorf("%d messages, want 1000", got.State.Msgs)
	}
}

func TestAFullMatchRefusesAndNamesWhatDidNotFit(t *testing.T) {
	p := newPlane(t, func(c *messaging.Config) { c.MatchMaxBytes = 1 << 20 })
	p.provision()
	var pe *messaging.PublishError
	if err := p.conn.Publish(t.Context(), events(0, 8000)); !errors.As(err, &pe) {
		t.Fatalf("got %v, want a PublishError", err)
	}
	stored := int(p.stream("rdv_MATCH").State.Msgs)
	if stored == 0 || stored == 8000 || stored+len(pe.Failed) < 8000 {
		t.Errorf("%d stored and %d named of 8000: what is not stored is named", stored, len(pe.Failed))
	}
}
