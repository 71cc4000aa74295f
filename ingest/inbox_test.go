package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/clock"
	"github.com/rendezvous-events/rendezvous/messaging"
	"github.com/rendezvous-events/rendezvous/store"
	"github.com/rendezvous-events/rendezvous/store/fault"
)

func TestInboxTakesThreeModes(t *testing.T) {
	in := newInbox(t)
	binary := message(1, "hello", "ce-specversion", "1.0", "CE-ID", "b%20inary", "ce-source", "urn:a", "ce-type", "t", "Content-Type", "text/plain", "ce-rdvkeys", "order=1")
	got := in.deliver(binary, structured(2, "structured", `"data":1`), batched(3, `[`+event("one")+`,`+event("two")+`]`))
	if !slices.Equal(got, []string{"ack", "ack", "ack"}) {
		t.Errorf("outcomes %v", got)
	}
	for _, id := range []string{"b inary", "structured", "one", "two"} {
		if s := in.state("urn:a", id); s != rendezvous.EventLive {
			t.Errorf("%s is %q", id, s)
		}
	}
	if sent := in.sender.events(); len(sent) != 4 {
		t.Errorf("notices for %v", sent)
	}
	if len(in.stream.rejected) != 0 {
		t.Errorf("rejected: %v", in.stream.rejected)
	}
}

// The one bad event of a batch is rejected alone, as it came, with reason and detail; the others are taken (api.md section 7).
func TestOneBadEventOfABatchIsRejectedAlone(t *testing.T) {
	in := newInbox(t)
	bad := event("bad", `"Name":1`)
	in.expect("ack", batched(7, `[`+event("one")+`, `+bad+` ,`+event("two")+`]`))
	if in.state("urn:a", "one") != rendezvous.EventLive || in.state("urn:a", "two") != rendezvous.EventLive {
		t.Error("the good events are not stored")
	}
	if len(in.stream.rejected) != 1 {
		t.Fatalf("%d rejected, want the one", len(in.stream.rejected))
	}
	r := in.stream.rejected[0]
	if string(r.Body) != bad || r.ContentType != "application/cloudevents+json" || r.Index != 1 || r.Reason != "invalid" || !strings.Contains(r.Detail, "Name") || r.Message.Sequence != 7 {
		t.Errorf("rejected as %+v", r)
	}
}

// What can never become an event is rejected with its reason and given up for good.
func TestWhatCannotBecomeAnEventIsRejected(t *testing.T) {
	big := structured(1, "big", `"data":"`+strings.Repeat("x", 1<<20)+`"`)
	nobody := structured(1, "x")
	nobody.Tenant = ""
	for _, c := range []struct {
		name   string
		m      messaging.Msg
		reason string
		whole  bool
	}{
		{"nothing", message(1, ""), "invalid", true},
		{"no JSON", message(1, `{`, "content-type", "application/cloudevents+json"), "invalid", false},
		{"no array", batched(1, `{}`), "invalid", true},
		{"an array that breaks off", batched(1, `[`+event("x")+`,`), "invalid", true},
		{"an empty batch", batched(1, `[]`), "invalid", true},
		{"501 events", batched(1, `[`+strings.TrimSuffix(strings.Repeat(event("x")+",", 501), ",")+`]`), "too_large", true},
		{"other specversion", message(1, "", "ce-specversion", "0.3", "ce-id", "1", "ce-source", "s", "ce-type", "t"), "invalid", true},
		{"no id", message(1, "", "ce-specversion", "1.0", "ce-source", "s", "ce-type", "t"), "invalid", true},
		{"control character", structured(1, `a\u0000`), "invalid", false},
		{"invalid UTF-8", message(1, "{\"id\":\"\xff\"}", "content-type", "application/cloudevents+json"), "invalid", false},
		{"member twice", structured(1, "x", `"id":"y"`), "invalid", false},
		{"bad time", structured(1, "x", `"time":"yesterday"`), "invalid", false},
		{"expiry too far ahead", structured(1, "x", `"expirytime":"2999-01-01T00:00:00Z"`), "invalid", false},
		{"keys without value", structured(1, "x", `"rdvkeys":"order"`), "invalid", false},
		{"over the limit", big, "too_large", false},
		{"the plane's own type (EV-11)", message(1, "", "ce-specversion", "1.0", "ce-id", "1", "ce-source", "s", "ce-type", "rendezvous.answered"), "invalid", true},
		{"the plane's own source (EV-11)", message(1, "", "ce-specversion", "1.0", "ce-id", "1", "ce-source", "rendezvous:plane", "ce-type", "t", "ce-rdvrun", "r"), "invalid", true},
		{"no tenant", nobody, "invalid", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := newInbox(t)
			in.expect("term", c.m)
			if len(in.stream.rejected) != 1 {
				t.Fatalf("%d rejected", len(in.stream.rejected))
			}
			r := in.stream.rejected[0]
			if r.Reason != c.reason || r.Detail == "" || (r.Body == nil) != c.whole {
				t.Errorf("reason %q, detail %q, body %.40q", r.Reason, r.Detail, r.Body)
			}
			if sent := in.sender.events(); len(sent) != 0 {
				t.Errorf("notices for %v", sent)
			}
		})
	}
}

