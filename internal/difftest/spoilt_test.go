package difftest

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// everyVerb is a call of each verb that has something to work on, in an order in which most go through.
func everyVerb() []Step {
	paid := func(id string) Event {
		return Event{Source: "shop", ID: id, Type: "paid", Keys: []string{"o=1"}, ContentType: "text/plain", Payload: "p", Expires: time.Hour, Trace: "00-1", Minter: "kim"}
	}
	wait := func(run, effect string, epoch int64) Wait {
		return Wait{Run: run, Effect: effect, Type: "paid", Keys: []string{"o=1"}, From: "shop", Attempt: 1, Trace: "01-1", Epoch: epoch}
	}
	return []Step{
		StartRun{Tenant: "a", Workflow: "w1", Run: "r1", Type: "order", Queue: "fast", Input: "p", ContentType: "text/plain", Parent: "w9", CodeVersion: "v1", Operator: "kim", At: time.Second},
		StartRun{Tenant: "a", Workflow: "w_", Run: "r2", Type: "order"},
		AcquireLease{Tenant: "a", Run: "r1", Owner: "pod/1", TTL: time.Minute, Acquire: "k1"},
		RenewLease{Tenant: "a", Run: "r1", Owner: "pod/1", Epoch: 1, TTL: time.Minute},
		Append{Tenant: "a", Run: "r1", Epoch: 1, Expected: 1, Batch: "b1", At: time.Second, Records: []Record{
			{Kind: "effect.started", Effect: "e1", Attempt: 1, Data: `{"name":"charge"}`, Payload: "p", ContentType: "text/plain", Operator: "kim"},
			{Kind: "effect.failed", Effect: "e1", Attempt: 1, Data: `{"code":"c","reason":"r","retryable":true}`},
			{Kind: "note", Data: `{"name":"n"}`, Run: "r1"},
		}},
		RegisterWait{Tenant: "a", Wait: wait("r1", "q1", 1), At: time.Second},
		Subscribe{Tenant: "a", Wait: wait("r1", "q2", 1), At: time.Second},
		RegisterBatch{Items: []Listen{{"a", wait("r1", "q3", 1)}, {"a", wait("r2", "q1", 0)}}, At: time.Second},
		Buffer{Tenant: "a", Event: paid("1"), At: time.Second},
		BufferBatch{Items: []Put{{"a", paid("2")}, {"B", paid("1")}}, At: time.Second},
		MatchWaiter{Tenant: "a", Source: "shop", ID: "1", At: time.Second},
		ClaimFor{Tenant: "a", Run: "r1", Effect: "q2", At: time.Second},
		OfferBatch{Items: []Offer{{Tenant: "a", Source: "shop", ID: "2"}, {Tenant: "a", Run: "r2", Effect: "q1"}}, At: time.Second},
		DeliverTo{Tenant: "a", Run: "r1", Event: paid("3"), Keep: true, At: time.Second},
		DeliverToBatch{Items: []Targeted{{"a", "r2", paid("4"), true}}, At: time.Second},
		ParkWait{Items: []Park{{"a", "r1", "q1", "failed", time.Second, "why", 0}}, At: time.Second},
		TakeParked{Limit: 2, Hold: time.Minute},
		RetryWait{Tenant: "a", Run: "r1", Effect: "q1", Operator: "kim"},
		Waiting{Tenant: "a", Run: "r1", Type: "paid", Key: "o=1", State: "parked", Limit: 1},
		ParkedWaits{Tenant: "a", Run: "r1", Type: "paid", Key: "o=1", State: "parked", Limit: 1},
		QuarantinedWaits{Tenant: "a", Limit: 1},
		QueryWorkflows{Tenant: "a", Types: []string{"order"}, Statuses: []string{"running"}, Queues: []string{"fast"}, Prefix: "w", Limit: 1, Most: 1},
		ReadHistory{Tenant: "a", Workflow: "w1"},
		ReadHistoryFrom{Tenant: "a", Workflow: "w1", From: 2, Limit: 2},
		ReadRunChain{Tenant: "a", Workflow: "w1", After: 1, Limit: 2},
		DescribeWorkflow{Tenant: "a", Workflow: "w1", Run: "r1"},
		LookupEvent{Tenant: "a", Source: "shop", ID: "1", Payload: true},
		Minter{Tenant: "a", Source: "shop", ID: "1"},
		AbandonedRuns{Limit: 1},
		TakeUnmet{Grace: time.Second, Hold: time.Second, Limit: 2},
		TakeNews{Grace: time.Second, Hold: time.Second, Limit: 2},
		Collect{Tenant: "a", Run: "r1", Epoch: 1},
		DeliverParked{Items: []Held{{"a", "r2", "q1"}}, At: time.Second},
		Unsubscribe{Tenant: "a", Run: "r1", Effect: "q3", Epoch: 1, Reason: "why", At: time.Second},
		ErasePayload{Tenant: "a", Source: "shop", ID: "3", Operator: "kim", At: time.Second},
		PauseRun{Tenant: "a", Run: "r2", Operator: "kim", Reason: "why", At: time.Second},
		ResumeRun{Tenant: "a", Run: "r2", Operator: "kim", Reason: "why", At: time.Second},
		UnsubscribeRun{Tenant: "a", Run: "r2", Unanswered: []string{"q1"}, At: time.Second},
		Suspend{Tenant: "a", Run: "r1", Epoch: 1, Seen: 9},
		ReclaimRun{Items: []Reclaim{{"a", "w1", 1, time.Minute}}},
		ContinueAsNew{Tenant: "a", Run: "r2", Expected: 5, Batch: "b1", Next: "r3", Input: "p", ContentType: "text/plain", Type: "order", Queue: "fast", Operator: "kim", At: time.Second},
		Conclude{Tenant: "a", Run: "r3", Expected: 7, Batch: "b1", Outcome: "failed", Result: "p", ContentType: "text/plain", Code: "c", Reason: "why", Operator: "kim", At: time.Second},
		CancelRun{Tenant: "a", Run: "r1", Operator: "kim", Reason: "why", Now: true, At: time.Second},
		ReleaseLease{Tenant: "a", Run: "r1", Epoch: 1},
	}
}

