package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/api"
	"github.com/rendezvous-events/rendezvous/client"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/wire"
)

func TestEveryVerbAnswersOverBothTransports(t *testing.T) {
	both(t, func(t *testing.T, overNATS bool) {
		p := newPlane(t, settings{})
		c := p.dial(overNATS)
		ctx := t.Context()

		ttl := int64(30_000)
		eq(t, "version", ok(c.Info(ctx))(t).Version, "test")
		eq(t, "verdict", ok(c.Check(ctx))(t).Verdict, "ok")

		s := ok(c.StartRun(ctx, wire.StartRun{WorkflowID: "w", Type: "order", Queue: "by-hand", Input: client.JSON(1).Wire()}))(t)
		eq(t, "workflow", s.WorkflowID, "w")
		eq(t, "run of the workflow", ok(c.GetRun(ctx, wire.WorkflowRef{WorkflowID: "w"}))(t).RunID, s.RunID)
		eq(t, "runs listed", len(ok(c.ListRuns(ctx, wire.ListRuns{}))(t).Runs), 1)
		eq(t, "runs counted", ok(c.CountRuns(ctx, wire.CountRuns{}))(t).Count, 1)

		l := ok(c.AcquireLease(ctx, wire.AcquireLease{RunID: s.RunID, Owner: "me/1", TTLMS: &ttl}))(t)
		ok(c.RenewLease(ctx, wire.AcquireLease{RunID: s.RunID, Owner: "me/1", TTLMS: &ttl, Epoch: l.Epoch}))(t)
		a := ok(c.Append(ctx, wire.Append{RunID: s.RunID, Epoch: l.Epoch, ExpectedSeq: l.HeadSeq, Records: []wire.Record{
			{Kind: rendezvous.Note, Data: rendezvous.EncodeData(rendezvous.NameData{Name: "seen"})},
		}}))(t)
		eq(t, "head after the note", a.HeadSeq, 2)

		e := ok(client.NewEvent("urn:psp", "paid", client.Text("12 €"), key("1")))(t)
		eq(t, "outcome of a put", ok(c.PutEvents(ctx, e))(t)[0].Outcome, wire.Accepted)
		eq(t, "outcome of the same again", ok(c.PutEvents(ctx, e))(t)[0].Outcome, wire.Duplicate)
		eq(t, "type of the event", ok(c.GetEvent(ctx, e.EventID, true))(t).Type, "paid")
		r := ok(c.RegisterWait(ctx, wire.RegisterWait{RunID: s.RunID, Epoch: l.Epoch, Effect: "pay", Type: "paid", Keys: []rendezvous.Key{key("1")}}))(t)
		if r.Answered == nil {
			t.Fatalf("the wait is not answered by the event that was there: %+v", r)
		}
		extra := ok(c.RegisterWait(ctx, wire.RegisterWait{RunID: s.RunID, Epoch: l.Epoch, Effect: "extra", Type: "paid", Keys: []rendezvous.Key{key("2")}}))(t)
		eq(t, "waiting", extra.Waiting, true)
		eq(t, "waits", len(ok(c.ListWaits(ctx, wire.ListWaits{RunID: s.RunID}))(t).Waits), 1)
		eq(t, "withdrawal", ok(c.WithdrawWait(ctx, wire.WithdrawWait{RunID: s.RunID, Effect: "extra", Epoch: l.Epoch}))(t).Outcome, "withdrawn")
		if _, err := c.GetEvent(ctx, rendezvous.EventID{Source: "urn:psp", ID: "no"}, false); !errors.Is(err, rendezvous.ErrNotFound) {
			t.Fatalf("an unknown event: %v", err)
		}

		nap := ok(c.ArmTimer(ctx, wire.ArmTimer{RunID: s.RunID, Epoch: l.Epoch, TimerID: "nap", AfterMS: new(int64(60_000))}))(t)
		timers := ok(c.ListTimers(ctx, wire.ListTimers{RunID: s.RunID}))(t).Timers
		eq(t, "timers", len(timers), 1)
		eq(t, "its arming", timers[0].ArmedSeq, nap.ArmedSeq)
		eq(t, "its cancellation", ok(c.CancelTimer(ctx, wire.CancelTimer{RunID: s.RunID, Epoch: l.Epoch, TimerID: "nap"}))(t).Outcome, "cancelled")
		eq(t, "shards", len(ok(c.ListShards(ctx, wire.ListShards{}))(t).Shards), rendezvous.DefaultShards)
		other := ok(c.StartRun(ctx, wire.StartRun{Type: "order", Queue: "by-hand", DeadlineAfterMS: new(int64(60_000))}))(t)
		ok(c.CancelRun(ctx, wire.ActOnRun{RunID: other.RunID, Now: true}))(t)
		eq(t, "reopening", ok(c.ReopenRun(ctx, wire.ReopenRun{RunID: other.RunID}))(t).Timers, 1)

		page := ok(c.Collect(ctx, s.RunID, l.Epoch))(t)
		eq(t, "suspension", ok(c.Suspend(ctx, s.RunID, l.Epoch, page.HeadSeq, false))(t).Outcome, "suspended")
		eq(t, "a second release", ok(c.ReleaseLease(ctx, s.RunID, l.Epoch))(t).Outcome, "not_held")

		eq(t, "pause", ok(c.PauseRun(ctx, wire.ActOnRun{RunID: s.RunID}))(t).Outcome, "paused")
		eq(t, "resume", ok(c.ResumeRun(ctx, wire.ActOnRun{RunID: s.RunID}))(t).Outcome, "resumed")
		eq(t, "cancel", ok(c.CancelRun(ctx, wire.ActOnRun{RunID: s.RunID}))(t).Outcome, "requested")

		target := ok(client.NewEvent("urn:psp", "paid", client.Payload{}))(t)
		eq(t, "an event nobody waits for", ok(c.DeliverEvent(ctx, s.RunID, target))(t).Outcome, "not_waiting")

		head := ok(c.GetRun(ctx, wire.WorkflowRef{RunID: s.RunID}))(t).HeadSeq
		end := ok(c.Conclude(ctx, wire.Conclude{RunID: s.RunID, ExpectedSeq: head, Outcome: rendezvous.StatusContinued}))(t)
		if end.NextRun == "" {
			t.Fatal("a continuation names no next run")
		}
		eq(t, "runs of the chain", len(ok(c.RunChain(ctx, wire.WorkflowRef{WorkflowID: "w"}))(t).Runs), 2)
		records := ok(c.History(ctx, "w", 1))(t)
		eq(t, "last record", records[len(records)-1].Kind, rendezvous.RunStarted)
		first := ok(c.HistoryPage(ctx, wire.ReadHistory{WorkflowID: "w", Limit: 1}))(t)
		eq(t, "a page of one has more", first.More, true)
		eq(t, "erasure", ok(c.EraseEvent(ctx, e.EventID, nil))(t).Existed, true)
	})
}

