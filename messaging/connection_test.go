package messaging_test

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	rendezvous "github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/messaging"
)

// rawServer is a server with a max_payload of its own.
func rawServer(t *testing.T, maxPayload int32) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{DontListen: true, MaxPayload: maxPayload, NoSigs: true, NoLog: true, JetStream: true, StoreDir: t.TempDir()})
	must(t, err)
	s.Start()
	if !s.ReadyForConnections(patience) {
		t.Fatal("server not ready")
	}
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

// switched connects to whichever server is set.
type switched struct {
	mu sync.Mutex
	to *server.Server
}

func (s *switched) set(to *server.Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.to = to
}

func (s *switched) InProcessConn() (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to == nil {
		return nil, errors.New("away")
	}
	return s.to.InProcessConn()
}

func rawConfig(t *testing.T) messaging.Config {
	cfg := messaging.DefaultConfig()
	cfg.Embedded.StoreDir = t.TempDir()
	return cfg
}

func TestAServerThatTakesTooSmallMessagesIsRefusedAtStart(t *testing.T) {
	small := &switched{to: rawServer(t, int32(messaging.LeastMaxPayload(rendezvous.MaxPayload))-1)}
	_, err := messaging.Connect(rawConfig(t), messaging.Deps{Log: testLog(t), InProcess: small})
	if !errors.Is(err, rendezvous.ErrInvalid) {
		t.Fatalf("got %v, want invalid naming event-limit", err)
	}
	exact := &switched{to: rawServer(t, int32(messaging.LeastMaxPayload(rendezvous.MaxPayload)))}
	conn, err := messaging.Connect(rawConfig(t), messaging.Deps{Log: testLog(t), InProcess: exact})
	must(t, err)
	must(t, conn.Drain(t.Context()))
}

func TestAServerThatTakesTooSmallMessagesIsRefusedAfterAReconnect(t *testing.T) {
	large, small := rawServer(t, 8<<20), rawServer(t, 64<<10)
	to := &switched{to: large}
	conn, err := messaging.Connect(rawConfig(t), messaging.Deps{Log: testLog(t), InProcess: to})
	must(t, err)
	defer conn.Close()
	select {
	case err := <-conn.Failed():
		t.Fatalf("failed before the change: %v", err)
	default:
	}
	to.set(small)
	large.Shutdown()
	if err := <-conn.Failed(); !errors.Is(err, rendezvous.ErrInvalid) {
		t.Errorf("got %v, want invalid", err)
	}
}

func TestConnectWaitsForABrokerThatIsNotThereYet(t *testing.T) {
	to := &switched{}
	cfg := rawConfig(t)
	conn, err := messaging.Connect(cfg, messaging.Deps{Log: testLog(t), InProcess: to})
	must(t, err)
	if conn.Connected() {
		t.Fatal("connected to nothing")
	}
	s := newSeen()
	c, err := conn.ConsumeMatch(messaging.ConsumeOptions{}, s.matchHandler())
	must(t, err)
	if err := conn.Publish(t.Context(), []messaging.Notice{event(1)}); !errors.Is(err, rendezvous.ErrUnavailable) {
		t.Errorf("publish without a broker: %v, want unavailable", err)
	}
	to.set(rawServer(t, 8<<20))
	p := &plane{t: t, conn: conn}
	p.publish(event(1))
	s.wait(t, "the notice", func() bool { return s.of("e-1") == 1 })
	stop(t, c)
	must(t, conn.Drain(t.Context()))
}

func TestStopAndDrainReturnWhileTheBrokerIsAway(t *testing.T) {
	p := newPlane(t)
	p.provision()
	s := newSeen()
	c, err := p.conn.ConsumeMatch(messaging.ConsumeOptions{}, s.matchHandler())
	must(t, err)
	p.publish(event(1))
	s.wait(t, "the notice", func() bool { return s.of("e-1") == 1 })
	must(t, p.broker.Shutdown(t.Context()))
	stop(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, p.conn.Drain(ctx))
}

func TestAConnectionClosedUnexpectedlyEndsTheProcessAndADrainedOneDoesNot(t *testing.T) {
	p := newPlane(t)
	lost := p.connect()
	lost.ConsumeConn().Close() // as nats.go does when it gives up for good
	if err := <-lost.Failed(); !errors.Is(err, rendezvous.ErrUnavailable) {
		t.Errorf("got %v, want unavailable", err)
	}
	lost.Close()

	drained := p.connect()
	must(t, drained.Drain(t.Context()))
	must(t, drained.Drain(t.Context())) // idempotent
	select {
	case err := <-drained.Failed():
		t.Errorf("a drain reports %v", err)
	default:
	}
	if !drained.PublishConn().IsClosed() || !drained.ConsumeConn().IsClosed() {
		t.Error("drained and not closed")
	}
}

func TestTheListenerServesOtherProcessesAndIsOptional(t *testing.T) {
	silent := newPlane(t)
	if u := silent.broker.URL(); u != "" {
		t.Errorf("no listener asked for, yet URL %q", u)
	}
	p := newPlane(t, func(c *messaging.Config) { c.Embedded.Listen = "127.0.0.1:0" })
	p.provision()
	cfg := messaging.DefaultConfig()
	cfg.URL = p.broker.URL()
	outside, err := messaging.Connect(cfg, messaging.Deps{Log: testLog(t)})
	must(t, err)
	must(t, outside.Provision(t.Context()))
	must(t, outside.Publish(t.Context(), []messaging.Notice{event(1)}))
	must(t, outside.Drain(t.Context()))
	if got := p.stream("rdv_MATCH").State.Msgs; got != 1 {
		t.Errorf("%d messages, want the one from outside", got)
	}
}

