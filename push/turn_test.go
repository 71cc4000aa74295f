package push_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rendezvous-events/rendezvous"
	"github.com/rendezvous-events/rendezvous/push"
	"github.com/rendezvous-events/rendezvous/push/target"
	"github.com/rendezvous-events/rendezvous/store"
)

// upTo are the ids of a run's first records.
func upTo(run string, seq int) []string {
	var ids []string
	for i := range seq {
		ids = append(ids, fmt.Sprintf("%s/%d/0", run, i+1))
	}
	return ids
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// PU-104, PU-40: a run's records go out in order, each once; the terminal one completes the registration, and the next pass sees nothing.
func TestRecordsAreDeliveredInOrderAndThenTheRegistrationIsGone(t *testing.T) {
	p := newPlane(t)
	v := receive(t, nil)
	p.start("r", hook("r", "h", v.URL+"/in?key=hush"))
	p.note("r", 3)
	p.conclude("r")
	w := p.pod()
	eq(t, "report", w.Drive(), push.Report{Registrations: 1, Records: 5, Attempts: 5, Accepted: 5, Completed: 1})
	same(t, "received", v.ids(), upTo("r", 5))
	if row := p.get("r", "h"); row != nil {
		t.Errorf("the row is still there: %+v", row)
	}
	eq(t, "the next pass", w.Drive(), push.Report{})
}

// PU-104: the turn of a registration that takes run.completed passes over a thousand other records without a POST.
func TestOtherRecordsMoveTheCursorWithoutAPost(t *testing.T) {
	p := newPlane(t)
	v := receive(t, nil)
	h := hook("r", "h", v.URL)
	h.Events = []string{string(rendezvous.RunCompleted)}
	p.start("r", h)
	p.note("r", 1000)
	p.conclude("r")
	w := p.pod()
	for range 20 {
		w.Drive()
	}
	eq(t, "totals", w.Totals(), push.Report{Registrations: 16, Records: 1002, Attempts: 1, Accepted: 1, Completed: 1})
	same(t, "received", v.ids(), []string{"r/1002/0"})
}

// PU-41: a failing receiver is an outcome with its status; nothing is due until next_attempt_at, and then it is delivered.
func TestAFailureIsTriedAgainWhenItIsDue(t *testing.T) {
	p := newPlane(t)
	v := receive(t, func(n int, _ message, _ *http.Request) answer {
		return answer{status: map[bool]int{true: 500, false: 204}[n == 1]}
	})
	p.start("r", hook("r", "h", v.URL))
	w := p.pod()
	eq(t, "first", w.Drive(), push.Report{Registrations: 1, Attempts: 1, Retries: 1})
	row := p.get("r", "h")
	eq(t, "cursor", row.NextSeq, int64(1))
	eq(t, "attempts", row.Attempts, 1)
	eq(t, "status", row.Last.Status, 500)
	eq(t, "next attempt", row.NextAttemptAt, begin.Add(100*time.Millisecond))
	eq(t, "error", row.Error, "the receiver answered 500")
	eq(t, "at that instant", w.Drive(), push.Report{})
	p.clock.Advance(100*time.Millisecond - time.Microsecond)
	eq(t, "a microsecond before", w.Drive(), push.Report{})
	p.clock.Advance(time.Microsecond)
	eq(t, "when it is due", w.Drive(), push.Report{Registrations: 1, Records: 1, Attempts: 1, Accepted: 1})
	row = p.get("r", "h")
	eq(t, "attempts", row.Attempts, 0)
	eq(t, "state", row.State, rendezvous.PushIdle)
	eq(t, "failing since", row.FailingSince.IsZero(), true)
}

// PU-42: two destinations have cursors of their own.
func TestEachDestinationHasItsOwnCursor(t *testing.T) {
	p := newPlane(t)
	good, bad := receive(t, nil), receive(t, answering(500))
	p.start("r", hook("r", "a", bad.URL), hook("r", "b", good.URL))
	p.note("r", 2)
	w := p.pod()
	eq(t, "report", w.Drive(), push.Report{Registrations: 2, Records: 3, Attempts: 4, Accepted: 3, Retries: 1})
	eq(t, "failing", p.get("r", "a").NextSeq, int64(1))
	eq(t, "delivered", p.get("r", "b").NextSeq, int64(4))
}

// PU-43: a receiver that stalls holds up nobody else; both are in flight at once.
func TestAStalledReceiverHoldsUpNobody(t *testing.T) {
	p := newPlane(t)
	release := make(chan struct{})
	stalled := blocked(t, release)
	other := receive(t, nil)
	p.start("r", hook("r", "a", stalled.URL), hook("r", "b", other.URL))
	w := p.pod()
	w.Pass()
	stalled.await(t)
	other.await(t)
	close(release)
	w.Wait()
	eq(t, "accepted", w.Totals().Accepted, 2)
}

// PU-43: of eight destinations under a ceiling of three all are served, and never more than three at once.
func TestNeverMoreTurnsThanPlaces(t *testing.T) {
	p := newPlane(t)
	var hooks []rendezvous.Registration
	v := receive(t, nil)
	for i := range 8 {
		hooks = append(hooks, hook("r", fmt.Sprint("h-", i), fmt.Sprint(v.URL, "/", i)))
	}
	p.start("r", hooks...)
	p.note("r", 10)
	w := p.pod(func(o *options) { o.InFlight = 3 })
	for range 4 {
		w.Drive()
	}
	eq(t, "accepted", w.Totals().Accepted, 88)
	if v.most > 3 {
		t.Errorf("%d were in flight at once", v.most)
	}
	turns, bytes := w.Taken()
	eq(t, "turns afterwards", turns, 0)
	eq(t, "bytes held afterwards", bytes, int64(0))
}

// PU-44: a retry sends the same body and id, with a timestamp and a signature of its own.
func TestARetryIsTheSameMessage(t *testing.T) {
	p := newPlane(t)
	v := receive(t, func(n int, _ message, _ *http.Request) answer {
		return answer{status: map[bool]int{true: 500, false: 200}[n == 1]}
	})
	h := hook("r", "h", v.URL)
	h.Signing = []rendezvous.SigningKey{{Key: rendezvous.NewSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")}}
	p.start("r", h)
	w := p.pod()
	w.Drive()
	p.clock.Advance(2 * time.Second)
	w.Drive()
	got := v.messages()
	eq(t, "requests", len(got), 2)
	eq(t, "ids", got[0].id, got[1].id)
	eq(t, "bodies", got[0].body, got[1].body)
	eq(t, "first timestamp", got[0].timestamp, fmt.Sprint(begin.Unix()))
	eq(t, "second timestamp", got[1].timestamp, fmt.Sprint(begin.Unix()+2))
	eq(t, "attempts told", got[0].attempt+got[1].attempt, "12")
	if got[0].signature == "" || got[0].signature == got[1].signature {
		t.Errorf("signatures %q and %q", got[0].signature, got[1].signature)
	}
}

// PU-45: registered on a run that is over, the terminal record is sent, and the registration is gone. One that stands behind it is done without a POST.
func TestARegistrationOnARunThatIsOver(t *testing.T) {
	p := newPlane(t)
	v := receive(t, nil)
	p.start("r")
	p.note("r", 2)
	p.conclude("r")
	for id, seq := range map[string]int64{"end": 0, "behind": 5} {
		r := hook("r", id, v.URL)
		r.RunID = "r"
		_, err := p.tenant.PutPush(t.Context(), store.PutPush{Registration: r, NextSeq: seq}, time.Time{})
		must(t, err)
	}
	w := p.pod()
	eq(t, "report", w.Drive(), push.Report{Registrations: 2, Records: 1, Attempts: 1, Accepted: 1, Completed: 2})
	same(t, "received", v.ids(), []string{"r/4/0"})
	eq(t, "left", p.get("r", "end") == nil && p.get("r", "behind") == nil, true)
}

// PU-45: a run that goes on in another is followed to its own end, and no further.
func TestTheFollowedRunEndsBeforeTheNextOne(t *testing.T) {
	p := newPlane(t)
	v := receive(t, nil)
	p.start("r", hook("r", "h", v.URL))
	got, err := p.tenant.ContinueAsNew(t.Context(), store.Continuation{RunID: "r", ExpectedSeq: 1, BatchID: "on", NextRun: "r2"}, time.Time{})
	must(t, err)
	p.heads["r2"] = got.Seq
	w := p.pod()
	eq(t, "report", w.Drive(), push.Report{Registrations: 1, Records: 2, Attempts: 2, Accepted: 2, Completed: 1})
	same(t, "received", v.ids(), []string{"r/1/0", "r/2/0"})
}

// A run that was reopened behind the terminal record that a turn is sending is read on.
func TestAReopenedRunIsFollowedOn(t *testing.T) {
	p := newPlane(t)
	v := receive(t, func(_ int, m message, _ *http.Request) answer {
		if m.id == "r/2/0" { // while the terminal record is on the wire
			_, err := p.tenant.ReopenRun(t.Context(), store.Reopening{RunID: "r", BatchID: "again", Operator: &rendezvous.Operator{Actor: "ops", Basis: "asserted"}}, time.Time{})
			if err != nil {
				t.Error(err)
			}
		}
		return answer{status: 204}
	})
	p.start("r", hook("r", "h", v.URL))
	_, err := p.tenant.Conclude(t.Context(), store.Conclusion{RunID: "r", ExpectedSeq: 1, Outcome: rendezvous.StatusFailed, Code: "x"}, time.Time{})
	must(t, err)
	w := p.pod()
	w.Drive()
	same(t, "received", v.ids(), upTo("r", 3))
	eq(t, "state", p.get("r", "h").State, rendezvous.PushIdle)
}

// PU-46: whatever fails, first acceptances are in order and without gap, and k + 1 is never on the wire before k's 2xx.
func TestRandomFailuresKeepTheOrder(t *testing.T) {
	p := newPlane(t)
	source := rand.New(rand.NewPCG(1, 2))
	var accepted []string
	v := receive(t, func(_ int, m message, _ *http.Request) answer {
		if source.IntN(3) == 0 {
			return answer{status: 500 + source.IntN(5)}
		}
		if !slices.Contains(accepted, m.id) {
			accepted = append(accepted, m.id)
		}
		return answer{status: 204}
	})
	p.start("r", hook("r", "h", v.URL))
	p.note("r", 150)
	p.conclude("r")
	w := p.pod(func(o *options) { o.Random = source.Float64 })
	for p.get("r", "h") != nil {
		w.Drive()
		p.clock.Advance(30 * time.Second)
	}
	same(t, "accepted", accepted, upTo("r", 152))
	eq(t, "most at once", v.most, 1)
	place := func(m message) (seq int) {
		_, _ = fmt.Sscanf(m.id, "r/%d/0", &seq)
		return seq
	}
	for i, m := range v.messages()[1:] {
		if before := place(v.messages()[i]); place(m) != before && place(m) != before+1 {
			t.Fatalf("record %d came behind record %d", place(m), before)
		}
	}
}

// PU-47: where the second message of a record fails, the next attempt begins with it.
func TestARecordThatWasAcceptedInPartGoesOnThere(t *testing.T) {
	p := newPlane(t)
	v := receive(t, func(n int, _ message, _ *http.Request) answer {
		return answer{status: map[bool]int{true: 500, false: 204}[n == 2]}
	})
	h := hook("r", "h", v.URL)
	h.Projection, h.Events = rendezvous.ProjectionA2A, []string{string(rendezvous.RunCompleted)}
	p.start("r", h)
	p.conclude("r")
	w := p.pod()
	w.Drive()
	eq(t, "cursor", p.get("r", "h").Cursor, rendezvous.Cursor{NextSeq: 2, NextIndex: 1})
	p.clock.Advance(time.Second)
	w.Drive()
	same(t, "received", v.ids(), []string{"r/2/0", "r/2/1", "r/2/1"})
	eq(t, "left", p.get("r", "h") == nil, true)
}

// PU-47: who stops asking for results between a record's two messages still gets the second one, under its own id.
func TestTheSecondMessageIsSentWhenResultsAreTurnedOff(t *testing.T) {
	p := newPlane(t)
	v := receive(t, func(n int, _ message, _ *http.Request) answer {
		return answer{status: map[bool]int{true: 500, false: 204}[n == 2]}
	})
	h := hook("r", "h", v.URL)
	h.Projection, h.Events = rendezvous.ProjectionA2A, []string{string(rendezvous.RunCompleted)}
	p.start("r", h)
	p.conclude("r")
	w := p.pod()
	w.Drive()
	h.RunID, h.IncludePayload = "r", new(bool)
	_, err := p.tenant.PutPush(t.Context(), store.PutPush{Registration: h}, time.Time{})
	must(t, err)
	w.Drive()
	same(t, "received", v.ids(), []string{"r/2/0", "r/2/1", "r/2/1"})
	eq(t, "the last is the status", strings.Contains(v.last().body, "TASK_STATE_COMPLETED"), true)
	eq(t, "left", p.get("r", "h") == nil, true)
}

// PU-47: a destination that is configured to another projection between a record's two messages gets that record whole.
func TestAnotherProjectionBeginsItsRecordAnew(t *testing.T) {
	v := receive(t, func(n int, _ message, _ *http.Request) answer {
		return answer{status: map[bool]int{true: 500, false: 204}[n == 2]}
	})
	audit := push.Destination{Destination: rendezvous.Destination{Name: "audit"}, Registration: rendezvous.Registration{URL: v.URL, Projection: rendezvous.ProjectionA2A}}
	p := newPlane(t, audit)
	p.start("r")
	p.conclude("r")
	w := p.pod()
	w.Drive()
	eq(t, "cursor", p.get("r", "operator:audit").Cursor, rendezvous.Cursor{NextSeq: 2, NextIndex: 1})
	audit.Registration.Projection = rendezvous.ProjectionCloudEvents
	must(t, p.destinations.Replace([]push.Destination{audit}, begin))
	p.clock.Advance(time.Second)
	w.Drive()
	same(t, "received", v.ids(), []string{"r/2/0", "r/2/1", "r/2/0"})
	eq(t, "the last is a CloudEvent", strings.Contains(v.last().body, `"type":"rendezvous.run.completed"`), true)
	eq(t, "left", p.get("r", "operator:audit") == nil, true)
}

// PU-48: a backlog yields after 64 records, behind whoever has been due for longer.
func TestABacklogYields(t *testing.T) {
	p := newPlane(t)
	v := receive(t, nil)
	p.start("a", hook("a", "h", v.URL))
	p.note("a", 10_000)
	p.clock.Advance(time.Second)
	p.start("b", hook("b", "h", v.URL))
	p.clock.Advance(time.Second)
	w := p.pod(func(o *options) { o.InFlight = 1 })
	w.Drive() // one place: the namespace whose turn it is has it
	for w.Totals().Accepted == 0 {
		w.Drive()
	}
	eq(t, "of the backlog", w.Totals().Accepted, 64)
	for w.Totals().Accepted == 64 {
		w.Drive()
	}
	eq(t, "then the other", v.messages()[64].id, "b/1/0")
	eq(t, "the backlog's cursor", p.get("a", "h").NextSeq, int64(65))
}

// PU-48: a turn yields after 5 s.
func TestATurnYieldsInTime(t *testing.T) {
	p := newPlane(t)
	v := receive(t, func(int, message, *http.Request) answer {
		p.clock.Advance(time.Second)
		return answer{status: 204}
	})
	p.start("a", hook("a", "h", v.URL))
	p.note("a", 20)
	w := p.pod()
	w.Drive()
	eq(t, "accepted in a turn", w.Totals().Accepted, 5)
}

// PU-60: what a status leads to, by the schedule of push.md section 6.
func TestStatusesLeadToWhatTheContractSays(t *testing.T) {
	for status, want := range map[int]struct {
		wait time.Duration
		park rendezvous.ParkReason
	}{
		410: {park: rendezvous.ParkGone}, 500: {wait: 100 * time.Millisecond}, 404: {wait: 100 * time.Millisecond}, 400: {wait: 100 * time.Millisecond},
		302: {wait: 100 * time.Millisecond}, 304: {wait: 100 * time.Millisecond}, 401: {wait: time.Minute}, 403: {wait: time.Minute}, 429: {wait: 5 * time.Second},
		503: {wait: 5 * time.Second},
	} {
		p := newPlane(t)
		v := receive(t, func(int, message, *http.Request) answer {
			return answer{status: status, header: map[string]string{"Location": "http://127.0.0.1:1/"}}
		})
		p.start("r", hook("r", "h", v.URL))
		w := p.pod()
		got := w.Drive()
		row := p.get("r", "h")
		eq(t, fmt.Sprint(status, ": reason"), row.Reason, want.park)
		if want.park != "" {
			eq(t, fmt.Sprint(status, ": parked"), got.Parked, 1)
			eq(t, fmt.Sprint(status, ": attention"), got.Attention(), true)
			continue
		}
		eq(t, fmt.Sprint(status, ": wait"), row.NextAttemptAt.Sub(begin), want.wait)
		eq(t, fmt.Sprint(status, ": attention"), got.Attention(), false)
	}
}

// PU-60: eight rejections of one message park it; another message starts the count anew.
func TestRejectionsOfOneMessagePark(t *testing.T) {
	p := newPlane(t)
	accept := map[string]int{"r/1/0": 8} // at the eighth time
	times := map[string]int{}
	v := receive(t, func(_ int, m message, _ *http.Request) answer {
		times[m.id]++
		return answer{status: map[bool]int{true: 204, false: 422}[times[m.id] == accept[m.id]]}
	})
	p.start("r", hook("r", "h", v.URL))
	p.note("r", 1)
	w := p.pod()
	for p.get("r", "h").ParkedAt.IsZero() {
		w.Drive()
		p.clock.Advance(2 * time.Hour)
	}
	eq(t, "times of the first", times["r/1/0"], 8)
	eq(t, "times of the second", times["r/2/0"], 8)
	eq(t, "reason", p.get("r", "h").Reason, rendezvous.ParkRejected)
}

// PU-61: what a receiver asks for is waited to the instant, up to the cap; what is garbled is nobody's advice.
func TestRetryAfterIsKept(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90": 90 * time.Second, "99999999999999999999": 24 * time.Hour, "0": 100 * time.Millisecond, "-5": 100 * time.Millisecond, "1.5": 100 * time.Millisecond, "soon": 100 * time.Millisecond,
	} {
		p := newPlane(t)
		v := receive(t, func(int, message, *http.Request) answer {
			return answer{status: 500, header: map[string]string{"Retry-After": text}}
		})
		p.start("r", hook("r", "h", v.URL))
		w := p.pod()
		w.Drive()
		eq(t, text, p.get("r", "h").NextAttemptAt.Sub(begin), want)
		logged := p.attempts("r", "h")[0]
		eq(t, text+": what is logged is what is stored", logged.NextAttemptAt, p.get("r", "h").NextAttemptAt)
		eq(t, text+": the cap", logged.AdviceCapped, want == 24*time.Hour)
	}
}

// PU-63: the schedule of a registration that fails and fails, with u next to 1; PU-65: and its end.
func TestTheScheduleOfFailures(t *testing.T) {
	p := newPlane(t)
	v := receive(t, answering(500))
	h := hook("r", "h", v.URL)
	h.MaxAttempts = 15
	p.start("r", h)
	w := p.pod(func(o *options) { o.Random = func() float64 { return 1 } })
	var waits []time.Duration
	for {
		got := w.Drive()
		row := p.get("r", "h")
		if got.Parked == 1 {
			eq(t, "reason", row.Reason, rendezvous.ParkExhausted)
			eq(t, "attempts", row.Attempts, 15)
			eq(t, "cursor", row.NextSeq, int64(1))
			break
		}
		waits = append(waits, row.NextAttemptAt.Sub(p.clock.Now()))
		p.clock.Set(row.NextAttemptAt)
	}
	for i, wait := range waits {
		want := time.Hour
		if i < 12 {
			want = time.Second << i
		}
		eq(t, fmt.Sprintf("wait %d", i+1), wait, want)
	}
}

// PU-64: rows that fail together are spread over instants, and the same source gives the same schedule.
func TestFailuresAreSpread(t *testing.T) {
	schedule := func() (at []time.Time) {
		p := newPlane(t)
		v := receive(t, answering(500))
		source := rand.New(rand.NewPCG(7, 7))
		var hooks []rendezvous.Registration
		for i := range 8 {
			hooks = append(hooks, hook("r", fmt.Sprint("h-", i), v.URL))
		}
		p.start("r", hooks...)
		w := p.pod(func(o *options) { o.Random = source.Float64; o.InFlight = 1 })
		for w.Totals().Retries < 8 {
			w.Drive()
		}
		for i := range 8 {
			at = append(at, p.get("r", fmt.Sprint("h-", i)).NextAttemptAt)
		}
		return at
	}
	first, second := schedule(), schedule()
	if !slices.EqualFunc(first, second, time.Time.Equal) {
		t.Errorf("%v and then %v", first, second)
	}
	slices.SortFunc(first, time.Time.Compare)
	if n := len(slices.CompactFunc(first, time.Time.Equal)); n < 2 {
		t.Errorf("all eight are due at one instant")
	}
}

// PU-65: three attempts are two retries without attention, and a third that parks with it; one is one.
func TestTheCeilingOfAttempts(t *testing.T) {
	for _, most := range []int{1, 3} {
		p := newPlane(t)
		v := receive(t, answering(500))
		h := hook("r", "h", v.URL)
		h.MaxAttempts = most
		p.start("r", h)
		w := p.pod()
		for i := range most {
			got := w.Drive()
			eq(t, "attention", got.Attention(), i == most-1)
			p.clock.Advance(time.Hour)
		}
		eq(t, "reason", p.get("r", "h").Reason, rendezvous.ParkExhausted)
		eq(t, "afterwards", w.Drive(), push.Report{})
		eq(t, "requests", len(v.messages()), most)
	}
}

// PU-66: 72 h without a 2xx park; one acceptance, also inside a turn, starts anew.
func TestTheCeilingOfAge(t *testing.T) {
	p := newPlane(t)
	fails := true
	v := receive(t, func(n int, m message, _ *http.Request) answer {
		if fails || m.id != "r/1/0" {
			return answer{status: 500}
		}
		return answer{status: 204}
	})
	p.start("r", hook("r", "h", v.URL))
	p.note("r", 1)
	w := p.pod()
	w.Drive()
	p.clock.Advance(71 * time.Hour)
	fails = false
	eq(t, "an acceptance inside the turn", w.Drive(), push.Report{Registrations: 1, Records: 1, Attempts: 2, Accepted: 1, Retries: 1})
	row := p.get("r", "h")
	eq(t, "attempts", row.Attempts, 1)
	eq(t, "failing since", row.FailingSince, p.clock.Now())
	p.clock.Advance(72 * time.Hour)
	w.Drive()
	eq(t, "after 72 h", p.get("r", "h").Reason, rendezvous.ParkReason(""))
	p.clock.Advance(time.Second)
	w.Drive()
	eq(t, "after more", p.get("r", "h").Reason, rendezvous.ParkExpired)
}

// PU-67, PU-68: a host that is not granted any more parks at once and charges no retry; granted again and unparked it goes on where it was, with what was
// written meanwhile.
func TestAHostThatIsRevokedParks(t *testing.T) {
	p := newPlane(t)
	v := receiveBy(t, true, nil)
	h := hook("r", "h", fmt.Sprintf("https://example.com:%d/secret/path", v.port()))
	h.TLS.Authorities = v.authorities()
	p.start("r", h)
	granted := target.Settings{CallerHosts: []string{"example.com"}, CallerPorts: []int{v.port()}, AllowNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	w := p.pod(func(o *options) { o.policy = granted })
	set := func(s target.Settings) {
		policy, err := target.New(s)
		must(t, err)
		w.client.SetPolicy(policy)
	}
	set(target.Settings{CallerHosts: []string{"example.org"}, CallerPorts: []int{v.port()}})
	got := w.Drive()
	eq(t, "report", got, push.Report{Registrations: 1, Attempts: 1, Parked: 1})
	eq(t, "attention", got.Attention(), true)
	row := p.get("r", "h")
	eq(t, "reason", row.Reason, rendezvous.ParkHostNotGranted)
	eq(t, "cursor", row.NextSeq, int64(1))
	if strings.Contains(row.Error, "secret") || !strings.Contains(row.Error, "example.com") {
		t.Errorf("the error does not name the host alone: %s", row.Error)
	}
	p.note("r", 2)
	p.conclude("r")
	set(granted)
	ok, err := p.tenant.UnparkPush(t.Context(), row.Key(), time.Time{}, "op-1")
	must(t, err)
	eq(t, "unparked", ok, true)
	eq(t, "report", w.Drive(), push.Report{Registrations: 1, Records: 4, Attempts: 4, Accepted: 4, Completed: 1})
	same(t, "received", v.ids(), upTo("r", 4))
}

// PU-69: what fails before a status is charged and tried again; after a byte was written the log says unknown.
func TestSilenceIsChargedAndSaysWhetherItIsKnown(t *testing.T) {
	p := newPlane(t)
	v := receive(t, func(_ int, _ message, r *http.Request) answer { panic(http.ErrAbortHandler) })
	dead := receive(t, nil)
	dead.Close()
	p.start("r", hook("r", "cut", v.URL), hook("r", "refused", dead.URL))
	w := p.pod()
	eq(t, "report", w.Drive(), push.Report{Registrations: 2, Attempts: 2, Retries: 2})
	for id, want := range map[string]struct {
		code    string
		unknown bool
	}{"cut": {"disconnected", true}, "refused": {"connect", false}} {
		got := p.attempts("r", id)[0]
		eq(t, id+": class", got.Class, rendezvous.ClassSilent)
		eq(t, id+": code", got.Code, want.code)
		eq(t, id+": unknown", got.Unknown, want.unknown)
		eq(t, id+": attempts", p.get("r", id).Attempts, 1)
	}
}

// PU-84: numbers rise without gap for life; failures are always in the log, acceptances as push.log_accepted says, with phases, status and what was answered.
func TestTheAttemptLog(t *testing.T) {
	for accepted, want := range map[push.Accepted][]int64{push.LogLast: {1, 3, 4}, push.LogAll: {1, 2, 3, 4, 5, 6}} {
		p := newPlane(t)
		v := receive(t, func(n int, _ message, _ *http.Request) answer {
			return answer{status: map[bool]int{true: 500, false: 200}[n == 1 || n == 3 || n == 4], body: "n\to " + strings.Repeat("x", 2000)}
		})
		p.start("r", hook("r", "h", v.URL))
		p.note("r", 2)
		w := p.pod(func(o *options) { o.LogAccepted, o.LogBody = accepted, 0 })
		for range 4 {
			w.Drive()
			p.clock.Advance(time.Minute)
		}
		var numbers []int64
		for _, a := range p.attempts("r", "h") {
			numbers = append(numbers, a.No)
			if len(a.Response) < 1024 || !strings.HasPrefix(a.Response, `n\to `) {
				t.Errorf("attempt %d holds %q", a.No, a.Response)
			}
			eq(t, "worker", strings.HasPrefix(a.Worker, "pod/"), true)
			eq(t, "address of a caller's", a.Address, "")
		}
		if !slices.Equal(numbers, want) {
			t.Errorf("%s: logged %v, want %v", accepted, numbers, want)
		}
		eq(t, "last", p.get("r", "h").Last.No, int64(6))
		eq(t, "attempts for life", p.get("r", "h").AttemptNo, int64(6))
	}
}