// A reply is lost after the work was done: the client calls again with the same tokens, and nothing happens twice (I17).
func TestLostRepliesAreCalledAgainAndNothingHappensTwice(t *testing.T) {
	p := newPlane(t, settings{})
	c := p.dial(false)
	ctx := t.Context()
	p.faults.set(func(_ string, n int) fault { return []fault{none, loseReply, refuse503}[min(n, 3)%3] })

	s := ok(c.StartRun(ctx, wire.StartRun{Type: "order", Queue: "by-hand"}))(t)
	l := ok(c.AcquireLease(ctx, wire.AcquireLease{RunID: s.RunID, Owner: "me/1"}))(t)
	eq(t, "epoch", l.Epoch, 1)
	a := ok(c.Append(ctx, wire.Append{RunID: s.RunID, Epoch: l.Epoch, ExpectedSeq: 1, Records: []wire.Record{
		{Kind: rendezvous.Note, Data: rendezvous.EncodeData(rendezvous.NameData{Name: "once"})},
	}}))(t)
	eq(t, "head", a.HeadSeq, 2)
	eq(t, "the append was there already", a.Again, true)
	e := ok(client.NewEvent("urn:psp", "paid", client.Payload{}, key("1")))(t)
	eq(t, "an event of a lost reply", ok(c.PutEvents(ctx, e))(t)[0].Outcome, wire.Duplicate)
	r := ok(c.RegisterWait(ctx, wire.RegisterWait{RunID: s.RunID, Epoch: l.Epoch, Effect: "pay", Type: "paid", Keys: e.Keys}))(t)
	if r.Answered == nil {
		t.Fatalf("the wait is not answered: %+v", r)
	}
	armed := ok(c.ArmTimer(ctx, wire.ArmTimer{RunID: s.RunID, Epoch: l.Epoch, TimerID: "nap", AfterMS: new(int64(60_000))}))(t)
	eq(t, "the arming was there already", armed.Again, true)
	cancelled := ok(c.CancelTimer(ctx, wire.CancelTimer{RunID: s.RunID, Epoch: l.Epoch, TimerID: "nap"}))(t)
	eq(t, "so was its end", cancelled.Again, true)
	end := ok(c.Conclude(ctx, wire.Conclude{RunID: s.RunID, Epoch: l.Epoch, ExpectedSeq: cancelled.Seq, Outcome: rendezvous.StatusFailed, Code: "late"}))(t)
	eq(t, "the conclusion was there already", end.Again, true)
	reopened := ok(c.ReopenRun(ctx, wire.ReopenRun{RunID: s.RunID}))(t)
	eq(t, "the reopening was there already", reopened.Again, true)
	for _, verb := range []string{
		"runs.start", "runs.acquire", "runs.append", "events.put", "waits.register", "timers.arm", "timers.cancel", "runs.conclude", "runs.reopen",
	} {
		eq(t, "tries of "+verb, p.faults.count(verb), 3)
	}
	p.faults.set(nil)
	eq(t, "workflows", ok(c.CountRuns(ctx, wire.CountRuns{}))(t).Count, 1)
	records := ok(c.History(ctx, s.WorkflowID, 1))(t)
	kinds := make([]rendezvous.Kind, len(records))
	for i, r := range records {
		kinds[i] = r.Kind
	}
	want := []rendezvous.Kind{
		rendezvous.RunStarted, rendezvous.Note, rendezvous.WaitRegistered, rendezvous.WaitAnswered,
		rendezvous.TimerStarted, rendezvous.TimerCancelled, rendezvous.RunFailed, rendezvous.RunReopened,
	}
	if !slices.Equal(kinds, want) {
		t.Fatalf("history %v, want %v", kinds, want)
	}
}