func TestEmbeddedStateSurvivesAShutdownAndHealthTells(t *testing.T) {
	p := newPlane(t)
	p.provision()
	p.publish(event(1))
	must(t, p.broker.Health())
	p.restart(func() {
		if err := p.broker.Health(); !errors.Is(err, rendezvous.ErrUnavailable) {
			t.Errorf("health of a server that is down: %v", err)
		}
	})
	must(t, p.broker.Health())
	p.eventually("connected", p.conn.Connected)
	if got := p.stream("rdv_MATCH").State.Msgs; got != 1 {
		t.Errorf("%d messages after the restart, want 1", got)
	}
	must(t, p.broker.Start()) // idempotent
}

func TestEmbeddedThatCannotStartSaysWhy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	cfg := rawConfig(t)
	cfg.Embedded.Listen = l.Addr().String()
	if _, err := messaging.StartEmbedded(cfg, testLog(t)); !errors.Is(err, rendezvous.ErrUnavailable) {
		t.Errorf("a taken port: %v, want unavailable", err)
	}
	cfg = rawConfig(t)
	cfg.Embedded.StoreDir = filepath.Join("/dev/null", "x")
	if _, err := messaging.StartEmbedded(cfg, testLog(t)); !errors.Is(err, rendezvous.ErrInvalid) {
		t.Errorf("a directory that cannot be: %v, want invalid", err)
	}
}

func TestExecutorsShareAQueueWithNothingButAConnection(t *testing.T) {
	p := newPlane(t, func(c *messaging.Config) { c.Embedded.Listen = "127.0.0.1:0" })
	var executors []*messaging.Consumption
	s := newSeen()
	queue := messaging.ResumeQueue{Tenant: "acme", Queue: "orders"}
	for range 2 { // before the plane has made the stream
		nc, err := nats.Connect(p.broker.URL())
		must(t, err)
		defer nc.Close()
		c, err := messaging.ConsumeResume(nc, queue, messaging.Deps{Log: testLog(t)}, messaging.ConsumeOptions{},
			func(_ context.Context, b []messaging.ResumeNotice) []messaging.Outcome {
				return all(b, func(n messaging.ResumeNotice) messaging.Outcome {
					if n.Tenant != "acme" || n.Queue != "orders" || n.Cause != rendezvous.CauseStarted {
						t.Errorf("got %+v", n)
					}
					s.add(n.RunID)
					return messaging.Ack()
				})
			})
		must(t, err)
		executors = append(executors, c)
	}
	p.provision()
	var notices []messaging.Notice
	for i := range 300 {
		id := event(i).ID
		notices = append(notices,
			messaging.ResumeNotice{Tenant: "acme", Queue: "orders", WorkflowID: "w" + id, RunID: id, Seq: 1, Cause: rendezvous.CauseStarted},
			messaging.ResumeNotice{Tenant: "acme", Queue: "others", WorkflowID: "w" + id, RunID: "other" + id, Seq: 1, Cause: rendezvous.CauseStarted})
	}
	p.publish(notices...)
	s.wait(t, "every notice of the queue", func() bool { return s.names() == 300 })
	for _, c := range executors {
		stop(t, c)
	}
	for i := range 300 {
		if got := s.of(event(i).ID); got != 1 {
			t.Errorf("%s came %d times to the executors of one queue", event(i).ID, got)
		}
	}
	if got := p.consumer("rdv_RESUME", "acme~orders").Config.FilterSubject; got != "rdv.acme.resume.orders" {
		t.Errorf("filter %s", got)
	}
}

func TestConfigNamesTheWrongField(t *testing.T) {
	for field, change := range map[string]func(*messaging.Config){
		"nats-prefix":          func(c *messaging.Config) { c.Prefix = "a.b" },
		"nats-replicas":        func(c *messaging.Config) { c.Replicas = 3 },
		"nats-ack-wait":        func(c *messaging.Config) { c.AckWait = 0 },
		"event-limit":          func(c *messaging.Config) { c.EventLimit = rendezvous.MaxPayload + 1 },
		"nats-inbox-max-bytes": func(c *messaging.Config) { c.InboxMaxBytes = 1 },
		"nats-match-max-bytes": func(c *messaging.Config) { c.MatchMaxBytes = 0 },
		"nats-publish-timeout": func(c *messaging.Config) { c.PublishTimeout = time.Hour },
		"data":                 func(c *messaging.Config) { c.Embedded.StoreDir = "" },
		"nats-max-store":       func(c *messaging.Config) { c.Embedded.MaxStore = 1 << 20 },
		"nats-listen":          func(c *messaging.Config) { c.Embedded.Listen = "0.0.0.0:4222" },
		"nats-nkey":            func(c *messaging.Config) { c.NKey, c.Credentials = "a", "b" },
		"nats-tls-cert":        func(c *messaging.Config) { c.TLSKey = "x" },
	} {
		cfg := rawConfig(t)
		must(t, cfg.Validate())
		change(&cfg)
		var e *rendezvous.Error
		if err := cfg.Validate(); !errors.As(err, &e) || e.Code != rendezvous.CodeInvalid || e.Details["field"] != field {
			t.Errorf("%s: got %v", field, err)
		}
	}
}
