package engine

import (
	"errors"
	"testing"

	"github.com/rendezvous-events/rendezvous"
)

const orderRun, orderNext = "run-1", "run-2"

func rec(kind rendezvous.Kind, effect string, attempt int, data any) rendezvous.Record {
	r := rendezvous.Record{RunID: orderRun, Kind: kind, Effect: effect, Attempt: attempt}
	if data != nil {
		r.Data = rendezvous.EncodeData(data)
	}
	return r
}

func opens(effect string, attempt int) rendezvous.Record {
	return rec(rendezvous.EffectStarted, effect, attempt, rendezvous.NameData{Name: "charge"})
}

func done(effect string, attempt int) rendezvous.Record {
	return rec(rendezvous.EffectDone, effect, attempt, nil)
}

func fails(effect string, attempt int, again bool) rendezvous.Record {
	return rec(rendezvous.EffectFailed, effect, attempt, rendezvous.EffectFailedData{Code: "c", Retryable: again})
}

func waits(effect string, attempt int) rendezvous.Record {
	return rec(rendezvous.WaitRegistered, effect, attempt, rendezvous.WaitRegisteredData{Type: "t"})
}

func bare(kind rendezvous.Kind) rendezvous.Record { return rec(kind, "", 0, nil) }

func starts(run, previous string) rendezvous.Record {
	r := rec(rendezvous.RunStarted, "", 0, rendezvous.RunStartedData{Type: "t", Queue: "q", PreviousRun: previous})
	r.RunID = run
	return r
}

func continues(next string) rendezvous.Record {
	return rec(rendezvous.RunContinued, "", 0, rendezvous.RunContinuedData{NextRun: next})
}

func stored(seq int64, r rendezvous.Record) rendezvous.Record {
	r.Seq = seq
	return r
}

// want is what a batch is to be told: no code is success.
type want struct {
	code    rendezvous.Code
	details map[string]any
}

func judge(t *testing.T, err error, w want) {
	t.Helper()
	if w.code == "" {
		if err != nil {
			t.Fatalf("refused a legal batch: %v", err)
		}
		return
	}
	var e *rendezvous.Error
	if !errors.As(err, &e) || e.Code != w.code {
		t.Fatalf("got %v, want %s", err, w.code)
	}
	for name, value := range w.details {
		if e.Details[name] != value {
			t.Errorf("detail %s is %v, want %v (%v)", name, e.Details[name], value, e)
		}
	}
}