// I2: an identity known with other content is a conflict: rejected, the first stands.
func TestAConflictIsRejectedAndTheFirstStands(t *testing.T) {
	in := newInbox(t)
	in.expect("ack", structured(1, "x", `"data":1`))
	in.expect("ack", structured(2, "x", `"data":1`, `"time":"2026-01-01T00:00:00Z"`))
	in.expect("term", structured(3, "x", `"data":2`))
	if n := len(in.stream.rejected); n != 1 || in.stream.rejected[0].Reason != "conflict" {
		t.Errorf("rejected %+v", in.stream.rejected)
	}
}

// An event that names its run is kept until the run asks for it, also before the run is started (EV-52, EV-85).
func TestATargetedEventIsKeptUntilItsRunAsks(t *testing.T) {
	in := newInbox(t)
	in.expect("ack", structured(1, "kept", `"rdvrun":"run-1"`, `"rdvkeys":"order=1"`, `"data":7`))
	tenant, err := in.store.Tenant("acme")
	must(t, err)
	_, err = tenant.StartRun(t.Context(), store.Start{WorkflowID: "w", RunID: "run-1", Type: "t"}, time.Time{})
	must(t, err)
	key := []rendezvous.Key{{Namespace: "order", Value: "1"}}
	wait := rendezvous.Wait{WaitID: rendezvous.WaitID{RunID: "run-1", Effect: "e"}, Type: "t", Keys: key}
	got, err := tenant.RegisterWait(t.Context(), store.Registration{Wait: wait}, time.Time{})
	must(t, err)
	if got.Outcome != store.RegisterAnswered || string(got.Answer.Payload) != "7" {
		t.Errorf("registered: %+v", got)
	}
	wait.Effect = "f"
	_, err = tenant.RegisterWait(t.Context(), store.Registration{Wait: wait}, time.Time{})
	must(t, err)
	in.expect("ack", structured(2, "at-once", `"rdvrun":"run-1"`, `"rdvkeys":"order=1"`))
	if s := in.state("urn:a", "at-once"); s != rendezvous.EventConsumed {
		t.Errorf("an event for a free run that waits is %q", s)
	}
}

// R3, EV-7: of an identity that stands twice in a batch, once for its run, the second is the conflict, always.
func TestAnIdentityTwiceInAMessageIsDecidedInItsOrder(t *testing.T) {
	in := newInbox(t)
	for i := range 50 {
		id := fmt.Sprint(i)
		in.expect("ack", batched(uint64(i), `[`+event(id, `"rdvrun":"r"`, `"data":1`)+`,`+event(id, `"data":2`)+`]`))
		if n := len(in.stream.rejected); n != i+1 || in.stream.rejected[i].Index != 1 || in.stream.rejected[i].Reason != "conflict" {
			t.Fatalf("message %d: rejected %+v", i, in.stream.rejected[i:])
		}
	}
}

// I1: a message is acknowledged after the commit and its notices, and not before.
func TestAMessageIsAcknowledgedAfterItsNotices(t *testing.T) {
	in := newInbox(t)
	in.sender.hold = make(chan struct{})
	done := make(chan []string)
	go func() { done <- in.deliver(structured(1, "x")) }()
	for in.state("urn:a", "x") == "" {
		clock.Sleep(context.Background(), clock.System, time.Millisecond)
	}
	select {
	case got := <-done:
		t.Fatalf("answered %v before the notices were acknowledged", got)
	case <-time.After(50 * time.Millisecond):
	}
	close(in.sender.hold)
	if got := <-done; got[0] != "ack" {
		t.Errorf("outcome %s", got[0])
	}
}

// EV-15: after a crash between commit and notice the message comes again, is a duplicate, and is noticed then.
func TestAMessageWhoseNoticeWasLostComesAgainAndIsNoticed(t *testing.T) {
	in := newInbox(t)
	in.sender.fail = errors.New("no acknowledgement")
	in.expect("retry", structured(1, "x"))
	if s := in.state("urn:a", "x"); s != rendezvous.EventLive {
		t.Fatalf("the event is %q", s)
	}
	in.sender.fail = nil
	in.expect("ack", structured(1, "x"))
	if sent := in.sender.events(); !slices.Equal(sent, []string{"x"}) {
		t.Errorf("notices for %v", sent)
	}
}

// Notices whose sending breaks off inside are not known to be sent: the message comes again, and nothing waits for ever.
func TestAMessageWhoseSendingPanicsComesAgain(t *testing.T) {
	in := newInbox(t)
	in.sender.bug = true
	in.expect("retry", structured(1, "x"))
	in.sender.bug = false
	in.expect("ack", structured(1, "x"))
}