// numbers are those at which limits, columns and instants end.
var numbers = []int64{math.MinInt64, -1 << 31, -1, 0, 1, 501, 1001, 10_001, math.MaxInt32, 1 << 31, 1 << 40, math.MaxInt64}

// TestSpoiltCallsAreAnsweredAlike spoils every field of every verb in turn: all of them when many sequences are asked for, else a sample.
func TestSpoiltCallsAreAnsweredAlike(t *testing.T) {
	w := NewWorld(t, open(t))
	for _, step := range everyVerb() {
		for _, bad := range spoil(step) {
			if oneOf(t, 2000) {
				w.Do(bad)
			}
		}
		w.Do(step)
	}
	w.End()
	t.Logf("%d calls", len(w.steps))
}

// oneOf reports whether this one belongs to the sample: all do when that many sequences are asked for, and a share when fewer are.
func oneOf(t *testing.T, all int) bool {
	t.Helper()
	return rand.IntN(max(1, all/sequences(t))) == 0
}

// spoil answers a step with each of its texts and numbers spoilt in each way.
func spoil(step Step) []Step {
	var all []Step
	fields := func(visit func(fresh reflect.Value, texts, numbers []reflect.Value)) {
		v := reflect.New(reflect.TypeOf(step)).Elem()
		v.Set(copyOf(reflect.ValueOf(step)))
		var texts, numbers []reflect.Value
		eachText(v, func(text reflect.Value) { texts = append(texts, text) })
		eachNumber(v, func(number reflect.Value) { numbers = append(numbers, number) })
		visit(v, texts, numbers)
	}
	var ofTexts, ofNumbers int
	fields(func(_ reflect.Value, texts, numbers []reflect.Value) { ofTexts, ofNumbers = len(texts), len(numbers) })
	for i := range ofTexts {
		for _, bad := range spoilt {
			fields(func(v reflect.Value, texts, _ []reflect.Value) {
				texts[i].SetString(bad)
				all = append(all, v.Interface().(Step))
			})
		}
	}
	for i := range ofNumbers {
		for _, bad := range numbers {
			fields(func(v reflect.Value, _, numbers []reflect.Value) {
				numbers[i].SetInt(bad)
				all = append(all, v.Interface().(Step))
			})
		}
	}
	return all
}

// calledAt is above the number of calls that a verb makes in one transaction here.
const calledAt = 14

// TestFailuresAreAnsweredAlike breaks every verb at every call until it goes through, or before its commit and behind it, and then repeats it.
func TestFailuresAreAnsweredAlike(t *testing.T) {
	kinds := open(t)
	var atCalls []Step
	for call := range calledAt {
		atCalls = append(atCalls, Arm{Point: "at_call", Call: call + 1})
	}
	for _, failures := range [][]Step{atCalls, {Arm{Point: "before_commit"}, Arm{Point: "after_commit"}}} {
		w := NewWorld(t, kinds)
		for _, step := range everyVerb() {
			for _, f := range failures {
				w.Do(f)
				w.Do(step)
			}
			w.Do(step)
		}
		w.End()
	}
}

// TestVerbsMadeAnewAreAnsweredAlike lets every verb start over once, from each of its calls: what it answers is what it answers without that.
func TestVerbsMadeAnewAreAnsweredAlike(t *testing.T) {
	kinds := open(t)
	for call := range calledAt {
		for _, err := range []string{"stale", "retry"} {
			if !oneOf(t, 300) {
				continue
			}
			w := NewWorld(t, kinds)
			for _, step := range everyVerb() {
				w.Do(Arm{Point: "at_call", Call: call + 1, Err: err})
				w.Do(step)
			}
			w.End()
		}
	}
}
