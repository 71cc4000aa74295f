package messaging_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/messaging"
)

// pairing is a store and its worker in miniature: events are rows; a notice makes the worker look at the row and answer it, and a poll looks
// at every row. It proves that with rows as the truth nothing depends on what becomes of the notices.
type pairing struct {
	mu       sync.Mutex
	live     map[string]bool // rows not answered yet
	answered map[string]int  // how often each was answered
	polls    chan struct{}
	done     chan struct{} // capacity 1: something was answered
}

func newPairing() *pairing {
	return &pairing{live: map[string]bool{}, answered: map[string]int{}, polls: make(chan struct{}, 1), done: make(chan struct{}, 1)}
}

func (s *pairing) commit(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answered[id] == 0 {
		s.live[id] = true
	}
}

func (s *pairing) offer(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live[id] {
		delete(s.live, id)
		s.answered[id]++
	}
	select {
	case s.done <- struct{}{}:
	default:
	}
}

// gap is the consumption's hook: it asks for a poll.
func (s *pairing) gap() {
	select {
	case s.polls <- struct{}{}:
	default:
	}
}

// poll offers every live row, as the unmet pass does.
func (s *pairing) poll() {
	s.mu.Lock()
	ids := make([]string, 0, len(s.live))
	for id := range s.live {
		ids = append(ids, id)
	}
	s.mu.Unlock()
	for _, id := range ids {
		s.offer(id)
	}
}

func (s *pairing) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.answered)
}

// traffic runs ingest and delivery over the broker while trouble happens at each of the points, and checks that every event is answered once.
// With poll false only notices may lead to answers.
func traffic(t *testing.T, p *plane, n int, trouble map[int]func(), poll bool) {
	t.Helper()
	s := newPairing()
	ingest, err := p.conn.ConsumeInbox(messaging.ConsumeOptions{}, func(ctx context.Context, batch []messaging.Msg) []messaging.Outcome {
		notices := make([]messaging.Notice, len(batch))
		for i, m := range batch {
			s.commit(string(m.Data))
			n := event(0)
			n.ID, n.Attempt = string(m.Data), m.Delivered
			n.Key.Value = n.ID
			notices[i] = n
		}
		if p.conn.Publish(ctx, notices) != nil {
			return nil // committed, notices unsure: the message comes again
		}
		return all(batch, func(messaging.Msg) messaging.Outcome { return messaging.Ack() })
	})
	must(t, err)
	delivery, err := p.conn.ConsumeMatch(messaging.ConsumeOptions{Gap: s.gap}, func(_ context.Context, batch []messaging.MatchNotice) []messaging.Outcome {
		return all(batch, func(n messaging.MatchNotice) messaging.Outcome { s.offer(n.ID); return messaging.Ack() })
	})
	must(t, err)

	stopPolls, polled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(polled)
		for {
			select {
			case <-stopPolls:
				return
			case <-s.polls:
				if poll {
					s.poll()
				}
			}
		}
	}()
	for i := range n {
		if f := trouble[i]; f != nil {
			f()
		}
		p.send("acme", "e", nil, fmt.Appendf(nil, "e-%d", i))
	}
	// A producer sends again what the plane does not know; deletion of INBOX may have taken it before ingest saw it.
	for i := range n {
		id := fmt.Sprintf("e-%d", i)
		p.eventually(id+" is answered", func() bool {
			s.mu.Lock()
			known := s.live[id] || s.answered[id] > 0
			over := s.answered[id] > 0
			s.mu.Unlock()
			if !known {
				p.send("acme", "e", nil, []byte(id))
			}
			if poll && !over {
				s.gap() // the pass every few seconds, hurried
			}
			return over
		})
	}
	close(stopPolls)
	<-polled
	stop(t, ingest)
	stop(t, delivery)
	for id, times := range s.answered {
		if times != 1 {
			t.Errorf("%s answered %d times", id, times)
		}
	}
	if s.count() != n {
		t.Errorf("%d of %d answered", s.count(), n)
	}
}

func TestABrokerRestartedUnderTrafficLosesNothing(t *testing.T) {
	// AckWait: a message that was on its way when the broker went down comes again after it.
	p := newPlane(t, func(c *messaging.Config) { c.Embedded.NoSync, c.AckWait = false, 2*time.Second })
	p.provision()
	again := func() { p.restart(func() {}) }
	traffic(t, p, 600, map[int]func(){100: again, 250: again, 251: again, 500: again}, false)
}

func TestABrokersDirectoryWipedUnderTrafficHealsByItself(t *testing.T) {
	p := newPlane(t)
	p.provision()
	wiped := func() { p.restart(p.wipe) }
	traffic(t, p, 400, map[int]func(){100: wiped, 300: wiped}, true)
}

func TestStreamsDeletedUnderTrafficHealByThemselves(t *testing.T) {
	p := newPlane(t)
	p.provision()
	traffic(t, p, 600, map[int]func(){50: p.deleteStreams, 200: p.deleteStreams, 201: p.deleteStreams, 590: p.deleteStreams}, true)
}