// EV-12: while the store is away nothing is acknowledged; what comes again is New then.
func TestWhileTheStoreIsAwayMessagesComeAgain(t *testing.T) {
	in := newInbox(t)
	away := in.faults.Arm(fault.Failure{Point: fault.AtCall, Call: 1, Times: -1})
	for range 3 {
		if got := in.deliver(structured(1, "x"), structured(2, "y", `"rdvrun":"r"`), batched(3, `[`+event("z")+`]`)); !slices.Equal(got, []string{"retry", "retry", "retry"}) {
			t.Errorf("outcomes %v", got)
		}
	}
	away.Disarm()
	if got := in.deliver(structured(1, "x"), structured(2, "y", `"rdvrun":"r"`), batched(3, `[`+event("z")+`]`)); !slices.Equal(got, []string{"ack", "ack", "ack"}) {
		t.Errorf("outcomes %v", got)
	}
	if len(in.stream.rejected) != 0 {
		t.Errorf("rejected %+v", in.stream.rejected)
	}
}

// An error that nobody foresaw says nothing about the event: it comes again and is never rejected.
func TestAForeignErrorRejectsNothing(t *testing.T) {
	in := newInbox(t)
	for _, point := range []fault.Point{fault.BeforeCommit, fault.AfterCommit} {
		in.faults.Arm(fault.Failure{Verb: "buffer_batch", Point: point, Err: context.Canceled})
		in.expect("retry", structured(1, "x"))
	}
	if len(in.stream.rejected) != 0 {
		t.Errorf("rejected %+v", in.stream.rejected)
	}
	in.expect("ack", structured(1, "x"))
}

// EV-13: a commit whose answer was lost is not acknowledged; the message that comes again is a duplicate, and one row.
func TestAMessageWhoseCommitAnswerWasLostIsADuplicateThen(t *testing.T) {
	in := newInbox(t)
	in.faults.Arm(fault.Failure{Verb: "buffer_batch", Point: fault.AfterCommit})
	in.expect("retry", structured(1, "x"))
	in.expect("ack", structured(1, "x"))
	if sent := in.sender.events(); !slices.Equal(sent, []string{"x"}) {
		t.Errorf("notices for %v", sent)
	}
}

// Nothing is dropped: a message whose rejection is not stored comes again, and only that one.
func TestARejectionThatIsNotStoredBringsItsMessageAgain(t *testing.T) {
	in := newInbox(t)
	in.stream.fail = &messaging.PublishError{Failed: []int{1}, Err: errors.New("full")}
	got := in.deliver(structured(1, "good"), message(2, "", "ce-id", "bad"), batched(3, `[`+event("fine")+`,{}]`))
	if !slices.Equal(got, []string{"ack", "term", "retry"}) {
		t.Errorf("outcomes %v", got)
	}
	in.stream.fail = errors.New("away")
	if got := in.deliver(message(2, "", "ce-id", "bad")); got[0] != "retry" {
		t.Errorf("outcomes %v", got)
	}
}

// Everything that waits goes into few transactions: a batch of messages costs no commit each.
func TestMessagesShareCommits(t *testing.T) {
	in := newInbox(t)
	commits := in.faults.Arm(fault.Failure{Verb: "buffer_batch", Point: fault.AtCall, Call: 1, Times: -1, Do: nop})
	batch := make([]messaging.Msg, 500)
	for i := range batch {
		batch[i] = structured(uint64(i), fmt.Sprint(i))
	}
	in.deliver(batch...)
	if n := commits.Struck(); n > 250 {
		t.Errorf("500 messages took %d commits", n)
	}
	if n := len(in.sender.events()); n != 500 {
		t.Errorf("%d notices", n)
	}
}

// A door that stops commits what was handed in, sends its notices, and refuses the rest as unavailable.
func TestAStoppedDoorHasSentWhatItTook(t *testing.T) {
	in := newInbox(t)
	in.expect("ack", structured(1, "x"))
	must(t, in.door.Stop(t.Context()))
	must(t, in.door.Stop(t.Context()))
	in.expect("retry", structured(2, "y"))
	if _, errs := in.door.HandAll(t.Context(), "acme", make([]rendezvous.Event, 1))(); !errors.Is(errs[0], rendezvous.ErrUnavailable) {
		t.Errorf("put after the stop: %v", errs)
	}
	if in.state("urn:a", "y") != "" {
		t.Error("stored after the stop")
	}
}

// A door out of patience leaves notices that are not sent to the passes, and says so.
func TestAStopOutOfPatienceLeavesItsNotices(t *testing.T) {
	in := newInbox(t)
	hold := make(chan struct{})
	in.sender.hold = hold
	if _, errs := in.door.HandAll(t.Context(), "acme", []rendezvous.Event{{EventID: rendezvous.EventID{Source: "urn:a", ID: "x"}, Type: "t"}})(); errs[0] != nil {
		t.Fatal(errs[0])
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := in.door.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped with %v", err)
	}
	close(hold)
	must(t, in.door.Stop(t.Context()))
}