func TestRefusalsAreNotRepeatedAndKeepTheirCode(t *testing.T) {
	both(t, func(t *testing.T, overNATS bool) {
		p := newPlane(t, settings{})
		c := p.dial(overNATS)
		s := ok(c.StartRun(t.Context(), wire.StartRun{Type: "order", Queue: "by-hand"}))(t)
		p.faults.set(func(string, int) fault { return none })
		for _, row := range []struct {
			want error
			call func() error
		}{
			{rendezvous.ErrNotFound, func() error { return c.Call(t.Context(), "runs.explode", struct{}{}, nil) }},
			{rendezvous.ErrInvalid, func() error { return c.Call(t.Context(), "runs.get", map[string]any{"nope": 1}, nil) }},
			{rendezvous.ErrConflict, func() error {
				_, err := c.StartRun(t.Context(), wire.StartRun{WorkflowID: s.WorkflowID, Type: "other"})
				return err
			}},
			{rendezvous.ErrFenced, func() error { _, err := c.Collect(t.Context(), s.RunID, 7); return err }},
		} {
			err := row.call()
			var e *rendezvous.Error
			if !errors.Is(err, row.want) || !errors.As(err, &e) || e.Message == "" {
				t.Errorf("got %v, want %v", err, row.want)
			}
		}
		if n := p.faults.count("runs.explode"); !overNATS && n != 1 {
			t.Errorf("a refusal was called for %d times", n)
		}
	})
}