func TestStreamsDeletedUnderTrafficOfAnotherProcessHealByThemselves(t *testing.T) {
	p := newPlane(t, func(c *messaging.Config) { c.Embedded.Listen = "127.0.0.1:0" })
	p.outside()
	p.provision()
	traffic(t, p, 200, map[int]func(){50: p.deleteStreams, 150: p.deleteStreams}, true)
}

// A stream made again counts from 1, as the one before did: what was in hand from that one must not be acknowledged to this one, where the
// same numbers are events nobody has committed.
func TestAcknowledgementsOfADeletedStreamTakeNothingFromTheNewOne(t *testing.T) {
	p := newPlane(t)
	p.provision()
	p.send("acme", "e", nil, []byte("old"))
	s := newSeen()
	began, goOn, gaps := make(chan struct{}), make(chan struct{}), make(chan struct{}, 100)
	opts := messaging.ConsumeOptions{Batch: messaging.Batch{Size: 1, Concurrency: 2}, Gap: func() { gaps <- struct{}{} }}
	c, err := p.conn.ConsumeInbox(opts, func(_ context.Context, b []messaging.Msg) []messaging.Outcome {
		if string(b[0].Data) == "old" {
			close(began)
			<-goOn
			return []messaging.Outcome{messaging.Ack()}
		}
		s.add(string(b[0].Data))
		if b[0].Delivered == 1 {
			return []messaging.Outcome{messaging.Retry(2 * time.Second)} // the store is away
		}
		return []messaging.Outcome{messaging.Ack()}
	})
	must(t, err)
	<-gaps
	<-began
	p.deleteStreams()
	<-gaps // made again
	p.send("acme", "e", nil, []byte("new"))
	s.wait(t, "the new one is tried", func() bool { return s.of("new") == 1 })
	close(goOn) // and now the old one of the same number is done
	s.wait(t, "the new one comes again", func() bool { return s.of("new") == 2 })
	stop(t, c)
}

func TestConsumersDeletedUnderTrafficHealByThemselves(t *testing.T) {
	p := newPlane(t)
	p.provision()
	traffic(t, p, 600, map[int]func(){50: p.deleteConsumers, 200: p.deleteConsumers, 202: p.deleteConsumers, 590: p.deleteConsumers}, false)
}

func TestNothingProvisionedBeforehand(t *testing.T) {
	traffic(t, newPlane(t), 50, nil, true)
}

// TestNoticesLateTwiceAndShuffled stores all notices first, in another order and each twice, and only then lets the worker see them.
func TestNoticesLateTwiceAndShuffled(t *testing.T) {
	p := newPlane(t)
	p.provision()
	const n = 1000
	s := newPairing()
	var notices []messaging.Notice
	for i := range n {
		s.commit(event(i).ID)
		for attempt := range 2 {
			e := event(i)
			e.Attempt = uint64(attempt)
			notices = append(notices, e)
		}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(notices), func(i, j int) { notices[i], notices[j] = notices[j], notices[i] })
	p.publish(notices...)
	if got := p.stream(p.conn.Names().Match()).State.Msgs; got != 2*n {
		t.Fatalf("%d notices stored, want %d: a repeat that is meant is not swallowed", got, 2*n)
	}
	handled := newSeen()
	c, err := p.conn.ConsumeMatch(messaging.ConsumeOptions{}, func(_ context.Context, batch []messaging.MatchNotice) []messaging.Outcome {
		return all(batch, func(m messaging.MatchNotice) messaging.Outcome {
			s.offer(m.ID)
			handled.add(fmt.Sprintf("%s/%d", m.ID, m.Attempt))
			return messaging.Ack()
		})
	})
	must(t, err)
	handled.wait(t, "every notice, both times", func() bool { return handled.names() == 2*n })
	stop(t, c)
	for i := range n {
		if got := s.answered[event(i).ID]; got != 1 {
			t.Errorf("%s answered %d times", event(i).ID, got)
		}
	}
}

func TestHeartbeatsThatStayAwayMakeThePullAnewAndThePollRun(t *testing.T) {
	p := newPlane(t)
	p.provision()
	manual := clock.NewManual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	conn, err := messaging.Connect(p.cfg, messaging.Deps{Log: p.log, InProcess: p.broker, Clock: manual})
	must(t, err)
	gaps, s := make(chan struct{}, 100), newSeen()
	c, err := conn.ConsumeMatch(messaging.ConsumeOptions{Batch: messaging.Batch{Linger: -1}, Gap: func() { gaps <- struct{}{} }}, s.matchHandler())
	must(t, err)
	<-gaps // at start
	p.publish(event(1))
	s.wait(t, "a first notice", func() bool { return s.of("e-1") == 1 })
	for range 3 {
		manual.Advance(5 * time.Second) // the broker's own heartbeats come by its clock, so none comes in this time
	}
	<-gaps
	p.publish(event(2))
	s.wait(t, "a notice over the new pull", func() bool { return s.of("e-2") == 1 })
	stop(t, c)
	must(t, conn.Drain(t.Context()))
}