// TestLegalOrder walks G1..G8: what the store holds, what a batch adds, what it is told.
func TestLegalOrder(t *testing.T) {
	t.Parallel()
	const refused, taken = rendezvous.CodeConflict, rendezvous.CodeDuplicate
	running := func(effects ...rendezvous.Record) orderFacts {
		f := orderFacts{run: orderRun, status: rendezvous.StatusRunning, head: 10, effects: map[string][]rendezvous.Record{}}
		for _, r := range effects {
			f.effects[r.Effect] = append(f.effects[r.Effect], r)
		}
		return f
	}
	paused := running(stored(2, opens("a", 1)), stored(3, waits("w", 1)))
	paused.status = rendezvous.StatusPaused
	pausing := running(stored(2, opens("a", 1)))
	pausing.pausing = true
	open := running(stored(2, opens("a", 1)), stored(4, opens("b", 1)))
	open.open = []rendezvous.Record{stored(2, opens("a", 1)), stored(4, opens("b", 1))}

	for _, c := range []struct {
		name    string
		facts   orderFacts
		records []rendezvous.Record
		want    want
	}{
		{"HI-10 a workflow begins with RunStarted", orderFacts{}, []rendezvous.Record{starts(orderRun, ""), opens("a", 1)}, want{}},
		{
			"HI-10 a workflow does not begin otherwise",
			orderFacts{},
			[]rendezvous.Record{bare(rendezvous.Note)},
			want{rendezvous.CodeInvalid, map[string]any{"record": 0}},
		},
		{
			"G1 no second root", running(),
			[]rendezvous.Record{starts(orderNext, "")},
			want{refused, map[string]any{"run": orderRun}},
		},
		{
			"G1 no second root in one batch",
			orderFacts{},
			[]rendezvous.Record{starts(orderRun, ""), starts(orderRun, "")},
			want{refused, map[string]any{"record": 1}},
		},
		{"HI-11 both links land", running(), []rendezvous.Record{continues(orderNext), starts(orderNext, orderRun)}, want{}},
		{
			"HI-12 the first open effect refuses to continue", open,
			[]rendezvous.Record{continues(orderNext), starts(orderNext, orderRun)},
			want{refused, map[string]any{"what": "open_effect", "current": "a", "seq": int64(2)}},
		},
		{
			"G3 what the batch closes is not open", open,
			[]rendezvous.Record{done("a", 1), continues(orderNext), starts(orderNext, orderRun)},
			want{refused, map[string]any{"current": "b", "seq": int64(4)}},
		},
		{
			"G3 all closed by the batch", open,
			[]rendezvous.Record{done("a", 1), fails("b", 1, true), continues(orderNext), starts(orderNext, orderRun)},
			want{},
		},
		{
			"G3 what the batch opens is open", running(),
			[]rendezvous.Record{opens("c", 1), continues(orderNext), starts(orderNext, orderRun)},
			want{refused, map[string]any{"current": "c", "seq": int64(11), "record": 1}},
		},
		{
			"G3 an open wait does not refuse", running(stored(3, waits("w", 1))),
			[]rendezvous.Record{waits("v", 1), continues(orderNext), starts(orderNext, orderRun)},
			want{},
		},
		{"HI-15 pause while paused", paused, []rendezvous.Record{bare(rendezvous.RunPaused)}, want{refused, map[string]any{"current": "paused"}}},
		{"HI-15 resume while running", running(), []rendezvous.Record{bare(rendezvous.RunResumed)}, want{refused, map[string]any{"current": "running"}}},
		{"G5 pause while running", running(), []rendezvous.Record{bare(rendezvous.RunPaused)}, want{}},
		{"G5 resumed, work goes on in the batch", paused, []rendezvous.Record{bare(rendezvous.RunResumed), opens("n", 1)}, want{}},
		{"HI-16 paused: no effect", paused, []rendezvous.Record{opens("n", 1)}, want{refused, map[string]any{"what": "paused", "current": "paused"}}},
		{"HI-16 paused: no wait", paused, []rendezvous.Record{waits("n", 1)}, want{refused, map[string]any{"what": "paused"}}},
		{
			"RN-47 paused: no new run", paused,
			[]rendezvous.Record{continues(orderNext), starts(orderNext, orderRun)},
			want{refused, map[string]any{"what": "paused"}},
		},
		{
			"HI-16 paused: facts are taken", paused,
			[]rendezvous.Record{done("a", 1), rec(rendezvous.WaitAnswered, "w", 1, nil), bare(rendezvous.Note)},
			want{},
		},
		{"HI-14 paused: it may complete", paused, []rendezvous.Record{bare(rendezvous.RunCompleted)}, want{}},
		{"RN-52 pausing: no effect", pausing, []rendezvous.Record{opens("n", 1)}, want{refused, map[string]any{"what": "pausing"}}},
		{"RN-52 pausing: no wait", pausing, []rendezvous.Record{waits("n", 1)}, want{refused, map[string]any{"what": "pausing"}}},
		{
			"RN-52 pausing: no new run", pausing,
			[]rendezvous.Record{continues(orderNext), starts(orderNext, orderRun)},
			want{refused, map[string]any{"what": "pausing"}},
		},
		{"RN-52 pausing: an outcome is taken", pausing, []rendezvous.Record{done("a", 1), bare(rendezvous.RunPaused)}, want{}},
		{
			"HI-17 opened twice", running(stored(4, opens("a", 1))),
			[]rendezvous.Record{opens("a", 1)},
			want{taken, map[string]any{"seq": int64(4), "effect": "a", "attempt": 1}},
		},
		{
			"HI-17 opened twice in one batch", running(),
			[]rendezvous.Record{bare(rendezvous.Note), opens("a", 1), opens("a", 1)},
			want{taken, map[string]any{"seq": int64(12), "record": 2}},
		},
		{
			"G7 a key of an effect names no wait", running(stored(4, opens("a", 1)), stored(5, done("a", 1))),
			[]rendezvous.Record{waits("a", 1)},
			want{taken, map[string]any{"seq": int64(4)}},
		},
		{"G7 a key of a wait names no effect", running(stored(4, waits("a", 1))), []rendezvous.Record{opens("a", 2)}, want{taken, map[string]any{"seq": int64(4)}}},
		{
			"HI-18 closed twice", running(stored(4, opens("a", 1)), stored(6, done("a", 1))),
			[]rendezvous.Record{fails("a", 1, false)},
			want{refused, map[string]any{"seq": int64(6), "kind": string(rendezvous.EffectDone)}},
		},
		{
			"HI-18 closed twice in one batch", running(stored(4, opens("a", 1))),
			[]rendezvous.Record{done("a", 1), done("a", 1)},
			want{refused, map[string]any{"seq": int64(11), "record": 1}},
		},
		{"HI-18 never opened", running(), []rendezvous.Record{done("a", 1)}, want{refused, map[string]any{"effect": "a"}}},
		{"HI-18 a later attempt never opened", running(stored(4, opens("a", 1))), []rendezvous.Record{done("a", 2)}, want{refused, nil}},
		{"G7 an effect's closing does not close a wait", running(stored(4, waits("a", 1))), []rendezvous.Record{done("a", 1)}, want{refused, nil}},
		{"G7 another key of another run", orderFacts{}, []rendezvous.Record{
			starts(orderRun, ""), opens("a", 1), done("a", 1), continues(orderNext), starts(orderNext, orderRun), opens("a", 1),
		}, want{}},
		{
			"HI-19 a retryable failure admits the next attempt", running(stored(4, opens("a", 1)), stored(5, fails("a", 1, true))),
			[]rendezvous.Record{opens("a", 2), done("a", 2)},
			want{},
		},
		{"HI-19 in one batch", running(), []rendezvous.Record{opens("a", 1), fails("a", 1, true), opens("a", 2)}, want{}},
		{
			"HI-19 a final failure does not", running(stored(4, opens("a", 1)), stored(5, fails("a", 1, false))),
			[]rendezvous.Record{opens("a", 2)},
			want{refused, map[string]any{"current": string(rendezvous.EffectFailed), "seq": int64(5)}},
		},
		{
			"G8 not while the attempt before is open", running(stored(4, opens("a", 1))),
			[]rendezvous.Record{opens("a", 2)},
			want{refused, map[string]any{"current": "open", "seq": int64(4)}},
		},
		{
			"G8 not after success", running(stored(4, opens("a", 1)), stored(5, done("a", 1))),
			[]rendezvous.Record{opens("a", 2)},
			want{refused, map[string]any{"current": string(rendezvous.EffectDone)}},
		},
		{"G8 no attempt is left out", running(stored(4, opens("a", 1)), stored(5, fails("a", 1, true))), []rendezvous.Record{opens("a", 3)}, want{refused, nil}},
		{
			"G8 a wait has no second attempt", running(stored(4, waits("w", 1)), stored(5, rec(rendezvous.WaitAnswered, "w", 1, nil))),
			[]rendezvous.Record{waits("w", 2)},
			want{refused, map[string]any{"seq": int64(5)}},
		},
		{"history.md 1: no seq beyond the last", func() orderFacts {
			f := running()
			f.head = rendezvous.MaxSeq - 1
			return f
		}(), []rendezvous.Record{bare(rendezvous.Note), bare(rendezvous.Note)}, want{rendezvous.CodeTooLarge, nil}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			judge(t, checkOrder(c.facts, c.records), c.want)
		})
	}
}