func TestBearerTokenIsSent(t *testing.T) {
	tokens := ok(api.ParseTokens([]byte(`{"tokens":[{"token":"correct-horse-battery","name":"shop","role":"executor","tenants":["default"]}]}`)))(t)
	p := newPlane(t, settings{tokens: tokens})
	c := p.dial(false, func(o *client.Options) { o.Token = "correct-horse-battery" })
	ok(c.Check(t.Context()))(t)
	for name, change := range map[string]func(*client.Options){
		"no token":      func(*client.Options) {},
		"another token": func(o *client.Options) { o.Token = "incorrect-horse-battery" },
		"other tenant":  func(o *client.Options) { o.Token, o.Tenant = "correct-horse-battery", "acme" },
	} {
		if _, err := p.dial(false, change).Check(t.Context()); !errors.Is(err, rendezvous.ErrUnauthorized) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPausesDoubleAndRetryAfterIsAFloor(t *testing.T) {
	var tries atomic.Int32
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		switch tries.Add(1) {
		case 4:
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		case 5:
			_, _ = w.Write([]byte(`{"verdict":"ok"}`))
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer door.Close()
	s := &sleeper{Clock: clock.System, timeout: time.Hour}
	c := ok(client.New(client.Options{URL: door.URL, Clock: s, Timeout: s.timeout, Jitter: func() float64 { return 1 }}))(t)
	defer c.Close()
	ok(c.Check(t.Context()))(t)
	want := []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 7 * time.Second}
	if !slices.Equal(s.slept, want) {
		t.Fatalf("pauses %v, want %v", s.slept, want)
	}
}

// sleeper is a clock on which pauses are over at once, and remembered.
type sleeper struct {
	clock.Clock
	timeout time.Duration // timers of that length are timeouts, which do not come
	mu      sync.Mutex
	slept   []time.Duration
}

func (s *sleeper) NewTimer(d time.Duration) clock.Timer {
	if d == s.timeout {
		return s.Clock.NewTimer(d)
	}
	s.mu.Lock()
	s.slept = append(s.slept, d)
	s.mu.Unlock()
	return s.Clock.NewTimer(0)
}

// A proxy's page, say. A read of it changed nothing; the error says nothing of the URL, which may hold a password.
func TestAReplyThatIsNotThePlanesIsTold(t *testing.T) {
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer door.Close()
	c := ok(client.New(client.Options{URL: strings.Replace(door.URL, "//", "//kim:secret@", 1)}))(t)
	defer c.Close()
	_, started := c.StartRun(t.Context(), wire.StartRun{Type: "order"})
	_, read := c.GetRun(t.Context(), wire.WorkflowRef{WorkflowID: "w"})
	for err, want := range map[error]error{started: rendezvous.ErrCommitUnknown, read: rendezvous.ErrUnavailable} {
		if !errors.Is(err, want) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), `""`) {
			t.Errorf("got %v, want %v without the URL", err, want)
		}
	}
}