// TestPlaces walks what a batch's records may stand beside.
func TestPlaces(t *testing.T) {
	t.Parallel()
	invalid := want{code: rendezvous.CodeInvalid}
	foreign := bare(rendezvous.Note)
	foreign.RunID = orderNext
	note := bare(rendezvous.Note)
	for _, c := range []struct {
		name    string
		records []rendezvous.Record
		want    want
	}{
		{"nothing", nil, want{}},
		{"RN-4 of two runs", []rendezvous.Record{note, foreign}, invalid},
		{"RN-11 a terminal last", []rendezvous.Record{note, bare(rendezvous.RunCompleted)}, want{}},
		{"RN-11 a terminal in the middle", []rendezvous.Record{bare(rendezvous.RunCompleted), note}, invalid},
		{"RN-11 two terminals", []rendezvous.Record{bare(rendezvous.RunCompleted), bare(rendezvous.RunCancelled)}, invalid},
		{"RN-57 RunPaused last", []rendezvous.Record{note, bare(rendezvous.RunPaused)}, want{}},
		{"RN-57 a record behind RunPaused", []rendezvous.Record{bare(rendezvous.RunPaused), note}, invalid},
		{"G2 linked", []rendezvous.Record{note, continues(orderNext), starts(orderNext, orderRun)}, want{}},
		{"HI-11 RunContinued alone", []rendezvous.Record{note, continues(orderNext)}, invalid},
		{"HI-11 before something else", []rendezvous.Record{continues(orderNext), note}, invalid},
		{"HI-11 naming another run", []rendezvous.Record{continues("run-3"), starts(orderNext, orderRun)}, invalid},
		{"HI-11 not named back", []rendezvous.Record{continues(orderNext), starts(orderNext, "run-3")}, invalid},
		{"G2 naming itself", []rendezvous.Record{continues(orderRun), starts(orderRun, orderRun)}, invalid},
		{"G2 a record behind the successor's start", []rendezvous.Record{continues(orderNext), starts(orderNext, orderRun), foreign}, invalid},
		{"G2 a successor's start alone", []rendezvous.Record{starts(orderNext, orderRun)}, invalid},
		{"G1 a root with a previous run", []rendezvous.Record{starts(orderRun, orderNext)}, invalid},
		{"G1 a root", []rendezvous.Record{starts(orderRun, ""), note}, want{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			judge(t, checkPlaces(orderRun, c.records), c.want)
		})
	}
}