func TestGivingUpSaysWhetherItMayHaveBeenDone(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	gone := httptest.NewServer(nil)
	gone.Close()
	defer silent.Close()
	for _, row := range []struct {
		name string
		url  string
		verb string
		want error
	}{
		{"a change without a reply", silent.URL, "runs.start", rendezvous.ErrCommitUnknown},
		{"a read without a reply", silent.URL, "runs.get", rendezvous.ErrUnavailable},
		{"nobody there", gone.URL, "runs.start", rendezvous.ErrUnavailable},
	} {
		c := ok(client.New(client.Options{URL: row.url, Retry: client.Retry{First: time.Millisecond, Tries: 3}}))(t)
		if err := c.Call(t.Context(), row.verb, struct{}{}, nil); !errors.Is(err, row.want) {
			t.Errorf("%s: got %v, want %v", row.name, err, row.want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		c2 := ok(client.New(client.Options{URL: row.url, Retry: client.Retry{First: time.Millisecond, Elapsed: -1}}))(t)
		if err := c2.Call(ctx, row.verb, struct{}{}, nil); !errors.Is(err, row.want) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s until the deadline: got %v, want %v", row.name, err, row.want)
		}
		cancel()
		c.Close()
		c2.Close()
	}
}

// Over NATS a plane that is away answers nothing at all; a request under way when the connection breaks must not wait for its timeout.
func TestNATSClientSurvivesTheBroker(t *testing.T) {
	p := newPlane(t, settings{listen: true})
	c := ok(client.New(client.Options{NATSURL: p.broker.URL(), Log: p.log, Retry: client.Retry{First: time.Millisecond}}))(t)
	defer c.Close()
	ok(c.Check(t.Context()))(t)

	mute := ok(c.NATS().SubscribeSync("quiet.default.api.mute"))(t)
	done := make(chan error, 1)
	once := ok(client.New(client.Options{NATS: c.NATS(), Prefix: "quiet", Timeout: time.Hour, Retry: client.Retry{Tries: 1}}))(t)
	defer once.Close()
	go func() { done <- once.Call(t.Context(), "mute", struct{}{}, nil) }()
	_, err := mute.NextMsg(patience)
	must(t, err)
	must(t, c.NATS().ForceReconnect())
	if err := receive(t, "the end of a request whose connection broke", done); !errors.Is(err, rendezvous.ErrCommitUnknown) || !errors.Is(err, nats.ErrDisconnected) {
		t.Fatalf("a request whose connection broke: %v", err)
	}
	ok(c.Check(t.Context()))(t)
}

func TestManyEventsGoInSeveralRequests(t *testing.T) {
	both(t, func(t *testing.T, overNATS bool) {
		p := newPlane(t, settings{})
		c := p.dial(overNATS)
		big := make([]byte, 900<<10)
		var events []rendezvous.Event
		for i := range 1203 {
			e := ok(client.NewEvent("urn:psp", "paid", client.Text("x")))(t)
			if i%300 == 0 {
				e.Payload = big
			}
			events = append(events, e)
		}
		results := ok(c.PutEvents(t.Context(), events...))(t)
		eq(t, "results", len(results), len(events))
		for i, r := range results {
			if r.Outcome != wire.Accepted || r.ID != events[i].ID {
				t.Fatalf("result %d: %+v", i, r)
			}
		}
	})
}

func TestOptionsAreJudged(t *testing.T) {
	for name, o := range map[string]client.Options{
		"tenant with a dot": {Tenant: "a.b"},
		"not a URL":         {URL: "127.0.0.1:7480"},
		"NATS as HTTP":      {URL: "nats://127.0.0.1:4222"},
	} {
		if _, err := client.New(o); !errors.Is(err, rendezvous.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := ok(client.New(client.Options{}))(t)
	defer c.Close()
	h := func(context.Context, *client.Run) error { return nil }
	for name, o := range map[string]client.ExecutorOptions{
		"no handler": {}, "no NATS": {Handler: h}, "lease of a second": {Handler: h, Lease: time.Second}, "queue with a dot": {Handler: h, Queue: "a.b"},
	} {
		if _, err := c.NewExecutor(o); !errors.Is(err, rendezvous.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Publish(t.Context(), ok(client.NewEvent("s", "t", client.Payload{}))(t)); !errors.Is(err, rendezvous.ErrInvalid) {
		t.Errorf("publishing without NATS: %v", err)
	}
}
